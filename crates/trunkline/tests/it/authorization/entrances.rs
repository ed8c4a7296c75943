//! One policy: a refusal is worded the same on every path and in every revision, and comes before
//! the body is read.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};
use trunkline::{Revision, Server, tool};
use trunkline_auth::jose::SigningKey;
use trunkline_testkit::http::{Guest, Head};

use super::issuer::{Issuer, METADATA, NOW, RESOURCE, send};

/// A path into the server, with a request that it would serve.
pub(super) struct Entrance {
    pub(super) name: String,
    pub(super) method: &'static str,
    path: &'static str,
    query: &'static str,
    headers: Vec<(String, String)>,
    body: String,
    /// The status of the answer to a valid token.
    pub(super) status: u16,
}

impl Entrance {
    pub(super) fn url(&self) -> String {
        format!("https://mcp.example{}", self.path)
    }

    /// Sends the request with these headers and this suffix of the query. Of a stream it reads the
    /// head only.
    pub(super) async fn enter(
        &self,
        address: SocketAddr,
        query: &str,
        more: &[(&str, String)],
    ) -> Told {
        let query = match (self.query, query) {
            (own, "") => own.to_owned(),
            ("", more) => format!("?{more}"),
            (own, more) => format!("{own}&{more}"),
        };
        let line = format!("{} {}{query}", self.method, self.path);
        let mut headers = self.headers.clone();
        headers.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let (mut line, head) = send(address, &line, &headers, &self.body).await;
        let body = match head.is_events() {
            true => String::new(),
            false => String::from_utf8(line.body().await).unwrap(),
        };
        Told { head, body }
    }
}

/// The answer to a request.
pub(super) struct Told {
    pub(super) head: Head,
    body: String,
}

impl Told {
    /// Status and challenge.
    pub(super) fn verdict(&self) -> (u16, Option<&str>) {
        (self.head.status, self.head.get("www-authenticate"))
    }

    pub(super) fn body(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}", self.body))
    }
}

/// The body of a refusal.
pub(super) fn told(why: &str) -> Value {
    json!({ "jsonrpc": "2.0", "error": { "code": -32600, "message": why } })
}

/// Every path: five revisions over Streamable HTTP, the batch of 2025-03-26, the dialect, the
/// stream and the end of a session, and the two paths of 2024-11-05.
pub(super) fn entrances(address: SocketAddr) -> Vec<Entrance> {
    let mut all = Vec::new();
    let mut post = |name: String, headers: Vec<(String, String)>, body: Value, status| {
        let body = body.to_string();
        all.push(Entrance { name, method: "POST", path: "/mcp", query: "", headers, body, status });
    };
    for revision in Revision::ALL {
        let mut guest = Guest::new(address, revision);
        let hello = match revision {
            Revision::V2026_07_28 => guest.prepare("server/discover", json!({})),
            _ => guest.prepare("initialize", guest.hello()),
        };
        post(format!("POST of {revision}"), guest.headers(&hello), hello, 200);
    }
    let mut guest = Guest::new(address, Revision::V2025_03_26);
    guest.session = Some("nobody".to_owned());
    let ping = guest.prepare("ping", json!({}));
    post("array".to_owned(), guest.headers(&ping), json!([ping]), 404);
    let dialect = json!({ "jsonrpc": "2.0", "id": 1, "method": "mcp/listTools" });
    let plain = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    post("dialect".to_owned(), plain.clone(), dialect.clone(), 200);

    let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let session = vec![
        own("Accept", "text/event-stream"),
        own("MCP-Protocol-Version", "2025-11-25"),
        own("Mcp-Session-Id", "nobody"),
    ];
    let mut add = |method, path, query, headers: &Vec<_>, body: &str, status| {
        let (name, headers) = (format!("{method} {path}"), headers.clone());
        let body = body.to_owned();
        all.push(Entrance { name, method, path, query, headers, body, status });
    };
    add("GET", "/mcp", "", &session, "", 404);
    add("DELETE", "/mcp", "", &session, "", 404);
    add("PUT", "/mcp", "", &session, "", 405);
    add("GET", "/sse", "", &vec![own("Accept", "text/event-stream")], "", 200);
    add("POST", "/messages", "?sessionId=nobody", &plain, &ping.to_string(), 404);
    all
}

/// A request with one fault.
struct Wrong {
    name: &'static str,
    query: &'static str,
    headers: Vec<(&'static str, String)>,
    error: Option<&'static str>,
    why: &'static str,
}

fn wrong(issuer: &Issuer) -> Vec<Wrong> {
    let good = issuer.token("alice", "mcp");
    let bearer = |token: &str| ("Authorization", format!("Bearer {token}"));
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut claims = issuer.claims("alice", "mcp");
        change(&mut claims);
        claims
    };
    let mut all = Vec::new();
    let mut add = |name, query, headers: Vec<_>, error, why| {
        all.push(Wrong { name, query, headers, error, why });
    };
    let none = "A token is needed; send one in the `Authorization` header.";
    add("no token", "", vec![], None, none);
    let basic = ("Authorization", "Basic YWxpY2U6c2VjcmV0".to_owned());
    add("another scheme", "", vec![basic], None, none);

    let request = Some("invalid_request");
    let twice = "More than one `Authorization` header is refused; send one.";
    add("two tokens", "", vec![bearer(&good), bearer(&good)], request, twice);
    let listed = format!("{good}, Bearer {good}");
    let malformed =
        "The `Authorization` header is malformed; send the scheme, a space and one token.";
    add("two tokens in one line", "", vec![bearer(&listed)], request, malformed);
    let in_query = "A token in the query is refused; send it in the `Authorization` header.";
    let query = "access_token=eyJhbGciOiJFUzI1NiJ9.e30.c2ln";
    add("token in the query", query, vec![], request, in_query);
    add("token in the query too", query, vec![bearer(&good)], request, in_query);

    let token = Some("invalid_token");
    let mut forged = |name, token_text: String, why| {
        add(name, "", vec![bearer(&token_text)], token, why);
    };
    let signed = |change: &dyn Fn(&mut Value)| issuer.sign(&changed(change));
    let audience = "The token is for another audience.";
    forged(
        "wrong audience",
        signed(&|it| it["aud"] = json!("https://other.example/mcp")),
        audience,
    );
    forged(
        "audience with a slash",
        signed(&|it| it["aud"] = json!(format!("{RESOURCE}/"))),
        audience,
    );
    forged("expired", signed(&|it| it["exp"] = json!(NOW - 61)), "The token has expired.");
    forged("not yet", signed(&|it| it["nbf"] = json!(NOW + 61)), "The token is not valid yet.");
    let other = "The token is not one of an issuer known here.";
    forged("other issuer", signed(&|it| it["iss"] = json!("https://evil.example")), other);
    forged("issuer with a slash", signed(&|it| it["iss"] = json!("https://id.example/")), other);
    let algorithm = "The token is signed with an algorithm that is not allowed here.";
    let claims = issuer.claims("alice", "mcp");
    for alg in ["none", "None", "NONE"] {
        forged(
            "alg none",
            raw(json!({ "alg": alg, "kid": "k-1" }), &claims, |_| Vec::new()),
            algorithm,
        );
    }
    let jwk = issuer.key.public().bare().to_string();
    let hs256 = json!({ "alg": "HS256", "typ": "at+jwt", "kid": "k-1" });
    let by_public_key = |text: &[u8]| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, jwk.as_bytes());
        hmac::sign(&key, text).as_ref().to_vec()
    };
    forged("HS256 by the public key", raw(hs256, &claims, by_public_key), algorithm);
    let stranger = SigningKey::generate().sign(json!({ "kid": "k-1" }), &claims);
    forged("another key of that name", stranger, "The signature of the token is wrong.");
    let stranger = SigningKey::generate().sign(json!({ "kid": "k-2" }), &claims);
    forged("unknown key", stranger, "The token is signed with a key that is not known here.");
    forged("no token at all", "secret-that-nobody-knows".to_owned(), other);
    all
}

/// A token with arbitrary header and signature.
fn raw(header: Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let encode = |it: &[u8]| URL_SAFE_NO_PAD.encode(it);
    let (header, claims) = (header.to_string(), claims.to_string());
    let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
    let signature = encode(&sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn server() -> Server {
    Server::builder("files", "1").tool(tool("whoami", async || "?")).build()
}

#[tokio::test]
async fn every_entrance_refuses_the_same_in_the_same_words() {
    let (issuer, address) = Issuer::of(&server()).await;
    for entrance in entrances(address) {
        for Wrong { name, query, headers, error, why } in wrong(&issuer) {
            let at = format!("{name} at {}", entrance.name);
            let answer = entrance.enter(address, query, &headers).await;
            let expected = match error {
                None => format!(r#"Bearer scope="mcp", {METADATA}"#),
                Some(error) => format!(
                    r#"Bearer error="{error}", scope="mcp", {METADATA}, error_description="{why}""#
                ),
            };
            assert_eq!(answer.verdict(), (401, Some(&*expected)), "{at}");
            assert_eq!(answer.head.get("content-type"), Some("application/json"), "{at}");
            assert_eq!(answer.body(), told(why), "{at}");
        }
    }
}

#[tokio::test]
async fn every_entrance_lets_a_good_token_in() {
    let (issuer, address) = Issuer::of(&server()).await;
    for entrance in entrances(address) {
        let good = ("Authorization", format!("Bearer {}", issuer.token("alice", "mcp")));
        let answer = entrance.enter(address, "", &[good]).await;
        assert_eq!(answer.verdict(), (entrance.status, None), "{}", entrance.name);
    }
}

#[tokio::test]
async fn every_entrance_asks_for_the_scopes_that_all_requests_take() {
    let (issuer, address) = Issuer::of(&server()).await;
    let why = "The token lacks the scope `mcp`.";
    let expected = format!(
        r#"Bearer error="insufficient_scope", scope="mcp", {METADATA}, error_description="{why}""#
    );
    for entrance in entrances(address) {
        let good = ("Authorization", format!("Bearer {}", issuer.token("alice", "other")));
        let answer = entrance.enter(address, "", &[good]).await;
        assert_eq!(answer.verdict(), (403, Some(&*expected)), "{}", entrance.name);
        assert_eq!(answer.body(), told(why), "{}", entrance.name);
    }
}
