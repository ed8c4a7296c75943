//! A signed statement of somebody → its claims, believed once.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use trunkline_auth::jose::{self, Algorithm, Jwks};

use crate::desk::Desk;

/// What has to be true of a statement.
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) audience: &'a str,
    /// Whether it has to have a name, which then works once.
    pub(crate) once: bool,
}

impl Desk {
    /// Checks a statement: signature, issuer, audience, times, and that it is new. The error is a
    /// sentence that repeats nothing of it.
    pub(crate) fn believe(
        &mut self,
        token: &str,
        keys: &Jwks,
        expected: &Expected<'_>,
        now: SystemTime,
    ) -> Result<Value, String> {
        let verified =
            jose::verify(token, keys, &Algorithm::ALL).map_err(|error| error.to_string())?;
        let claims: Value = serde_json::from_slice(&verified.payload)
            .map_err(|_| "The claims are not JSON.".to_owned())?;
        if claims["iss"].as_str() != Some(expected.issuer) {
            return Err("`iss` is not the one that was expected.".to_owned());
        }
        if !is_for(&claims["aud"], expected.audience) {
            return Err("`aud` is not this server's issuer, or not it alone.".to_owned());
        }
        let at = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(time) => {
                let seconds = time.as_f64().filter(|it| (0.0..1e11).contains(it));
                let time = seconds.map(|it| UNIX_EPOCH + Duration::from_secs_f64(it));
                time.map(Some).ok_or_else(|| format!("`{name}` is not a time."))
            }
        };
        let expires = at("exp")?.ok_or("`exp` is missing.")?;
        if expires + LEEWAY <= now {
            return Err("The assertion has expired.".to_owned());
        }
        if at("nbf")?.is_some_and(|it| it > now + LEEWAY)
            || at("iat")?.is_some_and(|it| it > now + LEEWAY)
        {
            return Err("The assertion is from the future.".to_owned());
        }
        if expected.once {
            if expires > now + LONGEST {
                return Err("`exp` is more than an hour away.".to_owned());
            }
            let name = claims["jti"].as_str().filter(|it| !it.is_empty() && it.len() <= 256);
            let name = name.ok_or("`jti` is missing or too long.")?;
            let name = format!("{} {name}", expected.issuer);
            if self.used.get(&name, now).is_some() {
                return Err("The assertion was used before.".to_owned());
            }
            let kept = self.used.put(name, (), expires + LEEWAY, now);
            kept.map_err(|_| "Too many assertions were used lately.".to_owned())?;
        }
        Ok(claims)
    }
}

/// One audience, as a text or as a list of one.
fn is_for(audience: &Value, expected: &str) -> bool {
    match audience {
        Value::String(audience) => audience == expected,
        Value::Array(list) => matches!(&**list, [Value::String(audience)] if audience == expected),
        _ => false,
    }
}

const LEEWAY: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(3600);
