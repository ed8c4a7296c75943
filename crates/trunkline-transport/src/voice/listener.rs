//! Who hears what is said about a call.

use trunkline_proto::PeerNotification;

/// Hears what is said about a call of ours, in place of a channel: at once, and without waiting. How much is
/// kept is up to whoever listens.
pub trait Listener: std::fmt::Debug + Send + Sync {
    /// Something was said.
    fn hear(&self, heard: PeerNotification);
}
