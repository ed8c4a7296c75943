//! `GatewayState`: the plan in force, its servers and their lists, and what the gateway remembers between
//! calls.

mod account;
mod consent;
mod instructions;
mod lists;
mod news;
mod pinning;
mod subscribed;
mod view;
mod visibility;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use trunkline_auth::client::vault::Vault;
use trunkline_proto::server::Config;
use trunkline_store::Store;
use trunkline_transport::http::{Lasting, SharedSessions};
use trunkline_transport::limits::Limits;
use trunkline_transport::listeners::Listeners;
use trunkline_transport::witness::Witness;
use trunkline_wire::json::Json;

use crate::accounts::{Accounts, FleetVault};
use crate::cache::Cache;
use crate::call_record::CallRecord;
use crate::caller::Caller;
use crate::calls::{Calls, Noted};
use crate::catalog::plan::Plan;
use crate::copies::Copies;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::forward::Envelopes;
use crate::logs::{Logged, Logs};
use crate::merge::{Kind, Page, Target};
use crate::metrics::Metrics;
use crate::named::Named;
use crate::otel::{self, Otel, OtelSettings};
use crate::outcome::Outcome;
use crate::parked_calls::ParkedCalls;
use crate::policy::What;
use crate::policy::ask::Approvals;
use crate::policy::audit::{Audit, Entry};
use crate::policy::pins::PinFile;
use crate::policy::plugins::Pipeline;
use crate::policy::quota::Quota;
use crate::policy::redact::Redactor;
use crate::policy::rules::Rules;
use crate::policy::subject::Subject;
use crate::report;
use crate::seal::Seals;
use crate::search::Seen;
use crate::selector::{ListenerInfo, Selector};
use crate::server::{Server, session_key};
use crate::subscriptions::Subscriptions;
use crate::tasks::Registry;
use crate::trace::Trace;
use crate::traffic::{Link, OneRequestLinks, Recorder, Traffic};
use crate::upstream_call::Notices;
use crate::upstream_call::whose;
use crate::watcher::Logins;
pub(crate) use view::View;
pub(crate) use visibility::Visibility;

/// What a gateway needs beside its plan.
#[derive(Clone)]
pub struct Settings {
    /// Where lists are stored between two runs.
    pub store: Arc<dyn Store>,
    /// The file of the pins; `None` to pin nothing.
    pub pins: Option<std::path::PathBuf>,
    /// Stored logins of the operator.
    pub logins: Option<Logins>,
    /// Where the logins of principals are stored (`auth.perUser`).
    pub accounts: Arc<dyn Vault>,
    /// Bounds on what clients may cost.
    pub limits: Limits,
    /// Where spans and metrics are exported, if anywhere.
    pub otel: Option<OtelSettings>,
    /// What lets HTTP sessions outlive the process; `None` ends them with it.
    pub lasting: Option<Arc<Lasting>>,
    /// What this gateway shares with its other replicas; `None` if it is alone.
    pub fleet: Option<Fleet>,
    /// How HTTP sessions are shared with the other replicas.
    pub sessions: Option<Arc<SharedSessions>>,
}

/// The state that all calls share.
pub(crate) struct GatewayState {
    active: RwLock<Arc<ActivePlan>>,
    /// Incremented whenever a list or the plan changes.
    pub(crate) generation: AtomicU64,
    views: Mutex<HashMap<Selector, Weak<View>>>,
    /// How many bytes of lists each view holds.
    copies: Mutex<Copies<Selector>>,
    /// The number of connected clients by selector.
    clients: Mutex<BTreeMap<Selector, usize>>,
    pub(crate) seals: Seals,
    pub(crate) parked_calls: Arc<ParkedCalls>,
    pub(crate) notices: Arc<Notices>,
    pub(crate) envelopes: Envelopes,
    pub(crate) tasks: Arc<Registry>,
    pub(crate) listeners: Arc<Listeners<ListenerInfo>>,
    pub(crate) subscriptions: Subscriptions,
    /// Which server named which URI to which caller.
    pub(crate) named: Named,
    approvals: Mutex<Approvals>,
    seen: Mutex<Seen>,
    pub(crate) cache: Cache,
    /// The logins of principals at servers.
    pub(crate) accounts: Accounts,
    pub(crate) pins: Option<PinFile>,
    told_held: pinning::HeldReports,
    pub(crate) metrics: Metrics,
    refusals: report::Refusals,
    pub(crate) logs: Logs,
    pub(crate) calls: Calls,
    /// The calls that operators see.
    pub(crate) traffic: Arc<Traffic>,
    /// What it needs for requests that stand for themselves.
    pub(crate) one_request_links: Arc<OneRequestLinks>,
    trace: (u64, AtomicU64),
    pub(crate) otel: Option<Arc<Otel>>,
    pub(crate) settings: Settings,
    pub(crate) core: Arc<Config>,
    pub(crate) began: Instant,
    pub(crate) this: Weak<GatewayState>,
}

/// A plan in force.
pub(crate) struct ActivePlan {
    pub(crate) plan: Arc<Plan>,
    pub(crate) servers: BTreeMap<String, Arc<Server>>,
    pub(crate) rules: Rules,
    /// The tags of servers and of automatic mode; any other tag selects nothing.
    pub(crate) tags: BTreeSet<String>,
    pub(crate) quota: Arc<Mutex<Quota>>,
    pub(crate) plugins: Arc<Pipeline>,
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) redactor: Arc<Redactor>,
    /// Records calls for operators; `None` where that is off.
    pub(crate) recorder: Option<Arc<Recorder>>,
}

impl ActivePlan {
    /// Counts a call against the rate limits. Over the limit it returns how long to wait.
    pub(crate) fn take(&self, principal: &[String], target: &Target) -> Result<(), Duration> {
        if !self.has_rates() {
            return Ok(());
        }
        let subject = Subject::new(&target.server, What::of(target));
        let mut quota = self.quota.lock().unwrap_or_else(PoisonError::into_inner);
        quota.take(principal, &subject, Instant::now())
    }

    /// Whether some calls are limited.
    pub(crate) fn has_rates(&self) -> bool {
        !self.plan.gateway.rates.is_empty()
    }

    /// As [`take`](Self::take), where all replicas count together.
    pub(crate) async fn take_shared(
        &self,
        fleet: &Fleet,
        principal: &[String],
        target: &Target,
    ) -> Result<Result<(), Duration>, Failure> {
        let subject = Subject::new(&target.server, What::of(target));
        let buckets = {
            let quota = self.quota.lock().unwrap_or_else(PoisonError::into_inner);
            quota.buckets(principal, &subject)
        };
        match buckets {
            Err(wait) => Ok(Err(wait)),
            Ok(buckets) if buckets.is_empty() => Ok(Ok(())),
            Ok(buckets) => {
                let who = principal.first().map_or("", String::as_str);
                fleet.take(who, &buckets).await
            }
        }
    }

    pub(crate) fn audits(&self) -> bool {
        self.audit.is_some()
    }
}

/// Why a server is left out: its entry in the catalog has a fault.
pub(crate) fn left_out(name: &str, why: &str) -> String {
    format!("`{name}` is left out until its entry is mended. {why}")
}

impl ActivePlan {
    /// Why a name that starts with a server's name does not exist: the server is left out, or its lists are
    /// unknown. `None` if the caller may not know of the server.
    pub(crate) fn why_not(&self, visibility: &Visibility<'_>, shown: &str) -> Option<String> {
        let mut out = self.plan.out.iter().filter(|_| visibility.is_open());
        if let Some((name, why)) = out.find(|(name, _)| is_of(shown, name)) {
            return Some(left_out(name, why));
        }
        let server = self.unknown(shown).filter(|it| visibility.sees_server(&it.name))?;
        Some(format!(
            "`{}` has not listed yet what it offers. {}",
            server.name,
            server.why_unknown()
        ))
    }

    /// The server that a name starts with, if its lists are unknown.
    pub(crate) fn unknown(&self, shown: &str) -> Option<&Arc<Server>> {
        self.servers.values().find(|it| is_of(shown, &it.name) && it.lists().is_none())
    }

    fn empty() -> Self {
        Self {
            plan: Arc::default(),
            servers: BTreeMap::new(),
            rules: Rules::new(&[]),
            tags: BTreeSet::new(),
            quota: Arc::new(Mutex::new(Quota::new(&[]))),
            plugins: Arc::default(),
            audit: None,
            redactor: Arc::new(Redactor::new([])),
            recorder: None,
        }
    }
}

/// Whether a name starts with a server's name.
fn is_of(shown: &str, server: &str) -> bool {
    let rest = shown.strip_prefix(server);
    rest.is_some_and(|it| !it.starts_with(|it: char| it.is_ascii_alphanumeric()))
}

impl GatewayState {
    /// A state with an empty plan.
    pub(crate) fn new(settings: Settings, core: Arc<Config>, pins: Option<PinFile>) -> Arc<Self> {
        let cache = Cache::new(Arc::clone(&settings.store));
        let listeners = Arc::new(Listeners::default());
        Arc::new_cyclic(|this: &Weak<GatewayState>| GatewayState {
            active: RwLock::new(Arc::new(ActivePlan::empty())),
            generation: AtomicU64::new(1),
            views: Mutex::default(),
            copies: Mutex::default(),
            clients: Mutex::default(),
            seals: settings.fleet.as_ref().map_or_else(Seals::alone, Seals::shared),
            parked_calls: Arc::default(),
            notices: Arc::default(),
            envelopes: Envelopes::default(),
            tasks: Registry::new(Arc::clone(&listeners)),
            listeners,
            subscriptions: Subscriptions::default(),
            named: Named::default(),
            approvals: Mutex::new(Approvals::new(crate::question::PATIENCE)),
            seen: Mutex::default(),
            cache,
            accounts: match &settings.fleet {
                Some(fleet) => {
                    Accounts::new(Arc::new(FleetVault::new(fleet)), Some(fleet.me().to_owned()))
                }
                None => Accounts::new(Arc::clone(&settings.accounts), None),
            },
            pins,
            told_held: pinning::HeldReports::default(),
            metrics: Metrics::default(),
            refusals: report::Refusals::default(),
            logs: Logs::default(),
            calls: Calls::default(),
            traffic: Traffic::new(),
            one_request_links: Arc::default(),
            trace: (seed(), AtomicU64::new(0)),
            otel: settings.otel.as_ref().map(|it| {
                let host: Weak<dyn otel::Host> = Weak::<GatewayState>::clone(this);
                Otel::start(it, host)
            }),
            settings,
            core,
            began: Instant::now(),
            this: Weak::clone(this),
        })
    }

    pub(crate) fn active_plan(&self) -> Arc<ActivePlan> {
        Arc::clone(&self.active.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the plan with an empty one.
    pub(crate) fn clear(&self) {
        *self.active.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(ActivePlan::empty());
    }

    /// Puts a plan in force and drops what the new plan does not contain.
    pub(crate) fn enforce(&self, before: &ActivePlan, active: ActivePlan) {
        let active = Arc::new(active);
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&active);
        self.traffic.uses(active.recorder.as_ref());
        self.one_request_links.clear();
        self.generation.fetch_add(1, Ordering::AcqRel);
        for (name, server) in &before.servers {
            if active.servers.get(name).is_none_or(|it| !Arc::ptr_eq(it, server)) {
                let (pool, drain) = (Arc::clone(&server.pool), server.plan().drain);
                tokio::spawn(async move { pool.close(drain).await });
            }
        }
        for server in active.servers.values() {
            self.count_clients(server);
        }
        self.subscriptions.follow(self);
        if !before.servers.is_empty() {
            for kind in Kind::ALL {
                self.listeners.tell(&kind.change(), |_| true);
            }
        }
        self.bootstrap(&active);
    }

    /// The view of a selector, shared by all clients that chose it for as long as one holds it.
    pub(crate) fn view(&self, selector: Selector) -> Arc<View> {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.get(&selector).and_then(Weak::upgrade) {
            return view;
        }
        views.retain(|_, it| it.strong_count() > 0);
        let view = View::new(selector.clone());
        views.insert(selector, Arc::downgrade(&view));
        view
    }

    /// Records how many bytes of lists a view holds; evicts other views' copies beyond the bound.
    pub(crate) fn keeps(&self, view: &Selector, bytes: usize) {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        let there = |it: &Selector| views.get(it).and_then(Weak::upgrade);
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        copies.retain(|it| there(it).is_some());
        let gone: Vec<_> = copies.keeps(view, bytes).iter().filter_map(there).collect();
        drop((copies, views));
        gone.iter().for_each(|it| it.forget());
    }

    #[cfg(test)]
    pub(crate) fn copied(&self) -> usize {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner).bytes()
    }

    #[cfg(test)]
    pub(crate) fn known_views(&self) -> usize {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn page(&self) -> Page {
        Page { server_info: Some(Json::of(&self.core.info)), ..Page::default() }
    }

    pub(crate) fn seen<T>(&self, with: impl FnOnce(&mut Seen) -> T) -> T {
        with(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The name of this replica, if it is one of several.
    pub(crate) fn replica(&self) -> Option<&str> {
        self.settings.fleet.as_ref().map(Fleet::me)
    }

    /// The last calls, newest first.
    pub(crate) fn recent_calls(&self, limit: usize) -> Vec<serde_json::Value> {
        // Those that are recorded are not noted as well.
        let noted = match self.active_plan().recorder {
            Some(_) => Vec::new(),
            None => self.calls.recent(limit),
        };
        if noted.is_empty() { self.traffic.recent(limit) } else { noted }
    }

    /// What is said to an instance, as the recorder sees it.
    pub(crate) fn link_of(&self, server: &Arc<str>, instance: u64) -> Arc<dyn Witness> {
        Link::of_server(&self.traffic, server, instance, whose)
    }

    pub(crate) fn next_trace(&self) -> Trace {
        Trace::new(self.trace.0, self.trace.1.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Counts a client that was refused.
    pub(crate) fn refused(&self, status: u16) {
        self.metrics.refused(status);
        self.refusals.note(status);
        if let Some(audit) = &self.active_plan().audit {
            audit.refused(status);
        }
    }

    /// Records a call that is finished now.
    pub(crate) fn note(
        &self,
        active: &ActivePlan,
        caller: &Caller,
        record: &CallRecord,
        outcome: Outcome,
        now: Instant,
    ) {
        let took = now.saturating_duration_since(record.began);
        report::call(outcome.blames_server(), || record.done(caller, outcome, took));
        if let Some(server) = record.server() {
            let ends = (now, took);
            self.metrics.call_finished(server, Some(record.method), outcome, ends);
        }
        if let Some(reason) = record.rejection() {
            self.metrics.rejected(reason);
        }
        // What is recorded has it all.
        if record.recording.is_none() {
            self.calls.note(Noted {
                server: record.server().map_or("", |it| it),
                method: record.method.name(),
                name: record.name().map_or("", |it| it),
                principal: caller.name.as_deref(),
                at: now,
                took,
                outcome,
                trace: record.id,
            });
        }
        if let Some(audit) = &active.audit {
            let replica = self.settings.fleet.as_ref().map(|it| it.me().to_owned());
            audit.note(Entry { replica, ..record.entry(caller, outcome, took) });
        }
    }

    /// Samples the gauges, which no event counts.
    pub(crate) fn sample_gauges(&self) {
        let dropped = self.notices.dropped.load(Ordering::Relaxed);
        self.metrics.now(self.client_count(), self.parked_calls.len(), dropped);
        for server in self.active_plan().servers.values() {
            let plan = server.plan();
            let capacity = plan.max_concurrent * plan.max_instances;
            self.metrics.server(&server.name).pool_status(&server.pool.status(), capacity);
        }
    }

    pub(crate) fn joined(&self, selector: &Selector) {
        *self.clients().entry(selector.clone()).or_default() += 1;
        self.recount();
    }

    pub(crate) fn left(&self, selector: &Selector, conversation: u64) {
        {
            let mut clients = self.clients();
            if let Some(count) = clients.get_mut(selector) {
                *count -= 1;
                if *count == 0 {
                    clients.remove(selector);
                }
            }
        }
        let key = session_key(conversation);
        for server in self.active_plan().servers.values() {
            server.pool.forget(&key);
        }
        self.recount();
    }

    pub(crate) fn client_count(&self) -> usize {
        self.clients().values().sum()
    }

    fn recount(&self) {
        for server in self.active_plan().servers.values() {
            self.count_clients(server);
        }
    }

    fn count_clients(&self, server: &Server) {
        let plan = server.plan();
        let clients = self.clients();
        let count = clients.iter().filter(|(it, _)| it.chooses(&plan)).map(|(_, n)| n).sum();
        server.set_clients(count);
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, BTreeMap<Selector, usize>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl otel::Host for GatewayState {
    fn metrics(&self) -> &Metrics {
        self.sample_gauges();
        &self.metrics
    }

    fn say(&self, text: &str) {
        self.logs.add(Logged::gateway("", text));
    }
}

/// Distinguishes the trace ids of one run from those of another.
fn seed() -> u64 {
    let name = trunkline_auth::tag::random_name();
    let digest = trunkline_auth::digest::sha256(name.as_bytes());
    let digits = digest.strip_prefix("sha256:").unwrap_or(&digest);
    u64::from_str_radix(&digits[..16], 16).unwrap_or(1)
}
