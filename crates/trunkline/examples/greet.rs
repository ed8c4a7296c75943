//! A question in the middle of a call → a greeting, with one source for every revision.
//!
//! The client must be able to ask its user: most desktop hosts are.

use trunkline::server::ServeError;
use trunkline::{Answer, Context, Form, Server, ToolError, tool};

#[derive(Form)]
struct Who {
    /// Your name
    name: String,
    /// Whether to be formal
    formal: Option<bool>,
}

async fn greet(cx: Context) -> Result<String, ToolError> {
    let who: Who = match cx.ask("What is your name?").await? {
        Answer::Accept(who) => who,
        // "No" is an answer, not a failure.
        Answer::Decline | Answer::Cancel => return Ok("Hello, stranger!".to_owned()),
    };
    Ok(match who.formal {
        Some(true) => format!("Good day, {}.", who.name),
        _ => format!("Hello, {}!", who.name),
    })
}

fn main() -> Result<(), ServeError> {
    let greet = tool("greet", greet).about("Asks the user's name and greets them.");
    Server::builder("greet", "1.0.0").tool(greet).build().run_stdio()
}
