//! What callers learn of servers that are none of their business: nothing, wherever they look.

use std::net::SocketAddr;

use serde_json::{Value, json};
use trunkline::Revision;
use trunkline_testkit::http::{Guest, Line, request};

use crate::gateway_kit::{Gateway, Place};

const ANN: &str = "ann-has-a-long-enough-token";
const BOB: &str = "bob-has-a-long-enough-token";

/// Ann sees everything. Bob's token is for what is public.
fn catalog(place: &Place, rules: Value) -> Value {
    let server = |name: &str, tag: &str, text: &str| {
        let words = place.fake(name, &["--instructions", text]);
        json!({ "command": words[0], "args": words[1..], "tags": [tag] })
    };
    let tokens = json!([
        { "name": "ann", "token": ANN },
        { "name": "bob", "token": BOB, "tags": if rules.is_null() { json!(["open"]) } else { json!([]) } },
    ]);
    let mut gateway = json!({ "auth": { "tokens": tokens } });
    if !rules.is_null() {
        gateway["rules"] = rules;
    }
    json!({
        "gateway": gateway,
        "mcpServers": {
            "public": server("public", "open", "Public is for all."),
            "secret": server("secret", "closed", "Secret is for Ann."),
        },
    })
}

/// What opening a conversation at a path says: the status, and the instructions.
async fn opened(address: SocketAddr, path: &str, token: &str, revision: Revision) -> (u16, String) {
    let mut guest = Guest::new(address, revision);
    let message = match revision {
        Revision::V2026_07_28 => guest.prepare("server/discover", json!({})),
        _ => guest.prepare("initialize", guest.hello()),
    };
    let mut headers = guest.headers(&message);
    headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    let mut line = Line::to(address).await;
    line.send(request(address, &format!("POST {path}"), &headers, &message.to_string())).await;
    let head = line.head().await;
    let text = if head.is_events() {
        line.message().await.expect("it answers").1
    } else {
        line.json().await
    };
    (head.status, text["result"]["instructions"].as_str().unwrap_or_default().to_owned())
}

/// Calls something, so that all servers have said what they offer.
async fn settle(address: SocketAddr) {
    let mut guest = Guest::new(address, Revision::V2026_07_28);
    let message = guest.prepare("tools/list", json!({}));
    let mut headers = guest.headers(&message);
    headers.push(("Authorization".to_owned(), format!("Bearer {ANN}")));
    let mut line = Line::to(address).await;
    line.send(request(address, "POST /mcp", &headers, &message.to_string())).await;
    let head = line.head().await;
    assert_eq!(head.status, 200);
    let tools = line.json().await;
    let text = tools["result"]["tools"].to_string();
    assert!(text.contains("secret.echo") && text.contains("public.echo"), "{text}");
}

#[tokio::test]
async fn instructions_are_of_servers_that_the_caller_sees() {
    let rules = json!([{ "principals": ["bob"], "tools": ["secret.*"], "effect": "deny" }]);
    for rules in [Value::Null, rules] {
        let place = Place::new("sight");
        place.catalog(&catalog(&place, rules.clone()));
        let gateway = Gateway::start(&place).await;
        let address = gateway.address;
        // Somebody opens a conversation before anything is known: what it heard is not kept.
        opened(address, "/mcp", BOB, Revision::V2025_11_25).await;
        settle(address).await;
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let told = async |path: &str, token: &str| opened(address, path, token, revision).await;
            let both = "# public\nPublic is for all.\n\n# secret\nSecret is for Ann.";
            assert_eq!(told("/mcp", ANN).await, (200, both.to_owned()), "{rules} {revision}");
            let public = "# public\nPublic is for all.";
            assert_eq!(told("/mcp", BOB).await, (200, public.to_owned()), "{rules} {revision}");
            let secret = (200, "Secret is for Ann.".to_owned());
            assert_eq!(told("/mcp/server/secret", ANN).await, secret, "{rules} {revision}");
            let (hidden, unknown) =
                (told("/mcp/server/secret", BOB).await, told("/mcp/server/nobody", BOB).await);
            assert_eq!((hidden.0, unknown.0), (404, 404), "{rules} {revision}");
            let tags = told("/mcp/tags/closed", BOB).await;
            assert_eq!(tags, (200, String::new()), "{rules} {revision}");
        }
    }
}

/// What a process has in memory, in bytes.
fn resident(pid: u32) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|it| it.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("it is a number") << 10
}

#[tokio::test]
async fn whoever_is_not_let_in_takes_no_memory() {
    let place = Place::new("strangers");
    place.catalog(&catalog(&place, Value::Null));
    let gateway = Gateway::start(&place).await;
    let address = gateway.address;
    let tags: String = (0..15_500).map(|it| format!("{:03x},", it % 4096)).collect();
    let knock = async |number: usize| {
        let path = format!("POST /mcp/tags/{number},{tags}");
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let mut line = Line::to(address).await;
        line.send(request(address, &path, &headers, "{}")).await;
        assert_eq!(line.head().await.status, 401);
    };
    knock(0).await;
    let before = resident(gateway.pid());
    for number in 1..=100 {
        knock(number).await;
    }
    let more = resident(gateway.pid()).saturating_sub(before);
    assert!(more < 32 << 20, "{more} bytes are kept for those who were sent away");
}
