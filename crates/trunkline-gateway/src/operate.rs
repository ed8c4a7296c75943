//! Operates a gateway: follows its catalog file, and implements the admin API.

mod costs;
mod for_console;
mod kept_recordings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::admin::{
    Approving, Complaint, Followed, Operate, TrafficFilter, TrafficUpdates, TryAnswer, TryRequest,
};
use crate::catalog::{Change, Faults, Loaded, Watch, load_file};
use crate::failure::Failure;
use crate::front::Front;
use crate::gateway::Gateway;
use crate::list_changes::REFRESHES;
use crate::login_steps::LoginSteps;
use crate::logs::Logged;
use crate::merge::Kind;
use crate::metrics::STEP;
use crate::policy::pins::{Approval, Held, Offered, Unapproved};
use crate::policy::plain;
use crate::policy::stamp::rfc3339;
use crate::server::now;
use crate::trying::{self, Tries};
use for_console::{is_server, untried};
use kept_recordings::KeptRecordings;

/// A running gateway.
pub struct Operation {
    gateway: Gateway,
    /// The catalog file, unless it is the built-in catalog.
    file: Option<PathBuf>,
    listen: RwLock<Option<String>>,
    front: RwLock<Option<Arc<Front>>>,
    last: Mutex<Value>,
    /// The files that the catalog takes values from.
    files: Mutex<BTreeSet<PathBuf>>,
    /// One reload at a time.
    turn: tokio::sync::Mutex<()>,
    /// The calls that operators try.
    tries: Tries,
    recordings: RwLock<Option<Arc<KeptRecordings>>>,
    /// The logins that operators step through.
    logins: LoginSteps,
}

impl Operation {
    /// Operates a gateway that was opened with the plan in `file`.
    pub fn new(gateway: Gateway, file: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            gateway,
            file,
            listen: RwLock::default(),
            front: RwLock::default(),
            last: Mutex::new(Value::Null),
            files: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            tries: Tries::default(),
            recordings: RwLock::default(),
            logins: LoginSteps::default(),
        })
    }

    /// Records a transport other than HTTP that clients use.
    pub fn serves(&self, way: &str) {
        *self.listen.write().unwrap_or_else(PoisonError::into_inner) = Some(way.to_owned());
    }

    /// Records the address that clients connect to.
    pub fn listens(&self, at: String, front: Arc<Front>) {
        *self.listen.write().unwrap_or_else(PoisonError::into_inner) = Some(at);
        *self.front.write().unwrap_or_else(PoisonError::into_inner) = Some(front);
    }

    /// Follows the catalog and the files it takes values from, for ever.
    pub async fn keep_following(&self, mut watch: Watch) -> std::convert::Infallible {
        loop {
            watch.follow(self.files.lock().unwrap_or_else(PoisonError::into_inner).clone());
            // Whatever happened to the file, reading it reports what is wrong.
            let _ = watch.changed().await;
            let _ = self.follow().await;
        }
    }

    /// Records the files that the catalog takes values from.
    pub fn comes_from(&self, files: BTreeSet<PathBuf>) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// Keeps recordings in a folder, which is created with the first.
    pub fn keeps_recordings(&self, folder: PathBuf) {
        *self.recordings.write().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::new(KeptRecordings::new(folder)));
    }

    /// Reloads the file and puts it in force; on a fault, everything stays as it is.
    pub async fn follow(&self) -> Result<Value, Value> {
        let _turn = self.turn.lock().await;
        let Some(file) = self.file.clone() else {
            return Ok(json!({ "changed": false, "why": "The built-in catalog does not change." }));
        };
        let outcome = match load(file).await {
            Ok(loaded) => {
                self.comes_from(loaded.files.clone());
                self.apply(loaded).await
            }
            Err(faults) => match faults.rest {
                // Known faults of some entries do not block changes of others.
                Some(rest) if self.knows(&rest.plan.out) => {
                    self.comes_from(rest.files.clone());
                    self.apply(*rest).await
                }
                _ => Err(json!(faults)),
            },
        };
        let metrics = &self.gateway.0.metrics;
        let text = match &outcome {
            Ok(told) => {
                metrics.reloaded(replaced(told));
                "The catalog was reloaded.".to_owned()
            }
            Err(why) => {
                metrics.reload_failed();
                format!("The catalog was changed and is not in order; the one before stays. {why}")
            }
        };
        match &outcome {
            Ok(_) => tracing::info!(target: "trunkline::catalog", "{text}"),
            Err(_) => tracing::warn!(
                target: "trunkline::catalog",
                "The catalog is not in order, and the one before stays. `trunkline check` says what is wrong."
            ),
        }
        self.gateway.0.logs.add(Logged::gateway("", &text));
        if let Some(audit) = &self.gateway.0.active_plan().audit {
            match &outcome {
                Ok(told) => audit.note_event("reloaded", json!({ "changes": told["changes"] })),
                Err(why) => {
                    let why = crate::policy::plain(&why.to_string(), LONGEST_WHY);
                    audit.note_event("reload_refused", json!({ "why": why }));
                }
            }
        }
        let told = match &outcome {
            Ok(told) | Err(told) => told.clone(),
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            json!({ "at": rfc3339(SystemTime::now()), "ok": outcome.is_ok(), "told": told });
        outcome
    }

    async fn apply(&self, loaded: Loaded) -> Result<Value, Value> {
        let warnings = json!(loaded.warnings);
        let told = |failure: Failure| json!({ "message": failure.to_string() });
        let front = self.front.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(front) = &front {
            front.can_follow(&loaded.plan.gateway).map_err(told)?;
        }
        let diff = self.gateway.apply(loaded.plan).await.map_err(told)?;
        if let Some(front) = front {
            front.follow().map_err(told)?;
        }
        Ok(json!({ "changed": !diff.is_empty(), "changes": diff, "warnings": warnings }))
    }

    /// Whether all of these are left out already, for the same reasons.
    fn knows(&self, out: &BTreeMap<String, String>) -> bool {
        let known = &self.gateway.0.active_plan().plan.out;
        out.iter().all(|(name, why)| known.get(name) == Some(why))
    }

    /// What a server said of itself, for an operator.
    fn without_secrets(&self, said: &Value) -> Value {
        serde_json::from_str(&self.gateway.0.traffic.clean(said)).unwrap_or_default()
    }

    fn server(&self, name: &str) -> Result<Arc<crate::server::Server>, Complaint> {
        let active = self.gateway.0.active_plan();
        active.servers.get(name).cloned().ok_or_else(|| Complaint::no_server(name))
    }
}

/// How many servers a reload replaced.
fn replaced(told: &Value) -> usize {
    let servers = told["changes"]["servers"].as_object().into_iter().flatten();
    servers.filter(|(_, change)| **change == json!(Change::Replaced)).count()
}

/// Why an approval failed, for the operator.
fn unapproved(why: Unapproved) -> Complaint {
    match why {
        Unapproved::Fault(fault) => {
            Complaint::new(http::StatusCode::INTERNAL_SERVER_ERROR, fault.to_string())
        }
        Unapproved::Other(other) => {
            let what = plain(&format!("{} {}", other.kind.word(), other.name), 128);
            let message = format!(
                "`{}` is not held back with the digest `{}`: it was let through, or it has changed \
                 since it was shown. Nothing was approved.",
                what.trim_end(),
                plain(&other.digest, 80)
            );
            let advice = "Look at what is held back now, and approve that.";
            Complaint::new(http::StatusCode::CONFLICT, message).advice(advice)
        }
    }
}

/// Reads a catalog off the async threads, so that calls are not delayed.
async fn load(file: PathBuf) -> Result<Loaded, Faults> {
    let unread =
        Faults { file: file.clone(), faults: Vec::new(), warnings: Vec::new(), rest: None };
    tokio::task::spawn_blocking(move || load_file(&file)).await.unwrap_or(Err(unread))
}

impl Operate for Operation {
    type Line = Logged;

    fn status(&self) -> Value {
        let shared = &self.gateway.0;
        let active = shared.active_plan();
        let servers = active.servers.values().map(|server| {
            let plan = server.plan();
            let lists = server.lists();
            let count = |kind| lists.as_ref().map(|it| it.count(kind));
            let mut told = json!(server.pool.status());
            for instance in told["instances"].as_array_mut().into_iter().flatten() {
                let pid = instance["id"].as_u64().and_then(|id| server.pid(id));
                instance["pid"] = json!(pid);
            }
            told["name"] = json!(&*server.name);
            if let Some(replica) = server.placement.as_ref().and_then(|it| it.lives_at()) {
                told["replica"] = json!(&*replica);
            }
            told["tags"] = json!(plan.tags);
            told["revision"] = json!(lists.as_ref().map(|it| it.revision.as_str()));
            told["tools"] = json!(count(Kind::Tools));
            told["prompts"] = json!(count(Kind::Prompts));
            told["resources"] = json!(count(Kind::Resources));
            let held = shared.pins_of(&plan).map(|it| it.held(&server.name)).unwrap_or_default();
            told["heldBack"] = json!(held);
            if plan.per_user().is_some() {
                told["logins"] = json!(shared.accounts.logged_in(&server.name).len());
            }
            told["looks"] =
                json!({ "lastHour": server.list_changes().refreshes(now()), "most": REFRESHES });
            told["warnings"] = json!(lists.as_ref().map(|it| &it.warnings));
            told
        });
        let out = active.plan.out.iter().map(|(name, why)| {
            json!({ "name": name, "state": "out", "instances": [], "waiters": 0, "lastError": why })
        });
        let servers = servers.chain(out);
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "uptimeMs": shared.began.elapsed().as_millis() as u64,
            "config": self.file,
            "listen": *self.listen.read().unwrap_or_else(PoisonError::into_inner),
            "servers": servers.collect::<Vec<_>>(),
            "clients": shared.client_count(),
            "parked": shared.parked_calls.len(),
            "replicas": shared.settings.fleet.as_ref().map(|it| it.status()),
            "plugins": active.plugins.status(),
            "audit": active.audit.as_ref().map(|it| it.status()),
            "lastReload": *self.last.lock().unwrap_or_else(PoisonError::into_inner),
        })
    }

    fn is_ready(&self) -> bool {
        self.front
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_none_or(|it| it.is_open())
    }

    fn refused(&self, status: u16) {
        self.gateway.0.refused(status);
    }

    fn metrics(&self) -> String {
        let shared = &self.gateway.0;
        shared.sample_gauges();
        if let Some(audit) = &shared.active_plan().audit {
            shared.metrics.audit(audit.lost(), audit.is_failing());
        }
        shared.metrics.render()
    }

    fn calls(&self, limit: usize) -> Value {
        json!(self.gateway.0.recent_calls(limit))
    }

    fn servers(&self) -> Value {
        let mut servers = self.status()["servers"].take();
        for server in servers.as_array_mut().into_iter().flatten() {
            let name = server["name"].as_str().unwrap_or_default().to_owned();
            server["traffic"] = self.gateway.0.metrics.rates(&name, Instant::now());
        }
        json!({ "servers": servers, "stepSeconds": STEP })
    }

    fn traffic(&self, filter: &TrafficFilter) -> Value {
        let shared = &self.gateway.0;
        let mut told = shared.traffic.list(filter, shared.replica());
        told["recording"] = json!(shared.active_plan().recorder.as_ref().map(|it| it.status()));
        told
    }

    fn recorded_call(&self, id: &str) -> Option<String> {
        let shared = &self.gateway.0;
        shared.traffic.detail(id, shared.replica())
    }

    fn export(&self, filter: &TrafficFilter) -> Vec<u8> {
        self.gateway.0.traffic.export(filter)
    }

    fn follow_traffic(&self, filter: TrafficFilter) -> Option<TrafficUpdates> {
        let shared = &self.gateway.0;
        shared.active_plan().recorder.as_ref()?;
        let replica = shared.replica().map(str::to_owned);
        Some(TrafficUpdates::new(&shared.traffic, filter, replica))
    }

    async fn offers(&self, server: &str, revision: Option<String>) -> Result<Value, Complaint> {
        let server = self.server(server)?;
        let offers = trying::offers(&self.gateway, &server.name, revision).await;
        Ok(self.without_secrets(&offers.map_err(untried)?))
    }

    fn begin_try(&self, request: TryRequest) -> Result<mpsc::Receiver<Vec<u8>>, Complaint> {
        if let Some(server) = &request.server {
            self.server(server)?;
        }
        self.tries.begin(&self.gateway, request).map_err(untried)
    }

    fn answer_try(&self, id: &str, answer: TryAnswer) -> Result<Value, Complaint> {
        self.tries.answer(id, answer).map(|()| json!({})).map_err(untried)
    }

    fn cancel_try(&self, id: &str) -> Result<Value, Complaint> {
        self.tries.cancel(id).map(|()| json!({})).map_err(untried)
    }

    fn tokens(&self) -> Value {
        self.all_costs()
    }

    fn approvals(&self) -> Value {
        self.without_secrets(&self.all_held())
    }

    async fn approve_one(&self, which: &Approving) -> Result<Value, Complaint> {
        let Held { kind, name, seen: digest, .. } = self.held_one(which)?;
        self.approve(&which.server, &[Approval { kind, name, digest }]).await
    }

    async fn refuse_one(&self, which: &Approving) -> Result<Value, Complaint> {
        self.note_refused(which).await
    }

    async fn begin_login(&self, url: &str) -> Result<Value, Complaint> {
        is_server(url)?;
        Ok(self.logins.begin(url).await)
    }

    async fn step_login(&self, id: &str) -> Result<Value, Complaint> {
        let none =
            || Complaint::new(http::StatusCode::NOT_FOUND, "There is no such login any more.");
        self.logins.step(id).await.ok_or_else(none)
    }

    async fn recordings(&self) -> Result<Value, Complaint> {
        self.kept(|it| Ok(it.list())).await
    }

    async fn keep_recording(
        &self,
        name: String,
        filter: TrafficFilter,
    ) -> Result<Value, Complaint> {
        let gateway = self.gateway.clone();
        self.kept(move |it| it.keep(&name, &gateway.0.traffic.export(&filter))).await
    }

    async fn kept_recording(&self, id: String) -> Result<String, Complaint> {
        self.kept(move |it| it.lines(&id)).await
    }

    async fn remove_recording(&self, id: String) -> Result<Value, Complaint> {
        self.kept(move |it| it.remove(&id)).await
    }

    async fn compare_recordings(&self, a: String, b: String) -> Result<Value, Complaint> {
        self.kept(move |it| it.compare(&a, &b)).await
    }

    fn logs(&self, server: Option<&str>) -> Followed<Logged> {
        self.gateway.0.logs.follow(server)
    }

    fn is_of(line: &Logged, server: &str) -> bool {
        line.server == server
    }

    async fn reload(&self) -> Result<Value, Value> {
        self.follow().await
    }

    fn retry(&self, server: &str) -> Result<Value, Complaint> {
        let server = self.server(server)?;
        server.pool.retry();
        server.clear_fetch_failure();
        let shared = Arc::clone(&self.gateway.0);
        let known = server.lists().is_some();
        let again = Arc::clone(&server);
        if !known {
            tokio::spawn(async move { shared.refresh(&again, true).await });
        }
        Ok(json!({ "server": &*server.name, "status": server.pool.status() }))
    }

    fn held(&self, server: &str) -> Result<Value, Complaint> {
        let server = self.server(server)?;
        let pins = self.gateway.0.pins_of(&server.plan());
        let all = pins.map(|it| it.held(&server.name)).unwrap_or_default();
        let all = all.iter().map(|held| {
            let mut told = json!(held);
            told["definition"] = json!(held.definition.as_deref());
            told["before"] = json!(pins.and_then(|it| it.before(&server.name, held)));
            told
        });
        let held = json!({ "server": &*server.name, "held": all.collect::<Vec<_>>() });
        Ok(self.without_secrets(&held))
    }

    /// The only place where held-back definitions are approved.
    async fn approve(&self, server: &str, which: &[Approval]) -> Result<Value, Complaint> {
        let server = self.server(server)?;
        let shared = &self.gateway.0;
        let offered = server.lists().map(|it| Offered::all(&it)).unwrap_or_default();
        let approved = match &shared.pins {
            Some(pins) => pins.approve(&server.name, which, &offered).await.map_err(unapproved)?,
            None => Vec::new(),
        };
        if !approved.is_empty() {
            if let Some(audit) = &shared.active_plan().audit {
                let names: Vec<_> = approved.iter().map(|it| it.name.clone()).collect();
                audit.note_approved(&server.name, &names);
            }
            shared.lists_changed(&server.plan(), &Kind::ALL);
        }
        Ok(json!({ "server": &*server.name, "approved": approved }))
    }

    async fn log_out(&self, server: &str, whom: Option<&str>) -> Result<Value, Complaint> {
        let server = self.server(server)?;
        let shared = &self.gateway.0;
        let plan = server.plan();
        let gone = shared.accounts.log_out(&plan, whom).await;
        let gone = gone.map_err(|error| {
            let status = http::StatusCode::INTERNAL_SERVER_ERROR;
            Complaint::new(status, format!("The login was forgotten here, but: {error}"))
        })?;
        gone.iter().for_each(|it| shared.account_changed(it));
        let names: Vec<_> = gone.iter().map(|it| &*it.owner.name).collect();
        Ok(json!({ "server": &*server.name, "loggedOut": names }))
    }

    async fn stop(&self, server: &str) -> Result<Value, Complaint> {
        let server = self.server(server)?;
        let status = server.pool.status();
        server.pool.stop_all();
        Ok(json!({ "server": &*server.name, "stopped": status.instances.len() }))
    }
}

/// The bytes of a catalog's faults that are logged.
const LONGEST_WHY: usize = 2_048;
