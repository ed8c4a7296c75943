//! Refreshes tokens, one process at a time.
//!
//! A refresh token may be single-use. So a process that refreshes holds the lock of these tokens,
//! reads them again, and stores the new ones before it uses them. Cancelling the call does not
//! interrupt that. A process that dies in between leaves the old refresh token: the next one tries
//! it.

use std::sync::Arc;

use super::Kept;
use super::error::AuthError;
use super::grant::Proof;
use super::oauth::OAuth;
use super::register::{Client, Kind};
use super::store::{Held, TokenOrigin};
use super::token::{TokenAsk, Tokens};
use crate::url::shown;

impl OAuth {
    /// Refreshes these tokens, unless another caller just did.
    pub(super) async fn renew(&self, old: &Arc<Held>) -> Result<Arc<Held>, AuthError> {
        let old = Arc::clone(old);
        self.outliving(|it| async move { it.renew_now(&old).await }).await
    }

    async fn renew_now(&self, old: &Held) -> Result<Arc<Held>, AuthError> {
        let store = self.store()?;
        let _turn = store.lock_token(&old.kept.issuer, &old.kept.resource).await?;
        let kept = store.token(&old.kept.issuer, &old.kept.resource).await?;
        let Some(mut kept) = kept else {
            self.state().held = None;
            return Err(self.needs_login());
        };
        if kept.access != old.kept.access && kept.is_alive(self.now()?) {
            return Ok(self.hold(Held::new(kept, TokenOrigin::Stored)));
        }
        let Some(refresh) = kept.refresh.clone() else { return Err(self.needs_login()) };
        let current = Held::new(kept.clone(), TokenOrigin::Stored);
        let client = self.current(&kept.client);
        let fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", &*refresh),
            ("resource", &kept.resource),
        ];
        let ask = TokenAsk {
            endpoint: &kept.token_endpoint,
            issuer: &kept.issuer,
            client: &client,
            fields,
            key: current.key.as_deref(),
        };
        // Do not use up the refresh token if nothing can be stored.
        store.put_token(&kept).await?;
        match self.tokens(&ask).await {
            Ok(tokens) => {
                let kept = renewed(kept.clone(), tokens);
                let was_kept = store.put_token(&kept).await;
                // The old token is used up, so at least this process uses the new one.
                let held = self.hold(Held::new(kept, TokenOrigin::Renewed));
                was_kept.map(|()| held)
            }
            Err(error) => {
                if error.is("invalid_grant") {
                    kept.refresh = None;
                    store.put_token(&kept).await?;
                    self.hold(Held::new(kept, old.origin));
                } else if is_final(&error) && kept.client.kind == Kind::Registered {
                    // The refresh token stays: it was not rejected.
                    store.forget_client(&kept.issuer).await?;
                }
                Err(error)
            }
        }
    }

    /// A stored client with the parts that come from the set-up.
    pub(super) fn current(&self, kept: &Client) -> Client {
        let mut client = kept.clone();
        if client.kind == Kind::Given {
            match self.grant.client().map(|it| &it.proof) {
                None => client.secret.clone_from(&self.client_secret),
                Some(Proof::Nothing) => {}
                Some(Proof::Secret(secret)) => client.secret = Some(secret.clone()),
                Some(Proof::Key(key)) => client.key = Some(Arc::clone(key)),
            }
        }
        client
    }

    pub(super) fn hold(&self, held: Held) -> Arc<Held> {
        let held = Arc::new(held);
        let mut state = self.state();
        state.is_loaded = true;
        state.held = Some(Arc::clone(&held));
        held
    }

    /// Sends requests without a login from now on.
    pub(super) fn let_go(&self) {
        let mut state = self.state();
        state.is_loaded = true;
        state.held = None;
        state.nonces.clear();
    }

    pub(super) fn needs_login(&self) -> AuthError {
        let server = shown(&self.server);
        AuthError::NeedsLogin(format!("`{server}` wants a login. Log in to it and try again."))
    }
}

fn renewed(old: Kept, tokens: Tokens) -> Kept {
    Kept {
        access: tokens.access,
        is_bound: tokens.is_bound,
        // Without a new refresh token the old one stays valid (RFC 6749 §6).
        refresh: tokens.refresh.or(old.refresh),
        expires: tokens.expires,
        renew: tokens.renew,
        granted: tokens.scope.unwrap_or(old.granted),
        subject: tokens.subject.or(old.subject),
        ..old
    }
}

/// Whether a retry with the same refresh token would fail too.
pub(super) fn is_final(error: &AuthError) -> bool {
    ["invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type"]
        .iter()
        .any(|it| error.is(it))
}
