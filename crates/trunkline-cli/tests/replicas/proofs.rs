//! Scene: a DPoP proof is sent to three servers at once, many times over. One request gets in.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde_json::json;
use tokio::task::JoinSet;
use trunkline::server::protect::{Dpop, Jwks, JwtIssuer, Protect};
use trunkline::server::{Replicas, bind};
use trunkline::{Revision, Server, tool};
use trunkline_auth::dpop::prove;
use trunkline_auth::jose::SigningKey;
use trunkline_store::{Redis, RedisAddress, RedisSettings};
use trunkline_testkit::http::{Guest, Line, request};
use trunkline_testkit::{redis, repeats};

use crate::figures::Figures;
use crate::stage::replicas;

pub(crate) async fn run() -> Figures {
    let redis = redis::single();
    let (issuer, key) = (SigningKey::generate(), SigningKey::generate());
    let executed = Arc::new(AtomicU64::new(0));
    let mut addresses = Vec::new();
    for _ in 0..replicas() {
        addresses.push(serve(&redis.address(), &issuer, &executed).await);
    }
    let token = bound(&issuer, &key);
    let mut figures = Figures::default();
    for _ in 0..repeats(20, 200) {
        let proof = prove(&key, "POST", RESOURCE, Some(&token), None, SystemTime::now());
        let mut replays = JoinSet::new();
        for number in 0..REPLAYS {
            let at = addresses[number % addresses.len()];
            replays.spawn(enter(at, token.clone(), proof.clone()));
        }
        let statuses = replays.join_all().await;
        let of = |status| statuses.iter().filter(|it| **it == status).count() as u64;
        figures.add("proofs");
        figures.count("requests with a proof", statuses.len() as u64);
        figures.count("requests let in", of(200));
        figures.count("requests refused", of(401));
        assert_eq!((of(200), of(401)), (1, REPLAYS as u64 - 1), "{statuses:?}");
    }
    assert_eq!(executed.load(Ordering::Relaxed), figures.of("proofs"), "{figures}");
    figures
}

/// One of the servers, which share the store alone.
async fn serve(store: &str, issuer: &SigningKey, executed: &Arc<AtomicU64>) -> SocketAddr {
    let address = RedisAddress::parse(store).expect("it is the address of a Redis");
    let store = Redis::open(RedisSettings::new(address)).expect("the settings are good");
    let executed = Arc::clone(executed);
    let count = tool("count", move || {
        let times = executed.fetch_add(1, Ordering::Relaxed) + 1;
        async move { times.to_string() }
    });
    let replicas = Replicas::new(Arc::new(store), [7; 32], "127.0.0.1:0");
    let server = Server::builder("proofs", "1.0.0").tool(count).replicas(replicas).build();
    let jwt = JwtIssuer::new(ISSUER).jwks(Jwks::new([issuer.public().clone()]));
    let protect = Protect::new(RESOURCE).jwt(jwt).dpop(Dpop::Require);
    let http = server.http().protect(protect).expect("the settings are good");
    let listener = bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(http.serve(listener, pending()));
    address
}

/// A token that is bound to this key.
fn bound(issuer: &SigningKey, key: &SigningKey) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.expect("it is after 1970").as_secs();
    let claims = json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "client_id": "host",
        "iat": now, "exp": now + 3_600, "cnf": { "jkt": key.public().thumbprint() },
    });
    issuer.sign(json!({ "typ": "at+jwt" }), &claims)
}

/// Calls with a proof; the status of the answer.
async fn enter(at: SocketAddr, token: String, proof: String) -> u16 {
    let mut guest = Guest::new(at, Revision::V2026_07_28);
    let call = guest.prepare("tools/call", json!({ "name": "count", "arguments": {} }));
    let mut headers = guest.headers(&call);
    headers.push(("Authorization".to_owned(), format!("DPoP {token}")));
    headers.push(("DPoP".to_owned(), proof));
    let mut line = Line::to(at).await;
    line.send(request(at, "POST /mcp", &headers, &call.to_string())).await;
    line.head().await.status
}

const RESOURCE: &str = "https://mcp.example/mcp";
const ISSUER: &str = "https://id.example";
const REPLAYS: usize = 60;
