//! Who shares the instances of a server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trunkline_wire::revision::Era;

use super::{Server, Who};
use crate::accounts;
use crate::catalog::plan::{Reach, ServerPlan, Sharing, Strategy};
use crate::client_profile;
use crate::pool::Profile;

impl Server {
    /// Whether callers of an era do not share its instances.
    pub(crate) fn is_isolated_for(&self, caller: Era) -> bool {
        self.is_isolated(&self.plan(), self.era_for(caller))
    }

    pub(super) fn is_isolated(&self, plan: &ServerPlan, era: Option<Era>) -> bool {
        match plan.sharing {
            _ if plan.per_user().is_some() => true,
            _ if plan.strategy == Strategy::Singleton => false,
            Sharing::Shared => false,
            Sharing::Isolated => true,
            // As long as the era is unknown, it may be the stateful one.
            Sharing::Auto => {
                let is_program = matches!(plan.reach, Reach::Stdio { .. });
                is_program && era != Some(Era::Stateless)
                    || self.asks.load(Ordering::Relaxed)
                    || self.keeps_roots.load(Ordering::Relaxed) && era != Some(Era::Stateless)
            }
        }
    }

    /// The owner of an instance that is lent. Anonymous callers are one principal. Their sessions are kept
    /// apart only if the catalog says so, or if the server asked a question that could not be routed. Sessions
    /// with roots are kept apart at a server that keeps roots.
    pub(super) fn owner(&self, plan: &ServerPlan, who: Who<'_>, profile: Profile) -> Arc<str> {
        match who {
            // The login alone decides.
            Who::Caller(caller) if plan.per_user().is_some() => Arc::clone(&caller.id),
            Who::Nobody if plan.per_user().is_some() => Arc::from(accounts::LISTER),
            Who::Caller(caller)
                if caller.has_session
                    && client_profile::has_roots(profile)
                    && self.keeps_roots.load(Ordering::Relaxed) =>
            {
                Arc::from(format!("\0s{}", caller.conversation))
            }
            Who::Caller(caller) => match caller.session() {
                Some(session) if self.tells_sessions_apart(plan) => {
                    Arc::from(format!("\0s{session}"))
                }
                _ => Arc::clone(&caller.id),
            },
            Who::Principal(id) => Arc::from(id),
            Who::Nobody => Arc::default(),
        }
    }

    fn tells_sessions_apart(&self, plan: &ServerPlan) -> bool {
        self.asks.load(Ordering::Relaxed) || plan.sharing == Sharing::Isolated
    }
}
