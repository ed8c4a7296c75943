//! A URL with headers → an address to connect to, and the scope of the secrets.

use std::fmt;
use std::sync::Arc;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use trunkline_auth::credentials::Credentials;
use trunkline_auth::setters;
use trunkline_auth::url::shown;

use super::verdicts::Verdicts;

/// A server reachable over HTTP.
#[derive(Clone)]
pub struct HttpTarget {
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) verdicts: Option<Verdicts>,
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    /// Root certificates as PEM.
    #[cfg(feature = "tls")]
    pub(super) roots: Vec<Vec<u8>>,
}

impl std::fmt::Debug for HttpTarget {
    /// Omits the values of headers, which may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpTarget")
            .field("url", &self.shown())
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

impl HttpTarget {
    /// The URL for display: without user, password or query.
    pub fn shown(&self) -> String {
        shown(&self.url)
    }

    /// A server at a URL, with `http` or `https`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            verdicts: Some(Verdicts::shared()),
            credentials: None,
            #[cfg(feature = "tls")]
            roots: Vec::new(),
        }
    }

    setters! {
        /// Adds a header to every request. It is never sent to another origin than the URL's.
        header(name: impl Into<String>, value: impl Into<String>) {
            headers.push((name.into(), value.into()))
        }

        /// Authenticates the requests. Never used for another origin than the URL's.
        credentials(credentials: Arc<dyn Credentials>) { credentials = Some(credentials) }

        /// Where to remember which servers speak only older revisions; with `None` every handshake starts
        /// with the probe.
        verdicts(verdicts: Option<Verdicts>) { verdicts = verdicts }
    }

    /// Also trusts certificates issued by these roots, one or more in PEM.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// The headers, checked.
    pub(super) fn header_map(&self) -> Result<HeaderMap, String> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let parsed: HeaderName =
                name.parse().map_err(|_| format!("`{name}` is no name of a header."))?;
            if OURS.contains(&parsed.as_str()) {
                return Err(format!("The header `{name}` is set by the protocol itself."));
            }
            // The value may be a secret, so it is not repeated.
            let mut value: HeaderValue = value
                .parse()
                .map_err(|_| format!("The value of `{name}` cannot stand in a header."))?;
            value.set_sensitive(true);
            map.append(parsed, value);
        }
        Ok(map)
    }
}

/// Headers reserved for the protocol or for HTTP framing.
const OURS: [&str; 14] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
    "upgrade",
];

/// A scheme, host and port.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) is_tls: bool,
    /// Lower case, without brackets.
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    /// The `Host` header.
    pub(crate) name: HeaderValue,
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        (self.is_tls, &self.host, self.port) == (other.is_tls, &other.host, other.port)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.name.to_str().unwrap_or(&self.host))
    }
}

/// Where a request goes.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) origin: Arc<Origin>,
    pub(crate) path: Uri,
}

impl Address {
    /// Reads an absolute URL.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{}` {why}", shown(url));
        let uri: Uri = url.trim().parse().map_err(|_| wrong("is no URL."))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("is no address that begins with `http://` or `https://`.")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("names no host."))?;
        if authority.as_str().contains('@') {
            let why = "holds a user name or password; give an `Authorization` header instead.";
            return Err(format!("The address of `{}` {why}", authority.host()));
        }
        let host = authority.host().to_ascii_lowercase();
        if host.is_empty() {
            return Err(wrong("names no host."));
        }
        let usual = if is_tls { 443 } else { 80 };
        let port = authority.port_u16().unwrap_or(usual);
        let name = if port == usual { host.clone() } else { format!("{host}:{port}") };
        let name = name.parse().map_err(|_| wrong("names no host."))?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let origin = Origin { is_tls, host: bare.into(), port, name };
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { origin: Arc::new(origin), path: path.into() })
    }

    /// Reads a URL that may be relative to this one.
    pub(crate) fn resolve(&self, reference: &str) -> Result<Self, String> {
        let reference = reference.trim().split('#').next().unwrap_or_default();
        if has_scheme(reference) {
            return Self::parse(reference);
        }
        if reference.starts_with("//") {
            let scheme = if self.origin.is_tls { "https" } else { "http" };
            return Self::parse(&format!("{scheme}:{reference}"));
        }
        let base = self.path.path();
        let path = match reference.as_bytes().first() {
            None => self.path.to_string(),
            Some(b'/') => without_dots(reference),
            Some(b'?') => format!("{base}{reference}"),
            Some(_) => {
                let folder = base.rfind('/').map_or("/", |at| &base[..=at]);
                without_dots(&format!("{folder}{reference}"))
            }
        };
        let path: PathAndQuery =
            path.parse().map_err(|_| format!("`{}` is no URL.", shown(reference)))?;
        Ok(Self { origin: Arc::clone(&self.origin), path: path.into() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '-' | '.');
    scheme.starts_with(|it: char| it.is_ascii_alphabetic()) && scheme.chars().all(is_name)
}

/// Removes `.` and `..` from a path, and leaves the query alone.
fn without_dots(path: &str) -> String {
    let (path, query) = match path.find('?') {
        Some(at) => path.split_at(at),
        None => (path, ""),
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (url, origin, path) in [
            ("http://Localhost:80", "http://localhost", "/"),
            ("https://example.com:443/mcp?x=1#top", "https://example.com", "/mcp?x=1"),
            ("http://[::1]:3000/a", "http://[::1]:3000", "/a"),
            ("http://127.0.0.1:3000?x", "http://127.0.0.1:3000", "/?x"),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.origin.to_string(), origin, "{url}");
            assert_eq!(address.path.to_string(), path, "{url}");
        }
        let six = Address::parse("http://[::1]:3000/a").unwrap();
        assert_eq!((&*six.origin.host, six.origin.port), ("::1", 3000));
    }

    #[test]
    fn other_urls_are_refused_with_a_sentence() {
        for (url, expected) in [
            ("ftp://a/b", "begins with `http://`"),
            ("/mcp", "begins with `http://`"),
            ("localhost:3000", "begins with `http://`"),
            ("http://", "is no URL"),
            ("http://a b/", "is no URL"),
            ("http://me:secret@a/", "holds a user name"),
        ] {
            let why = Address::parse(url).unwrap_err();
            assert!(why.contains(expected) && !why.contains("secret"), "{url}: {why}");
        }
    }

    #[test]
    fn references_are_resolved_against_the_url() {
        let base = Address::parse("http://a:1/x/y?z=1").unwrap();
        for (reference, expected) in [
            ("/messages?sessionId=1", "http://a:1/messages?sessionId=1"),
            ("messages", "http://a:1/x/messages"),
            ("./m", "http://a:1/x/m"),
            ("../m/", "http://a:1/m/"),
            ("../../../m", "http://a:1/m"),
            ("?q", "http://a:1/x/y?q"),
            ("", "http://a:1/x/y?z=1"),
            ("//b/m", "http://b/m"),
            ("https://c/m#f", "https://c/m"),
            ("/m:n", "http://a:1/m:n"),
        ] {
            let resolved = base.resolve(reference).unwrap();
            assert_eq!(resolved.to_string(), expected, "{reference}");
        }
        assert!(base.resolve("javascript:alert(1)").is_err());
    }

    #[test]
    fn headers_of_the_protocol_are_not_to_be_given() {
        let target = |name: &str, value: &str| HttpTarget::new("http://a").header(name, value);
        assert_eq!(target("X-Key", "1").header_map().unwrap()["x-key"], "1");
        for (name, value) in
            [("Mcp-Session-Id", "1"), ("content-length", "9"), ("a b", "c"), ("a", "secret\n")]
        {
            let why = target(name, value).header_map().unwrap_err();
            assert!(why.contains(name) && !why.contains("secret"), "{why}");
        }
    }
}
