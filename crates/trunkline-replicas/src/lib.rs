//! Many processes that serve as one: who owns which session, and who goes on with it when its owner is gone.
//!
//! Every replica writes a heartbeat into a [`Store`](trunkline_store::Store) that all share. A session has a record
//! there that names its owner; any replica that gets a request for it finds the owner, or becomes the owner if that
//! one is dead. [`Replica`] implements [`Replicas`](trunkline_transport::http::replicas::Replicas), which an endpoint
//! asks.
//!
//! ```
//! use std::sync::Arc;
//! use trunkline_replicas::{Replica, Settings};
//! use trunkline_store::Memory;
//! use trunkline_transport::http::replicas::{Replicas, SessionRecord};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let (store, key) = (Arc::new(Memory::default()), [7; 32]);
//! let replica = Replica::start(Settings::new(store, &[key], "http://10.0.0.7:7474")).unwrap();
//! replica.until_ready().await;
//! let id = replica.open(SessionRecord::default()).await.unwrap();
//! assert!(replica.may_answer(&id));
//! # }
//! ```
//!
//! What decides is `state`, a state machine without IO or clock; its first comment says why no two replicas answer
//! for one session. What acts is `runner`, one task.

#![forbid(unsafe_code)]

mod clock;
mod codec;
mod events;
mod farewell;
mod ids;
mod ping;
mod replica;
mod runner;
mod shared;
mod state;
mod timing;

pub use ping::Pinger;
pub use replica::{PeerStatus, Replica, Settings, Status};
pub use timing::Timing;
