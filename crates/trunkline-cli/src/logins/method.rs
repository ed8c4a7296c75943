//! Logins as the transport uses them: for a call, which never asks a person, and for a probe.

use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline::auth::credentials::{Asked, Credentials, Denied, Headers, Refused, Retry, Target};
use trunkline::auth::{OAuth, Pending};
use trunkline_auth::challenge;
use trunkline_auth::scope::Scopes;

use crate::failure::Denial;

/// Credentials of calls from a stored login. If a person is needed, it fails.
pub(crate) struct StoredLogin {
    oauth: OAuth,
    obstacle: Mutex<Obstacle>,
}

/// What prevented a call.
#[derive(Clone, Default)]
pub(crate) struct Obstacle {
    /// The scopes to log in with, if those of this login were not sufficient.
    pub(crate) lack: Option<String>,
    /// Whether a person has to log in.
    pub(crate) needs_login: bool,
    /// Whether the server refuses the tokens of this login.
    pub(crate) is_unwelcome: bool,
}

impl StoredLogin {
    pub(crate) fn new(oauth: OAuth) -> Self {
        Self { oauth, obstacle: Mutex::default() }
    }

    /// What prevented the last call.
    pub(crate) fn obstacle(&self) -> Obstacle {
        self.lock().clone()
    }

    /// The same, as far as a person can help.
    pub(crate) fn denial(&self) -> Denial {
        let obstacle = self.obstacle();
        Denial {
            has_ended: obstacle.needs_login && self.oauth.needs_person(),
            lacks: obstacle.lack,
        }
    }

    async fn lack(&self, refusal: Refused<'_>) -> Option<String> {
        let needed = needed(refusal.challenges)?;
        let login = self.oauth.status().await.ok().flatten();
        let had: Scopes = login.map(|it| it.scopes).unwrap_or_default().into_iter().collect();
        let all = had.union(&needed);
        (all != had).then(|| all.to_string())
    }

    fn lock(&self) -> MutexGuard<'_, Obstacle> {
        self.obstacle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Credentials for StoredLogin {
    fn headers<'a>(&'a self, to: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        Box::pin(async move {
            let headers = self.oauth.headers(to).await;
            if let Err(denied) = &headers {
                *self.lock() = Obstacle { needs_login: denied.needs_login, ..Obstacle::default() };
            }
            headers
        })
    }

    fn refused<'a>(&'a self, to: Target<'a>, refusal: Refused<'a>, _: Asked<'a>) -> Retry<'a> {
        Box::pin(async move {
            let done = self.oauth.refused(to, refusal, None).await;
            if let Err(denied) = &done {
                let lack = self.lack(refusal).await;
                let (needs_login, is_unwelcome) = (denied.needs_login, refusal.status == 401);
                *self.lock() = Obstacle { lack, needs_login, is_unwelcome };
            }
            done
        })
    }

    fn nonce(&self, to: Target<'_>, nonce: &str) {
        self.oauth.nonce(to, nonce);
    }
}

/// The scopes that a refused request needs. For advice only: the rules of authorization decide on a
/// challenge.
fn needed(challenges: &[String]) -> Option<Scopes> {
    let challenges = challenge::parse(challenges);
    let told = challenges.iter().find(|it| it.param("error") == Some("insufficient_scope"))?;
    told.param("scope").map(Scopes::parse)
}

/// Connects without a login and records the challenge.
#[derive(Default)]
pub(crate) struct Probe(Mutex<Option<Vec<String>>>);

impl Probe {
    /// The server's challenge, if there was one.
    pub(crate) fn heard(&self) -> Option<Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Credentials for Probe {
    fn headers<'a>(&'a self, _: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        Box::pin(async { Ok(Headers::new()) })
    }

    fn refused<'a>(&'a self, _: Target<'a>, refusal: Refused<'a>, _: Asked<'a>) -> Retry<'a> {
        // A 403 for everyone is not about a login.
        if refusal.status == 401 {
            let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *heard = Some(refusal.challenges.to_vec());
        }
        Box::pin(async { Err(Denied::login("A login is needed.")) })
    }

    fn nonce(&self, _: Target<'_>, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::needed;

    #[test]
    fn needed_scopes_are_read_from_the_challenge() {
        for (challenge, expected) in [
            (
                r#"Bearer error="insufficient_scope", scope="a b", resource_metadata="x""#,
                Some("a b"),
            ),
            (r#"Bearer scope="a", error="insufficient_scope""#, Some("a")),
            (r#"Bearer error=insufficient_scope, scope=a"#, Some("a")),
            (r#"Bearer error="insufficient_scope""#, None),
            (r#"Bearer error="invalid_token", scope="a""#, None),
        ] {
            let found = needed(&[challenge.to_owned()]).map(|it| it.to_string());
            assert_eq!(found.as_deref(), expected, "{challenge}");
        }
    }
}
