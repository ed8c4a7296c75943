//! A code → the tokens of a new login.

use serde_json::Value;
use trunkline_auth::tag::random_name;

use super::Asked;
use crate::client::Grant;
use crate::desk::{Desk, Family, Terms, Wish};
use crate::fault::Fault;
use crate::proof::fits;

impl Desk {
    pub(super) fn code(&mut self, asked: &Asked<'_>) -> Result<Value, Fault> {
        let (fields, now) = (asked.fields, asked.request.now);
        let client = asked.client()?;
        let (code, verifier) = (fields.need("code")?, fields.one("code_verifier")?);
        let redirect = fields.one("redirect_uri")?;
        let unknown = || Fault::grant("The code is not known here, or no longer.");
        let given = self.codes.get_mut(code, now).ok_or_else(unknown)?;
        // Another client's code is left alone: else whoever sees one could spoil it.
        if given.wish.client != client.id {
            return Err(Fault::grant("The code was given to another client."));
        }
        if let Some(family) = &given.spent {
            // Two hold it, and one of them stole it (RFC 6749 §4.1.2).
            let family = family.clone();
            family.and_then(|family| self.families.take(&family, now));
            self.stats.reuses += 1;
            let why = "The code was used before; the tokens that came of it are revoked.";
            return Err(Fault::grant(why));
        }
        given.spent = Some(None);
        let (wish, user, expires) = (given.wish.clone(), given.user.clone(), given.expires);
        if expires <= now {
            return Err(Fault::grant("The code has expired."));
        }
        check(&wish, verifier, redirect)?;
        asked.same_resource(&wish.resource)?;
        if wish.jkt.is_some() && wish.jkt != asked.jkt {
            return Err(Fault::grant("The code was asked for with another key (`dpop_jkt`)."));
        }
        let terms = Terms {
            client: wish.client,
            subject: user,
            scopes: wish.scopes,
            resource: wish.resource,
            jkt: asked.jkt.clone(),
        };
        let family = random_name();
        let is_offline = client.grants.contains(&Grant::Refresh) && self.is_offline(&terms);
        let current = is_offline.then(|| refresh_token(&family));
        let login = Family { terms: terms.clone(), current: current.clone(), previous: None };
        let lifetime = if is_offline { self.settings.refresh } else { self.settings.access };
        self.families.put(&*family, login, now + lifetime, now)?;
        if let Some(given) = self.codes.get_mut(code, now) {
            given.spent = Some(Some(family.clone()));
        }
        let mut answer = self.granted(&terms, Some(&family), now);
        if let Some(current) = current {
            answer["refresh_token"] = current.into();
        }
        if terms.scopes.iter().any(|it| it == "openid") {
            let token = self.id_token(&terms.subject, &terms.client, wish.nonce.as_deref(), now);
            answer["id_token"] = token.into();
        }
        Ok(answer)
    }

    /// Whether a login outlives its access token.
    fn is_offline(&self, terms: &Terms) -> bool {
        let is_it = |scope: &String| scope == "offline_access";
        !self.settings.scopes.iter().any(is_it) || terms.scopes.iter().any(is_it)
    }
}

fn check(wish: &Wish, verifier: Option<&str>, redirect: Option<&str>) -> Result<(), Fault> {
    let Some(verifier) = verifier else {
        return Err(Fault::request("`code_verifier` is missing; send it."));
    };
    if !fits(&wish.challenge, verifier) {
        return Err(Fault::grant("`code_verifier` is not the one of the `code_challenge`."));
    }
    match redirect {
        Some(uri) if uri != wish.redirect => {
            Err(Fault::grant("`redirect_uri` is another than the one that was authorized."))
        }
        None if wish.redirect_said => {
            Err(Fault::grant("`redirect_uri` is missing; send the one that was authorized."))
        }
        _ => Ok(()),
    }
}

/// A refresh token: the login it belongs to, and what nobody can guess.
pub(super) fn refresh_token(family: &str) -> String {
    format!("{family}.{}", random_name())
}
