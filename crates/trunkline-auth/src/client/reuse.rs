//! A stored registration → whether the next login uses it again.
//!
//! An authorization server that no longer knows a client must not redirect (RFC 6749 §4.1.2.1): it
//! tells the person, and the login waits in vain. So a doubtful registration is not used: one that
//! the authorization server says it does not have (RFC 7592 §2.1), or whose last page never
//! redirected.

use serde::{Deserialize, Serialize};

use super::discovery::is_endpoint;
use super::login::Reregistration;
use super::oauth::OAuth;
use super::register::{Client, Registration};
use crate::fetch::{Answer, Ask};
use crate::url::Origin;

/// The client configuration endpoint and its token (RFC 7592 §3).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Management {
    pub(super) uri: String,
    pub(super) token: String,
}

impl Management {
    /// That of a registration, if its token may be sent there: to the same origin as the
    /// registration.
    pub(super) fn of(registration: &Registration, endpoint: &str) -> Option<Self> {
        let (uri, token) = registration.management()?;
        let is_same = is_endpoint(uri) && Origin::of(uri) == Origin::of(endpoint);
        is_same.then(|| Self { uri: uri.to_owned(), token: token.to_owned() })
    }
}

impl OAuth {
    /// The stored registration, updated, or why it is not used.
    pub(super) async fn reuse(
        &self,
        endpoint: &str,
        client: Client,
    ) -> Result<Client, Reregistration> {
        if self.registers_anew {
            return Err(Reregistration::Requested);
        }
        match self.read_registration(endpoint, &client).await {
            Some(Read::Known(client)) => Ok(client),
            Some(Read::Unknown) => Err(Reregistration::Forgotten),
            None if client.is_unanswered => Err(Reregistration::Unanswered),
            None => Ok(client),
        }
    }

    /// What the authorization server answers about a registration; `None` if that is inconclusive.
    async fn read_registration(&self, endpoint: &str, client: &Client) -> Option<Read> {
        let Management { uri, token } = client.management.as_ref()?;
        let ask = Ask::get(uri).header("authorization", format!("Bearer {token}"));
        let answer = self.fetcher().ok()?.fetch(ask).await.ok()?;
        read(&answer, endpoint, client)
    }
}

/// The answer of an authorization server about a registration.
enum Read {
    /// It exists; the server may have replaced its secret and its token.
    Known(Client),
    /// It does not exist, or not for us.
    Unknown,
}

fn read(answer: &Answer, endpoint: &str, client: &Client) -> Option<Read> {
    // RFC 7592 §2.1 says 401 for a client that does not exist; some servers use 404.
    if matches!(answer.status, 401 | 404) {
        return Some(Read::Unknown);
    }
    if !answer.is_ok() {
        return None;
    }
    let found: Registration = serde_json::from_slice(&answer.body).ok()?;
    if found.client_id != client.id {
        return None;
    }
    if !client.redirect_uris.iter().any(|it| found.takes(it)) {
        return Some(Read::Unknown);
    }
    let management = Management::of(&found, endpoint).or_else(|| client.management.clone());
    let mut client = Client { management, is_unanswered: false, ..client.clone() };
    if found.client_secret.is_some() {
        (client.secret_expires, client.secret) = (found.secret_expires(), found.client_secret);
    }
    Some(Read::Known(client))
}
