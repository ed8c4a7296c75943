//! What authorization needs of the world: fetches, logins, and where they are kept.
//!
//! [`HttpFetch`] makes the requests of `trunkline_auth`, wherever its guard lets them go. [`Loopback`]
//! has a person log in with the browser of this machine. Logins are kept in a [`MemoryVault`], a
//! [`FileVault`] or a [`KeyringVault`].

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
