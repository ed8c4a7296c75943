//! URLs as texts: split and joined without any normalization.
//!
//! ```
//! use trunkline_auth::url;
//!
//! assert_eq!(url::form(&[("scope", "a b")]), "scope=a%20b");
//! assert_eq!(url::shown("https://me:secret@id.example/a?code=1"), "https://id.example/a");
//! ```

/// Fields as `application/x-www-form-urlencoded`.
///
/// ```
/// # use trunkline_auth::url::form;
/// assert_eq!(form(&[("a", "1&2"), ("b", "")]), "a=1%262&b=");
/// ```
pub fn form(fields: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        encode(name, &mut out);
        out.push('=');
        encode(value, &mut out);
    }
    out
}

/// A URL safe to show: without user, password, query and fragment.
///
/// ```
/// # use trunkline_auth::url::shown;
/// assert_eq!(shown("http://127.0.0.1:9000/cb?code=secret#x"), "http://127.0.0.1:9000/cb");
/// ```
pub fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let separator = if scheme.is_empty() { "" } else { "://" };
    let parts = [scheme, separator, host, path].into_iter().flat_map(str::chars);
    parts.filter(|it| !it.is_control()).take(200).collect()
}

/// The fields of a query or a form body, in order; invalid percent-encoding stays as it is.
///
/// ```
/// # use trunkline_auth::url::fields;
/// assert_eq!(fields("state=a%2Db"), [("state".to_owned(), "a-b".to_owned())]);
/// ```
#[cfg(feature = "oauth")]
pub fn fields(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|it| !it.is_empty());
    pairs
        .map(|it| it.split_once('=').unwrap_or((it, "")))
        .map(|(n, v)| (plain(n), plain(v)))
        .collect()
}

/// One value, encoded as in a form.
#[cfg(feature = "oauth")]
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::new();
    encode(text, &mut out);
    out
}

/// The parts of a URL that identify its server. Only these are normalized: scheme and host ignore
/// case, and a missing port is the scheme's default.
#[cfg(feature = "oauth")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) port: u16,
}

#[cfg(feature = "oauth")]
impl Origin {
    /// `None` if it is not an http(s) URL, has a user or a password, or has characters that no URL
    /// has.
    pub(crate) fn of(url: &str) -> Option<Self> {
        if !url.bytes().all(|it| it.is_ascii_graphic() && !matches!(it, b'\\' | b'"' | b'<' | b'>'))
        {
            return None;
        }
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let standard = match &*scheme {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        if authority.contains('@') {
            return None;
        }
        // The colons of an IPv6 address are inside brackets.
        let name_ends = authority.rfind(']').map_or(0, |it| it + 1);
        let (host, port) = match authority[name_ends..].find(':') {
            Some(colon) => {
                let (host, port) = authority.split_at(name_ends + colon);
                (host, if port == ":" { standard } else { number(&port[1..])? })
            }
            None => (authority, standard),
        };
        (!host.is_empty()).then(|| Self { scheme, host: host.to_ascii_lowercase(), port })
    }

    /// Whether it is this machine, without name resolution.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = &*self.host;
        let is_v4 = || host.parse::<std::net::Ipv4Addr>().is_ok_and(|it| it.is_loopback());
        host == "localhost" || host == "[::1]" || is_v4()
    }

    /// Whether the connection is confidential: https, or http on this machine.
    pub(crate) fn is_private(&self) -> bool {
        self.scheme == "https" || self.is_loopback()
    }
}

/// A URL's path, from its slash on and without query and fragment; empty if there is none.
#[cfg(feature = "oauth")]
pub(crate) fn path(url: &str) -> &str {
    let url = &url[..url.find(['?', '#']).unwrap_or(url.len())];
    let rest = url.find("://").map_or(url, |it| &url[it + 3..]);
    &rest[rest.find('/').unwrap_or(rest.len())..]
}

/// A port: digits only, no sign.
#[cfg(feature = "oauth")]
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|it| it.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A decoded form value: `+` is a space; invalid percent-encoding stays as it is.
#[cfg(feature = "oauth")]
fn plain(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = |it: Option<&u8>| it.and_then(|it| char::from(*it).to_digit(16));
        let (decoded, used) = match (byte, hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            (b'+', ..) => (b' ', 1),
            (b'%', Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
            _ => (byte, 1),
        };
        out.push(decoded);
        at += used;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte as char);
            }
            _ => {
                out.push('%');
                for half in [byte >> 4, byte & 15] {
                    out.push(char::from(b"0123456789ABCDEF"[usize::from(half)]));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_has_no_secrets() {
        for (url, expected) in [
            ("https://a.example/x?code=1#y", "https://a.example/x"),
            ("https://u:p@a.example/x", "https://a.example/x"),
            ("https://a.example/@x", "https://a.example/@x"),
            ("a.example\n/x", "a.example/x"),
        ] {
            assert_eq!(shown(url), expected);
        }
        assert_eq!(shown(&"x".repeat(500)).len(), 200);
    }

    #[cfg(feature = "oauth")]
    #[test]
    fn fields_are_read_as_they_were_written() {
        let read = fields("a=1&b=x%20y+z&c&=d&e=%zz%4&f=%C3%A9&a=2");
        let read: Vec<_> = read.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(
            read,
            [
                ("a", "1"),
                ("b", "x y z"),
                ("c", ""),
                ("", "d"),
                ("e", "%zz%4"),
                ("f", "é"),
                ("a", "2")
            ]
        );
        assert!(fields("").is_empty());
        let sent = [("a&b", "x =+%é\n")];
        assert_eq!(fields(&form(&sent)), [("a&b".to_owned(), "x =+%é\n".to_owned())]);
        assert_eq!(encoded("a:b"), "a%3Ab");
    }

    #[cfg(feature = "oauth")]
    #[test]
    fn origins_are_read() {
        let origin = |scheme: &str, host: &str, port| {
            Some(Origin { scheme: scheme.into(), host: host.into(), port })
        };
        for (url, expected) in [
            ("https://a.example", origin("https", "a.example", 443)),
            ("HTTPS://A.Example:443/x", origin("https", "a.example", 443)),
            ("http://a.example:/x", origin("http", "a.example", 80)),
            ("http://a.example?x", origin("http", "a.example", 80)),
            ("http://[::1]:8080/x", origin("http", "[::1]", 8080)),
            ("http://[::1]", origin("http", "[::1]", 80)),
            ("https://a.example:99999", None),
            ("https://a.example:+1", None),
            ("https://a.example:x", None),
            ("https://u@a.example", None),
            ("https://", None),
            ("https://:1", None),
            ("ftp://a.example", None),
            ("javascript:alert(1)", None),
            ("https://a.example/ x", None),
            ("https://a.example\\@b.example", None),
            ("https://a.example/\"x", None),
            ("a.example", None),
            ("", None),
        ] {
            assert_eq!(Origin::of(url), expected, "{url}");
        }
    }

    #[cfg(feature = "oauth")]
    #[test]
    fn only_https_and_this_machine_are_private() {
        for (url, expected) in [
            ("https://a.example", true),
            ("http://a.example", false),
            ("http://localhost:1", true),
            ("http://LOCALHOST", true),
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost.evil.example", false),
            ("http://127.0.0.1.evil.example", false),
            ("http://10.0.0.1", false),
            ("http://[::2]", false),
        ] {
            assert_eq!(Origin::of(url).unwrap().is_private(), expected, "{url}");
        }
    }

    #[cfg(feature = "oauth")]
    #[test]
    fn paths_are_cut_out() {
        for (url, expected) in [
            ("https://a.example", ""),
            ("https://a.example/", "/"),
            ("https://a.example/x/y?z/w#v", "/x/y"),
            ("https://a.example?x=/y", ""),
            ("https://a.example#/y", ""),
        ] {
            assert_eq!(path(url), expected, "{url}");
        }
    }
}
