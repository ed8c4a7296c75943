//! Write MCP servers and clients once, for every revision of the protocol.
//!
//! A server is a value: tools, resources and prompts are plain async functions, their schemas come
//! from their Rust types, and what it can do is derived from what is registered.
//!
//! ```no_run
//! use trunkline::{Args, Server, schemars::JsonSchema, serde::Deserialize, tool};
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(crate = "trunkline::serde")]
//! #[schemars(crate = "trunkline::schemars")]
//! struct Echo {
//!     text: String,
//! }
//!
//! async fn echo(Args(it): Args<Echo>) -> String {
//!     it.text
//! }
//!
//! fn main() -> Result<(), trunkline::server::ServeError> {
//!     Server::builder("echo", "1.0.0").tool(tool("echo", echo).about("Says it back.")).build().run_stdio()
//! }
//! ```
//!
//! Read [`server`] to offer something, [`client`] to use what others offer.

#![forbid(unsafe_code)]

#[cfg(feature = "auth")]
pub mod auth;
mod caller;
pub mod client;
mod error;
mod extract;
pub mod form;
pub mod layer;
pub mod observe;
mod schema;
mod secret;
pub mod server;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;
mod validate;

pub use caller::Caller;
pub use client::Client;
pub use error::ToolError;
pub use extract::{
    Args, Cancelled, Capabilities, ClientInfo, Extension, Headers, Meta, State, Uri,
};
pub use form::Form;
pub use schema::SchemaProfile;
pub use secret::Secret;
pub use server::{
    Answer, Context, IntoTool, Json, Server, Task, prompt, resource, skill, template, tool,
};
pub use trace::TraceContext;
pub use trunkline_auth::Principal;
#[cfg(feature = "macros")]
pub use trunkline_macros::{Form, data, prompt, resource, test, tool, toolbox};

/// How deadlines are given.
pub use trunkline_proto::{Change, Timing};
/// The byte streams underneath, for programs that bring their own.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let ((mut reader, _), (_, mut writer)) = trunkline::transport::memory::pair();
/// writer.write_all(b"Hello!").await.unwrap();
/// let mut heard = [0; 6];
/// reader.read_exact(&mut heard).await.unwrap();
/// assert_eq!(&heard, b"Hello!");
/// # });
/// ```
pub mod transport {
    pub use trunkline_transport::drive::DriveError;
    pub use trunkline_transport::{child, memory};
}
/// Stores for tasks: keys and bytes, in memory, in files, or in a store of yours.
pub use trunkline_store as store;
/// All limits in one place.
pub use trunkline_transport::Limits;
/// JSON that is carried, not parsed.
pub use trunkline_wire::json::Json as RawJson;
/// The JSON-RPC error object.
pub use trunkline_wire::jsonrpc::ErrorObject;
/// The version-free types of the protocol.
pub use trunkline_wire::model;
/// The five revisions.
pub use trunkline_wire::revision::{Era, Revision, Revisions};

pub use schemars;
pub use serde;
pub use serde_json;

/// The names for everyday use: `use trunkline::prelude::*;`.
///
/// ```
/// use trunkline::prelude::*;
///
/// /// Adds two numbers.
/// #[tool]
/// async fn add(a: i64, b: i64) -> Result<Json<i64>, ToolError> {
///     Ok(Json(a + b))
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder("sums", "1.0.0").tool(add).build();
/// let sum: i64 = Client::in_memory(&server).await?.call("add", &json!({ "a": 1, "b": 2 })).await?;
/// assert_eq!(sum, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub mod prelude {
    pub use serde_json::json;

    pub use crate::{
        Args, Client, Context, Extension, Form, Headers, IntoTool, Json, Principal, Server, State,
        Task, ToolError, prompt, resource, template, tool,
    };
    #[cfg(feature = "macros")]
    pub use crate::{data, toolbox};
}

/// What the expanded macros refer to. Not for use by hand: it may change at any time.
#[doc(hidden)]
pub mod __private {
    pub use std::sync::Arc;

    pub use schemars;
    pub use serde;

    pub use crate::*;
}

/// The pages of the guide, whose snippets run as tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/composing.md")]
    struct Composing;
}
