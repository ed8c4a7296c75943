//! A file of the console's page → the response: compressed, as it is, or that the browser has it already.

use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use trunkline_transport::http::HttpBody;

/// A file of the console's page.
#[derive(Clone, Copy, Debug)]
pub struct WebFile {
    /// Its media type.
    pub content_type: &'static str,
    /// Its content, as `Content-Encoding: gzip` has it.
    pub gzip: &'static [u8],
    /// That → the content as it is.
    pub unpack: fn(&[u8]) -> Vec<u8>,
    /// What its entity tags begin with, without quotes.
    pub tag: &'static str,
}

/// The file at a path: `/`, or one below `/web/`.
pub type WebFiles = fn(&str) -> Option<WebFile>;

pub(super) fn respond(head: &Parts, file: WebFile) -> Response<HttpBody> {
    let is_gzip = accepts_gzip(&head.headers);
    // Other bytes need another tag (RFC 9110 §8.8.3.3).
    let etag = format!("\"{}{}\"", file.tag, if is_gzip { "-gzip" } else { "" });
    let known = head.headers.get(header::IF_NONE_MATCH);
    let is_known = known.is_some_and(|it| it.as_bytes() == etag.as_bytes());
    let (status, bytes) = match (is_known, is_gzip) {
        (true, _) => (StatusCode::NOT_MODIFIED, Vec::new()),
        (false, true) => (StatusCode::OK, file.gzip.to_vec()),
        (false, false) => (StatusCode::OK, (file.unpack)(file.gzip)),
    };
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    if is_gzip && !is_known {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.extend(HeaderValue::try_from(etag).ok().map(|it| (header::ETAG, it)));
    response
}

/// Whether the client asks for gzip (RFC 9110 §12.5.3). Whoever asks for nothing may not know it.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
    let codings: Vec<(&str, bool)> = values.flat_map(|it| it.split(',')).map(coding).collect();
    let wanted = |name: &str| codings.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
    wanted("gzip").or_else(|| wanted("*")).is_some_and(|(_, is_wanted)| *is_wanted)
}

/// One coding of the field, and whether its weight lets it be used.
fn coding(text: &str) -> (&str, bool) {
    let (name, weight) = text.split_once(';').unwrap_or((text, "q=1"));
    let weight = weight.trim_start_matches([' ', '\t', 'q', 'Q']).strip_prefix('=');
    let weight = weight.and_then(|it| it.trim().parse::<f32>().ok());
    (name.trim(), weight.is_some_and(|it| it > 0.0))
}

const HEADERS: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("cache-control", "no-cache"),
    ("vary", "accept-encoding"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fields: &[&'static str], expected: bool) {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(field));
        }
        assert_eq!(accepts_gzip(&headers), expected, "{fields:?}");
    }

    #[test]
    fn gzip_is_for_those_who_ask_for_it() {
        check(&["gzip, deflate, br, zstd"], true);
        check(&["br", "GZip"], true);
        check(&["gzip;q=0.5"], true);
        check(&["identity; q=0.1, gzip ; Q=1.000"], true);
        check(&["*"], true);
        check(&["*;q=0, gzip"], true);
    }

    #[test]
    fn everybody_else_gets_the_file_as_it_is() {
        check(&[], false);
        check(&[""], false);
        check(&["identity"], false);
        check(&["br, deflate"], false);
        check(&["gzip;q=0"], false);
        check(&["gzip; q=0.000, *"], false);
        check(&["*;q=0"], false);
        check(&["gzip;q=much"], false);
        check(&["gzipped"], false);
    }
}
