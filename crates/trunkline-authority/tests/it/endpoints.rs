//! Where things are, who may read them, and what the server says about itself.

use crate::transcript::{ISSUER, settings, start};
use serde_json::json;
use trunkline_authority::{Authority, Request, Settings};

#[test]
fn discovery_finds_the_same_in_every_place() {
    for (issuer, places) in [
        (
            ISSUER,
            &["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"][..],
        ),
        (
            "http://localhost:9000/tenant",
            &[
                "/.well-known/oauth-authorization-server/tenant",
                "/.well-known/openid-configuration/tenant",
                "/tenant/.well-known/openid-configuration",
            ],
        ),
    ] {
        let authority = Authority::new(issuer, settings());
        for place in places {
            let answer = authority.answer(Request::get(place, start()));
            assert_eq!(answer.status, 200, "{place}");
            assert_eq!(answer.first("access-control-allow-origin"), Some("*"));
            let document = answer.json();
            assert_eq!(document["issuer"], issuer);
            for (member, path) in [
                ("authorization_endpoint", "/authorize"),
                ("token_endpoint", "/token"),
                ("registration_endpoint", "/register"),
                ("jwks_uri", "/jwks"),
                ("introspection_endpoint", "/introspect"),
                ("revocation_endpoint", "/revoke"),
            ] {
                assert_eq!(document[member], format!("{issuer}{path}"));
            }
            assert_eq!(document["code_challenge_methods_supported"], json!(["S256"]));
            assert_eq!(document["authorization_response_iss_parameter_supported"], true);
            assert_eq!(
                document["grant_types_supported"],
                json!(["authorization_code", "refresh_token", "client_credentials"])
            );
        }
    }
    let tenant = Authority::new("http://localhost:9000/tenant", settings());
    let elsewhere = Request::get("/.well-known/oauth-authorization-server", start());
    assert_eq!(tenant.answer(elsewhere).status, 404, "the root is another issuer's");
    assert_eq!(tenant.answer(Request::get("/tenant/jwks", start())).status, 200);
    assert_eq!(tenant.answer(Request::get("/jwks", start())).status, 404);
}

#[test]
fn what_is_switched_off_is_not_there() {
    let authority = Authority::new(ISSUER, Settings::new().without_registration());
    let document =
        authority.answer(Request::get("/.well-known/openid-configuration", start())).json();
    for absent in
        ["registration_endpoint", "scopes_supported", "authorization_grant_profiles_supported"]
    {
        assert_eq!(document.get(absent), None, "{absent}");
    }
}

#[test]
fn pages_of_other_origins_read_what_programs_read_and_nothing_else() {
    let authority = Authority::new(ISSUER, settings());
    for (path, is_open) in [
        ("/token", true),
        ("/register", true),
        ("/jwks", true),
        ("/revoke", true),
        ("/introspect", true),
        ("/.well-known/openid-configuration", true),
        ("/authorize", false),
        ("/authorize/decision", false),
        ("/", false),
    ] {
        let answer = authority.answer(Request::new("OPTIONS", path, start()));
        assert_eq!(answer.status, if is_open { 204 } else { 405 }, "{path}");
        assert_eq!(answer.first("access-control-allow-origin").is_some(), is_open, "{path}");
    }
}

#[test]
fn each_place_has_its_methods() {
    let authority = Authority::new(ISSUER, settings());
    for (method, path, status) in [
        ("GET", "/token", 405),
        ("DELETE", "/jwks", 405),
        ("HEAD", "/jwks", 200),
        ("HEAD", "/.well-known/oauth-authorization-server", 200),
        ("HEAD", "/.well-known/openid-configuration", 200),
        ("POST", "/authorize", 405),
        ("GET", "/authorize/decision", 405),
        ("GET", "/", 200),
        ("GET", "/nowhere", 404),
        ("GET", "/tokens", 404),
    ] {
        assert_eq!(
            authority.answer(Request::new(method, path, start())).status,
            status,
            "{method} {path}"
        );
    }
}

/// A page that renames itself to this machine would be let in otherwise.
#[test]
fn another_host_is_not_served() {
    for (issuer, host, status) in [
        (ISSUER, "localhost:9000", 200),
        (ISSUER, "127.0.0.1:9000", 200),
        (ISSUER, "[::1]:9000", 200),
        (ISSUER, "evil.example", 421),
        (ISSUER, "localhost.evil.example:9000", 421),
        (ISSUER, "evil.example@localhost", 421),
        ("https://id.example", "id.example", 200),
        ("https://id.example", "ID.example:443", 200),
        ("https://id.example", "localhost", 421),
    ] {
        let authority = Authority::new(issuer, settings());
        let request = Request::get("/jwks", start()).header("Host", host);
        assert_eq!(authority.answer(request).status, status, "{issuer} {host}");
    }
}
