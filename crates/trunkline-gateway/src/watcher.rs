//! What servers send beside their answers, as the gateway observes it.

use std::pin::Pin;
use std::sync::Arc;

use trunkline_auth::credentials::Credentials;
use trunkline_proto::PeerNotification;
use trunkline_transport::handler::Answer;
use trunkline_transport::witness::Witness;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::LogMessage;
use trunkline_wire::revision::Era;

use crate::accounts::Account;
use crate::catalog::plan::ServerPlan;

/// Finds a stored login for a URL.
pub type Logins = Arc<dyn Fn(&str) -> Found + Send + Sync>;

/// A login, once it is found.
pub type Found = Pin<Box<dyn Future<Output = Option<Arc<dyn Credentials>>> + Send>>;

/// Observes what servers send beside their answers.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// A server announced a change.
    fn changed(&self, server: &str, instance: u64, heard: PeerNotification);

    /// A server asks on behalf of a task.
    fn question(&self, instance: u64, task: String, method: Method, params: Object) -> Answer;

    /// A server's question names no call, and several callers may be meant.
    fn unroutable_question(&self, server: &str);

    /// A server asks for roots outside a call, and will keep them.
    fn asks_for_roots(&self, server: &str);

    /// A server logged a message that cannot be routed to a caller.
    fn logged(&self, server: &str, instance: u64, message: &LogMessage);

    /// A line of a server's stderr.
    fn stderr_line(&self, server: &str, instance: u64, line: &str);

    /// The era that a server spoke last time.
    fn known_era(&self, server: &str) -> Option<Era>;

    /// The stored login for a URL.
    fn login(&self, url: &str) -> Option<Found>;

    /// Who sees what is said to an instance, if anybody does.
    fn witness(&self, _server: &Arc<str>, _instance: u64) -> Option<Arc<dyn Witness>> {
        None
    }

    /// A request to a server carries this value of `Authorization`.
    fn uses_token(&self, _value: &str) {}

    /// A principal's login at a server; the first known one if `owner` is `None`.
    fn account(&self, plan: &ServerPlan, owner: Option<&str>) -> Option<Arc<Account>>;
}
