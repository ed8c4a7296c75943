//! `ERA (URL | COMMAND ARG…)` → what a client made with rmcp 3.8 sees of the travel server, as one line of JSON.
//!
//! rmcp starts a task for each notification, so its handler may hear them in any order. What came over the
//! wire, and when, is read from the transport underneath.
#![forbid(unsafe_code)]

use std::error::Error;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, Implementation, JsonRpcMessage, ProgressNotificationParam, ProtocolVersion,
    ServerNotification,
};
use rmcp::service::{
    ClientLifecycleMode, NotificationContext, RequestContext, RxJsonRpcMessage, TxJsonRpcMessage,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, Transport};
use rmcp::{ClientHandler, ClientServiceExt, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let lifecycle = match words.next().as_deref() {
        // What `serve()` does.
        Some("legacy") => ClientLifecycleMode::Initialize,
        Some("auto") => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        },
        _ => return Err("usage: travel-client auto|legacy (URL | COMMAND ARG…)".into()),
    };
    let target = words.next().ok_or("name a URL or a command")?;
    let report = if target.starts_with("http://") {
        book(StreamableHttpClientTransport::from_uri(target), lifecycle).await?
    } else {
        let mut command = tokio::process::Command::new(target);
        command.args(words);
        book(TokioChildProcess::new(command)?, lifecycle).await?
    };
    println!("{report}");
    Ok(())
}

async fn book<T>(transport: T, lifecycle: ClientLifecycleMode) -> Result<Value, Box<dyn Error>>
where
    T: Transport<RoleClient> + 'static,
{
    let seen = Seen::default();
    let tapped = Tapped { transport, seen: seen.clone() };
    let client = Person(seen.clone()).serve_with_lifecycle(tapped, lifecycle).await?;
    let revision = client.peer_info().map(|it| it.protocol_version.to_string());
    let tools = client.list_all_tools().await?;
    let has_schema = tools.iter().any(|it| it.name == "book" && it.output_schema.is_some());

    let arguments = json!({ "city": "Oslo", "nights": 3 });
    let params = CallToolRequestParams::new("book")
        .with_arguments(arguments.as_object().cloned().unwrap_or_default());
    let result = client.call_tool(params).await?;
    // Its handlers may still run when the answer is there.
    let _ = tokio::time::timeout(Duration::from_secs(2), seen.all_heard()).await;
    client.cancel().await?;

    let noted = seen.lock();
    Ok(json!({
        "revision": revision,
        "schema": has_schema,
        "asked": noted.asked,
        "wire": noted.wire,
        "heard": noted.heard,
        "error": result.is_error.unwrap_or(false),
        "result": result.structured_content,
    }))
}

/// What was seen so far.
#[derive(Clone, Default)]
struct Seen(Arc<(Mutex<Noted>, Notify)>);

#[derive(Default)]
struct Noted {
    asked: u32,
    wire: Vec<[f64; 2]>,
    heard: Vec<[f64; 2]>,
}

impl Seen {
    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn all_heard(&self) {
        loop {
            let more = self.0.1.notified();
            {
                let noted = self.lock();
                if noted.heard.len() >= noted.wire.len() {
                    return;
                }
            }
            more.await;
        }
    }
}

fn step(params: &ProgressNotificationParam) -> [f64; 2] {
    [params.progress, params.total.unwrap_or_default()]
}

/// A transport that notes the progress it hands on.
struct Tapped<T> {
    transport: T,
    seen: Seen,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tapped<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await?;
        if let JsonRpcMessage::Notification(it) = &message
            && let ServerNotification::ProgressNotification(it) = &it.notification
        {
            self.seen.lock().wire.push(step(&it.params));
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

/// Says yes to everything.
struct Person(Seen);

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("peer-rmcp", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { requested_schema, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        self.0.lock().asked += 1;
        let yes = requested_schema.properties.into_keys().map(|name| (name, json!(true)));
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(yes.collect()))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.0.lock().heard.push(step(&params));
        self.0.0.1.notify_waiters();
    }
}
