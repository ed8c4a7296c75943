//! A principal and a server → the account that the principal has there: its login, the link to a page of the
//! gateway where it logs in, and who waits for that.
//!
//! `desk` decides which links and visits are good, `pages` says it to people, `flow` runs a login between two
//! requests of a browser, `http` answers them, `vault` keeps the logins apart.

mod desk;
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
use trunkline_auth::credentials::{Credentials, Denied, Headers, People, Refused, Target};
use trunkline_auth::fetch::Pending;
use trunkline_proto::Change;
use trunkline_transport::auth::HttpFetch;
use trunkline_transport::conversation_handle::ConversationHandle;

use crate::catalog::plan::{LoginClient, Reach, ServerPlan};
use crate::failure::{Failure, Reason, Stage};
use desk::{Desk, Link};
use flow::Flow;
pub(crate) use http::PATHS;
use vault::Scoped;

/// The accounts of all principals.
pub(crate) struct Accounts {
    vault: Arc<dyn Vault>,
    /// The URL at which browsers reach the gateway; `None` where none does.
    origin: RwLock<Option<Arc<str>>>,
    desk: Mutex<Desk<Flow>>,
    /// Who is logged in, by server and by the id of the principal.
    people: Mutex<BTreeMap<String, BTreeMap<Arc<str>, Person>>>,
    /// Sessions that are told when a page was visited: the elicitation and whose it is.
    visits: Mutex<VecDeque<(String, Owner, ConversationHandle)>>,
    /// Somebody has logged in.
    news: Notify,
}

/// Whose login it is, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// What the principal is told apart by.
    pub(crate) id: Arc<str>,
    /// The name that people and the audit know it by.
    pub(crate) name: String,
    /// The issuer that vouches for it; `None` for whoever has a token of the catalog.
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
    /// Made when it is first used.
    login: Option<Arc<Account>>,
}

/// A login in use. It asks nobody: whoever has to log in is sent to a page by the call that needs it.
pub(crate) struct Account {
    oauth: Arc<OAuth>,
    /// Whether the server wants a person to log in again.
    is_refused: AtomicBool,
}

impl Account {
    /// Whether the server wants a person to log in again.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }
}

impl Credentials for Account {
    fn headers<'a>(&'a self, to: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        self.oauth.headers(to)
    }

    fn refused<'a>(
        &'a self,
        to: Target<'a>,
        refusal: Refused<'a>,
        _: Option<&'a People<'a>>,
    ) -> Pending<'a, Result<(), Denied>> {
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
    pub(crate) fn new(vault: Arc<dyn Vault>) -> Self {
        Self {
            vault,
            origin: RwLock::default(),
            desk: Mutex::new(Desk::new()),
            people: Mutex::default(),
            visits: Mutex::default(),
            news: Notify::new(),
        }
    }

    /// Reads who is logged in. Whoever is known already stays as they are.
    pub(crate) async fn load(&self) -> Result<(), VaultError> {
        for name in self.vault.names().await? {
            let Some((id, server)) = vault::is_person(&name) else { continue };
            let Some(person) = self.vault.get(&name).await? else { continue };
            let person = Person { name: person, login: None };
            self.people().entry(server).or_default().entry(Arc::from(id)).or_insert(person);
        }
        Ok(())
    }

    /// Browsers reach the gateway at the origin of this URL.
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

    /// The names of those who are logged in to a server.
    pub(crate) fn logged_in(&self, server: &str) -> Vec<String> {
        let people = self.people();
        people.get(server).into_iter().flatten().map(|(_, it)| it.name.clone()).collect()
    }

    /// The login of a principal, to open a connection with.
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

    /// The login by which a server is asked what it offers, if the operator has none: the first that is good.
    pub(crate) fn lister(&self, plan: &ServerPlan) -> Option<Arc<Account>> {
        let ids: Vec<_> = self.people().get(&plan.name)?.keys().cloned().collect();
        let good = |id: &Arc<str>| self.credentials(plan, id).filter(|it| !it.is_refused());
        ids.iter().find_map(good)
    }

    /// Waits for a principal to log in, for a while. Says whether it did.
    pub(crate) async fn wait(&self, server: &str, id: &str) -> bool {
        let waiting = async {
            loop {
                let news = self.news.notified();
                if self.is_logged_in(server, id) {
                    return;
                }
                news.await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.is_ok()
    }

    /// A link at which a principal logs in, and what the elicitation for it is called. It is good once, for
    /// ten minutes, and for that principal alone.
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
        Ok((format!("{origin}{}{sealed}", http::LOGIN), elicitation))
    }

    /// A session is to hear when a principal has logged in.
    pub(crate) fn will_complete(
        &self,
        elicitation: String,
        owner: Owner,
        voice: &ConversationHandle,
    ) {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        if visits.len() >= VISITS {
            visits.pop_front();
        }
        visits.push_back((elicitation, owner, voice.clone()));
    }

    /// Gives the login of a principal back and forgets it. By the name that the audit knows it by; `None` for
    /// everybody's.
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
                // Whoever has it open is let in nowhere any more.
                login.is_refused.store(true, Ordering::Relaxed);
                login.oauth.logout().await?;
            }
            let owner = Owner { id, name, issuer: None, server: plan.name.clone() };
            changed.push(Changed { owner, is_logged_in: false });
        }
        Ok(changed)
    }

    /// Keeps a login that has just come about.
    async fn keep(&self, owner: &Owner, oauth: Arc<OAuth>) -> Result<(), VaultError> {
        self.vault.put(&vault::person(&owner.id, &owner.server), &owner.name).await?;
        let login = Some(Arc::new(Account { oauth, is_refused: AtomicBool::new(false) }));
        let person = Person { name: owner.name.clone(), login };
        self.people()
            .entry(owner.server.clone())
            .or_default()
            .insert(Arc::clone(&owner.id), person);
        self.news.notify_waiters();
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        visits.retain(|(elicitation, whose, voice)| {
            let is_theirs = (&whose.id, &whose.server) == (&owner.id, &owner.server);
            if is_theirs {
                // One whose queue is full has more to read than this.
                let _ = voice.try_changed(Change::ElicitationComplete(elicitation.clone()));
            }
            !is_theirs
        });
        Ok(())
    }

    /// The way in to a server for one principal. Tokens are its own, a registration is everybody's.
    fn oauth(&self, plan: &ServerPlan, id: &str) -> Option<OAuth> {
        let (Reach::Http { url, .. }, Some(client)) = (&plan.reach, plan.per_user()) else {
            return None;
        };
        let fetch = HttpFetch::new(Guard::for_server(url).allow(Far::Public));
        let vault = Scoped::new(Arc::clone(&self.vault), id, &plan.name);
        let oauth = OAuth::new(url).fetch(Arc::new(fetch)).vault(Arc::new(vault));
        Some(self.as_client(oauth, client))
    }

    /// The same login by the client that the catalog names, or as whatever the authorization server takes.
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

/// Who a server is asked by for what it offers. No principal is called so.
pub(crate) const LISTER: &str = "\0lists";
/// How long a call that comes back waits for its login.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many sessions are told of logins.
const VISITS: usize = 1024;
