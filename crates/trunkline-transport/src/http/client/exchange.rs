//! One request → the head of its response, following redirects within the server.

use std::sync::Arc;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Method};
use trunkline_auth::credentials::{Credentials, Denied, People, Refused, Target};
use trunkline_proto::CallError;
use trunkline_proto::client::HttpError;
use trunkline_proto::client::http::Head;

use super::connection::{RequestText, ResponseBody, write_head};
use super::head::ResponseHead;
use super::pool::Pool;
use super::request::Header;
use super::route::Route;
use super::target::{Address, Origin};
use crate::http::message_text::MessageText;

/// A response whose body is unread, and the origin that sent it.
pub(super) struct Exchange {
    pub(super) head: ResponseHead,
    pub(super) body: ResponseBody,
    pub(super) from: Arc<Address>,
}

/// A request to the server.
pub(super) struct OutgoingRequest<'a> {
    pub(super) method: Method,
    pub(super) address: &'a Arc<Address>,
    pub(super) body: &'a MessageText,
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
            let (head, body) = match route.credentials(&from.origin) {
                None => {
                    let request = request(route, outgoing, &from);
                    self.send(&from.origin, &request).await?
                }
                Some(credentials) => {
                    Box::pin(self.with_credentials(route, outgoing, &from, credentials)).await?
                }
            };
            let Some(next) = redirect(&outgoing.method, &head, &from)? else {
                return Ok(Exchange { head, body, from });
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
    ) -> Result<(ResponseHead, ResponseBody), CallError> {
        let url = address.to_string();
        let to = Target { method: outgoing.method.as_str(), url: &url };
        let denied = |it: Denied| CallError::Credentials(it.why);
        let mut times = 0;
        loop {
            let sent = credentials.headers(to).await.map_err(denied)?;
            let mut headers = match outgoing.method {
                Method::POST => route.post_headers(&address.origin, outgoing.headers),
                _ => route.bare_headers(&address.origin, outgoing.headers),
            };
            for (name, value) in &sent {
                let value = HeaderValue::from_str(value);
                let mut value = value.map_err(|_| unspeakable(name))?;
                value.set_sensitive(true);
                headers.insert(*name, value);
            }
            let head = write_head(&outgoing.method, &address.path, &headers);
            let request = RequestText::new(&outgoing.method, head, outgoing.body.clone());
            let (head, body) = self.send(&address.origin, &request).await?;
            if let Some(nonce) = head.get(&NONCE) {
                credentials.nonce(to, nonce);
            }
            let status = head.status;
            let challenges = head.get_all(&WWW_AUTHENTICATE).map(str::to_owned);
            let challenges: Vec<_> = challenges.collect();
            // A 403 without a challenge is not about credentials.
            if status != 401 && (status != 403 || challenges.is_empty()) {
                return Ok((head, body));
            }
            times += 1;
            if times > TRIES {
                let why = format!("The server refused the same call {TRIES} times.");
                return Err(CallError::Credentials(why));
            }
            let refusal = Refused { status, challenges: &challenges, sent: &sent, times };
            credentials.refused(to, refusal, outgoing.people).await.map_err(denied)?;
        }
    }
}

/// The parts of a response's head that matter.
pub(super) fn head(response: &ResponseHead) -> Head<'_> {
    let status = response.status;
    Head {
        status,
        content_type: response.get(&CONTENT_TYPE).unwrap_or_default(),
        content_encoding: response.get(&CONTENT_ENCODING).unwrap_or_default(),
        // Only a refusal challenges.
        challenge: (status >= 400).then(|| response.get(&WWW_AUTHENTICATE)).flatten(),
    }
}

fn request(route: &Route, outgoing: &OutgoingRequest<'_>, address: &Address) -> RequestText {
    let head = match outgoing.method {
        Method::POST => route.post_head(address, outgoing.headers),
        ref method => {
            let headers = route.bare_headers(&address.origin, outgoing.headers);
            write_head(method, &address.path, &headers)
        }
    };
    RequestText::new(&outgoing.method, head, outgoing.body.clone())
}

/// The target of the redirect, if the response is one.
fn redirect(
    method: &Method,
    response: &ResponseHead,
    from: &Address,
) -> Result<Option<Address>, CallError> {
    let status = response.status;
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let refuse = |why: String| CallError::Http(HttpError::new(status, why));
    let Some(location) = response.get(&LOCATION) else {
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

/// How many redirects are followed.
const HOPS: usize = 3;
/// How often one request may be refused before we stop offering credentials.
const TRIES: u32 = 8;
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

#[cfg(test)]
mod tests {
    use super::*;

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
