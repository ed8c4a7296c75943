//! Checks `recording`: what is kept of calls, and for how long.

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
        let size = size(&at.word()?).filter(|it| (1 << 20..=1 << 40).contains(it));
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

/// `64MiB`, `1GiB`, `500MB`, or a number of bytes.
fn size(text: &str) -> Option<usize> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let unit: usize = match text[end..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    text[..end].parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("64MiB", Some(64 << 20)),
            ("64 MiB", Some(64 << 20)),
            ("1GiB", Some(1 << 30)),
            ("5MB", Some(5_000_000)),
            ("123", Some(123)),
            ("MiB", None),
            ("64 cats", None),
            ("99999999999999999999GiB", None),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
    }
}
