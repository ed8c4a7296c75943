//! Sealed state: only what was sealed opens, for its context and until its time.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use trunkline_auth::seal::Sealer;

use crate::input::{Input, edited};

/// What is sealed, its context, then edits of the sealed text. The whole input is also tried as a
/// sealed text.
pub(crate) fn check(data: &[u8]) {
    let now = UNIX_EPOCH + Duration::from_secs(1_000);
    let text = String::from_utf8_lossy(data);
    assert!(SEALER.open(&text, b"", now).is_err(), "nobody sealed this");
    assert!(SEALER.open(&URL_SAFE_NO_PAD.encode(data), b"", now).is_err(), "nobody sealed this");

    let mut input = Input::new(data);
    let (plain, context, edits) = (input.part(), input.part(), input.rest());
    let sealed = SEALER.seal(plain, context, until(1_060));
    assert_eq!(SEALER.open(&sealed, context, now).as_deref(), Ok(plain));
    assert!(SEALER.open(&sealed, context, until(1_060)).is_err(), "it has expired");
    let other = [context, b"!"].concat();
    assert!(SEALER.open(&sealed, &other, now).is_err(), "it is for another context");
    assert!(OTHER.open(&sealed, context, now).is_err(), "the key is another");

    let forged = edited(&sealed, edits);
    if forged != sealed {
        assert!(SEALER.open(&forged, context, now).is_err(), "{forged} is not {sealed}");
    }
}

fn until(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

static SEALER: LazyLock<Sealer> = LazyLock::new(|| Sealer::new(&[[7; 32], [8; 32]]));
static OTHER: LazyLock<Sealer> = LazyLock::new(|| Sealer::new(&[[9; 32]]));
pub(crate) const WORDS: &[&str] = &["\0", "AQ", "\u{1}", "====", "-_", "+/"];
