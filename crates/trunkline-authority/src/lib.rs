//! A small authorization server for trying out and testing: a request → its response. **Not for
//! production**: it keeps everything in memory and knows its users by name alone.
//!
//! It does what MCP asks of an authorization server, strictly: discovery (RFC 8414 and OpenID),
//! registration of three kinds, codes with PKCE, refresh tokens that rotate, client credentials,
//! signed assertions, DPoP, introspection, revocation. It opens no socket and reads no clock; the
//! feature `serve` puts it on a listener.
//!
//! ```
//! use std::time::SystemTime;
//! use trunkline_authority::{Authority, Client, Request, Settings};
//!
//! let nightly = Client::new("nightly").secret("s3cret");
//! let settings = Settings::new().client(nightly).scopes(["files:read"]);
//! let authority = Authority::new("http://localhost:9000", settings);
//! let fields = [
//!     ("grant_type", "client_credentials"),
//!     ("client_id", "nightly"),
//!     ("client_secret", "s3cret"),
//!     ("resource", "http://localhost:3000/mcp"),
//!     ("scope", "files:read"),
//! ];
//! let response = authority.answer(Request::form("/token", &fields, SystemTime::now()));
//! assert_eq!(response.status, 200);
//! assert_eq!(response.json()["token_type"], "Bearer");
//! ```
//!
//! Read `authority.rs` first: it holds the table of endpoints.

#![forbid(unsafe_code)]

mod assertion;
mod authority;
mod authorize;
mod client;
mod desk;
mod document;
mod fault;
mod fields;
mod identify;
mod inspect;
mod message;
mod metadata;
mod mint;
mod page;
mod proof;
mod redirect;
mod register;
#[cfg(feature = "serve")]
mod serve;
mod settings;
mod shelf;
mod stats;
mod token;

pub use authority::Authority;
pub use client::Client;
pub use message::{Request, Response};
#[cfg(feature = "serve")]
pub use serve::Serving;
pub use settings::Settings;
pub use stats::Stats;
