//! The authorization server: which endpoint a request is for.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde_json::Value;
use trunkline_auth::jose::Jwks;

use crate::desk::{Desk, Terms};
use crate::fault::Fault;
use crate::message::{Request, Response};
use crate::settings::Settings;
use crate::stats::Stats;
use crate::{metadata, page};

/// An authorization server, for tests and for trying out. **Not for production.**
pub struct Authority {
    issuer: String,
    desk: Mutex<Desk>,
}

impl Authority {
    /// An authorization server that calls itself `issuer`: a URL without query and fragment, and
    /// without a slash at its end.
    pub fn new(issuer: impl Into<String>, settings: Settings) -> Self {
        let issuer = issuer.into();
        Self { issuer: issuer.clone(), desk: Mutex::new(Desk::new(issuer, settings)) }
    }

    /// What it calls itself, byte for byte.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The response to a request.
    pub fn answer(&self, request: Request) -> Response {
        self.desk().answer(&request)
    }

    /// The URL of the client's metadata that has to be fetched before this request can be
    /// answered, if one has to. [`Self::learn`] is told what was found.
    pub fn wants(&self, request: &Request) -> Option<String> {
        self.desk().wants(request)
    }

    /// What was found at the URL of a client; `None` if nothing was.
    pub fn learn(&self, url: &str, found: Option<&[u8]>, now: SystemTime) {
        self.desk().learn(url, found, now);
    }

    /// What has happened so far.
    pub fn stats(&self) -> Stats {
        self.desk().stats.clone()
    }

    /// The public keys that its tokens are signed with.
    pub fn keys(&self) -> Jwks {
        self.desk().jwks()
    }

    /// Signs with a new key from now on. The old ones are still published.
    pub fn rotate_keys(&self) {
        self.desk().rotate();
    }

    /// An access token for a user, given out without asking: `scope` is words between spaces.
    pub fn token(&self, user: &str, resource: &str, scope: &str, now: SystemTime) -> String {
        let terms = Terms {
            client: "trunkline-authority".to_owned(),
            subject: user.to_owned(),
            scopes: crate::fields::words(scope),
            resource: resource.to_owned(),
            jkt: None,
        };
        self.desk().mint(&terms, None, now)
    }

    /// An ID token that tells the client `client` who its user is.
    pub fn id_token(&self, user: &str, client: &str, now: SystemTime) -> String {
        self.desk().id_token(user, client, None, now)
    }

    /// Signs any claims at all, with this `typ` in the header: what tests of refusals need.
    pub fn sign(&self, typ: &str, claims: &Value) -> String {
        self.desk().sign(typ, claims)
    }

    /// A handler cannot leave the desk half written: what it changes, it changes at its end.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Desk {
    fn answer(&mut self, request: &Request) -> Response {
        self.stats.requests += 1;
        if !self.is_addressed(request) {
            let why = "This server is not known by the name in `Host`.";
            return page::message(421, "Not here", why);
        }
        let Some(endpoint) = self.endpoint(&request.path) else {
            return page::message(404, "Not found", "There is nothing at this address.");
        };
        let (allowed, is_public) = endpoint.rules();
        if request.method == "OPTIONS" && is_public {
            return Response::new(204)
                .public()
                .with("access-control-allow-methods", allowed)
                .with(
                    "access-control-allow-headers",
                    "Authorization, Content-Type, DPoP, MCP-Protocol-Version",
                )
                .with("access-control-max-age", "600");
        }
        let method = if request.method == "HEAD" { "GET" } else { &*request.method };
        if !allowed.split(", ").any(|it| it == method) {
            let why = "This address is not for this method.";
            return page::message(405, "Not like this", why).with("allow", allowed);
        }
        let answer = match endpoint {
            Endpoint::Home => Ok(self.home()),
            Endpoint::Metadata => Ok(self.metadata()),
            Endpoint::Keys => Ok(Response::of(200, &serde_json::json!(self.jwks()))),
            Endpoint::Register => self.register(request),
            Endpoint::Authorize => return self.counted(|desk| desk.authorize(request)),
            Endpoint::Decide => return self.counted(|desk| desk.decide(request)),
            Endpoint::Token => self.token(request),
            Endpoint::Introspect => self.introspect(request),
            Endpoint::Revoke => self.revoke(request),
        };
        let response = answer.unwrap_or_else(|fault| {
            self.stats.refusals += 1;
            fault.response()
        });
        if is_public { response.public() } else { response }
    }

    fn counted(&mut self, act: impl FnOnce(&mut Self) -> Result<Response, Response>) -> Response {
        act(self).unwrap_or_else(|refused| {
            self.stats.refusals += 1;
            refused
        })
    }

    /// Which endpoint a path means. Discovery looks in three places (RFC 8414 §3, OpenID).
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        let (oauth, openid) = metadata::WELL_KNOWN;
        let root = &self.root;
        if path == format!("{oauth}{root}")
            || path == format!("{openid}{root}")
            || path == format!("{root}{openid}")
        {
            return Some(Endpoint::Metadata);
        }
        match path.strip_prefix(&**root)? {
            "" | "/" => Some(Endpoint::Home),
            "/jwks" => Some(Endpoint::Keys),
            "/register" if self.settings.registration => Some(Endpoint::Register),
            "/authorize" => Some(Endpoint::Authorize),
            "/authorize/decision" => Some(Endpoint::Decide),
            "/token" => Some(Endpoint::Token),
            "/introspect" => Some(Endpoint::Introspect),
            "/revoke" => Some(Endpoint::Revoke),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Endpoint {
    Home,
    Metadata,
    Keys,
    Register,
    Authorize,
    Decide,
    Token,
    Introspect,
    Revoke,
}

impl Endpoint {
    /// The methods it answers, and whether pages of other origins may read it.
    fn rules(self) -> (&'static str, bool) {
        match self {
            Self::Home | Self::Authorize => ("GET", false),
            Self::Decide => ("POST", false),
            Self::Metadata | Self::Keys => ("GET, OPTIONS", true),
            Self::Register | Self::Token | Self::Introspect | Self::Revoke => {
                ("POST, OPTIONS", true)
            }
        }
    }
}

impl From<crate::shelf::Full> for Fault {
    fn from(_: crate::shelf::Full) -> Self {
        Self::full()
    }
}
