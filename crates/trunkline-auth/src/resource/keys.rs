//! The cached keys of an issuer, fetched again when a token names an unknown one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::protect::{Source, is_safe};
use super::turn::Turn;
use crate::fetch::{Ask, Fetch};
use crate::jose::Jwks;
use crate::metadata::{self, AuthorizationServer};
use crate::url::shown;

/// The keys of one issuer. One caller fetches them at a time; others wait or use the old ones.
pub(crate) struct Keys {
    issuer: String,
    source: Source,
    turn: Turn,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: Option<Read>,
    /// Their URL, once it is discovered.
    at: Option<String>,
    /// When they were last fetched, successfully or not; and when because of an unknown key.
    tried: Option<SystemTime>,
    missed: Option<SystemTime>,
    /// The error of the last attempt.
    why: String,
}

struct Read {
    keys: Arc<Jwks>,
    when: SystemTime,
}

/// Whether it is time to fetch the keys.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    /// Before they are used.
    Now,
    /// By one caller, while the others use the old ones.
    Soon,
    No,
}

impl Keys {
    pub(crate) fn new(issuer: String, source: Source) -> Self {
        Self { issuer, source, turn: Turn::default(), state: Mutex::default() }
    }

    /// The keys, fetched if they are unknown or old. The error is for the operator.
    pub(crate) async fn current(&self, fetch: &dyn Fetch) -> Result<Arc<Jwks>, String> {
        if let Source::Known(keys) = &self.source {
            return Ok(Arc::clone(keys));
        }
        let due = self.state().due(fetch.now());
        match due {
            Due::No => {}
            Due::Soon => {
                if let Some(_turn) = self.turn.take_now() {
                    self.read(fetch).await;
                }
            }
            Due::Now => {
                let _turn = self.turn.take().await;
                // The previous holder of the turn may have fetched them.
                let due = self.state().due(fetch.now());
                if due == Due::Now {
                    self.read(fetch).await;
                }
            }
        }
        self.state().usable(fetch.now())
    }

    /// Newer keys than these, in which one was missing: fetches them again, rate limited, because
    /// strangers can name any key.
    pub(crate) async fn newer(&self, fetch: &dyn Fetch, than: &Arc<Jwks>) -> Option<Arc<Jwks>> {
        if let Source::Known(_) = &self.source {
            return None;
        }
        let _turn = self.turn.take().await;
        let is_worth_it = {
            let state = self.state();
            state.newer(than).is_none() && since(state.missed, fetch.now()) >= PAUSE
        };
        if is_worth_it {
            self.read(fetch).await;
            // Only now: a caller that is dropped halfway has learned nothing, and must not block
            // the others.
            self.state().missed = Some(fetch.now());
        }
        self.state().newer(than)
    }

    async fn read(&self, fetch: &dyn Fetch) {
        let found = self.find(fetch).await;
        let (mut state, now) = (self.state(), fetch.now());
        state.tried = Some(now);
        match found {
            Ok(keys) => state.keys = Some(Read { keys: Arc::new(keys), when: now }),
            Err(why) => {
                // They may have moved.
                state.at = None;
                state.why = why;
            }
        }
    }

    async fn find(&self, fetch: &dyn Fetch) -> Result<Jwks, String> {
        let url = match &self.source {
            Source::At(url) => url.clone(),
            _ => {
                let known = self.state().at.clone();
                match known {
                    Some(url) => url,
                    None => self.discover(fetch).await?,
                }
            }
        };
        let body = get(fetch, &url).await?;
        let keys = Jwks::parse(&body)
            .map_err(|why| format!("`{}` holds no key set: {why}", shown(&url)))?;
        self.state().at = Some(url);
        Ok(keys)
    }

    /// The URL of the keys in the issuer's own metadata.
    async fn discover(&self, fetch: &dyn Fetch) -> Result<String, String> {
        let mut why = format!("`{}` is not the URL of an issuer.", shown(&self.issuer));
        for url in metadata::authorization_server_urls(&self.issuer) {
            match get(fetch, &url).await.and_then(|body| self.jwks_uri(&url, &body)) {
                Ok(found) => return Ok(found),
                Err(next) => why = next,
            }
        }
        Err(why)
    }

    fn jwks_uri(&self, url: &str, body: &[u8]) -> Result<String, String> {
        let url = shown(url);
        let document = AuthorizationServer::parse(body)
            .map_err(|why| format!("`{url}` holds no metadata: {why}."))?;
        if document.issuer != self.issuer {
            return Err(format!(
                "`{url}` speaks for the issuer `{}`, not for `{}`.",
                shown(&document.issuer),
                shown(&self.issuer)
            ));
        }
        let keys = document.jwks_uri.ok_or_else(|| format!("`{url}` has no `jwks_uri`."))?;
        // An issuer without TLS is on this machine or a private network, and so are its keys.
        if keys.starts_with("https://") || self.issuer.starts_with("http://") && is_safe(&keys) {
            Ok(keys)
        } else {
            Err(format!("The `jwks_uri` in `{url}` is not an `https://` URL."))
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn due(&self, now: SystemTime) -> Due {
        let age = since(self.keys.as_ref().map(|it| it.when), now);
        let quiet = since(self.tried, now);
        if age >= STALE {
            if quiet >= SHORT_PAUSE { Due::Now } else { Due::No }
        } else if age >= OLD && quiet >= PAUSE {
            Due::Soon
        } else {
            Due::No
        }
    }

    fn usable(&self, now: SystemTime) -> Result<Arc<Jwks>, String> {
        match &self.keys {
            Some(read) if since(Some(read.when), now) < STALE => Ok(Arc::clone(&read.keys)),
            _ => Err(self.why.clone()),
        }
    }

    fn newer(&self, than: &Arc<Jwks>) -> Option<Arc<Jwks>> {
        let keys = &self.keys.as_ref()?.keys;
        (!Arc::ptr_eq(keys, than)).then(|| Arc::clone(keys))
    }
}

async fn get(fetch: &dyn Fetch, url: &str) -> Result<Vec<u8>, String> {
    match fetch.fetch(Ask::get(url)).await {
        Ok(answer) if answer.is_ok() => Ok(answer.body),
        Ok(answer) => Err(format!("`{}` answered with {}.", shown(url), answer.status)),
        Err(why) => Err(format!("`{}` cannot be read: {why}", shown(url))),
    }
}

/// The time since then: for ever if it never happened, or if the clock was set back.
fn since(when: Option<SystemTime>, now: SystemTime) -> Duration {
    when.and_then(|it| now.duration_since(it).ok()).unwrap_or(Duration::MAX)
}

/// The age at which keys are refreshed in the background.
const OLD: Duration = Duration::from_secs(10 * 60);
/// The age at which keys that cannot be refreshed are no longer trusted.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// The pause between fetches: with keys, and without any.
const PAUSE: Duration = Duration::from_secs(30);
const SHORT_PAUSE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
