//! An assertion of somebody who is trusted → an access token (RFC 7523): an identity provider's
//! about a user (ID-JAG), or a platform's about a workload.

use serde_json::Value;
use trunkline_auth::jose;

use super::Asked;
use crate::assertion::Expected;
use crate::desk::{Desk, Terms};
use crate::fault::Fault;
use crate::fields::words;

impl Desk {
    pub(super) fn jwt_bearer(&mut self, asked: &Asked<'_>) -> Result<Value, Fault> {
        let assertion = asked.fields.need("assertion")?;
        let header = jose::peek(assertion).map_err(|error| Fault::grant(error.to_string()))?;
        let terms = match header.typ.as_deref() {
            Some(ID_JAG) => self.identity(asked, assertion)?,
            _ => self.workload(asked, assertion)?,
        };
        Ok(self.granted(&terms, None, asked.request.now))
    }

    /// A user, vouched for by an identity provider, to this client, for this server and resource.
    fn identity(&mut self, asked: &Asked<'_>, assertion: &str) -> Result<Terms, Fault> {
        let client = asked.client()?;
        if !client.is_confidential() {
            let why = "A client has to authenticate to use an identity assertion.";
            return Err(Fault::new("unauthorized_client", why));
        }
        let claims = self.trusted(asked, assertion, Kind::Identity)?;
        let text = |name: &str| {
            let missing = || Fault::grant(format!("`{name}` is missing in the assertion."));
            claims[name].as_str().filter(|it| !it.is_empty()).ok_or_else(missing)
        };
        if text("client_id")? != client.id {
            return Err(Fault::grant("The assertion was given to another client."));
        }
        let resource = self.resource([text("resource")?].into_iter()).map_err(|_| {
            Fault::grant("The assertion is for a `resource` that is not one of this server's.")
        })?;
        asked.same_resource(&resource)?;
        let mut scopes = self.allowed(client, asked.fields.one("scope")?)?;
        if let Some(vouched) = claims["scope"].as_str().map(words) {
            match asked.fields.one("scope")? {
                None => scopes = self.allowed(client, Some(&vouched.join(" ")))?,
                Some(_) => scopes.retain(|it| vouched.contains(it)),
            }
        }
        let subject = text("sub")?.to_owned();
        Ok(Terms { client: client.id.clone(), subject, scopes, resource, jkt: asked.jkt.clone() })
    }

    /// A workload, vouched for by its platform.
    fn workload(&mut self, asked: &Asked<'_>, assertion: &str) -> Result<Terms, Fault> {
        let claims = self.trusted(asked, assertion, Kind::Workload)?;
        let subject = claims["sub"].as_str().unwrap_or_default().to_owned();
        let client = asked.client.clone().unwrap_or_else(|| crate::client::Client::new(&*subject));
        let scopes = self.allowed(&client, asked.fields.one("scope")?)?;
        let resource = self.resource(asked.resources())?;
        Ok(Terms { client: client.id, subject, scopes, resource, jkt: asked.jkt.clone() })
    }

    /// The claims of an assertion whose issuer is trusted for this kind.
    fn trusted(&mut self, asked: &Asked<'_>, assertion: &str, kind: Kind) -> Result<Value, Fault> {
        let claims = jose::unverified_payload(assertion).ok();
        let claims = claims.and_then(|it| serde_json::from_slice::<Value>(&it).ok());
        let claims = claims.ok_or_else(|| Fault::grant("The assertion is not a JWT."))?;
        let known = match kind {
            Kind::Identity => &self.settings.providers,
            Kind::Workload => &self.settings.workloads,
        };
        let is_it = |issuer: &str, subject: Option<&str>| {
            claims["iss"].as_str() == Some(issuer)
                && subject.is_none_or(|it| claims["sub"].as_str() == Some(it))
        };
        let trusted = known.iter().find(|it| is_it(&it.issuer, it.subject.as_deref())).cloned();
        let trusted = trusted.ok_or_else(|| {
            Fault::grant(
                "The assertion is of an issuer, or about a subject, that is not trusted here.",
            )
        })?;
        let audience = self.issuer.clone();
        let once = matches!(kind, Kind::Identity) || claims.get("jti").is_some();
        let expected = Expected { issuer: &trusted.issuer, audience: &audience, once };
        self.believe(assertion, &trusted.keys, &expected, asked.request.now).map_err(Fault::grant)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Identity,
    Workload,
}

/// The type of an identity assertion.
pub(super) const ID_JAG: &str = "oauth-id-jag+jwt";
