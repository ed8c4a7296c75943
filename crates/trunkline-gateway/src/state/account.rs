//! A principal logged in to a server or out of it: tells everything that depends on it.

use std::sync::{Arc, Weak};

use super::{ActivePlan, GatewayState};
use crate::accounts::Changed;
use crate::catalog::plan::Plan;
use crate::failure::{Failure, Reason, Stage};
use crate::fleet::News;

impl GatewayState {
    /// Loads who is logged in, if a plan has `auth.perUser`.
    pub(crate) async fn load_accounts(&self, plan: &Plan) -> Result<(), Failure> {
        if !plan.servers.values().any(|it| it.per_user().is_some()) {
            return Ok(());
        }
        let loaded = self.accounts.load().await;
        loaded.map_err(|error| Failure::new(Reason::BadAccounts, Stage::Policy, error.to_string()))
    }

    /// Records the change, and makes the principal's next call use the new login.
    pub(crate) fn account_changed(&self, changed: &Changed) {
        let (name, server) = (&*changed.owner.name, &*changed.owner.server);
        let event = if changed.is_logged_in { "login" } else { "logout" };
        tracing::info!(server, principal = name, event, "an account changed");
        let active = self.active_plan();
        if let Some(audit) = &active.audit {
            let name = crate::policy::plain(name, LONGEST);
            audit.note_event(event, serde_json::json!({ "principal": name, "server": server }));
        }
        if let Some(fleet) = &self.settings.fleet {
            fleet.tell(News::Account {
                id: changed.owner.id.to_string(),
                server: server.to_owned(),
                is_logged_in: changed.is_logged_in,
            });
        }
        self.use_account(&active, &changed.owner.id, server, changed.is_logged_in);
    }

    /// A principal logged in or out at another replica.
    pub(crate) async fn follow_account(&self, id: &str, server: &str, is_logged_in: bool) {
        if let Err(error) = self.accounts.follow(server, id).await {
            tracing::warn!(server, %error, "a login of another replica cannot be read");
        }
        self.use_account(&self.active_plan(), id, server, is_logged_in);
    }

    /// Principals may have logged in or out at other replicas.
    pub(crate) async fn follow_accounts(&self) {
        let has_any = self.active_plan().plan.servers.values().any(|it| it.per_user().is_some());
        if has_any && let Err(error) = self.accounts.follow_all().await {
            tracing::warn!(%error, "logins of other replicas cannot be read");
        }
    }

    fn use_account(&self, active: &ActivePlan, id: &str, server: &str, is_logged_in: bool) {
        let Some(server) = active.servers.get(server) else { return };
        server.pool.stop_owned(id);
        if is_logged_in && server.lists().is_none() {
            server.clear_fetch_failure();
            let (this, server) = (Weak::clone(&self.this), Arc::clone(server));
            tokio::spawn(async move {
                if let Some(this) = this.upgrade() {
                    this.refresh(&server, true).await;
                }
            });
        }
    }
}

/// The bytes of a name that are logged.
const LONGEST: usize = 256;
