//! What goes into a store and what comes out of it, as plain data.

use std::sync::Arc;

/// Which writing of a key this is. No two writings in one store have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u64);

impl Version {
    /// The version with this number; for backends, and for versions that were written down.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What lies under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The bytes.
    pub value: Arc<[u8]>,
    /// Which writing they are.
    pub version: Version,
}

/// What a swap expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing, or something expired.
    Absent,
    /// The entry of this version.
    Version(Version),
}

/// How a swap ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The value was written, as this version.
    Done(Version),
    /// Something else was there, or nothing. It still is; this is it.
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

/// The right to be the only one for a while.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    name: String,
    fence: u64,
}

impl Lease {
    /// The lease `name` with this fence; for backends, and for leases that were written down.
    pub fn new(name: impl Into<String>, fence: u64) -> Self {
        Self { name: name.into(), fence }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number that grows with every holder of this name. Whoever is worked for can remember the
    /// greatest it saw and refuse what comes with a smaller one.
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
    /// Which writing they are.
    pub version: Version,
}

/// A part of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Entries, in the order of their keys' bytes.
    pub items: Vec<Item>,
    /// What to give as `after` to go on; `None` when there is no more.
    pub next: Option<String>,
}

/// How far a store reaches.
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
