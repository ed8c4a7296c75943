//! Renewing tokens, one process at a time.
//!
//! A refresh token may be good for one use. So whoever renews holds the lock of these tokens, reads
//! them again, and keeps what came before anything is done with it. A call that is
//! cancelled meanwhile changes nothing about that. A process that dies between the two leaves the
//! old refresh token: the next one tries it.

use std::sync::Arc;

use super::Kept;
use super::error::AuthError;
use super::grant::Proof;
use super::oauth::OAuth;
use super::register::{Client, Kind};
use super::store::{Came, Held};
use super::token::{TokenAsk, Tokens};
use crate::url::shown;

impl OAuth {
    /// Renews these tokens, unless somebody else just did.
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
            return Ok(self.hold(Held::new(kept, Came::Stored)));
        }
        let Some(refresh) = kept.refresh.clone() else { return Err(self.needs_login()) };
        let current = Held::new(kept.clone(), Came::Stored);
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
        // Where nothing can be kept, nothing is spent.
        store.put_token(&kept).await?;
        match self.tokens(&ask).await {
            Ok(tokens) => {
                let kept = renewed(kept.clone(), tokens);
                let was_kept = store.put_token(&kept).await;
                // What was spent is used, at least by this process.
                let held = self.hold(Held::new(kept, Came::Renewed));
                was_kept.map(|()| held)
            }
            Err(error) => {
                if error.is("invalid_grant") {
                    kept.refresh = None;
                    store.put_token(&kept).await?;
                    self.hold(Held::new(kept, old.came));
                } else if is_final(&error) && kept.client.kind == Kind::Registered {
                    // The refresh token stays: nothing was said against it.
                    store.forget_client(&kept.issuer).await?;
                }
                Err(error)
            }
        }
    }

    /// A kept client with what is part of the set-up.
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
        // Where no new one is given, the old one stays good (RFC 6749 §6).
        refresh: tokens.refresh.or(old.refresh),
        expires: tokens.expires,
        renew: tokens.renew,
        granted: tokens.scope.unwrap_or(old.granted),
        subject: tokens.subject.or(old.subject),
        ..old
    }
}

/// Whether asking again with the same refresh token would end the same.
pub(super) fn is_final(error: &AuthError) -> bool {
    ["invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type"]
        .iter()
        .any(|it| error.is(it))
}
