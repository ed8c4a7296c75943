//! One authorization request: the URL that a person is sent to, and the redirect that comes back.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

use super::discovery::Place;
use super::error::AuthError;
use super::register::Client;
use crate::issuer::{self, Doubt};
use crate::scope::Scopes;
use crate::tag::random_name;
use crate::url::{self, shown};

/// One authorization request. Everything that the redirect is checked against is recorded before it
/// begins, and used once.
pub(super) struct Attempt {
    pub(super) url: String,
    pub(super) redirect_uri: String,
    /// The PKCE verifier.
    pub(super) verifier: String,
    state: String,
    issuer: String,
    /// Whether the issuer promises `iss` in its redirects (RFC 9207).
    promises_iss: bool,
}

/// Refuses authorization servers without PKCE, which could not bind the code to us.
pub(super) fn check_pkce(place: &Place) -> Result<(), AuthError> {
    if place.server.code_challenge_methods_supported.iter().any(|it| it == "S256") {
        return Ok(());
    }
    let issuer = shown(&place.issuer);
    Err(AuthError::Untrusted(format!(
        "`{issuer}` does not say that it supports PKCE with S256, without which a login can be stolen \
         on its way. Nobody was asked to log in; its operator has to add \
         `code_challenge_methods_supported` to its metadata."
    )))
}

impl Attempt {
    pub(super) fn new(
        place: &Place,
        client: &Client,
        redirect_uri: &str,
        scopes: &Scopes,
        thumbprint: Option<&str>,
    ) -> Result<Self, AuthError> {
        check_pkce(place)?;
        let endpoint = place
            .endpoint(place.server.authorization_endpoint.as_ref(), "authorization endpoint")?;
        let (state, verifier) = (random_name(), random_name() + &random_name());
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let scope = scopes.to_string();
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", redirect_uri),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &place.resource),
        ];
        if !scopes.is_empty() {
            fields.push(("scope", &scope));
        }
        if scopes.contains(OFFLINE) {
            // OpenID Connect Core §11: without it a provider ignores the scope.
            fields.push(("prompt", "consent"));
        }
        if let Some(thumbprint) = thumbprint {
            fields.push(("dpop_jkt", thumbprint));
        }
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        Ok(Self {
            url: format!("{endpoint}{joint}{}", url::form(&fields)),
            redirect_uri: redirect_uri.to_owned(),
            verifier,
            state,
            issuer: place.issuer.clone(),
            promises_iss: place.server.authorization_response_iss_parameter_supported,
        })
    }

    /// The code in a redirect's query. `state` and `iss` are checked before anything else in it.
    pub(super) fn code(&self, query: &str) -> Result<String, AuthError> {
        let fields = url::fields(query);
        let one = |name: &str| {
            let mut all = fields.iter().filter(|(it, _)| it == name).map(|(_, value)| &**value);
            let first = all.next();
            if all.next().is_some() {
                return Err(untrusted(format!("It says `{name}` twice.")));
            }
            Ok(first)
        };
        if one("state")? != Some(&*self.state) {
            return Err(untrusted("It does not belong to this login.".to_owned()));
        }
        let issuer = shown(&self.issuer);
        match issuer::check_redirect(&self.issuer, self.promises_iss, one("iss")?) {
            Ok(()) => {}
            Err(Doubt::Missing) => {
                return Err(untrusted(format!(
                    "It lacks `iss`, which `{issuer}` promises to send."
                )));
            }
            // Nothing else in it is shown: an attacker may have written it.
            Err(Doubt::Other) => {
                return Err(untrusted(format!("It was not sent by `{issuer}`.")));
            }
        }
        if let Some(code) = one("error")? {
            return Err(AuthError::rejected(&self.issuer, code, one("error_description")?));
        }
        let code = one("code")?.filter(|it| !it.is_empty());
        code.map(str::to_owned).ok_or_else(|| untrusted("It has no code.".to_owned()))
    }
}

fn untrusted(why: String) -> AuthError {
    AuthError::Untrusted(format!(
        "The browser came back with an answer that cannot be trusted. {why} Log in again; if this \
         repeats, tell the operator of the server."
    ))
}

pub(super) const OFFLINE: &str = "offline_access";

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(promises_iss: bool) -> Attempt {
        Attempt {
            url: String::new(),
            redirect_uri: String::new(),
            verifier: String::new(),
            state: "s-1".into(),
            issuer: "https://id.example".into(),
            promises_iss,
        }
    }

    const ISS: &str = "iss=https%3A%2F%2Fid.example";

    #[test]
    fn codes_are_taken_from_who_was_asked_alone() {
        for (promised, query, expected) in [
            (false, "code=c&state=s-1".to_owned(), Ok("c")),
            (false, format!("code=c&state=s-1&{ISS}"), Ok("c")),
            (true, format!("code=c&state=s-1&{ISS}"), Ok("c")),
            (true, "code=c&state=s-1".into(), Err("It lacks `iss`")),
            (true, format!("code=c&state=s-1&{ISS}%2F"), Err("was not sent by")),
            (false, format!("code=c&state=s-1&{ISS}%2F"), Err("was not sent by")),
            (false, "code=c&state=s-1&iss=".into(), Err("was not sent by")),
            (false, "code=c".into(), Err("does not belong")),
            (false, "code=c&state=".into(), Err("does not belong")),
            (false, "code=c&state=S-1".into(), Err("does not belong")),
            (false, "code=c&state=s-1&state=s-1".into(), Err("`state` twice")),
            (false, "code=c&code=d&state=s-1".into(), Err("`code` twice")),
            (false, format!("code=c&state=s-1&{ISS}&{ISS}"), Err("`iss` twice")),
            (false, "state=s-1".into(), Err("no code")),
            (false, "code=&state=s-1".into(), Err("no code")),
            (false, "".into(), Err("does not belong")),
            (false, "error=access_denied&state=s-1".into(), Err("`access_denied`")),
            (false, "error=x&code=c&state=s-1".into(), Err("`x`")),
            (false, "error=x&error=y&state=s-1".into(), Err("`error` twice")),
        ] {
            match (attempt(promised).code(&query), expected) {
                (Ok(code), Ok(expected)) => assert_eq!(code, expected, "{query}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{query}: {error}");
                }
                (got, _) => panic!("{query}: {got:?}"),
            }
        }
    }

    #[test]
    fn words_of_a_stranger_are_never_shown() {
        let words = "error=x&error_description=Call+0800-EVIL&error_uri=https://evil.example";
        for (promised, rest) in [
            (false, "&state=s-1&iss=https%3A%2F%2Fevil.example"),
            (true, "&state=s-1"),
            (false, "&state=other"),
            (false, ""),
        ] {
            let error = attempt(promised).code(&format!("{words}{rest}")).unwrap_err().to_string();
            assert!(!error.to_lowercase().contains("evil") && !error.contains("`x`"), "{error}");
        }
        let error = attempt(true).code(&format!("{words}&state=s-1&{ISS}")).unwrap_err();
        assert!(error.to_string().contains("Call 0800-EVIL"), "{error}");
    }
}
