//! Credentials whose tokens the gateway learns to mask: a server may repeat the token that it was sent.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use trunkline_auth::credentials::{Asked, Credentials, Denied, Headers, Refused, Retry, Target};
use trunkline_auth::fetch::Pending;

use crate::watcher::Watcher;

/// A login that is watched for new tokens.
pub(super) struct WatchedLogin {
    inner: Arc<dyn Credentials>,
    watcher: Weak<dyn Watcher>,
    /// The header that was sent last.
    last: Mutex<String>,
}

impl WatchedLogin {
    pub(super) fn new(inner: Arc<dyn Credentials>, watcher: Weak<dyn Watcher>) -> Self {
        Self { inner, watcher, last: Mutex::default() }
    }

    fn note(&self, headers: &Headers) {
        let Some((_, value)) = headers.iter().find(|it| it.0 == "authorization") else { return };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != *value {
            last.clone_from(value);
            if let Some(watcher) = self.watcher.upgrade() {
                watcher.uses_token(value);
            }
        }
    }
}

impl Credentials for WatchedLogin {
    fn headers<'a>(&'a self, to: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        Box::pin(async move {
            let headers = self.inner.headers(to).await?;
            self.note(&headers);
            Ok(headers)
        })
    }

    fn refused<'a>(&'a self, to: Target<'a>, refusal: Refused<'a>, people: Asked<'a>) -> Retry<'a> {
        self.inner.refused(to, refusal, people)
    }

    fn nonce(&self, to: Target<'_>, nonce: &str) {
        self.inner.nonce(to, nonce);
    }
}
