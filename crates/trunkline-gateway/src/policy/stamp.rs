//! Formats a time by RFC 3339, in UTC with milliseconds.

use std::time::{SystemTime, UNIX_EPOCH};

/// `2026-07-28T09:30:00.125Z`. Times before 1970 are shown as 1970.
pub fn rfc3339(time: SystemTime) -> String {
    trunkline_wire::text::rfc3339(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_before_1970_are_shown_as_1970() {
        let time = UNIX_EPOCH + Duration::from_millis(1_785_231_000_125);
        assert_eq!(rfc3339(time), "2026-07-28T09:30:00.125Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }
}
