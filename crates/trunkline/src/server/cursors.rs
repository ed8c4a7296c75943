//! Seals the cursors of authenticated callers, so that they are useless to others.

use std::time::{Duration, SystemTime};

use trunkline_proto::Call;
use trunkline_wire::jsonrpc::ErrorObject;

use super::Inner;
use super::lists::unknown_cursor;
use crate::caller::principal;

impl Inner {
    /// The list's own cursor. `place` tells the lists of one method apart.
    pub(super) fn open_cursor(
        &self,
        cursor: Option<String>,
        call: &Call,
        place: &str,
    ) -> Result<Option<String>, ErrorObject> {
        let (Some(sealed), Some(bound)) = (&cursor, bound_to(call, place)) else {
            return Ok(cursor);
        };
        let plain =
            self.sealer.open(sealed, &bound, SystemTime::now()).map_err(|_| unknown_cursor())?;
        String::from_utf8(plain).map(Some).map_err(|_| unknown_cursor())
    }

    /// The sealed cursor for the caller.
    pub(super) fn seal_cursor(
        &self,
        cursor: Option<String>,
        call: &Call,
        place: &str,
    ) -> Option<String> {
        let cursor = cursor?;
        Some(match bound_to(call, place) {
            Some(bound) => {
                self.sealer.seal(cursor.as_bytes(), &bound, SystemTime::now() + CURSOR_LIFE)
            }
            None => cursor,
        })
    }
}

/// The associated data of the seal: this caller and this list. An anonymous caller has plain
/// cursors.
fn bound_to(call: &Call, place: &str) -> Option<Vec<u8>> {
    let id = principal(&call.attached)?.id();
    Some(["cursor", call.method.name, place, &id].join("\0").into_bytes())
}

/// How long a caller may take to page through a list.
const CURSOR_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
