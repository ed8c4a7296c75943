//! Receives the notifications about one call.

use trunkline_proto::PeerNotification;

/// Receives the notifications about a call of ours in place of a channel: synchronously, without
/// waiting. The listener bounds what it keeps.
pub trait Listener: std::fmt::Debug + Send + Sync {
    /// Called for each notification.
    fn hear(&self, heard: PeerNotification);
}
