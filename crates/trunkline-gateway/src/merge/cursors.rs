//! Where a page ended ⇄ bytes. Whoever hands them to a client seals them first.

use std::fmt;

use super::Kind;

/// Where the next page begins: after the item that is shown by this name. It stays good while that
/// item is there, whatever else comes and goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Of which list.
    pub kind: Kind,
    /// The shown name, URI or URI template of the last item.
    pub after: Box<str>,
}

/// The cursor is none of ours, or the item that it names is gone. A client begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCursor;

impl Cursor {
    /// To be sealed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind as u8];
        bytes.extend_from_slice(self.after.as_bytes());
        bytes
    }

    /// After it was unsealed.
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
