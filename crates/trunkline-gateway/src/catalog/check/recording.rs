//! Checks `recording`: what is kept of calls, and for how long.

use trunkline_wire::text;

use super::section::Section;
use crate::catalog::plan::{Payloads, RecordingPlan};

/// `off`, or an object with settings; `None` if it is off.
pub(super) fn recording(section: &Section<'_>) -> Option<RecordingPlan> {
    let usual = RecordingPlan::default();
    let Some(more) = section.either("recording") else {
        let Some(at) = section.get("recording") else { return Some(usual) };
        return match at.choice(&["on", "off"])? {
            "off" => None,
            _ => Some(usual),
        };
    };
    let payloads = match more.choice("payloads") {
        Some("never") => Payloads::Never,
        Some("always") => Payloads::Always,
        _ => Payloads::Loopback,
    };
    let sample = more.get("sample").and_then(|at| {
        let share = at.word()?.parse().ok().filter(|it| (0.0..=1.0).contains(it));
        if share.is_none() {
            at.fault("This must be a share from 0 to 1.", "Write `0.1` for every tenth call.");
        }
        share
    });
    let keep = more.get("keep").and_then(|at| {
        let size = text::size(&at.word()?).filter(|it| (1 << 20..=1 << 40).contains(it));
        let size = size.and_then(|it| usize::try_from(it).ok());
        if size.is_none() {
            at.fault("This is no size, or less than 1MiB.", "Write `64MiB`.");
        }
        size
    });
    Some(RecordingPlan {
        payloads,
        sample: sample.unwrap_or(usual.sample),
        keep: keep.unwrap_or(usual.keep),
        file: more.get("file").and_then(|it| it.path()),
        redact: more.texts("redact"),
    })
}
