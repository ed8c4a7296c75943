//! What happens at a server beside its answers, told to whoever runs it.

use std::pin::Pin;
use std::sync::Arc;

use trunkline_auth::credentials::Credentials;
use trunkline_proto::PeerNotification;
use trunkline_transport::handler::Answer;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::LogMessage;
use trunkline_wire::revision::Era;

use crate::accounts::Account;
use crate::catalog::plan::ServerPlan;

/// Finds a login that was stored for a URL.
pub type Logins = Arc<dyn Fn(&str) -> Found + Send + Sync>;

/// A login, once it is found.
pub type Found = Pin<Box<dyn Future<Output = Option<Arc<dyn Credentials>>> + Send>>;

/// What happens at a server beside its answers.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// A server told that something of it changed.
    fn changed(&self, server: &str, instance: u64, heard: PeerNotification);

    /// A server asks for a task of its own.
    fn question(&self, instance: u64, task: String, method: Method, params: Object) -> Answer;

    /// A server asks something and does not say whom, where several may be meant.
    fn asks_nobody(&self, server: &str);

    /// A server asks for roots by itself, and will keep them.
    fn asks_for_roots(&self, server: &str);

    /// A server logged something that cannot be told to whoever it is about.
    fn logged(&self, server: &str, instance: u64, message: &LogMessage);

    /// A line of a server's stderr.
    fn line(&self, server: &str, instance: u64, line: &str);

    /// Which era a server was found to speak last time.
    fn known_era(&self, server: &str) -> Option<Era>;

    /// A login that was stored for a URL.
    fn login(&self, url: &str) -> Option<Found>;

    /// The login of a principal at a server; of the first that has one, if it is nobody's in particular.
    fn account(&self, plan: &ServerPlan, owner: Option<&str>) -> Option<Arc<Account>>;
}
