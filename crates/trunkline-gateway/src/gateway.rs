//! The gateway's lifecycle: puts plans in force, admits clients, and shuts down.

mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinSet;
use trunkline_proto::Timing;
use trunkline_proto::server::Config;
use trunkline_transport::child::orphan_reaper;
use trunkline_transport::limits::Limits;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    Implementation, ListChanged, LogLevel, ResourcesCapability, SKILLS_EXTENSION,
    ServerCapabilities, ServerTasks, TASKS_EXTENSION,
};

use crate::catalog::plan::Plan;
use crate::catalog::{Change, Diff, diff};
use crate::failure::{Failure, Reason, Stage};
use crate::logs::Logged;
use crate::policy::audit::Audit;
use crate::policy::pins::PinFile;
use crate::policy::plugins::Pipeline;
use crate::policy::redact::Redactor;
use crate::policy::rules::Rules;
use crate::pool::{Cause, Event};
use crate::report;
use crate::scoped_handler::ScopedHandler;
use crate::selector::Selector;
use crate::server::Server;
use crate::state::{ActivePlan, GatewayState, Settings, left_out};
use crate::traffic::Recorder;
use crate::watcher::Watcher;

/// Many servers behind one endpoint. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(pub(crate) Arc<GatewayState>);

impl Gateway {
    /// Puts a plan in force. Only always-on servers start now; unknown lists are fetched in the background.
    pub async fn open(plan: Plan, settings: Settings) -> Result<Self, Failure> {
        let (pins, fault) = match (&settings.pins, &settings.fleet) {
            (Some(before), Some(fleet)) => Some(PinFile::shared(fleet, before).await),
            (pins, _) => pins.as_ref().map(PinFile::open),
        }
        .unzip();
        let core = Arc::new(core(&settings.limits, &plan));
        let gateway = Self(GatewayState::new(settings, core, pins));
        if let Some(fault) = fault.flatten() {
            tracing::error!(%fault, "pins cannot be used");
            gateway.0.logs.add(Logged::gateway("", &fault.to_string()));
        }
        gateway.apply(plan).await?;
        if let Some(audit) = &gateway.0.active_plan().audit {
            let version = env!("CARGO_PKG_VERSION");
            let mut started = serde_json::json!({ "version": version });
            if let Some(fleet) = &gateway.0.settings.fleet {
                started["replica"] = fleet.me().into();
            }
            audit.note_event("started", started);
        }
        if let Some(fleet) = &gateway.0.settings.fleet {
            let replica = fleet.me();
            tracing::info!(target: "trunkline::replica", replica, "joined");
        }
        gateway.0.spawn_maintenance();
        gateway.0.spawn_hearing();
        Ok(gateway)
    }

    /// Puts another plan in force. Unchanged servers keep their processes; changed ones drain first.
    pub async fn apply(&self, plan: Plan) -> Result<Diff, Failure> {
        let shared = &self.0;
        let before = shared.active_plan();
        let redactor = Arc::new(Redactor::of(&plan));
        let changes = diff(&before.plan, &plan);
        // Fallible steps come first: a plan is put in force as a whole or not at all.
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
                    Failure::new(Reason::BadAudit, Stage::Policy, message)
                })?;
                Some(Arc::new(audit))
            }
            None => None,
        };
        let recorder = Recorder::open(&shared.traffic, &plan, before.recorder.as_ref())
            .map_err(|why| Failure::new(Reason::BadRecording, Stage::Policy, why))?;
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
                    let settings = &shared.settings;
                    let replicas = settings.fleet.as_ref().zip(settings.sessions.as_ref());
                    let redactor = Arc::clone(&redactor);
                    let server =
                        Server::new(Arc::clone(server), lists, watcher, redactor, replicas);
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
                                shared.compare_in_background(server, *id);
                            }
                            Event::Stopped { id, .. } => shared.forget_instance(&server, *id),
                            _ => {}
                        }
                    });
                    server
                }
            };
            servers.insert(name.clone(), server);
        }
        before.quota.lock().unwrap_or_else(PoisonError::into_inner).replace(&plan.gateway.rates);
        let active = ActivePlan {
            rules: Rules::new(&plan.gateway.rules),
            tags: known_tags(&plan),
            quota: Arc::clone(&before.quota),
            plan: Arc::new(plan),
            servers,
            plugins,
            audit,
            redactor,
            recorder,
        };
        shared.enforce(&before, active);
        Ok(changes)
    }

    /// The handler for clients with this selector.
    pub(crate) fn handler(&self, selector: Selector) -> Arc<ScopedHandler> {
        Arc::new(ScopedHandler { shared: Arc::clone(&self.0), view: self.0.view(selector) })
    }

    /// This replica ends: stops the instances that serve other replicas, too, each as soon as nothing is in flight in
    /// it, or `at_once`. Returns whether none is left.
    pub async fn let_go_of_instances(&self, at_once: bool) -> bool {
        let mut is_done = true;
        for server in self.0.active_plan().servers.values() {
            is_done &= server.leave(at_once).await;
        }
        is_done
    }

    /// Graceful shutdown: drains calls and stops everything.
    pub async fn close(&self) {
        // No client is left to poll tasks or to resume calls.
        self.0.tasks.clear();
        self.0.parked_calls.clear();
        let active = self.0.active_plan();
        let mut closing = JoinSet::new();
        for server in active.servers.values() {
            let (pool, drain) = (Arc::clone(&server.pool), server.plan().drain);
            closing.spawn(async move { pool.close(drain).await });
        }
        while closing.join_next().await.is_some() {}
        active.plugins.close().await;
        // No process that we started may outlive us.
        let _ = tokio::task::spawn_blocking(orphan_reaper::wait_until_gone).await;
        let audit = active.audit.clone();
        if let Some(recorder) = &active.recorder {
            recorder.settled().await;
        }
        drop(active);
        self.0.clear();
        if let Some(audit) = audit {
            audit.close().await;
        }
        if let Some(otel) = &self.0.otel {
            otel.close().await;
        }
    }
}

/// What the gateway declares to clients. It declares every capability: missing lists are empty.
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
    // Until a client sets a level, the servers decide.
    config.log_level = LogLevel::Debug;
    config.bounds = limits.bounds();
    config.bounds.call = front(plan);
    config
}

/// The deadline of a call at the front. The catalog sets deadlines for each step, and the caller should get
/// that step's error: this one only ends what nothing else ended.
fn front(plan: &Plan) -> Timing {
    let longest = plan.servers.values().map(|it| {
        let times = &it.timeouts;
        // A call may be tried three times.
        (times.acquire + times.start + times.hard) * 3
    });
    let hard = DAY + longest.max().unwrap_or_default();
    Timing { idle: hard, hard }
}

/// The tags of servers, and those that turn automatic mode on.
fn known_tags(plan: &Plan) -> BTreeSet<String> {
    let automatic = plan.gateway.automatic.iter().flat_map(|it| &it.tags);
    plan.servers.values().flat_map(|it| &it.tags).chain(automatic).cloned().collect()
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
