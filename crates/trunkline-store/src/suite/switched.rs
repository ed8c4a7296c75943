//! A store that a test can switch away.

use std::sync::Arc;
use std::time::Duration;

use crate::{
    Bucket, Capabilities, Cursor, Entry, Expect, Lease, Listener, Memory, Page, Pending, Store,
    StoreError, Swap, Ttl, Version,
};

/// A shared store in memory that is [`StoreError::Unavailable`] while a function says so.
pub struct Switched {
    memory: Arc<Memory>,
    is_away: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Switched {
    /// A view of `memory`; `is_away` is asked before every operation.
    pub fn new(memory: Arc<Memory>, is_away: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { memory, is_away: Box::new(is_away) }
    }

    fn unless_away<'a, T: Send + 'a>(&'a self, pending: Pending<'a, T>) -> Pending<'a, T> {
        match (self.is_away)() {
            false => pending,
            true => Box::pin(async {
                Err(StoreError::Unavailable("The store is switched away.".to_owned()))
            }),
        }
    }
}

impl Store for Switched {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        self.unless_away(self.memory.get(key))
    }
    fn put<'a>(&'a self, key: &'a str, value: &'a [u8], ttl: Ttl) -> Pending<'a, Version> {
        self.unless_away(self.memory.put(key, value, ttl))
    }
    fn swap<'a>(&'a self, key: &'a str, old: Expect, new: &'a [u8], ttl: Ttl) -> Pending<'a, Swap> {
        self.unless_away(self.memory.swap(key, old, new, ttl))
    }
    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, bool> {
        self.unless_away(self.memory.delete(key))
    }
    fn count<'a>(&'a self, key: &'a str, by: i64, ttl: Ttl) -> Pending<'a, i64> {
        self.unless_away(self.memory.count(key, by, ttl))
    }
    fn take<'a>(&'a self, key: &'a str, of: &'a [Bucket]) -> Pending<'a, Result<(), Duration>> {
        self.unless_away(self.memory.take(key, of))
    }
    fn lease<'a>(&'a self, name: &'a str, ttl: Duration) -> Pending<'a, Option<Lease>> {
        self.unless_away(self.memory.lease(name, ttl))
    }
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Pending<'a, bool> {
        self.unless_away(self.memory.renew(lease, ttl))
    }
    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, bool> {
        self.unless_away(self.memory.release(lease))
    }
    fn scan<'a>(&'a self, prefix: &'a str, after: Cursor<'a>, limit: usize) -> Pending<'a, Page> {
        self.unless_away(self.memory.scan(prefix, after, limit))
    }
    fn publish<'a>(&'a self, channel: &'a str, message: &'a [u8]) -> Pending<'a, ()> {
        self.unless_away(self.memory.publish(channel, message))
    }
    fn listen<'a>(&'a self, channel: &'a str) -> Pending<'a, Listener> {
        self.unless_away(self.memory.listen(channel))
    }
    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities().shared(true)
    }
}
