//! Decides whether a call may be made. The checks run in this order.
//!
//! | what | asks | says no by |
//! |---|---|---|
//! | rules | `resolve`: what the caller may not know of is not there | `unknown_…`, audit `denied` |
//! | rates | every call, before the user is asked | `rate_limited` |
//! | consent | what a rule says `ask` of: the person, once for these arguments | `not_approved` |
//! | plugins | every call: they see its arguments and the answers to questions, and may change them | `rejected` |
//! | login | `at`, before a lease: where each principal has its own (`auth.perUser`), it has to have logged in | `login_required` |
//! | pins | `at`, at the instance: what is held back, or was not compared yet | `held_back` |
//!
//! Lists, `skills/list` among them, show what rules let the caller see. `tasks/…` are for the owner of the sealed
//! name alone. Subscriptions follow the rules for resources (`state::subscribed`).

use std::sync::Arc;

use trunkline_wire::era::{stateful, stateless};
use trunkline_wire::model::CallToolResult;

use super::resolve::About;
use super::{CallFailure, CallOutcome, Walk, approve};
use crate::call_record::CallRecord;
use crate::catalog::plan::ServerPlan;
use crate::merge::{Item, Target};
use crate::policy::audit::Decision;
use crate::policy::plugins::{CallView, Rejected};
use crate::policy::{self, What};
use crate::server::Server;
use crate::state::Visibility;

/// Permission to call one server. Only this module creates it, and [`Walk::at`] demands it.
pub(super) struct Permit {
    server: Arc<Server>,
    /// The plan of the server by which the call is made.
    plan: Arc<ServerPlan>,
    /// What plugins were told of the call; `None` without plugins.
    plugins: Option<Box<CallView>>,
}

pub(super) enum Decided {
    Permit(Permit),
    /// The caller gets this instead: a question, or a plugin's refusal.
    Told(CallOutcome),
}

impl Permit {
    /// Permission to list what a server offers, if the caller may see the server.
    pub(super) fn to_list(visibility: &Visibility<'_>, server: &Arc<Server>) -> Option<Self> {
        let is_seen = visibility.sees_server(&server.name);
        is_seen.then(|| Self::new(Arc::clone(server), None))
    }

    /// Permission to make a call that another replica has decided on, and sealed.
    pub(super) fn decided_elsewhere(server: Arc<Server>) -> Self {
        Self::new(server, None)
    }

    fn new(server: Arc<Server>, plugins: Option<Box<CallView>>) -> Self {
        Self { plan: server.plan(), server, plugins }
    }

    pub(super) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    pub(super) fn plan(&self) -> &Arc<ServerPlan> {
        &self.plan
    }

    pub(super) fn into_plugins(self) -> Option<Box<CallView>> {
        self.plugins
    }
}

impl Walk {
    pub(super) async fn decide(
        &mut self,
        record: &mut CallRecord,
        about: &About,
    ) -> Result<Decided, CallFailure> {
        self.approved = None;
        let asked_about = about.asked_about.as_ref().unwrap_or(&about.target);
        let names = self.caller.bearer.names();
        let taken = match &self.shared.settings.fleet {
            Some(fleet) if self.active.has_rates() => {
                Box::pin(self.active.take_shared(fleet, names, asked_about)).await?
            }
            _ => self.active.take(names, asked_about),
        };
        if let Err(after) = taken {
            record.decision = Decision::RateLimited;
            let what = What::of(asked_about);
            return Err(policy::limited(&asked_about.server, what, after).into());
        }
        if about.asks
            && let Some(question) = Box::pin(approve::approve(self, record, asked_about)).await?
        {
            return Ok(Decided::Told(question));
        }
        let asked = match self.active.plugins.is_empty() {
            true => Ok(None),
            false => Box::pin(self.ask_plugins(record, &about.target)).await,
        };
        match asked {
            Ok(plugins) => {
                let plugins = plugins.map(Box::new);
                Ok(Decided::Permit(Permit::new(Arc::clone(&about.server), plugins)))
            }
            Err(rejected) => self.rejected(record, &about.target, &rejected).map(Decided::Told),
        }
    }

    /// A plugin refused. For a tool that is a result the model reads (`isError`); for the rest it is an
    /// error.
    pub(super) fn rejected(
        &self,
        record: &mut CallRecord,
        target: &Target,
        rejected: &Rejected,
    ) -> Result<CallOutcome, CallFailure> {
        record.decision = Decision::Rejected;
        let Item::Tool(_) = target.item else {
            return Err(rejected.to_failure(&target.server).into());
        };
        let result = CallToolResult::error(rejected.to_string());
        let extras = stateless::Extras::default();
        Ok(CallOutcome::Told(stateful::encode(result, self.call.revision, &extras)))
    }
}
