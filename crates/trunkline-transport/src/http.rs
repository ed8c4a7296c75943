//! Streamable HTTP and the old HTTP+SSE ⇄ the protocol.
//!
//! An exchange (`exchange.rs`) answers a request of 2026-07-28 in place; an older request belongs to a
//! session (`session.rs`). `trunkline_proto::http` decides which it is, and [`Endpoint`] acts on the
//! decision. [`serve`] accepts connections and closes those that stall.

mod admitted;
mod body;
mod budgets;
pub mod client;
mod cors;
mod endpoint;
mod entry;
mod exchange;
mod expiry;
pub mod forward;
#[cfg(feature = "auth")]
mod gate;
mod h1;
mod idle_tracker;
mod lasting;
mod lent_head;
mod linger;
mod listener;
mod message_text;
mod post;
pub mod replicas;
mod response;
mod serve;
mod session;
mod sessions;
mod shared_sessions;
mod sse;
#[cfg(feature = "tls")]
mod tls;

pub use admitted::RequestHeaders;
pub use body::{HttpBody, RequestBody};
pub use budgets::Budgets;
pub use endpoint::{Endpoint, Page, Settings};
pub use entry::LetIn;
pub use lasting::Lasting;
pub use lent_head::LentHead;
pub use linger::linger;
pub use listener::Listener;
pub use response::{plain, refuse};
pub use serve::{Answers, Envelopes, UntilLeft, bind, serve, serve_stream};
pub use shared_sessions::SharedSessions;
#[cfg(feature = "tls")]
pub use tls::Tls;
