//! A principal logged in to a server or out of it: tells everything that depends on it.

use std::sync::{Arc, Weak};

use super::GatewayState;
use crate::accounts::Changed;
use crate::catalog::plan::Plan;
use crate::failure::{Failure, Reason, Stage};

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
        let Some(server) = active.servers.get(server) else { return };
        server.pool.stop_owned(&changed.owner.id);
        if changed.is_logged_in && server.lists().is_none() {
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
