//! Assertions of others: an identity provider's about a user, a platform's about a workload; and
//! giving out the first kind.

use crate::transcript::{ISSUER, RESOURCE, Talk, check_with, key, settings, start};
use serde_json::{Value, json};
use trunkline_auth::jose::SigningKey;
use trunkline_authority::{Authority, Client, Request, Settings};

const PROVIDER: &str = "http://localhost:9009";
const BEARER: &str =
    "> POST /token grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer assertion=$assertion";
const EXCHANGE: &str = "> POST /token grant_type=urn:ietf:params:oauth:grant-type:token-exchange \
    requested_token_type=urn:ietf:params:oauth:token-type:id-jag \
    subject_token_type=urn:ietf:params:oauth:token-type:id_token";
const WRONG_AUDIENCE: &str = "`aud` is not this server's issuer, or not it alone.";
const UNTRUSTED: &str =
    "The assertion is of an issuer, or about a subject, that is not trusted here.";

/// An identity assertion, with some claims changed or (null) left out.
fn identity(key: &SigningKey, change: &[(&str, Value)]) -> String {
    let claims = json!({
        "iss": PROVIDER, "sub": "alice", "aud": ISSUER, "resource": RESOURCE, "client_id": "web",
        "iat": 1_800_000_000, "exp": 1_800_000_300, "jti": "j-1", "scope": "files:read files:write",
    });
    key.sign(json!({ "typ": "oauth-id-jag+jwt" }), &changed(claims, change))
}

fn changed(mut claims: Value, change: &[(&str, Value)]) -> Value {
    for (name, value) in change {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(*name)),
            value => claims[*name] = value.clone(),
        }
    }
    claims
}

#[test]
fn an_identity_assertion_becomes_a_token_for_its_resource() {
    let (key, keys) = key();
    let mut talk = Talk::new(Authority::new(ISSUER, settings().identity_provider(PROVIDER, keys)));
    talk.values.insert("assertion".to_owned(), identity(&key, &[]));
    talk.run(&format!(
        "{BEARER} client_id=web client_secret=s3cret scope=files:read+admin
        < 200 token_type=Bearer scope=files:read access_token=? refresh_token=-"
    ));
    let claims = talk.claims("access_token");
    assert_eq!(
        (&claims["sub"], &claims["aud"], &claims["client_id"]),
        (&"alice".into(), &RESOURCE.into(), &"web".into())
    );
    talk.values.insert("assertion".to_owned(), identity(&key, &[("jti", json!("j-2"))]));
    talk.run(&format!(
        "{BEARER} client_id=web client_secret=s3cret
        < 200 scope=files:read+files:write"
    ));
}

#[test]
fn who_asked_for_scopes_and_gets_none_is_told() {
    let (key, keys) = key();
    let authority = Authority::new(ISSUER, settings().identity_provider(PROVIDER, keys));
    let assertion = identity(&key, &[]);
    let ask = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", &*assertion),
        ("client_id", "web"),
        ("client_secret", "s3cret"),
        ("scope", "admin"),
    ];
    let answer = authority.answer(Request::form("/token", &ask, start()));
    assert_eq!((answer.status, &answer.json()["scope"]), (200, &json!("")));
}

#[test]
fn an_identity_assertion_is_for_here_now_this_client_and_once() {
    let (key, keys) = key();
    let (stranger, _) = crate::transcript::key();
    let settings = settings().identity_provider(PROVIDER, keys);
    for (assertion, why) in [
        (identity(&key, &[("aud", json!("http://localhost:9001"))]), WRONG_AUDIENCE),
        (identity(&key, &[("aud", json!("http://localhost:9000/"))]), WRONG_AUDIENCE),
        (identity(&key, &[("aud", Value::Null)]), WRONG_AUDIENCE),
        (
            identity(&key, &[("resource", json!("http://elsewhere.example/mcp"))]),
            "The assertion is for a `resource` that is not one of this server's.",
        ),
        (identity(&key, &[("resource", Value::Null)]), "`resource` is missing in the assertion."),
        (
            identity(&key, &[("client_id", json!("other"))]),
            "The assertion was given to another client.",
        ),
        (identity(&key, &[("client_id", Value::Null)]), "`client_id` is missing in the assertion."),
        (identity(&key, &[("sub", Value::Null)]), "`sub` is missing in the assertion."),
        (identity(&key, &[("exp", json!(1_799_999_000))]), "The assertion has expired."),
        (identity(&key, &[("exp", Value::Null)]), "`exp` is missing."),
        (identity(&key, &[("iat", json!(1_800_000_100))]), "The assertion is from the future."),
        (identity(&key, &[("jti", Value::Null)]), "`jti` is missing or too long."),
        (identity(&key, &[("iss", json!("http://localhost:9010"))]), UNTRUSTED),
        (identity(&stranger, &[]), "The signature of the token is wrong."),
        // Of the right issuer, but about a workload: it is not trusted for that.
        (key.sign(json!({ "typ": "JWT" }), &json!({ "iss": PROVIDER, "sub": "alice" })), UNTRUSTED),
    ] {
        check_with(
            settings.clone(),
            &[("assertion", &assertion)],
            &format!(
                "{BEARER} client_id=web client_secret=s3cret
                < 400 error=invalid_grant access_token=-
                \"{why}\""
            ),
        );
    }
    check_with(
        settings,
        &[("assertion", &identity(&key, &[]))],
        &format!(
            r#"
            {BEARER}
            < 401 error=invalid_client
            {BEARER} client_id=other
            < 400 error=unauthorized_client
            "A client has to authenticate to use an identity assertion."
            {BEARER} client_id=web client_secret=s3cret
            < 200 access_token=?
            {BEARER} client_id=web client_secret=s3cret
            < 400 error=invalid_grant access_token=-
            "The assertion was used before."
            "#
        ),
    );
}

#[test]
fn another_resource_than_the_assertions_is_refused() {
    let (key, keys) = key();
    check_with(
        settings().identity_provider(PROVIDER, keys),
        &[("assertion", &identity(&key, &[]))],
        &format!(
            "{BEARER} client_id=web client_secret=s3cret resource=http://localhost:3001/mcp
            < 400 error=invalid_target access_token=-"
        ),
    );
}

fn workload(key: &SigningKey, change: &[(&str, Value)]) -> String {
    let claims = json!({
        "iss": "https://platform.example", "sub": "spiffe://platform/job", "aud": ISSUER,
        "iat": 1_800_000_000, "exp": 1_800_000_300,
    });
    key.sign(json!({ "typ": "JWT" }), &changed(claims, change))
}

#[test]
fn a_workload_needs_no_secret_of_its_own() {
    let (key, keys) = key();
    let settings = settings().workload("https://platform.example", keys, "spiffe://platform/job");
    let mut talk = Talk::new(Authority::new(ISSUER, settings.clone()));
    talk.values.insert("assertion".to_owned(), workload(&key, &[]));
    talk.run(&format!(
        "{BEARER} scope=files:read resource=$resource
        < 200 token_type=Bearer scope=files:read access_token=? refresh_token=-
        {BEARER} client_id=other
        < 200 access_token=?"
    ));
    let claims = talk.claims("access_token");
    assert_eq!(
        (&claims["sub"], &claims["client_id"]),
        (&"spiffe://platform/job".into(), &"other".into())
    );

    for (assertion, why) in [
        (workload(&key, &[("aud", json!("https://wrong.example"))]), WRONG_AUDIENCE),
        (workload(&key, &[("exp", json!(1_799_999_000))]), "The assertion has expired."),
        (workload(&key, &[("sub", json!("spiffe://platform/other"))]), UNTRUSTED),
        (workload(&key, &[("iss", json!("https://elsewhere.example"))]), UNTRUSTED),
        (workload(&SigningKey::generate(), &[]), "The signature of the token is wrong."),
        ("nonsense".to_owned(), "The text is not a signed token or a key set."),
    ] {
        let script = format!("{BEARER}\n< 400 error=invalid_grant access_token=-\n\"{why}\"");
        check_with(settings.clone(), &[("assertion", &assertion)], &script);
    }
    let named = workload(&key, &[("jti", json!("w-1"))]);
    check_with(
        settings,
        &[("assertion", &named)],
        &format!(
            "{BEARER} scope=root\n< 400 error=invalid_scope\n{BEARER}\n< 400 error=invalid_grant\n\
             \"The assertion was used before.\""
        ),
    );
}

/// The whole of enterprise-managed authorization, between two of ours.
#[test]
fn an_id_token_becomes_an_assertion_there_and_a_token_here() {
    let provider = Settings::new()
        .client(Client::new("desk").secret("d3sk"))
        .client(Client::new("shelf").secret("sh3lf"))
        .exchange(ISSUER, "desk", "web");
    let provider = Authority::new(PROVIDER, provider);
    let keys = provider.keys();
    let identity = provider.id_token("alice", "desk", start());
    let others = provider.id_token("alice", "shelf", start());
    let mut at_provider = Talk::new(provider);
    at_provider.values.insert("identity".to_owned(), identity);
    at_provider.values.insert("others".to_owned(), others);
    at_provider.run(&format!(
        r#"
        {EXCHANGE} client_id=desk client_secret=d3sk subject_token=$identity audience=http://localhost:9001 resource=$resource
        < 400 error=invalid_target access_token=-
        "The client may not have assertions for this `audience`."
        {EXCHANGE} client_id=shelf client_secret=sh3lf subject_token=$others audience=$issuer resource=$resource
        < 400 error=invalid_target access_token=-
        {EXCHANGE} client_id=desk client_secret=d3sk subject_token=$others audience=$issuer resource=$resource
        < 400 error=invalid_grant access_token=-
        "The `subject_token` is not good. `aud` is not this server's issuer, or not it alone."
        {EXCHANGE} client_id=desk client_secret=d3sk subject_token=x audience=$issuer resource=$resource
        < 400 error=invalid_grant access_token=-
        {EXCHANGE} client_id=desk client_secret=d3sk subject_token=$identity audience=$issuer
        < 400 error=invalid_request
        "`resource` is missing; send it."
        {EXCHANGE} client_id=desk subject_token=$identity audience=$issuer resource=$resource
        < 401 error=invalid_client
        {EXCHANGE} client_id=desk client_secret=d3sk subject_token=$identity audience=$issuer resource=$resource scope=files:read
        < 200 issued_token_type=urn:ietf:params:oauth:token-type:id-jag token_type=N_A access_token=? scope=files:read expires_in=300
        "#
    ));
    let assertion = at_provider.values["access_token"].clone();
    let mut here = Talk::new(Authority::new(ISSUER, settings().identity_provider(PROVIDER, keys)));
    here.values.insert("assertion".to_owned(), assertion);
    here.run(&format!(
        "{BEARER} client_id=web client_secret=s3cret
        < 200 scope=files:read access_token=?"
    ));
}
