//! Answers a browser's requests with pages, in this order:
//!
//! ```text
//! GET  /accounts/login/LINK    shows whose account will be connected to what; changes nothing
//! POST /accounts/login/LINK    takes a token of the catalog, or redirects to the gateway's own issuer
//! GET  /accounts/callback      from the issuer: is it that principal? Then redirects to the server's own
//! GET  /accounts/callback      from there: connected
//! ```
//!
//! A user who opens a link must prove to be the principal that it was made for. Otherwise an attacker could
//! make another person log in for them (2025-11-25 §Elicitation, "Phishing").

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Buf;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use tokio::time::timeout;
use trunkline_auth::Principal;
use trunkline_auth::address::{Guard, Reach};
use trunkline_auth::client::OAuth;
use trunkline_auth::client::vault::Vault;
use trunkline_auth::credentials::{Credentials, Target};
use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};
use trunkline_auth::resource::{Gate, HeadView};
use trunkline_auth::tag::random_name;
use trunkline_auth::url;
use trunkline_transport::auth::{HttpFetch, MemoryVault};
use trunkline_transport::http::{HttpBody, plain};

use super::desk::{LIFE, Lost, Step};
use super::flow::{Flow, FlowStep};
use super::pages::Page;
use super::vault::is_of_all;
use super::{Accounts, Changed, Owner};
use crate::bearer;
use crate::catalog::plan::Plan;

/// The prefix of all pages.
pub(crate) const PATHS: &str = "/accounts/";
pub(super) const LOGIN: &str = "/accounts/login/";
pub(super) const CALLBACK: &str = "/accounts/callback";
/// The gateway's client metadata document.
pub(super) const DOCUMENT: &str = "/accounts/client.json";

type Shown = Response<HttpBody>;

impl Accounts {
    /// Answers a request whose Host and Origin were checked. Returns the account that it changed.
    pub(crate) async fn answer<B>(
        &self,
        request: Request<B>,
        plan: &Plan,
        gate: Option<&Gate>,
    ) -> (Shown, Option<Changed>)
    where
        B: Body,
    {
        let (head, body) = request.into_parts();
        let (path, method) = (head.uri.path(), &head.method);
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        let link = path.strip_prefix(LOGIN).map(|it| it.split_once('.').map_or(it, |it| it.1));
        let page = match link {
            Some(link) if is_read => self.first(link),
            Some(link) if *method == Method::POST => {
                let Some(form) = read_form(body).await else {
                    let why = "The form did not arrive. Go back and send it again.";
                    return (wrong(StatusCode::BAD_REQUEST, "Not understood", why), None);
                };
                self.begin(link, &form, &head.headers, plan, gate).await
            }
            None if path == CALLBACK && is_read => {
                let query = head.uri.query().unwrap_or_default();
                return self.callback(query, &head.headers, plan, gate).await;
            }
            None if path == DOCUMENT && is_read => self.document(),
            _ => wrong(StatusCode::NOT_FOUND, "Nothing here", "Open the link of your client."),
        };
        (page, None)
    }

    /// The other replica that alone can answer a request, if one can: it made the link, or began the login.
    pub(crate) fn holder<'a, B>(&self, request: &'a Request<B>) -> Option<&'a str> {
        let me = self.me.as_deref()?;
        let named = match request.uri().path().strip_prefix(LOGIN) {
            Some(link) => link,
            None if request.uri().path() == CALLBACK => self.cookie_in(request.headers())?,
            None => return None,
        };
        named.split_once('.').map(|(holder, _)| holder).filter(|it| *it != me)
    }

    fn first(&self, link: &str) -> Shown {
        match self.desk().look(link, SystemTime::now()) {
            Some(Owner { server, name, issuer, .. }) => {
                let asks_token = issuer.is_none();
                page(StatusCode::OK, &Page::Begin { server, name, asks_token, why: None })
            }
            None => used_up(),
        }
    }

    async fn begin(
        &self,
        link: &str,
        form: &str,
        headers: &HeaderMap,
        plan: &Plan,
        gate: Option<&Gate>,
    ) -> Shown {
        let now = SystemTime::now();
        let Some(owner) = self.desk().look(link, now).cloned() else { return used_up() };
        let Some(gate) = gate else { return used_up() };
        let browser = self.cookie_in(headers).filter(|it| self.desk().knows(it));
        let browser = browser.map_or_else(|| self.ours(random_name()), str::to_owned);
        if let Some(issuer) = owner.issuer.clone() {
            let Some(owner) = self.desk().open(link, now) else { return used_up() };
            self.desk().drop_unfinished(&owner);
            let flow = self.proof(&issuer, plan, gate);
            return self.next_page(owner, browser, Step::Proving, flow, None).await.0;
        }
        let fields = url::fields(form);
        let token = fields.iter().find(|(name, _)| name == "token").map(|(_, it)| it.trim());
        let authorization = format!("Bearer {}", token.unwrap_or_default());
        let shown = [("authorization", authorization.as_bytes())];
        let admitted = gate.admit(HeadView::new("POST", "/mcp", None, shown)).await;
        match admitted {
            Err(_) => {
                self.desk().failed(link, now);
                let why =
                    Some("That token is not let in here. Type the one that your client uses.");
                let Owner { server, name, .. } = &owner;
                let begin = Page::Begin { server, name, asks_token: true, why };
                page(StatusCode::FORBIDDEN, &begin)
            }
            Ok(admission) => {
                // Consumed, even if the user is another principal.
                let Some(owner) = self.desk().open(link, now) else { return used_up() };
                if let Some(refusal) = refuse_other(&owner, &admission.principal) {
                    return refusal;
                }
                self.connect(owner, browser, plan).await.0
            }
        }
    }

    async fn callback(
        &self,
        query: &str,
        headers: &HeaderMap,
        plan: &Plan,
        gate: Option<&Gate>,
    ) -> (Shown, Option<Changed>) {
        let fields = url::fields(query);
        let state = fields.iter().find(|(name, _)| name == "state").map(|(_, it)| &**it);
        let back =
            self.desk().back(state.unwrap_or_default(), self.cookie_in(headers), SystemTime::now());
        let (owner, browser, step, mut flow) = match back {
            Ok(visit) => visit,
            Err(lost) => return (lost_page(&lost), None),
        };
        let next = flow.returned(query.to_owned()).await;
        let answer = self.next_page(owner.clone(), browser.clone(), step, flow, Some(next)).await;
        let (page, Some(flow)) = answer else { return (answer.0, None) };
        match (step, gate) {
            (Step::Connecting, _) => match self.keep(&owner, Arc::clone(&flow.oauth)).await {
                Ok(()) => (page, Some(Changed { owner, is_logged_in: true })),
                Err(error) => (failed(&error.to_string()), None),
            },
            (Step::Proving, Some(gate)) => match proven(&flow.oauth, gate).await {
                Ok(principal) => match refuse_other(&owner, &principal) {
                    Some(refusal) => (refusal, None),
                    None => (self.connect(owner, browser, plan).await.0, None),
                },
                Err(why) => (failed(&why), None),
            },
            (Step::Proving, None) => (used_up(), None),
        }
    }

    /// Sends the browser to the server's authorization server.
    async fn connect(&self, owner: Owner, browser: String, plan: &Plan) -> (Shown, Option<Flow>) {
        let server = plan.servers.get(&owner.server);
        let oauth = server.and_then(|it| self.oauth(it, &owner.id));
        let (Some(oauth), Some(uri)) = (oauth, self.redirect_uri()) else {
            return (failed("The server is no longer in the catalog."), None);
        };
        // An abandoned login holds the lock of this one.
        self.desk().drop_unfinished(&owner);
        let flow = Flow::begin(oauth, uri);
        self.next_page(owner, browser, Step::Connecting, flow, None).await
    }

    /// The page after a step: a redirect, or the end with its outcome.
    async fn next_page(
        &self,
        owner: Owner,
        browser: String,
        step: Step,
        mut flow: Flow,
        next: Option<FlowStep>,
    ) -> (Shown, Option<Flow>) {
        let next = match next {
            Some(next) => next,
            None => flow.next().await,
        };
        let (server, name) = (owner.server.clone(), owner.name.clone());
        let (server, name) = (&*server, &*name);
        match next {
            FlowStep::Done(Ok(())) => {
                (page(StatusCode::OK, &Page::Done { server, name }), Some(flow))
            }
            FlowStep::Done(Err(error)) => (failed(&error.to_string()), None),
            FlowStep::Redirect(to) => {
                let query = to.split_once('?').map(|it| it.1).unwrap_or_default();
                let fields = url::fields(query);
                let state = fields.into_iter().find(|(name, _)| name == "state");
                let state = state.map(|(_, it)| it).unwrap_or_default();
                let cookie = self.cookie(&browser);
                let visit = (owner.clone(), browser, step);
                if self.desk().away(state, visit, flow, SystemTime::now()).is_err() {
                    let why = "Too many logins are open. Finish one, or try again in ten minutes.";
                    return (wrong(StatusCode::TOO_MANY_REQUESTS, "Not now", why), None);
                }
                let proves = step == Step::Proving;
                let mut left = page(StatusCode::OK, &Page::Leave { server, name, to: &to, proves });
                if let Ok(cookie) = HeaderValue::try_from(cookie) {
                    left.headers_mut().insert(header::SET_COOKIE, cookie);
                }
                (left, None)
            }
        }
    }

    /// A login at the gateway's own issuer; its token is valid for the gateway and is not stored.
    fn proof(&self, issuer: &str, plan: &Plan, gate: &Gate) -> Flow {
        let auth = &plan.gateway.auth;
        let fetch = OwnDocument {
            url: trunkline_auth::metadata::protected_resource_url(gate.resource()),
            document: gate.document(PROTECTED_RESOURCE).unwrap_or_default().to_owned(),
            fetch: HttpFetch::new(Guard::new(Reach::Local)),
        };
        let vault = Unkept { kept: Arc::clone(&self.vault), rest: MemoryVault::new() };
        let oauth = OAuth::new(gate.resource()).fetch(Arc::new(fetch)).vault(Arc::new(vault));
        let oauth = self.as_client(oauth, &auth.client).for_issuer(issuer).scopes(&auth.scopes);
        Flow::begin(oauth.offline_access(false), self.redirect_uri().unwrap_or_default())
    }

    fn redirect_uri(&self) -> Option<String> {
        Some(format!("{}{CALLBACK}", self.origin()?))
    }

    /// The gateway's client metadata, for authorization servers that accept a URL as client id.
    fn document(&self) -> Shown {
        let origin = self.origin().unwrap_or_default();
        let document = serde_json::json!({
            "client_id": format!("{origin}{DOCUMENT}"),
            "client_name": "trunkline gateway",
            "redirect_uris": [format!("{origin}{CALLBACK}")],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        let mut response = plain(StatusCode::OK, document.to_string());
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }

    fn cookie(&self, browser: &str) -> String {
        let (name, life) = (self.cookie_name(), LIFE.as_secs());
        let more = if self.is_secure() { "; Path=/; Secure" } else { "; Path=/accounts" };
        format!("{name}={browser}; Max-Age={life}; HttpOnly; SameSite=Lax{more}")
    }

    /// Over `https` the `__Host-` prefix keeps other hosts of the domain from setting it (RFC 6265bis
    /// §4.1.3.2).
    fn cookie_name(&self) -> &'static str {
        if self.is_secure() { "__Host-trunkline_login" } else { "trunkline_login" }
    }

    fn cookie_in<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.cookie_name();
        let all = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut pairs = all.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
        pairs.find(|(it, _)| *it == name).map(|(_, value)| value)
    }

    fn is_secure(&self) -> bool {
        self.origin().is_some_and(|it| it.starts_with("https://"))
    }
}

/// The principal that the gateway's own gate sees behind a new login.
async fn proven(oauth: &OAuth, gate: &Gate) -> Result<Principal, String> {
    let target = Target { method: "POST", url: gate.resource() };
    let headers = oauth.headers(target).await.map_err(|it| it.to_string())?;
    let headers: Vec<_> = headers.iter().map(|(name, it)| (*name, it.as_bytes())).collect();
    let path = gate.resource().splitn(4, '/').nth(3).unwrap_or_default();
    let admitted = gate.admit(HeadView::new("POST", &format!("/{path}"), None, headers)).await;
    // The token is revoked once it has proven the identity.
    let _ = oauth.logout().await;
    admitted.map(|it| it.principal).map_err(|it| it.to_string())
}

/// Refuses a user who is not the principal that the link was made for.
fn refuse_other(owner: &Owner, principal: &Principal) -> Option<Shown> {
    if *principal.id() == *owner.id {
        return None;
    }
    let why = format!(
        "This link was made for `{}`, and you are `{}`. Nothing was connected. If somebody sent it to you, they \
         may want to use your account; make a call of your own to get a link of your own.",
        owner.name,
        bearer::name(principal)
    );
    Some(wrong(StatusCode::FORBIDDEN, "Not your link", &why))
}

fn lost_page(lost: &Lost) -> Shown {
    let why = match lost {
        Lost::Unknown => {
            "This login is over, or took longer than ten minutes. Make the call again to get a new link."
        }
        Lost::OtherBrowser => {
            "This login was begun in another browser. Go on there, or make the call again to get a new link."
        }
    };
    wrong(StatusCode::FORBIDDEN, "Not connected", why)
}

/// The page for a link that is over.
pub(crate) fn used_up() -> Shown {
    let why =
        "This link was used, or is older than ten minutes. Make the call again to get a new one.";
    wrong(StatusCode::GONE, "This link is over", why)
}

fn failed(why: &str) -> Shown {
    let why = format!("{why} Make the call again to get a new link.");
    wrong(StatusCode::BAD_GATEWAY, "Not connected", &why)
}

fn wrong(status: StatusCode, title: &str, why: &str) -> Shown {
    page(status, &Page::Wrong { title, why })
}

fn page(status: StatusCode, page: &Page<'_>) -> Shown {
    let mut response = plain(status, page.html());
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Reads a form within the bounds of size and time.
pub(crate) async fn read_form<B: Body>(body: B) -> Option<String> {
    let reading = async {
        let (mut text, mut body) = (Vec::new(), pin!(body));
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let Ok(mut data) = frame.ok()?.into_data() else { continue };
            if text.len() + data.remaining() > FORM {
                return None;
            }
            text.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        String::from_utf8(text).ok()
    };
    timeout(FORM_TIME, reading).await.ok().flatten()
}

/// Answers requests for the gateway's own client metadata directly: the gateway may be unable to reach itself
/// under the name that browsers use.
struct OwnDocument {
    url: Option<String>,
    document: String,
    fetch: HttpFetch,
}

impl Fetch for OwnDocument {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        if ask.method == "GET" && Some(&ask.url) == self.url.as_ref() {
            let answer = Answer::new(200, self.document.clone());
            return Box::pin(async { Ok(answer.header("content-type", "application/json")) });
        }
        self.fetch.fetch(ask)
    }

    fn now(&self) -> SystemTime {
        self.fetch.now()
    }

    fn detach(&self, work: Pending<'static, ()>) -> Pending<'static, ()> {
        self.fetch.detach(work)
    }
}

/// Stores registrations only: identity is proven each time.
struct Unkept {
    kept: Arc<dyn Vault>,
    rest: MemoryVault,
}

impl Unkept {
    fn of(&self, name: &str) -> &dyn Vault {
        if is_of_all(name) { &*self.kept } else { &self.rest }
    }
}

type Kept<T> = Result<T, trunkline_auth::client::vault::VaultError>;

impl Vault for Unkept {
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Kept<Option<String>>> {
        self.of(name).get(name)
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Kept<()>> {
        self.of(name).put(name, text)
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Kept<()>> {
        self.of(name).remove(name)
    }

    fn names(&self) -> Pending<'_, Kept<Vec<String>>> {
        self.rest.names()
    }

    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Kept<Box<dyn Send>>> {
        self.of(name).lock(name)
    }
}

const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const FORM: usize = 16 * 1024;
const FORM_TIME: Duration = Duration::from_secs(10);
/// No scripts, no frames, no caching, no referrer. The pages lead elsewhere by links only, since `form-action`
/// also applies to redirects.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_TYPE, "text/html; charset=utf-8"),
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_visits_lead_to_the_replica_that_has_them() {
        let accounts = Accounts::new(Arc::new(MemoryVault::new()), Some("a".to_owned()));
        let request = |path: &str, cookie: &str| {
            let request = Request::get(path).header(header::COOKIE, cookie);
            request.body(()).unwrap()
        };
        accounts.reached_at("http://127.0.0.1:7373/mcp");
        for (path, cookie, expected) in [
            ("/accounts/login/b.sealed", "", Some("b")),
            ("/accounts/login/a.sealed", "", None),
            ("/accounts/login/sealed", "", None),
            ("/accounts/callback?state=x", "trunkline_login=b.visit", Some("b")),
            ("/accounts/callback?state=x", "trunkline_login=a.visit", None),
            ("/accounts/callback?state=x", "", None),
            ("/accounts/client.json", "trunkline_login=b.visit", None),
        ] {
            let request = request(path, cookie);
            assert_eq!(accounts.holder(&request), expected, "{path} {cookie}");
        }
        let alone = Accounts::new(Arc::new(MemoryVault::new()), None);
        assert_eq!(alone.holder(&request("/accounts/login/b.sealed", "")), None);
    }

    /// Another host of the domain can set cookies for it, but none with this prefix.
    #[test]
    fn over_https_the_cookie_is_one_that_only_this_host_can_set() {
        let accounts = Accounts::new(Arc::new(MemoryVault::new()), None);
        let headers = |text: &'static str| {
            HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(text))])
        };
        let both = headers("trunkline_login=theirs; __Host-trunkline_login=ours");
        accounts.reached_at("http://127.0.0.1:7373/mcp");
        assert!(accounts.cookie("b").starts_with("trunkline_login=b; "));
        assert_eq!(accounts.cookie_in(&both), Some("theirs"));
        accounts.reached_at("https://mcp.example/mcp");
        let set = accounts.cookie("b");
        assert!(set.starts_with("__Host-trunkline_login=b; "), "{set}");
        assert!(
            set.contains("Path=/;") && set.contains("Secure") && set.contains("HttpOnly"),
            "{set}"
        );
        assert_eq!(accounts.cookie_in(&both), Some("ours"));
        assert_eq!(accounts.cookie_in(&headers("trunkline_login=theirs")), None);
    }
}
