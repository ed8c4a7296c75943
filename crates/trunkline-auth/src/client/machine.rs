//! Tokens without a person: by a client's own credentials, a company's identity provider, or the
//! platform.

use super::discovery::{Place, insecure, is_endpoint};
use super::error::AuthError;
use super::grant::{ClientAuth, Enterprise, TokenSource};
use super::oauth::OAuth;
use super::register::Client;
use super::token::{TokenAsk, Tokens, broken, is_sound};
use crate::jose::SigningKey;
use crate::scope::Scopes;

/// A machine's token request.
pub(super) struct Order<'a> {
    pub(super) place: &'a Place,
    pub(super) scopes: &'a Scopes,
    pub(super) key: Option<&'a SigningKey>,
}

impl OAuth {
    /// Client credentials.
    pub(super) async fn by_credentials(
        &self,
        order: &Order<'_>,
        auth: &ClientAuth,
    ) -> Result<(Client, Tokens), AuthError> {
        self.ask(order, auth, &[("grant_type", "client_credentials")]).await
    }

    /// The platform's token authenticates the client. It is sent only once: a refusal would repeat
    /// itself.
    pub(super) async fn by_assertion(
        &self,
        order: &Order<'_>,
        auth: &ClientAuth,
        source: &TokenSource,
    ) -> Result<(Client, Tokens), AuthError> {
        let assertion = source.token(&order.place.issuer).await.map_err(AuthError::Setup)?;
        self.ask(order, auth, &[("grant_type", JWT_BEARER), ("assertion", &assertion)]).await
    }

    /// The identity provider exchanges the ID token for a grant at this authorization server, which
    /// exchanges that for a token.
    pub(super) async fn by_enterprise(
        &self,
        order: &Order<'_>,
        enterprise: &Enterprise,
    ) -> Result<(Client, Tokens), AuthError> {
        let grant = self.exchange(order, enterprise).await?;
        self.ask(order, &enterprise.client, &[("grant_type", JWT_BEARER), ("assertion", &grant)])
            .await
    }

    async fn ask(
        &self,
        order: &Order<'_>,
        auth: &ClientAuth,
        grant: &[(&str, &str)],
    ) -> Result<(Client, Tokens), AuthError> {
        let place = order.place;
        let client = Client::given(auth, &place.server.token_endpoint_auth_methods_supported)?;
        let scope = order.scopes.to_string();
        let mut fields = grant.to_vec();
        fields.push(("resource", &place.resource));
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let endpoint = place.endpoint(place.server.token_endpoint.as_ref(), "token endpoint")?;
        let (issuer, key) = (&*place.issuer, order.key);
        let ask = TokenAsk { endpoint, issuer, client: &client, fields, key };
        let tokens = self.tokens(&ask).await?;
        Ok((client, tokens))
    }

    /// The token exchange (RFC 8693) at the identity provider.
    async fn exchange(&self, order: &Order<'_>, by: &Enterprise) -> Result<String, AuthError> {
        let id_token = by.id_token.token(&by.idp).await.map_err(AuthError::Setup)?;
        let (endpoint, listed) = match &by.token_endpoint {
            Some(endpoint) => (endpoint.clone(), Vec::new()),
            None => {
                let server = self.issuer_document(&by.idp).await?;
                let endpoint = server.token_endpoint;
                let missing = || broken(&by.idp, "it does not say where its token endpoint is");
                (endpoint.ok_or_else(missing)?, server.token_endpoint_auth_methods_supported)
            }
        };
        if !is_endpoint(&endpoint) {
            return Err(insecure("the token endpoint of the identity provider", &endpoint));
        }
        let client = Client::given(&by.idp_client, &listed)?;
        let scope = order.scopes.to_string();
        let mut fields = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", &order.place.issuer),
            ("resource", &order.place.resource),
            ("subject_token", &id_token),
            ("subject_token_type", ID_TOKEN),
        ];
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let ask =
            TokenAsk { endpoint: &endpoint, issuer: &by.idp, client: &client, fields, key: None };
        let answer = self.token_answer(&ask).await?;
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let is_grant = body["issued_token_type"].as_str().is_none_or(|it| it == ID_JAG);
        let grant = body["access_token"].as_str().filter(|it| is_grant && is_sound(it));
        grant.map(str::to_owned).ok_or_else(|| broken(&by.idp, "its answer is no ID-JAG"))
    }
}

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
