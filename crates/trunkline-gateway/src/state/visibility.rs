//! What one caller may see and do, by its tags and the rules.

use std::sync::Arc;

use super::ActivePlan;
use crate::caller::Caller;
use crate::catalog::plan::{Effect, ServerPlan};
use crate::merge::{Lists, Target};
use crate::policy::What;
use crate::policy::subject::Subject;

/// What a caller may see and do.
pub(crate) struct Visibility<'a> {
    pub(crate) active: &'a ActivePlan,
    pub(crate) caller: &'a Caller,
    /// The tags that the caller's token is limited to.
    tags: Option<Vec<String>>,
}

impl<'a> Visibility<'a> {
    pub(crate) fn new(active: &'a ActivePlan, caller: &'a Caller) -> Self {
        let tags = caller.bearer.sees(&active.plan.gateway.auth);
        Self { active, caller, tags }
    }

    /// Whether every caller sees the same.
    pub(crate) fn is_open(&self) -> bool {
        self.tags.is_none() && self.active.rules.is_empty()
    }

    /// Whether the caller may see anything of a server.
    pub(crate) fn sees_server(&self, name: &str) -> bool {
        let Some(server) = self.active.servers.get(name) else { return false };
        self.is_open() || self.sees(&server.plan(), server.lists().as_deref())
    }

    fn sees(&self, plan: &ServerPlan, lists: Option<&Lists>) -> bool {
        let caller = self.caller.bearer.names();
        if !self.is_tagged_for(plan) || !self.active.rules.may_allow(caller, &plan.tags, &plan.name)
        {
            return false;
        }
        let Some(lists) = lists else { return true };
        let server: Arc<str> = Arc::from(plan.name.as_str());
        let mut is_any = false;
        let is_seen = lists.targets(&server).any(|it| {
            is_any = true;
            self.effect(&it) != Effect::Deny
        });
        is_seen || !is_any
    }

    /// The effect of the rules on a target.
    pub(crate) fn effect(&self, target: &Target) -> Effect {
        if self.is_open() {
            return Effect::Allow;
        }
        let Some(server) = self.active.servers.get(&*target.server) else { return Effect::Deny };
        let plan = server.plan();
        if !self.is_tagged_for(&plan) {
            return Effect::Deny;
        }
        let subject = Subject::new(&target.server, What::of(target));
        self.active.rules.decide(self.caller.bearer.names(), &plan.tags, &subject)
    }

    /// Whether a server has no tags, or one that the caller's token allows.
    fn is_tagged_for(&self, plan: &ServerPlan) -> bool {
        let tags = self.tags.as_ref();
        plan.tags.is_empty() || tags.is_none_or(|tags| plan.tags.iter().any(|it| tags.contains(it)))
    }
}
