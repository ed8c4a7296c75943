//! What goes into a store and what comes out of it, as plain data.

use std::sync::Arc;

/// Which writing of a key this is. No two writings in one store have the same.
///
/// ```
/// # use trunkline_store::Version;
/// let version = Version::new(7);
/// assert_eq!(version.number(), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u64);

impl Version {
    /// The version with this number; for backends, and for versions that were written down.
    ///
    /// ```
    /// # use trunkline_store::Version;
    /// assert!(Version::new(1) < Version::new(2));
    /// ```
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    ///
    /// ```
    /// # use trunkline_store::Version;
    /// assert_eq!(Version::new(1).number(), 1);
    /// ```
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What lies under a key.
///
/// ```
/// # use trunkline_store::{Entry, Version};
/// let entry = Entry { value: b"red".as_slice().into(), version: Version::new(1) };
/// assert_eq!(entry.value.len(), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The bytes.
    pub value: Arc<[u8]>,
    /// Which writing they are.
    pub version: Version,
}

/// What a swap expects to find.
///
/// ```
/// # use trunkline_store::{Expect, Version};
/// let create = Expect::Absent;
/// let change = Expect::Version(Version::new(3));
/// assert_ne!(create, change);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing, or something expired.
    Absent,
    /// The entry of this version.
    Version(Version),
}

/// How a swap ended.
///
/// ```
/// # use trunkline_store::{Swap, Version};
/// assert_eq!(Swap::Done(Version::new(3)).version(), Some(Version::new(3)));
/// assert_eq!(Swap::Conflict(None).version(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The value was written, as this version.
    Done(Version),
    /// Something else was there, or nothing. It still is; this is it.
    Conflict(Option<Entry>),
}

impl Swap {
    /// The version that was written, if it was.
    ///
    /// ```
    /// # use trunkline_store::Swap;
    /// assert!(Swap::Conflict(None).version().is_none());
    /// ```
    pub fn version(&self) -> Option<Version> {
        match self {
            Swap::Done(version) => Some(*version),
            Swap::Conflict(_) => None,
        }
    }
}

/// The right to be the only one for a while.
///
/// ```
/// # use trunkline_store::Lease;
/// let lease = Lease::new("sweeper", 7);
/// assert_eq!((lease.name(), lease.fence()), ("sweeper", 7));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    name: String,
    fence: u64,
}

impl Lease {
    /// The lease `name` with this fence; for backends, and for leases that were written down.
    ///
    /// ```
    /// # use trunkline_store::Lease;
    /// assert_eq!(Lease::new("sweeper", 7).name(), "sweeper");
    /// ```
    pub fn new(name: impl Into<String>, fence: u64) -> Self {
        Self { name: name.into(), fence }
    }

    /// Its name.
    ///
    /// ```
    /// # use trunkline_store::Lease;
    /// assert_eq!(Lease::new("sweeper", 7).name(), "sweeper");
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number that grows with every holder of this name. Whoever is worked for can remember the
    /// greatest it saw and refuse what comes with a smaller one.
    ///
    /// ```
    /// # use {std::time::Duration, trunkline_store::{Memory, Store}};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), trunkline_store::StoreError> {
    /// # let (store, ttl) = (Memory::default(), Duration::from_secs(9));
    /// let first = store.lease("sweeper", ttl).await?.expect("nobody has it");
    /// store.release(&first).await?;
    /// let second = store.lease("sweeper", ttl).await?.expect("it was released");
    /// assert!(second.fence() > first.fence());
    /// # Ok(()) }
    /// ```
    pub fn fence(&self) -> u64 {
        self.fence
    }
}

/// One entry of a [`Page`].
///
/// ```
/// # use trunkline_store::{Item, Version};
/// let item = Item { key: "a".into(), value: b"1".as_slice().into(), version: Version::new(1) };
/// assert_eq!(item.key, "a");
/// ```
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
///
/// ```
/// # use trunkline_store::Page;
/// let page = Page::default();
/// assert!(page.items.is_empty() && page.next.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Entries, in the order of their keys' bytes.
    pub items: Vec<Item>,
    /// What to give as `after` to go on; `None` when there is no more.
    pub next: Option<String>,
}

/// How far a store reaches.
///
/// ```
/// # use trunkline_store::Capabilities;
/// let redis = Capabilities::default().durable(true).shared(true).shared_channels(true);
/// assert!(redis.shared && redis.durable);
/// ```
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
    ///
    /// ```
    /// # use trunkline_store::Capabilities;
    /// assert!(Capabilities::default().durable(true).durable);
    /// ```
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// The same with another `shared`.
    ///
    /// ```
    /// # use trunkline_store::Capabilities;
    /// assert!(Capabilities::default().shared(true).shared);
    /// ```
    #[must_use]
    pub fn shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// The same with another `shared_channels`.
    ///
    /// ```
    /// # use trunkline_store::Capabilities;
    /// assert!(Capabilities::default().shared_channels(true).shared_channels);
    /// ```
    #[must_use]
    pub fn shared_channels(mut self, shared: bool) -> Self {
        self.shared_channels = shared;
        self
    }
}
