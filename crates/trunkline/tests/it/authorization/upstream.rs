//! A server behind this one never sees a client's token, nor any header of its request.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trunkline::server::{bind, proxy};
use trunkline::{Client, Revision, Server, prompt, resource, tool};

use super::issuer::{Issuer, Person, send};
use crate::server::{ERAS, soon};

/// What was sent to the upstream, byte for byte.
#[derive(Clone, Default)]
struct Tap(Arc<Mutex<Vec<u8>>>);

impl Tap {
    /// Stands in front of `upstream` and records what is sent there.
    async fn before(upstream: SocketAddr) -> (Self, SocketAddr) {
        let tap = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let record = tap.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(record.clone().pass(near, upstream));
            }
        });
        (tap, address)
    }

    async fn pass(self, near: TcpStream, upstream: SocketAddr) {
        let (mut near_reader, mut near_writer) = near.into_split();
        let far = TcpStream::connect(upstream).await.unwrap();
        let (mut far_reader, mut far_writer) = far.into_split();
        let back = async { tokio::io::copy(&mut far_reader, &mut near_writer).await };
        let there = async {
            let mut buffer = vec![0; 4096];
            while let Ok(read @ 1..) = near_reader.read(&mut buffer).await {
                self.0.lock().unwrap().extend_from_slice(&buffer[..read]);
                if far_writer.write_all(&buffer[..read]).await.is_err() {
                    return;
                }
            }
        };
        tokio::pin!(back, there);
        tokio::select! { _ = back => {}, () = there => {} }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).to_lowercase()
    }
}

fn remote() -> Server {
    Server::builder("remote", "1")
        .tool(tool("look", async || "Fine."))
        .prompt(prompt("plan", async || "Plan.".to_owned()))
        .resource(resource("far://note", "note", async || "A note."))
        .build()
}

/// A proxying server, and the tap on its upstream connection.
async fn local(far: Revision) -> (Server, Tap) {
    let listener = bind("127.0.0.1:0").await.unwrap();
    let upstream = listener.local_addr().unwrap();
    tokio::spawn(remote().http().serve(listener, pending()));
    let (tap, address) = Tap::before(upstream).await;
    let url = format!("http://{address}/mcp");
    let client = Client::builder("gate", "1").protocol(far).connect_http(url).await.unwrap();
    let passing = proxy(client).await.unwrap();
    (Server::builder("local", "1").mount("far", passing).build(), tap)
}

#[tokio::test]
async fn the_upstream_sees_neither_token_nor_headers() {
    let issuer = Issuer::new();
    for far in ERAS {
        let (server, tap) = local(far).await;
        let address = issuer.serve(&server).await;
        for near in Revision::ALL {
            let token = issuer.token("alice", "mcp");
            let mut alice = Person::open(address, near, token.clone()).await;
            for (method, params) in [
                ("tools/call", json!({ "name": "far.look" })),
                ("prompts/get", json!({ "name": "far.plan" })),
                ("resources/read", json!({ "uri": "far://note" })),
            ] {
                let asked = alice.guest.prepare(method, params);
                let mut headers = alice.signed(alice.guest.headers(&asked));
                for (name, value) in MARKED {
                    headers.push(((*name).to_owned(), (*value).to_owned()));
                }
                let (mut line, head) =
                    send(address, "POST /mcp", &headers, &asked.to_string()).await;
                let answer = soon(alice.guest.answer(&asked, &mut line, head)).await;
                assert!(answer.message.get("result").is_some(), "{method}: {answer:?}");
            }
            let seen = tap.text();
            let way = format!("{near} before {far}");
            for call in ["tools/call", "prompts/get", "resources/read"] {
                assert!(seen.contains(call), "{way}: it passes through the tap");
            }
            let session = alice.guest.session.clone().unwrap_or(token.clone());
            for secret in [&*token, &session, "authorization", "bearer", "marked", "dpop"] {
                assert!(!seen.contains(&secret.to_lowercase()), "{way}: `{secret}` in {seen}");
            }
        }
    }
}

/// Other headers that a client may send, with values that occur nowhere else.
const MARKED: &[(&str, &str)] = &[
    ("Cookie", "session=marked-1"),
    ("X-Api-Key", "marked-2"),
    ("X-Forwarded-For", "marked-3"),
    ("Proxy-Authorization", "Basic marked-4"),
    ("DPoP", "marked-5"),
];
