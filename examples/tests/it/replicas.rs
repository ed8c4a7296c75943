use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use trunkline::{Client, Revision};

use crate::common::{Served, builder, example, text};

/// A Redis of its own, until it is dropped.
struct Redis {
    child: Child,
    folder: PathBuf,
    url: String,
}

impl Redis {
    async fn start() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let folder = std::env::temp_dir().join(format!("replicas-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("key"), [7; 32]).unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--save", "", "--bind", "127.0.0.1"]).current_dir(&folder);
        let child = command.stdout(Stdio::null()).spawn().expect("Debian's redis-server is there");
        let address: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
        soon(async {
            while TcpStream::connect(address).await.is_err() {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        Self { child, folder, url: format!("redis://{address}") }
    }

    fn replica(&self) -> Served {
        let key = self.folder.join("key");
        let arguments = [&self.url, key.to_str().unwrap(), "127.0.0.1:0", "127.0.0.1:0"];
        Served::start(example!("replicas"), &arguments)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), what).await.expect("it happens in time")
}

/// A load balancer that sends each connection to the next replica that listens.
async fn balance(replicas: Vec<SocketAddr>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let turn = Arc::new(Mutex::new(0));
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (replicas, turn) = (replicas.clone(), Arc::clone(&turn));
            tokio::spawn(async move {
                for _ in 0..replicas.len() {
                    let next = {
                        let mut turn = turn.lock().unwrap();
                        *turn += 1;
                        replicas[*turn % replicas.len()]
                    };
                    if let Ok(mut replica) = TcpStream::connect(next).await {
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut replica).await;
                        return;
                    }
                }
            });
        }
    });
    url
}

fn address(served: &Served) -> SocketAddr {
    let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp");
    address.parse().unwrap()
}

/// What the tool says, once somebody can answer.
async fn process(client: &Client) -> u32 {
    soon(async {
        loop {
            match client.call_tool("process", ()).await {
                Ok(result) => return text(&result).parse().unwrap(),
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_session_goes_on_when_its_process_is_killed() {
    let redis = Redis::start().await;
    let mut replicas = vec![redis.replica(), redis.replica()];
    let url = balance(replicas.iter().map(address).collect()).await;
    let client = soon(async {
        loop {
            // A replica opens sessions after its first heartbeat.
            match builder(Revision::V2025_11_25).ask_anew().connect_http(&url).await {
                Ok(client) => return client,
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    })
    .await;
    let owner = process(&client).await;
    for _ in 0..5 {
        assert_eq!(process(&client).await, owner);
    }
    let at = replicas.iter().position(|it| it.id() == owner).expect("it is one of ours");
    drop(replicas.remove(at));
    assert_eq!(process(&client).await, replicas[0].id(), "the other one went on with it");
}
