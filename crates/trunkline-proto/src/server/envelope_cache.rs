//! A cache of the last envelope (`_meta` of 2026-07-28). Clients repeat theirs in every request except
//! for the progress token, and comparing the text is many times faster than parsing it.

use std::ops::Range;
use std::sync::Arc;

use trunkline_wire::era::stateless::Envelope;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Object};
use trunkline_wire::model::{LogLevel, meta};
use trunkline_wire::revision::{Era, Revision};

use super::{Config, unsupported_revision};
use crate::Peer;

/// The last envelope and the client it described, if there was one.
#[derive(Clone, Debug, Default)]
pub struct EnvelopeCache(Option<Box<Read>>);

#[derive(Clone, Debug)]
struct Read {
    text: Json,
    known: Arc<ClientEnvelope>,
    /// The range of the progress token in the text, if there is one.
    token: Option<Range<usize>>,
}

/// The contents of an envelope without its progress token.
#[derive(Debug, PartialEq)]
pub struct ClientEnvelope {
    pub(crate) revision: String,
    pub(crate) peer: Arc<Peer>,
    pub(crate) log_level: Option<LogLevel>,
}

/// The envelope of a 2026-07-28 request, in a revision that the server speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct StatelessRequest {
    pub(crate) revision: Revision,
    pub(crate) envelope: Arc<ClientEnvelope>,
    pub(crate) token: Option<Json>,
}

impl StatelessRequest {
    /// Fails for a revision that the server does not speak without a session.
    pub(crate) fn new(
        envelope: Arc<ClientEnvelope>,
        token: Option<Json>,
        config: &Config,
    ) -> Result<Self, ErrorObject> {
        let revision = Revision::parse(&envelope.revision)
            .filter(|it| it.era() == Era::Stateless && config.revisions.contains(*it));
        match revision {
            Some(revision) => Ok(Self { revision, envelope, token }),
            None => Err(unsupported_revision(config, Some(envelope.revision.clone()))),
        }
    }

    /// The revision that the request speaks.
    pub fn revision(&self) -> Revision {
        self.revision
    }
}

/// An envelope, and the progress token that came with it.
pub(crate) type ReadEnvelope = (Arc<ClientEnvelope>, Option<Json>);

impl EnvelopeCache {
    /// The cached envelope, if the text is the same.
    pub(crate) fn known(&self, meta: &Json) -> Option<ReadEnvelope> {
        let read = self.0.as_ref()?;
        let token = read.again(meta.get())?;
        Some((Arc::clone(&read.known), token.and_then(|it| Json::parse(it).ok())))
    }

    /// Reads an envelope, or returns the cached one if the text is the same.
    pub(crate) fn read(&mut self, meta: Option<&Json>) -> Result<ReadEnvelope, ErrorObject> {
        if let Some(known) = meta.and_then(|it| self.known(it)) {
            return Ok(known);
        }
        let envelope = Envelope::read(meta)?;
        let token = envelope.progress_token.map(|it| it.to_json());
        let peer =
            Peer { info: envelope.client_info, client: envelope.capabilities, ..Peer::default() };
        let known = Arc::new(ClientEnvelope {
            revision: envelope.protocol_version,
            peer: Arc::new(peer),
            log_level: envelope.log_level,
        });
        // A long envelope is not cached.
        self.0 = meta.filter(|it| it.get().len() <= LONGEST).and_then(|meta| {
            let place = match &token {
                None => None,
                Some(token) => Some(place_of(token, meta.get())?),
            };
            let (text, known) = (meta.clone(), Arc::clone(&known));
            Some(Box::new(Read { text, known, token: place }))
        });
        Ok((known, token))
    }

    /// Whether a `_meta` has a member that only the stateless envelope has. Its request is then
    /// stateless, well-formed or not, and never treated as one of a session.
    pub(crate) fn is_claim(&self, meta: &Json) -> bool {
        let names = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES];
        // A substring search spares nearly every stateful request the parse. Names may contain escapes.
        let may_hold = |name: &&str| meta.get().contains(*name) || meta.get().contains('\\');
        self.0.as_ref().is_some_and(|read| read.again(meta.get()).is_some())
            || names.iter().any(may_hold)
                && Object::parse(meta.get())
                    .map_or(true, |it| names.iter().any(|name| it.get(name).is_some()))
    }
}

impl Read {
    /// If `text` equals the cached envelope except for the token: its token.
    fn again<'a>(&self, text: &'a str) -> Option<Option<&'a str>> {
        let known = self.text.get();
        let Some(place) = &self.token else { return (text == known).then_some(None) };
        let rest = text.strip_prefix(&known[..place.start])?;
        let token = rest.strip_suffix(&known[place.end..])?;
        (token.len() <= Id::LONGEST && is_plain(token)).then_some(Some(token))
    }
}

/// Whether a text is an integer or a string without escapes, so that its end is unambiguous.
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

/// The range of `token` in the text of a `_meta`, if it is unambiguous.
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

/// The longest envelope that is cached, in bytes.
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
        let mut envelopes = EnvelopeCache::default();
        let (first, token) =
            envelopes.read(Some(&meta(r#""progressToken":1,"#))).expect("in order");
        assert_eq!(token.as_ref().map(Json::get), Some("1"));
        for other in ["7", "-12", r#""seven""#, r#""""#] {
            let text = meta(&format!(r#""progressToken":{other},"#));
            assert!(envelopes.is_claim(&text));
            let (again, token) = envelopes.read(Some(&text)).expect("in order");
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
        let mut envelopes = EnvelopeCache::default();
        assert!(envelopes.is_claim(&spelled));
        assert!(envelopes.read(Some(&spelled)).is_ok());
        assert!(!envelopes.is_claim(&Json::parse(r#"{"a\/b":1}"#).expect("JSON")));
    }

    #[test]
    fn a_long_envelope_is_not_kept() {
        let mut envelopes = EnvelopeCache::default();
        let long = format!(r#""x":"{}","#, "y".repeat(LONGEST));
        envelopes.read(Some(&meta(&long))).expect("in order");
        assert!(envelopes.0.is_none());
    }

    #[test]
    fn ambiguous_tokens_are_parsed() {
        let mut envelopes = EnvelopeCache::default();
        let (first, _) = envelopes.read(Some(&meta(r#""progressToken":1,"#))).expect("in order");
        for other in [
            r#""progressToken":"a","x":"b","#,
            r#""progressToken":1,"x":2,"#,
            r#""progressToken":"\u0041","#,
        ] {
            let (again, _) = envelopes.read(Some(&meta(other))).expect("in order");
            assert!(!Arc::ptr_eq(&first, &again), "{other} was taken for known");
        }
        let (plain, token) = envelopes.read(Some(&meta(""))).expect("in order");
        assert_eq!(token, None);
        let (again, token) = envelopes.read(Some(&meta(""))).expect("in order");
        assert!(Arc::ptr_eq(&plain, &again));
        assert_eq!(token, None);
        let long = format!(r#""progressToken":"{}","#, "x".repeat(Id::LONGEST));
        for wrong in [r#""progressToken":1.5,"#, r#""progressToken":[],"#, &long] {
            let _ = envelopes.read(Some(&meta(r#""progressToken":1,"#)));
            assert!(envelopes.read(Some(&meta(wrong))).is_err(), "{wrong} is no token");
        }
    }
}
