//! Session ids: sealed texts that name the replica which opened the session, and a nonce.

use trunkline_auth::seal::Sealer;

use crate::clock::{LONG, wall};

/// What a session id says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionId {
    /// The replica that opened the session. It may own it still.
    pub(crate) opened_by: String,
    /// The name of its record.
    pub(crate) nonce: String,
}

/// A new session of `replica`.
pub(crate) fn issue(sealer: &Sealer, replica: &str) -> String {
    let plain = format!("{replica}/{}", sealer.random_name());
    sealer.seal(plain.as_bytes(), CONTEXT, wall() + LONG)
}

/// Opens an id; none if no replica with these keys issued it.
pub(crate) fn open(sealer: &Sealer, id: &str) -> Option<SessionId> {
    let plain = String::from_utf8(sealer.open(id, CONTEXT, wall()).ok()?).ok()?;
    let (opened_by, nonce) = plain.split_once('/')?;
    Some(SessionId { opened_by: opened_by.to_owned(), nonce: nonce.to_owned() })
}

const CONTEXT: &[u8] = b"trunkline session";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_visible_and_opens_with_the_same_keys_alone() {
        let (ours, others) = (Sealer::new(&[[1; 32]]), Sealer::new(&[[2; 32]]));
        let id = issue(&ours, &ours.random_name());
        assert!(id.len() < 300 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        assert!(open(&ours, &id).is_some());
        assert_eq!(open(&others, &id), None);
        assert_eq!(open(&ours, "anything"), None);
        assert_ne!(open(&ours, &id), open(&ours, &issue(&ours, "a")));
    }
}
