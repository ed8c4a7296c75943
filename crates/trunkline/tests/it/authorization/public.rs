//! What needs no token: the metadata, and a browser's CORS preflight.

use serde_json::{Value, json};
use trunkline::server::protect::{Dpop, Gate};
use trunkline::{Server, tool};

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use super::issuer::{ISSUER, Issuer, METADATA, RESOURCE, StoppedClock, send};

const PLACES: [&str; 2] =
    ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"];

async fn serve(issuer: &Issuer) -> SocketAddr {
    let server = Server::builder("files", "1").tool(tool("look", async || "Fine.")).build();
    let protect = issuer
        .protect()
        .scopes_supported(["mcp", "files:read"])
        .name("The file server")
        .documentation("https://mcp.example/docs");
    let gate = Gate::new(protect, Arc::new(StoppedClock)).unwrap();
    let listener = trunkline::server::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let http = server.http().gate(gate).allow_origin("https://app.example");
    let http = http.page("/health", || "I am well.".to_owned());
    tokio::spawn(http.serve(listener, pending()));
    address
}

fn headers(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn the_document_is_at_both_places_for_everybody() {
    let issuer = Issuer::new();
    let address = serve(&issuer).await;
    let document = json!({
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["mcp", "files:read"],
        "bearer_methods_supported": ["header"],
        "resource_name": "The file server",
        "resource_documentation": "https://mcp.example/docs",
    });
    for place in PLACES {
        // Pages of any origin may read it, with any token.
        for sent in [
            &[][..],
            &[("Origin", "https://anywhere.example"), ("MCP-Protocol-Version", "2025-11-25")],
            &[("Authorization", "Bearer bad")],
        ] {
            let (mut line, head) = send(address, &format!("GET {place}"), &headers(sent), "").await;
            assert_eq!(head.status, 200, "{place} {sent:?}");
            assert_eq!(head.get("content-type"), Some("application/json"));
            assert_eq!(head.get("access-control-allow-origin"), Some("*"));
            assert_eq!(line.json().await, document, "{place}");
        }
        let (_, head) = send(address, &format!("POST {place}"), &headers(&[]), "").await;
        assert_eq!((head.status, head.get("allow")), (405, Some("GET")), "{place}");
        let asked = headers(&[
            ("Origin", "https://anywhere.example"),
            ("Access-Control-Request-Method", "GET"),
            ("Access-Control-Request-Headers", "mcp-protocol-version"),
        ]);
        let (_, head) = send(address, &format!("OPTIONS {place}"), &asked, "").await;
        assert_eq!(head.status, 204, "{place}");
        assert_eq!(head.get("access-control-allow-origin"), Some("*"));
        assert_eq!(head.get("access-control-allow-methods"), Some("GET"));
        assert_eq!(head.get("access-control-allow-headers"), Some("*"));
    }
    for place in ["/.well-known/oauth-protected-resource/sse", "/.well-known/oauth"] {
        let (_, head) = send(address, &format!("GET {place}"), &headers(&[]), "").await;
        assert_eq!(head.status, 404, "{place}");
    }
}

#[tokio::test]
async fn the_document_says_whether_tokens_are_bound_to_keys() {
    for (dpop, is_required) in [(Dpop::Accept, None), (Dpop::Require, Some(&json!(true)))] {
        let gate = Gate::new(Issuer::new().protect().dpop(dpop), Arc::new(StoppedClock)).unwrap();
        let document: Value = serde_json::from_str(gate.document(PLACES[0]).unwrap()).unwrap();
        assert_eq!(document.get("dpop_bound_access_tokens_required"), is_required, "{document}");
        assert!(document["dpop_signing_alg_values_supported"].is_array(), "{document}");
    }
}

#[tokio::test]
async fn a_browser_may_ask_first_and_read_every_refusal() {
    let issuer = Issuer::new();
    let address = serve(&issuer).await;
    let origin = ("Origin", "https://app.example");
    for (path, methods) in [("/mcp", "GET, POST, DELETE"), ("/sse", "GET"), ("/messages", "POST")] {
        let asked = headers(&[origin, ("Access-Control-Request-Headers", "authorization")]);
        let (_, head) = send(address, &format!("OPTIONS {path}"), &asked, "").await;
        assert_eq!(head.status, 204, "{path}");
        assert_eq!(head.get("access-control-allow-methods"), Some(methods));
        assert_eq!(head.get("access-control-allow-headers"), Some("authorization"));
    }
    let weak = format!("Bearer {}", issuer.token("alice", "other"));
    for (sent, status) in [
        (headers(&[origin]), 401),
        (headers(&[origin, ("Authorization", "Bearer bad")]), 401),
        (headers(&[origin, ("Authorization", &weak)]), 403),
    ] {
        let (_, head) = send(address, "GET /mcp", &sent, "").await;
        assert_eq!(head.status, status);
        assert_eq!(head.get("access-control-allow-origin"), Some("https://app.example"));
        let exposed = "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce";
        assert_eq!(head.get("access-control-expose-headers"), Some(exposed));
        assert!(head.get("www-authenticate").unwrap().contains(METADATA));
    }
}

#[tokio::test]
async fn an_origin_that_is_not_let_in_learns_nothing_of_the_gate() {
    let issuer = Issuer::new();
    let address = serve(&issuer).await;
    let sent = headers(&[("Origin", "https://evil.example"), ("Authorization", "Bearer bad")]);
    for path in ["/mcp", "/sse"] {
        let (_, head) = send(address, &format!("GET {path}"), &sent, "").await;
        assert_eq!((head.status, head.get("www-authenticate")), (403, None), "{path}");
        assert_eq!(head.get("access-control-allow-origin"), None, "{path}");
    }
}

#[tokio::test]
async fn pages_are_for_everybody() {
    let issuer = Issuer::new();
    let address = serve(&issuer).await;
    let (mut line, head) = send(address, "GET /health", &headers(&[]), "").await;
    assert_eq!((head.status, &*line.body().await), (200, &b"I am well."[..]));
}
