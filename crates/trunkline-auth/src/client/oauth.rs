//! The set-up of a client's login, and its operations.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::SystemTime;

use super::browser::Browser;
use super::error::AuthError;
use super::grant::Grant;
use super::login::{Login, Step};
use super::store::{Held, Store};
use super::vault::Vault;
use crate::fetch::{Fetch, Pending};
use crate::scope::Scopes;
use crate::url::Origin;

settings! {
    /// A client's login to one server. It discovers the authorization server, registers, lets a person
    /// log in or uses the client's own credentials, and stores and refreshes the login.
    ///
    /// It needs a [`fetch`](Self::fetch) and a [`vault`](Self::vault), and a
    /// [`browser`](Self::browser) if people are to log in.
    pub struct OAuth {
        server: String = String::new(),
        parts: Parts = Parts::default(),
        client_name: String = "trunkline".to_owned(),
        client_id: Option<String> = None,
        client_secret: Option<String> = None,
        issuer: Option<String> = None,
        trusts_first_issuer: bool = false,
        allows_insecure: bool = false,
        client_metadata_url: Option<String> = None,
        redirect_uris: Vec<String> = Vec::new(),
        registers_anew: bool = false,
        scopes: Scopes = Scopes::default(),
        offline_access: bool = true,
        /// `None`: if the server asks for it.
        dpop: Option<bool> = None,
        grant: Grant = Grant::default(),
        /// Whether a registration is kept when its login ends.
        keeps_registration: bool = false,
        progress: Option<Arc<dyn Fn(Step) + Send + Sync>> = None,
        /// Shared with work that outlives its caller.
        state: Arc<Mutex<State>> = Arc::default(),
    }
}

#[derive(Clone, Default)]
pub(crate) struct Parts {
    fetch: Option<Arc<dyn Fetch>>,
    vault: Option<Arc<dyn Vault>>,
    browser: Option<Arc<dyn Browser>>,
}

/// What this process knows besides the vault.
#[derive(Default)]
pub(crate) struct State {
    /// The login that requests are sent with.
    pub(super) held: Option<Arc<Held>>,
    /// Whether the vault has been read.
    pub(super) is_loaded: bool,
    /// The newest DPoP nonce of each origin.
    pub(super) nonces: HashMap<String, String>,
    /// How many calls wait for a login.
    pub(super) waiting: usize,
    /// The task to wake when no call waits any more.
    pub(super) watch: Option<Waker>,
    /// How much work outlives its caller.
    pub(super) working: usize,
    /// The tasks to wake when no work is left.
    pub(super) settling: Vec<Waker>,
}

impl OAuth {
    /// The login to the server at this URL.
    pub fn new(server_url: impl Into<String>) -> Self {
        Self { server: server_url.into(), ..Self::unset() }
    }

    setters! {
        /// Sets the HTTP client.
        fetch(fetch: Arc<dyn Fetch>) { parts.fetch = Some(fetch) }

        /// Sets the storage of logins.
        vault(vault: Arc<dyn Vault>) { parts.vault = Some(vault) }

        /// Sets how pages are shown to people.
        browser(browser: Arc<dyn Browser>) { parts.browser = Some(browser) }

        /// The client's name, which people see on the consent page.
        client_name(name: impl Into<String>) { client_name = name.into() }

        /// The identifier of a pre-registered client.
        client_id(id: impl Into<String>) { client_id = Some(id.into()) }

        /// The secret of that client, if it has one.
        client_secret(secret: impl Into<String>) { client_secret = Some(secret.into()) }

        /// The only issuer that may get the client's credentials. Without it secrets and assertions are
        /// never sent, because the server names its issuer. A client without secrets is bound to the
        /// first issuer it is used with, and the vault remembers it.
        for_issuer(issuer: impl Into<String>) { issuer = Some(issuer.into()) }

        /// Sends the client's credentials to the first issuer that the server names, and to no other
        /// afterwards, as far as the vault remembers: for servers that are trusted with them.
        trust_first_issuer() { trusts_first_issuer = true }

        /// Sends tokens over `http` too, where anyone on the network path can read and use them. By
        /// default they are sent only over `https`, to this machine, or to a private network that the
        /// URL names.
        allow_insecure() { allows_insecure = true }

        /// The URL of the client's metadata document. It is the client's identifier at authorization
        /// servers that support such documents.
        client_metadata_url(url: impl Into<String>) { client_metadata_url = Some(url.into()) }
    }

    /// The redirect URIs that are pre-registered or listed in the metadata document. The browser
    /// must use one of them; without any it chooses itself.
    #[must_use]
    pub fn redirect_uris<S: Into<String>>(mut self, uris: impl IntoIterator<Item = S>) -> Self {
        self.redirect_uris = uris.into_iter().map(Into::into).collect();
        self
    }

    /// Registers for each login, even if a registration is stored: for an authorization server that
    /// has lost it. It does not affect a pre-registered client or one with a metadata document.
    #[must_use]
    pub fn register_anew(mut self) -> Self {
        self.registers_anew = true;
        self
    }

    /// Scopes to request in addition to those the server asks for.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().collect();
        self
    }

    setters! {
        /// Whether to request `offline_access` if the authorization server lists it; on by default.
        offline_access(is_wanted: bool) { offline_access = is_wanted }

        /// Whether tokens must be bound to a key (DPoP), or never are. By default they are if the
        /// server asks for it.
        dpop(is_wanted: bool) { dpop = Some(is_wanted) }

        /// The grant. By default a person logs in.
        grant(grant: Grant) { grant = grant }

        /// Keeps the registration (RFC 7591) when the login ends, for a client that several people use.
        /// By default [`logout`](Self::logout) deletes it with the tokens.
        keep_registration() { keeps_registration = true }

        /// Reports each step of a login.
        progress(watch: impl Fn(Step) + Send + Sync + 'static) { progress = Some(Arc::new(watch)) }
    }

    /// The server's URL.
    pub fn server_url(&self) -> &str {
        &self.server
    }

    /// Whether a login needs a person.
    pub fn needs_person(&self) -> bool {
        self.grant.needs_person()
    }

    /// Logs in, even if there is a login.
    pub async fn login(&self) -> Result<Login, AuthError> {
        self.login_after(&[]).await
    }

    /// Logs in after the server refused a request with these values of `WWW-Authenticate`.
    pub async fn login_after(&self, challenges: &[String]) -> Result<Login, AuthError> {
        let held = self.authorize_request(challenges).await?;
        Ok(held.kept.shown())
    }

    /// Revokes the tokens, if the authorization server supports that, and deletes the login. Does
    /// nothing without a login.
    pub async fn logout(&self) -> Result<(), AuthError> {
        self.leave().await
    }

    /// Waits until every refresh in flight has been stored, even if its call was cancelled. Await
    /// it before a program ends: a refresh token may be single-use. It waits for the work that is
    /// in flight when it is polled, so it can be created in advance.
    pub fn settled(&self) -> Pending<'static, ()> {
        super::detached::settled(Arc::clone(&self.state))
    }

    /// The stored login of this server.
    pub async fn status(&self) -> Result<Option<Login>, AuthError> {
        Ok(self.store()?.load().await?.map(|held| held.kept.shown()))
    }

    /// Every login in a vault, by server.
    pub async fn kept(vault: &dyn Vault) -> Result<Vec<Login>, AuthError> {
        super::store::all(vault).await
    }

    /// A handle on the same login, for work that outlives its caller.
    pub(super) fn twin(&self) -> Self {
        Self {
            server: self.server.clone(),
            parts: self.parts.clone(),
            client_name: self.client_name.clone(),
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.clone(),
            issuer: self.issuer.clone(),
            trusts_first_issuer: self.trusts_first_issuer,
            allows_insecure: self.allows_insecure,
            client_metadata_url: self.client_metadata_url.clone(),
            redirect_uris: self.redirect_uris.clone(),
            registers_anew: self.registers_anew,
            scopes: self.scopes.clone(),
            offline_access: self.offline_access,
            dpop: self.dpop,
            grant: self.grant.clone(),
            keeps_registration: self.keeps_registration,
            progress: self.progress.clone(),
            state: Arc::clone(&self.state),
        }
    }

    pub(super) fn fetcher(&self) -> Result<&Arc<dyn Fetch>, AuthError> {
        self.parts.fetch.as_ref().ok_or_else(|| lacks("fetch"))
    }

    pub(super) fn now(&self) -> Result<SystemTime, AuthError> {
        Ok(self.fetcher()?.now())
    }

    pub(super) fn browsing(&self) -> Result<&Arc<dyn Browser>, AuthError> {
        self.parts.browser.as_ref().ok_or_else(|| lacks("browser"))
    }

    pub(super) fn store(&self) -> Result<Store<'_>, AuthError> {
        let vault = self.parts.vault.as_ref().ok_or_else(|| lacks("vault"))?;
        Ok(Store::new(&**vault, &self.server, self.grant.label(self.client_id.as_deref())))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn step(&self, step: Step) {
        if let Some(watch) = &self.progress {
            watch(step);
        }
    }

    /// The newest nonce of this origin.
    pub(super) fn nonce_of(&self, url: &str) -> Option<String> {
        self.state().nonces.get(&place(url)?).cloned()
    }

    pub(super) fn keep_nonce(&self, url: &str, nonce: &str) {
        let is_sound =
            (1..=MAX_NONCE).contains(&nonce.len()) && nonce.bytes().all(|it| it.is_ascii_graphic());
        if let (true, Some(place)) = (is_sound, place(url)) {
            let mut state = self.state();
            // Few origins are ever asked; a server that invents more gains nothing.
            if state.nonces.len() >= MAX_ORIGINS && !state.nonces.contains_key(&place) {
                state.nonces.clear();
            }
            state.nonces.insert(place, nonce.to_owned());
        }
    }
}

impl fmt::Debug for OAuth {
    /// Omits credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("server", &crate::url::shown(&self.server))
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

fn place(url: &str) -> Option<String> {
    let origin = Origin::of(url)?;
    Some(format!("{}://{}:{}", origin.scheme, origin.host, origin.port))
}

fn lacks(part: &str) -> AuthError {
    AuthError::Setup(format!("The login lacks a `{part}`: give it one before it is used."))
}

const MAX_NONCE: usize = 512;
const MAX_ORIGINS: usize = 16;
