//! A code → tokens, once, for whoever began.

use crate::transcript::{ISSUER, RESOURCE, Talk, check, check_with, settings, start};
use std::time::Duration;
use trunkline_auth::jose::{Algorithm, verify};
use trunkline_authority::Authority;

#[test]
fn a_code_becomes_tokens() {
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    talk.run(
        "
        authorize scope=files:read+files:write
        < 303 code=?
        exchange
        < 200 token_type=Bearer expires_in=3600 scope=files:read+files:write access_token=? refresh_token=? id_token=-
        ",
    );
    let answer = talk.answer.as_ref().unwrap();
    assert_eq!(answer.first("cache-control"), Some("no-store"));
    assert_eq!(answer.first("pragma"), Some("no-cache"));
    let token =
        verify(&talk.values["access_token"], &talk.authority.keys(), &[Algorithm::ES256]).unwrap();
    assert_eq!(token.header.typ.as_deref(), Some("at+jwt"));
    let mut claims: serde_json::Value = serde_json::from_slice(&token.payload).unwrap();
    let name = claims["jti"].take();
    assert_eq!(name.as_str().unwrap().len(), 32);
    let expected = serde_json::json!({
        "iss": ISSUER, "sub": "alice", "aud": RESOURCE, "client_id": "tool",
        "scope": "files:read files:write", "iat": 1_800_000_000, "exp": 1_800_003_600, "jti": null,
    });
    assert_eq!(claims, expected);
    let stats = talk.authority.stats();
    assert_eq!(
        (stats.authorizations, stats.codes, stats.token_requests, stats.tokens),
        (1, 1, 1, 1)
    );
}

#[test]
fn a_wrong_verifier_spends_the_code() {
    check(
        r#"
        authorize
        < 303 code=?
        exchange code_verifier=wrongwrongwrongwrongwrongwrongwrongwrongwrong
        < 400 error=invalid_grant access_token=-
        "`code_verifier` is not the one of the `code_challenge`."
        exchange
        < 400 error=invalid_grant access_token=-
        "The code was used before; the tokens that came of it are revoked."
        authorize
        < 303 code=?
        exchange code_verifier=-
        < 400 error=invalid_request access_token=-
        "`code_verifier` is missing; send it."
        "#,
    );
}

#[test]
fn a_code_used_twice_revokes_what_came_of_it() {
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    talk.run(
        r#"
        authorize
        < 303 code=?
        exchange
        < 200 access_token=? refresh_token=?
        > POST /introspect token=$access_token client_id=mcp-server client_secret=s3rver
        < 200 active=true
        exchange
        < 400 error=invalid_grant access_token=-
        "The code was used before; the tokens that came of it are revoked."
        > POST /introspect token=$access_token client_id=mcp-server client_secret=s3rver
        < 200 active=false
        refresh
        < 400 error=invalid_grant
        "The refresh token is not known here, or no longer."
        "#,
    );
    assert_eq!(talk.authority.stats().reuses, 1);
}

#[test]
fn a_code_is_for_the_client_the_redirect_and_the_resource_it_was_asked_for() {
    check(
        r#"
        authorize
        < 303 code=?
        exchange client_id=other
        < 400 error=invalid_grant
        "The code was given to another client."
        exchange
        < 200 access_token=?
        authorize
        < 303 code=?
        exchange redirect_uri=http://127.0.0.1:7778/callback
        < 400 error=invalid_grant
        "`redirect_uri` is another than the one that was authorized."
        authorize
        < 303 code=?
        exchange redirect_uri=-
        < 400 error=invalid_grant
        "`redirect_uri` is missing; send the one that was authorized."
        authorize
        < 303 code=?
        exchange resource=http://localhost:3001/mcp
        < 400 error=invalid_target
        "The `resource` is another than the one that was authorized."
        authorize
        < 303 code=?
        exchange resource=-
        < 200 access_token=?
        "#,
    );
}

#[test]
fn a_code_lasts_a_minute() {
    check(
        r#"
        authorize
        < 303 code=?
        wait 59
        exchange
        < 200 access_token=?
        authorize
        < 303 code=?
        wait 60
        exchange
        < 400 error=invalid_grant
        "The code has expired."
        exchange code=guessed
        < 400 error=invalid_grant
        "The code is not known here, or no longer."
        "#,
    );
}

#[test]
fn refresh_tokens_and_id_tokens_are_for_those_who_ask() {
    let mut talk = Talk::new(Authority::new(
        ISSUER,
        settings().scopes(["files:read", "offline_access", "openid"]),
    ));
    talk.run(
        "
        authorize client_id=other
        < 303 code=?
        exchange client_id=other
        < 200 access_token=? refresh_token=- id_token=-
        authorize client_id=other scope=files:read+offline_access+openid nonce=n1
        < 303 code=?
        exchange client_id=other
        < 200 access_token=? refresh_token=? id_token=? scope=files:read+offline_access+openid
        ",
    );
    let token =
        verify(&talk.values["id_token"], &talk.authority.keys(), &[Algorithm::ES256]).unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&token.payload).unwrap();
    assert_eq!(
        (&claims["sub"], &claims["aud"], &claims["nonce"]),
        (&"alice".into(), &"other".into(), &"n1".into())
    );
}

#[test]
fn tokens_last_as_long_as_said() {
    let settings = settings().access_lifetime(Duration::from_secs(5));
    check_with(
        settings,
        &[],
        "
        authorize
        < 303 code=?
        exchange
        < 200 expires_in=5 access_token=?
        wait 4
        > POST /introspect token=$access_token client_id=mcp-server client_secret=s3rver
        < 200 active=true
        wait 1
        > POST /introspect token=$access_token client_id=mcp-server client_secret=s3rver
        < 200 active=false
        ",
    );
}

#[test]
fn new_keys_sign_and_old_ones_are_published() {
    let authority = Authority::new(ISSUER, settings());
    let old = authority.token("alice", RESOURCE, "files:read", start());
    authority.rotate_keys();
    let new = authority.token("alice", RESOURCE, "files:read", start());
    for token in [&old, &new] {
        assert!(verify(token, &authority.keys(), &[Algorithm::ES256]).is_ok());
    }
    let kid = |token: &str| trunkline_auth::jose::peek(token).unwrap().kid;
    assert_ne!(kid(&old), kid(&new));
}
