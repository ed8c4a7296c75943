//! The wall clock → the timestamps of tasks.

use std::time::{SystemTime, UNIX_EPOCH};

use trunkline_wire::text::rfc3339;

/// The current time in UTC, in the format of RFC 3339.
pub(super) fn stamp() -> String {
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
