//! One server of the catalog: its pool of instances and its lists.

mod affinity;
mod placed;
mod sharing;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use trunkline_proto::CallError;
use trunkline_transport::conversation_handle::Request;
use trunkline_transport::http::SharedSessions;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::meta;
use trunkline_wire::revision::Era;

use crate::accounts;
use crate::caller::Caller;
use crate::catalog::plan::{ServerPlan, Strategy};
use crate::client_profile::{self, ClientProfile};
use crate::compared::Epoch;
use crate::failure::{Failure, Reason, Stage};
use crate::fleet::Fleet;
use crate::list_changes::ListChanges;
use crate::merge::{Draft, Kind, Lists};
use crate::placement::{self, Placement};
use crate::policy::pins::Offered;
use crate::policy::redact::Redactor;
use crate::pool::{Cause, Lease, Leasing, Pool, Profile, Want};
use crate::question;
use crate::upstream::{Instance, Upstream};
use crate::watcher::Watcher;

pub(crate) use affinity::{key_of, session_key};
pub(crate) use placed::Hop;

/// On whose behalf the gateway asks a server.
#[derive(Clone, Copy)]
pub(crate) enum Who<'a> {
    /// A caller.
    Caller(&'a Caller),
    /// A principal of which only the id is known.
    Principal(&'a str),
    /// The gateway itself.
    Nobody,
}

/// A server of the catalog.
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    plan: RwLock<Arc<ServerPlan>>,
    upstream: Arc<Upstream>,
    pub(crate) pool: Arc<Pool<Upstream>>,
    /// Where its instances live, if there are replicas.
    pub(crate) placement: Option<Placement>,
    lists: RwLock<Option<Arc<Lists>>>,
    /// Single-flight: one fetch at a time, and others wait for its result.
    fetching: tokio::sync::Mutex<()>,
    /// Whether a change was announced and not fetched yet.
    stale: AtomicBool,
    /// The `list_changed` notifications of its instances.
    list_changes: Mutex<ListChanges>,
    /// Digests of definitions that less capable clients get, and that differ from the lists.
    variants: Mutex<BTreeSet<String>>,
    /// When a fetch of the lists last failed.
    failed: Mutex<Option<Instant>>,
    /// What the installing program (npx, uvx, docker) last reported on stderr.
    doing: Mutex<Option<Arc<str>>>,
    /// The number of clients that the pool was told of.
    clients: Mutex<usize>,
    /// Whether it asked a question that could not be routed to a caller.
    asks: AtomicBool,
    /// Whether it asked for roots by itself and keeps them.
    keeps_roots: AtomicBool,
}

/// The lists of a server, and the instance they came from.
pub(crate) struct Fetched {
    pub(crate) lists: Lists,
    pub(crate) from: Arc<Instance>,
    /// When it was asked.
    pub(crate) since: Epoch,
    /// Whether it lists the same to every caller: it was opened with every capability and has no owner.
    pub(crate) is_for_all: bool,
    /// Whether the instance was started only for the lists.
    pub(crate) was_started: bool,
}

impl Server {
    pub(crate) fn new(
        plan: Arc<ServerPlan>,
        lists: Option<Arc<Lists>>,
        watcher: Weak<dyn Watcher>,
        redactor: Arc<Redactor>,
        replicas: Option<(&Fleet, &Arc<SharedSessions>)>,
    ) -> Arc<Self> {
        let name: Arc<str> = Arc::from(plan.name.as_str());
        let placement = replicas.map(|(fleet, sessions)| {
            let (watcher, redactor) = (Weak::clone(&watcher), Arc::clone(&redactor));
            Placement::new(Arc::clone(&name), fleet, sessions, watcher, redactor)
        });
        let upstream = Upstream::new(Arc::clone(&plan), watcher, redactor, None);
        if let Some((fleet, sessions)) = replicas {
            upstream.admitted_by(placed::admission(&name, fleet, sessions));
        }
        let here = placement.as_ref().map(|it| it.plan_here(&plan));
        let pool = Pool::new(here.unwrap_or_else(|| Arc::clone(&plan)), Arc::clone(&upstream));
        let server = Arc::new(Self {
            name,
            plan: RwLock::new(plan),
            upstream,
            pool,
            placement,
            lists: RwLock::new(lists),
            fetching: tokio::sync::Mutex::default(),
            stale: AtomicBool::new(false),
            list_changes: Mutex::default(),
            variants: Mutex::default(),
            failed: Mutex::default(),
            doing: Mutex::default(),
            clients: Mutex::default(),
            asks: AtomicBool::new(false),
            keeps_roots: AtomicBool::new(false),
        });
        server.tend_placement();
        server
    }

    pub(crate) fn plan(&self) -> Arc<ServerPlan> {
        Arc::clone(&self.plan.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a new plan that the running processes can serve.
    pub(crate) fn reconfigure(&self, plan: Arc<ServerPlan>) {
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&plan);
        self.upstream.reconfigure(Arc::clone(&plan));
        let here = self.placement.as_ref().map(|it| it.plan_here(&plan));
        self.pool.reconfigure(here.unwrap_or(plan));
    }

    /// The lists, if known.
    pub(crate) fn lists(&self) -> Option<Arc<Lists>> {
        self.lists.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the lists. No reader sees them before `announce` is done.
    pub(crate) fn set_lists(&self, lists: Arc<Lists>, announce: impl FnOnce()) {
        let mut kept = self.lists.write().unwrap_or_else(PoisonError::into_inner);
        announce();
        *kept = Some(lists);
        drop(kept);
        self.clear_fetch_failure();
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Looks at the lists where they are. `look` must not ask for them again.
    pub(crate) fn look_at_lists<T>(&self, look: impl FnOnce(Option<&Lists>) -> T) -> T {
        look(self.lists.read().unwrap_or_else(PoisonError::into_inner).as_deref())
    }

    /// The era it speaks, once known.
    pub(crate) fn era(&self) -> Option<Era> {
        self.look_at_lists(|lists| lists.map(|it| it.revision.era()))
    }

    /// The era of the connection for a caller of an era, once known: the caller's own, if the server speaks it.
    /// In the stateful era the server can then ask, log and notify as it would do with that caller directly. A
    /// singleton speaks the newest.
    pub(crate) fn era_for(&self, caller: Era) -> Option<Era> {
        self.era_among(&self.plan(), self.era(), caller)
    }

    fn era_among(&self, plan: &ServerPlan, known: Option<Era>, caller: Era) -> Option<Era> {
        let speaks_old = || {
            !plan.revisions.of_era(Era::Stateful).is_empty()
                && plan.strategy != Strategy::Singleton
                && !self.upstream.lacks_old()
        };
        match known {
            Some(Era::Stateless) if caller == Era::Stateful && speaks_old() => Some(caller),
            known => known,
        }
    }

    /// Records that it did not list in time: callers no longer wait for it.
    pub(crate) fn mark_fetch_failed(&self) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether a retry in the background is due. Returns `true` once per interval.
    pub(crate) fn is_due(&self) -> bool {
        let is_wanted = self.lists().is_none() || self.stale.load(Ordering::Acquire);
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = is_wanted && failed.is_some_and(|it| it.elapsed() >= PATIENCE);
        if is_due {
            *failed = Some(Instant::now());
        }
        is_due
    }

    /// Why its lists are unknown, for callers.
    pub(crate) fn why_unknown(&self) -> String {
        let status = self.pool.status();
        match (status.last_error, self.doing()) {
            (Some(why), _) => format!("It did not start: {why}"),
            (None, Some(doing)) => format!("It is {doing}; try again soon."),
            (None, None) if self.plan().per_user().is_some() => format!(
                "Nobody has logged in there yet. Call one of its tools by name, as in `{}.NAME`, to get a link.",
                self.name
            ),
            (None, None) if status.state == "starting" => {
                "It is starting; try again soon.".to_owned()
            }
            (None, None) => format!("`trunkline doctor {}` shows why.", self.name),
        }
    }

    /// What the installing program reports before the server is up.
    pub(crate) fn doing(&self) -> Option<Arc<str>> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads that from a line of stderr.
    pub(crate) fn read_stderr(&self, line: &str) {
        if let Some(doing) = crate::runner::doing(line) {
            *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::from(doing));
        }
    }

    /// Forgets that listing failed.
    pub(crate) fn clear_fetch_failure(&self) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn has_fetch_failed(&self) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some()
    }

    /// Tells the pool how many clients there are.
    pub(crate) fn set_clients(&self, count: usize) {
        // Clients of other replicas may use its instances, too.
        let is_used = self.placement.is_some() && placement::has_clients_elsewhere(&self.plan());
        let count = if is_used { count.max(1) } else { count };
        let mut told = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in *told..count {
            self.pool.client_joined();
        }
        for _ in count..*told {
            self.pool.client_left();
        }
        *told = count;
    }

    /// The want of a caller with this profile, by the plan in force.
    pub(crate) fn want(
        &self,
        plan: &ServerPlan,
        key: Option<Box<str>>,
        who: Who<'_>,
        client: ClientProfile,
        cause: Cause,
    ) -> Want {
        let known = self.era();
        let era = self.era_among(plan, known, client.era);
        // A server of the stateless era learns its caller from every request.
        let profile = match era {
            Some(Era::Stateless) => client_profile::ALL,
            _ => client.profile,
        };
        let is_old = era != known;
        let profile = client_profile::connected(question::offered(profile, plan.questions), is_old);
        let owner = self.is_isolated(plan, era).then(|| self.owner(plan, who, client.profile));
        let by = match who {
            Who::Caller(caller) => Arc::clone(&caller.id),
            Who::Principal(id) => Arc::from(id),
            Who::Nobody => Arc::default(),
        };
        // If a server's questions cannot be routed, anonymous callers without a session must not share an
        // instance: only one may be meant.
        let is_alone = self.asks.load(Ordering::Relaxed)
            && matches!(who, Who::Caller(it) if it.name.is_none() && !it.has_session)
            && owner.is_some()
            && client_profile::can_be_asked(profile);
        Want { key, owner, by, profile, is_alone, cause, patience: plan.timeouts.acquire }
    }

    /// Asks for an instance of this replica. The want is computed again whenever more becomes known of the server.
    pub(super) fn ask_here(&self, want: &impl Fn() -> Want, now: Instant) -> Leasing<Upstream> {
        let wanted = want();
        let profile = wanted.profile;
        let asked = self.pool.ask(wanted, now);
        if let Leasing::Done(Ok(lease)) = &asked {
            self.check_era(lease, profile, want);
        }
        asked
    }

    /// Waits for the instance that was asked for.
    pub(crate) async fn leased(
        &self,
        asked: Leasing<Upstream>,
        want: &impl Fn() -> Want,
    ) -> Result<Lease<Upstream>, Failure> {
        let waiting = match asked {
            Leasing::Done(leased) => return leased,
            Leasing::Waits(waiting) => waiting,
        };
        let profile = waiting.profile;
        let lease = waiting.answer().await?;
        self.check_era(&lease, profile, want);
        Ok(lease)
    }

    /// The start may have shown that it does not speak the stateful era.
    fn check_era(&self, lease: &Lease<Upstream>, profile: Profile, want: &impl Fn() -> Want) {
        let is_old = client_profile::is_old(profile);
        if is_old && lease.instance().opened.revision.era() == Era::Stateless {
            self.pool.turned_out(lease.id(), &want());
        }
    }

    /// It asked a question that could not be routed: from now on its callers do not share instances, where the
    /// catalog leaves that open.
    pub(crate) fn has_unroutable_questions(&self) {
        self.asks.store(true, Ordering::Relaxed);
    }

    /// It asked for roots by itself and keeps them.
    pub(crate) fn keeps_roots(&self) {
        self.keeps_roots.store(true, Ordering::Relaxed);
    }

    /// The roots of a session changed: tells the instances that keep them.
    pub(crate) fn has_other_roots(&self, session: u64) {
        if self.keeps_roots.load(Ordering::Relaxed) {
            for id in self.pool.status().instances.iter().map(|it| it.id) {
                if let Some(lease) = self.pool.lease_on(id) {
                    lease.instance().has_other_roots(session);
                }
            }
        }
    }

    /// The process id of an instance.
    pub(crate) fn pid(&self, instance: u64) -> Option<u32> {
        self.upstream.pid(instance)
    }

    /// The `list_changed` notifications of its instances.
    pub(crate) fn list_changes(&self) -> MutexGuard<'_, ListChanges> {
        self.list_changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks its lists as stale.
    pub(crate) fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Whether a list request has to wait for it: its lists are unknown, or stale and due for a refresh.
    pub(crate) fn is_unknown(&self) -> bool {
        !self.has_fetch_failed()
            && (self.lists().is_none()
                || self.stale.load(Ordering::Acquire) && self.list_changes().may_start(now()))
    }

    /// Fetches its lists from a running instance, or else, if allowed, from one started for it. Concurrent
    /// callers share the result (single-flight).
    pub(crate) async fn fetch(&self, may_start: bool) -> Result<Option<Fetched>, Failure> {
        let before = self.lists();
        let _turn = self.fetching.lock().await;
        let is_stale = self.stale.swap(false, Ordering::AcqRel);
        // The next caller retries.
        let still = || {
            self.stale.fetch_or(is_stale, Ordering::AcqRel);
        };
        let now = self.lists();
        let came_meanwhile = match (&before, &now) {
            (Some(one), Some(other)) => !Arc::ptr_eq(one, other),
            (None, Some(_)) => true,
            _ => false,
        };
        if came_meanwhile && !is_stale {
            return Ok(None);
        }
        let (profile, owner) = self.lists_as();
        let (lease, was_started) = match self.pool.running_as(profile, owner) {
            Some(lease) => (lease, false),
            None if may_start => {
                let _claimed = self.claim_to_list().await.inspect_err(|_| still())?;
                let key = Some(Box::from(LISTER));
                let (who, profile) = (Who::Nobody, ClientProfile::ALL);
                let want = self.want(&self.plan(), key, who, profile, Cause::List);
                let lease = self.pool.lease(want).await;
                (lease.inspect_err(|_| still())?, true)
            }
            None => {
                still();
                return Ok(None);
            }
        };
        let fetched = self.fetched(lease, was_started).await;
        fetched.map(Some).inspect_err(|_| still())
    }

    /// Fetches the lists of one instance; `None` if it is gone.
    pub(crate) async fn fetch_at(&self, instance: u64) -> Result<Option<Fetched>, Failure> {
        let _turn = self.fetching.lock().await;
        let Some(lease) = self.pool.lease_on(instance) else { return Ok(None) };
        self.fetched(lease, false).await.map(Some)
    }

    async fn fetched(&self, lease: Lease<Upstream>, was_started: bool) -> Result<Fetched, Failure> {
        let (profile, owner) = self.lists_as();
        let is_for_all = self.pool.is_as(lease.id(), profile, owner);
        let (from, since) = (Arc::clone(lease.instance()), lease.instance().compared.epoch());
        let found = self.fetch_from(&lease).await;
        drop(lease);
        match found {
            Ok(lists) => Ok(Fetched { lists, from, since, is_for_all, was_started }),
            Err(failure) => {
                if was_started {
                    self.retire(from.id);
                }
                Err(failure)
            }
        }
    }

    /// The profile to list with. A server's lists may depend on its client's capabilities. The gateway lists
    /// with all of them, so that the lists do not depend on who calls first.
    fn lists_as(&self) -> (Profile, Option<&'static str>) {
        let profile = question::offered(client_profile::ALL, self.plan().questions);
        let is_apart = self.is_isolated_for(Era::Stateless);
        let nobody = if self.plan().per_user().is_some() { accounts::LISTER } else { "" };
        (client_profile::connected(profile, false), is_apart.then_some(nobody))
    }

    /// Stops an instance that was started only for the lists.
    fn retire(&self, instance: u64) {
        self.pool.forget(LISTER);
        self.pool.retire(instance);
    }

    /// The same after a delay: many servers announce changed lists right after they start.
    pub(crate) fn retire_later(self: &Arc<Self>, instance: &Instance) {
        if !instance.may_announce() {
            return self.retire(instance.id);
        }
        let (this, id) = (Arc::downgrade(self), instance.id);
        tokio::spawn(async move {
            tokio::time::sleep(LINGER).await;
            if let Some(this) = this.upgrade() {
                this.retire(id);
            }
        });
    }

    /// Fetches one list of one instance.
    pub(crate) async fn list_of(
        &self,
        instance: &Instance,
        kind: Kind,
    ) -> Result<Lists, CallError> {
        let opened = &instance.opened;
        let info = opened.info.clone().unwrap_or_default();
        let mut draft = Draft::new(opened.revision, info, opened.capabilities.clone(), None);
        self.fetch_list(instance, &mut draft, kind).await?;
        Ok(draft.finish())
    }

    /// The digests of these definitions that the lists lack and that are not known as variants.
    pub(crate) fn unlisted(&self, kind: Kind, offered: &[Offered]) -> BTreeSet<String> {
        let lists = self.lists();
        let known = lists.iter().flat_map(|it| Offered::of(it, kind));
        let known: BTreeSet<_> = known.map(|it| it.digest).collect();
        let variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let found = offered.iter().map(|it| &it.digest);
        found.filter(|it| !known.contains(*it) && !variants.contains(*it)).cloned().collect()
    }

    /// Remembers definitions that only some clients get, so that they cause no further refresh.
    pub(crate) fn add_variants(&self, of: BTreeSet<String>) {
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if variants.len() + of.len() <= VARIANTS {
            variants.extend(of);
        }
    }

    async fn fetch_from(&self, lease: &Lease<Upstream>) -> Result<Lists, Failure> {
        let instance = lease.instance();
        let opened = &instance.opened;
        let mut draft = Draft::new(
            opened.revision,
            opened.info.clone().unwrap_or_default(),
            opened.capabilities.clone(),
            opened.instructions.clone(),
        );
        for kind in Kind::ALL {
            match self.fetch_list(instance, &mut draft, kind).await {
                Ok(()) => {}
                // Many servers have resources and no templates, and answer with an error.
                Err(CallError::Peer(_) | CallError::Refused(_)) if kind == Kind::Templates => {}
                Err(error) => {
                    let message = format!("`{}` did not say what it offers. {error}", self.name);
                    let failure = Failure::new(Reason::ListFailed, Stage::Call, message);
                    let mut failure = failure.of(&self.name);
                    failure.instance = Some(instance.id);
                    failure.stderr = instance.stderr();
                    return Err(failure);
                }
            }
        }
        Ok(draft.finish())
    }

    /// The `_meta` to list with in the stateless era: the connection may have been opened for a caller with
    /// fewer capabilities.
    fn listing_envelope(&self, instance: &Instance) -> Option<Json> {
        if instance.opened.revision.era() == Era::Stateful {
            return None;
        }
        let profile = question::offered(client_profile::ALL, self.plan().questions);
        let mut envelope = Object::default();
        envelope.set(meta::CLIENT_CAPABILITIES, Json::of(&client_profile::capabilities(profile)));
        Some(envelope.to_json())
    }

    /// Follows the cursors of a list to its end.
    async fn fetch_list(
        &self,
        instance: &Instance,
        draft: &mut Draft,
        kind: Kind,
    ) -> Result<(), CallError> {
        let mut cursor: Option<String> = None;
        let envelope = self.listing_envelope(instance);
        while draft.wants(kind) {
            let mut params = Object::default();
            if let Some(cursor) = &cursor {
                params.set("cursor", Json::string(cursor));
            }
            if let Some(envelope) = &envelope {
                params.set("_meta", envelope.clone());
            }
            let mut request = Request::new(kind.method(), params);
            request.timing = Some(LIST);
            let page = instance.call(request).await?;
            let next = draft.add(kind, &page);
            match next.map_err(|error| CallError::Invalid(error.to_string()))? {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        Ok(())
    }
}

/// The current time; tests can control it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

const VARIANTS: usize = 4096;
/// How long an instance stays that was started for its lists and may announce changes.
const LINGER: Duration = Duration::from_secs(2);
/// The affinity key with which the gateway lists at a stateful server.
const LISTER: &str = "\0lists";
/// How long until a failed fetch of the lists is retried.
const PATIENCE: Duration = Duration::from_secs(10);
const LIST: trunkline_proto::Timing =
    trunkline_proto::Timing { idle: Duration::from_secs(30), hard: Duration::from_secs(60) };
