//! Keys ⇄ bytes, with a TTL. Knows nothing of MCP.
//!
//! What must outlive a call, a process or a machine goes through [`Store`]: values with a TTL,
//! compare-and-swap, counters, token buckets, leases, scans by prefix and channels. [`Memory`] keeps it in this
//! process, [`Folder`] in files that survive it, `Redis` (feature `redis`) on other machines that
//! many processes share. A program holds an `Arc<dyn Store>` and does not depend on the backend.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use trunkline_store::{Expect, Memory, Store, Swap};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), trunkline_store::StoreError> {
//!
//! let store: Arc<dyn Store> = Arc::new(Memory::default());
//! let hour = Some(Duration::from_secs(3600));
//! store.put("task/1", b"working", hour).await?;
//!
//! let entry = store.get("task/1").await?.expect("it was just put");
//! let swap = store.swap("task/1", Expect::Version(entry.version), b"completed", hour).await?;
//! assert!(matches!(swap, Swap::Done(_)));
//!
//! let page = store.scan("task/", None, 100).await?;
//! assert_eq!(&*page.items[0].value, b"completed");
//! # Ok(()) }
//! ```
//!
//! Read the trait below first, then `decide.rs`, which holds what the two local backends share. The author of
//! another backend runs `suite` (feature `suite`) against it.
//!
//! # What is promised
//!
//! - **One order per key.** Operations on one key are serialised, also between many tasks, and between
//!   processes where [`Capabilities::shared`] says so.
//! - **Versions and fences are never reused**, even if a key is deleted and created again.
//! - **Everything has a [`Bound`](Bounds).** A write beyond it fails; nothing is evicted to make room.
//!   Writes remove expired entries, without a background task.
//! - **A dropped future may or may not have done its work**, and so may a write that failed with
//!   [`StoreError::Unavailable`]. Every operation is atomic.

#![forbid(unsafe_code)]

mod address;
mod backend;
mod bounds;
mod bucket;
mod channels;
mod clock;
mod decide;
mod entry;
mod error;
mod folder;
mod listen;
mod memory;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "suite")]
pub mod suite;

use std::pin::Pin;
use std::time::Duration;

pub use address::{BadAddress, RedisAddress};
pub use bounds::Bounds;
pub use bucket::Bucket;
pub use clock::{Clock, Manual, Monotonic, Wall};
pub use entry::{Capabilities, Entry, Expect, Item, Lease, Page, Swap, Version};
pub use error::StoreError;
pub use folder::{Damage, Folder};
pub use listen::{Feed, Heard, Listener};
pub use memory::Memory;
#[cfg(feature = "redis")]
pub use redis::{Redis, RedisSettings};

/// A store operation: a future that does nothing until it is awaited.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// How long an entry lives (time to live). `None` means for ever; zero is refused.
pub type Ttl = Option<Duration>;

/// The key after which a scan goes on: [`Page::next`] of the page before; `None` begins.
pub type Cursor<'a> = Option<&'a str>;

/// Keys and bytes.
///
/// A key is any text of 1 to [`Bounds::key`] bytes; it is case-sensitive, and no character is special.
/// The names of leases and channels follow the same rule. Entries, leases and channels are three
/// namespaces: a lease `a` has nothing to do with an entry `a`.
pub trait Store: Send + Sync + 'static {
    /// The entry of `key`, unless it has expired.
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>>;

    /// Writes `value` under `key`, whatever is there, and returns its version.
    fn put<'a>(&'a self, key: &'a str, value: &'a [u8], ttl: Ttl) -> Pending<'a, Version>;

    /// Writes `new` under `key` if the current entry is the expected `old` one (compare-and-swap). Of
    /// concurrent swaps with the same expectation, one wins; the others get the current entry. The new
    /// entry has the TTL given here.
    fn swap<'a>(&'a self, key: &'a str, old: Expect, new: &'a [u8], ttl: Ttl) -> Pending<'a, Swap>;

    /// Deletes the entry of `key`. Of concurrent deletes of one entry exactly one gets `true`, so this
    /// also implements one-time use.
    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, bool>;

    /// Adds `by` to the number under `key` and returns the sum. A missing number counts as 0 and gets
    /// `ttl`; an existing one keeps its expiry, so that a time window ends when it should.
    ///
    /// The number is an ordinary entry, written in decimal.
    fn count<'a>(&'a self, key: &'a str, by: i64, ttl: Ttl) -> Pending<'a, i64>;

    /// Takes one token of each of these buckets under `key`, or of none: then it returns how long to wait. A
    /// bucket that was never taken of is full. Time is the store's own, so processes need not agree on it.
    ///
    /// The buckets are an ordinary entry, which expires when all are full. A store that has no buckets, as
    /// unless it implements this, refuses.
    fn take<'a>(
        &'a self,
        _key: &'a str,
        _buckets: &'a [Bucket],
    ) -> Pending<'a, Result<(), Duration>> {
        Box::pin(async {
            Err(StoreError::Unavailable("This store cannot limit rates; use another.".to_owned()))
        })
    }

    /// Acquires the lease `name` for `ttl`, or returns `None` if it is held.
    ///
    /// A lease ends by [`release`](Self::release) or by expiry. A later holder has a greater
    /// [`Lease::fence`], so work done under an older lease can be recognised and refused.
    fn lease<'a>(&'a self, name: &'a str, ttl: Duration) -> Pending<'a, Option<Lease>>;

    /// Extends `lease` to `ttl` from now. `false`: it has ended, and its holder must stop.
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Pending<'a, bool>;

    /// Ends `lease`. `false`: it had ended already; another holder's lease of that name stays.
    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, bool>;

    /// The entries whose keys start with `prefix` and follow `after`, in byte order: at most `limit`
    /// (at least 1, at most [`Bounds::page`]), and fewer if they are large.
    ///
    /// [`Page::next`] is the next [`Cursor`]; only `None` means that there is no more. An entry that exists from
    /// the first page to the last is returned exactly once, whatever happens to others meanwhile.
    fn scan<'a>(&'a self, prefix: &'a str, after: Cursor<'a>, limit: usize) -> Pending<'a, Page>;

    /// Sends `message` to all current listeners of `channel`. Having none is no error.
    fn publish<'a>(&'a self, channel: &'a str, message: &'a [u8]) -> Pending<'a, ()>;

    /// Listens to `channel` from now on. The messages of one publisher arrive in order. A listener that
    /// is more than [`Bounds::queue`] messages behind loses the oldest, and learns how many.
    fn listen<'a>(&'a self, channel: &'a str) -> Pending<'a, Listener>;

    /// What survives a restart, and who else sees it.
    fn capabilities(&self) -> Capabilities;
}
