//! A request's head → admitted, or a refusal, before a byte of the body is read.

use http::header::{ACCEPT, CONTENT_ENCODING};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, Version};

use super::Refusal;
use super::fields::Fields;

/// The door: the host names of this server, and the origins that may send requests (allow lists).
///
/// A web page from elsewhere can make a browser send requests here. It cannot forge its Origin, and
/// with DNS rebinding it cannot forge the Host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Default for Door {
    /// Allows loopback names only.
    fn default() -> Self {
        let hosts = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec();
        Self { hosts, origins: Vec::new() }
    }
}

impl Door {
    /// Allows requests for `host`: a name for every port, or a name with a port.
    pub fn allow_host(&mut self, host: &str) {
        self.hosts.push(host.to_ascii_lowercase());
    }

    /// Allows pages of `origin`, such as `https://app.example.com`.
    pub fn allow_origin(&mut self, origin: &str) {
        self.origins.push(origin.trim_end_matches('/').to_ascii_lowercase());
    }

    /// Whether `origin` is on the allow list.
    pub fn knows_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|it| it.eq_ignore_ascii_case(origin))
    }

    /// Checks the Host and the Origin of a request.
    pub fn check(&self, uri: &Uri, fields: &Fields<'_>) -> Result<(), Refusal> {
        let host = self.check_host(uri, fields)?;
        let is_websocket = |it: &HeaderValue| it.as_bytes().eq_ignore_ascii_case(b"websocket");
        if fields.upgrade.first().is_some_and(is_websocket) {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "There are no WebSockets here."));
        }
        let origin = fields.origin.only();
        if let Ok(None) = origin {
            return Ok(());
        }
        let forbidden = |hint: &str| {
            let message =
                "This origin may not talk to this server; its owner can allow it by name.";
            Refusal::new(StatusCode::FORBIDDEN, format!("{message}{hint}"))
        };
        let origin = origin.ok().flatten().and_then(|it| it.to_str().ok());
        let origin = origin.ok_or_else(|| forbidden(""))?;
        let own = ["http://", "https://"].iter().any(|scheme| {
            origin.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme))
                && origin.as_bytes()[scheme.len()..].eq_ignore_ascii_case(host)
        });
        match own || self.knows_origin(origin) {
            true => Ok(()),
            false => Err(forbidden(&how_to_allow(origin))),
        }
    }

    /// The one host that the request names, if it is allowed.
    fn check_host<'a>(&self, uri: &'a Uri, fields: &Fields<'a>) -> Result<&'a [u8], Refusal> {
        let header = only_host(fields)?;
        let said = header.map(HeaderValue::as_bytes);
        // HTTP/2 and requests in absolute form name the host in the target.
        let target = uri.authority().map(|it| it.as_str().as_bytes());
        let is_ours = |it: Option<&[u8]>| it.is_none_or(|it| self.is_ours(it));
        match target.or(said) {
            Some(host) if is_ours(target) && is_ours(said) => return Ok(host),
            Some(_) => {}
            None => return Err(no_host()),
        }
        if header.is_some_and(|it| it.to_str().is_err()) {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "This is no Host."));
        }
        let message = "This server does not go by that name; its owner can allow it by name.";
        Err(Refusal::new(StatusCode::FORBIDDEN, message))
    }

    fn is_ours(&self, host: &[u8]) -> bool {
        self.hosts.iter().map(String::as_bytes).any(|it| {
            let named = host.split_at_checked(it.len());
            named.is_some_and(|(name, rest)| {
                (it == name || it.eq_ignore_ascii_case(name)) && is_any_port(rest)
            })
        })
    }
}

/// Whether a request names one host, as those of HTTP/1.1 must (RFC 9112 §3.2).
pub fn check_one_host(version: Version, fields: &Fields<'_>) -> Result<(), Refusal> {
    match only_host(fields)? {
        None if version == Version::HTTP_11 => Err(no_host()),
        _ => Ok(()),
    }
}

fn only_host<'a>(fields: &Fields<'a>) -> Result<Option<&'a HeaderValue>, Refusal> {
    let message = "There is more than one Host.";
    fields.host.only().map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, message))
}

fn no_host() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "The request names no Host.")
}

/// Whether a body is sent plain or chunked. Any other Transfer-Encoding makes its length ambiguous (RFC
/// 9112 §6.1).
pub fn check_coding(fields: &Fields<'_>) -> Result<(), Refusal> {
    match fields.transfer_encoding.only_bytes() {
        Ok(None) => return Ok(()),
        Ok(Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => return Ok(()),
        _ => {}
    }
    let message = "Send the body as it is or in chunks, with no other Transfer-Encoding.";
    Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, message))
}

/// Whether a POST has a readable media type and an acceptable length.
pub fn check_body(fields: &Fields<'_>, limit: usize) -> Result<(), Refusal> {
    let is_plain = |it: &HeaderValue| it.as_bytes().eq_ignore_ascii_case(b"identity");
    if fields.content_encoding.first().is_some()
        && !fields.all.get_all(CONTENT_ENCODING).iter().all(is_plain)
    {
        let message = "Send the body as it is, without a Content-Encoding.";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    if !is_json(fields) {
        let message = "The Content-Type must be `application/json`.";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let length = fields.content_length.only().map_err(|_| {
        Refusal::new(StatusCode::BAD_REQUEST, "There is more than one Content-Length.")
    })?;
    let length = length.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|it| it > limit as u64) {
        return Err(too_long(limit));
    }
    Ok(())
}

/// A 413 for a body over the limit.
pub fn too_long(limit: usize) -> Refusal {
    let message = format!("A body may have at most {limit} bytes.");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// Whether the client accepts both JSON and event streams, as it must.
pub fn accepts_both(fields: &Fields<'_>) -> bool {
    // What nearly every client sends.
    let usual = |it: &HeaderValue| it.as_bytes() == b"application/json, text/event-stream";
    fields.accept.first().is_some_and(usual)
        || accepts(fields.all, "application", "json") && accepts(fields.all, "text", "event-stream")
}

/// Whether the client accepts event streams.
pub fn accepts_events(headers: &HeaderMap) -> bool {
    accepts(headers, "text", "event-stream")
}

fn is_json(fields: &Fields<'_>) -> bool {
    let Ok(Some(value)) = fields.content_type.only_bytes() else { return false };
    // What nearly every client sends.
    if value == b"application/json" {
        return true;
    }
    let Ok(value) = std::str::from_utf8(value) else { return false };
    let mut parts = value.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|it| it.eq_ignore_ascii_case("application/json"));
    let is_utf8 = |part: &str| match part.split_once('=') {
        Some((name, value)) if name.trim_end().eq_ignore_ascii_case("charset") => {
            value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    };
    is_json && parts.all(is_utf8)
}

fn accepts(headers: &HeaderMap, kind: &str, subkind: &str) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    values.flat_map(|it| it.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let Some((left, right)) = parts.next().and_then(|it| it.split_once('/')) else {
            return false;
        };
        let refused = parts.any(|it| {
            let zero = |q: &str| !q.is_empty() && q.bytes().all(|byte| matches!(byte, b'0' | b'.'));
            it.strip_prefix("q=").or(it.strip_prefix("Q=")).is_some_and(zero)
        });
        let fits = |wanted: &str, word: &str| word == "*" || word.eq_ignore_ascii_case(wanted);
        !refused && fits(kind, left) && fits(subkind, right)
    })
}

/// Whether nothing, or only a port, follows a name.
fn is_any_port(rest: &[u8]) -> bool {
    match rest {
        [] => true,
        [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// What the operator writes to allow an origin; empty for text that is no origin.
fn how_to_allow(origin: &str) -> String {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b".-:[]".contains(&it);
    let name = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    match name {
        Some(name) if (1..=MOST_SHOWN).contains(&name.len()) && name.bytes().all(is_plain) => {
            format!(
                " Write `allow_origin(\"{origin}\")`, or `origins` in the catalog of a gateway."
            )
        }
        _ => String::new(),
    }
}

/// The longest name that an error repeats.
const MOST_SHOWN: usize = 253;

#[cfg(test)]
mod tests;
