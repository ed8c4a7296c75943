//! Where an authorization may be sent: which redirect URIs a client may register, and which of
//! them a request means.

/// A URI, taken apart without changing a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// In lower case, or it is not taken apart.
    pub(crate) scheme: &'a str,
    /// Empty where there is no `//`.
    pub(crate) host: &'a str,
    pub(crate) port: Option<&'a str>,
    /// Path and query.
    pub(crate) rest: &'a str,
}

impl<'a> Parts<'a> {
    /// `None` for what is no URI that we would send anybody to: relative, with a user, a fragment,
    /// spaces or control characters, with anything but ASCII.
    pub(crate) fn of(uri: &'a str) -> Option<Self> {
        if uri.len() > 2000
            || uri.bytes().any(|it| !it.is_ascii_graphic() || b"\"'<>\\^`{|}".contains(&it))
        {
            return None;
        }
        let (scheme, rest) = uri.split_once(':')?;
        let mut letters = scheme.bytes();
        if !letters.next()?.is_ascii_lowercase()
            || !letters.all(|it| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.'))
            || uri.contains('#')
        {
            return None;
        }
        let Some(rest) = rest.strip_prefix("//") else {
            return Some(Self { scheme, host: "", port: None, rest });
        };
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return None;
        }
        let split = match authority.rfind(']') {
            Some(end) => authority.split_at(end + 1),
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let (host, port) = match split {
            (host, "") => (host, None),
            (host, port) => (host, Some(port.strip_prefix(':')?)),
        };
        if !port.is_none_or(is_port) {
            return None;
        }
        Some(Self { scheme, host, port, rest })
    }

    /// Whether the host is this machine, by one of its three usual names.
    pub(crate) fn is_loopback(&self) -> bool {
        matches!(self.host, "127.0.0.1" | "[::1]" | "localhost")
    }

    /// `scheme://host:port`.
    pub(crate) fn origin(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", self.scheme, self.host)
    }
}

/// Whether a client of this `application_type` may register the URI; if not, why.
pub(crate) fn acceptable(uri: &str, kind: Option<&str>) -> Result<(), String> {
    let no = |why: &str| Err(format!("The redirect URI `{}` {why}", shown(uri)));
    let Some(parts) = Parts::of(uri) else {
        return no("is not an absolute URI without user and fragment.");
    };
    match parts.scheme {
        "https" if parts.host.is_empty() => no("names no host."),
        "https" => Ok(()),
        "http" if !parts.is_loopback() => {
            no("is not encrypted; use `https`, or `http` with `127.0.0.1`, `[::1]` or `localhost`.")
        }
        "http" if kind == Some("web") => {
            no("is on the user's own machine; register with `\"application_type\": \"native\"`.")
        }
        "http" => Ok(()),
        _ if kind == Some("web") => {
            no("has a scheme that web applications cannot have; use `https`.")
        }
        scheme if NEVER.contains(&scheme) => no("has a scheme that leads to no application."),
        _ => Ok(()),
    }
}

/// Whether a request that asks for `asked` means `registered`: byte for byte, but for the port on
/// the user's own machine (RFC 8252 §7.3).
pub(crate) fn matches(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return true;
    }
    let (Some(one), Some(other)) = (Parts::of(registered), Parts::of(asked)) else { return false };
    one.scheme == "http"
        && one.is_loopback()
        && Parts { port: None, ..one } == Parts { port: None, ..other }
}

/// A port in its one spelling: others could be read as another address by whoever follows it.
fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|it| it.to_string() == text)
}

/// A text of a stranger, short and without what could be mistaken.
pub(crate) fn shown(text: &str) -> String {
    text.chars().filter(|it| !it.is_control() && *it != '`').take(200).collect()
}

const NEVER: [&str; 12] = [
    "javascript",
    "data",
    "file",
    "blob",
    "about",
    "vbscript",
    "view-source",
    "ws",
    "wss",
    "ftp",
    "chrome",
    "filesystem",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_to_the_web_by_https_and_to_this_machine() {
        let good = [
            ("https://app.example/callback", None),
            ("https://app.example/callback", Some("web")),
            ("https://app.example/callback", Some("native")),
            ("http://127.0.0.1:3000/callback", None),
            ("http://[::1]/callback", Some("native")),
            ("cursor://callback", Some("native")),
            ("com.example.app:/callback", Some("native")),
        ];
        let bad = [
            ("http://localhost/callback", Some("web")),
            ("http://app.example/callback", None),
            ("http://127.0.0.1.evil.example/", None),
            ("http://localhost@evil.example/", None),
            ("http://evil.example\\@localhost/", None),
            ("com.example.app:/callback", Some("web")),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("https://app.example/#fragment", None),
            ("https:///callback", None),
            ("https://app.example/\r\nx", None),
            ("https://app.example:99999/", None),
            ("http://127.0.0.1:+5555/callback", None),
            ("http://127.0.0.1:05555/callback", None),
            ("http://127.0.0.1:/callback", None),
            ("/callback", None),
            ("", None),
        ];
        for (uri, kind) in good {
            assert!(acceptable(uri, kind).is_ok(), "{uri} {kind:?}");
        }
        for (uri, kind) in bad {
            assert!(acceptable(uri, kind).is_err(), "{uri} {kind:?}");
        }
    }

    #[test]
    fn only_the_port_of_this_machine_is_free() {
        let same = [
            ("http://127.0.0.1/cb", "http://127.0.0.1:5000/cb"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb"),
            ("http://[::1]/cb", "http://[::1]:2/cb"),
            ("http://localhost/cb?x=1", "http://localhost:2/cb?x=1"),
            ("https://a.example/cb", "https://a.example/cb"),
        ];
        let other = [
            ("http://localhost/cb", "http://127.0.0.1/cb"),
            ("http://127.0.0.1/cb", "http://127.0.0.1/cb/"),
            ("http://127.0.0.1/cb", "http://127.0.0.1/cb?x"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:+5555/cb"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:05555/cb"),
            ("https://a.example/cb", "https://a.example:444/cb"),
            ("https://a.example/cb", "https://A.example/cb"),
        ];
        for (registered, asked) in same {
            assert!(matches(registered, asked), "{registered} {asked}");
        }
        for (registered, asked) in other {
            assert!(!matches(registered, asked), "{registered} {asked}");
        }
    }
}
