//! Refresh tokens: each once, the one before forgiven for a minute, anything older ends the login.

use crate::transcript::{ISSUER, Talk, check, check_with, settings};
use std::time::Duration;
use trunkline_authority::Authority;

const LOGIN: &str = "
    authorize scope=files:read+files:write
    < 303 code=?
    exchange
    < 200 refresh_token=?
    set first=$refresh_token
";

#[test]
fn each_refresh_token_is_followed_by_another() {
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    talk.run(LOGIN);
    talk.run(
        "
        refresh
        < 200 access_token=? refresh_token=? token_type=Bearer scope=files:read+files:write
        set second=$refresh_token
        refresh
        < 200 access_token=? refresh_token=?
        ",
    );
    let names = ["first", "second", "refresh_token"].map(|it| talk.values[it].clone());
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
    assert_eq!((talk.authority.stats().refreshes, talk.authority.stats().graces), (2, 0));
    assert_eq!(talk.answer.unwrap().first("cache-control"), Some("no-store"));
}

/// The answer to a refresh got lost: whoever asked has the old token alone.
#[test]
fn the_token_before_is_forgiven_until_the_new_one_is_used() {
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    talk.run(LOGIN);
    talk.run(
        r#"
        refresh
        < 200 refresh_token=?
        set second=$refresh_token
        wait 59
        refresh refresh_token=$first
        < 200 access_token=? refresh_token=$second
        refresh refresh_token=$second
        < 200 refresh_token=?
        set third=$refresh_token
        refresh refresh_token=$first
        < 400 error=invalid_grant access_token=-
        "The refresh token was used before; the login is over."
        refresh refresh_token=$third
        < 400 error=invalid_grant
        "The refresh token is not known here, or no longer."
        "#,
    );
    let stats = talk.authority.stats();
    assert_eq!((stats.refreshes, stats.graces, stats.reuses), (2, 1, 1));
}

#[test]
fn the_token_before_is_forgiven_for_a_minute() {
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    talk.run(LOGIN);
    talk.run(
        r#"
        refresh
        < 200 access_token=? refresh_token=?
        wait 60
        refresh refresh_token=$first
        < 400 error=invalid_grant
        "The refresh token was used before; the login is over."
        refresh
        < 400 error=invalid_grant
        > POST /introspect token=$access_token client_id=mcp-server client_secret=s3rver
        < 200 active=false
        "#,
    );
}

#[test]
fn a_refresh_token_is_for_its_client_its_scopes_and_its_resource() {
    check(&format!(
        r#"{LOGIN}
        refresh client_id=other
        < 400 error=invalid_grant
        "The refresh token was given to another client."
        refresh client_id=-
        < 401 error=invalid_client
        refresh scope=files:read+admin
        < 400 error=invalid_scope
        "The `scope` holds one that was not granted; ask for authorization again."
        refresh resource=http://localhost:3001/mcp
        < 400 error=invalid_target
        "The `resource` is another than the one that was authorized."
        refresh refresh_token=guessed
        < 400 error=invalid_grant
        "The refresh token is not known here, or no longer."
        refresh scope=files:read resource=$resource
        < 200 scope=files:read refresh_token=?
        refresh
        < 200 scope=files:read+files:write
        "#
    ));
}

#[test]
fn a_login_that_nobody_refreshes_ends() {
    let settings = settings().refresh_lifetime(Duration::from_secs(100));
    check_with(
        settings,
        &[],
        &format!(
            r#"{LOGIN}
            wait 99
            refresh
            < 200 refresh_token=?
            wait 99
            refresh
            < 200 refresh_token=?
            wait 100
            refresh
            < 400 error=invalid_grant
            "The refresh token is not known here, or no longer."
            "#
        ),
    );
}
