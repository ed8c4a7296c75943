//! The data types of a store.

use std::sync::Arc;

/// The version of an entry. No two writes in one store have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u64);

impl Version {
    /// The version with this number; for backends, and for persisted versions.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The entry of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The bytes.
    pub value: Arc<[u8]>,
    /// Their version.
    pub version: Version,
}

/// What a compare-and-swap expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No entry, or an expired one.
    Absent,
    /// The entry of this version.
    Version(Version),
}

/// The result of a compare-and-swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The value was written, as this version.
    Done(Version),
    /// The expectation failed; this is the unchanged current entry.
    Conflict(Option<Entry>),
}

impl Swap {
    /// The version that was written, if it was.
    pub fn version(&self) -> Option<Version> {
        match self {
            Swap::Done(version) => Some(*version),
            Swap::Conflict(_) => None,
        }
    }
}

/// The exclusive right to a name for a while.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    name: String,
    fence: u64,
}

impl Lease {
    /// The lease `name` with this fence; for backends, and for persisted leases.
    pub fn new(name: impl Into<String>, fence: u64) -> Self {
        Self { name: name.into(), fence }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A fencing token: it grows with every holder of this name. The protected resource can remember
    /// the greatest it saw and refuse a smaller one.
    pub fn fence(&self) -> u64 {
        self.fence
    }
}

/// One entry of a [`Page`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its key.
    pub key: String,
    /// Its bytes.
    pub value: Arc<[u8]>,
    /// Their version.
    pub version: Version,
}

/// A page of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Entries in byte order of their keys.
    pub items: Vec<Item>,
    /// What to pass as `after` for the next page; `None` on the last.
    pub next: Option<String>,
}

/// What a store guarantees across processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Entries survive the end of the process.
    pub durable: bool,
    /// Other processes that open the same store see the same entries and leases.
    pub shared: bool,
    /// Other processes that open the same store hear what is published.
    pub shared_channels: bool,
}

impl Capabilities {
    /// The same with another `durable`.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// The same with another `shared`.
    #[must_use]
    pub fn shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// The same with another `shared_channels`.
    #[must_use]
    pub fn shared_channels(mut self, shared: bool) -> Self {
        self.shared_channels = shared;
        self
    }
}
