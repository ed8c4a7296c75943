//! Cursors: where a page ended, as bytes. They are sealed before a client gets them.

use std::fmt;

use super::Kind;

/// The next page begins after the item with this shown name. The cursor stays valid as long as that item
/// exists, whatever else changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The list.
    pub kind: Kind,
    /// The shown name, URI or URI template of the last item.
    pub after: Box<str>,
}

/// The cursor is invalid, or its item is gone. The client lists again from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCursor;

impl Cursor {
    /// Encodes the cursor, to be sealed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind as u8];
        bytes.extend_from_slice(self.after.as_bytes());
        bytes
    }

    /// Decodes an unsealed cursor.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadCursor> {
        let (kind, after) = bytes.split_first().ok_or(BadCursor)?;
        let kind = *Kind::ALL.get(usize::from(*kind)).ok_or(BadCursor)?;
        let after = std::str::from_utf8(after).map_err(|_| BadCursor)?.into();
        Ok(Self { kind, after })
    }
}

impl fmt::Display for BadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The cursor is not valid, or no longer; list again without one.")
    }
}

impl std::error::Error for BadCursor {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_go_both_ways_and_anything_else_is_refused() {
        for kind in Kind::ALL {
            let cursor = Cursor { kind, after: "git.stàtus".into() };
            assert_eq!(Cursor::from_bytes(&cursor.to_bytes()), Ok(cursor));
        }
        for bad in [&b""[..], b"\x04a", b"\x00\xff"] {
            assert_eq!(Cursor::from_bytes(bad), Err(BadCursor), "{bad:?}");
        }
    }
}
