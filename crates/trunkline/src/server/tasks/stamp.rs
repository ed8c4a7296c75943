//! The wall clock → the texts that tasks carry.

use std::time::{SystemTime, UNIX_EPOCH};

use trunkline_wire::text::rfc3339;

/// Now, as RFC 3339 writes it, in UTC.
pub(super) fn stamp() -> String {
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
