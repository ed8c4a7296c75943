//! The gateway's own needs: a folder for its state, an admin API that answers if it runs, a port.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::timeout;
use trunkline_gateway::catalog::plan::Plan;
use trunkline_store::{Redis, RedisAddress, Store, StoreError};

use super::stages::Stages;
use crate::cmd::connect::shown;
use crate::cmd::serve::store_settings;
use crate::state;

pub(super) async fn check(plan: &Plan, named: Option<PathBuf>, stages: &mut Stages) {
    stages.begin();
    let folder = state::place(named).ok();
    match &folder {
        None => {
            stages.bad("state", "Nobody knows where the home folder is.", "Give `--state DIR`.")
        }
        Some(folder) => match is_writable(folder) {
            Ok(true) => stages.fine("state", shown(folder)),
            Ok(false) => stages.fine("state", format!("{}, which will be made", shown(folder))),
            Err(error) => {
                let why = format!("`{}` cannot be written: {error}.", shown(folder));
                stages.bad("state", why, "Check who may write there, or give `--state DIR`.");
            }
        },
    }
    let admin = plan.gateway.admin.listen.clone();
    let admin = admin.or(folder.map(|it| format!("unix:{}", it.join("admin.sock").display())));
    let is_running = match admin.as_deref() {
        None => false,
        Some(at) => match answers(at).await {
            Ok(status) => {
                stages.fine("admin", format!("a gateway answers at `{at}` (HTTP {status})"));
                true
            }
            Err(error) if is_absence(&error) => {
                stages.none("admin", "no gateway is running");
                false
            }
            Err(error) => {
                let why = format!("`{at}` does not answer as a gateway does: {error}.");
                stages.bad("admin", why, "Look at what runs there.");
                false
            }
        },
    };
    if let Some(address) = &plan.gateway.store {
        check_store(address, &plan.gateway.store_roots, stages).await;
        let admin = admin.as_deref().filter(|_| is_running);
        check_replicas(plan, admin, stages).await;
    }
    let listen = &plan.gateway.listen;
    stages.begin();
    match TcpListener::bind(listen).await {
        Ok(_) => stages.fine("port", format!("{listen} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_running => {
            stages.fine("port", format!("the gateway listens at {listen}"));
        }
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let why = format!("Another program listens at {listen}.");
            stages.bad("port", why, "Stop it, or write another `gateway.listen`.");
        }
        Err(error) => {
            let why = format!("{listen} cannot be used: {error}.");
            stages.bad("port", why, "Write another `gateway.listen`.");
        }
    }
}

/// Whether the store answers, and takes and returns what is written.
async fn check_store(address: &RedisAddress, roots: &[PathBuf], stages: &mut Stages) {
    stages.begin();
    let settings = match store_settings(address, roots) {
        Ok(settings) => settings,
        Err(error) => {
            let advice = "Correct `gateway.storeRootCertificates`.";
            return stages.bad("store", format!("{error:#}."), advice);
        }
    };
    let asking = async {
        let store = Redis::open(settings)?;
        let (key, life) = (format!("doctor/{}", std::process::id()), Duration::from_secs(10));
        store.put(&key, b"well", Some(life)).await?;
        let read = store.get(&key).await?.map(|it| it.value.to_vec());
        store.delete(&key).await?;
        Ok::<_, StoreError>(read)
    };
    match asking.await {
        Ok(Some(read)) if read == b"well" => stages.fine("store", format!("{address} answers")),
        Ok(_) => {
            let why = format!("`{address}` does not keep what is written to it.");
            stages.bad("store", why, "See whether it evicts: set `maxmemory-policy noeviction`.");
        }
        Err(error) => {
            stages.bad("store", error.to_string(), "Start it, or correct `gateway.store`.");
        }
    }
}

/// Whether this machine reaches every replica that the running gateway knows.
async fn check_replicas(plan: &Plan, admin: Option<&str>, stages: &mut Stages) {
    stages.begin();
    let Some(admin) = admin else {
        let listen = plan.gateway.replicas.as_ref().map_or("", |it| it.listen.as_str());
        return match TcpListener::bind(listen).await {
            Ok(_) => stages.none("replicas", format!("none runs here; {listen} is free")),
            Err(error) => {
                let why = format!("{listen} cannot be used for other replicas: {error}.");
                stages.bad("replicas", why, "Write another `gateway.replicas.listen`.");
            }
        };
    };
    let gateway = crate::admin::Gateway::at(admin);
    let known = match gateway {
        Ok(gateway) => gateway.get("/v1/status").await,
        Err(failure) => Err(failure),
    };
    let known = match known {
        Ok(status) => status["replicas"]["all"].as_array().cloned().unwrap_or_default(),
        Err(failure) => {
            let why = format!("The gateway does not say which replicas there are: {failure}");
            return stages.none("replicas", why);
        }
    };
    let mut lost = Vec::new();
    for url in known.iter().filter_map(|it| it["url"].as_str()) {
        let at = url.split_once("://").map_or(url, |(_, at)| at);
        let connected = timeout(PATIENCE, TcpStream::connect(at)).await;
        if !matches!(connected, Ok(Ok(_))) {
            lost.push(format!("`{url}`"));
        }
    }
    match lost.is_empty() {
        true => stages.fine("replicas", format!("{} alive, and all are reached", known.len())),
        false => {
            let why = format!(
                "Replicas are alive that this machine does not reach: {}.",
                lost.join(", ")
            );
            stages.bad(
                "replicas",
                why,
                "Open the way to `gateway.replicas.listen`, or correct `advertise`.",
            );
        }
    }
}

/// Whether a folder exists, if it is writable.
fn is_writable(folder: &Path) -> io::Result<bool> {
    let mut at = folder;
    while !at.exists() {
        at = at.parent().ok_or(io::ErrorKind::NotFound)?;
    }
    // Only a write shows whether it is allowed.
    let file = at.join(format!(".trunkline-doctor-{}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&file)?;
    fs::remove_file(&file)?;
    Ok(at == folder)
}

/// The status of an admin API's response.
async fn answers(at: &str) -> io::Result<u16> {
    let asking = async {
        match at.strip_prefix("unix:") {
            Some(path) => ask(UnixStream::connect(path).await?).await,
            None => ask(TcpStream::connect(at).await?).await,
        }
    };
    timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<u16> {
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    let status = std::str::from_utf8(&head).ok().and_then(|it| it.strip_prefix("HTTP/1.1 "));
    let status = status.and_then(|it| it.parse().ok());
    status.ok_or_else(|| io::Error::other("it does not speak HTTP"))
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);
