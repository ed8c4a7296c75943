//! Clients that are a URL.

use crate::transcript::{ISSUER, Talk, settings, start};
use serde_json::{Value, json};
use trunkline_auth::url::form;
use trunkline_authority::{Authority, Request};

const URL: &str = "https://app.example/client.json";

fn document() -> Value {
    json!({
        "client_id": URL, "client_name": "App", "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none",
    })
}

fn asked(client: &str) -> Request {
    Request::get(&format!("/authorize?{}", form(&[("client_id", client)])), start())
}

#[test]
fn a_document_is_wanted_once_and_then_logs_in() {
    let mut talk = Talk::new(Authority::new(ISSUER, settings().client_documents()));
    let renamed = asked(URL).header("host", "evil.example");
    assert_eq!(
        talk.authority.wants(&renamed),
        None,
        "a page that renamed itself causes no request"
    );
    assert_eq!(talk.authority.wants(&asked(URL)).as_deref(), Some(URL));
    talk.authority.learn(URL, Some(document().to_string().as_bytes()), start());
    assert_eq!(talk.authority.wants(&asked(URL)), None);
    talk.values.insert("id".to_owned(), URL.to_owned());
    talk.run(
        "
        authorize client_id=$id
        < 303 code=?
        exchange client_id=$id
        < 200 access_token=? refresh_token=?
        wait 301
        ",
    );
    let again = Request { now: talk.now, ..asked(URL) };
    assert_eq!(talk.authority.wants(&again).as_deref(), Some(URL), "it is looked at again");
    let token = Request::form("/token", &[("client_id", URL)], talk.now);
    assert_eq!(talk.authority.wants(&token).as_deref(), Some(URL), "also to refresh");
}

#[test]
fn a_document_that_lies_is_no_client() {
    for (change, value) in [
        ("client_id", json!("https://app.example/other.json")),
        ("client_id", Value::Null),
        ("client_secret", json!("s3cret")),
        ("token_endpoint_auth_method", json!("client_secret_post")),
        ("redirect_uris", json!(["http://elsewhere.example/"])),
        ("client_uri", json!("x".repeat(20_000))),
    ] {
        let mut talk = Talk::new(Authority::new(ISSUER, settings().client_documents()));
        let mut document = document();
        document[change] = value;
        talk.authority.learn(URL, Some(document.to_string().as_bytes()), start());
        assert_eq!(talk.authority.wants(&asked(URL)), None, "it is not asked for again at once");
        talk.values.insert("id".to_owned(), URL.to_owned());
        talk.run("authorize client_id=$id\n< 400");
    }
    let mut talk = Talk::new(Authority::new(ISSUER, settings().client_documents()));
    talk.authority.learn(URL, None, start());
    talk.values.insert("id".to_owned(), URL.to_owned());
    talk.run("authorize client_id=$id\n< 400\nwait 11");
    let again = Request { now: talk.now, ..asked(URL) };
    assert_eq!(talk.authority.wants(&again).as_deref(), Some(URL));
}

#[test]
fn only_plain_urls_are_wanted() {
    let here = Authority::new(ISSUER, settings().client_documents());
    let public = Authority::new("https://id.example", settings().client_documents());
    let without = Authority::new(ISSUER, settings());
    for (client, at_here, at_public) in [
        (URL, true, true),
        ("http://127.0.0.1:5000/client.json", true, false),
        ("http://app.example/client.json", false, false),
        ("https://app.example", false, false),
        ("https://app.example/", false, false),
        ("https://user@app.example/client.json", false, false),
        ("https://app.example/a/../client.json", false, false),
        ("https://app.example/client.json#x", false, false),
        ("file:///etc/passwd", false, false),
        ("tool", false, false),
    ] {
        assert_eq!(here.wants(&asked(client)).is_some(), at_here, "{client}");
        assert_eq!(public.wants(&asked(client)).is_some(), at_public, "{client}");
        assert_eq!(without.wants(&asked(client)), None, "{client}");
    }
    let document = Request::get("/.well-known/oauth-authorization-server", start());
    let supported = |it: &Authority| {
        it.answer(document.clone()).json()["client_id_metadata_document_supported"].clone()
    };
    assert_eq!((supported(&here), supported(&without)), (json!(true), json!(false)));
}
