//! One request → the head of its response, following redirects within the server.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use trunkline_auth::credentials::{Credentials, Denied, People, Refused, Target};
use trunkline_proto::CallError;
use trunkline_proto::client::HttpError;
use trunkline_proto::client::http::Head;

use super::pool::{Lease, Once, Pool};
use super::request::Header;
use super::route::Route;
use super::target::{Address, Origin};
use crate::http::body::Text;

/// A response whose body is unread, and the origin that sent it.
pub(super) struct Exchange {
    pub(super) response: Parts,
    pub(super) body: UnreadBody,
    pub(super) from: Arc<Address>,
}

/// The body of a response, and the connection on which it comes.
pub(super) struct UnreadBody {
    incoming: Incoming,
    /// `None` once it is read.
    lease: Option<Lease>,
}

/// A request to the server.
pub(super) struct OutgoingRequest<'a> {
    pub(super) method: Method,
    pub(super) address: &'a Arc<Address>,
    pub(super) body: &'a Bytes,
    /// Headers beyond those of the route.
    pub(super) headers: &'a Arc<[Header]>,
    /// Reports that a person has to log in; `None` if no login may start.
    pub(super) people: Option<&'a People<'a>>,
}

impl Pool {
    /// Sends a request on a route.
    pub(super) async fn exchange(
        &self,
        route: &Route,
        outgoing: &OutgoingRequest<'_>,
    ) -> Result<Exchange, CallError> {
        let mut from = Arc::clone(outgoing.address);
        for _ in 0..=HOPS {
            let (response, lease) = match route.credentials(&from.origin) {
                None => self.send(&from.origin, request(route, outgoing, &from)).await?,
                Some(credentials) => {
                    Box::pin(self.with_credentials(route, outgoing, &from, credentials)).await?
                }
            };
            let Some(next) = redirect(&outgoing.method, &response, &from)? else {
                let (response, incoming) = response.into_parts();
                let body = UnreadBody { incoming, lease: Some(lease) };
                return Ok(Exchange { response, body, from });
            };
            from = Arc::new(next);
        }
        let why = format!("it redirects more than {HOPS} times.");
        Err(CallError::Http(HttpError::new(308, why)))
    }

    /// Sends a request with credentials, and again as long as they offer better ones.
    async fn with_credentials(
        &self,
        route: &Route,
        outgoing: &OutgoingRequest<'_>,
        address: &Address,
        credentials: &Arc<dyn Credentials>,
    ) -> Result<(Response<Incoming>, Lease), CallError> {
        let mut request = request(route, outgoing, address);
        let url = address.to_string();
        let to = Target { method: outgoing.method.as_str(), url: &url };
        let denied = |it: Denied| CallError::Credentials(it.why);
        let mut times = 0;
        loop {
            let sent = credentials.headers(to).await.map_err(denied)?;
            for (name, value) in &sent {
                let value = HeaderValue::from_str(value);
                let mut value = value.map_err(|_| unspeakable(name))?;
                value.set_sensitive(true);
                request.headers_mut().insert(*name, value);
            }
            let (response, lease) = self.send(&address.origin, request).await?;
            if let Some(nonce) = header(response.headers(), NONCE) {
                credentials.nonce(to, nonce);
            }
            let status = response.status().as_u16();
            let challenges: Vec<_> = response.headers().get_all(WWW_AUTHENTICATE).iter().collect();
            // A 403 without a challenge is not about credentials.
            if status != 401 && (status != 403 || challenges.is_empty()) {
                return Ok((response, lease));
            }
            times += 1;
            if times > TRIES {
                let why = format!("The server refused the same call {TRIES} times.");
                return Err(CallError::Credentials(why));
            }
            let challenges: Vec<_> = challenges
                .into_iter()
                .filter_map(|it| it.to_str().ok().map(str::to_owned))
                .collect();
            let refusal = Refused { status, challenges: &challenges, sent: &sent, times };
            credentials.refused(to, refusal, outgoing.people).await.map_err(denied)?;
            request = self::request(route, outgoing, address);
        }
    }
}

/// The parts of a response's head that matter.
pub(super) fn head(response: &Parts) -> Head<'_> {
    let text = |name| header(&response.headers, name);
    let status = response.status.as_u16();
    Head {
        status,
        content_type: text(CONTENT_TYPE).unwrap_or_default(),
        content_encoding: text(CONTENT_ENCODING).unwrap_or_default(),
        // Only a refusal challenges.
        challenge: (status >= 400).then(|| text(WWW_AUTHENTICATE)).flatten(),
    }
}

impl UnreadBody {
    /// The next chunk; `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            match poll_fn(|cx| Pin::new(&mut self.incoming).poll_frame(cx)).await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => return Err(CallError::Lost(format!("{error}."))),
            }
        }
    }

    /// All of it; `None` if it is longer than `limit`. The connection returns to the pool.
    pub(super) async fn text(
        &mut self,
        pool: &Pool,
        limit: usize,
    ) -> Result<Option<Text<Bytes>>, CallError> {
        // A body whose length was named needs no more room than that, and is over with its last byte.
        let most = self.incoming.size_hint().upper();
        let most = most.and_then(|it| usize::try_from(it).ok()).map_or(limit, |it| it.min(limit));
        let mut text = Text::Nothing;
        while !self.incoming.is_end_stream()
            && let Some(chunk) = self.chunk().await?
        {
            let Ok(size) = text.size_with(&chunk, limit, most) else { return Ok(None) };
            text = text.and(chunk, size);
        }
        self.give_back(pool);
        Ok(Some(text))
    }

    /// Returns the connection to the pool, after the end.
    pub(super) fn give_back(&mut self, pool: &Pool) {
        if let Some(lease) = self.lease.take() {
            pool.put(lease);
        }
    }
}

fn request(route: &Route, outgoing: &OutgoingRequest<'_>, address: &Address) -> Request<Once> {
    let mut request = Request::new(Once::new(outgoing.body.clone()));
    *request.headers_mut() = match outgoing.method {
        Method::POST => {
            let mut headers = route.post_headers(&address.origin, outgoing.headers);
            headers.insert(CONTENT_LENGTH, length(outgoing.body));
            headers
        }
        _ => route.bare_headers(&address.origin, outgoing.headers),
    };
    *request.method_mut() = outgoing.method.clone();
    *request.uri_mut() = address.path.clone();
    request
}

/// The length of a body as a header.
fn length(body: &Bytes) -> HeaderValue {
    let (mut digits, mut rest) = ([0; 20], body.len());
    let mut at = digits.len();
    while at == digits.len() || rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    HeaderValue::from_bytes(&digits[at..]).expect("digits can stand in a header")
}

/// The target of the redirect, if the response is one.
fn redirect(
    method: &Method,
    response: &Response<Incoming>,
    from: &Address,
) -> Result<Option<Address>, CallError> {
    let status = response.status().as_u16();
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let refuse = |why: String| CallError::Http(HttpError::new(status, why));
    let Some(location) = header(response.headers(), LOCATION) else {
        return Err(refuse("it redirects without saying where.".to_owned()));
    };
    destination(method, status, location, from).map(Some)
}

/// The target of `location`, if we may follow it.
fn destination(
    method: &Method,
    status: u16,
    location: &str,
    from: &Address,
) -> Result<Address, CallError> {
    let refuse = |why: String| CallError::Http(HttpError::new(status, why));
    let to = from.resolve(location).map_err(refuse)?;
    // The other statuses turn a POST into a GET and lose the message (RFC 9110 §15.4).
    if !matches!(status, 307 | 308) && method == Method::POST {
        let why = format!("it has moved to `{}`; use that address if you trust it.", to.origin);
        return Err(refuse(why));
    }
    if from.origin.is_tls && !to.origin.is_tls {
        return Err(refuse("it redirects from `https` to `http`.".to_owned()));
    }
    // A message may contain secrets, so it never goes to another origin.
    if *to.origin != *from.origin && !is_upgrade(&from.origin, &to.origin) {
        let to = &to.origin;
        let why =
            format!("it redirects to `{to}`, another server; use that address if you trust it.");
        return Err(refuse(why));
    }
    Ok(to)
}

/// Whether this is the same server over TLS, at the default ports. Another port of the host may belong
/// to another service.
fn is_upgrade(from: &Origin, to: &Origin) -> bool {
    from.host == to.host && (from.is_tls, from.port, to.is_tls, to.port) == (false, 80, true, 443)
}

fn unspeakable(name: &str) -> CallError {
    let why = format!("The value of `{name}` that would let the call in cannot stand in a header.");
    CallError::Credentials(why)
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// How many redirects are followed.
const HOPS: usize = 3;
/// How often one request may be refused before we stop offering credentials.
const TRIES: u32 = 8;
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_body_is_written_in_digits() {
        for len in [0, 7, 10, 99, 100, 4096, 1_000_000] {
            assert_eq!(length(&vec![b'x'; len].into()), &*len.to_string());
        }
    }

    #[test]
    fn a_redirect_stays_with_the_server_or_leads_to_it_by_tls() {
        for (from, location, expected) in [
            ("http://a.example/mcp", "/other", Ok("http://a.example/other")),
            ("https://a.example/mcp", "https://a.example:443/b", Ok("https://a.example/b")),
            ("http://a.example/mcp", "https://a.example/mcp", Ok("https://a.example/mcp")),
            ("http://A.example:80/mcp", "https://a.example/mcp", Ok("https://a.example/mcp")),
            ("http://a.example/mcp", "https://a.example:8443/mcp", Err("another server")),
            ("http://a.example:8080/mcp", "https://a.example/mcp", Err("another server")),
            ("http://a.example/mcp", "http://a.example:8080/mcp", Err("another server")),
            ("https://a.example/mcp", "https://b.example/mcp", Err("another server")),
            ("https://a.example/mcp", "https://www.a.example/mcp", Err("another server")),
            ("https://a.example/mcp", "//b.example/mcp", Err("another server")),
            ("https://a.example/mcp", "http://a.example/mcp", Err("from `https` to `http`")),
        ] {
            let from = Address::parse(from).expect("it is a URL");
            let to = destination(&Method::POST, 307, location, &from);
            match (&to, expected) {
                (Ok(to), Ok(expected)) => assert_eq!(to.to_string(), expected),
                (Err(why), Err(expected)) => {
                    assert!(why.to_string().contains(expected), "{location}: {why}");
                }
                _ => panic!("{location}: {to:?}"),
            }
        }
    }
}
