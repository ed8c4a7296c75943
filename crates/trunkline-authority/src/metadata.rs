//! What the server says about itself.

use serde_json::{Value, json};
use trunkline_auth::jose::{Algorithm, Jwks};

use crate::client::Grant;
use crate::desk::Desk;
use crate::message::Response;
use crate::page;

impl Desk {
    /// RFC 8414 and OpenID discovery in one: whoever looks in either place finds the same.
    pub(crate) fn metadata(&self) -> Response {
        let methods = ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];
        let algorithms = Algorithm::ALL.map(Algorithm::name);
        let mut document = json!({
            "issuer": self.issuer,
            "authorization_endpoint": self.url("/authorize"),
            "token_endpoint": self.url("/token"),
            "jwks_uri": self.url("/jwks"),
            "introspection_endpoint": self.url("/introspect"),
            "revocation_endpoint": self.url("/revoke"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": self.grants().iter().map(|it| it.name()).collect::<Vec<_>>(),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": methods,
            "token_endpoint_auth_signing_alg_values_supported": algorithms,
            "introspection_endpoint_auth_methods_supported": methods[1..],
            "revocation_endpoint_auth_methods_supported": methods,
            "authorization_response_iss_parameter_supported": true,
            "dpop_signing_alg_values_supported": algorithms,
            "client_id_metadata_document_supported": self.settings.documents,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        });
        let mut add = |name: &str, value: Value| document[name] = value;
        if self.settings.registration {
            add("registration_endpoint", self.url("/register").into());
        }
        if !self.settings.scopes.is_empty() {
            add("scopes_supported", json!(self.settings.scopes));
        }
        if !self.settings.resources.is_empty() {
            add("protected_resources", json!(self.settings.resources));
        }
        if !self.settings.providers.is_empty() {
            add("authorization_grant_profiles_supported", json!([ID_JAG_PROFILE]));
        }
        Response::of(200, &document)
    }

    /// What can be exchanged for a token here.
    pub(crate) fn grants(&self) -> Vec<Grant> {
        let Self { settings, .. } = self;
        let is_offered = |grant: &Grant| match grant {
            Grant::Code | Grant::Refresh | Grant::ClientCredentials => true,
            Grant::JwtBearer => !(settings.providers.is_empty() && settings.workloads.is_empty()),
            Grant::Exchange => !settings.exchanges.is_empty(),
        };
        Grant::ALL.into_iter().filter(is_offered).collect()
    }

    pub(crate) fn jwks(&self) -> Jwks {
        let publish = |key: &trunkline_auth::jose::SigningKey| {
            let mut key = key.public().clone();
            key.use_ = Some("sig".to_owned());
            key
        };
        Jwks::new(self.signing.iter().map(publish))
    }

    pub(crate) fn home(&self) -> Response {
        let why = format!(
            "This is the authorization server `{}`. Applications find what they need by themselves; \
             there is nothing to do here.",
            self.issuer
        );
        page::message(200, "An authorization server", &why)
    }
}

/// Where discovery looks, before or behind the path of the issuer.
pub(crate) const WELL_KNOWN: (&str, &str) =
    ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration");

/// How discovery says that identity assertions are exchanged here.
const ID_JAG_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
