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

    /// Asserts of which texts something holds, and of which it does not.
    #[track_caller]
    fn check(holds: impl Fn(&str) -> bool, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(holds(text), "{text}");
        }
        for text in no {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn a_document_says_exactly_who_it_is_of() {
        check(
            |says| is_document_of(ISSUER, says),
            &[ISSUER],
            &[
                "https://id.example/one/",
                "https://id.example:443/one",
                "https://ID.example/one",
                "HTTPS://id.example/one",
                "https://id.example/On%65",
                "https://id.example",
                "http://id.example/one",
                "",
            ],
        );
    }

    #[test]
    fn at_a_root_where_nobody_named_an_issuer_one_slash_is_the_same() {
        let origin = "http://localhost:9000";
        check(
            |says| is_document_at(origin, says),
            &["http://localhost:9000", "http://localhost:9000/"],
            &[
                "http://localhost:9000//",
                "http://localhost:9000/oauth",
                "http://localhost",
                "http://LOCALHOST:9000",
                "",
            ],
        );
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
        check(
            |resource| is_resource_of(resource, server),
            &[
                "https://a.example/x/mcp",
                "https://a.example/x/mcp/",
                "https://a.example/x",
                "https://a.example/x/",
                "https://a.example/",
                "https://a.example",
                "HTTPS://A.example:443/x",
            ],
            &[
                "https://a.example/x/m",
                "https://a.example/X/mcp",
                "https://a.example/x/mcp/y",
                "https://a.example/x/mcp2",
                "https://a.example/y",
                "https://a.example:8443/x/mcp",
                "http://a.example/x/mcp",
                "https://evil.example/x/mcp",
                "https://a.example.evil.example/x/mcp",
                "https://a.example/x/mcp#f",
                "https://a.example#f",
                "https://a.example/x/mcp?t=1",
                "https://a.example/x?t=1",
                "https://u@a.example/x/mcp",
                "urn:x",
                "",
            ],
        );
        // A query is part of the identifier, which then must match exactly.
        for (resource, server) in [
            ("https://a.example/mcp?t=1", "https://a.example/mcp?t=1"),
            ("https://a.example/mcp?t=1", "https://a.example/mcp?t=1#f"),
            ("https://a.example/mcp", "https://a.example/mcp?t=1"),
            ("https://a.example/mcp", "https://a.example/mcp#f"),
        ] {
            assert!(is_resource_of(resource, server), "{resource} {server}");
        }
        for (resource, server) in [
            ("https://a.example/mcp?t=1", "https://a.example/mcp?t=2"),
            ("https://a.example/m?t=1", "https://a.example/mcp?t=1"),
            ("https://a.example/mcp", "not a url"),
        ] {
            assert!(!is_resource_of(resource, server), "{resource} {server}");
        }
    }

    #[test]
    fn a_document_under_a_path_speaks_for_that_path() {
        let server = "https://a.example/x/mcp?key=1";
        check(
            |resource| is_resource_at(resource, server),
            &[
                "https://a.example/x/mcp",
                "https://a.example/x/mcp/",
                "https://a.example/x/mcp?key=1",
                "HTTPS://A.example:443/x/mcp",
            ],
            &[
                "https://a.example/x",
                "https://a.example/",
                "https://a.example",
                "https://a.example/x/mcp2",
                "https://b.example/x/mcp",
            ],
        );
        assert!(is_resource_at("https://a.example/", "https://a.example"));
    }
}
