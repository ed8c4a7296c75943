//! Requests to a token endpoint, and their responses.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::AuthError;
use super::oauth::OAuth;
use super::register::{Client, Method};
use super::store::seconds;
use crate::dpop;
use crate::fetch::{Answer, Ask, FetchError};
use crate::jose::{self, SigningKey};
use crate::tag::random_name;
use crate::url::{encoded, shown};

/// The response of a token endpoint.
pub(super) struct Tokens {
    pub(super) access: String,
    /// Whether the token is bound to our key.
    pub(super) is_bound: bool,
    pub(super) refresh: Option<String>,
    pub(super) expires: Option<u64>,
    pub(super) renew: Option<u64>,
    pub(super) scope: Option<String>,
    pub(super) subject: Option<String>,
}

/// A request to a token endpoint.
pub(super) struct TokenAsk<'a> {
    pub(super) endpoint: &'a str,
    pub(super) issuer: &'a str,
    pub(super) client: &'a Client,
    pub(super) fields: Vec<(&'a str, &'a str)>,
    /// The key that the token shall be bound to.
    pub(super) key: Option<&'a SigningKey>,
}

impl OAuth {
    /// Requests tokens.
    pub(super) async fn tokens(&self, ask: &TokenAsk<'_>) -> Result<Tokens, AuthError> {
        let answer = self.token_answer(ask).await?;
        let tokens = read(ask.issuer, &answer, self.now()?)?;
        if tokens.is_bound && ask.key.is_none() {
            return Err(broken(ask.issuer, "it bound the token to a key that nobody has"));
        }
        if !tokens.is_bound && ask.key.is_some() && self.dpop == Some(true) {
            return Err(AuthError::Untrusted(format!(
                "`{}` does not bind its tokens to a key, which the set-up demands. The token was \
                 thrown away.",
                shown(ask.issuer)
            )));
        }
        Ok(tokens)
    }

    /// Sends the request, again with a nonce if one is required, until it succeeds.
    pub(super) async fn token_answer(&self, ask: &TokenAsk<'_>) -> Result<Answer, AuthError> {
        let mut nonces = 0;
        loop {
            let answer = self.send(ask).await?;
            if let Some(nonce) = answer.first("dpop-nonce") {
                self.keep_nonce(ask.endpoint, nonce);
            }
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            // Some servers send errors with status 200.
            let error = body["error"].as_str();
            if answer.is_ok() && error.is_none() {
                return Ok(answer);
            }
            nonces += 1;
            if error == Some("use_dpop_nonce") && ask.key.is_some() && nonces <= MAX_NONCES {
                continue;
            }
            return Err(match error {
                Some(code) => {
                    AuthError::rejected(ask.issuer, code, body["error_description"].as_str())
                }
                None => AuthError::Unreachable(format!(
                    "`{}` answers with {} instead of a token. Try again later.",
                    shown(ask.issuer),
                    answer.status
                )),
            });
        }
    }

    async fn send(&self, ask: &TokenAsk<'_>) -> Result<Answer, AuthError> {
        let now = self.now()?;
        let mut fields = ask.fields.clone();
        let client = ask.client;
        let (secret, assertion);
        let mut basic = None;
        match client.method {
            Method::None => {
                if !client.id.is_empty() {
                    fields.push(("client_id", &client.id));
                }
            }
            Method::Basic => {
                // RFC 6749 §2.3.1: both are encoded before they are joined.
                let secret = client.secret.as_deref().unwrap_or_default();
                let pair = format!("{}:{}", encoded(&client.id), encoded(secret));
                basic = Some(format!("Basic {}", STANDARD.encode(pair)));
            }
            Method::Post => {
                secret = client.secret.clone().unwrap_or_default();
                fields.extend([("client_id", &*client.id), ("client_secret", &secret)]);
            }
            Method::PrivateKey => {
                assertion = assert_client(client, ask.issuer, now)?;
                fields.extend([
                    ("client_assertion_type", ASSERTION_TYPE),
                    ("client_assertion", &assertion),
                ]);
            }
        }
        let mut request = Ask::form(ask.endpoint, &fields);
        if let Some(basic) = basic {
            request = request.header("authorization", basic);
        }
        if let Some(key) = ask.key {
            let nonce = self.nonce_of(ask.endpoint);
            let proof = dpop::prove(key, "POST", ask.endpoint, None, nonce.as_deref(), now);
            request = request.header("dpop", proof);
        }
        self.fetcher()?.fetch(request).await.map_err(|error| match error {
            FetchError::Failed(why) => AuthError::Unreachable(format!(
                "`{}` cannot be reached: {why}",
                shown(ask.endpoint)
            )),
            forbidden => forbidden.into(),
        })
    }
}

/// A client assertion for this issuer only (RFC 7523 §2.2).
pub(super) fn assert_client(
    client: &Client,
    issuer: &str,
    now: SystemTime,
) -> Result<String, AuthError> {
    let Some(key) = &client.key else {
        let why = format!("The set-up lacks the key of `{}`.", client.id);
        return Err(AuthError::Setup(why));
    };
    let now = seconds(now);
    let claims = json!({
        "iss": client.id,
        "sub": client.id,
        "aud": issuer,
        "jti": random_name(),
        "iat": now,
        "exp": now + ASSERTION_LIFE,
    });
    Ok(key.sign(json!({"typ": "JWT"}), &claims))
}

#[derive(Deserialize)]
struct Body {
    access_token: String,
    token_type: Option<String>,
    refresh_token: Option<String>,
    expires_in: Option<Value>,
    scope: Option<String>,
    id_token: Option<String>,
}

/// Parses the response of a token endpoint (RFC 6749 §5.1).
fn read(issuer: &str, answer: &Answer, now: SystemTime) -> Result<Tokens, AuthError> {
    let body: Body = serde_json::from_slice(&answer.body)
        .map_err(|_| broken(issuer, "its answer has no access token"))?;
    if !is_sound(&body.access_token) {
        return Err(broken(issuer, "its access token cannot stand in a header"));
    }
    let is_bound = match body.token_type.as_deref() {
        None => false,
        Some(it) if it.eq_ignore_ascii_case("bearer") => false,
        Some(it) if it.eq_ignore_ascii_case("dpop") => true,
        Some(_) => return Err(broken(issuer, "its token is of a type that we do not know")),
    };
    let life = body.expires_in.as_ref().and_then(life);
    let (expires, renew) = life.map(|it| times(now, it)).unzip();
    Ok(Tokens {
        subject: subject(body.id_token.as_deref(), &body.access_token),
        access: body.access_token,
        is_bound,
        refresh: body.refresh_token.filter(|it| !it.is_empty()),
        expires,
        renew,
        scope: body.scope,
    })
}

/// The lifetime of a token. Some servers send it as a string.
fn life(says: &Value) -> Option<u64> {
    let life = says
        .as_u64()
        .or_else(|| says.as_str()?.parse().ok())
        .or_else(|| says.as_f64().filter(|it| *it >= 0.0).map(|it| it as u64))?;
    (life <= MAX_LIFE).then_some(life)
}

/// When it expires, and when it is refreshed: half a minute before, or after three quarters of a
/// short lifetime, and at least a second before: some servers revoke a login when they see a token
/// that has just expired.
fn times(now: SystemTime, life: u64) -> (u64, u64) {
    let ends = seconds(now + Duration::from_secs(life));
    (ends, ends - life.div_ceil(4).min(MARGIN))
}

/// The subject in the token. Not verified: it is only displayed.
fn subject(id_token: Option<&str>, access: &str) -> Option<String> {
    let claims = |token: &str| -> Option<Value> {
        serde_json::from_slice(&jose::unverified_payload(token).ok()?).ok()
    };
    let text = |claims: &Value, name: &str| claims[name].as_str().map(super::error::said);
    if let Some(claims) = id_token.and_then(claims) {
        return ["preferred_username", "email", "sub"].iter().find_map(|it| text(&claims, it));
    }
    text(&claims(access)?, "sub")
}

/// Whether a token is valid in a header.
pub(super) fn is_sound(token: &str) -> bool {
    (1..=MAX_TOKEN).contains(&token.len()) && token.bytes().all(|it| it.is_ascii_graphic())
}

pub(super) fn broken(issuer: &str, why: &str) -> AuthError {
    AuthError::Unreachable(format!(
        "`{}` cannot be used to log in: {why}. Tell its operator.",
        shown(issuer)
    ))
}

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const ASSERTION_LIFE: u64 = 60;
const MAX_NONCES: u32 = 2;
const MAX_TOKEN: usize = 16 * 1024;
/// Ten years.
const MAX_LIFE: u64 = 10 * 365 * 24 * 3600;
const MARGIN: u64 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    fn parse(body: &str) -> Result<Tokens, AuthError> {
        read("https://id.example", &Answer::new(200, body), at(1000))
    }

    #[test]
    fn tokens_are_read() {
        let tokens = parse(
            r#"{"access_token":"a","token_type":"bearer","expires_in":3600,"refresh_token":"r","scope":"x y"}"#,
        )
        .ok()
        .unwrap();
        assert_eq!(tokens.access, "a");
        assert_eq!((tokens.refresh.as_deref(), tokens.scope.as_deref()), (Some("r"), Some("x y")));
        assert_eq!(
            (tokens.expires, tokens.renew, tokens.is_bound),
            (Some(4600), Some(4570), false)
        );
        for (body, expires, renew) in [
            (r#"{"access_token":"a"}"#, None, None),
            (r#"{"access_token":"a","expires_in":null}"#, None, None),
            (r#"{"access_token":"a","expires_in":"60"}"#, Some(1060), Some(1045)),
            (r#"{"access_token":"a","expires_in":60.9}"#, Some(1060), Some(1045)),
            (r#"{"access_token":"a","expires_in":0}"#, Some(1000), Some(1000)),
            (r#"{"access_token":"a","expires_in":-1}"#, None, None),
            (r#"{"access_token":"a","expires_in":99999999999999}"#, None, None),
        ] {
            let tokens = parse(body).ok().unwrap();
            assert_eq!((tokens.expires, tokens.renew), (expires, renew), "{body}");
        }
        assert!(parse(r#"{"access_token":"a","token_type":"DPoP"}"#).ok().unwrap().is_bound);
        let empty = parse(r#"{"access_token":"a","refresh_token":""}"#).ok().unwrap();
        assert_eq!(empty.refresh, None);
    }

    #[test]
    fn what_is_no_token_is_refused_without_being_shown() {
        for body in [
            "",
            "secret",
            "{}",
            r#"{"access_token":1}"#,
            r#"{"access_token":""}"#,
            r#"{"access_token":"secret\n"}"#,
            r#"{"access_token":"sec ret"}"#,
            r#"{"access_token":"secret","token_type":"mac"}"#,
            &format!(r#"{{"access_token":"{}"}}"#, "x".repeat(MAX_TOKEN + 1)),
        ] {
            let error = parse(body).err().unwrap().to_string();
            assert!(error.starts_with("`https://id.example` cannot be used"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
