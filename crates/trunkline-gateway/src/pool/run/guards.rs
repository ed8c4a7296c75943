//! The guards of what a lease became: a call that waits for its user, or work that goes on without a place.

use std::sync::Arc;

use tokio::sync::Notify;

use super::Inner;
use crate::pool::Backend;

/// Guard of a lease whose call waits for the user.
pub struct Parking<B: Backend> {
    pub(super) inner: Arc<Inner<B>>,
    pub(super) ticket: Option<u64>,
    pub(super) told: Arc<Notify>,
}

impl<B: Backend> Parking<B> {
    /// Notified when the call has to make way.
    pub fn told(&self) -> Arc<Notify> {
        Arc::clone(&self.told)
    }
}

impl<B: Backend> Drop for Parking<B> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.inner.lock().parked.remove(&ticket);
            self.inner.with(|state, _| state.unpark(ticket));
        }
    }
}

/// Keeps an instance from becoming idle until it is dropped.
pub struct Hold<B: Backend> {
    pub(super) inner: Arc<Inner<B>>,
    pub(super) id: u64,
    pub(super) at_work: bool,
}

impl<B: Backend> Drop for Hold<B> {
    fn drop(&mut self) {
        self.inner.with(|state, now| state.let_go(self.id, self.at_work, now));
    }
}
