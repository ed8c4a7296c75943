//! The last word of a replica: it has answered every request that it got.
//!
//! A listener that ends closes its kept connections, and a peer may send a request at that very moment. The peer sees
//! its connection break, and cannot tell whether the request was carried out. If the replica says farewell afterwards,
//! it was not.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use trunkline_store::StoreError;

use crate::runner::{Means, heartbeat_key};

impl Means {
    pub(crate) async fn say_farewell(&self) -> Result<(), StoreError> {
        self.store.put(&farewell_key(&self.me), b"", Some(KEPT)).await.map(drop)
    }

    /// Whether a replica has said farewell, or does so in a moment.
    pub(crate) async fn has_said_farewell(&self, replica: &str) -> bool {
        let heard = async {
            loop {
                match timeout(self.timing.patience, self.departure_of(replica)).await {
                    Ok(Ok(Departure::Farewell)) => return true,
                    Ok(Ok(Departure::Withdrawn)) => sleep(PAUSE).await,
                    Ok(Ok(Departure::None) | Err(_)) | Err(_) => return false,
                }
            }
        };
        timeout(WITHIN, heard).await.unwrap_or(false)
    }

    async fn departure_of(&self, replica: &str) -> Result<Departure, StoreError> {
        if self.store.get(&farewell_key(replica)).await?.is_some() {
            return Ok(Departure::Farewell);
        }
        let heartbeat = self.store.get(&heartbeat_key(replica)).await?;
        Ok(heartbeat.map_or(Departure::Withdrawn, |_| Departure::None))
    }
}

/// How a replica has gone, as far as the store knows.
enum Departure {
    /// It lives, or has died without a word a moment ago.
    None,
    /// It has no heartbeat: it is about to say farewell, or died a while ago.
    Withdrawn,
    Farewell,
}

fn farewell_key(replica: &str) -> String {
    format!("farewell/{replica}")
}

/// How long the last answers of a replica that leaves may take, and some more.
const WITHIN: Duration = Duration::from_secs(3);
/// The pause before it looks again.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a farewell can be heard: longer than anybody asks.
const KEPT: Duration = Duration::from_secs(60);
