//! What claims of a JWT say of its bearer: names for rules, groups, and the tags of what they see.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use trunkline_auth::jose::{Jwks, SigningKey};

use super::place::{Caller, Place};

const RESOURCE: &str = "https://gateway.example/mcp";

/// An issuer that gives out its keys, and signs what it is told to.
struct Issuer {
    key: SigningKey,
    url: String,
}

impl Issuer {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let key = SigningKey::generate();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let keys = serde_json::to_value(Jwks::new([key.public().clone()])).unwrap();
        let about = json!({
            "issuer": url, "jwks_uri": format!("{url}/keys"),
            "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
            "response_types_supported": ["code"],
        });
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 4096];
                let read = stream.read(&mut head).await.unwrap();
                let is_keys = head[..read].starts_with(b"GET /keys");
                let body = if is_keys { &keys } else { &about }.to_string();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { key, url }
    }

    /// A token of somebody, with these claims.
    fn token(&self, subject: &str, mut claims: Value) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let usual = json!({ "iss": self.url, "aud": RESOURCE, "sub": subject, "exp": now + 600 });
        claims.as_object_mut().unwrap().extend(usual.as_object().unwrap().clone());
        self.key.sign(json!({ "typ": "at+jwt" }), &claims)
    }
}

async fn tools(address: SocketAddr, token: &str) -> Vec<String> {
    let bearer = format!("Bearer {token}");
    let mut caller = Caller::open(address, "/mcp", &[("authorization", &bearer)]).await;
    caller.tools().await
}

#[tokio::test]
async fn groups_names_and_tags_come_from_claims() {
    let (place, issuer) = (Place::new("claims"), Issuer::open().await);
    place.write(&json!({
        "mcpServers": {
            "code": place.fake("code", &[], json!({ "tags": ["work"] })),
            "open": place.fake("open", &[], json!({})),
        },
        "gateway": {
            "auth": {
                "issuers": [issuer.url], "resource": RESOURCE,
                "claims": { "name": "email", "groups": "realm_access.roles", "tags": "mcp_tags" },
                "groups": [{ "name": "eng", "tags": ["work"] }],
            },
            "rules": [
                { "principals": ["user:bob@acme.example"], "tools": ["open.crash"], "effect": "deny" },
                { "principals": ["group:eng"], "tools": ["code.env"], "effect": "deny" },
            ],
        },
    }));
    let gateway = place.open("127.0.0.1:0").await;
    gateway.settled().await;
    let ada = issuer
        .token("1", json!({ "email": "ada@acme.example", "realm_access": { "roles": ["eng"] } }));
    let bob = issuer
        .token("2", json!({ "email": "bob@acme.example", "realm_access": { "roles": ["sales"] } }));
    let eve = issuer.token("3", json!({ "mcp_tags": ["Work"] }));
    let has = |tools: &[String], name: &str| tools.iter().any(|it| it == name);
    let seen = tools(gateway.address, &ada).await;
    assert!(
        has(&seen, "code.echo") && has(&seen, "open.crash") && !has(&seen, "code.env"),
        "{seen:?}"
    );
    let seen = tools(gateway.address, &bob).await;
    assert!(
        !has(&seen, "code.echo") && has(&seen, "open.echo") && !has(&seen, "open.crash"),
        "{seen:?}"
    );
    let seen = tools(gateway.address, &eve).await;
    assert!(has(&seen, "code.env") && has(&seen, "open.crash"), "{seen:?}");

    let config = place.text("catalog.json");
    let told = tokio::task::spawn_blocking(move || {
        let run = |token: &str, more: &[&str]| {
            let mut command = std::process::Command::new(crate::run::TRUNKLINE);
            command.args(["whoami", "--token", "env:TOKEN", "--config", &config]).args(more);
            let out = command.env("TOKEN", token).output().unwrap();
            let text = [out.stdout, out.stderr].concat();
            (out.status.code(), String::from_utf8(text).unwrap())
        };
        (run(&bob, &["--json"]), run(&ada, &[]), run("nonsense", &[]))
    });
    let ((code, json), (_, text), (refused, why)) = told.await.unwrap();
    assert_eq!(code, Some(0), "{json}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["servers"], &json["hidden"][0][0]), (&json!(["open"]), &json!("code")));
    assert_eq!(json["also"], json!(["user:bob@acme.example", "group:sales"]));
    assert_eq!(json["rules"], json!(["deny open.crash"]));
    assert!(text.contains("sees      code, open") && text.contains("deny code.env"), "{text}");
    assert!(refused == Some(2) && why.contains("The token is not let in."), "{why}");
}
