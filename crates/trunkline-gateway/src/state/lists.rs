//! The lists of servers: fetched when unknown or stale, stored, and announced when they change.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{ActivePlan, GatewayState, View, Visibility};
use crate::caller::Caller;
use crate::catalog::plan::ServerPlan;
use crate::failure::{Failure, Reason};
use crate::fleet::News;
use crate::list_changes::{Next, Told};
use crate::logs::Logged;
use crate::merge::{Kind, Lists, Missing};
use crate::policy::pins::Offered;
use crate::server::{Fetched, Server, now};

impl GatewayState {
    /// Whether the lists of every server in a view are known, or will not be soon.
    pub(crate) fn is_complete(&self, active: &ActivePlan, view: &View) -> bool {
        active.servers.values().all(|it| !it.is_unknown() || !view.selector.chooses(&it.plan()))
    }

    /// The servers of a view whose lists are unknown, as far as the caller may know of them.
    pub(crate) fn missing(&self, active: &ActivePlan, view: &View, caller: &Caller) -> Missing {
        let visibility = Visibility::new(active, caller);
        let unknown = active.servers.values().filter(|it| it.lists().is_none());
        let unknown = unknown.filter(|it| view.selector.chooses(&it.plan()));
        let unknown = unknown.filter(|it| visibility.sees_server(&it.name));
        Missing(unknown.map(|it| (Arc::clone(&it.name), it.why_unknown())).collect())
    }

    /// Retries servers that did not list in time, in the background.
    pub(crate) fn retry_missing(&self, active: &ActivePlan) {
        for server in active.servers.values().filter(|it| it.has_fetch_failed() && it.is_due()) {
            if server.lists().is_some() && !server.list_changes().start(now()) {
                continue;
            }
            let (Some(this), server) = (self.this.upgrade(), Arc::clone(server)) else { return };
            tokio::spawn(async move { this.refresh(&server, true).await });
        }
    }

    /// Asks servers whose lists are unknown, and waits a limited time.
    pub(crate) async fn complete(&self, active: &Arc<ActivePlan>, view: &View) {
        if self.is_complete(active, view) {
            return;
        }
        let mut asking = JoinSet::new();
        for server in active.servers.values() {
            if server.is_unknown() && view.selector.chooses(&server.plan()) {
                if server.lists().is_some() && !server.list_changes().start(now()) {
                    continue;
                }
                let Some(this) = self.this.upgrade() else { return };
                let server = Arc::clone(server);
                asking.spawn(async move { this.refresh(&server, true).await });
            }
        }
        let all = async { while asking.join_next().await.is_some() {} };
        if tokio::time::timeout(COMPLETE, all).await.is_err() {
            // Slower servers continue in the background, and listeners are notified. Nobody else waits for
            // them.
            asking.detach_all();
            let late = active.servers.values().filter(|it| it.lists().is_none());
            late.for_each(|it| it.mark_fetch_failed());
        }
    }

    /// Fetches a server's lists and takes them over. Returns the instance that listed them.
    pub(crate) async fn refresh(&self, server: &Arc<Server>, may_start: bool) -> Option<u64> {
        self.refresh_from(server, may_start, ()).await
    }

    /// The same with a place among those that ask, which is free again before the lists are taken over.
    async fn refresh_from(
        &self,
        server: &Arc<Server>,
        may_start: bool,
        place: impl Send,
    ) -> Option<u64> {
        if may_start && server.placement.is_some() && self.refreshed_elsewhere(server).await {
            return None;
        }
        let fetched = server.fetch(may_start).await;
        drop(place);
        self.take_fetched(server, fetched).await
    }

    /// The same where this replica's instances are asked.
    pub(crate) async fn refresh_here(&self, server: &Arc<Server>, may_start: bool) -> Option<u64> {
        let fetched = server.fetch(may_start).await;
        self.take_fetched(server, fetched).await
    }

    async fn take_fetched(
        &self,
        server: &Arc<Server>,
        fetched: Result<Option<Fetched>, Failure>,
    ) -> Option<u64> {
        match fetched {
            Ok(Some(Fetched { lists, from, since, was_started, .. })) => {
                self.take_over(server, lists).await;
                Kind::ALL.into_iter().for_each(|kind| from.compared.add(kind, since));
                // Other replicas may have wanted the lists at the same time: the last one stops it.
                if was_started || server.placement.is_some() && server.pool.is_for_lists(from.id) {
                    server.retire_later(&from);
                }
                Some(from.id)
            }
            Ok(None) => None,
            Err(failure) => {
                server.mark_fetch_failed();
                if let Reason::LoginRequired | Reason::Draining = failure.reason {
                    // A caller that lists is told that a login is missing. A server that is being stopped has no use
                    // for its lists: a host that leaves soon after its start must not see a warning.
                    tracing::debug!(server = &*server.name, %failure, "lists were not fetched");
                    return None;
                }
                tracing::warn!(server = &*server.name, %failure, "lists could not be fetched");
                self.logs.add(Logged::gateway(&server.name, &failure.to_string()));
                None
            }
        }
    }

    /// Takes over the lists of a server whose one instance lives at another replica. Returns whether it does.
    async fn refreshed_elsewhere(&self, server: &Arc<Server>) -> bool {
        // If nobody can tell, `fetch` finds out why.
        let lives_elsewhere = server.list_elsewhere().await.unwrap_or(false);
        if lives_elsewhere {
            self.follow_lists(server).await;
            if server.lists().is_none() {
                server.mark_fetch_failed();
            }
        }
        lives_elsewhere
    }

    /// Handles `list_changed` notifications of a server's instances until none are left.
    pub(crate) fn handle_list_changes(&self, server: &Arc<Server>) {
        let (this, server) = (Weak::clone(&self.this), Arc::downgrade(server));
        tokio::spawn(async move {
            loop {
                let (Some(this), Some(server)) = (this.upgrade(), server.upgrade()) else { return };
                let next = server.list_changes().next(now());
                match next {
                    Next::Rest => return,
                    Next::Wait(wait) => {
                        drop((this, server));
                        tokio::time::sleep(wait).await;
                    }
                    Next::Refresh(by) => {
                        let mut is_new = false;
                        for instance in by {
                            is_new |= this.refresh_instance(&server, instance).await;
                        }
                        server.list_changes().refreshed(is_new);
                    }
                }
            }
        });
    }

    /// Refreshes the lists of an instance that announced a change. Returns whether there was one.
    async fn refresh_instance(&self, server: &Arc<Server>, instance: u64) -> bool {
        let Fetched { lists, from, since, is_for_all, .. } = match server.fetch_at(instance).await {
            Ok(Some(fetched)) => fetched,
            // The instance is gone, and its announcement with it.
            Ok(None) => return false,
            Err(failure) => {
                self.logs.add(Logged::gateway(&server.name, &failure.to_string()));
                return false;
            }
        };
        let known = server.lists();
        if is_for_all {
            let is_new = known.is_none_or(|it| it.etag() != lists.etag());
            self.take_over(server, lists).await;
            Kind::ALL.into_iter().for_each(|kind| from.compared.add(kind, since));
            return is_new;
        }
        let unlisted =
            Kind::ALL.map(|kind| (kind, server.unlisted(kind, &Offered::of(&lists, kind))));
        let unlisted = unlisted.into_iter().filter(|(_, it)| !it.is_empty());
        let (kinds, unlisted): (Vec<_>, Vec<_>) = unlisted.unzip();
        let known = known.map(|it| Told::of(&it));
        let changes = from.store_lists(Told::of(&lists), known.as_ref(), &kinds);
        if changes.is_empty() {
            return false;
        }
        // If this variant is shown to nobody else, the next instance that has it announces nothing new.
        unlisted.into_iter().for_each(|it| server.add_variants(it));
        server.mark_stale();
        if self.refresh(server, false).await.is_none() {
            // No running instance lists the same to every caller. The next list request starts one.
            let plan = server.plan();
            for kind in changes {
                self.listeners.tell(&kind.change(), |listener| listener.selector.chooses(&plan));
            }
        }
        true
    }

    pub(crate) async fn take_over(&self, server: &Arc<Server>, lists: Lists) {
        let plan = server.plan();
        let before = server.lists();
        let touched = self.apply_pins(&plan, &lists).await;
        let is_same = before.as_ref().is_some_and(|it| it.etag() == lists.etag());
        let lists = Arc::new(lists);
        // A reader that finds the server complete must not get an index from before.
        server.set_lists(Arc::clone(&lists), || {
            self.generation.fetch_add(1, Ordering::AcqRel);
        });
        if is_same {
            self.lists_changed(&plan, &touched);
            return;
        }
        for warning in &lists.warnings {
            self.logs.add(Logged::gateway(&server.name, warning));
        }
        // The new lists may contain a resource with subscribers.
        self.subscriptions.follow(self);
        self.store_lists(&plan, &lists).await;
        for kind in Kind::ALL {
            let was = before.as_ref().map(|it| it.etag_of(kind));
            if was != Some(lists.etag_of(kind)) || touched.contains(&kind) {
                self.listeners.tell(&kind.change(), |listener| listener.selector.chooses(&plan));
            }
        }
    }

    /// Stores the lists of a server where all replicas find them, and says so unless they are there.
    pub(crate) async fn store_lists(&self, plan: &ServerPlan, lists: &Lists) {
        let fingerprint = plan.fingerprint();
        if self.cache.save(&fingerprint, lists).await
            && let Some(fleet) = &self.settings.fleet
        {
            fleet.tell(News::Lists(fingerprint));
        }
    }

    /// Announces that these lists of a server are shown differently from now on.
    pub(crate) fn lists_changed(&self, plan: &ServerPlan, kinds: &[Kind]) {
        if !kinds.is_empty() {
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        for kind in kinds {
            self.listeners.tell(&kind.change(), |listener| listener.selector.chooses(plan));
        }
    }

    /// Asks servers whose lists are unknown for them, a few at a time. More of them wait together until what they
    /// offer is pinned: each change of the pins takes longer than the question.
    pub(crate) fn bootstrap(&self, active: &Arc<ActivePlan>) {
        let asking = active.plan.gateway.bootstrap.max(1);
        let room = Arc::new((Semaphore::new(asking), Semaphore::new(asking + TAKEN_OVER)));
        for server in active.servers.values().filter(|it| it.lists().is_none()) {
            let (this, room, server) =
                (Weak::clone(&self.this), Arc::clone(&room), Arc::clone(server));
            tokio::spawn(async move {
                let Ok(_begun) = room.1.acquire().await else { return };
                let Ok(place) = room.0.acquire().await else { return };
                if let Some(this) = this.upgrade()
                    && server.lists().is_none()
                {
                    this.refresh_from(&server, true, place).await;
                }
            });
        }
    }

    /// Refreshes the lists of running servers periodically.
    pub(crate) fn spawn_maintenance(&self) {
        let this = Weak::clone(&self.this);
        tokio::spawn(async move {
            loop {
                let Some(shared) = this.upgrade() else { return };
                let every = shared.active_plan().plan.gateway.refresh;
                drop(shared);
                tokio::time::sleep(if every.is_zero() { IDLE } else { every }).await;
                let Some(shared) = this.upgrade().filter(|_| !every.is_zero()) else { continue };
                for server in shared.active_plan().servers.values() {
                    shared.refresh(server, false).await;
                }
            }
        });
    }
}

/// How long a client waits for servers whose lists are unknown.
const COMPLETE: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(60);
/// How many servers have answered at the start and wait for their lists to be taken over.
const TAKEN_OVER: usize = 64;
