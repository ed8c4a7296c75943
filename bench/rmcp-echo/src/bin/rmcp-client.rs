//! Calls → rmcp's Streamable HTTP client, one for each task.

use std::process::ExitCode;
use std::sync::Arc;

use client_loop::{Caller, Mode, Options};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{RoleClient, ServiceExt};
use serde_json::json;

fn main() -> ExitCode {
    client_loop::main(connect)
}

async fn connect(options: Options) -> Result<Vec<Client>, String> {
    client_loop::open_each(&options, async |options| Ok(Client(Arc::new(open(options).await?))))
        .await
}

async fn open(options: &Options) -> Result<RunningService<RoleClient, ClientConfig>, String> {
    let transport = StreamableHttpClientTransport::from_uri(options.url.as_str());
    let own = Implementation::new("trunkline-bench", env!("CARGO_PKG_VERSION"));
    let info = ClientConfig::new(ClientCapabilities::default(), own);
    let client = match options.mode {
        Mode::Session => info.serve(transport).await,
        Mode::Stateless | Mode::Shared => {
            let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
            info.serve_with_lifecycle(
                transport,
                ClientLifecycleMode::Discover { preferred_versions },
            )
            .await
        }
    };
    client.map_err(|error| format!("The client does not connect: {error}."))
}

#[derive(Clone)]
struct Client(Arc<RunningService<RoleClient, ClientConfig>>);

impl Caller for Client {
    async fn call(&mut self, text: &str) -> Result<(), String> {
        let arguments = json!({"text": text}).as_object().cloned().unwrap_or_default();
        let params = CallToolRequestParams::new("echo").with_arguments(arguments);
        let result = self.0.call_tool(params).await;
        let result = result.map_err(|error| format!("The call failed: {error}."))?;
        match result.content.first().and_then(|content| content.as_text()) {
            Some(content) if content.text == text => Ok(()),
            _ => Err("The server did not echo the text.".into()),
        }
    }
}
