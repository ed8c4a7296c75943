//! Starts an instance: its process or session, in the era that suits its callers.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};
use trunkline_auth::address::{Guard, Reach as Far};
use trunkline_auth::client::{ClientAuth, Grant, OAuth};
use trunkline_auth::credentials::Credentials;
use trunkline_proto::client::{Config, OpenError};
use trunkline_transport::auth::{HttpFetch, MemoryVault};
use trunkline_transport::child::{Child, Command};
use trunkline_transport::connection::Connection;
use trunkline_transport::conversation_handle::Request;
use trunkline_transport::http::client::HttpTarget;
use trunkline_transport::limits::Limits;
use trunkline_wire::frame::Framing;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::{Implementation, SubscriptionFilter};
use trunkline_wire::revision::{Era, Revisions};

use super::watched_login::WatchedLogin;
use super::{Guard as PlaceGuard, Instance, LAST_WORDS, Pids, Process, Way, redacted};
use crate::accounts::{Account, LISTER};
use crate::catalog::plan::{Outward, Reach, ServerPlan};
use crate::client_profile;
use crate::compared::ComparedLists;
use crate::failure::{Failure, Reason, Stage};
use crate::list_changes::announced_by;
use crate::policy::redact::Redactor;
use crate::pool::Profile;
use crate::question;
use crate::question_router::QuestionRouter;
use crate::watcher::Watcher;

/// A start in progress.
pub(super) struct Opening {
    pub(super) id: u64,
    pub(super) profile: Profile,
    pub(super) owner: Option<Arc<str>>,
    pub(super) server: Arc<str>,
    pub(super) plan: Arc<ServerPlan>,
    pub(super) limits: Limits,
    pub(super) watcher: Weak<dyn Watcher>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) pids: Pids,
    pub(super) lacks_old: Arc<AtomicBool>,
    pub(super) way: Option<Arc<Way>>,
    pub(super) place: Mutex<Option<PlaceGuard>>,
}

impl Opening {
    pub(super) async fn open(&self) -> Result<Instance, Failure> {
        let (old, new) =
            (self.plan.revisions.of_era(Era::Stateful), self.plan.revisions.of_era(Era::Stateless));
        let known = self.watcher.upgrade().and_then(|it| it.known_era(&self.server));
        if client_profile::is_old(self.profile) && !old.is_empty() {
            match self.attempt(self.plan.revisions, Era::Stateful).await {
                Err((_, Some(error))) if !new.is_empty() => {
                    self.lacks_old(!error.is_outage());
                }
                outcome => {
                    let is_new = |it: &Instance| it.opened.revision.era() == Era::Stateless;
                    self.lacks_old(outcome.as_ref().is_ok_and(is_new));
                    return outcome.map_err(|(failure, _)| failure);
                }
            }
        }
        // Tries the era of the last start first: a probe can cost seconds, or a process.
        let first = match known {
            Some(Era::Stateful) if !old.is_empty() => old,
            _ => self.plan.revisions,
        };
        match self.attempt(first, Era::Stateless).await {
            Err((_, Some(OpenError::Closed { probing: true }))) if !old.is_empty() => {
                self.attempt(old, Era::Stateless).await.map_err(|(failure, _)| failure)
            }
            // The server may have been upgraded meanwhile.
            Err((_, Some(_))) if first != self.plan.revisions && !new.is_empty() => {
                let outcome = self.attempt(self.plan.revisions, Era::Stateless).await;
                outcome.map_err(|(failure, _)| failure)
            }
            outcome => outcome.map_err(|(failure, _)| failure),
        }
    }

    /// Remembers whether the server lacks the stateful era.
    fn lacks_old(&self, it_does: bool) {
        self.lacks_old.fetch_or(it_does, Ordering::Relaxed);
    }

    async fn attempt(
        &self,
        revisions: Revisions,
        prefers: Era,
    ) -> Result<Instance, (Failure, Option<OpenError>)> {
        match &self.plan.reach {
            Reach::Stdio { command, args, env, inherit, cwd } => {
                let mut command = Command::new(command).args(args);
                for (name, value) in env {
                    command = command.env(name, value);
                }
                for name in inherit {
                    command = command.inherit(name);
                }
                if let Some(cwd) = cwd {
                    command = command.current_dir(cwd);
                }
                self.spawn(command, self.config(revisions, prefers)).await
            }
            Reach::Http { url, headers, roots, auth } => {
                self.connect(url, headers, roots, auth, self.config(revisions, prefers)).await
            }
        }
    }

    fn config(&self, revisions: Revisions, prefers: Era) -> Arc<Config> {
        let mut config = Config::new(Implementation::new("trunkline", env!("CARGO_PKG_VERSION")));
        config.revisions = revisions;
        config.prefers = prefers;
        // An instance may serve several callers, one after the other.
        config.assumes_only_call = false;
        let profile = question::offered(self.profile, self.plan.questions);
        config.capabilities = client_profile::capabilities(profile);
        config.bounds = self.limits.bounds();
        Arc::new(config)
    }

    fn router(&self) -> Arc<QuestionRouter> {
        let (server, watcher) = (Arc::clone(&self.server), Weak::clone(&self.watcher));
        QuestionRouter::new(self.id, server, self.plan.questions, watcher)
    }

    async fn spawn(
        &self,
        command: Command,
        config: Arc<Config>,
    ) -> Result<Instance, (Failure, Option<OpenError>)> {
        let (id, server, watcher) = (self.id, Arc::clone(&self.server), Weak::clone(&self.watcher));
        let command = command.on_stderr(move |line| {
            if let Some(watcher) = watcher.upgrade() {
                watcher.stderr_line(&server, id, line);
            }
        });
        let mut child = Child::spawn(command, &self.limits).await.map_err(|error| {
            let reason = match error.cause.kind() {
                std::io::ErrorKind::NotFound => Reason::NotFound,
                std::io::ErrorKind::PermissionDenied => Reason::NotExecutable,
                _ => Reason::SpawnFailed,
            };
            (self.failure(reason, Stage::Spawn, error.to_string()), None)
        })?;
        let (stdin, stdout) = (child.take_stdin(), child.take_stdout());
        let stream = (
            stdout.expect("nobody else has taken the child's stdout"),
            stdin.expect("nobody else has taken the child's stdin"),
        );
        let router = self.router();
        let opened = Connection::open(
            config,
            Arc::clone(&router),
            stream,
            Framing::Newline,
            self.limits.clone(),
        );
        match opened.await {
            Ok(connection) => {
                let process = Process::keep(child, self.id, Arc::clone(&self.pids));
                Ok(self.instance(connection, router, Some(process)))
            }
            Err(error) => {
                if matches!(error, OpenError::Closed { .. }) {
                    // The process is about to exit, and its exit status explains most.
                    let _ = timeout(LAST_WORDS, child.exited()).await;
                }
                let message = format!("The handshake with `{}` failed. {error}", self.server);
                let mut failure = self.failure(Reason::HandshakeFailed, Stage::Handshake, message);
                failure.exit = child.exit().map(|it| it.to_string());
                failure.stderr = redacted(&self.redactor, child.stderr());
                let _ = child.stop().await;
                Err((failure, Some(error)))
            }
        }
    }

    async fn connect(
        &self,
        url: &str,
        headers: &[(String, String)],
        roots: &[std::path::PathBuf],
        auth: &Outward,
        config: Arc<Config>,
    ) -> Result<Instance, (Failure, Option<OpenError>)> {
        let mut target = HttpTarget::new(url);
        for (name, value) in headers {
            target = target.header(name, value);
        }
        for path in roots {
            let pem = tokio::fs::read(path).await.map_err(|error| {
                let message =
                    format!("The certificates in `{}` cannot be read: {error}.", path.display());
                (self.failure(Reason::BadCertificates, Stage::Spawn, message), None)
            })?;
            target = target.root_certificate(pem);
        }
        let mut credentials = match &self.way {
            Some(way) => {
                for root in way.sessions.forward().roots() {
                    target = target.root_certificate(root.clone());
                }
                Some(way.sessions.credentials_for(&way.peer))
            }
            None => self.credentials(url, auth).await,
        };
        let mut account = None;
        if credentials.is_none() && matches!(auth, Outward::PerUser(_)) {
            account = self.account();
            credentials = account.clone().map(|it| it as Arc<dyn Credentials>);
        }
        if credentials.is_none() && matches!(auth, Outward::PerUser(_)) {
            return Err((self.login_required(), None));
        }
        if let Some(credentials) = credentials {
            let watched = WatchedLogin::new(credentials, Weak::clone(&self.watcher));
            target = target.credentials(Arc::new(watched));
        }
        let shown = target.shown();
        let router = self.router();
        let opened =
            Connection::open_http(config, Arc::clone(&router), target, self.limits.clone());
        match opened.await {
            Ok(connection) => Ok(self.instance(connection, router, None)),
            Err(OpenError::Credentials(_)) if account.is_some_and(|it| it.is_refused()) => {
                Err((self.login_required(), None))
            }
            Err(error) => {
                let message = format!("The handshake with `{shown}` failed. {error}");
                Err((self.failure(Reason::HandshakeFailed, Stage::Handshake, message), Some(error)))
            }
        }
    }

    async fn credentials(&self, url: &str, auth: &Outward) -> Option<Arc<dyn Credentials>> {
        match auth {
            Outward::Headers => None,
            // The operator's login, if any, is used to list what the server offers.
            Outward::PerUser(_) if self.owner.as_deref() != Some(LISTER) => None,
            Outward::Login | Outward::PerUser(_) => {
                let found = self.watcher.upgrade()?.login(url)?;
                found.await
            }
            Outward::ClientCredentials { client_id, client_secret, issuer, scopes } => {
                let fetch = HttpFetch::new(Guard::for_server(url).allow(Far::Public));
                let client = ClientAuth::secret(client_id, client_secret);
                let login = OAuth::new(url)
                    .client_name("trunkline")
                    .fetch(Arc::new(fetch))
                    .vault(Arc::new(MemoryVault::new()))
                    .grant(Grant::ClientCredentials(client))
                    .for_issuer(issuer);
                Some(Arc::new(login.scopes(scopes)))
            }
        }
    }

    /// The login of the principal that the instance is opened for.
    fn account(&self) -> Option<Arc<Account>> {
        let owner = self.owner.as_deref()?;
        let owner = Some(owner).filter(|it| *it != LISTER);
        self.watcher.upgrade()?.account(&self.plan, owner)
    }

    fn login_required(&self) -> Failure {
        let message = format!("Nobody is logged in to `{}` yet.", self.server);
        Failure::new(Reason::LoginRequired, Stage::Handshake, message).of(&self.server)
    }

    fn instance(
        &self,
        connection: Connection,
        router: Arc<QuestionRouter>,
        process: Option<Process>,
    ) -> Instance {
        self.listen(&connection);
        let can_ask = connection.opened().revision.era() == Era::Stateful
            && client_profile::has_roots(question::offered(self.profile, self.plan.questions));
        Instance {
            id: self.id,
            server: Arc::clone(&self.server),
            owner: self.owner.clone(),
            opened: Arc::clone(connection.opened()),
            peer: self.way.as_ref().map(|it| Arc::from(it.peer.id.as_str())),
            compared: ComparedLists::default(),
            began: Instant::now(),
            told: Mutex::default(),
            connection,
            router,
            process,
            has_roots: can_ask.then(OnceCell::new),
            level: AtomicU8::new(u8::MAX),
            redactor: Arc::clone(&self.redactor),
            _place: self.place.lock().unwrap_or_else(PoisonError::into_inner).take(),
        }
    }

    /// Subscribes to list changes. A server of the stateless era notifies only subscribers (`subscriptions/listen`).
    fn listen(&self, connection: &Connection) {
        let opened = connection.opened();
        let filter = announced_by(&opened.capabilities);
        // The other replica stores what changes, and tells all.
        let is_told_anyway = opened.revision.era() == Era::Stateful || self.way.is_some();
        if is_told_anyway || filter == SubscriptionFilter::new() {
            return;
        }
        let mut params = Object::default();
        params.set("notifications", trunkline_wire::json::Json::of(&filter));
        let mut request = Request::new(Method::SubscriptionsListen, params);
        let (tell, mut heard) = tokio::sync::mpsc::channel(64);
        request.heard = Some(tell);
        let call = connection.call(request);
        let (id, server, watcher) = (self.id, Arc::clone(&self.server), Weak::clone(&self.watcher));
        tokio::spawn(async move {
            let mut call = std::pin::pin!(call);
            loop {
                tokio::select! {
                    // The end of the connection ends the subscription too.
                    _ = &mut call => return,
                    Some(heard) = heard.recv() => {
                        if let Some(watcher) = watcher.upgrade() {
                            watcher.changed(&server, id, heard);
                        }
                    }
                }
            }
        });
    }

    fn failure(&self, reason: Reason, stage: Stage, message: String) -> Failure {
        let message = self.redactor.redact(&message);
        let mut failure = Failure::new(reason, stage, message).of(&self.server);
        failure.instance = Some(self.id);
        failure.advice(format!("`trunkline doctor {}` shows where it fails.", self.server))
    }
}
