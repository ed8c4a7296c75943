//! Clients that speak for themselves, and how they show who they are.

use crate::transcript::{ISSUER, RESOURCE, Talk, check, check_with, key, settings};
use base64::Engine;
use serde_json::{Value, json};
use trunkline_auth::jose::SigningKey;
use trunkline_authority::{Authority, Client};

const ASSERTED: &str = "> POST /token grant_type=client_credentials scope=files:read \
    client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer client_assertion";

fn basic(text: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
}

#[test]
fn a_secret_is_sent_in_the_header_or_in_the_body() {
    let header = basic("web:s3cret");
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    talk.values.insert("header".to_owned(), header);
    talk.run(
        "
        > POST /token grant_type=client_credentials client_id=web client_secret=s3cret scope=admin
        < 200 token_type=Bearer scope=admin refresh_token=- access_token=?
        > POST /token grant_type=client_credentials resource=http://localhost:3001/mcp
        | Authorization: $header
        < 200 access_token=? scope=-
        ",
    );
    let claims = talk.claims("access_token");
    assert_eq!(
        (&claims["sub"], &claims["aud"]),
        (&"client:web".into(), &"http://localhost:3001/mcp".into())
    );
}

#[test]
fn who_does_not_show_who_it_is_gets_nothing() {
    let (wrong, other, bearer) = (basic("web:wrong"), basic("other:s3cret"), "Bearer x".to_owned());
    let right = basic("web:s3cret");
    let values = [("wrong", &*wrong), ("other", &*other), ("bearer", &*bearer), ("right", &*right)];
    check_with(
        settings(),
        &values,
        r#"
        > POST /token grant_type=client_credentials client_id=web client_secret=wrong
        < 401 error=invalid_client
        "The secret is wrong."
        > POST /token grant_type=client_credentials
        | Authorization: $wrong
        < 401 error=invalid_client
        "The secret is wrong."
        > POST /token grant_type=client_credentials
        | Authorization: $bearer
        < 401 error=invalid_client
        "`Authorization` is not `Basic` with a name and a secret."
        > POST /token grant_type=client_credentials client_id=web
        < 401 error=invalid_client
        "The client has to authenticate by `client_secret_basic`."
        > POST /token grant_type=client_credentials client_id=nobody client_secret=x
        < 401 error=invalid_client
        "The client is not known here; register it."
        > POST /token grant_type=client_credentials
        < 401 error=invalid_client
        "The client does not say who it is; send `client_id`."
        > POST /token grant_type=client_credentials
        | Authorization: $other
        < 401 error=invalid_client
        "The client has to authenticate by `none`."
        > POST /token grant_type=client_credentials client_secret=s3cret client_id=web
        | Authorization: $right
        < 400 error=invalid_request
        "The client authenticates in two ways; use one."
        > POST /token grant_type=client_credentials client_id=tool
        | Authorization: $right
        < 400 error=invalid_request
        "`client_id` is another than in `Authorization`."
        > POST /token grant_type=client_credentials
        | Authorization: $right
        | Authorization: $right
        < 400 error=invalid_request
        "`Authorization` is there twice; send it once."
        > POST /token grant_type=client_credentials client_id=tool
        < 400 error=unauthorized_client
        "The client may not use `client_credentials`."
        > POST /token grant_type=client_credentials scope=root
        | Authorization: $right
        < 400 error=invalid_scope
        > POST /token grant_type=client_credentials resource=http://elsewhere.example/mcp
        | Authorization: $right
        < 400 error=invalid_target
        > POST /token grant_type=password username=a password=b
        | Authorization: $right
        < 400 error=unsupported_grant_type
        "This `grant_type` is not offered here."
        > POST /token grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer assertion=x
        | Authorization: $right
        < 400 error=unsupported_grant_type
        "#,
    );
}

#[test]
fn a_refused_header_says_how_to_authenticate() {
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    talk.values.insert("header".to_owned(), basic("web:wrong"));
    talk.run("> POST /token grant_type=client_credentials\n| Authorization: $header\n< 401 error=invalid_client");
    let challenge = talk.answer.as_ref().unwrap().first("www-authenticate");
    assert_eq!(challenge, Some("Basic realm=\"trunkline-authority\""));
}

#[test]
fn what_is_no_form_is_refused() {
    let authority = Authority::new(ISSUER, settings());
    let request =
        trunkline_authority::Request::json("/token", &json!({}), crate::transcript::start());
    let answer = authority.answer(request);
    assert_eq!(answer.status, 400);
    let expected = json!({
        "error": "invalid_request",
        "error_description": "The body has to be `application/x-www-form-urlencoded`.",
    });
    assert_eq!(answer.json(), expected);
    check("> POST /token a=1\n< 400 error=invalid_request\n\"`grant_type` is missing; send it.\"");
}

fn assertion(key: &SigningKey, change: &[(&str, Value)]) -> String {
    let mut claims = json!({
        "iss": "signer", "sub": "signer", "aud": ISSUER, "exp": 1_800_000_060, "iat": 1_800_000_000, "jti": "a-1",
    });
    for (name, value) in change {
        claims[*name] = value.clone();
    }
    key.sign(Value::Null, &claims)
}

#[test]
fn a_signature_shows_who_it_is_once() {
    let (key, keys) = key();
    let settings = settings().client(Client::new("signer").keys(keys));
    let (good, next) =
        (assertion(&key, &[]), assertion(&key, &[("jti", json!("a-2")), ("aud", json!([ISSUER]))]));
    check_with(
        settings,
        &[("good", &good), ("next", &next)],
        &format!(
            r#"
            {ASSERTED}=$good resource={RESOURCE}
            < 200 token_type=Bearer scope=files:read access_token=?
            {ASSERTED}=$good
            < 401 error=invalid_client access_token=-
            "The assertion was used before."
            {ASSERTED}=$next client_id=signer
            < 200 access_token=?
            {ASSERTED}=$next client_id=other
            < 401 error=invalid_client
            "`sub` is another than `client_id`."
            "#
        ),
    );
}

#[test]
fn a_signature_has_to_be_for_here_and_now() {
    let (key, keys) = key();
    let settings = settings().client(Client::new("signer").keys(keys));
    let (stranger, _) = crate::transcript::key();
    for (assertion, why) in [
        (assertion(&key, &[("aud", json!("http://localhost:9001"))]), WRONG_AUDIENCE),
        (assertion(&key, &[("aud", json!("http://localhost:9000/"))]), WRONG_AUDIENCE),
        (assertion(&key, &[("aud", json!([ISSUER, "http://localhost:9001"]))]), WRONG_AUDIENCE),
        (assertion(&key, &[("aud", Value::Null)]), WRONG_AUDIENCE),
        (assertion(&key, &[("exp", json!(1_799_999_995))]), "The assertion has expired."),
        (assertion(&key, &[("exp", json!("soon"))]), "`exp` is not a time."),
        (assertion(&key, &[("exp", json!(1_800_003_700))]), "`exp` is more than an hour away."),
        (assertion(&key, &[("iat", json!(1_800_000_010))]), "The assertion is from the future."),
        (assertion(&key, &[("nbf", json!(1_800_000_010))]), "The assertion is from the future."),
        (assertion(&key, &[("iss", json!("other"))]), "`iss` is not the one that was expected."),
        (assertion(&key, &[("jti", json!(""))]), "`jti` is missing or too long."),
        (assertion(&stranger, &[]), "The signature of the token is wrong."),
        (
            assertion(&key, &[("sub", json!("web"))]),
            "The client has to authenticate by `client_secret_basic`.",
        ),
        (
            assertion(&key, &[("sub", json!("nobody"))]),
            "The client is not known here; register it.",
        ),
        (
            "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzaWduZXIifQ.".to_owned(),
            "The token is signed with an algorithm that is not allowed here.",
        ),
        ("nothing".to_owned(), "The assertion is not a JWT."),
    ] {
        check_with(
            settings.clone(),
            &[("assertion", &assertion)],
            &format!("{ASSERTED}=$assertion\n< 401 error=invalid_client access_token=-\n\"{why}\""),
        );
    }
    let value = [("assertion", &*assertion(&key, &[]))];
    let script = ASSERTED.replace("client-assertion-type:jwt-bearer", "client-assertion-type:saml");
    check_with(settings, &value, &format!("{script}=$assertion\n< 400 error=invalid_request"));
}

const WRONG_AUDIENCE: &str = "`aud` is not this server's issuer, or not it alone.";
