//! The metadata of servers, and its URLs: protected resources (RFC 9728) and authorization servers
//! (RFC 8414, OpenID Connect Discovery).
//!
//! Unknown members are ignored, `null` counts as absent, and only what the RFCs require is
//! required. URLs and issuers are compared byte by byte.
//!
//! ```
//! use trunkline_auth::metadata::ProtectedResource;
//!
//! let text = br#"{"resource":"https://a.example/mcp","authorization_servers":["https://id.example"]}"#;
//! let document = ProtectedResource::parse(text).unwrap();
//! assert_eq!(document.authorization_servers, ["https://id.example"]);
//! ```

use serde::{Deserialize, Deserializer, Serialize};

/// The metadata of a protected resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProtectedResource {
    /// Its identifier: the audience of tokens for it.
    pub resource: String,
    /// The issuers whose tokens it accepts.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// The scopes worth requesting.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// How a token can be sent: `header`, `body`, `query`.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub bearer_methods_supported: Vec<String>,
    /// Its name, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// A page for developers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// The algorithms that DPoP proofs may be signed with.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub dpop_signing_alg_values_supported: Vec<String>,
    /// Whether every token must be bound to a key.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub dpop_bound_access_tokens_required: bool,
}

impl ProtectedResource {
    /// The metadata of a resource with its identifier only.
    pub fn new(resource: impl Into<String>) -> Self {
        Self { resource: resource.into(), ..Self::default() }
    }

    /// Parses it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        serde_json::from_slice(bytes).map_err(Unreadable::new)
    }
}

/// The metadata of an authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationServer {
    /// Its identifier.
    pub issuer: String,
    /// The authorization endpoint, where people log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// The token endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// The registration endpoint (RFC 7591).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// The keys that tokens are signed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// The introspection endpoint (RFC 7662).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// The revocation endpoint (RFC 7009).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The scopes it supports.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// Such as `code`.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub response_types_supported: Vec<String>,
    /// Such as `authorization_code`.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub grant_types_supported: Vec<String>,
    /// The PKCE methods, such as `S256`.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub code_challenge_methods_supported: Vec<String>,
    /// How clients authenticate at the token endpoint.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub token_endpoint_auth_methods_supported: Vec<String>,
    /// The algorithms of `private_key_jwt`.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub token_endpoint_auth_signing_alg_values_supported: Vec<String>,
    /// The algorithms that DPoP proofs may be signed with.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub dpop_signing_alg_values_supported: Vec<String>,
    /// Such as the one of enterprise-managed authorization.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub authorization_grant_profiles_supported: Vec<String>,
    /// Whether redirects contain `iss` (RFC 9207).
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub authorization_response_iss_parameter_supported: bool,
    /// Whether a client's identifier may be the URL of its metadata document.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub client_id_metadata_document_supported: bool,
}

impl AuthorizationServer {
    /// The metadata of an issuer with its identifier only.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self { issuer: issuer.into(), ..Self::default() }
    }

    /// Parses it. The caller must check that it is the right issuer's.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        serde_json::from_slice(bytes).map_err(Unreadable::new)
    }
}

/// Why metadata cannot be parsed. In words, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(String);

impl Unreadable {
    /// The parser's own message quotes the input.
    fn new(why: serde_json::Error) -> Self {
        let what = if why.is_data() {
            "something is missing, or of the wrong kind,"
        } else {
            "it is no JSON"
        };
        Self(format!("{what} at line {} column {}", why.line(), why.column()))
    }
}

crate::error_in_words!(Unreadable);

/// The URL of this resource's metadata: the well-known name goes between host and path (RFC 9728
/// §3.1). `None` if it is not a URL with a host.
///
/// ```
/// use trunkline_auth::metadata::protected_resource_url;
///
/// assert_eq!(
///     protected_resource_url("https://a.example/mcp").as_deref(),
///     Some("https://a.example/.well-known/oauth-protected-resource/mcp"),
/// );
/// ```
pub fn protected_resource_url(resource: &str) -> Option<String> {
    let (origin, path) = split(resource)?;
    // The slash after the host is dropped; one that ends a path is part of it.
    let path =
        path.strip_prefix('/').filter(|it| it.is_empty() || it.starts_with('?')).unwrap_or(path);
    Some(format!("{origin}{PROTECTED_RESOURCE}{path}"))
}

/// The possible URLs of this issuer's metadata, in order: RFC 8414, then OpenID Connect with the
/// well-known name in the middle, then at the end. Empty if it is not a URL with a host.
pub fn authorization_server_urls(issuer: &str) -> Vec<String> {
    let Some((origin, path)) = split(issuer) else { return Vec::new() };
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut urls = vec![
        format!("{origin}{AUTHORIZATION_SERVER}{path}"),
        format!("{origin}{OPENID_CONFIGURATION}{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}{OPENID_CONFIGURATION}"));
    }
    urls
}

/// The path of the metadata of a resource without a path.
pub const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// The path of the metadata of an issuer without a path (RFC 8414).
pub const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";

/// The path of the metadata of an OpenID issuer without a path.
pub const OPENID_CONFIGURATION: &str = "/.well-known/openid-configuration";

/// `https://host:port` and the rest, without a fragment. Both are unchanged.
pub(crate) fn split(url: &str) -> Option<(&str, &str)> {
    let url = url.split('#').next().unwrap_or_default();
    let host = url.find("://").filter(|it| *it > 0)? + 3;
    let end = url[host..].find(['/', '?']).map_or(url.len(), |end| host + end);
    (end > host).then(|| url.split_at(end))
}

/// A list; `null` means empty.
fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A boolean; `null` means false.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_of_a_resource_is_between_host_and_path() {
        for (resource, expected) in [
            ("https://a.example", Some("https://a.example/.well-known/oauth-protected-resource")),
            ("https://a.example/", Some("https://a.example/.well-known/oauth-protected-resource")),
            (
                "https://a.example:8443/x/mcp",
                Some("https://a.example:8443/.well-known/oauth-protected-resource/x/mcp"),
            ),
            (
                "https://a.example/mcp/",
                Some("https://a.example/.well-known/oauth-protected-resource/mcp/"),
            ),
            (
                "https://a.example/mcp?t=1#x",
                Some("https://a.example/.well-known/oauth-protected-resource/mcp?t=1"),
            ),
            (
                "https://a.example/?t=1",
                Some("https://a.example/.well-known/oauth-protected-resource?t=1"),
            ),
            (
                "https://a.example?t=1",
                Some("https://a.example/.well-known/oauth-protected-resource?t=1"),
            ),
            ("https:///mcp", None),
            ("://a.example", None),
            ("a.example/mcp", None),
            ("", None),
        ] {
            assert_eq!(protected_resource_url(resource).as_deref(), expected, "{resource}");
        }
    }

    #[test]
    fn the_documents_of_an_issuer_are_tried_in_order() {
        for (issuer, expected) in [
            (
                "https://id.example",
                &[
                    "https://id.example/.well-known/oauth-authorization-server",
                    "https://id.example/.well-known/openid-configuration",
                ][..],
            ),
            (
                "https://id.example/",
                &[
                    "https://id.example/.well-known/oauth-authorization-server",
                    "https://id.example/.well-known/openid-configuration",
                ],
            ),
            (
                "http://127.0.0.1:9000/realms/one/",
                &[
                    "http://127.0.0.1:9000/.well-known/oauth-authorization-server/realms/one",
                    "http://127.0.0.1:9000/.well-known/openid-configuration/realms/one",
                    "http://127.0.0.1:9000/realms/one/.well-known/openid-configuration",
                ],
            ),
            ("id.example", &[]),
        ] {
            assert_eq!(authorization_server_urls(issuer), expected, "{issuer}");
        }
    }

    #[test]
    fn documents_are_read_forgivingly() {
        let text = br#"{"issuer":"https://id.example","jwks_uri":null,"grant_types_supported":null,
            "client_id_metadata_document_supported":null,"unknown":{"a":[1]},
            "authorization_response_iss_parameter_supported":true,"scopes_supported":["a"]}"#;
        let mut expected = AuthorizationServer::new("https://id.example");
        expected.authorization_response_iss_parameter_supported = true;
        expected.scopes_supported.push("a".into());
        assert_eq!(AuthorizationServer::parse(text), Ok(expected));
        let text =
            br#"{"resource":"r","scopes_supported":null,"dpop_bound_access_tokens_required":true}"#;
        let read = ProtectedResource::parse(text).unwrap();
        assert!(read.dpop_bound_access_tokens_required && read.scopes_supported.is_empty());
        for bad in ["", "[]", "{}", r#"{"issuer":1,"resource":1}"#, "null"] {
            assert!(AuthorizationServer::parse(bad.as_bytes()).is_err(), "{bad}");
            assert!(ProtectedResource::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn documents_are_written_without_what_they_lack() {
        let written = |it: &AuthorizationServer| serde_json::to_string(it).unwrap();
        let mut document = AuthorizationServer::new("i");
        assert_eq!(written(&document), r#"{"issuer":"i"}"#);
        document.client_id_metadata_document_supported = true;
        document.jwks_uri = Some("k".into());
        assert_eq!(
            written(&document),
            r#"{"issuer":"i","jwks_uri":"k","client_id_metadata_document_supported":true}"#
        );
    }
}
