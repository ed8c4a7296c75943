//! Where messages currently go, and the headers they carry.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use trunkline_auth::credentials::Credentials;
use trunkline_wire::header::{PROTOCOL_VERSION, SESSION_ID};
use trunkline_wire::revision::{Era, Revision};

use super::connection::write_head;
use super::request::Header;
use super::target::{Address, Origin};

/// A route to the server. Immutable: a new session is a new route.
#[derive(Debug)]
pub(super) struct Route {
    /// Where messages are posted.
    pub(super) address: Arc<Address>,
    /// How answers arrive.
    pub(super) answer_path: AnswerPath,
    /// The negotiated revision, once known.
    pub(super) revision: Option<Revision>,
    pub(super) session: Option<Session>,
    home: Arc<Home>,
    /// The headers of a POST to `address`.
    headers: HeaderMap,
    /// The head of one, up to the length of its body.
    head: Bytes,
    /// The same with the headers that were repeated last.
    last: Mutex<Option<(Arc<[Header]>, Bytes)>>,
}

/// How answers arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerPath {
    /// With the POST, as Streamable HTTP has it.
    Response,
    /// On the one stream of HTTP+SSE.
    Stream,
}

/// A session id, and the origin that issued it.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: HeaderValue,
    pub(super) origin: Arc<Origin>,
}

/// The configured URL, and the credentials for it.
struct Home {
    address: Arc<Address>,
    given: HeaderMap,
    credentials: Option<Arc<dyn Credentials>>,
}

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

impl Route {
    /// The route before the handshake.
    pub(super) fn new(
        address: Address,
        given: HeaderMap,
        credentials: Option<Arc<dyn Credentials>>,
    ) -> Self {
        let address = Arc::new(address);
        let home = Arc::new(Home { address: Arc::clone(&address), given, credentials });
        Self::build(home, address, AnswerPath::Response, None, None)
    }

    /// The configured URL.
    pub(super) fn home(&self) -> &Arc<Address> {
        &self.home.address
    }

    /// The credentials for `to`: only for the configured origin.
    pub(super) fn credentials(&self, to: &Origin) -> Option<&Arc<dyn Credentials>> {
        self.home.credentials.as_ref().filter(|_| *to == *self.home.address.origin)
    }

    /// The same route without a session.
    pub(super) fn without_session(&self) -> Self {
        Self::build(Arc::clone(&self.home), Arc::clone(&self.address), self.answer_path, None, None)
    }

    /// The same route in a session.
    pub(super) fn with_session(&self, session: Option<Session>) -> Self {
        let (home, address) = (Arc::clone(&self.home), Arc::clone(&self.address));
        Self::build(home, address, self.answer_path, self.revision, session)
    }

    /// The same route with the negotiated revision.
    pub(super) fn speaking(&self, revision: Revision) -> Self {
        let (home, address) = (Arc::clone(&self.home), Arc::clone(&self.address));
        Self::build(home, address, self.answer_path, Some(revision), self.session.clone())
    }

    /// The route to the endpoint that an HTTP+SSE stream named.
    pub(super) fn with_endpoint(&self, endpoint: Address) -> Self {
        Self::build(Arc::clone(&self.home), Arc::new(endpoint), AnswerPath::Stream, None, None)
    }

    pub(super) fn era(&self) -> Option<Era> {
        self.revision.map(Revision::era)
    }

    /// The head of a POST to `to` with these headers, up to the length of its body.
    pub(super) fn post_head(&self, to: &Address, more: &Arc<[Header]>) -> Bytes {
        if !std::ptr::eq(to, &*self.address) {
            return write_head(&Method::POST, &to.path, &self.post_headers(&to.origin, more));
        }
        if more.is_empty() {
            return self.head.clone();
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, head) = match &mut *last {
            Some(last) if Arc::ptr_eq(&last.0, more) => last,
            last => {
                let headers = self.post_headers(&to.origin, more);
                last.insert((Arc::clone(more), write_head(&Method::POST, &to.path, &headers)))
            }
        };
        head.clone()
    }

    /// The headers of a POST to `to`, and `more`. Another origin than the configured one sees none of the
    /// configured headers, and only the session it issued itself.
    pub(super) fn post_headers(&self, to: &Arc<Origin>, more: &[Header]) -> HeaderMap {
        match Arc::ptr_eq(to, &self.address.origin) {
            true => with(self.headers.clone(), more),
            false => with(self.build_headers(to), more),
        }
    }

    /// The headers of a GET or DELETE to `to`, and `more`.
    pub(super) fn bare_headers(&self, to: &Arc<Origin>, more: &[Header]) -> HeaderMap {
        let mut headers = self.post_headers(to, &[]);
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        with(headers, more)
    }

    fn build(
        home: Arc<Home>,
        address: Arc<Address>,
        answer_path: AnswerPath,
        revision: Option<Revision>,
        session: Option<Session>,
    ) -> Self {
        let (headers, head, last) = (HeaderMap::new(), Bytes::new(), Mutex::default());
        let mut route = Self { address, answer_path, revision, session, home, headers, head, last };
        route.headers = route.build_headers(&route.address.origin);
        route.head = write_head(&Method::POST, &route.address.path, &route.headers);
        route
    }

    fn build_headers(&self, to: &Origin) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(16);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if *to == *self.home.address.origin {
            for (name, value) in &self.home.given {
                headers.insert(name, value.clone());
            }
        }
        headers.insert(HOST, to.name.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(revision) = self.revision {
            headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
        }
        if let Some(session) = self.session.as_ref().filter(|it| *it.origin == *to) {
            headers.insert(SESSION, session.id.clone());
        }
        headers
    }
}

fn with(mut headers: HeaderMap, more: &[Header]) -> HeaderMap {
    for (name, value) in more {
        headers.insert(name, value.clone());
    }
    headers
}

pub(super) const VERSION: HeaderName = HeaderName::from_static(PROTOCOL_VERSION);
pub(super) const SESSION: HeaderName = HeaderName::from_static(SESSION_ID);
const AGENT: &str = concat!("trunkline/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_sessions_stay_with_their_origin() {
        let address = Address::parse("http://a:1/mcp").unwrap();
        let mut given = HeaderMap::new();
        given.insert("authorization", HeaderValue::from_static("secret"));
        let other = Address::parse("http://b:1/mcp").unwrap().origin;
        let session = |origin: &Arc<Origin>| {
            Some(Session { id: HeaderValue::from_static("s"), origin: Arc::clone(origin) })
        };
        let none = [];
        let route = Route::new(address.clone(), given, None);
        let ours = route.with_session(session(&address.origin)).speaking(Revision::V2025_11_25);
        let at_home = ours.post_headers(&address.origin, &none);
        assert_eq!(at_home["authorization"], "secret");
        assert_eq!(at_home["mcp-session-id"], "s");
        assert_eq!(at_home["mcp-protocol-version"], "2025-11-25");
        assert_eq!(at_home["host"], "a:1");
        let abroad = ours.post_headers(&other, &none);
        assert!(!abroad.contains_key("authorization") && !abroad.contains_key("mcp-session-id"));
        assert_eq!(abroad["host"], "b:1");
        let theirs = route.with_session(session(&other));
        assert!(!theirs.post_headers(&address.origin, &none).contains_key("mcp-session-id"));
        assert_eq!(theirs.post_headers(&other, &none)["mcp-session-id"], "s");
        assert!(
            !ours
                .without_session()
                .post_headers(&address.origin, &none)
                .contains_key("mcp-session-id")
        );
    }

    #[test]
    fn headers_beyond_those_of_the_route_are_those_of_their_request() {
        let address = Address::parse("http://a:1/mcp").unwrap();
        let other = Address::parse("http://b:1/mcp").unwrap().origin;
        let route = Route::new(address.clone(), HeaderMap::new(), None);
        let named = |name: &'static str| -> Arc<[Header]> {
            Arc::new([(HeaderName::from_static("mcp-name"), HeaderValue::from_static(name))])
        };
        let (one, two) = (named("one"), named("two"));
        for (more, expected) in [(&one, "one"), (&one, "one"), (&two, "two"), (&one, "one")] {
            assert_eq!(route.post_headers(&address.origin, more)["mcp-name"], expected);
            assert_eq!(route.post_headers(&other, more)["mcp-name"], expected);
            assert_eq!(route.bare_headers(&address.origin, more)["mcp-name"], expected);
            assert!(!route.post_headers(&address.origin, &[]).contains_key("mcp-name"));
            let head = |to: &Address, more: &Arc<[Header]>| {
                String::from_utf8(route.post_head(to, more).to_vec()).expect("it is a head")
            };
            let elsewhere = Address { path: "/other".parse().unwrap(), ..address.clone() };
            for (to, path) in [(&*route.address, "/mcp"), (&elsewhere, "/other")] {
                let text = head(to, more);
                assert!(text.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{text}");
                assert!(text.ends_with(&format!("\r\nmcp-name: {expected}\r\n")), "{text}");
                assert!(text.contains("\r\nhost: a:1\r\n"), "{text}");
                assert!(!head(to, &Arc::default()).contains("mcp-name"));
            }
        }
    }
}
