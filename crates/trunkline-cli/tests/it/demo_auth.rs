//! `trunkline demo --http --auth`: a login by hand, as the documents say it, and what it is good for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use trunkline::Revision;
use trunkline_testkit::http::Guest;

use crate::gateway_kit::{Caller, Gateway, Place};
use crate::run::{Run, TRUNKLINE, run};

/// The demo and its authorization server, as a process of their own.
struct Demo {
    mcp: String,
    said: Vec<String>,
    process: Child,
}

impl Demo {
    fn start(more: &[&str]) -> Self {
        let mut command = Command::new(TRUNKLINE);
        command.args(["demo", "--http", "127.0.0.1:0", "--auth"]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the binary was built");
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let said: Vec<_> = lines.take(3).map(Result::unwrap).collect();
        let mcp = said[0].split(' ').find(|it| it.starts_with("http://"));
        Self { mcp: mcp.expect("an address").to_owned(), said, process }
    }

    /// Runs a verb with a token.
    fn call(&self, token: &str, args: &[&str]) -> Run {
        let header = format!("Authorization: Bearer {token}");
        run(&[args, &[&*self.mcp, "--header", &*header]].concat())
    }

    /// What tokens are for: everything that the demo serves.
    fn resource(&self) -> &str {
        self.mcp.strip_suffix("mcp").expect("the address of the endpoint")
    }

    /// What the documents lead to: the authorization server's metadata.
    fn authority(&self) -> Value {
        let (status, head, _) =
            ask("POST", &self.mcp, &[("content-type", "application/json")], "{}");
        assert_eq!(status, 401, "{head}");
        let document =
            head.split("resource_metadata=\"").nth(1).unwrap().split('"').next().unwrap();
        let (_, _, body) = ask("GET", document, &[], "");
        let document: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(document["resource"], *self.resource());
        let issuer = document["authorization_servers"][0].as_str().unwrap();
        let url = format!("{issuer}/.well-known/oauth-authorization-server");
        let (_, _, body) = ask("GET", &url, &[], "");
        let metadata: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(metadata["issuer"], issuer);
        metadata
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.process.kill().expect("it runs until now");
        self.process.wait().expect("it is ours");
    }
}

/// One request, one answer: status, head, body.
fn ask(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).expect("it listens");
    let mut text = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and no reset");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

#[test]
fn a_login_that_is_asked_for_is_read_however_long_the_body_is() {
    let demo = Demo::start(&[]);
    let (json, long) = ([("content-type", "application/json")], " ".repeat(3 << 20));
    for _ in 0..20 {
        let (status, head, _) = ask("POST", &demo.mcp, &json, &long);
        assert_eq!(status, 401, "{head}");
        assert!(head.to_lowercase().contains("\r\nwww-authenticate: "), "{head}");
    }
}

const FORM: [(&str, &str); 1] = [("content-type", "application/x-www-form-urlencoded")];

#[test]
fn whoever_logs_in_is_let_in_and_known_by_name() {
    let demo = Demo::start(&["--auth-user", "ada", "--auth-approve", "grace"]);
    assert_eq!(
        demo.said[1],
        format!("Log in with `trunkline login {}`, as `ada`, `grace`.", demo.mcp)
    );
    assert!(demo.said[2].ends_with("is a demonstration: not for production."), "{}", demo.said[2]);
    let metadata = demo.authority();
    let at = |name: &str| metadata[name].as_str().unwrap();

    let client = json!({
        "redirect_uris": ["http://127.0.0.1/callback"], "application_type": "native",
        "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"],
    });
    let json = [("content-type", "application/json")];
    let (status, _, body) = ask("POST", at("registration_endpoint"), &json, &client.to_string());
    assert_eq!(status, 201, "{body}");
    let client: Value = serde_json::from_str(&body).unwrap();
    let common = format!(
        "client_id={}&redirect_uri=http%3A%2F%2F127.0.0.1%3A7%2Fcallback&resource={}",
        client["client_id"].as_str().unwrap(),
        demo.resource().replace(':', "%3A").replace('/', "%2F"),
    );
    let login = |scope: &str| {
        let url = format!(
            "{}?{common}&response_type=code&code_challenge_method=S256&scope={scope}\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            at("authorization_endpoint")
        );
        let (status, head, _) = ask("GET", &url, &[], "");
        assert_eq!(status, 303, "{head}");
        let code = head.split("callback?code=").nth(1).unwrap().split('&').next().unwrap();
        let form = format!(
            "{common}&grant_type=authorization_code&code={code}\
             &code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        );
        let (status, _, body) = ask("POST", at("token_endpoint"), &FORM, &form);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["access_token"].as_str().unwrap().to_owned()
    };

    let token = login("demo");
    let found = demo.call(&token, &["call", "whoami"]);
    assert_eq!((found.code, &*found.stdout), (0, "grace may demo\n"), "{}", found.stderr);
    let found = demo.call(&token, &["call", "touch", "uri=demo://readme"]);
    assert_ne!(found.code, 0, "that needs more: {}", found.stdout);
    let token = login("demo%3Awrite");
    let found = demo.call(&token, &["call", "touch", "uri=demo://readme"]);
    assert_eq!((found.code, &*found.stdout), (0, "touched\n"), "{}", found.stderr);
    let found = demo.call(&token[..token.len() - 4], &["call", "whoami"]);
    assert_ne!(found.code, 0, "a broken token: {}", found.stdout);
}

#[test]
fn a_program_logs_in_for_itself() {
    let demo = Demo::start(&["--auth-client", "robot:s3cret"]);
    let metadata = demo.authority();
    let form = "grant_type=client_credentials&client_id=robot&client_secret=s3cret&scope=demo";
    let (status, _, body) = ask("POST", metadata["token_endpoint"].as_str().unwrap(), &FORM, form);
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    let found = demo.call(answer["access_token"].as_str().unwrap(), &["call", "whoami"]);
    assert_eq!((found.code, &*found.stdout), (0, "client:robot may demo\n"), "{}", found.stderr);
}

#[tokio::test]
async fn a_gateway_logs_in_for_itself_at_the_issuer_that_the_catalog_names() {
    let demo = Demo::start(&["--auth-client", "robot:s3cret"]);
    let issuer = demo.authority()["issuer"].clone();
    for (issuer, is_let_in) in [(issuer, true), (json!("http://127.0.0.1:1"), false)] {
        let place = Place::new("machine");
        let auth = json!({
            "type": "clientCredentials", "clientId": "robot", "clientSecret": "s3cret",
            "issuer": issuer, "scopes": ["demo"],
        });
        place.catalog(&json!({ "mcpServers": { "demo": { "url": demo.mcp, "auth": auth } } }));
        let gateway = Gateway::start(&place).await;
        let guest = Guest::new(gateway.address, Revision::V2026_07_28);
        let heard = Caller::new(guest).await.call("demo.whoami", json!({}), json!({})).await;
        let heard = heard.expect("the gateway answers");
        let text = heard.text().filter(|_| is_let_in);
        assert_eq!(text, is_let_in.then_some("client:robot may demo"), "{}", heard.message);
    }
}

#[test]
fn a_login_without_passwords_stays_on_this_machine() {
    for (args, why) in [
        (&["--http", "0.0.0.0:0", "--auth"][..], "asks for no password"),
        (
            &["--http", "127.0.0.1:0", "--auth", "--auth-address", "0.0.0.0:0"],
            "asks for no password",
        ),
        (
            &["--http", "127.0.0.1:0", "--auth", "--auth-client", "robot"],
            "Write it as `ID:SECRET`.",
        ),
    ] {
        let found = run(&[&["demo"], args].concat());
        assert_eq!(found.code, 3, "{}", found.stderr);
        assert!(found.stderr.contains(why), "{}", found.stderr);
    }
    assert_eq!(run(&["demo", "--auth"]).code, 2, "only HTTP has logins");
}
