//! The IO behind authorization: fetches, logins, and their storage.
//!
//! [`HttpFetch`] makes the requests of `trunkline_auth`, within its guard. [`Loopback`] lets a person
//! log in with the browser of this machine. A [`MemoryVault`], a [`FileVault`] or a [`KeyringVault`]
//! stores logins.

mod fetch;
mod file;
mod keyring;
mod loopback;
mod memory;
mod open;

pub use fetch::HttpFetch;
pub use file::FileVault;
pub use keyring::KeyringVault;
pub use loopback::Loopback;
pub use memory::MemoryVault;
