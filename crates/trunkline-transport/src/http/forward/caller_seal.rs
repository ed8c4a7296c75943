//! The caller of a request ⇄ the sealed header of a forwarded one.
//!
//! The header is good for one request: it names the replica that it is for, the method, the path and the
//! session, and a number that the receiver accepts once. It has no expiry, because the clocks of two machines
//! may differ: a replica that restarts has another id, for which no older header is good.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{HeaderName, HeaderValue};
use http::request;
use trunkline_auth::Principal;
use trunkline_auth::seal::Sealer;
use trunkline_wire::header::SESSION_ID;

/// Seals callers for other replicas.
#[derive(Debug)]
pub(super) struct CallerSeal {
    sealer: Sealer,
    sent: AtomicU64,
}

/// The header of a forwarded request, opened.
#[derive(Debug, PartialEq)]
pub(super) struct SealedCaller {
    /// The replica that sent it.
    pub(super) from: String,
    /// The number that it gave it.
    pub(super) number: u64,
    /// The caller, if it has a name.
    pub(super) principal: Option<Principal>,
}

impl CallerSeal {
    pub(super) fn new(keys: &[[u8; 32]]) -> Self {
        Self { sealer: Sealer::new(keys).for_many(), sent: AtomicU64::new(0) }
    }

    /// The header for a request that the replica `from` sends to the replica `to`.
    pub(super) fn seal(&self, from: &str, to: &str, head: &request::Parts) -> HeaderValue {
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let mut plain = number.to_be_bytes().to_vec();
        let length = u16::try_from(from.len()).expect("the id of a replica is short");
        plain.extend_from_slice(&length.to_be_bytes());
        plain.extend_from_slice(from.as_bytes());
        if let Some(principal) = head.extensions.get::<Principal>() {
            plain.extend_from_slice(&principal.to_bytes());
        }
        let sealed = self.sealer.seal(&plain, &context(to, head), NO_TIME + VALID);
        HeaderValue::try_from(sealed).expect("it is base64")
    }

    /// Opens the header of a request to the replica `me`.
    pub(super) fn open(&self, me: &str, head: &request::Parts) -> Option<SealedCaller> {
        let sealed = head.headers.get(&FORWARDED)?.to_str().ok()?;
        let plain = self.sealer.open(sealed, &context(me, head), NO_TIME).ok()?;
        let (number, rest) = plain.split_at_checked(8)?;
        let (length, rest) = rest.split_at_checked(2)?;
        let length = u16::from_be_bytes(length.try_into().ok()?);
        let (from, principal) = rest.split_at_checked(length.into())?;
        let principal = match principal {
            [] => None,
            bytes => Some(Principal::from_bytes(bytes)?),
        };
        let number = u64::from_be_bytes(number.try_into().ok()?);
        Some(SealedCaller { from: String::from_utf8(from.to_vec()).ok()?, number, principal })
    }
}

/// What a header is bound to.
fn context(to: &str, head: &request::Parts) -> Vec<u8> {
    let path = head.uri.path_and_query().map_or("/", |it| it.as_str());
    let mut context = format!("trunkline forward\0{to}\0{}\0{path}\0", head.method).into_bytes();
    let session = head.headers.get(SESSION_ID).map(HeaderValue::as_bytes);
    context.extend_from_slice(session.unwrap_or_default());
    context
}

/// The header that says who the caller of a forwarded request is.
pub(super) const FORWARDED: HeaderName = HeaderName::from_static(FORWARDED_NAME);
pub(super) const FORWARDED_NAME: &str = "trunkline-forwarded";
/// The time at which all headers are sealed and opened.
const NO_TIME: SystemTime = UNIX_EPOCH;
const VALID: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(path: &str, session: &str, caller: Option<Principal>) -> request::Parts {
        let mut request = Request::post(path).header(SESSION_ID, session).body(()).unwrap();
        request.extensions_mut().extend(
            caller
                .map(|it| {
                    let mut extensions = http::Extensions::new();
                    extensions.insert(it);
                    extensions
                })
                .unwrap_or_default(),
        );
        request.into_parts().0
    }

    #[test]
    fn a_header_opens_at_its_replica_for_its_request_only() {
        let seal = CallerSeal::new(&[[7; 32]]);
        let alice = Principal::new("alice").scope("read");
        let mut sent = head("/mcp?a", "s1", Some(alice.clone()));
        let header = seal.seal("r1", "r2", &sent);
        sent.headers.insert(FORWARDED, header.clone());
        let opened = seal.open("r2", &sent).unwrap();
        assert_eq!(
            opened,
            SealedCaller { from: "r1".to_owned(), number: 1, principal: Some(alice) }
        );
        assert_eq!(seal.open("r3", &sent), None, "another replica");
        for (path, session) in [("/mcp", "s1"), ("/mcp?a", "s2"), ("/mcp/x?a", "s1")] {
            let mut other = head(path, session, None);
            other.headers.insert(FORWARDED, header.clone());
            assert_eq!(seal.open("r2", &other), None, "{path} {session}");
        }
        assert_eq!(CallerSeal::new(&[[8; 32]]).open("r2", &sent), None, "another key");
        assert_eq!(seal.open("r2", &head("/mcp?a", "s1", None)), None, "no header");
    }

    #[test]
    fn a_caller_without_a_name_travels_too_and_numbers_grow() {
        let seal = CallerSeal::new(&[[7; 32], [6; 32]]);
        for number in 1..=3 {
            let mut sent = head("/mcp", "s1", None);
            sent.headers.insert(FORWARDED, seal.seal("r1", "r2", &sent));
            let opened = seal.open("r2", &sent).unwrap();
            assert_eq!((opened.principal, opened.number), (None, number));
        }
    }
}
