//! Logins as the transport asks for them: by a call, which never asks a person, and by a probe.

use std::sync::{Mutex, PoisonError};

use trunkline::auth::credentials::{Credentials, Denied, Headers, People, Refused, Target};
use trunkline::auth::{OAuth, Pending};

/// Lets calls in with a login that was made before. What only a person could do, it leaves to the
/// person.
pub(crate) struct Way {
    oauth: OAuth,
    lack: Mutex<Option<String>>,
}

impl Way {
    pub(crate) fn new(oauth: OAuth) -> Self {
        Self { oauth, lack: Mutex::default() }
    }

    /// The scopes to log in with, if those of this login did not suffice.
    pub(crate) fn lacks(&self) -> Option<String> {
        self.lack.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a login needs nobody.
    pub(crate) fn is_machine(&self) -> bool {
        !self.oauth.needs_person()
    }

    async fn note(&self, refusal: Refused<'_>) {
        let Some(needed) = needed(refusal.challenges) else { return };
        let login = self.oauth.status().await.ok().flatten();
        let mut scopes = login.map(|it| it.scopes).unwrap_or_default();
        let had = scopes.len();
        for scope in needed.split_whitespace() {
            if !scopes.iter().any(|it| it == scope) {
                scopes.push(scope.to_owned());
            }
        }
        if scopes.len() > had {
            let mut lack = self.lack.lock().unwrap_or_else(PoisonError::into_inner);
            *lack = Some(scopes.join(" "));
        }
    }
}

impl Credentials for Way {
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
            let done = self.oauth.refused(to, refusal, None).await;
            if done.is_err() {
                self.note(refusal).await;
            }
            done
        })
    }

    fn nonce(&self, to: Target<'_>, nonce: &str) {
        self.oauth.nonce(to, nonce);
    }
}

/// The scopes that a refused request needs. For advice alone: what is done about a challenge, the
/// rules of authorization decide.
fn needed(challenges: &[String]) -> Option<&str> {
    let told = challenges.iter().find(|it| it.contains("insufficient_scope"))?;
    let (_, rest) = told.split_once("scope=\"")?;
    rest.split_once('"').map(|(scopes, _)| scopes)
}

/// Knocks without a login and remembers what is asked for.
#[derive(Default)]
pub(crate) struct Probe(Mutex<Option<Vec<String>>>);

impl Probe {
    /// What the server wants to see, if it wants anything.
    pub(crate) fn heard(&self) -> Option<Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Credentials for Probe {
    fn headers<'a>(&'a self, _: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        Box::pin(async { Ok(Headers::new()) })
    }

    fn refused<'a>(
        &'a self,
        _: Target<'a>,
        refusal: Refused<'a>,
        _: Option<&'a People<'a>>,
    ) -> Pending<'a, Result<(), Denied>> {
        // A server may refuse everybody: that is no question of a login.
        if refusal.status == 401 {
            let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *heard = Some(refusal.challenges.to_vec());
        }
        Box::pin(async { Err(Denied("A login is needed.".to_owned())) })
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
            (r#"Bearer error="insufficient_scope""#, None),
            (r#"Bearer error="invalid_token", scope="a""#, None),
        ] {
            assert_eq!(needed(&[challenge.to_owned()]), expected, "{challenge}");
        }
    }
}
