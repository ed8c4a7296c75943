//! Messages → the listeners of their channel in this process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Bounds, Feed, Listener, StoreError};

#[derive(Debug, Default)]
pub(crate) struct Channels {
    feeds: Mutex<BTreeMap<String, Vec<Feed>>>,
}

impl Channels {
    pub(crate) fn publish(
        &self,
        channel: &str,
        message: &[u8],
        bounds: &Bounds,
    ) -> Result<(), StoreError> {
        bounds.check_key(channel)?;
        bounds.check_message(message)?;
        let mut channels = self.channels();
        if let Some(feeds) = channels.get_mut(channel) {
            // Under the lock, so that all listeners receive the messages in one order.
            let message: std::sync::Arc<[u8]> = message.into();
            feeds.retain(|feed| feed.push(message.clone()));
            if feeds.is_empty() {
                channels.remove(channel);
            }
        }
        Ok(())
    }

    pub(crate) fn listen(&self, channel: &str, bounds: &Bounds) -> Result<Listener, StoreError> {
        bounds.check_key(channel)?;
        let mut channels = self.channels();
        if channels.values().map(Vec::len).sum::<usize>() >= bounds.listeners {
            // Closed listeners are removed on publish, or here.
            channels.retain(|_, feeds| {
                feeds.retain(|feed| !feed.is_closed());
                !feeds.is_empty()
            });
            if channels.values().map(Vec::len).sum::<usize>() >= bounds.listeners {
                return Err(StoreError::Full { what: "listeners", most: bounds.listeners });
            }
        }
        let (feed, listener) = Listener::new(bounds.queue);
        channels.entry(channel.to_owned()).or_default().push(feed);
        Ok(listener)
    }

    fn channels(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
