//! A point in time → its text.

use std::time::Duration;

/// A time since 1970 as RFC 3339 writes it, in UTC with milliseconds.
///
/// ```
/// use std::time::Duration;
/// use trunkline_wire::text::rfc3339;
///
/// assert_eq!(rfc3339(Duration::from_millis(1_785_231_000_125)), "2026-07-28T09:30:00.125Z");
/// ```
pub fn rfc3339(since_1970: Duration) -> String {
    let (days, second) = (since_1970.as_secs() / 86_400, since_1970.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let millis = since_1970.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The date of a day counted from 1970-01-01. Years start in March, so that a leap day is the last day
/// of its year; 146,097 days are 400 years.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spelled_out() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (58 * 86_400, "1970-02-28T00:00:00.007Z"),
            (951_827_696, "2000-02-29T12:34:56.007Z"),
            (1_785_230_999, "2026-07-28T09:29:59.007Z"),
            (4_107_542_399, "2100-02-28T23:59:59.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            let since = Duration::from_secs(seconds) + Duration::from_millis(7);
            assert_eq!(rfc3339(since), expected);
        }
    }
}
