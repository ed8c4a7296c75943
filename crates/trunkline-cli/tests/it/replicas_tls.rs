//! Replicas that speak TLS with each other and with their store, with certificates of the catalog's own.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::process::{Child, Command};
use trunkline::Client;
use trunkline_testkit::ports::free_port;
use trunkline_testkit::redis;

use crate::gateway_kit::Place;
use crate::run::TRUNKLINE;

mod pem {
    include!("../../../trunkline-transport/tests/it/pem.rs");
}

/// One of two gateways with the same catalog.
fn gateway(config: &str, public: u16, internal: u16) -> Child {
    let mut command = Command::new(TRUNKLINE);
    command.args(["serve", "--config", config, "--state", &format!("{config}.{public}")]);
    command.args(["--listen", &format!("127.0.0.1:{public}")]);
    command.env("INTERNAL", internal.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.kill_on_drop(true).spawn().expect("the binary was built")
}

/// A client of one gateway, as soon as that is there.
async fn client(public: u16, certificate: &str) -> Client {
    let since = Instant::now();
    loop {
        let client = Client::builder("test", "1.0.0").root_certificate(certificate.as_bytes());
        match client.connect_http(format!("https://localhost:{public}/mcp")).await {
            Ok(client) => return client,
            Err(error) => assert!(since.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await; // the sleep is the subject: a program that starts
    }
}

async fn count(client: &Client) -> String {
    let result = client.call_tool("counter.count", json!({})).await.expect("it is counted");
    serde_json::to_value(&result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_and_their_store_are_reached_with_the_certificates_of_the_catalog() {
    let place = Place::new("replicas-tls");
    let (certificate, key) = pem::self_signed();
    let (_redis, port) = redis::encrypted(&certificate, &key);
    let (pem, secret) = (place.file("c.pem", &certificate), place.file("k.pem", &key));
    let mut counter = place.fake("counter", &["--revision", "2025-11-25"]);
    let command = counter.remove(0);
    let catalog = json!({
        "mcpServers": {
            "counter": { "command": command, "args": counter, "strategy": "singleton" },
        },
        "gateway": {
            "tls": { "certificate": pem, "key": secret },
            "store": format!("rediss://localhost:{port}"),
            "storeRootCertificates": [pem],
            "replicas": {
                "listen": "127.0.0.1:${INTERNAL}",
                "advertise": "https://localhost:${INTERNAL}",
                "rootCertificates": [pem],
                "key": "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            },
        },
    });
    let config = place.file("replicas.yaml", &catalog.to_string());
    let [a, b] = [free_port(), free_port()];
    let _gateways = [a, b].map(|public| gateway(&config, public, free_port()));
    let [a, b] = [client(a, &certificate).await, client(b, &certificate).await];
    let mut counted = Vec::new();
    for client in [&a, &b, &b, &a] {
        counted.push(count(client).await);
    }
    assert_eq!(counted, ["1", "2", "3", "4"], "both reach the one instance");
    assert_eq!(place.log().running().len(), 1);
}

const PATIENCE: Duration = Duration::from_secs(30);
