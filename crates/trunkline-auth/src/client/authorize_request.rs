//! Authorizes the transport's requests: their headers, and what to do when one is refused.

use std::sync::Arc;

use super::Kept;
use super::authorize::{Attempt, OFFLINE, check_pkce};
use super::decide::{self, Choice, Next, Sent, Situation, Why};
use super::discovery::{Demand, Dpop, Place, lists};
use super::error::AuthError;
use super::grant::Grant;
use super::login::Step;
use super::machine::Order;
use super::oauth::OAuth;
use super::refresh::is_final;
use super::register::{Client, Kind};
use super::store::{Held, Store, TokenOrigin, written};
use super::token::{TokenAsk, Tokens};
use crate::credentials::{Asked, Credentials, Denied, Headers, People, Refused, Retry, Target};
use crate::dpop;
use crate::fetch::Pending;
use crate::jose::SigningKey;
use crate::scope::Scopes;
use crate::url::{Origin, shown};

impl Credentials for OAuth {
    fn headers<'a>(&'a self, to: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        Box::pin(async move { self.headers_for(to).await.map_err(denied) })
    }

    fn refused<'a>(&'a self, to: Target<'a>, refusal: Refused<'a>, people: Asked<'a>) -> Retry<'a> {
        Box::pin(async move {
            if !self.is_home(to.url) {
                return Err(Denied::new(format!(
                    "`{}` is not the server of this login.",
                    shown(to.url)
                )));
            }
            self.answer(refusal, people).await.map_err(denied)
        })
    }

    fn nonce(&self, to: Target<'_>, nonce: &str) {
        if self.is_home(to.url) {
            self.keep_nonce(to.url, nonce);
        }
    }
}

impl OAuth {
    /// Logs in on request.
    pub(super) async fn authorize_request(
        &self,
        challenges: &[String],
    ) -> Result<Arc<Held>, AuthError> {
        let demand = Demand::read(challenges);
        let _waits = self.waits();
        self.outliving(|it| async move {
            let store = it.store()?;
            let _turn = store.lock_login().await?;
            it.log_in(&store, &demand, None, false).await
        })
        .await
    }

    /// Revokes the tokens and deletes them.
    pub(super) async fn leave(&self) -> Result<(), AuthError> {
        let store = self.store()?;
        if !self.shows_secret() {
            store.forget_issuer().await?;
        }
        let Some(pointer) = store.pointer().await? else {
            self.let_go();
            return store.forget(None).await;
        };
        // A refresh in progress ends first, so that the new tokens are revoked.
        let _turn = store.lock_token(&pointer.issuer, &pointer.resource).await?;
        self.let_go();
        let Some(kept) = store.token(&pointer.issuer, &pointer.resource).await? else {
            return store.forget(Some(&pointer)).await;
        };
        if let Some(endpoint) = kept.revocation_endpoint.as_ref().filter(|_| self.is_ours(&kept)) {
            let client = self.current(&kept.client);
            let refresh = kept.refresh.as_deref().map(|it| (it, "refresh_token"));
            for (token, hint) in refresh.into_iter().chain([(&*kept.access, "access_token")]) {
                let fields = vec![("token", token), ("token_type_hint", hint)];
                let (issuer, client) = (&*kept.issuer, &client);
                // The login is deleted whether the revocation succeeds or not.
                let _ = self
                    .token_answer(&TokenAsk { endpoint, issuer, client, fields, key: None })
                    .await;
            }
        }
        if kept.client.kind == Kind::Registered && !self.keeps_registration {
            store.forget_client(&kept.issuer).await?;
        }
        store.forget(Some(&pointer)).await
    }

    async fn headers_for(&self, to: Target<'_>) -> Result<Headers, AuthError> {
        // A token is sent only to the server that it is for.
        if !self.is_home(to.url) || !self.is_safe() {
            return Ok(Vec::new());
        }
        let Some(held) = self.usable().await? else { return Ok(Vec::new()) };
        let access = &held.kept.access;
        let Some(key) = held.key.as_ref().filter(|_| held.kept.is_bound) else {
            return Ok(vec![("authorization", format!("Bearer {access}"))]);
        };
        let nonce = self.nonce_of(to.url);
        let now = self.now()?;
        let proof = dpop::prove(key, to.method, to.url, Some(access), nonce.as_deref(), now);
        Ok(vec![("authorization", format!("DPoP {access}")), ("dpop", proof)])
    }

    /// The login to send, refreshed if it is due.
    async fn usable(&self) -> Result<Option<Arc<Held>>, AuthError> {
        let Some(held) = self.held().await? else { return Ok(None) };
        let now = self.now()?;
        if !held.kept.is_due(now) {
            return Ok(Some(held));
        }
        let is_alive = held.kept.is_alive(now);
        match self.renew(&held).await {
            Ok(held) => Ok(Some(held)),
            Err(_) if is_alive => Ok(Some(held)),
            // The server's challenge will say what it requires instead.
            Err(AuthError::NeedsLogin(_) | AuthError::Rejected { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The login that this process uses; initially the vault's.
    async fn held(&self) -> Result<Option<Arc<Held>>, AuthError> {
        {
            let state = self.state();
            if state.is_loaded {
                return Ok(state.held.clone());
            }
        }
        let found = self.store()?.load().await?.filter(|it| self.is_ours(&it.kept));
        let mut state = self.state();
        if !state.is_loaded {
            state.is_loaded = true;
            state.held = found.map(Arc::new);
        }
        Ok(state.held.clone())
    }

    /// Reacts to a refusal. `Ok` if the request is worth a retry.
    async fn answer(
        &self,
        refusal: Refused<'_>,
        people: Option<&People<'_>>,
    ) -> Result<(), AuthError> {
        if !self.is_safe() {
            return Err(self.unsafe_server());
        }
        let demand = Demand::read(refusal.challenges);
        let sent = token_in(refusal.sent);
        if self.is_newer(sent).await? {
            return Ok(());
        }
        let held = self.held().await?.filter(|it| sent == Some(&*it.kept.access));
        let situation = Situation {
            status: refusal.status,
            times: refusal.times,
            error: demand.error.clone(),
            needed: demand.scopes.clone().unwrap_or_default(),
            sent: held.as_ref().map(|it| what_was_sent(it)),
        };
        match (decide::next(&situation), held) {
            (Next::Again, _) => Ok(()),
            (Next::GiveUp(why), _) => Err(self.gives_up(why, &situation, &demand)),
            (Next::Renew, Some(held)) => {
                // The server may have moved to another authorization server, which does not know
                // this login.
                let place = match self.discover(&demand).await {
                    Ok(place) => Some(place),
                    Err(AuthError::Unreachable(_)) => None,
                    Err(error) => return Err(error),
                };
                if place.as_ref().is_none_or(|it| is_of(it, &held.kept)) {
                    match self.renew(&held).await {
                        Ok(_) => return Ok(()),
                        Err(AuthError::NeedsLogin(_)) => {}
                        Err(error) if is_final(&error) => {}
                        Err(error) => return Err(error),
                    }
                }
                self.log_in_for(&demand, place, sent, people).await
            }
            (Next::Renew | Next::LogIn, _) => self.log_in_for(&demand, None, sent, people).await,
        }
    }

    /// Whether another caller has obtained a new login since the request was sent with this one.
    async fn is_newer(&self, sent: Option<&str>) -> Result<bool, AuthError> {
        let now = self.now()?;
        let is_other =
            |it: &Kept| sent != Some(&*it.access) && it.is_alive(now) && self.is_ours(it);
        if self.state().held.as_ref().is_some_and(|it| is_other(&it.kept)) {
            return Ok(true);
        }
        let Some(stored) = self.store()?.load().await?.filter(|it| is_other(&it.kept)) else {
            return Ok(false);
        };
        self.hold(stored);
        Ok(true)
    }

    /// Logs in on behalf of a request.
    async fn log_in_for(
        &self,
        demand: &Demand,
        place: Option<Place>,
        sent: Option<&str>,
        people: Option<&People<'_>>,
    ) -> Result<(), AuthError> {
        let needs_person = self.grant.needs_person();
        if needs_person && people.is_none() {
            return Err(self.needs_login());
        }
        let _waiting = people.filter(|_| needs_person).map(Waiting::new);
        let _waits = self.waits();
        let (demand, sent) = (demand.clone(), sent.map(str::to_owned));
        self.outliving(|it| async move {
            let store = it.store()?;
            let _turn = store.lock_login().await?;
            // Another caller may have logged in while we waited for the lock.
            if it.is_newer(sent.as_deref()).await? {
                return Ok(());
            }
            it.log_in(&store, &demand, place, true).await.map(|_| ())
        })
        .await
    }

    /// Logs in. The caller holds the lock. `adds`: adds to the scopes requested before.
    async fn log_in(
        &self,
        store: &Store<'_>,
        demand: &Demand,
        place: Option<Place>,
        adds: bool,
    ) -> Result<Arc<Held>, AuthError> {
        if self.grant.needs_person() && self.is_abandoned() {
            return Err(self.abandoned());
        }
        let place = match place {
            Some(place) => place,
            None => self.discover(demand).await?,
        };
        self.bind(store, &place).await?;
        let before = if adds { store.token(&place.issuer, &place.resource).await? } else { None };
        let before = before.map(|it| Scopes::parse(&it.requested)).unwrap_or_default();
        let lists_offline = place.server.scopes_supported.iter().any(|it| it == OFFLINE);
        let scopes = decide::scopes(Choice {
            challenged: demand.scopes.as_ref(),
            wished: &self.scopes,
            supported: &place.scopes,
            before: &before,
            offline: self.offline_access && lists_offline && self.grant.needs_person(),
        });
        let key = self.binds(&place)?.then(SigningKey::generate);
        let order = Order { place: &place, scopes: &scopes, key: key.as_ref() };
        if !self.grant.needs_person() {
            self.step(Step::Exchanging(shown(&place.issuer)));
        }
        let (client, tokens) = match &self.grant {
            Grant::AuthorizationCode => self.by_person(&order, store).await?,
            Grant::ClientCredentials(auth) => self.by_credentials(&order, auth).await?,
            Grant::Enterprise(enterprise) => self.by_enterprise(&order, enterprise).await?,
            Grant::Assertion { client, assertion } => {
                self.by_assertion(&order, client, assertion).await?
            }
        };
        let kept = self.kept_of(&order, client, tokens);
        store.save(&kept).await?;
        self.step(Step::Done(shown(&place.issuer)));
        Ok(self.hold(Held::new(kept, TokenOrigin::LoggedIn)))
    }

    /// Logs a person in. If the authorization server has lost our registration, or registered us
    /// for fewer scopes, we register again and try once more.
    async fn by_person(
        &self,
        order: &Order<'_>,
        store: &Store<'_>,
    ) -> Result<(Client, Tokens), AuthError> {
        // Known before anything is registered there.
        check_pkce(order.place)?;
        let mut is_second = false;
        loop {
            let known = store.client(&order.place.issuer).await?;
            let (client, visit) = self.client(order.place, order.scopes, store).await?;
            let was_known = known.is_some_and(|it| it.id == client.id);
            let mark = was_known.then_some(store);
            match self.visited(order, &client, visit, mark).await {
                Ok(tokens) => return Ok((client, tokens)),
                Err(error) if was_known && !is_second && is_unknown(&error) => {
                    store.forget_client(&order.place.issuer).await?;
                    is_second = true;
                }
                Err(error) => {
                    // Perhaps the page did not know the client, which it can tell only the person.
                    if was_known && error.is(NOT_ANSWERED) {
                        store.forget_client(&order.place.issuer).await?;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// One authorization request, and the tokens for its code. `mark` marks the registration until
    /// the page has redirected to us: if that never happens, the next login does not trust it.
    async fn visited(
        &self,
        order: &Order<'_>,
        client: &Client,
        visit: Box<dyn super::browser::Visit>,
        mark: Option<&Store<'_>>,
    ) -> Result<Tokens, AuthError> {
        let place = order.place;
        let issuer = shown(&place.issuer);
        let endpoint = place.endpoint(place.server.token_endpoint.as_ref(), "token endpoint")?;
        let thumbprint = order.key.map(|it| it.public().thumbprint());
        let uri = visit.redirect_uri().to_owned();
        let attempt = Attempt::new(place, client, &uri, order.scopes, thumbprint.as_deref())?;
        if let Some(store) = mark {
            store.mark_client(&place.issuer, &client.id, true).await?;
        }
        self.step(Step::Waiting(issuer.clone()));
        let answer = self.unless_abandoned(visit.go(attempt.url.clone())).await;
        let answer = answer.ok_or_else(|| self.abandoned())?;
        let query = answer.map_err(|why| AuthError::Rejected {
            code: NOT_ANSWERED.to_owned(),
            why: format!("Nobody logged in at `{issuer}`: {why}"),
        })?;
        let code = attempt.code(&query);
        if let (Some(store), Ok(_) | Err(AuthError::Rejected { .. })) = (mark, &code) {
            store.mark_client(&place.issuer, &client.id, false).await?;
        }
        let code = code?;
        self.step(Step::Exchanging(issuer));
        let fields = vec![
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("redirect_uri", &attempt.redirect_uri),
            ("code_verifier", &attempt.verifier),
            ("resource", &place.resource),
        ];
        let (issuer, key) = (&*place.issuer, order.key);
        self.tokens(&TokenAsk { endpoint, issuer, client, fields, key }).await
    }

    fn kept_of(&self, order: &Order<'_>, client: Client, tokens: Tokens) -> Kept {
        let place = order.place;
        let revocation = place.server.revocation_endpoint.as_ref();
        Kept {
            server: self.server.clone(),
            issuer: place.issuer.clone(),
            resource: place.resource.clone(),
            client: client.to_keep(),
            access: tokens.access,
            is_bound: tokens.is_bound,
            // A machine needs no refresh token: it still has its credentials.
            refresh: tokens.refresh.filter(|_| self.grant.needs_person()),
            expires: tokens.expires,
            renew: tokens.renew,
            requested: order.scopes.to_string(),
            granted: tokens.scope.unwrap_or_else(|| order.scopes.to_string()),
            token_endpoint: place.server.token_endpoint.clone().unwrap_or_default(),
            revocation_endpoint: place.endpoint(revocation, "").ok().map(str::to_owned),
            key: order.key.filter(|_| tokens.is_bound).map(written),
            subject: tokens.subject,
        }
    }

    /// Pre-registered credentials belong to one issuer: the one named in the set-up. Without one it
    /// is the first issuer, if they contain no secret or the set-up trusts it; that choice is
    /// recorded before they are sent.
    async fn bind(&self, store: &Store<'_>, place: &Place) -> Result<(), AuthError> {
        let is_given = self.client_id.is_some() || !self.grant.needs_person();
        // Discovery has refused any other issuer than that of the set-up.
        if !is_given || self.issuer.is_some() {
            return Ok(());
        }
        match store.issuer().await? {
            Some(bound) if bound == place.issuer => Ok(()),
            Some(bound) => Err(self.moved(&bound, &place.issuer)),
            None if self.shows_secret() && !self.trusts_first_issuer => {
                Err(self.unnamed(&place.issuer))
            }
            None => store.put_issuer(&place.issuer).await,
        }
    }

    /// Whether something is sent to the authorization server that others could use.
    fn shows_secret(&self) -> bool {
        match self.grant.client() {
            Some(_) => self.grant.shows_secret(),
            None => self.client_secret.is_some(),
        }
    }

    fn unnamed(&self, issuer: &str) -> AuthError {
        let (server, issuer) = (shown(&self.server), super::error::said(issuer));
        AuthError::Setup(format!(
            "`{server}` says that its logins are those of `{issuer}`, and the set-up does not say \
             whom the client's credentials are for. They were not sent: if that is who gave them \
             out, set `{issuer}` as their issuer."
        ))
    }

    /// Whether the set-up allows this login.
    fn is_ours(&self, kept: &Kept) -> bool {
        self.issuer.as_ref().is_none_or(|it| *it == kept.issuer)
    }

    /// Whether to bind tokens to a key (DPoP).
    fn binds(&self, place: &Place) -> Result<bool, AuthError> {
        let algorithms = &place.server.dpop_signing_alg_values_supported;
        let is_asked = self.dpop == Some(true) || place.dpop == Dpop::Required;
        match self.dpop {
            Some(false) => Ok(false),
            _ if is_asked && !algorithms.is_empty() && !lists(algorithms) => {
                Err(AuthError::Untrusted(format!(
                    "`{}` binds tokens to keys, but not to keys of ours (ES256). Nobody was asked to \
                     log in.",
                    shown(&place.issuer)
                )))
            }
            _ => Ok(is_asked || (place.dpop == Dpop::Offered && lists(algorithms))),
        }
    }

    fn is_home(&self, url: &str) -> bool {
        Origin::of(url).is_some_and(|it| Some(it) == Origin::of(&self.server))
    }

    fn gives_up(&self, why: Why, situation: &Situation, demand: &Demand) -> AuthError {
        let server = shown(&self.server);
        let scopes = super::error::said(&situation.needed.to_string());
        let (code, why) = match why {
            Why::Forbidden => (
                "forbidden",
                format!(
                    "`{server}` does not allow this, whoever is logged in with whatever scopes."
                ),
            ),
            Why::HasScopes => (
                "insufficient_scope",
                format!(
                    "`{server}` wants the scopes `{scopes}`, which the login has. Tell the operator of the server."
                ),
            ),
            Why::NotGranted => (
                "insufficient_scope",
                format!(
                    "`{server}` wants the scopes `{scopes}`, which were asked for and not granted. \
                     Log in as somebody who has them."
                ),
            ),
            Why::Useless => (
                "invalid_token",
                format!(
                    "`{server}` refuses the token that its own authorization server just gave. Tell the operator of the server."
                ),
            ),
            Why::TooOften => (
                "invalid_token",
                format!(
                    "`{server}` refused the same request too often, each time with a new login."
                ),
            ),
            Why::Proof => {
                let words = demand.description.as_deref().map(super::error::said);
                let words = words.map_or_else(String::new, |it| format!(": “{it}”"));
                (
                    "invalid_dpop_proof",
                    format!(
                        "`{server}` refuses the proof that the token is ours{words}. Check the \
                         clock of this machine, or tell the operator of the server."
                    ),
                )
            }
        };
        AuthError::Rejected { code: code.to_owned(), why }
    }
}

/// The user is being waited for as long as this lives.
struct Waiting<'a>(&'a People<'a>);

impl<'a> Waiting<'a> {
    fn new(people: &'a People<'a>) -> Self {
        people(true);
        Self(people)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        (self.0)(false);
    }
}

fn what_was_sent(held: &Held) -> Sent {
    Sent {
        origin: held.origin,
        is_bound: held.kept.is_bound,
        can_renew: held.kept.refresh.is_some(),
        requested: Scopes::parse(&held.kept.requested),
        granted: Scopes::parse(&held.kept.granted),
    }
}

/// Whether the tokens of this login are what the server requires now.
fn is_of(place: &Place, kept: &Kept) -> bool {
    place.issuer == kept.issuer && place.resource == kept.resource
}

/// The token that a request was sent with.
fn token_in(sent: &Headers) -> Option<&str> {
    let (_, value) = sent.iter().find(|(name, _)| *name == "authorization")?;
    value.split_once(' ').map(|(_, token)| token)
}

/// Whether an authorization server does not know the client, or knows it for fewer scopes.
fn is_unknown(error: &AuthError) -> bool {
    ["invalid_client", "unauthorized_client", "invalid_scope"].iter().any(|it| error.is(it))
}

fn denied(error: AuthError) -> Denied {
    match &error {
        AuthError::NeedsLogin(why) => Denied::login(why),
        other => Denied::new(other.to_string()),
    }
}

/// The code of a login whose page never redirected.
const NOT_ANSWERED: &str = "not_answered";
