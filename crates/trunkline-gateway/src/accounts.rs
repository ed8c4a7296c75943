//! `auth.perUser`: each principal's own login at each server, the link to the page where it logs in, and the
//! calls that wait for that.
//!
//! `desk` decides which links and visits are valid, `pages` renders HTML, `flow` runs a login across several
//! requests of a browser, `http` answers them, `vault` keeps the logins apart.

mod desk;
mod fleet_vault;
mod flow;
mod http;
mod pages;
mod vault;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use trunkline_auth::address::{Guard, Reach as Far};
use trunkline_auth::client::vault::{Vault, VaultError};
use trunkline_auth::client::{AuthError, OAuth};
use trunkline_auth::credentials::{Asked, Credentials, Denied, Headers, Refused, Retry, Target};
use trunkline_auth::fetch::Pending;
use trunkline_proto::Change;
use trunkline_transport::auth::HttpFetch;
use trunkline_transport::conversation_handle::ConversationHandle;

use crate::catalog::plan::{LoginClient, Reach, ServerPlan};
use crate::failure::{Failure, Reason, Stage};
use desk::{Desk, Link};
pub(crate) use fleet_vault::FleetVault;
use flow::Flow;
pub(crate) use http::{PATHS, read_form, used_up};
use vault::Scoped;

/// The accounts of all principals.
pub(crate) struct Accounts {
    vault: Arc<dyn Vault>,
    /// This replica, if there are several: links and visits are its own, and name it.
    me: Option<String>,
    /// The URL at which browsers reach the gateway; `None` if they cannot.
    origin: RwLock<Option<Arc<str>>>,
    desk: Mutex<Desk<Flow>>,
    /// Who is logged in, by server and principal id.
    people: Mutex<BTreeMap<String, BTreeMap<Arc<str>, Person>>>,
    /// Sessions that are notified when a page was visited: the elicitation id and its owner.
    visits: Mutex<VecDeque<(String, Owner, ConversationHandle)>>,
    /// Notified when a principal has logged in.
    changed: Notify,
}

/// Whose login it is, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The principal's id.
    pub(crate) id: Arc<str>,
    /// The principal's name for people and the audit.
    pub(crate) name: String,
    /// The issuer that vouches for it; `None` for a token of the catalog.
    pub(crate) issuer: Option<Arc<str>>,
    pub(crate) server: String,
}

/// What happened to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) owner: Owner,
    pub(crate) is_logged_in: bool,
}

#[derive(Default)]
struct Person {
    name: String,
    /// Created on first use.
    login: Option<Arc<Account>>,
}

/// A login in use. It never prompts: a call that needs a login sends its caller to a page.
pub(crate) struct Account {
    oauth: Arc<OAuth>,
    /// Whether the server refused the login, so that the user has to log in again.
    is_refused: AtomicBool,
}

impl Account {
    /// Whether the user has to log in again.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }
}

impl Credentials for Account {
    fn headers<'a>(&'a self, to: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        self.oauth.headers(to)
    }

    fn refused<'a>(&'a self, to: Target<'a>, refusal: Refused<'a>, _: Asked<'a>) -> Retry<'a> {
        Box::pin(async move {
            let outcome = self.oauth.refused(to, refusal, None).await;
            if outcome.as_ref().is_err_and(|it| it.needs_login) {
                self.is_refused.store(true, Ordering::Relaxed);
            }
            outcome
        })
    }

    fn nonce(&self, to: Target<'_>, nonce: &str) {
        self.oauth.nonce(to, nonce);
    }
}

impl Accounts {
    pub(crate) fn new(vault: Arc<dyn Vault>, me: Option<String>) -> Self {
        Self {
            vault,
            me,
            origin: RwLock::default(),
            desk: Mutex::new(Desk::new()),
            people: Mutex::default(),
            visits: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Loads who is logged in. Known accounts stay as they are.
    pub(crate) async fn load(&self) -> Result<(), VaultError> {
        for name in self.vault.names().await? {
            let Some((id, server)) = vault::is_person(&name) else { continue };
            let Some(person) = self.vault.get(&name).await? else { continue };
            let person = Person { name: person, login: None };
            self.people().entry(server).or_default().entry(Arc::from(id)).or_insert(person);
        }
        Ok(())
    }

    /// Follows a change that another replica stored.
    pub(crate) async fn follow(&self, server: &str, id: &str) -> Result<(), VaultError> {
        let found = self.vault.get(&vault::person(id, server)).await?;
        {
            let mut people = self.people();
            let people = people.entry(server.to_owned()).or_default();
            let before = match found {
                // The new login is read on first use.
                Some(name) => people.insert(Arc::from(id), Person { name, login: None }),
                None => people.remove(id),
            };
            if let Some(login) = before.and_then(|it| it.login) {
                login.is_refused.store(true, Ordering::Relaxed);
            }
        }
        self.tell_waiting(id, server);
        Ok(())
    }

    /// Follows all changes that other replicas may have stored.
    pub(crate) async fn follow_all(&self) -> Result<(), VaultError> {
        let names = self.vault.names().await?;
        let known: Vec<_> = names.iter().filter_map(|it| vault::is_person(it)).collect();
        let gone: Vec<(String, Arc<str>)> = {
            let people = self.people();
            let all = people.iter().flat_map(|(server, of)| of.keys().map(move |id| (server, id)));
            let gone = all.filter(|(server, id)| {
                !known.iter().any(|(known, at)| *known == ***id && at == *server)
            });
            gone.map(|(server, id)| (server.clone(), Arc::clone(id))).collect()
        };
        for (server, id) in gone {
            self.follow(&server, &id).await?;
        }
        self.load().await?;
        self.changed.notify_waiters();
        Ok(())
    }

    /// Sets the origin at which browsers reach the gateway.
    pub(crate) fn reached_at(&self, url: &str) {
        *self.origin.write().unwrap_or_else(PoisonError::into_inner) =
            origin_of(url).map(Arc::from);
    }

    fn origin(&self) -> Option<Arc<str>> {
        self.origin.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a principal can use a server without logging in again.
    pub(crate) fn is_logged_in(&self, server: &str, id: &str) -> bool {
        let people = self.people();
        let person = people.get(server).and_then(|it| it.get(id));
        person.is_some_and(|it| it.login.as_ref().is_none_or(|it| !it.is_refused()))
    }

    /// The names of the principals that are logged in to a server.
    pub(crate) fn logged_in(&self, server: &str) -> Vec<String> {
        let people = self.people();
        people.get(server).into_iter().flatten().map(|(_, it)| it.name.clone()).collect()
    }

    /// A principal's login, to open a connection with.
    pub(crate) fn credentials(&self, plan: &ServerPlan, id: &str) -> Option<Arc<Account>> {
        let mut people = self.people();
        let (key, person) = people.get_mut(&plan.name)?.get_key_value(id)?;
        if let Some(login) = &person.login {
            return Some(Arc::clone(login));
        }
        let key = Arc::clone(key);
        let oauth = Arc::new(self.oauth(plan, &key)?);
        let login = Arc::new(Account { oauth, is_refused: AtomicBool::new(false) });
        let person = people.get_mut(&plan.name)?.get_mut(&key)?;
        person.login = Some(Arc::clone(&login));
        Some(login)
    }

    /// The login to list with if the operator has none: the first valid one.
    pub(crate) fn lister(&self, plan: &ServerPlan) -> Option<Arc<Account>> {
        let ids: Vec<_> = self.people().get(&plan.name)?.keys().cloned().collect();
        let good = |id: &Arc<str>| self.credentials(plan, id).filter(|it| !it.is_refused());
        ids.iter().find_map(good)
    }

    /// Waits a limited time for a principal to log in. Returns whether it did.
    pub(crate) async fn wait(&self, server: &str, id: &str) -> bool {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if self.is_logged_in(server, id) {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.is_ok()
    }

    /// A link at which a principal logs in, and its elicitation id. It works once, for ten minutes, and for
    /// that principal alone.
    pub(crate) fn link(&self, owner: &Owner) -> Result<(String, String), Failure> {
        let fail =
            |why: String| Failure::new(Reason::LoginRequired, Stage::Policy, why).of(&owner.server);
        let server = &owner.server;
        let Some(origin) = self.origin() else {
            return Err(fail(format!(
                "`{server}` wants a login of your own, and no browser reaches this gateway."
            ))
            .advice("Serve it over HTTP, with `gateway.listen`."));
        };
        let issued = self.desk().issue(owner, SystemTime::now());
        let Link { sealed, elicitation } = issued.map_err(|_| {
            fail(format!("`{server}` wants a login of your own, and too many are open already."))
                .advice("Finish one of them, or try again in ten minutes.")
        })?;
        Ok((format!("{origin}{}{}", http::LOGIN, self.ours(sealed)), elicitation))
    }

    /// A name that says which replica it is of.
    fn ours(&self, name: String) -> String {
        match &self.me {
            Some(me) => format!("{me}.{name}"),
            None => name,
        }
    }

    /// Remembers to notify a session when a principal has logged in.
    pub(crate) fn will_complete(
        &self,
        elicitation: String,
        owner: Owner,
        handle: &ConversationHandle,
    ) {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        if visits.len() >= VISITS {
            visits.pop_front();
        }
        visits.push_back((elicitation, owner, handle.clone()));
    }

    /// Revokes and forgets the login of a principal, by its name in the audit; `None` for all principals.
    pub(crate) async fn log_out(
        &self,
        plan: &ServerPlan,
        name: Option<&str>,
    ) -> Result<Vec<Changed>, AuthError> {
        let found: Vec<_> = {
            let people = self.people();
            let all = people.get(&plan.name).into_iter().flatten();
            let all = all.filter(|(_, it)| name.is_none_or(|name| it.name == name));
            all.map(|(id, it)| (Arc::clone(id), it.name.clone())).collect()
        };
        let mut changed = Vec::new();
        for (id, name) in found {
            let login = self.credentials(plan, &id);
            if let Some(people) = self.people().get_mut(&plan.name) {
                people.remove(&id);
            }
            self.vault.remove(&vault::person(&id, &plan.name)).await?;
            if let Some(login) = login {
                // Connections that still use it are refused from now on.
                login.is_refused.store(true, Ordering::Relaxed);
                login.oauth.logout().await?;
            }
            let owner = Owner { id, name, issuer: None, server: plan.name.clone() };
            changed.push(Changed { owner, is_logged_in: false });
        }
        Ok(changed)
    }

    /// Stores a new login.
    async fn keep(&self, owner: &Owner, oauth: Arc<OAuth>) -> Result<(), VaultError> {
        self.vault.put(&vault::person(&owner.id, &owner.server), &owner.name).await?;
        let login = Some(Arc::new(Account { oauth, is_refused: AtomicBool::new(false) }));
        let person = Person { name: owner.name.clone(), login };
        self.people()
            .entry(owner.server.clone())
            .or_default()
            .insert(Arc::clone(&owner.id), person);
        self.tell_waiting(&owner.id, &owner.server);
        Ok(())
    }

    /// Wakes calls and sessions that wait for a principal's login.
    fn tell_waiting(&self, id: &str, server: &str) {
        self.changed.notify_waiters();
        if !self.is_logged_in(server, id) {
            return;
        }
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        visits.retain(|(elicitation, whose, handle)| {
            let is_theirs = (&*whose.id, &*whose.server) == (id, server);
            if is_theirs {
                // A full queue drops it: that client has more urgent messages to read.
                let _ = handle.try_changed(Change::ElicitationComplete(elicitation.clone()));
            }
            !is_theirs
        });
    }

    /// The OAuth client for one principal at a server. Tokens are the principal's own; the registration is
    /// shared.
    fn oauth(&self, plan: &ServerPlan, id: &str) -> Option<OAuth> {
        let (Reach::Http { url, .. }, Some(client)) = (&plan.reach, plan.per_user()) else {
            return None;
        };
        let fetch = HttpFetch::new(Guard::for_server(url).allow(Far::Public));
        let vault = Scoped::new(Arc::clone(&self.vault), id, &plan.name);
        let oauth = OAuth::new(url).fetch(Arc::new(fetch)).vault(Arc::new(vault));
        Some(self.as_client(oauth, client))
    }

    /// Uses the client that the catalog names, or else whatever the authorization server accepts.
    fn as_client(&self, oauth: OAuth, client: &LoginClient) -> OAuth {
        let mut oauth = oauth.client_name("trunkline gateway").keep_registration();
        if let Some(id) = &client.id {
            oauth = oauth.client_id(id);
        }
        if let Some(secret) = &client.secret {
            oauth = oauth.client_secret(secret);
        }
        if let Some(issuer) = &client.issuer {
            oauth = oauth.for_issuer(issuer);
        }
        let Some(origin) = self.origin() else { return oauth };
        if client.id.is_none() && origin.starts_with("https://") {
            oauth = oauth.client_metadata_url(format!("{origin}{}", http::DOCUMENT));
        }
        oauth.redirect_uris([format!("{origin}{}", http::CALLBACK)]).scopes(&client.scopes)
    }

    fn desk(&self) -> MutexGuard<'_, Desk<Flow>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn people(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<Arc<str>, Person>>> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Scheme, host and port of a URL.
fn origin_of(url: &str) -> Option<&str> {
    let start = url.find("://")? + 3;
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |it| start + it);
    Some(&url[..end])
}

/// The owner with which the gateway lists. No principal has this id.
pub(crate) const LISTER: &str = "\0lists";
/// How long a retried call waits for its login.
const PATIENCE: Duration = Duration::from_secs(20);
/// The bound on sessions that wait to be notified of logins.
const VISITS: usize = 1024;
