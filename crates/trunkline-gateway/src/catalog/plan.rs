//! The plan: a catalog that was read, expanded and checked.
//!
//! Everything here is resolved; nothing is looked up later. Two plans of one server with equal
//! [`ServerPlan::fingerprint`]s can share its processes and its cached lists.

mod debug;
mod inward;
mod login_client;
mod recording;
mod replicas;
mod timing;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trunkline_auth::digest::sha256;
use trunkline_store::RedisAddress;
use trunkline_wire::revision::Revisions;

pub use inward::{ClaimsPlan, GroupPlan, Inward, TokenPlan};
pub use login_client::LoginClient;
pub use recording::{FilledIn, Payloads, RecordingPlan};
pub use replicas::{ReplicasPlan, WhenAway};
pub use timing::{Probe, Retry, Timeouts};

/// The whole plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The enabled servers, by name.
    pub servers: BTreeMap<String, Arc<ServerPlan>>,
    /// Servers that are left out because their entries have faults, and which.
    pub out: BTreeMap<String, String>,
    /// The gateway itself.
    pub gateway: GatewayPlan,
    /// What files filled in.
    pub filled_in: FilledIn,
}

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPlan {
    /// Its name: `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// Lower case, sorted. A server without tags is visible to all.
    pub tags: Vec<String>,
    /// How its instances are shared.
    pub strategy: Strategy,
    /// The idle time after which an instance stops.
    pub idle: Duration,
    /// Calls in flight in one instance.
    pub max_concurrent: usize,
    /// The bound on instances.
    pub max_instances: usize,
    /// The bound on instances over all replicas; `None` if each replica has its own bound alone.
    pub max_total: Option<usize>,
    /// The bound on instances of one principal, where they are not shared.
    pub max_each: usize,
    /// Whether principals share instances.
    pub sharing: Sharing,
    /// What it may ask its callers.
    pub questions: Questions,
    /// Instances kept ready before any call.
    pub min_ready: usize,
    /// The TTL of a session's binding after its last call; `None` for ever.
    pub session_ttl: Option<Duration>,
    /// The affinity key of a stateful server.
    pub affinity: Affinity,
    /// When it runs.
    pub activation: Activation,
    /// How long calls may continue when an instance has to stop.
    pub drain: Duration,
    /// The deadlines.
    pub timeouts: Timeouts,
    /// Health probes.
    pub probe: Probe,
    /// Backoff after failed starts.
    pub retry: Retry,
    /// The revisions to speak with it.
    pub revisions: Revisions,
    /// The allow list of tools, by their own names; `None` for all.
    pub expose: Option<Vec<String>>,
    /// Renamed tools: own name → shown name (before any prefix).
    pub rename: BTreeMap<String, String>,
    /// Idempotent tools, beside those that are annotated so.
    pub idempotent: Vec<String>,
    /// What is held back until an operator approves.
    pub pin: Pinning,
}

impl ServerPlan {
    /// A program, with the defaults for everything else.
    pub fn stdio(name: impl Into<String>, command: impl Into<String>) -> Self {
        let command = command.into();
        let (args, env, inherit) = Default::default();
        Self::new(name.into(), Reach::Stdio { command, args, env, inherit, cwd: None })
    }

    /// A URL, with the defaults for everything else.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let (headers, roots, auth) = Default::default();
        Self::new(name.into(), Reach::Http { url: url.into(), headers, roots, auth })
    }

    /// Passes these variables of the gateway to the program, unless the plan sets them.
    pub(crate) fn inherits(&mut self, names: &[String]) {
        if let Reach::Stdio { env, inherit, .. } = &mut self.reach {
            let is_said = |name: &String| env.iter().any(|(it, _)| it == name);
            let more = names.iter().filter(|it| !is_said(it) && !inherit.contains(it));
            let more: Vec<_> = more.cloned().collect();
            inherit.extend(more);
        }
    }

    /// Identifies the process: how it is reached and what is spoken with it. 64 hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        // Every text is prefixed with its length, so that distinct plans never encode alike.
        let mut bytes = Vec::new();
        let mut put = |text: &str| {
            bytes.extend((text.len() as u64).to_be_bytes());
            bytes.extend(text.as_bytes());
        };
        match &self.reach {
            Reach::Stdio { command, args, env, inherit, cwd } => {
                put("stdio");
                put(command);
                put(&cwd.as_ref().map_or_else(String::new, |it| it.display().to_string()));
                put_list(&mut put, args);
                put_list(&mut put, inherit);
                put_list(&mut put, env.iter().flat_map(|(name, value)| [name, value]));
            }
            Reach::Http { url, headers, roots, auth } => {
                put("http");
                put(url);
                put_list(&mut put, headers.iter().flat_map(|(name, value)| [name, value]));
                put_list(&mut put, roots.iter().map(|it| it.display().to_string()));
                match auth {
                    Outward::Headers => put("headers"),
                    Outward::Login => put("login"),
                    Outward::PerUser(client) => {
                        put("perUser");
                        put_list(&mut put, client.texts());
                    }
                    Outward::ClientCredentials { client_id, client_secret, issuer, scopes } => {
                        put("clientCredentials");
                        put(client_id);
                        put(client_secret);
                        put(issuer);
                        put_list(&mut put, scopes);
                    }
                }
            }
        }
        put_list(&mut put, self.revisions.iter().map(|it| it.as_str()));
        let digest = sha256(&bytes);
        digest.strip_prefix("sha256:").unwrap_or(&digest).to_owned()
    }

    /// Whether each instance may belong to one principal.
    pub(crate) fn may_be_isolated(&self) -> bool {
        match self.sharing {
            _ if self.per_user().is_some() => true,
            _ if self.strategy == Strategy::Singleton => false,
            Sharing::Auto => matches!(self.reach, Reach::Stdio { .. }),
            sharing => sharing == Sharing::Isolated,
        }
    }

    fn new(name: String, reach: Reach) -> Self {
        let is_program = matches!(reach, Reach::Stdio { .. });
        let each = Strategy::default().max_instances();
        Self {
            name,
            reach,
            tags: Vec::new(),
            strategy: Strategy::default(),
            idle: Duration::from_secs(300),
            max_concurrent: if is_program { 16 } else { 64 },
            max_instances: if is_program { ALL_INSTANCES } else { each },
            max_total: None,
            max_each: each,
            sharing: Sharing::default(),
            questions: Questions::default(),
            min_ready: 0,
            session_ttl: Some(Duration::from_secs(300)),
            affinity: Affinity::default(),
            activation: Activation::default(),
            drain: Duration::from_secs(30),
            timeouts: Timeouts::default(),
            probe: Probe::default(),
            retry: Retry::default(),
            revisions: Revisions::ALL,
            expose: None,
            rename: BTreeMap::new(),
            idempotent: Vec::new(),
            pin: Pinning::default(),
        }
    }
}

fn put_list<T: AsRef<str>>(put: &mut impl FnMut(&str), texts: impl IntoIterator<Item = T>) {
    let texts: Vec<T> = texts.into_iter().collect();
    put(&texts.len().to_string());
    texts.iter().for_each(|it| put(it.as_ref()));
}

/// How far a server's definitions are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// Everything is trusted.
    Off,
    /// Definitions are trusted on first use, and pinned.
    #[default]
    FirstUse,
    /// Only the first definitions of a new server are trusted. Later additions are held back.
    Strict,
}

impl Pinning {
    /// Whether anything can be held back.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Reach {
    /// A program.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, beside the six variables of `trunkline_transport::child::INHERITED`.
        env: Vec<(String, String)>,
        /// Variables of the gateway that it inherits.
        inherit: Vec<String>,
        /// Its working directory.
        cwd: Option<PathBuf>,
    },
    /// A URL.
    Http {
        /// The URL.
        url: String,
        /// Headers of every request. The values may be secrets.
        headers: Vec<(String, String)>,
        /// PEM files with trusted certificates.
        roots: Vec<PathBuf>,
        /// How the gateway authenticates.
        auth: Outward,
    },
}

/// How the gateway authenticates to a server.
#[derive(Clone, Default, PartialEq)]
pub enum Outward {
    /// With the headers alone.
    #[default]
    Headers,
    /// With a login stored by `trunkline login`.
    Login,
    /// With each principal's own login.
    PerUser(LoginClient),
    /// As a machine (`client_credentials`, RFC 6749 §4.4).
    ClientCredentials {
        /// The client id.
        client_id: String,
        /// The client secret.
        client_secret: String,
        /// The only issuer that may get the secret.
        issuer: String,
        /// The scopes to request.
        scopes: Vec<String>,
    },
}

/// The default bound on instances of all principals together, where instances are not shared.
pub(crate) const ALL_INSTANCES: usize = 32;

/// How instances are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Any instance serves any caller, and stops when idle.
    #[default]
    Stateless,
    /// A session keeps its instance.
    Stateful,
    /// Any instance serves any caller, and none stops when idle.
    Persistent,
    /// There is one instance, and it stays.
    Singleton,
}

impl Strategy {
    /// The default bound on instances.
    pub fn max_instances(self) -> usize {
        match self {
            Self::Stateless | Self::Persistent => 4,
            Self::Stateful => 32,
            Self::Singleton => 1,
        }
    }
}

/// Whether one instance serves several principals. Anonymous callers are one principal.
///
/// A stdio server of the stateful era does not say which call a question or log message belongs to. In an
/// instance with one caller that is clear; in any other, nobody gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Not shared if a server may send messages without an address: programs that speak an old revision, and
    /// servers that were seen to ask that way.
    #[default]
    Auto,
    /// Never shared: the first principal that uses an instance owns it.
    Isolated,
    /// Always shared.
    Shared,
}

/// What a server may ask its callers; by default everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Questions {
    /// To fill in a form or visit a page.
    pub elicitation: bool,
    /// To sample their model.
    pub sampling: bool,
    /// Which folders they work in.
    pub roots: bool,
}

impl Default for Questions {
    fn default() -> Self {
        Self { elicitation: true, sampling: true, roots: true }
    }
}

/// The affinity key of a stateful server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// The client's session; from 2026-07-28 on, the principal.
    #[default]
    Session,
    /// The principal.
    Principal,
    /// A member of `_meta` that the client sends.
    Meta(String),
}

/// When a server runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// From the first call until it is idle, or until the last client disconnects.
    #[default]
    OnDemand,
    /// Always: at least one instance (or `min_ready`).
    AlwaysOn,
}

/// Where and how calls are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPlan {
    /// The file.
    pub path: PathBuf,
    /// Whether calls are refused while it cannot be written.
    pub refuses: bool,
    /// The interval of `fsync`.
    pub sync: Duration,
}

impl AuditPlan {
    /// An audit file with the defaults.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), refuses: false, sync: Duration::from_secs(1) }
    }
}

/// The gateway itself.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayPlan {
    /// The address to listen at.
    pub listen: String,
    /// How shown names are made.
    pub naming: Naming,
    /// Whether it may listen beyond loopback without TLS.
    pub plaintext: bool,
    /// Whether `/mcp` without a selector is refused.
    pub selector_required: bool,
    /// Whether hosts with `serve --stdio` share one gateway in the background.
    pub share: bool,
    /// Allowed Host headers, beside loopback.
    pub hosts: Vec<String>,
    /// Allowed origins of web pages.
    pub origins: Vec<String>,
    /// Who is admitted.
    pub auth: Inward,
    /// Certificate and key, PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The admin API.
    pub admin: AdminPlan,
    /// Who may do what: the first matching rule decides; without a match the call is allowed.
    pub rules: Vec<Rule>,
    /// The rate limits.
    pub rates: Vec<Rate>,
    /// Where calls are recorded, as JSON lines.
    pub audit: Option<AuditPlan>,
    /// What is recorded of calls for operators; `None` for nothing.
    pub recording: Option<RecordingPlan>,
    /// Programs that inspect calls.
    pub plugins: Vec<PluginPlan>,
    /// Which clients get automatic mode: two tools that find and call the others.
    pub automatic: Option<Automatic>,
    /// How many servers are listed concurrently at the start.
    pub bootstrap: usize,
    /// The refresh interval of running servers' lists; zero for never.
    pub refresh: Duration,
    /// The store that all replicas of this gateway share; `None` if it is alone.
    pub store: Option<RedisAddress>,
    /// PEM files with the authorities to trust at the store, instead of the system's.
    pub store_roots: Vec<PathBuf>,
    /// How replicas find and trust each other; there if there is a store.
    pub replicas: Option<ReplicasPlan>,
}

impl Default for GatewayPlan {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:7373".to_owned(),
            naming: Naming::default(),
            plaintext: false,
            selector_required: false,
            share: false,
            hosts: Vec::new(),
            origins: Vec::new(),
            auth: Inward::default(),
            tls: None,
            admin: AdminPlan::default(),
            rules: Vec::new(),
            rates: Vec::new(),
            audit: None,
            recording: Some(RecordingPlan::default()),
            plugins: Vec::new(),
            automatic: None,
            bootstrap: 3,
            refresh: Duration::from_secs(60),
            store: None,
            store_roots: Vec::new(),
            replicas: None,
        }
    }
}

/// How shown names are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// `server.tool`.
    #[default]
    Prefix,
    /// `server_tool`.
    Underscore,
    /// `tool`, or `tool_server` where several servers have it.
    Flat,
}

/// The admin API.
#[derive(Clone, Default, PartialEq)]
pub struct AdminPlan {
    /// `unix:PATH` or `HOST:PORT`; `None` for the socket in the state folder.
    pub listen: Option<String>,
    /// The token that callers must send. Over TCP one is always required, and generated if missing.
    pub token: Option<String>,
    /// Certificate, key and client CA, as PEM files.
    pub mtls: Option<(PathBuf, PathBuf, PathBuf)>,
}

/// A rule: who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The principals, as globs; empty for all.
    pub principals: Vec<String>,
    /// On servers with one of these tags; empty for all.
    pub tags: Vec<String>,
    /// `server.tool` globs; empty for all.
    pub tools: Vec<String>,
    /// The effect of a match.
    pub effect: Effect,
}

/// The effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call is allowed.
    Allow,
    /// The target does not exist for the caller.
    Deny,
    /// The user has to approve first.
    Ask,
}

/// A rate limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The principals, as globs; empty for all. Each has its own token bucket.
    pub principals: Vec<String>,
    /// `server.tool` globs; empty for all.
    pub tools: Vec<String>,
    /// Calls per minute.
    pub per_minute: u32,
    /// The size of the bucket.
    pub burst: u32,
}

/// A program that inspects calls.
#[derive(Clone, PartialEq)]
pub struct PluginPlan {
    /// Its name.
    pub name: String,
    /// What it does, which decides when it runs.
    pub category: Category,
    /// Whether calls fail without it.
    pub required: bool,
    /// What to run.
    pub command: Vec<String>,
    /// Its variables.
    pub env: Vec<(String, String)>,
    /// The time-out of one call.
    pub timeout: Duration,
    /// Its configuration, sent at the start.
    pub config: serde_json::Value,
}

/// What a plugin does. Plugins run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Category {
    Observability,
    Authentication,
    Authorization,
    RateLimiting,
    Validation,
    Content,
    Audit,
}

/// Automatic mode: two tools in place of many.
#[derive(Clone, Debug, PartialEq)]
pub struct Automatic {
    /// Clients that select one of these tags get it; empty for all clients.
    pub tags: Vec<String>,
    /// The bound on tools in one search result.
    pub limit: usize,
}
