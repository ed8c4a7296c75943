//! What tokens are worth, and giving them back.

use crate::transcript::{ISSUER, Talk, check, check_with, settings};
use serde_json::json;
use trunkline_authority::Authority;

const LOGIN: &str = "
    authorize
    < 303 code=?
    exchange
    < 200 access_token=? refresh_token=?
";

#[test]
fn a_resource_server_learns_what_a_token_is_worth() {
    for settings in [settings(), settings().opaque_tokens()] {
        let mut talk = Talk::new(Authority::new(ISSUER, settings));
        talk.run(LOGIN);
        talk.run("> POST /introspect token=$access_token client_id=mcp-server client_secret=s3rver\n< 200 active=true");
        let mut answer = talk.answer.as_ref().unwrap().json();
        answer["jti"].take();
        let expected = json!({
            "active": true, "iss": ISSUER, "sub": "alice", "username": "alice", "client_id": "tool",
            "aud": "http://localhost:3000/mcp", "scope": "files:read", "token_type": "Bearer",
            "iat": 1_800_000_000, "exp": 1_800_003_600, "jti": null,
        });
        assert_eq!(answer, expected);
        assert_eq!(talk.authority.stats().introspections, 1);
    }
}

#[test]
fn only_those_who_authenticate_may_ask_and_others_learn_of_their_own_alone() {
    check(&format!(
        r#"{LOGIN}
        > POST /introspect token=$access_token
        < 401 error=invalid_client
        > POST /introspect token=$access_token client_id=tool
        < 401 error=invalid_client
        "Only those who authenticate may ask."
        > POST /introspect token=$access_token client_id=mcp-server client_secret=wrong
        < 401 error=invalid_client
        > POST /introspect token=$access_token client_id=web client_secret=s3cret
        < 200 active=false sub=-
        > POST /introspect token=nonsense client_id=mcp-server client_secret=s3rver
        < 200 active=false
        > POST /introspect token=$refresh_token client_id=mcp-server client_secret=s3rver
        < 200 active=false
        "#
    ));
}

#[test]
fn a_token_can_be_given_back() {
    for settings in [settings(), settings().opaque_tokens()] {
        check_with(
            settings,
            &[],
            &format!(
                r#"{LOGIN}
                > POST /revoke token=$access_token client_id=other
                < 400 error=unauthorized_client
                "The token was given to another client."
                > POST /revoke token=$refresh_token client_id=other
                < 400 error=unauthorized_client
                > POST /revoke token=$access_token
                < 401 error=invalid_client
                > POST /revoke token=$access_token client_id=tool
                < 200
                > POST /introspect token=$access_token client_id=mcp-server client_secret=s3rver
                < 200 active=false
                refresh
                < 200 access_token=? refresh_token=?
                > POST /revoke token=$refresh_token client_id=tool token_type_hint=refresh_token
                < 200
                > POST /introspect token=$access_token client_id=mcp-server client_secret=s3rver
                < 200 active=false
                refresh
                < 400 error=invalid_grant
                > POST /revoke token=unknown client_id=tool
                < 200
                "#
            ),
        );
    }
}
