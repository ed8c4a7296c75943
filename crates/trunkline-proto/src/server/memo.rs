//! Envelopes that were read before: clients repeat theirs, all but the progress token, and a text is
//! compared many times faster than it is read.

use std::ops::Range;
use std::sync::Arc;

use trunkline_wire::era::stateless::Envelope;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Object};
use trunkline_wire::model::{LogLevel, meta};
use trunkline_wire::revision::{Era, Revision};

use super::{Config, unsupported_revision};
use crate::Peer;

/// The last envelope and whom it described.
#[derive(Clone, Debug, Default)]
pub struct Memo(Option<Read>);

#[derive(Clone, Debug)]
struct Read {
    text: Json,
    known: Arc<Known>,
    /// Where the progress token stands in the text, if there is one.
    token: Option<Range<usize>>,
}

/// What one envelope said, but for its progress token.
#[derive(Debug, PartialEq)]
pub struct Known {
    pub(crate) revision: String,
    pub(crate) peer: Arc<Peer>,
    pub(crate) log_level: Option<LogLevel>,
}

/// What a request of 2026-07-28 says of itself in its envelope, in a revision that the server speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct StatelessRequest {
    pub(crate) revision: Revision,
    pub(crate) known: Arc<Known>,
    pub(crate) token: Option<Json>,
}

impl StatelessRequest {
    /// Refuses a revision that the server does not speak without a session.
    pub(crate) fn new(
        known: Arc<Known>,
        token: Option<Json>,
        config: &Config,
    ) -> Result<Self, ErrorObject> {
        let revision = Revision::parse(&known.revision)
            .filter(|it| it.era() == Era::Stateless && config.revisions.contains(*it));
        match revision {
            Some(revision) => Ok(Self { revision, known, token }),
            None => Err(unsupported_revision(config, Some(known.revision.clone()))),
        }
    }

    /// The revision that the request speaks.
    pub fn revision(&self) -> Revision {
        self.revision
    }
}

impl Memo {
    /// Reads an envelope, or remembers having read the same one last time.
    pub(crate) fn know(
        &mut self,
        meta: Option<&Json>,
    ) -> Result<(Arc<Known>, Option<Json>), ErrorObject> {
        if let (Some(meta), Some(read)) = (meta, &self.0)
            && let Some(token) = read.again(meta.get())
        {
            let token = token.and_then(|it| Json::parse(it).ok());
            return Ok((Arc::clone(&read.known), token));
        }
        let envelope = Envelope::read(meta)?;
        let token = envelope.progress_token.map(|it| it.to_json());
        let peer =
            Peer { info: envelope.client_info, client: envelope.capabilities, ..Peer::default() };
        let known = Arc::new(Known {
            revision: envelope.protocol_version,
            peer: Arc::new(peer),
            log_level: envelope.log_level,
        });
        // A client that says much about itself is read each time: what it says is not kept.
        self.0 = meta.filter(|it| it.get().len() <= LONGEST).and_then(|meta| {
            let place = match &token {
                None => None,
                Some(token) => Some(place_of(token, meta.get())?),
            };
            Some(Read { text: meta.clone(), known: Arc::clone(&known), token: place })
        });
        Ok((known, token))
    }

    /// Whether a `_meta` has what only the envelope of the new era has, which makes its request a
    /// stateless one: in order or not, it is never taken for a request of a session.
    pub(crate) fn is_claim(&self, meta: &Json) -> bool {
        let names = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES];
        // The quick look spares nearly every request of the other era the closer one. A name may be
        // spelled with escapes.
        let may_hold = |name: &&str| meta.get().contains(*name) || meta.get().contains('\\');
        self.0.as_ref().is_some_and(|read| read.again(meta.get()).is_some())
            || names.iter().any(may_hold)
                && Object::parse(meta.get())
                    .map_or(true, |it| names.iter().any(|name| it.get(name).is_some()))
    }
}

impl Read {
    /// If `text` is the one that was read, but perhaps for the token: its token.
    fn again<'a>(&self, text: &'a str) -> Option<Option<&'a str>> {
        let known = self.text.get();
        let Some(place) = &self.token else { return (text == known).then_some(None) };
        let rest = text.strip_prefix(&known[..place.start])?;
        let token = rest.strip_suffix(&known[place.end..])?;
        (token.len() <= Id::LONGEST && is_plain(token)).then_some(Some(token))
    }
}

/// Whether a text is an integer, or a string without anything to escape: it ends where it seems to.
fn is_plain(token: &str) -> bool {
    let inner = token.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    match inner {
        Some(inner) => inner.bytes().all(|it| it >= b' ' && it != b'"' && it != b'\\'),
        None => {
            let digits = token.strip_prefix('-').unwrap_or(token);
            let is_zero_first = digits.len() > 1 && digits.starts_with('0');
            !digits.is_empty()
                && digits.len() < 16
                && !is_zero_first
                && digits.bytes().all(|it| it.is_ascii_digit())
        }
    }
}

/// Where `token` stands in the text of a `_meta`, if that is beyond doubt.
fn place_of(token: &Json, meta: &str) -> Option<Range<usize>> {
    let name = format!("\"{}\"", meta::PROGRESS_TOKEN);
    let mut found = meta.match_indices(&name);
    let (at, _) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    let after = meta[at + name.len()..].trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
    let start = meta.len() - after.len();
    (after.starts_with(token.get()) && is_plain(token.get()))
        .then(|| start..start + token.get().len())
}

/// The longest envelope that is remembered, in bytes.
const LONGEST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(token: &str) -> Json {
        let text = format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",{token}"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
        );
        Json::parse(text).expect("JSON")
    }

    #[test]
    fn an_envelope_is_known_whatever_its_token() {
        let mut memo = Memo::default();
        let (first, token) = memo.know(Some(&meta(r#""progressToken":1,"#))).expect("in order");
        assert_eq!(token.as_ref().map(Json::get), Some("1"));
        for other in ["7", "-12", r#""seven""#, r#""""#] {
            let text = meta(&format!(r#""progressToken":{other},"#));
            assert!(memo.is_claim(&text));
            let (again, token) = memo.know(Some(&text)).expect("in order");
            assert!(Arc::ptr_eq(&first, &again), "{other} was read anew");
            assert_eq!(token.as_ref().map(Json::get), Some(other));
        }
    }

    #[test]
    fn a_claim_may_be_spelled_with_escapes() {
        let plain = meta("");
        let spelled =
            plain.get().replace("protocol/", r"protocol\/").replace("client", r"\u0063lient");
        let spelled = Json::parse(spelled).expect("JSON");
        let mut memo = Memo::default();
        assert!(memo.is_claim(&spelled));
        assert!(memo.know(Some(&spelled)).is_ok());
        assert!(!memo.is_claim(&Json::parse(r#"{"a\/b":1}"#).expect("JSON")));
    }

    #[test]
    fn a_long_envelope_is_not_kept() {
        let mut memo = Memo::default();
        let long = format!(r#""x":"{}","#, "y".repeat(LONGEST));
        memo.know(Some(&meta(&long))).expect("in order");
        assert!(memo.0.is_none());
    }

    #[test]
    fn what_only_looks_like_a_token_is_read() {
        let mut memo = Memo::default();
        let (first, _) = memo.know(Some(&meta(r#""progressToken":1,"#))).expect("in order");
        for other in [
            r#""progressToken":"a","x":"b","#,
            r#""progressToken":1,"x":2,"#,
            r#""progressToken":"\u0041","#,
        ] {
            let (again, _) = memo.know(Some(&meta(other))).expect("in order");
            assert!(!Arc::ptr_eq(&first, &again), "{other} was taken for known");
        }
        let (plain, token) = memo.know(Some(&meta(""))).expect("in order");
        assert_eq!(token, None);
        let (again, token) = memo.know(Some(&meta(""))).expect("in order");
        assert!(Arc::ptr_eq(&plain, &again));
        assert_eq!(token, None);
        let long = format!(r#""progressToken":"{}","#, "x".repeat(Id::LONGEST));
        for wrong in [r#""progressToken":1.5,"#, r#""progressToken":[],"#, &long] {
            let _ = memo.know(Some(&meta(r#""progressToken":1,"#)));
            assert!(memo.know(Some(&meta(wrong))).is_err(), "{wrong} is no token");
        }
    }
}
