//! Compares issuers and resources byte by byte: no case folding, no default ports, no slashes added
//! or removed (RFC 3986 §6.2.1).

use crate::url::{self, Origin};

/// Whether authorization server metadata belongs to `issuer` (RFC 8414 §3.3).
pub(crate) fn is_document_of(issuer: &str, says: &str) -> bool {
    issuer == says
}

/// Whether metadata at the root of `origin` belongs to it, where no issuer was named (2025-03-26).
/// A trailing slash leads to the same metadata.
pub(crate) fn is_document_at(origin: &str, says: &str) -> bool {
    says.strip_suffix('/').unwrap_or(says) == origin
}

/// Why a redirect is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It has no `iss`, though its issuer promises one.
    Missing,
    /// It has another issuer's `iss`.
    Other,
}

/// The table of RFC 9207 §2.4 as the 2026-07-28 revision reads it: `recorded` is the issuer that
/// was asked, `promised` whether its metadata says that it sends `iss`.
pub(crate) fn check_redirect(
    recorded: &str,
    promised: bool,
    iss: Option<&str>,
) -> Result<(), Doubt> {
    match iss {
        Some(iss) if iss == recorded => Ok(()),
        Some(_) => Err(Doubt::Other),
        None if promised => Err(Doubt::Missing),
        None => Ok(()),
    }
}

/// Whether metadata about `resource` applies to the server at `server`: same origin, and the
/// server's path is the resource's or below it (RFC 9728 §3.3; metadata at the root applies to the
/// whole host).
pub(crate) fn is_resource_of(resource: &str, server: &str) -> bool {
    let (Some(ours), Some(theirs)) = (Origin::of(server), Origin::of(resource)) else {
        return false;
    };
    if ours != theirs || resource.contains('#') {
        return false;
    }
    if let Some((_, query)) = resource.split_once('?') {
        let server = server.split('#').next().unwrap_or_default();
        return url::path(resource) == url::path(server)
            && server.split_once('?').is_some_and(|(_, it)| it == query);
    }
    let (parent, path) = (url::path(resource).trim_end_matches('/'), url::path(server));
    path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether metadata found under the server's own path applies to it: it must be about that path,
/// not about one above (RFC 9728 §3.3).
pub(crate) fn is_resource_at(resource: &str, server: &str) -> bool {
    let path = |it| url::path(it).trim_end_matches('/').to_owned();
    is_resource_of(resource, server) && path(resource) == path(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://id.example/one";

    #[test]
    fn a_document_says_exactly_who_it_is_of() {
        for (says, expected) in [
            (ISSUER, true),
            ("https://id.example/one/", false),
            ("https://id.example:443/one", false),
            ("https://ID.example/one", false),
            ("HTTPS://id.example/one", false),
            ("https://id.example/On%65", false),
            ("https://id.example", false),
            ("http://id.example/one", false),
            ("", false),
        ] {
            assert_eq!(is_document_of(ISSUER, says), expected, "{says}");
        }
    }

    #[test]
    fn at_a_root_where_nobody_named_an_issuer_one_slash_is_the_same() {
        let origin = "http://localhost:9000";
        for (says, expected) in [
            ("http://localhost:9000", true),
            ("http://localhost:9000/", true),
            ("http://localhost:9000//", false),
            ("http://localhost:9000/oauth", false),
            ("http://localhost", false),
            ("http://LOCALHOST:9000", false),
            ("", false),
        ] {
            assert_eq!(is_document_at(origin, says), expected, "{says}");
        }
    }

    #[test]
    fn redirects_are_checked_by_the_table() {
        for (promised, iss, expected) in [
            (true, Some(ISSUER), Ok(())),
            (false, Some(ISSUER), Ok(())),
            (true, None, Err(Doubt::Missing)),
            (false, None, Ok(())),
            (true, Some("https://id.example/one/"), Err(Doubt::Other)),
            (false, Some("https://id.example/one/"), Err(Doubt::Other)),
            (true, Some("https://id.example:443/one"), Err(Doubt::Other)),
            (true, Some("https://ID.example/one"), Err(Doubt::Other)),
            (false, Some("https://evil.example"), Err(Doubt::Other)),
            (false, Some(""), Err(Doubt::Other)),
        ] {
            assert_eq!(check_redirect(ISSUER, promised, iss), expected, "{promised} {iss:?}");
        }
    }

    #[test]
    fn a_resource_speaks_for_itself_and_what_is_below() {
        let server = "https://a.example/x/mcp";
        for (resource, expected) in [
            ("https://a.example/x/mcp", true),
            ("https://a.example/x/mcp/", true),
            ("https://a.example/x", true),
            ("https://a.example/x/", true),
            ("https://a.example/", true),
            ("https://a.example", true),
            ("HTTPS://A.example:443/x", true),
            ("https://a.example/x/m", false),
            ("https://a.example/X/mcp", false),
            ("https://a.example/x/mcp/y", false),
            ("https://a.example/x/mcp2", false),
            ("https://a.example/y", false),
            ("https://a.example:8443/x/mcp", false),
            ("http://a.example/x/mcp", false),
            ("https://evil.example/x/mcp", false),
            ("https://a.example.evil.example/x/mcp", false),
            ("https://a.example/x/mcp#f", false),
            ("https://a.example#f", false),
            ("https://a.example/x/mcp?t=1", false),
            ("https://a.example/x?t=1", false),
            ("https://u@a.example/x/mcp", false),
            ("urn:x", false),
            ("", false),
        ] {
            assert_eq!(is_resource_of(resource, server), expected, "{resource}");
        }
        // A query is part of the identifier, which then must match exactly.
        for (resource, server, expected) in [
            ("https://a.example/mcp?t=1", "https://a.example/mcp?t=1", true),
            ("https://a.example/mcp?t=1", "https://a.example/mcp?t=1#f", true),
            ("https://a.example/mcp", "https://a.example/mcp?t=1", true),
            ("https://a.example/mcp", "https://a.example/mcp#f", true),
            ("https://a.example/mcp?t=1", "https://a.example/mcp?t=2", false),
            ("https://a.example/m?t=1", "https://a.example/mcp?t=1", false),
            ("https://a.example/mcp", "not a url", false),
        ] {
            assert_eq!(is_resource_of(resource, server), expected, "{resource} {server}");
        }
    }

    #[test]
    fn a_document_under_a_path_speaks_for_that_path() {
        let server = "https://a.example/x/mcp?key=1";
        for (resource, expected) in [
            ("https://a.example/x/mcp", true),
            ("https://a.example/x/mcp/", true),
            ("https://a.example/x/mcp?key=1", true),
            ("HTTPS://A.example:443/x/mcp", true),
            ("https://a.example/x", false),
            ("https://a.example/", false),
            ("https://a.example", false),
            ("https://a.example/x/mcp2", false),
            ("https://b.example/x/mcp", false),
        ] {
            assert_eq!(is_resource_at(resource, server), expected, "{resource}");
        }
        assert!(is_resource_at("https://a.example/", "https://a.example"));
    }
}
