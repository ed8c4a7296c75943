//! Checks URLs of servers and addresses to listen at.

use trunkline_auth::address::{Class, Host, class};

/// Splits an address to listen at into the host, without brackets, and the port.
pub(super) fn parts(listen: &str) -> Option<(&str, u16)> {
    let (host, port) = listen.rsplit_once(':')?;
    let port = port.parse().ok().filter(|_| port.bytes().all(|it| it.is_ascii_digit()))?;
    let host = match host.strip_prefix('[') {
        Some(inner) => {
            let inner = inner.strip_suffix(']')?;
            inner.parse::<std::net::Ipv6Addr>().ok()?;
            inner
        }
        None if host.contains(':') => return None,
        None => host,
    };
    Host::parse(host).ok()?;
    Some((host, port))
}

/// Whether only this machine can reach a host.
pub(super) fn is_loopback(host: &str) -> bool {
    match Host::parse(host) {
        Ok(Host::Name(name)) => name == "localhost" || name.ends_with(".localhost"),
        Ok(Host::Address(address)) => class(address) == Class::Loopback,
        Err(_) => false,
    }
}

/// Whether a text is an absolute `http` or `https` URL.
pub(super) fn is_url(text: &str) -> bool {
    let Ok(uri) = text.parse::<http::Uri>() else { return false };
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    is_http && uri.host().is_some_and(|it| Host::parse(it).is_ok())
}

/// Whether a URL contains a user.
pub(super) fn is_user_in(url: &str) -> bool {
    let uri = url.parse::<http::Uri>().ok();
    uri.and_then(|it| it.into_parts().authority).is_some_and(|it| it.as_str().contains('@'))
}

/// Whether traffic to a URL cannot be read on its way.
pub(super) fn is_private(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    uri.scheme_str() == Some("https") || uri.host().is_some_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_addresses_are_recognised() {
        for (text, expected) in [
            ("127.0.0.1:7373", Some(("127.0.0.1", 7373))),
            ("[::1]:0", Some(("::1", 0))),
            ("localhost:80", Some(("localhost", 80))),
            ("0.0.0.0:65535", Some(("0.0.0.0", 65535))),
            ("127.0.0.1", None),
            (":80", None),
            ("::1:80", None),
            ("[::1", None),
            ("a b:80", None),
            ("a:65536", None),
            ("a:+1", None),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
        for (host, expected) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("localhost", true),
            ("0.0.0.0", false),
            ("::", false),
            ("mcp.example", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
        for (url, expected) in [
            ("https://mcp.example/mcp", true),
            ("http://[::1]:3000/", true),
            ("mcp.example/mcp", false),
            ("ftp://mcp.example", false),
            ("https://", false),
            ("https://a b", false),
        ] {
            assert_eq!(is_url(url), expected, "{url}");
        }
        assert!(is_user_in("https://me:secret@mcp.example/"));
        assert!(is_private("http://127.0.0.1/") && !is_private("http://mcp.example/"));
    }
}
