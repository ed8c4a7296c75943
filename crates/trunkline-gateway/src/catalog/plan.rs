//! What runs: a catalog that was read, expanded and found good.
//!
//! Everything here is decided; nothing is looked up later. Two plans of one server that are equal
//! in [`ServerPlan::fingerprint`] can share its processes and what is known of its lists.

mod debug;
mod inward;
mod login_client;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trunkline_auth::digest::sha256;
use trunkline_wire::revision::Revisions;

pub use inward::{ClaimsPlan, GroupPlan, Inward, TokenPlan};
pub use login_client::LoginClient;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The servers, by name; disabled ones are not here.
    pub servers: BTreeMap<String, Arc<ServerPlan>>,
    /// Those that are left out since something is wrong with their entries, and what.
    pub out: BTreeMap<String, String>,
    /// The gateway itself.
    pub gateway: GatewayPlan,
}

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPlan {
    /// Its name: `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// Lower case, sorted. Without tags it is visible to all.
    pub tags: Vec<String>,
    /// How its instances are shared.
    pub strategy: Strategy,
    /// How long an instance may be idle before it is stopped.
    pub idle: Duration,
    /// Calls at a time in one instance.
    pub max_concurrent: usize,
    /// Instances at a time.
    pub max_instances: usize,
    /// Instances at a time that one principal has, where they are not shared.
    pub max_each: usize,
    /// Whether principals share instances.
    pub sharing: Sharing,
    /// What it may ask its callers.
    pub questions: Questions,
    /// Instances that are ready whether anybody calls or not.
    pub min_ready: usize,
    /// How long a session keeps its instance after its last call; `None` for ever.
    pub session_ttl: Option<Duration>,
    /// By what a session is known to a stateful server.
    pub affinity: Affinity,
    /// When it runs.
    pub activation: Activation,
    /// How long calls may go on when an instance should stop.
    pub drain: Duration,
    /// What takes too long.
    pub timeouts: Timeouts,
    /// How its health is looked after.
    pub probe: Probe,
    /// What happens when it does not start.
    pub retry: Retry,
    /// Which revisions are spoken with it.
    pub revisions: Revisions,
    /// The only tools that are shown and can be called, by their own names; `None` for all.
    pub expose: Option<Vec<String>>,
    /// Tools under other names: its own name → the name it is shown by (before any prefix).
    pub rename: BTreeMap<String, String>,
    /// Tools that may be called twice, beside those that say so themselves.
    pub idempotent: Vec<String>,
    /// What is held back of what it offers, until somebody approves.
    pub pin: Pinning,
}

impl ServerPlan {
    /// A program, with everything else as it is where a catalog says nothing.
    pub fn stdio(name: impl Into<String>, command: impl Into<String>) -> Self {
        let command = command.into();
        let (args, env, inherit) = Default::default();
        Self::new(name.into(), Reach::Stdio { command, args, env, inherit, cwd: None })
    }

    /// A URL, with everything else as it is where a catalog says nothing.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let (headers, roots, auth) = Default::default();
        Self::new(name.into(), Reach::Http { url: url.into(), headers, roots, auth })
    }

    /// A program gets these variables of the gateway too, where nothing else is said of them.
    pub(crate) fn inherits(&mut self, names: &[String]) {
        if let Reach::Stdio { env, inherit, .. } = &mut self.reach {
            let is_said = |name: &String| env.iter().any(|(it, _)| it == name);
            let more = names.iter().filter(|it| !is_said(it) && !inherit.contains(it));
            let more: Vec<_> = more.cloned().collect();
            inherit.extend(more);
        }
    }

    /// What decides which process it is: how it is reached and what is spoken with it. 64
    /// hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        // Every text goes in with its length, so that no two plans are written the same.
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

    /// Whether instances may belong to one principal each.
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

/// What is trusted of what a server offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// Everything.
    Off,
    /// What is seen for the first time, and then as it was.
    #[default]
    FirstUse,
    /// The same, of a server that is itself new. What it gets later is held back.
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
        /// What to run.
        command: String,
        /// With which arguments.
        args: Vec<String>,
        /// Variables it gets, beside the six of `trunkline_transport::child::INHERITED`.
        env: Vec<(String, String)>,
        /// Variables of ours that it gets as they are.
        inherit: Vec<String>,
        /// Where it runs.
        cwd: Option<PathBuf>,
    },
    /// A URL.
    Http {
        /// Where.
        url: String,
        /// Headers of every request. The values may be secrets.
        headers: Vec<(String, String)>,
        /// Files with certificates to believe, PEM.
        roots: Vec<PathBuf>,
        /// How we say who we are.
        auth: Outward,
    },
}

/// How we say who we are to a server.
#[derive(Clone, Default, PartialEq)]
pub enum Outward {
    /// By the headers alone.
    #[default]
    Headers,
    /// By a login that `trunkline login` has stored.
    Login,
    /// By a login of each principal's own.
    PerUser(LoginClient),
    /// As a machine.
    ClientCredentials {
        /// Who.
        client_id: String,
        /// Its secret.
        client_secret: String,
        /// The only issuer that the secret is shown to.
        issuer: String,
        /// For which scopes.
        scopes: Vec<String>,
    },
}

/// How many instances all principals have together, where they do not share them and a catalog does not
/// say.
pub(crate) const ALL_INSTANCES: usize = 32;

/// How instances are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Any instance serves anybody, and goes when idle.
    #[default]
    Stateless,
    /// A session keeps its instance.
    Stateful,
    /// Any instance serves anybody, and none goes when idle.
    Persistent,
    /// There is one, and it stays.
    Singleton,
}

impl Strategy {
    /// How many instances there may be where a catalog does not say.
    pub fn max_instances(self) -> usize {
        match self {
            Self::Stateless | Self::Persistent => 4,
            Self::Stateful => 32,
            Self::Singleton => 1,
        }
    }
}

/// Whether one instance serves several principals. Callers without a name are one principal.
///
/// A server of the old era over stdio does not say whose call a question or a log message is about.
/// In an instance that has served one caller only that is clear; in any other nobody is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Not where a server may say something without saying whom it is for: programs that speak an
    /// old revision, and whatever was seen to ask that way.
    #[default]
    Auto,
    /// Never: whoever uses an instance first is the only one.
    Isolated,
    /// Always.
    GatewayState,
}

/// What a server may ask its callers: everything, where a catalog does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Questions {
    /// To fill in a form or visit a page.
    pub elicitation: bool,
    /// To have their model write something.
    pub sampling: bool,
    /// Which folders they work in.
    pub roots: bool,
}

impl Default for Questions {
    fn default() -> Self {
        Self { elicitation: true, sampling: true, roots: true }
    }
}

/// By what a session is known.
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
    /// From the first call until it is idle, or the last client is gone.
    #[default]
    OnDemand,
    /// Always: at least one instance (or `min_ready`).
    AlwaysOn,
}

/// What takes too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Spawning and shaking hands.
    pub start: Duration,
    /// Waiting for an instance.
    pub acquire: Duration,
    /// A call without a sign of life.
    pub call: Duration,
    /// A call altogether.
    pub hard: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let [start, acquire, call, hard] = [30, 30, 60, 600].map(Duration::from_secs);
        Self { start, acquire, call, hard }
    }
}

/// How health is looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// How often; zero for never.
    pub every: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl Default for Probe {
    fn default() -> Self {
        Self { every: Duration::from_secs(30), timeout: Duration::from_secs(5) }
    }
}

/// What happens when a server does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The first pause; each is twice the one before.
    pub base: Duration,
    /// The longest pause.
    pub max: Duration,
    /// After so many failures in a row it is suspended until somebody says `retry`.
    pub tries: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), max: Duration::from_secs(30), tries: 5 }
    }
}

/// Where and how calls are noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPlan {
    /// The file.
    pub path: PathBuf,
    /// Whether calls are refused while it cannot be written.
    pub refuses: bool,
    /// How often the disk is told to keep it.
    pub sync: Duration,
}

impl AuditPlan {
    /// A file, noted in as usual.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), refuses: false, sync: Duration::from_secs(1) }
    }
}

/// The gateway itself.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayPlan {
    /// Where it listens.
    pub listen: String,
    /// How names are put together.
    pub naming: Naming,
    /// Whether other machines may reach it without a certificate of its own.
    pub plaintext: bool,
    /// Whether `/mcp` without a selector is refused.
    pub selector_required: bool,
    /// Whether hosts with `serve --stdio` share one gateway in the background.
    pub share: bool,
    /// Hosts by which it may be called, beside loopback.
    pub hosts: Vec<String>,
    /// Origins of pages that may call it.
    pub origins: Vec<String>,
    /// Who is let in.
    pub auth: Inward,
    /// Certificate and key, PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The admin API.
    pub admin: AdminPlan,
    /// Who may do what; the first that fits decides, nothing that fits means allow.
    pub rules: Vec<Rule>,
    /// How often.
    pub rates: Vec<Rate>,
    /// Where calls are noted, JSON lines.
    pub audit: Option<AuditPlan>,
    /// Programs that look at calls.
    pub plugins: Vec<PluginPlan>,
    /// Which clients get two tools to find and call the others with.
    pub automatic: Option<Automatic>,
    /// Servers whose lists are fetched at a time at the start.
    pub bootstrap: usize,
    /// How often the lists of running servers are fetched anew; zero for never.
    pub refresh: Duration,
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
            plugins: Vec::new(),
            automatic: None,
            bootstrap: 3,
            refresh: Duration::from_secs(60),
        }
    }
}

/// How names are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// `server.tool`.
    #[default]
    Prefix,
    /// `server_tool`.
    Underscore,
    /// `tool`, or `tool_server` where several have it.
    Flat,
}

/// The admin API.
#[derive(Clone, Default, PartialEq)]
pub struct AdminPlan {
    /// `unix:PATH` or `HOST:PORT`; `None` for the socket in the state folder.
    pub listen: Option<String>,
    /// What callers must know. Over TCP there is always one: made up and kept if none is given.
    pub token: Option<String>,
    /// Certificate, key and the authority whose clients are let in, PEM files.
    pub mtls: Option<(PathBuf, PathBuf, PathBuf)>,
}

/// Who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// For whom: names with `*`; empty for all.
    pub principals: Vec<String>,
    /// On servers with one of these tags; empty for all.
    pub tags: Vec<String>,
    /// `server.tool` with `*`; empty for all.
    pub tools: Vec<String>,
    /// What then.
    pub effect: Effect,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Go on.
    Allow,
    /// It is not there.
    Deny,
    /// The user is asked first.
    Ask,
}

/// How often.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// For which principals, with `*`; empty for all. Each has a bucket of its own.
    pub principals: Vec<String>,
    /// For which tools, `server.tool` with `*`; empty for all.
    pub tools: Vec<String>,
    /// Calls a minute.
    pub per_minute: u32,
    /// Calls at once.
    pub burst: u32,
}

/// A program that looks at calls.
#[derive(Clone, PartialEq)]
pub struct PluginPlan {
    /// Its name.
    pub name: String,
    /// What it does, and so when it is asked.
    pub category: Category,
    /// Whether calls fail without it.
    pub required: bool,
    /// What to run.
    pub command: Vec<String>,
    /// Its variables.
    pub env: Vec<(String, String)>,
    /// How long it may take over one call.
    pub timeout: Duration,
    /// What it is told at its start.
    pub config: serde_json::Value,
}

/// What a plugin does. The order is the order in which they are asked.
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

/// Two tools in place of many.
#[derive(Clone, Debug, PartialEq)]
pub struct Automatic {
    /// Clients who select one of these tags get them; empty for all clients.
    pub tags: Vec<String>,
    /// How many tools one search finds at most.
    pub limit: usize,
}
