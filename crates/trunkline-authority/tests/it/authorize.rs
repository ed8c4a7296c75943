//! The authorization endpoint: what is sent back to the client, and when nobody is sent anywhere.

use crate::transcript::{Talk, check, check_with, settings};
use trunkline_authority::Authority;

#[test]
fn an_approved_wish_comes_back_with_code_state_and_issuer() {
    check(
        "
        authorize state=s1
        < 303 code=? state=s1 iss=$issuer error=-
        authorize
        < 303 code=? state=- iss=$issuer
        ",
    );
}

#[test]
fn what_is_wrong_with_the_wish_is_told_to_the_client() {
    check(
        r#"
        authorize response_type=token state=s1
        < 303 error=unsupported_response_type state=s1 iss=$issuer code=-
        "`response_type` is not `code`, which is all there is here."
        authorize response_type=-
        < 303 error=invalid_request
        "`response_type` is missing; send it."
        authorize code_challenge=-
        < 303 error=invalid_request
        "`code_challenge` is missing; send it."
        authorize code_challenge=short
        < 303 error=invalid_request
        "`code_challenge` is not the digest of a verifier."
        authorize code_challenge_method=-
        < 303 error=invalid_request
        "`code_challenge_method` has to be `S256`."
        authorize code_challenge_method=plain
        < 303 error=invalid_request
        "`code_challenge_method` has to be `S256`."
        authorize scope=files:read &scope=admin
        < 303 error=invalid_request
        "`scope` is there twice; send it once."
        authorize request=eyJ
        < 303 error=request_not_supported
        "Send the fields themselves."
        "#,
    );
}

#[test]
fn scopes_are_those_known_and_registered() {
    check(
        r#"
        authorize scope=files:read+root
        < 303 error=invalid_scope code=-
        "The `scope` holds one that is not known here."
        authorize scope=files:read+admin
        < 303 error=invalid_scope code=-
        "The `scope` holds one that the client did not register for."
        authorize client_id=other scope=files:read+admin
        < 303 error=- code=?
        "#,
    );
}

#[test]
fn a_resource_is_one_and_known() {
    check(
        r#"
        authorize resource=http://localhost:3000/other
        < 303 error=invalid_target code=-
        "The `resource` is not one of this server's."
        authorize resource=http://localhost:3000/mcp/
        < 303 error=invalid_target code=-
        authorize resource=$resource &resource=http://localhost:3001/mcp
        < 303 error=invalid_target code=-
        "A token is for one `resource`; ask for one at a time."
        authorize resource=$resource &resource=$resource
        < 303 error=- code=?
        authorize resource=-
        < 303 error=- code=?
        exchange resource=-
        < 200 access_token=?
        "#,
    );
}

#[test]
fn a_server_without_resources_takes_any_that_is_an_absolute_url() {
    let settings = trunkline_authority::Settings::new()
        .approve_as("alice")
        .client(trunkline_authority::Client::new("tool").redirect("http://127.0.0.1/callback"));
    check_with(
        settings,
        &[],
        "
        authorize scope=- resource=https://anywhere.example/mcp
        < 303 code=? error=-
        authorize scope=- resource=https://anywhere.example/mcp#part
        < 303 code=- error=invalid_target
        authorize scope=- resource=mcp
        < 303 code=- error=invalid_target
        ",
    );
}

/// Until it is clear where the answer may go, it is shown and not sent.
#[test]
fn nobody_is_sent_to_an_address_that_is_not_registered() {
    for (asked, why) in [
        ("client_id=nobody", "not known here"),
        ("client_id=-", "<code>client_id</code> is missing"),
        ("client_id=tool &client_id=other", "<code>client_id</code> is there twice"),
        ("redirect_uri=http://127.0.0.1:7777/other", "has not registered"),
        ("redirect_uri=http://localhost:7777/callback", "has not registered"),
        ("redirect_uri=https://127.0.0.1:7777/callback", "has not registered"),
        ("redirect_uri=http://127.0.0.1:7777/callback?x=1", "has not registered"),
        ("redirect_uri=http://127.0.0.1:7777/callback/../x", "has not registered"),
        ("redirect_uri=http://127.0.0.1.evil.example/callback", "has not registered"),
        ("redirect_uri=javascript:alert(1)", "has not registered"),
        ("client_id=web", "has not registered"),
        ("state=a &state=b", "<code>state</code> is there twice"),
    ] {
        let mut talk = Talk::new(Authority::new("http://localhost:9000", settings()));
        talk.run(&format!("authorize {asked}\n< 400"));
        let answer = talk.answer.unwrap();
        assert_eq!(answer.first("location"), None, "{asked}");
        assert!(answer.body.contains(why), "{asked}: {}", answer.body);
        assert!(answer.body.contains("not for production"), "every page says what it is");
        assert_eq!(talk.authority.stats().refusals, 1);
    }
}

#[test]
fn on_this_machine_the_port_is_free_and_a_single_redirect_need_not_be_said() {
    let mut talk = Talk::new(Authority::new("http://localhost:9000", settings()));
    talk.run("authorize redirect_uri=http://127.0.0.1:1/callback\n< 303 code=?");
    let sent = talk.answer.as_ref().unwrap().first("location").unwrap().to_owned();
    assert!(sent.starts_with("http://127.0.0.1:1/callback?code="), "{sent}");
    talk.run("authorize redirect_uri=- client_id=web\n< 303 code=?");
    let sent = talk.answer.as_ref().unwrap().first("location").unwrap().to_owned();
    assert!(sent.starts_with("https://app.example/callback?code="), "{sent}");
    // Said neither time, it need not be said the second time.
    talk.run(
        "
        exchange redirect_uri=- client_id=web client_secret=s3cret
        < 200 access_token=?
        ",
    );
}
