//! The console on the admin listener: how a browser gets in.
//!
//! The page ([`page`](super::page)) holds no secret and is served to everyone. A link with a key lets one browser in; from then on its cookie
//! stands for the admin token, and every request that changes something has to repeat a token that only the page
//! knows.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use trunkline_auth::tag::random_name;
use trunkline_transport::http::HttpBody;

use super::console_keys::{ConsoleKeys, Stay, is_same};
use super::{Complaint, answer};
use crate::server::now;

/// The console of a process.
pub(super) struct Console {
    /// Where browsers reach it, such as `http://127.0.0.1:7374`; `None` if they cannot.
    place: Option<String>,
    /// The name of the cookie: browsers do not keep the cookies of two ports apart.
    cookie: String,
    keys: Mutex<ConsoleKeys>,
}

impl Console {
    pub(super) fn new(place: Option<String>) -> Arc<Self> {
        let port = place.as_deref().and_then(|it| it.rsplit(':').next()).unwrap_or_default();
        let cookie = format!("trunkline_console_{port}");
        Arc::new(Self { place, cookie, keys: Mutex::default() })
    }

    /// A link that lets one browser in.
    pub(super) fn link(&self) -> Result<String, Complaint> {
        let place = self.place.as_ref().ok_or_else(|| {
            Complaint::new(StatusCode::CONFLICT, "No browser reaches this gateway's console.")
                .advice("Ask a gateway that serves HTTP, or set `gateway.admin.listen: 127.0.0.1:7374`.")
        })?;
        let key = random_name();
        self.keys().issue(key.clone(), now());
        Ok(format!("{place}/#k={key}"))
    }

    /// Lets a browser in that has a key.
    pub(super) fn enter(&self, body: &[u8]) -> Result<Response<HttpBody>, Complaint> {
        #[derive(Deserialize)]
        struct Body {
            key: String,
        }
        let Ok(Body { key }) = serde_json::from_slice(body) else {
            let message = "Send `{\"key\":\"…\"}` with the key of a link.";
            return Err(Complaint::new(StatusCode::BAD_REQUEST, message));
        };
        let (cookie, csrf) = (random_name() + &random_name(), random_name());
        if !self.keys().enter(&key, cookie.clone(), csrf.clone(), now()) {
            let message = "This link was used already, or it is older than five minutes.";
            return Err(Complaint::new(StatusCode::UNAUTHORIZED, message).advice(ANOTHER));
        }
        let mut response = answer::json(StatusCode::OK, &json!({ "csrf": csrf }));
        self.set_cookie(response.headers_mut(), &cookie, "");
        Ok(response)
    }

    /// What the page needs after it was loaded again.
    pub(super) fn me(&self, head: &Parts) -> Result<Value, Complaint> {
        // A script can set no such header: the browser vouches for the page.
        if site(head) != Some("same-origin") {
            let message = "Only the console's own page may ask this.";
            return Err(Complaint::new(StatusCode::FORBIDDEN, message));
        }
        let cookie = self.given(head).ok_or_else(not_in)?;
        let mut keys = self.keys();
        let csrf = keys.csrf(cookie, now()).ok_or_else(not_in)?;
        Ok(json!({ "csrf": csrf }))
    }

    /// Ends the session of a browser.
    pub(super) fn leave(&self, head: &Parts) -> Response<HttpBody> {
        if let Some(cookie) = self.given(head) {
            self.keys().leave(cookie);
        }
        let mut response = answer::json(StatusCode::OK, &json!({}));
        self.set_cookie(response.headers_mut(), "", "; Max-Age=0");
        response
    }

    /// For how long the browser is let in that the request comes from; `None` if it has no cookie of ours.
    pub(super) fn knows(&self, head: &Parts) -> Option<Result<Stay, Complaint>> {
        let cookie = self.given(head)?;
        let mut keys = self.keys();
        let Some((csrf, stay)) = keys.entered(cookie, now()) else { return Some(Err(not_in())) };
        // Pages of other ports of this machine are of the same site, and a browser sends them the cookie.
        if site(head).is_some_and(|it| it != "same-origin") {
            let message = "Another page may not use the console's session.";
            return Some(Err(Complaint::new(StatusCode::FORBIDDEN, message)));
        }
        let changes = !matches!(head.method, Method::GET | Method::HEAD);
        let given = head.headers.get(CSRF).and_then(|it| it.to_str().ok()).unwrap_or_default();
        if changes && !is_same(csrf, given) {
            let message = "The page has to say the token that it got when it was let in.";
            return Some(Err(Complaint::new(StatusCode::FORBIDDEN, message)
                .advice(format!("Send it as `{CSRF}`."))));
        }
        Some(Ok(stay))
    }

    /// The cookie that the request carries.
    fn given<'h>(&self, head: &'h Parts) -> Option<&'h str> {
        let all = head.headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut pairs = all.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }

    fn set_cookie(&self, headers: &mut HeaderMap, value: &str, more: &str) {
        let is_tls = self.place.as_deref().is_some_and(|it| it.starts_with("https:"));
        let secure = if is_tls { "; Secure" } else { "" };
        let cookie = &self.cookie;
        let text = format!("{cookie}={value}; HttpOnly; SameSite=Strict; Path=/{secure}{more}");
        let value = HeaderValue::try_from(text).expect("a cookie of ours is ASCII");
        headers.insert(header::SET_COOKIE, value);
    }

    fn keys(&self) -> MutexGuard<'_, ConsoleKeys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Console {
    /// Without keys and sessions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Console({:?})", self.place)
    }
}

/// Where the page is that sends the request, as the browser says.
fn site(head: &Parts) -> Option<&str> {
    head.headers.get("sec-fetch-site").map(|it| it.to_str().unwrap_or_default())
}

fn not_in() -> Complaint {
    let message = "This browser was not let in here, or it is too long ago.";
    Complaint::new(StatusCode::UNAUTHORIZED, message).advice(ANOTHER)
}

/// The header with the token against forged requests.
const CSRF: &str = "x-trunkline-csrf";
const ANOTHER: &str = "Make another link with `trunkline console`.";
