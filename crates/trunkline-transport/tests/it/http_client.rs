//! The client's end of HTTP against scripted servers.

mod eras;
mod faults;
mod limits;
mod owners;
mod script;
mod sessions;
#[cfg(feature = "tls")]
mod tls;

use std::sync::Arc;
use std::time::Duration;

use trunkline_proto::CallError;
use trunkline_proto::client::{Config, OpenError};
use trunkline_transport::Limits;
use trunkline_transport::connection::Connection;
use trunkline_transport::conversation_handle::Request;
use trunkline_transport::handler::Nobody;
use trunkline_transport::http::client::HttpTarget;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::Implementation;

use script::{Script, Seen, Step, accepted, headed, json, status};

/// The capabilities of every kind of server.
const OFFERS: &str = r#""capabilities":{"tools":{},"prompts":{},"resources":{},"logging":{}}"#;

fn config() -> Arc<Config> {
    Arc::new(Config::new(Implementation::new("test", "1")))
}

fn target(script: &Script) -> HttpTarget {
    HttpTarget::new(&script.url).verdicts(None)
}

async fn open(script: &Script) -> Result<Connection, OpenError> {
    open_at(target(script), Limits::default()).await
}

async fn open_at(target: HttpTarget, limits: Limits) -> Result<Connection, OpenError> {
    Connection::open_http(config(), Arc::new(Nobody), target, limits).await
}

/// Calls a method with parameters as text.
async fn call(
    connection: &Connection,
    method: &'static str,
    params: &str,
) -> Result<Json, CallError> {
    let calling = connection.call(Request::new(method, Object::parse(params).unwrap()));
    tokio::time::timeout(Duration::from_secs(20), calling).await.expect("calls do not hang")
}

/// `tools/call` of the tool `t`.
async fn call_tool(connection: &Connection) -> Result<Json, CallError> {
    call(connection, "tools/call", r#"{"name":"t","arguments":{}}"#).await
}

/// A stateless server whose calls are answered by `respond`.
async fn stateless(respond: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static) -> Script {
    Script::start(move |seen, n| match seen.what() {
        "server/discover" => json(seen.result(&discovered())),
        _ => respond(seen, n),
    })
    .await
}

/// A server of 2025-11-25 with sessions, whose calls are answered by `respond`. It has no general
/// stream.
async fn stateful(respond: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static) -> Script {
    Script::start(move |seen, n| match seen.what() {
        "server/discover" => status(400, "text/plain", "Bad Request: no session"),
        "initialize" => headed(
            200,
            &format!("content-type: application/json\r\nmcp-session-id: session-{n}\r\n"),
            seen.result(&initialized("2025-11-25")),
        ),
        "notifications/initialized" => accepted(),
        "DELETE" => headed(204, "", ""),
        _ => match respond(seen, n) {
            steps if steps.is_empty() => headed(405, "", ""),
            steps => steps,
        },
    })
    .await
}

fn discovered() -> String {
    format!(
        r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],{OFFERS},"ttlMs":0,"cacheScope":"public"}}"#
    )
}

fn initialized(revision: &str) -> String {
    format!(
        r#"{{"protocolVersion":"{revision}",{OFFERS},"serverInfo":{{"name":"s","version":"1"}}}}"#
    )
}

/// The result of a call, in either era.
const DONE: &str = r#"{"resultType":"complete","content":[],"isError":false}"#;
