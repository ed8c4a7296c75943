//! The cursors of callers who were let in by name → strings that are of use to nobody else.

use std::time::{Duration, SystemTime};

use trunkline_proto::Call;
use trunkline_wire::jsonrpc::ErrorObject;

use super::Inner;
use super::lists::foreign;
use crate::caller::principal;

impl Inner {
    /// The cursor as the list gave it out. `place` tells lists of one method apart.
    pub(super) fn open_cursor(
        &self,
        cursor: Option<String>,
        call: &Call,
        place: &str,
    ) -> Result<Option<String>, ErrorObject> {
        let (Some(sealed), Some(bound)) = (&cursor, bound_to(call, place)) else {
            return Ok(cursor);
        };
        let plain = self.sealer.open(sealed, &bound, SystemTime::now()).map_err(|_| foreign())?;
        String::from_utf8(plain).map(Some).map_err(|_| foreign())
    }

    /// The cursor as its caller carries it.
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

/// What the cursor opens for: this caller and this list. A caller without a name has plain ones.
fn bound_to(call: &Call, place: &str) -> Option<Vec<u8>> {
    let id = principal(&call.attached)?.id();
    Some(["cursor", call.method.name, place, &id].join("\0").into_bytes())
}

/// How long a list may be read.
const CURSOR_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
