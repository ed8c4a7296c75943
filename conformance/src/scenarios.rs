//! What the suite wants a client to do: one function a scenario.
//!
//! The suite judges what it sees on the wire. What is checked here beside it is that the answers
//! reach the caller.

mod auth;
mod connect;
mod headers;
mod skills;
mod tools;

use std::fmt;
use std::time::Duration;

pub use connect::answers;
use serde_json::Value;
use tokio::time::timeout;
use trunkline::Revision;
use trunkline::client::{CallError, Client, ConnectError, SkillError};

/// What the suite asks for.
#[derive(Clone, Debug)]
pub struct Order {
    /// The scenario's name.
    pub scenario: String,
    /// The server's address.
    pub url: String,
    /// The revision to speak; the client's own choice if the suite names none.
    pub revision: Option<Revision>,
    /// What else the scenario gives the client.
    pub context: Value,
}

impl Order {
    /// Reads what the suite puts into the environment.
    pub fn read(url: String, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let scenario = variable("MCP_CONFORMANCE_SCENARIO").ok_or_else(|| {
            Failure::new("Set `MCP_CONFORMANCE_SCENARIO` to the name of a scenario.")
        })?;
        let revision = match variable("MCP_CONFORMANCE_PROTOCOL_VERSION") {
            None => None,
            Some(name) => Some(Revision::parse(&name).ok_or_else(|| {
                Failure::new(format!("`{name}` is no revision of the protocol that we speak."))
            })?),
        };
        let context = match variable("MCP_CONFORMANCE_CONTEXT") {
            None => Value::Null,
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                Failure::new(format!("`MCP_CONFORMANCE_CONTEXT` is not JSON: {error}."))
            })?,
        };
        Ok(Self { scenario, url, revision, context })
    }

    /// Whether the server wants to know who asks.
    fn is_protected(&self) -> bool {
        self.scenario.starts_with("auth/")
    }
}

/// Does what a scenario asks for.
pub async fn run(order: &Order) -> Result<(), Failure> {
    let done = timeout(PATIENCE, async {
        let client = connect::connect(order).await?;
        let done = play(order, &client).await;
        client.close().await;
        done
    });
    done.await.unwrap_or_else(|_| Err(Failure::new("The scenario was not over in time.")))
}

async fn play(order: &Order, client: &Client) -> Result<(), Failure> {
    if order.is_protected() {
        return auth::play(client).await;
    }
    match order.scenario.as_str() {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => tools::list(client).await,
        "tools_call" => tools::add_numbers(client).await,
        "elicitation-sep1034-client-defaults" => {
            tools::call(client, "test_client_elicitation_defaults").await
        }
        "sse-retry" => tools::call(client, "test_reconnection").await,
        "sep-2322-client-request-state" => tools::rounds(client).await,
        "json-schema-2020-12-preservation" => tools::echo_schema(client).await,
        "http-standard-headers" => headers::standard(client).await,
        "http-custom-headers" => headers::custom(client, &order.context).await,
        "http-invalid-tool-headers" => headers::every_tool(client).await,
        "sep-2640-client-no-prefetch" => skills::list(client).await,
        "sep-2640-client-verify-digest"
        | "sep-2640-client-verify-size"
        | "sep-2640-client-verify-frontmatter" => skills::load(client).await,
        other => Err(Failure::new(format!("There is no scenario `{other}` here; add it."))),
    }
}

/// Why a scenario did not come to its end, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self(error.to_string())
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self(error.to_string())
    }
}

impl From<SkillError> for Failure {
    fn from(error: SkillError) -> Self {
        Self(error.to_string())
    }
}

/// The suite waits 30 s, and is not told when it kills only our shell.
const PATIENCE: Duration = Duration::from_secs(25);
