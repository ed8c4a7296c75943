//! Keys ⇄ bytes, kept for as long as somebody asked. Knows nothing of MCP.
//!
//! What must outlive a call, a process or a machine goes through [`Store`]: values with a time to
//! live, compare-and-swap, counters, leases, scans by prefix and channels. [`Memory`] keeps it in this
//! process, [`Folder`] in files that survive it. A program holds an `Arc<dyn Store>` and does not care.
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
//! Where to read first: the trait below, then `decide.rs`, which holds what both backends have in
//! common. Whoever writes another backend runs `suite` (feature `suite`) against it.
//!
//! # What is promised
//!
//! - **One order per key.** Operations on one key happen one after the other, also when they come from
//!   many tasks, or from many processes where [`Capabilities::shared`] says so.
//! - **Versions and fences are never used twice**, even when a key is deleted and made again.
//! - **Everything has a [`Bound`](Bounds).** What would go beyond it is refused with an error; nothing
//!   is thrown out to make room. Expired entries leave when others come, without a task in the
//!   background.
//! - **A dropped future may have done its work or not**, and so may a write that ended in
//!   [`StoreError::Unavailable`]. Nothing is ever done by half.

#![forbid(unsafe_code)]

mod bounds;
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

pub use bounds::Bounds;
pub use clock::{Clock, Manual, Monotonic, Wall};
pub use entry::{Capabilities, Entry, Expect, Item, Lease, Page, Swap, Version};
pub use error::StoreError;
pub use folder::{Damage, Folder};
pub use listen::{Feed, Heard, Listener};
pub use memory::Memory;
#[cfg(feature = "redis")]
pub use redis::{BadAddress, Redis, RedisAddress, RedisSettings};

/// What a store is doing: a future that must be awaited to happen.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keys and bytes.
///
/// A key is any text of 1 to [`Bounds::key`] bytes; `A` and `a` are two keys, and no character means
/// anything. The names of leases and channels follow the same rule. Entries, leases and channels are
/// three worlds: a lease `a` has nothing to do with an entry `a`.
///
/// A `ttl` is how long something lives, `None` is for ever. Zero is refused.
pub trait Store: Send + Sync + 'static {
    /// What lies under `key`, unless it has expired.
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>>;

    /// Puts `value` under `key`, whatever was there, and says which version it became.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: &'a [u8],
        ttl: Option<Duration>,
    ) -> Pending<'a, Version>;

    /// Puts `value` under `key` if what is there is what was expected. Of many who expect the same,
    /// one wins; the others get what lies there now. The time to live is the one given here.
    fn swap<'a>(
        &'a self,
        key: &'a str,
        expect: Expect,
        value: &'a [u8],
        ttl: Option<Duration>,
    ) -> Pending<'a, Swap>;

    /// Deletes what lies under `key`. Of many who delete the same entry exactly one gets `true`, so
    /// this is also how to use something once.
    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, bool>;

    /// Adds `by` to the number under `key` and returns the sum. What is not there counts as 0 and gets
    /// `ttl`; what is there keeps the time it has, so that a window of time ends when it should.
    ///
    /// The number is an entry like any other, written in decimal.
    fn count<'a>(&'a self, key: &'a str, by: i64, ttl: Option<Duration>) -> Pending<'a, i64>;

    /// Takes the lease `name` for `ttl`, or gets `None` because somebody else has it.
    ///
    /// A lease ends by [`release`](Self::release) or by itself. Whoever takes it later has a greater
    /// [`Lease::fence`], so work that was done under an older lease can be told and refused.
    fn lease<'a>(&'a self, name: &'a str, ttl: Duration) -> Pending<'a, Option<Lease>>;

    /// Lets `lease` live for `ttl` from now. `false`: it ended, and whoever held it must stop.
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Pending<'a, bool>;

    /// Ends `lease`. `false`: it had ended before; somebody else's lease of that name stays.
    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, bool>;

    /// The entries whose keys begin with `prefix` and come after `after`, in the order of their bytes:
    /// at most `limit` of them (at least 1, at most [`Bounds::page`]), and fewer when they are large.
    ///
    /// [`Page::next`] is where to go on; only `None` means that there is no more. What is there from
    /// the first page to the last is returned exactly once, whatever happens to others meanwhile.
    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Pending<'a, Page>;

    /// Tells `message` to everybody who listens to `channel` now. Nobody listening is no error.
    fn publish<'a>(&'a self, channel: &'a str, message: &'a [u8]) -> Pending<'a, ()>;

    /// Listens to `channel` from now on. What one publisher says is heard in the order it was said. A
    /// listener that is more than [`Bounds::queue`] messages behind loses the oldest, and is told how
    /// many.
    fn listen<'a>(&'a self, channel: &'a str) -> Pending<'a, Listener>;

    /// How far this store reaches: what survives, and who else sees it.
    fn capabilities(&self) -> Capabilities;
}
