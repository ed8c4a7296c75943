//! `tools/call` of `echo` and `progress` over Streamable HTTP, as a user of rmcp and axum writes it.

use std::error::Error;

use axum::serve::ListenerExt;
use rmcp::handler::server::router::tool::{ToolRoute, ToolRouter};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{JsonObject, ProgressNotificationParam, Tool};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let extra = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 0,
    };
    // The sessions of old revisions answer with event streams whatever this says.
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service = StreamableHttpService::new(
        move || Ok(Echo::new(extra)),
        LocalSessionManager::default().into(),
        config,
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // Without it an answer waits for the acknowledgement of its head.
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?)
}

#[derive(Clone)]
struct Echo {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Echo {
    fn new(extra: usize) -> Echo {
        let mut tool_router = Self::tool_router();
        for number in 0..extra {
            let tool = Tool::new(format!("extra_{number}"), "Never called", JsonObject::new());
            tool_router = tool_router.with_route(ToolRoute::new_dyn(tool, |_| unreachable!()));
        }
        Echo { tool_router }
    }

    #[tool(description = "Returns the text")]
    async fn echo(&self, Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }

    #[tool(description = "Reports progress once and returns the text")]
    async fn progress(
        &self,
        Parameters(EchoArguments { text }): Parameters<EchoArguments>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0);
            let sent = context.peer.notify_progress(progress).await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        Ok(text)
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Echo {}

#[derive(Deserialize, JsonSchema)]
struct EchoArguments {
    text: String,
}
