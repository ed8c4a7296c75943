//! A refresh token → the next one, and an access token.
//!
//! Each is good once. The one before stays good for a minute, or until the new one is used: an
//! answer may get lost, and whoever asked must not lose the login with it. Any older one means that
//! two hold the login, which ends it.

use std::time::Duration;

use serde_json::Value;
use trunkline_auth::digest::sha256;

use super::Asked;
use super::code::refresh_token;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::fields::words;

impl Desk {
    pub(super) fn refresh(&mut self, asked: &Asked<'_>) -> Result<Value, Fault> {
        let now = asked.request.now;
        let client = asked.client()?.id.clone();
        let token = asked.fields.need("refresh_token")?;
        let unknown = || Fault::grant("The refresh token is not known here, or no longer.");
        let (name, _) = token.split_once('.').ok_or_else(unknown)?;
        let family = self.families.get_mut(name, now).ok_or_else(unknown)?;
        let current = family.current.clone().ok_or_else(unknown)?;
        if family.terms.client != client {
            return Err(Fault::grant("The refresh token was given to another client."));
        }
        let is_current = same(token, &current);
        let is_forgiven =
            family.previous.as_ref().is_some_and(|(it, until)| same(token, it) && *until > now);
        if !is_current && !is_forgiven {
            self.families.take(name, now);
            self.stats.reuses += 1;
            return Err(Fault::grant("The refresh token was used before; the login is over."));
        }
        let mut terms = family.terms.clone();
        if terms.jkt.is_some() && terms.jkt != asked.jkt {
            return Err(Fault::grant("The refresh token is bound to another key."));
        }
        terms.jkt.clone_from(&asked.jkt);
        asked.same_resource(&terms.resource)?;
        if let Some(narrower) = asked.fields.one("scope")?.map(words) {
            if narrower.iter().any(|it| !terms.scopes.contains(it)) {
                let why =
                    "The `scope` holds one that was not granted; ask for authorization again.";
                return Err(Fault::new("invalid_scope", why));
            }
            terms.scopes = narrower;
        }
        let next = if is_current {
            let next = refresh_token(name);
            family.previous = Some((current, now + GRACE));
            family.current = Some(next.clone());
            self.stats.refreshes += 1;
            next
        } else {
            // The same answer as before, so that two who asked at once both hold what is good.
            self.stats.graces += 1;
            current
        };
        self.families.renew(name, now + self.settings.refresh);
        let mut answer = self.granted(&terms, Some(name), now);
        answer["refresh_token"] = next.into();
        Ok(answer)
    }
}

/// Digests are compared, so that the time it takes says nothing of the token.
fn same(one: &str, other: &str) -> bool {
    sha256(one.as_bytes()) == sha256(other.as_bytes())
}

const GRACE: Duration = Duration::from_secs(60);
