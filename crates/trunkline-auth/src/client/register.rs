//! An authorization server → our client registration there.

use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::browser::Visit;
use super::discovery::{Place, is_endpoint};
use super::error::{AuthError, said};
use super::grant::{ClientAuth, Proof};
use super::login::Step;
use super::oauth::OAuth;
use super::reuse::Management;
use super::store::{Store, seconds};
use crate::fetch::{Answer, Ask};
use crate::jose::SigningKey;
use crate::metadata::AuthorizationServer;
use crate::scope::Scopes;
use crate::url::{Origin, path, shown};

/// A client registration.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) kind: Kind,
    pub(super) method: Method,
    pub(super) secret: Option<String>,
    /// When the secret expires, in seconds since 1970.
    pub(super) secret_expires: Option<u64>,
    /// The registered ones; empty if any works.
    pub(super) redirect_uris: Vec<String>,
    /// The client configuration endpoint, if there is one (RFC 7592).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) management: Option<Management>,
    /// Whether its last page never redirected: the authorization server may have lost the
    /// registration, which it tells only the person (RFC 6749 §4.1.2.1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_unanswered: bool,
    /// The key of `private_key_jwt`. Never stored: it is part of the set-up.
    #[serde(skip)]
    pub(super) key: Option<Arc<SigningKey>>,
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, self.kind, self.method, &self.secret)
            == (&other.id, other.kind, other.method, &other.secret)
    }
}

/// The origin of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// It is part of the set-up.
    Given,
    /// It is the URL of our metadata document.
    Document,
    /// We registered.
    Registered,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Method {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "private_key_jwt")]
    PrivateKey,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKey => "private_key_jwt",
        }
    }

    /// How to send a secret: as agreed at registration, else as the authorization server supports.
    /// RFC 8414 §2: the default is Basic.
    pub(super) fn with_secret(agreed: Option<&str>, listed: &[String]) -> Self {
        let has = |it: Self| listed.iter().any(|name| name == it.name());
        match agreed {
            Some("none") => Self::None,
            Some("client_secret_post") => Self::Post,
            Some("client_secret_basic") => Self::Basic,
            _ if listed.is_empty() || has(Self::Basic) => Self::Basic,
            _ if has(Self::Post) => Self::Post,
            _ if has(Self::None) => Self::None,
            _ => Self::Basic,
        }
    }

    /// The method to register with: preferably without a secret, because we could not protect one
    /// well.
    fn to_register(listed: &[String]) -> Self {
        let has = |it: &Self| listed.iter().any(|name| name == it.name());
        // Servers made with the PyPI package `mcp` list both, but support revocation for
        // `client_secret_post` only.
        let order = [Self::None, Self::Post, Self::Basic];
        order.into_iter().find(has).unwrap_or(Self::None)
    }
}

/// How to become registered.
#[derive(Debug, PartialEq, Eq)]
enum RegistrationMethod<'a> {
    Given(&'a str),
    Document(&'a str),
    Register(&'a String),
}

impl Client {
    /// A client of the set-up, with an authorization server that supports these methods.
    pub(super) fn given(auth: &ClientAuth, listed: &[String]) -> Result<Self, AuthError> {
        let (method, secret, key) = match &auth.proof {
            Proof::Nothing => (Method::None, None, None),
            Proof::Secret(secret) => {
                (Method::with_secret(None, listed), Some(secret.clone()), None)
            }
            Proof::Key(key) => (Method::PrivateKey, None, Some(Arc::clone(key))),
        };
        if method == Method::PrivateKey
            && !listed.is_empty()
            && !listed.iter().any(|it| it == method.name())
        {
            return Err(AuthError::Unregistered(format!(
                "The authorization server takes no keys from clients, only {}. Give `{}` one of \
                 these.",
                said(&listed.join(", ")),
                auth.client_id()
            )));
        }
        let client = Self::public(auth.client_id(), Kind::Given, &[]);
        Ok(Self { method, secret, key, ..client })
    }

    /// A public client.
    fn public(id: &str, kind: Kind, redirect_uris: &[String]) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            method: Method::None,
            secret: None,
            secret_expires: None,
            redirect_uris: redirect_uris.to_vec(),
            management: None,
            is_unanswered: false,
            key: None,
        }
    }

    fn has_expired(&self, now: SystemTime) -> bool {
        self.secret_expires.is_some_and(|it| seconds(now) >= it)
    }

    /// The part that is stored with a login: without what is part of the set-up or matters only to
    /// another login.
    pub(super) fn to_keep(&self) -> Self {
        let mut client = Self { management: None, is_unanswered: false, ..self.clone() };
        if client.kind == Kind::Given {
            client.secret = None;
        }
        client
    }
}

impl OAuth {
    /// A client, and a browser that is ready for its redirect.
    pub(super) async fn client(
        &self,
        place: &Place,
        scopes: &Scopes,
        store: &Store<'_>,
    ) -> Result<(Client, Box<dyn Visit>), AuthError> {
        let uris = &self.redirect_uris;
        let client = match self.registration_method(&place.server)? {
            RegistrationMethod::Given(id) => {
                let secret = self.client_secret.as_ref();
                let auth = secret.map(|it| ClientAuth::secret(id, it));
                let listed = &place.server.token_endpoint_auth_methods_supported;
                match auth {
                    Some(auth) => {
                        Client { redirect_uris: uris.clone(), ..Client::given(&auth, listed)? }
                    }
                    None => Client::public(id, Kind::Given, uris),
                }
            }
            RegistrationMethod::Document(url) => Client::public(url, Kind::Document, uris),
            RegistrationMethod::Register(endpoint) => {
                return self.registered(place, endpoint, scopes, store).await;
            }
        };
        let visit = self.prepared(&client.redirect_uris).await?;
        Ok((client, visit))
    }

    /// The stored registration, or a new one.
    async fn registered(
        &self,
        place: &Place,
        endpoint: &String,
        scopes: &Scopes,
        store: &Store<'_>,
    ) -> Result<(Client, Box<dyn Visit>), AuthError> {
        let now = self.now()?;
        if let Some(client) = store.client(&place.issuer).await?
            && !client.has_expired(now)
            && let Ok(visit) = self.prepared(&client.redirect_uris).await
            && client.redirect_uris.iter().any(|it| it == visit.redirect_uri())
        {
            let issuer = shown(&place.issuer);
            match self.reuse(endpoint, client).await {
                Ok(client) => {
                    if client.management.is_some() {
                        // The authorization server may have replaced its secret or its token.
                        store.put_client(&place.issuer, &client).await?;
                    }
                    self.step(Step::Reusing(issuer));
                    return Ok((client, visit));
                }
                Err(why) => self.step(Step::Reregistering(issuer, why)),
            }
        }
        let visit = self.prepared(&self.redirect_uris).await?;
        let uri = visit.redirect_uri().to_owned();
        let endpoint = place.endpoint(Some(endpoint), "registration endpoint")?;
        self.step(Step::Registering(shown(&place.issuer)));
        let client = self.register(place, endpoint, &uri, scopes).await?;
        store.put_client(&place.issuer, &client).await?;
        Ok((client, visit))
    }

    async fn register(
        &self,
        place: &Place,
        endpoint: &str,
        uri: &str,
        scopes: &Scopes,
    ) -> Result<Client, AuthError> {
        let mut refusal = None;
        // An authorization server that allows only web applications refuses our redirect URI.
        for kind in ["native", "web"] {
            let document = self.description(place, uri, scopes, kind);
            let ask = Ask::json(endpoint, document.to_string());
            let answer = self.fetcher()?.fetch(ask).await?;
            if answer.is_ok() {
                return accepted(place, endpoint, &answer, uri);
            }
            let error = refused(place, &answer, uri);
            let is_ours = answer.status == 400
                && (error.is("invalid_redirect_uri") || error.is("invalid_client_metadata"));
            let first = refusal.get_or_insert(error);
            if !is_ours {
                return Err(first.clone());
            }
        }
        Err(refusal.expect("the loop ran"))
    }

    /// Our client metadata (RFC 7591 §2).
    fn description(&self, place: &Place, uri: &str, scopes: &Scopes, kind: &str) -> Value {
        let listed = &place.server.token_endpoint_auth_methods_supported;
        let mut document = json!({
            "client_name": self.client_name,
            "redirect_uris": [uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": Method::to_register(listed).name(),
            "application_type": kind,
        });
        if !scopes.is_empty() {
            document["scope"] = scopes.to_string().into();
        }
        document
    }

    /// The best kind of registration, in the order of the spec.
    fn registration_method<'a>(
        &'a self,
        server: &'a AuthorizationServer,
    ) -> Result<RegistrationMethod<'a>, AuthError> {
        if let Some(id) = &self.client_id {
            return Ok(RegistrationMethod::Given(id));
        }
        if let (Some(url), true) =
            (&self.client_metadata_url, server.client_id_metadata_document_supported)
        {
            let is_https = Origin::of(url).is_some_and(|it| it.scheme == "https");
            if !is_https || path(url).len() < 2 || url.contains('#') {
                return Err(AuthError::Setup(format!(
                    "`{}` cannot be a client's metadata document: it must be at an https URL with a \
                     path.",
                    shown(url)
                )));
            }
            return Ok(RegistrationMethod::Document(url));
        }
        server.registration_endpoint.as_ref().map(RegistrationMethod::Register).ok_or_else(|| {
            let issuer = shown(&server.issuer);
            let also = if server.client_id_metadata_document_supported {
                ", or give the URL of a client metadata document"
            } else {
                ""
            };
            AuthError::Unregistered(format!(
                "`{issuer}` does not let clients register themselves. Register one there by hand and \
                 give its client id{also}."
            ))
        })
    }

    /// A browser that is ready, with a redirect URI that codes may be sent to.
    async fn prepared(&self, uris: &[String]) -> Result<Box<dyn Visit>, AuthError> {
        let visit = self.browsing()?.prepare(uris).await.map_err(AuthError::Setup)?;
        let uri = visit.redirect_uri();
        if !is_endpoint(uri) {
            let uri = shown(uri);
            return Err(AuthError::Setup(format!(
                "`{uri}` cannot be a redirect URI: it is neither https nor on this machine."
            )));
        }
        Ok(visit)
    }
}

/// The response to a registration (RFC 7591 §3.2.1), or to reading one (RFC 7592 §3).
#[derive(Deserialize)]
pub(super) struct Registration {
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
    redirect_uris: Option<Vec<String>>,
    // A wrong type here is no reason to refuse the registration.
    #[serde(default)]
    registration_client_uri: Value,
    #[serde(default)]
    registration_access_token: Value,
}

impl Registration {
    /// When the secret expires, in seconds since 1970; zero means never.
    pub(super) fn secret_expires(&self) -> Option<u64> {
        self.client_secret_expires_at.filter(|it| *it != 0)
    }

    /// Whether the registration allows this redirect URI.
    pub(super) fn takes(&self, uri: &str) -> bool {
        let uris = self.redirect_uris.as_ref().filter(|it| !it.is_empty());
        uris.is_none_or(|it| it.iter().any(|it| it == uri))
    }

    /// The URL and the token to read it with.
    pub(super) fn management(&self) -> Option<(&str, &str)> {
        self.registration_client_uri.as_str().zip(self.registration_access_token.as_str())
    }
}

fn accepted(
    place: &Place,
    endpoint: &str,
    answer: &Answer,
    uri: &str,
) -> Result<Client, AuthError> {
    let issuer = shown(&place.issuer);
    let read: Option<Registration> = serde_json::from_slice(&answer.body).ok();
    let Some(read) = read.filter(|it| !it.client_id.is_empty()) else {
        return Err(AuthError::Unreachable(format!(
            "`{issuer}` registered the client without telling its id. Register one there by hand."
        )));
    };
    // An authorization server may change the request; a redirect URI that it dropped would only
    // fail later.
    if !read.takes(uri) {
        return Err(AuthError::Unregistered(format!(
            "`{issuer}` registered the client without its redirect URI `{}`. Register one there by \
             hand.",
            shown(uri)
        )));
    }
    let listed = &place.server.token_endpoint_auth_methods_supported;
    let method = match &read.client_secret {
        Some(_) => Method::with_secret(read.token_endpoint_auth_method.as_deref(), listed),
        None => Method::None,
    };
    Ok(Client {
        method,
        secret_expires: read.secret_expires(),
        management: Management::of(&read, endpoint),
        secret: read.client_secret,
        ..Client::public(&read.client_id, Kind::Registered, &[uri.to_owned()])
    })
}

fn refused(place: &Place, answer: &Answer, uri: &str) -> AuthError {
    let issuer = shown(&place.issuer);
    if place.is_assumed && matches!(answer.status, 401 | 404 | 405) {
        return AuthError::NotOffered(format!(
            "`{}` offers no login: it names no authorization server, and `{issuer}` is none.",
            shown(&place.resource)
        ));
    }
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code = body["error"].as_str().map_or_else(|| answer.status.to_string(), said);
    let words = body["error_description"].as_str().map(said).filter(|it| !it.is_empty());
    let words = words.map_or_else(String::new, |it| format!(": “{it}”"));
    let why = if code == "invalid_redirect_uri" {
        format!(
            "`{issuer}` does not take `{}` as a redirect URI{words}. Register a client there by \
             hand and give its client id.",
            shown(uri)
        )
    } else {
        format!(
            "`{issuer}` refused to register the client with `{code}`{words}. Register one there by \
             hand and give its client id."
        )
    };
    AuthError::Rejected { code, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_shown_the_way_that_was_agreed() {
        for (agreed, listed, expected) in [
            (None, &[][..], Method::Basic),
            (None, &["client_secret_post"], Method::Post),
            (None, &["client_secret_post", "client_secret_basic"], Method::Basic),
            (None, &["none"], Method::None),
            (None, &["none", "client_secret_post"], Method::Post),
            (None, &["private_key_jwt"], Method::Basic),
            (Some("client_secret_post"), &["client_secret_basic"], Method::Post),
            (Some("client_secret_basic"), &["client_secret_post"], Method::Basic),
            (Some("none"), &["client_secret_basic"], Method::None),
            (Some("unheard_of"), &["client_secret_post"], Method::Post),
        ] {
            let listed: Vec<_> = listed.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(Method::with_secret(agreed, &listed), expected, "{agreed:?} {listed:?}");
        }
    }

    #[test]
    fn no_secret_is_asked_for_where_none_is_needed() {
        for (listed, expected) in [
            (&[][..], Method::None),
            (&["client_secret_basic", "none"], Method::None),
            (&["client_secret_post"], Method::Post),
            (&["client_secret_post", "client_secret_basic"], Method::Post),
            (&["tls_client_auth"], Method::None),
        ] {
            let listed: Vec<_> = listed.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(Method::to_register(&listed), expected, "{listed:?}");
        }
    }

    #[test]
    fn ways_are_tried_in_the_order_of_the_spec() {
        let mut server = AuthorizationServer::new("https://id.example");
        let endpoint = "https://id.example/register".to_owned();
        let bare = || OAuth::new("https://a.example");
        let document = || bare().client_metadata_url("https://c.example/client.json");
        let words = |it: OAuth, server: &AuthorizationServer| {
            it.registration_method(server).unwrap_err().to_string()
        };
        assert_eq!(
            words(bare(), &server),
            "`https://id.example` does not let clients register themselves. Register one there by \
             hand and give its client id."
        );
        assert_eq!(words(document(), &server), words(bare(), &server));
        server.registration_endpoint = Some(endpoint.clone());
        assert_eq!(
            bare().registration_method(&server),
            Ok(RegistrationMethod::Register(&endpoint))
        );
        assert_eq!(
            document().registration_method(&server),
            Ok(RegistrationMethod::Register(&endpoint))
        );
        server.client_id_metadata_document_supported = true;
        assert_eq!(
            bare().registration_method(&server),
            Ok(RegistrationMethod::Register(&endpoint))
        );
        let url = "https://c.example/client.json";
        assert_eq!(document().registration_method(&server), Ok(RegistrationMethod::Document(url)));
        assert_eq!(
            document().client_id("x").registration_method(&server),
            Ok(RegistrationMethod::Given("x"))
        );
        server.registration_endpoint = None;
        assert!(words(bare(), &server).contains("the URL of a client metadata document"));
        for bad in [
            "http://localhost/c.json",
            "https://c.example",
            "https://c.example/",
            "https://c.example/x#y",
        ] {
            let error = bare().client_metadata_url(bad).registration_method(&server).unwrap_err();
            assert!(matches!(error, AuthError::Setup(_)), "{bad}");
        }
    }
}
