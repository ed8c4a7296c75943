//! How do I take a secret? As a `Secret`, which is read but never shown: not in logs, not in
//! traces, not in what the model reads about wrong arguments.

use std::process::ExitCode;
use trunkline::{Secret, Server, ToolError, tool};

/// Logs in at the library.
#[tool]
async fn log_in(
    user: String,
    /// At least eight characters.
    #[schemars(length(min = 8))]
    password: Secret<String>,
) -> Result<String, ToolError> {
    if password.expose() != "open sesame" {
        return Err(ToolError::new(format!("The library does not know {user} with {password}.")));
    }
    Ok(format!("{user} is logged in."))
}

fn main() -> ExitCode {
    Server::builder("secrets", "1.0.0").tool(log_in).build().run()
}
