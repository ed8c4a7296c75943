//! Clients that register themselves.

use crate::transcript::{ISSUER, Talk, key, settings, start};
use serde_json::{Value, json};
use trunkline_authority::{Authority, Request, Response};

fn register(authority: &Authority, metadata: &Value) -> Response {
    authority.answer(Request::json("/register", metadata, start()))
}

#[test]
fn a_registered_client_logs_in() {
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    let answer = register(
        &talk.authority,
        &json!({
            "client_name": "Editor", "redirect_uris": ["http://127.0.0.1/callback"], "application_type": "native",
            "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"], "scope": "files:read",
        }),
    );
    assert_eq!(answer.status, 201);
    assert_eq!(answer.first("cache-control"), Some("no-store"));
    let mut said = answer.json();
    let id = said["client_id"].take();
    let expected = json!({
        "client_id": null, "client_id_issued_at": 1_800_000_000, "client_name": "Editor",
        "redirect_uris": ["http://127.0.0.1/callback"], "application_type": "native",
        "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"], "scope": "files:read files:write admin",
    });
    assert_eq!(said, expected);
    talk.values.insert("id".to_owned(), id.as_str().unwrap().to_owned());
    talk.run(
        "
        authorize client_id=$id
        < 303 code=?
        exchange client_id=$id
        < 200 access_token=? refresh_token=?
        authorize client_id=$id scope=files:read+files:write
        < 303 code=?
        authorize client_id=$id scope=root
        < 303 error=invalid_scope
        > POST /token grant_type=client_credentials client_id=$id
        < 400 error=unauthorized_client
        ",
    );
    assert_eq!(talk.authority.stats().registrations, 1);
}

#[test]
fn a_secret_is_made_for_those_who_can_keep_one_and_sent_as_agreed() {
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    for (method, ok, not_ok) in [
        ("client_secret_post", "client_id=$id client_secret=$secret", "client_id=$id"),
        ("client_secret_basic", "", "client_id=$id client_secret=$secret"),
    ] {
        let metadata = json!({
            "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": method,
        });
        let answer = register(&talk.authority, &metadata).json();
        assert_eq!(answer["client_secret_expires_at"], 0);
        assert_eq!(answer["grant_types"], json!(["authorization_code"]));
        let (id, secret) =
            (answer["client_id"].as_str().unwrap(), answer["client_secret"].as_str().unwrap());
        talk.values.insert("id".to_owned(), id.to_owned());
        talk.values.insert("secret".to_owned(), secret.to_owned());
        let header = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            format!("{id}:{secret}"),
        );
        talk.values.insert("header".to_owned(), format!("Basic {header}"));
        let header = if ok.is_empty() { "| Authorization: $header" } else { "" };
        talk.run(&format!(
            "
            authorize client_id=$id
            < 303 code=?
            exchange {not_ok}
            < 401 error=invalid_client
            exchange client_id=- {ok}
            {header}
            < 200 access_token=? refresh_token=-
            "
        ));
    }
}

#[test]
fn a_client_can_register_its_keys() {
    let (key, _) = key();
    let authority = Authority::new(ISSUER, settings());
    let mut metadata = json!({
        "redirect_uris": ["https://app.example/callback"], "token_endpoint_auth_method": "private_key_jwt",
        "jwks": { "keys": [key.public()] },
    });
    let answer = register(&authority, &metadata);
    assert_eq!((answer.status, answer.json().get("client_secret")), (201, None));
    metadata["jwks"] = json!({ "keys": [] });
    assert_eq!(register(&authority, &metadata).json()["error"], "invalid_client_metadata");
    metadata.as_object_mut().unwrap().remove("jwks");
    metadata["jwks_uri"] = "https://app.example/jwks".into();
    assert_eq!(register(&authority, &metadata).json()["error"], "invalid_client_metadata");
}

#[test]
fn what_cannot_be_registered_is_refused_with_a_sentence() {
    let authority = Authority::new(ISSUER, settings());
    let good = json!({ "redirect_uris": ["http://127.0.0.1/callback"] });
    const LIST: &str = "`redirect_uris` has to be a list of one to twenty URIs.";
    let redirects = [
        (json!({ "redirect_uris": null }), LIST),
        (json!({ "redirect_uris": [] }), LIST),
        (
            json!({ "redirect_uris": ["http://app.example/callback"] }),
            "The redirect URI `http://app.example/callback` is not encrypted; use `https`, or `http` with `127.0.0.1`, `[::1]` or `localhost`.",
        ),
        (
            json!({ "application_type": "web" }),
            "The redirect URI `http://127.0.0.1/callback` is on the user's own machine; register with `\"application_type\": \"native\"`.",
        ),
        (
            json!({ "redirect_uris": ["javascript:alert(1)"] }),
            "The redirect URI `javascript:alert(1)` has a scheme that leads to no application.",
        ),
    ];
    let others = [
        (json!({ "redirect_uris": "x" }), "`redirect_uris` is not a list of texts."),
        (
            json!({ "application_type": "toaster" }),
            "`application_type` is neither `native` nor `web`.",
        ),
        (
            json!({ "grant_types": ["client_credentials"] }),
            "`grant_types` has to hold `authorization_code`.",
        ),
        (json!({ "response_types": ["token"] }), "`response_types` has to hold `code`."),
        (
            json!({ "token_endpoint_auth_method": "tls_client_auth" }),
            "`token_endpoint_auth_method` is none that this server has.",
        ),
        (json!({ "client_name": 7 }), "`client_name` is not a text."),
    ];
    let redirects = redirects.map(|(change, why)| (change, "invalid_redirect_uri", why));
    let others = others.map(|(change, why)| (change, "invalid_client_metadata", why));
    for (change, error, why) in redirects.into_iter().chain(others) {
        let mut metadata = good.clone();
        for (name, value) in change.as_object().unwrap() {
            metadata[name] = value.clone();
        }
        let answer = register(&authority, &metadata);
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json(), json!({ "error": error, "error_description": why }));
    }
    let text = Request::form("/register", &[("a", "b")], start());
    assert_eq!(authority.answer(text).json()["error"], "invalid_client_metadata");
    assert_eq!(register(&authority, &json!([])).json()["error"], "invalid_client_metadata");
    assert_eq!(authority.stats().registrations, 0);
}

#[test]
fn a_registration_has_its_length() {
    let authority = Authority::new(ISSUER, settings());
    let filled = |length: usize| {
        let empty = json!({ "redirect_uris": ["http://127.0.0.1/callback"], "client_uri": "" });
        let filler = "x".repeat(length - empty.to_string().len());
        json!({ "redirect_uris": ["http://127.0.0.1/callback"], "client_uri": filler })
    };
    assert_eq!(register(&authority, &filled(8192)).status, 201);
    let refused = register(&authority, &filled(8193));
    assert_eq!(
        (refused.status, refused.json()),
        (
            400,
            json!({
                "error": "invalid_client_metadata",
                "error_description": "The metadata is longer than 8192 bytes; say less.",
            })
        )
    );
    assert_eq!(authority.stats().registrations, 1);
}
