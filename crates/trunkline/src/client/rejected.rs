//! Tools of a server that must not be used → a record of why.

use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline_wire::header::ParamHeaders;
use trunkline_wire::model::Tool;

/// A tool that was left out of the lists. In 2026-07-28 a tool with invalid `x-mcp-header`
/// annotations must not be used.
///
/// ```
/// use trunkline::{Client, Server, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// let client = Client::in_memory(&server).await?;
/// let tools = client.list_tools().await?;
/// for tool in client.rejected_tools() {
///     eprintln!("`{}` cannot be used: {}", tool.name, tool.why);
/// }
/// # assert!(tools.len() == 1 && client.rejected_tools().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedTool {
    /// Its name.
    pub name: String,
    /// What is wrong with it, as a sentence.
    pub why: String,
}

/// The tools that the last lists left out.
#[derive(Default)]
pub(super) struct Rejected(Mutex<Vec<RejectedTool>>);

impl Rejected {
    /// Removes the tools that must not be used, and records why.
    pub(super) fn remove_rejected(&self, tools: &mut Vec<Tool>) {
        let mut noted = self.lock();
        tools.retain(|tool| {
            let verdict = ParamHeaders::read(&tool.input_schema);
            noted.retain(|it| it.name != tool.name);
            if let Err(invalid) = &verdict
                && noted.len() < MOST
            {
                noted.push(RejectedTool { name: tool.name.clone(), why: invalid.to_string() });
            }
            verdict.is_ok()
        });
    }

    pub(super) fn list(&self) -> Vec<RejectedTool> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RejectedTool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many rejected tools are recorded; the others are left out without a record.
const MOST: usize = 100;
