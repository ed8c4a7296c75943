//! Who hears what is said about a call.

use trunkline_proto::Heard;

/// Hears what is said about a call of ours, in place of a channel: at once, and without waiting. How much is
/// kept is up to whoever listens.
///
/// ```
/// # use std::sync::Arc; use trunkline_proto::Heard;
/// # use trunkline_transport::voice::*; use trunkline_wire::jsonrpc::Object;
/// #[derive(Debug)]
/// struct Deaf;
/// impl Listener for Deaf {
///     fn hear(&self, _: Heard) {}
/// }
/// let mut request = Request::new("tools/list", Object::default());
/// request.listener = Some(Arc::new(Deaf));
/// ```
pub trait Listener: std::fmt::Debug + Send + Sync {
    /// Something was said.
    ///
    /// ```
    /// # use trunkline_proto::Heard; use trunkline_transport::voice::Listener;
    /// # use trunkline_wire::jsonrpc::Object;
    /// # #[derive(Debug)] struct Deaf;
    /// # impl Listener for Deaf { fn hear(&self, _: Heard) {} }
    /// let (ticket, params) = (None, Object::default());
    /// Deaf.hear(Heard { ticket, method: "notifications/progress", params, peer: None });
    /// ```
    fn hear(&self, heard: Heard);
}
