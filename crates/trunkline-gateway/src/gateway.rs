//! Everything together: the plan that is in force, the servers it names, and what is remembered
//! between two calls.

mod account;
mod instructions;
mod lists;
mod pinning;
mod stream;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use trunkline_auth::client::vault::Vault;
use trunkline_auth::credentials::Credentials;
use trunkline_auth::seal::Sealer;
use trunkline_proto::Timing;
use trunkline_proto::server::Config;
use trunkline_store::Store;
use trunkline_transport::http::Lasting;
use trunkline_transport::limits::Limits;
use trunkline_transport::listeners::Listeners;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    Implementation, ListChanged, LogLevel, ResourcesCapability, SKILLS_EXTENSION,
    ServerCapabilities, ServerTasks, TASKS_EXTENSION,
};

use crate::accounts::Accounts;
use crate::cache::Cache;
use crate::calls::{Calls, Noted};
use crate::catalog::plan::Plan;
use crate::catalog::{Change, Diff, diff};
use crate::copies::Copies;
use crate::face::{Face, Seat, Selector, Sight, View, change_of, what};
use crate::failure::{Failure, Stage};
use crate::forward::Envelopes;
use crate::keeper;
use crate::line::Notices;
use crate::logs::{Logged, Logs};
use crate::merge::{Kind, Page, Target};
use crate::metrics::{self, Metrics};
use crate::named::Named;
use crate::otel::{Otel, OtelSettings};
use crate::park::Lot;
use crate::policy::ask::Approvals;
use crate::policy::audit::Audit;
use crate::policy::pins::PinFile;
use crate::policy::plugins::Pipeline;
use crate::policy::quota::Quota;
use crate::policy::redact::Redactor;
use crate::policy::rules::Rules;
use crate::policy::subject::Subject;
use crate::pool::{Cause, Event};
use crate::report;
use crate::seal::Seals;
use crate::search::Seen;
use crate::server::{Server, session_key};
use crate::subscriptions::Subscriptions;
use crate::tasks::Registry;
use crate::trail::{Trace, Trail};
use crate::upstream::Watcher;

/// Finds a login that was stored for a URL.
pub type Logins = Arc<dyn Fn(&str) -> Found + Send + Sync>;

/// A login, once it is found.
pub type Found = Pin<Box<dyn Future<Output = Option<Arc<dyn Credentials>>> + Send>>;

/// What a gateway is given beside its plan.
#[derive(Clone)]
pub struct Settings {
    /// Where lists are kept between two runs.
    pub store: Arc<dyn Store>,
    /// The file that keeps what servers offered; `None` to pin nothing.
    pub pins: Option<std::path::PathBuf>,
    /// Logins that were stored.
    pub logins: Option<Logins>,
    /// Where the logins of principals are kept (`auth.perUser`).
    pub accounts: Arc<dyn Vault>,
    /// What clients may cost.
    pub limits: Limits,
    /// Where spans and numbers are sent, if anywhere.
    pub otel: Option<OtelSettings>,
    /// What lets sessions over HTTP outlive the process; `None` to have them end with it.
    pub lasting: Option<Arc<Lasting>>,
}

/// Many servers behind one door. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(pub(crate) Arc<Shared>);

/// What all calls share.
pub(crate) struct Shared {
    world: RwLock<Arc<World>>,
    /// Changes whenever a list or the plan does.
    pub(crate) generation: AtomicU64,
    views: Mutex<HashMap<Selector, Weak<View>>>,
    /// What views keep of lists.
    copies: Mutex<Copies<Selector>>,
    /// How many clients are there, by what they chose.
    clients: Mutex<BTreeMap<Selector, usize>>,
    pub(crate) seals: Seals,
    pub(crate) lot: Arc<Lot>,
    pub(crate) notices: Arc<Notices>,
    pub(crate) envelopes: Envelopes,
    pub(crate) tasks: Arc<Registry>,
    pub(crate) listeners: Listeners<Seat>,
    pub(crate) subscriptions: Subscriptions,
    /// Which server named which URI to whom.
    pub(crate) named: Named,
    approvals: Mutex<Approvals>,
    seen: Mutex<Seen>,
    cache: Cache,
    /// The logins of principals at servers.
    pub(crate) accounts: Accounts,
    pub(crate) pins: Option<PinFile>,
    told_held: pinning::ToldHeld,
    pub(crate) metrics: Metrics,
    refusals: report::Refusals,
    pub(crate) logs: Logs,
    pub(crate) calls: Calls,
    trace: (u64, AtomicU64),
    pub(crate) otel: Option<Arc<Otel>>,
    pub(crate) settings: Settings,
    pub(crate) core: Arc<Config>,
    pub(crate) began: Instant,
    this: Weak<Shared>,
}

/// A plan in force.
pub(crate) struct World {
    pub(crate) plan: Arc<Plan>,
    pub(crate) servers: BTreeMap<String, Arc<Server>>,
    pub(crate) rules: Rules,
    /// The tags that make a difference: others choose nothing.
    pub(crate) tags: BTreeSet<String>,
    quota: Arc<Mutex<Quota>>,
    pub(crate) plugins: Arc<Pipeline>,
    pub(crate) audit: Option<Arc<Audit>>,
    redactor: Arc<Redactor>,
}

impl World {
    /// Counts a call against the rates; how long to wait if it is one too many.
    pub(crate) fn take(&self, principal: &[String], target: &Target) -> Result<(), Duration> {
        if self.plan.gateway.rates.is_empty() {
            return Ok(());
        }
        let subject = Subject::new(&target.server, what(target));
        let mut quota = self.quota.lock().unwrap_or_else(PoisonError::into_inner);
        quota.take(principal, &subject, Instant::now())
    }

    pub(crate) fn audits(&self) -> bool {
        self.audit.is_some()
    }
}

impl Gateway {
    /// Puts a plan in force. Nothing is started yet but what always runs; lists that are not known
    /// are fetched in the background.
    pub async fn open(plan: Plan, settings: Settings) -> Result<Self, Failure> {
        let cache = Cache::new(Arc::clone(&settings.store));
        let (pins, fault) = settings.pins.as_ref().map(PinFile::open).unzip();
        let core = Arc::new(core(&settings.limits, &plan));
        let shared = Arc::new_cyclic(|this: &Weak<Shared>| Shared {
            world: RwLock::new(Arc::new(World::empty())),
            generation: AtomicU64::new(1),
            views: Mutex::default(),
            copies: Mutex::default(),
            clients: Mutex::default(),
            seals: Seals::new(Sealer::random()),
            lot: Arc::default(),
            notices: Arc::default(),
            envelopes: Envelopes::default(),
            tasks: Arc::default(),
            listeners: Listeners::default(),
            subscriptions: Subscriptions::default(),
            named: Named::default(),
            approvals: Mutex::new(Approvals::new(crate::park::PATIENCE)),
            seen: Mutex::default(),
            cache,
            accounts: Accounts::new(Arc::clone(&settings.accounts)),
            pins,
            told_held: pinning::ToldHeld::default(),
            metrics: Metrics::default(),
            refusals: report::Refusals::default(),
            logs: Logs::default(),
            calls: Calls::default(),
            trace: (seed(), AtomicU64::new(0)),
            otel: settings.otel.as_ref().map(|it| Otel::start(it, Weak::clone(this))),
            settings,
            core,
            began: Instant::now(),
            this: Weak::clone(this),
        });
        let gateway = Self(shared);
        if let Some(fault) = fault.flatten() {
            tracing::error!(%fault, "pins cannot be used");
            gateway.0.logs.add(Logged::gateway("", &fault.to_string()));
        }
        gateway.apply(plan).await?;
        if let Some(audit) = &gateway.0.world().audit {
            let version = env!("CARGO_PKG_VERSION");
            audit.note_event("started", serde_json::json!({ "version": version }));
        }
        gateway.0.tend();
        Ok(gateway)
    }

    /// Puts another plan in force. Servers that did not change keep their processes; those that did
    /// finish their calls first.
    pub async fn apply(&self, plan: Plan) -> Result<Diff, Failure> {
        let shared = &self.0;
        let before = shared.world();
        let redactor = Arc::new(Redactor::of(&plan));
        let changes = diff(&before.plan, &plan);
        // What can fail comes first: either all of a plan is put in force or nothing.
        shared.load_accounts(&plan).await?;
        let plugins = match before.plan.gateway.plugins == plan.gateway.plugins {
            true => Arc::clone(&before.plugins),
            false => {
                let this = Weak::clone(&shared.this);
                let started = Pipeline::start(&plan.gateway.plugins).await?;
                Arc::new(started.watched(move |plugin, took| {
                    if let Some(shared) = this.upgrade() {
                        shared.metrics.plugin_asked(plugin, took);
                    }
                }))
            }
        };
        let audit = match &plan.gateway.audit {
            plan if *plan == before.plan.gateway.audit => before.audit.clone(),
            Some(plan) => {
                let audit = Audit::with(plan).map_err(|error| {
                    let message = format!("`{}` cannot be written: {error}.", plan.path.display());
                    Failure::new("bad_audit", Stage::Policy, message)
                })?;
                Some(Arc::new(audit))
            }
            None => None,
        };
        let mut servers = BTreeMap::new();
        if let Some(pins) = &shared.pins {
            pins.serves(plan.servers.keys().chain(plan.out.keys()).cloned().collect());
        }
        for (name, why) in plan.out.iter().filter(|it| before.plan.out.get(it.0) != Some(it.1)) {
            tracing::warn!(server = name, why, "the server is left out");
            shared.logs.add(Logged::gateway(name, &left_out(name, why)));
        }
        for (name, server) in &plan.servers {
            let kept = before
                .servers
                .get(name)
                .filter(|_| changes.servers.get(name) != Some(&Change::Replaced));
            let server = match kept {
                Some(kept) => {
                    let was = kept.plan().pin;
                    kept.reconfigure(Arc::clone(server));
                    if let Some(lists) = kept.lists().filter(|_| was != server.pin) {
                        shared.apply_pins(server, &lists).await;
                    }
                    Arc::clone(kept)
                }
                None => {
                    let lists = shared.cache.load(&server.fingerprint()).await.map(Arc::new);
                    if let Some(lists) = &lists {
                        shared.apply_pins(server, lists).await;
                    }
                    let watcher: Weak<dyn Watcher> = Weak::clone(&shared.this) as Weak<dyn Watcher>;
                    let server =
                        Server::new(Arc::clone(server), lists, watcher, Arc::clone(&redactor));
                    let metrics = shared.metrics.server(&server.name);
                    let (this, weak) = (Weak::clone(&shared.this), Arc::downgrade(&server));
                    let named = Arc::clone(&server.name);
                    server.pool.on_event(move |event| {
                        metrics.pool_event(event);
                        report::pool(&named, event);
                        let (Some(shared), Some(server)) = (this.upgrade(), weak.upgrade()) else {
                            return;
                        };
                        match event {
                            Event::Started { id, cause, .. } if *cause != Cause::List => {
                                shared.look_at(server, *id);
                            }
                            Event::Stopped { id, .. } => shared.looked_at_is_gone(&server, *id),
                            _ => {}
                        }
                    });
                    server
                }
            };
            servers.insert(name.clone(), server);
        }
        before.quota.lock().unwrap_or_else(PoisonError::into_inner).replace(&plan.gateway.rates);
        let world = World {
            rules: Rules::new(&plan.gateway.rules),
            tags: known_tags(&plan),
            quota: Arc::clone(&before.quota),
            plan: Arc::new(plan),
            servers,
            plugins,
            audit,
            redactor,
        };
        shared.enforce(&before, world);
        Ok(changes)
    }

    /// The view of those who chose this.
    pub(crate) fn face(&self, selector: Selector) -> Arc<Face> {
        Arc::new(Face { shared: Arc::clone(&self.0), view: self.0.view(selector) })
    }

    /// Lets calls finish and stops everything.
    pub async fn close(&self) {
        // Nobody is left who could ask how they are, or come back with answers.
        self.0.tasks.clear();
        self.0.lot.clear();
        let world = self.0.world();
        let mut closing = JoinSet::new();
        for server in world.servers.values() {
            let (pool, drain) = (Arc::clone(&server.pool), server.plan().drain);
            closing.spawn(async move { pool.close(drain).await });
        }
        while closing.join_next().await.is_some() {}
        world.plugins.close().await;
        // Nothing that we have started is there when we are gone.
        let _ = tokio::task::spawn_blocking(keeper::rested).await;
        let audit = world.audit.clone();
        drop(world);
        *self.0.world.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(World::empty());
        if let Some(audit) = audit {
            audit.close().await;
        }
        if let Some(otel) = &self.0.otel {
            otel.close().await;
        }
    }
}

/// What to know of a server that is not there since its entry is not in order.
pub(crate) fn left_out(name: &str, why: &str) -> String {
    format!("`{name}` is left out until its entry is mended. {why}")
}

impl World {
    /// Why nothing is there by a name that begins with that of a server: it is left out, or has not said
    /// what it offers. For whoever may know of it.
    pub(crate) fn why_not(&self, sight: &Sight<'_>, shown: &str) -> Option<String> {
        let mut out = self.plan.out.iter().filter(|_| sight.is_open());
        if let Some((name, why)) = out.find(|(name, _)| is_of(shown, name)) {
            return Some(left_out(name, why));
        }
        let server = self.unknown(shown).filter(|it| sight.sees_server(&it.name))?;
        Some(format!("`{}` has not said yet what it offers. {}", server.name, server.why_unknown()))
    }

    /// The server that a name begins with, if it has not said what it offers.
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
        }
    }
}

/// Whether a name begins with that of a server.
fn is_of(shown: &str, server: &str) -> bool {
    let rest = shown.strip_prefix(server);
    rest.is_some_and(|it| !it.starts_with(|it: char| it.is_ascii_alphanumeric()))
}

impl Shared {
    pub(crate) fn world(&self) -> Arc<World> {
        Arc::clone(&self.world.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a world in force and lets go of what is not in it.
    fn enforce(&self, before: &World, world: World) {
        let world = Arc::new(world);
        *self.world.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&world);
        self.generation.fetch_add(1, Ordering::AcqRel);
        for (name, server) in &before.servers {
            if world.servers.get(name).is_none_or(|it| !Arc::ptr_eq(it, server)) {
                let (pool, drain) = (Arc::clone(&server.pool), server.plan().drain);
                tokio::spawn(async move { pool.close(drain).await });
            }
        }
        for server in world.servers.values() {
            self.count_clients(server);
        }
        self.subscriptions.follow(self);
        if !before.servers.is_empty() {
            for kind in Kind::ALL {
                self.listeners.tell(&change_of(kind), |_| true);
            }
        }
        self.bootstrap(&world);
    }

    /// The view of those who chose this: one for all of them, for as long as somebody has it.
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

    /// A view keeps so many bytes of lists; others forget theirs if that is too much.
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

    pub(crate) fn approvals<T>(&self, with: impl FnOnce(&mut Approvals) -> T) -> T {
        with(&mut self.approvals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn seen<T>(&self, with: impl FnOnce(&mut Seen) -> T) -> T {
        with(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.this)
    }

    pub(crate) fn next_trace(&self) -> Trace {
        Trace::new(self.trace.0, self.trace.1.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Remembers a call that is over.
    /// Somebody was not let in.
    pub(crate) fn refused(&self, status: u16) {
        self.metrics.refused(status);
        self.refusals.note(status);
        if let Some(audit) = &self.world().audit {
            audit.refused(status);
        }
    }

    pub(crate) fn note(&self, world: &World, trail: &Trail, outcome: metrics::Outcome) {
        let took = trail.began.elapsed();
        report::call(&trail.done(outcome, took));
        if let Some(server) = &trail.server {
            self.metrics.call_finished(server, trail.method, outcome, took);
        }
        if let Some(reason) = trail.rejection() {
            self.metrics.rejected(reason);
        }
        self.calls.note(Noted {
            server: trail.server.as_deref().unwrap_or_default(),
            method: trail.method,
            name: trail.name.as_deref().unwrap_or_default(),
            principal: trail.caller.name.as_deref(),
            took,
            outcome,
            trace: trail.id,
        });
        if let Some(audit) = &world.audit {
            audit.note(trail.entry(outcome));
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
        for server in self.world().servers.values() {
            server.pool.forget(&key);
        }
        self.recount();
    }

    pub(crate) fn client_count(&self) -> usize {
        self.clients().values().sum()
    }

    fn recount(&self) {
        for server in self.world().servers.values() {
            self.count_clients(server);
        }
    }

    fn count_clients(&self, server: &Server) {
        let plan = server.plan();
        let clients = self.clients();
        let count = clients.iter().filter(|(it, _)| it.chooses(&plan)).map(|(_, n)| n).sum();
        server.has_clients(count);
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, BTreeMap<Selector, usize>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the gateway is to its clients. It says that it has everything: lists of nothing are empty.
fn core(limits: &Limits, plan: &Plan) -> Config {
    let mut info = Implementation::new("trunkline", env!("CARGO_PKG_VERSION"));
    info.title = Some("Trunkline gateway".to_owned());
    let mut config = Config::new(info);
    let mut caps = ServerCapabilities::default();
    caps.tools = Some(ListChanged::new(true));
    caps.prompts = Some(ListChanged::new(true));
    caps.resources = Some(ResourcesCapability::new().subscribe(true).list_changed(true));
    caps.completions = true;
    caps.logging = true;
    caps.tasks = Some(ServerTasks::ALL);
    caps.extensions.insert(TASKS_EXTENSION.to_owned(), Json::empty_object());
    let directories = Json::parse(r#"{"directoryRead":true}"#).expect("this is JSON");
    caps.extensions.insert(SKILLS_EXTENSION.to_owned(), directories);
    config.capabilities = caps;
    // Until a client says what it wants to hear, that is for the servers to decide.
    config.log_level = LogLevel::Debug;
    config.bounds = limits.bounds();
    config.bounds.call = front(plan);
    config
}

/// How long a call may take at the door. The catalog says how long each part of it may, and whoever
/// made the call is to hear from there what took too long: this only ends what nothing else ended.
fn front(plan: &Plan) -> Timing {
    let longest = plan.servers.values().map(|it| {
        let times = &it.timeouts;
        // It may be made three times.
        (times.acquire + times.start + times.hard) * 3
    });
    let hard = DAY + longest.max().unwrap_or_default();
    Timing { idle: hard, hard }
}

/// The tags of servers, and those that make clients search.
fn known_tags(plan: &Plan) -> BTreeSet<String> {
    let automatic = plan.gateway.automatic.iter().flat_map(|it| &it.tags);
    plan.servers.values().flat_map(|it| &it.tags).chain(automatic).cloned().collect()
}

/// Tells the traces of one run from those of another.
fn seed() -> u64 {
    let name = trunkline_auth::tag::random_name();
    let digest = trunkline_auth::digest::sha256(name.as_bytes());
    let digits = digest.strip_prefix("sha256:").unwrap_or(&digest);
    u64::from_str_radix(&digits[..16], 16).unwrap_or(1)
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
