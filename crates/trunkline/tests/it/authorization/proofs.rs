//! DPoP-bound tokens (RFC 9449): every request proves possession of the key, and no proof can be
//! replayed.

use std::net::SocketAddr;

use serde_json::json;
use trunkline::server::protect::{Dpop, Jwks, JwtIssuer, Protect};
use trunkline::{Server, tool};
use trunkline_auth::dpop::prove;
use trunkline_auth::jose::{Algorithm, SigningKey};

use super::entrances::{Entrance, Told, entrances, told};
use super::issuer::{ISSUER, Issuer, METADATA, now, serve};

fn server() -> Server {
    Server::builder("files", "1").tool(tool("whoami", async || "?")).build()
}

/// A token of alice's that is bound to this key.
fn bound(issuer: &Issuer, key: &SigningKey) -> String {
    let mut claims = issuer.claims("alice", "mcp");
    claims["cnf"] = json!({ "jkt": key.public().thumbprint() });
    issuer.sign(&claims)
}

fn with(token: &str, proof: String) -> [(&'static str, String); 2] {
    [("Authorization", format!("DPoP {token}")), ("DPoP", proof)]
}

fn proof(key: &SigningKey, at: &Entrance, token: &str, nonce: Option<&str>) -> String {
    prove(key, at.method, &at.url(), Some(token), nonce, now())
}

fn refused(error: &str, why: &str) -> String {
    let algorithms = Algorithm::ALL.map(Algorithm::name).join(" ");
    format!(
        r#"DPoP error="{error}", scope="mcp", {METADATA}, error_description="{why}", algs="{algorithms}""#
    )
}

fn assert_refused(answer: &Told, error: &str, why: &str, at: &str) {
    assert_eq!(answer.verdict(), (401, Some(&*refused(error, why))), "{at}");
}

/// A server that accepts bound tokens, the key of one, and the token.
async fn guarded(nonces: bool) -> (SocketAddr, SigningKey, String) {
    let (issuer, key) = (Issuer::new(), SigningKey::generate());
    let token = bound(&issuer, &key);
    (issuer.serve_dpop(&server(), nonces).await, key, token)
}

#[tokio::test]
async fn a_proof_is_good_once_at_every_entrance() {
    let (address, key, token) = guarded(false).await;
    let why = "The proof was used before.";
    for entrance in entrances(address) {
        let headers = with(&token, proof(&key, &entrance, &token, None));
        let first = entrance.enter(address, "", &headers).await;
        assert_eq!(first.verdict(), (entrance.status, None), "{}", entrance.name);
        let again = entrance.enter(address, "", &headers).await;
        assert_refused(&again, "invalid_dpop_proof", why, &entrance.name);
        assert_eq!(again.body(), told(why), "{}", entrance.name);
    }
}

#[tokio::test]
async fn a_stolen_token_is_no_good_without_its_key() {
    let ((address, _, token), thief) = (guarded(false).await, SigningKey::generate());
    for entrance in entrances(address) {
        let headers = with(&token, proof(&thief, &entrance, &token, None));
        let answer = entrance.enter(address, "", &headers).await;
        let why = "The proof is not by the key that the token is bound to.";
        assert_refused(&answer, "invalid_dpop_proof", why, &entrance.name);
        assert_eq!(answer.body(), told(why), "{}", entrance.name);

        let bearer = [("Authorization", format!("Bearer {token}"))];
        let answer = entrance.enter(address, "", &bearer).await;
        let why = "The token is bound to a key; send it with the `DPoP` scheme and a proof.";
        let expected = format!(
            r#"Bearer error="invalid_token", scope="mcp", {METADATA}, error_description="{why}""#
        );
        assert_eq!(answer.verdict(), (401, Some(&*expected)), "{}", entrance.name);
        assert_eq!(answer.body(), told(why), "{}", entrance.name);
    }
}

#[tokio::test]
async fn a_proof_for_another_entrance_is_refused() {
    let (address, key, token) = guarded(false).await;
    let all = entrances(address);
    for entrance in &all {
        for other in
            all.iter().filter(|it| (it.method, it.url()) != (entrance.method, entrance.url()))
        {
            let headers = with(&token, proof(&key, other, &token, None));
            let answer = entrance.enter(address, "", &headers).await;
            let at = format!("{} for {}", entrance.name, other.name);
            let why = match entrance.method == other.method {
                true => "The proof is for another URL.",
                false => "The proof is for another method.",
            };
            assert_refused(&answer, "invalid_dpop_proof", why, &at);
        }
    }
}

#[tokio::test]
async fn a_proof_names_the_path_that_a_proxy_shows() {
    let (issuer, key) = (Issuer::new(), SigningKey::generate());
    // The proxy strips `/files`, or knows the server by another name.
    for (resource, prefix, name) in [
        ("https://mcp.example/files/mcp", "/files", "/mcp"),
        ("https://mcp.example/team/files", "/team", "/files"),
    ] {
        let jwt = JwtIssuer::new(ISSUER).jwks(Jwks::new([issuer.key.public().clone()]));
        let protect = Protect::new(resource).jwt(jwt).dpop(Dpop::Require);
        let address = serve(&server(), protect).await;
        let mut claims = issuer.claims("alice", "mcp");
        claims["cnf"] = json!({ "jkt": key.public().thumbprint() });
        claims["aud"] = json!(resource);
        let token = issuer.sign(&claims);
        for entrance in entrances(address) {
            let inner = entrance.url();
            let path = inner.strip_prefix("https://mcp.example").unwrap();
            let path = if path == "/mcp" { name } else { path };
            let url = format!("https://mcp.example{prefix}{path}");
            for (url, is_good) in [(&url, true), (&inner, false)] {
                let proof = prove(&key, entrance.method, url, Some(&token), None, now());
                let answer = entrance.enter(address, "", &with(&token, proof)).await;
                let expected = if is_good { entrance.status } else { 401 };
                assert_eq!(answer.head.status, expected, "{} {url}", entrance.name);
            }
        }
    }
}

#[tokio::test]
async fn a_nonce_is_given_out_with_the_refusal_and_then_taken() {
    let (address, key, token) = guarded(true).await;
    for entrance in entrances(address) {
        let headers = with(&token, proof(&key, &entrance, &token, None));
        let answer = entrance.enter(address, "", &headers).await;
        let why = "The proof needs the nonce of the `DPoP-Nonce` header.";
        assert_refused(&answer, "use_dpop_nonce", why, &entrance.name);
        let nonce = answer.head.get("dpop-nonce").expect("it is in the answer");
        let headers = with(&token, proof(&key, &entrance, &token, Some(nonce)));
        let answer = entrance.enter(address, "", &headers).await;
        assert_eq!(answer.verdict(), (entrance.status, None), "{}", entrance.name);
    }
}
