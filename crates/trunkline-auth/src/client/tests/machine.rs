//! Clients that need no person.

use super::*;
use crate::client::{ClientAuth, Enterprise, Grant, TokenSource};
use crate::jose::SigningKey;

pub(super) const BASIC: &str =
    r#","token_endpoint_auth_methods_supported":["client_secret_basic"]"#;

const ISSUER: &str = "https://id.example";

pub(super) fn report() -> Grant {
    Grant::ClientCredentials(ClientAuth::secret("report", "s3cret"))
}

pub(super) fn start(more: &str) -> String {
    ["background\n> MCP -\n< 401 Bearer scope=\"a\"\n", &resource(""), &issuer(more)].concat()
}

pub(super) const GIVES: &str = r#"
    < 200 {"access_token":"t-1","token_type":"Bearer","expires_in":60,"refresh_token":"never"}
    > MCP Bearer t-1
    < 200
    = 200
"#;

#[test]
fn a_machine_shows_its_secret() {
    let asks = "> POST https://id.example/token grant_type=client_credentials resource=https://mcp.example/mcp scope=a [basic report:s3cret]";
    let transcript = check_with(
        |it| it.grant(report()).for_issuer(ISSUER),
        &[
            &start(BASIC),
            asks,
            GIVES,
            // It asks anew when the token has ended, and after it was refused.
            "wait 60\nbackground\n> MCP -\n< 401 Bearer scope=\"a\"\n",
            &resource(""),
            &issuer(BASIC),
            asks,
            &GIVES.replace("t-1", "t-2"),
            "background\n> MCP Bearer t-2\n< 401 Bearer scope=\"a\"\n",
            &resource(""),
            &issuer(BASIC),
            asks,
            &GIVES.replace("t-1", "t-3"),
        ]
        .concat(),
    );
    let kept = transcript.kept("token machine:report");
    assert!(kept["refresh"].is_null() && !kept.to_string().contains("s3cret"));
}

#[test]
fn a_machine_steps_up_by_itself() {
    let asks = |scope: &str| {
        format!(
            "> POST https://id.example/token grant_type=client_credentials resource=https://mcp.example/mcp scope={scope} [basic report:s3cret]"
        )
    };
    check_with(
        |it| it.grant(report()).for_issuer(ISSUER),
        &[
            &start(BASIC),
            &asks("a"),
            GIVES,
            "background\n> MCP Bearer t-1\n< 403 Bearer error=\"insufficient_scope\", scope=\"b\"\n",
            &resource(""),
            &issuer(BASIC),
            &asks("a b"),
            &GIVES.replace("t-1", "t-2"),
        ]
        .concat(),
    );
}

#[test]
fn a_machine_signs_for_the_issuer_with_its_key() {
    let pkcs8 = SigningKey::generate().pkcs8().to_vec();
    let key = || SigningKey::from_pkcs8(&pkcs8, crate::jose::Algorithm::ES256).unwrap();
    let more = r#","token_endpoint_auth_methods_supported":["private_key_jwt"]"#;
    let asks = "> POST https://id.example/token grant_type=client_credentials resource=https://mcp.example/mcp scope=a client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer client_assertion=*.*.*";
    check_with(
        |it| it.grant(Grant::ClientCredentials(ClientAuth::private_key("report", key()))),
        &[&start(more), asks, GIVES].concat(),
    );
    let error = "! The authorization server takes no keys from clients, only client_secret_basic. \
        Give `report` one of these.";
    check_with(
        |it| it.grant(Grant::ClientCredentials(ClientAuth::private_key("report", key()))),
        &[&*start(BASIC), error].concat(),
    );
}

#[test]
fn what_a_machine_signs_says_who_to_whom_and_until_when() {
    let key = SigningKey::generate().named("k-7");
    let jwk = key.public().clone();
    let auth = ClientAuth::private_key("report", key);
    let client = crate::client::register::Client::given(&auth, &[]).ok().unwrap();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let assert =
        || crate::client::token::assert_client(&client, "https://id.example", now).unwrap();
    let token = assert();
    let verified = jose::verify_with(&token, &jwk, &[jose::Algorithm::ES256]).unwrap();
    assert_eq!(verified.header.kid.as_deref(), Some("k-7"));
    let claims: serde_json::Value = serde_json::from_slice(&verified.payload).unwrap();
    assert_eq!((&claims["iss"], &claims["sub"]), (&"report".into(), &"report".into()));
    assert_eq!(claims["aud"], "https://id.example");
    assert_eq!((&claims["iat"], &claims["exp"]), (&1000.into(), &1060.into()));
    let other: serde_json::Value =
        serde_json::from_slice(&jose::unverified_payload(&assert()).unwrap()).unwrap();
    assert_ne!(claims["jti"], other["jti"]);
}

#[test]
fn a_machine_is_refused_in_the_words_of_its_server() {
    let asks = "> POST https://id.example/token grant_type=client_credentials *";
    let end = "\n< 401 {\"error\":\"invalid_client\"}
        ! `https://id.example` answers `invalid_client`. Check the client's credentials, or log out and in again to register anew.";
    check_with(|it| it.grant(report()).for_issuer(ISSUER), &[&*start(BASIC), asks, end].concat());
}

#[test]
fn a_machine_stays_with_its_issuer() {
    let moved = resource("").replace("https://id", "https://new");
    let document = issuer(BASIC).replace("https://id", "https://new");
    check_with(
        |it| it.grant(report()).trust_first_issuer(),
        &[
            &start(BASIC),
            "> POST https://id.example/token *",
            GIVES,
            "background\n> MCP Bearer t-1\n< 401 Bearer\n",
            &moved,
            &document,
            "! The client's credentials are those of `https://id.example`, but \
             `https://mcp.example/mcp` now names `https://new.example`. *",
        ]
        .concat(),
    );
}

#[test]
fn a_workload_shows_its_token_once() {
    let grant = || Grant::Assertion {
        client: ClientAuth::public("build-7"),
        assertion: TokenSource::new(|issuer| async move { Ok(format!("jwt-for-{issuer}")) }),
    };
    let asks = "> POST https://id.example/token grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer assertion=jwt-for-https://id.example resource=https://mcp.example/mcp scope=a client_id=build-7";
    check_with(|it| it.grant(grant()).for_issuer(ISSUER), &[&*start(""), asks, GIVES].concat());
    for code in ["invalid_grant", "invalid_scope", "unauthorized_client"] {
        let end =
            format!("\n< 400 {{\"error\":\"{code}\"}}\n! `https://id.example` answers `{code}`.*");
        check_with(|it| it.grant(grant()).for_issuer(ISSUER), &[&*start(""), asks, &end].concat());
    }
    let empty = || Grant::Assertion {
        client: ClientAuth::public("build-7"),
        assertion: TokenSource::new(|_| async { Err("The platform gives no token.".to_owned()) }),
    };
    check_with(
        |it| it.grant(empty()).for_issuer(ISSUER),
        &[&*start(""), "! The platform gives no token."].concat(),
    );
}

pub(super) fn enterprise() -> Enterprise {
    Enterprise::new(
        "https://idp.example",
        ClientAuth::public("editor-at-acme"),
        TokenSource::fixed("id-token"),
        ClientAuth::secret("editor", "s3cret"),
    )
}

const EXCHANGES: &str = "> POST https://idp.example/token grant_type=urn:ietf:params:oauth:grant-type:token-exchange requested_token_type=urn:ietf:params:oauth:token-type:id-jag audience=https://id.example resource=https://mcp.example/mcp subject_token=id-token subject_token_type=urn:ietf:params:oauth:token-type:id_token scope=a client_id=editor-at-acme";
const ASSERTS: &str = "> POST https://id.example/token grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer assertion=jag-1 resource=https://mcp.example/mcp scope=a [basic editor:s3cret]";

#[test]
fn a_company_decides_by_its_identity_provider() {
    let jag = "\n< 200 {\"access_token\":\"jag-1\",\"issued_token_type\":\"urn:ietf:params:oauth:token-type:id-jag\",\"token_type\":\"N_A\"}\n";
    let known = || Grant::Enterprise(enterprise().idp_token_endpoint("https://idp.example/token"));
    check_with(
        |it| it.grant(known()).for_issuer(ISSUER),
        &[&*start(BASIC), EXCHANGES, jag, ASSERTS, GIVES].concat(),
    );
    // Its endpoint is found out where it is not known.
    let document = "> GET https://idp.example/.well-known/oauth-authorization-server\n< 404
        > GET https://idp.example/.well-known/openid-configuration
        < 200 {\"issuer\":\"https://idp.example\",\"token_endpoint\":\"https://idp.example/token\"}\n";
    check_with(
        |it| it.grant(Grant::Enterprise(enterprise())).for_issuer(ISSUER),
        &[&*start(BASIC), document, EXCHANGES, jag, ASSERTS, GIVES].concat(),
    );
    for (answer, error) in [
        (
            r#"400 {"error":"invalid_grant"}"#,
            "! `https://idp.example` answers `invalid_grant`. Log in again.",
        ),
        (
            r#"200 {"access_token":"x","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}"#,
            "! `https://idp.example` cannot be used to log in: its answer is no ID-JAG. Tell its operator.",
        ),
        (
            "200 {}",
            "! `https://idp.example` cannot be used to log in: its answer is no ID-JAG. Tell its operator.",
        ),
    ] {
        let end = format!("\n< {answer}\n{error}");
        check_with(
            |it| it.grant(known()).for_issuer(ISSUER),
            &[&*start(BASIC), EXCHANGES, &end].concat(),
        );
    }
    let plain = || Grant::Enterprise(enterprise().idp_token_endpoint("http://idp.example/token"));
    let error = "! The token endpoint of the identity provider is at `http://idp.example/token`, *";
    check_with(|it| it.grant(plain()).for_issuer(ISSUER), &[&*start(BASIC), error].concat());
}
