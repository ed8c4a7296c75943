//! What the suite wants to find on a server: every name, text and schema here is the suite's.

/// Adds tools to a server, one a line: its name, its function and what is said about it.
macro_rules! tools {
    ($server:expr, $($name:literal: $function:ident, $about:literal $(, task $support:ident)?;)*) => {
        $server$(.tool(
            trunkline::tool($name, $function)
                .about($about)
                $(.task(trunkline::model::TaskSupport::$support))?
        ))*
    };
}

mod asking;
mod prompts;
mod resources;
mod rounds;
mod skills;
mod tasks;
mod tools;

use trunkline::server::ServerBuilder;
use trunkline::{Server, ToolError};

/// What most tools return: a text, or why there is none.
type Said = Result<String, ToolError>;

/// The server.
///
/// # Panics
/// If a fixture is not what it should be, such as a template that cannot be read.
pub fn server() -> Server {
    builder().build()
}

/// The server before it is built.
///
/// # Panics
/// As [`server`] does.
pub fn builder() -> ServerBuilder {
    let server = Server::builder("trunkline-conformance", env!("CARGO_PKG_VERSION"))
        .title("trunkline for the conformance suite")
        .instructions("Run the official conformance suite against this server.")
        // The suite looks at the first page of a list only.
        .page_size(200);
    // The suite calls the first tool of the list without arguments.
    let server = asking::add(tools::add(server));
    let server = tasks::add(rounds::add(server));
    skills::add(prompts::add(resources::add(server)))
}

/// A red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
/// A millisecond of silence.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";
