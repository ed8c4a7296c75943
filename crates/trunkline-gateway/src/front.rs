//! HTTP requests → the clients of one selector or another: by path, by header, or all.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, Request, Response, StatusCode};
use trunkline_auth::address::{Guard, Reach};
use trunkline_auth::resource::{Gate, JwtIssuer, Protect};
use trunkline_proto::http::Refusal;
use trunkline_proto::http::door::Door;
use trunkline_proto::server::Memo;
use trunkline_transport::auth::HttpFetch;
use trunkline_transport::http::{
    Answers, Budgets, Endpoint, HttpBody, RequestBody, Settings, plain, refuse,
};

use crate::catalog::may_listen;
use crate::catalog::plan::{GatewayPlan, Inward};
use crate::face::{Face, Selector};
use crate::failure::{Failure, Stage};
use crate::gateway::Gateway;

/// The door of a gateway for HTTP.
pub struct Front {
    gateway: Gateway,
    doors: Mutex<Doors>,
    /// What all requests may hold together, whichever servers they choose.
    budgets: Budgets,
    /// Our own address, as clients see it.
    origin: String,
    address: SocketAddr,
}

/// What was built for the rules of who is let in that are in force.
struct Doors {
    plan: GatewayPlan,
    gate: Option<Arc<Gate>>,
    endpoints: HashMap<(Selector, String), Arc<Endpoint<Face>>>,
    /// The one that nearly everybody uses.
    all: Option<Arc<Endpoint<Face>>>,
    is_closing: bool,
}

impl Front {
    /// The door of a gateway that listens at `address`.
    pub fn new(gateway: &Gateway, address: SocketAddr) -> Result<Arc<Self>, Failure> {
        let plan = gateway.0.world().plan.gateway.clone();
        // It may have been changed since somebody last looked.
        may_listen(&address.to_string(), &plan)
            .map_err(|why| Failure::new("bad_auth", Stage::Policy, why))?;
        let scheme = if plan.tls.is_some() { "https" } else { "http" };
        let origin = format!("{scheme}://{address}");
        let gate = gate(&plan.auth, &origin)?;
        let doors = Doors { plan, gate, endpoints: HashMap::new(), all: None, is_closing: false };
        let (gateway, doors) = (gateway.clone(), Mutex::new(doors));
        let budgets = Budgets::new(&gateway.0.settings.limits, true);
        Ok(Arc::new(Self { gateway, doors, budgets, origin, address }))
    }

    /// Whether a plan can be followed here. One that is good by itself may leave a door open that was
    /// put elsewhere than it says.
    pub fn can_follow(&self, plan: &GatewayPlan) -> Result<(), Failure> {
        may_listen(&self.address.to_string(), plan)
            .map_err(|why| Failure::new("bad_auth", Stage::Policy, why))?;
        gate(&plan.auth, &self.origin).map(drop)
    }

    /// Follows a plan that was changed: who is let in is decided anew.
    pub fn follow(&self) -> Result<(), Failure> {
        let plan = self.gateway.0.world().plan.gateway.clone();
        let mut doors = self.lock();
        let is_same = (&doors.plan.auth, &doors.plan.hosts, &doors.plan.origins)
            == (&plan.auth, &plan.hosts, &plan.origins);
        if !is_same {
            doors.gate = gate(&plan.auth, &self.origin)?;
            doors.all = None;
            for (_, endpoint) in doors.endpoints.drain() {
                endpoint.hang_up();
            }
        }
        doors.plan = plan;
        Ok(())
    }

    /// Whether clients are let in: it is not closing.
    pub fn is_open(&self) -> bool {
        !self.lock().is_closing
    }

    /// Notes somebody who was not let in.
    fn note_refusal(&self, response: &Response<HttpBody>) {
        if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return;
        }
        if let Some(audit) = &self.gateway.0.world().audit {
            audit.refused(response.status().as_u16());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Doors> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a request goes.
    fn endpoint<B>(&self, request: &Request<B>) -> Result<To, Refusal> {
        let place = Place::of(request.uri().path());
        let selector = match place.is_mcp {
            true => chosen(&place, request.headers())?,
            false => Selector::All,
        };
        let mut doors = self.lock();
        // Nearly every request.
        if let (Selector::All, ALL, false, Some(all)) =
            (&selector, place.base, doors.plan.selector_required, &doors.all)
        {
            return Ok(To::Known(Arc::clone(all)));
        }
        if place.is_mcp {
            // Before anything is said of servers or kept for whoever asks.
            door(&doors.plan).check(request.uri(), request.headers())?;
        }
        if place.is_mcp && selector == Selector::All && doors.plan.selector_required {
            let why = "Choose servers: `/mcp/server/NAME`, `/mcp/tags/A,B`, or the header \
                       `X-Mcp-Server` or `X-Mcp-Tags`.";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, why));
        }
        let key = (selector, place.base.to_owned());
        if let Selector::Server(name) = &key.0
            && !self.gateway.0.world().servers.contains_key(name)
        {
            // Whoever may not come in does not learn which servers there are.
            return match doors.gate {
                Some(_) => Ok(To::Nowhere(self.build(&doors, &key), name.clone())),
                None => Err(nowhere(name)),
            };
        }
        if let Some(endpoint) = doors.endpoints.get(&key) {
            return Ok(To::Known(Arc::clone(endpoint)));
        }
        let is_all = key == (Selector::All, ALL.to_owned());
        if doors.endpoints.len() >= ENDPOINTS && !is_all {
            // A request that is about to be answered has one of its own.
            doors.endpoints.retain(|_, it| Arc::strong_count(it) > 1 || !it.is_idle());
        }
        if doors.endpoints.len() >= ENDPOINTS && !is_all {
            let why = "Too many different choices of servers are in use.";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        let endpoint = self.build(&doors, &key);
        if doors.is_closing {
            endpoint.hang_up();
        }
        if is_all {
            doors.all = Some(Arc::clone(&endpoint));
        }
        doors.endpoints.insert(key, Arc::clone(&endpoint));
        Ok(To::Known(endpoint))
    }

    fn build(&self, doors: &Doors, (selector, base): &(Selector, String)) -> Arc<Endpoint<Face>> {
        let shared = &self.gateway.0;
        let mut settings = Settings::new(shared.settings.limits.clone());
        settings.path = base.clone();
        let pair = match base.as_str() {
            ALL => ("/sse".to_owned(), "/messages".to_owned()),
            base => (format!("{base}/sse"), format!("{base}/messages")),
        };
        settings.sse_paths = Some(pair);
        settings.door = door(&doors.plan);
        settings.gate = doors.gate.clone();
        settings.budgets = Some(self.budgets.clone());
        let face = self.gateway.face(selector.clone());
        let mut core = trunkline_proto::server::Config::clone(&shared.core);
        core.instructions = shared.instructions(selector);
        Endpoint::new(Arc::new(core), face, settings)
    }
}

/// Who answers a request.
enum To {
    Known(Arc<Endpoint<Face>>),
    /// There is no such server; that is for those to know who are let in.
    Nowhere(Arc<Endpoint<Face>>, String),
}

fn nowhere(name: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("There is no server `{name}` here."))
}

/// For whom requests may be meant, and where they may come from.
fn door(plan: &GatewayPlan) -> Door {
    let mut door = Door::default();
    plan.hosts.iter().for_each(|it| door.allow_host(it));
    plan.origins.iter().for_each(|it| door.allow_origin(it));
    door
}

/// What a path says.
struct Place<'a> {
    /// The path of its endpoint.
    base: &'a str,
    selector: Option<Selector>,
    is_mcp: bool,
}

impl<'a> Place<'a> {
    fn of(path: &'a str) -> Self {
        let base = path.strip_suffix("/sse").or_else(|| path.strip_suffix("/messages"));
        let base = base.filter(|it| it.starts_with("/mcp/")).unwrap_or(path);
        let name = |prefix: &str| base.strip_prefix(prefix).filter(|it| !it.is_empty());
        if let Some(name) = name("/mcp/server/").filter(|it| !it.contains('/')) {
            let selector = Some(Selector::Server(name.to_owned()));
            return Self { base, selector, is_mcp: true };
        }
        if let Some(tags) = name("/mcp/tags/").filter(|it| !it.contains('/')) {
            return Self { base, selector: Some(Selector::Tags(list(tags))), is_mcp: true };
        }
        // Everything else is for the endpoint of all, which knows what is not there.
        Self { base: ALL, selector: None, is_mcp: matches!(path, ALL | "/sse" | "/messages") }
    }
}

/// What path and headers choose together.
fn chosen(place: &Place<'_>, headers: &HeaderMap) -> Result<Selector, Refusal> {
    let text = |name: &str| -> Result<Option<String>, Refusal> {
        let mut all = headers.get_all(name).iter();
        match (all.next(), all.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => match value.to_str() {
                Ok(value) => Ok(Some(value.trim().to_owned())),
                Err(_) => Err(bad(format!("The header `{name}` cannot be read."))),
            },
            (Some(_), Some(_)) => Err(bad(format!("The header `{name}` is there twice."))),
        }
    };
    let by_header = match (text("x-mcp-server")?, text("x-mcp-tags")?) {
        (None, None) => None,
        (Some(server), None) => Some(Selector::Server(server)),
        (None, Some(tags)) => Some(Selector::Tags(list(&tags))),
        (Some(_), Some(_)) => {
            return Err(bad("`X-Mcp-Server` and `X-Mcp-Tags` exclude each other.".to_owned()));
        }
    };
    match (&place.selector, by_header) {
        (Some(path), Some(header)) if *path != header => {
            Err(bad("The path and the header choose different servers.".to_owned()))
        }
        (Some(path), _) => Ok(path.clone()),
        (None, Some(header)) => Ok(header),
        (None, None) => Ok(Selector::All),
    }
}

fn bad(why: String) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, why)
}

/// Tags, as they are compared.
fn list(tags: &str) -> Vec<String> {
    let mut tags: Vec<_> =
        tags.split(',').map(|it| it.trim().to_lowercase()).filter(|it| !it.is_empty()).collect();
    tags.sort();
    tags.dedup();
    tags
}

impl Answers for Front {
    fn answer(
        &self,
        request: Request<RequestBody>,
        memo: &Mutex<Memo>,
    ) -> impl Future<Output = Response<HttpBody>> + Send {
        let endpoint = match request.uri().path() {
            "/healthz" => Err(plain(StatusCode::OK, "ok\n")),
            "/readyz" if self.lock().is_closing => {
                Err(plain(StatusCode::SERVICE_UNAVAILABLE, "closing\n"))
            }
            "/readyz" => Err(plain(StatusCode::OK, "ok\n")),
            _ => self.endpoint(&request).map_err(refuse),
        };
        async move {
            match endpoint {
                Ok(To::Known(endpoint)) => {
                    let response = endpoint.answer(request, memo).await;
                    self.note_refusal(&response);
                    response
                }
                Ok(To::Nowhere(endpoint, name)) => {
                    let response = endpoint.answer(request, memo).await;
                    self.note_refusal(&response);
                    endpoint.end();
                    match response.status().is_success() {
                        true => refuse(nowhere(&name)),
                        false => response,
                    }
                }
                Err(response) => {
                    self.note_refusal(&response);
                    response
                }
            }
        }
    }

    fn hang_up(&self) {
        let all: Vec<_> = {
            let mut doors = self.lock();
            doors.is_closing = true;
            doors.endpoints.values().cloned().collect()
        };
        all.iter().for_each(|it| it.hang_up());
    }

    fn end(&self) {
        let all: Vec<_> = self.lock().endpoints.values().cloned().collect();
        all.iter().for_each(|it| it.end());
    }
}

/// Who is let in, if anybody has to say who they are.
fn gate(auth: &Inward, origin: &str) -> Result<Option<Arc<Gate>>, Failure> {
    if auth.tokens.is_empty() && auth.issuers.is_empty() {
        return Ok(None);
    }
    let resource = auth.resource.clone().unwrap_or_else(|| format!("{origin}/mcp"));
    let mut protect = Protect::new(resource);
    for issuer in &auth.issuers {
        protect = protect.jwt(JwtIssuer::new(issuer));
    }
    for token in &auth.tokens {
        protect = protect.api_key(&token.name, &token.token, &auth.scopes);
    }
    if !auth.scopes.is_empty() {
        protect = protect.scopes_required(&auth.scopes);
    }
    let fetch = Arc::new(HttpFetch::new(Guard::new(Reach::Local)));
    let gate = Gate::new(protect, fetch).map_err(|error| {
        Failure::new("bad_auth", Stage::Policy, format!("`gateway.auth` does not work: {error}"))
    })?;
    Ok(Some(Arc::new(gate)))
}

/// The path for all servers together.
const ALL: &str = "/mcp";
const ENDPOINTS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (&'static str, &'static [(&'static str, &'static str)], Chosen);
    type Chosen = Result<(Selector, &'static str), u16>;

    fn choose(path: &str, headers: &[(&'static str, &str)]) -> Result<(Selector, String), u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let place = Place::of(path);
        let selector = chosen(&place, &map).map_err(|it| it.status.as_u16())?;
        Ok((selector, place.base.to_owned()))
    }

    #[test]
    fn servers_are_chosen_by_path_or_header_and_not_by_both() {
        let server = |name: &str| Selector::Server(name.to_owned());
        let tags = |tags: &[&str]| Selector::Tags(tags.iter().map(|&it| it.to_owned()).collect());
        let table: &[Row] = &[
            ("/mcp", &[], Ok((Selector::All, "/mcp"))),
            ("/sse", &[], Ok((Selector::All, "/mcp"))),
            ("/mcp/server/time", &[], Ok((server("time"), "/mcp/server/time"))),
            ("/mcp/server/time/sse", &[], Ok((server("time"), "/mcp/server/time"))),
            ("/mcp/tags/B,a,,b", &[], Ok((tags(&["a", "b"]), "/mcp/tags/B,a,,b"))),
            ("/mcp", &[("x-mcp-server", "time")], Ok((server("time"), "/mcp"))),
            ("/mcp", &[("x-mcp-tags", "b, A")], Ok((tags(&["a", "b"]), "/mcp"))),
            (
                "/mcp/server/time",
                &[("x-mcp-server", "time")],
                Ok((server("time"), "/mcp/server/time")),
            ),
            ("/mcp/server/time", &[("x-mcp-server", "git")], Err(400)),
            ("/mcp/server/time", &[("x-mcp-tags", "a")], Err(400)),
            ("/mcp", &[("x-mcp-server", "time"), ("x-mcp-tags", "a")], Err(400)),
            ("/mcp", &[("x-mcp-server", "a"), ("x-mcp-server", "b")], Err(400)),
        ];
        for (path, headers, expected) in table {
            let expected = expected.clone().map(|(it, base)| (it, base.to_owned()));
            assert_eq!(choose(path, headers), expected, "{path} {headers:?}");
        }
    }
    async fn front(gateway: &str) -> Arc<Front> {
        let text = format!(
            "gateway: {gateway}\nmcpServers: {{ time: {{ url: 'http://127.0.0.1:9/mcp', tags: [a] }} }}"
        );
        let gateway = Gateway::open(plan(&text), settings()).await.unwrap();
        Front::new(&gateway, "127.0.0.1:7373".parse().unwrap()).unwrap()
    }

    fn plan(text: &str) -> crate::catalog::plan::Plan {
        let file = "/etc/trunkline.yaml".as_ref();
        crate::catalog::load(text, file, &crate::catalog::Process).unwrap().plan
    }

    fn settings() -> crate::Settings {
        crate::Settings {
            store: Arc::new(trunkline_store::Memory::default()),
            pins: None,
            logins: None,
            limits: trunkline_transport::Limits::default(),
            otel: None,
        }
    }

    fn ask(front: &Front, host: &str, path: &str) -> Result<&'static str, u16> {
        let request = Request::get(path).header("host", host).body(()).unwrap();
        match front.endpoint(&request) {
            Ok(To::Known(_)) => Ok("known"),
            Ok(To::Nowhere(..)) => Ok("nowhere"),
            Err(refusal) => Err(refusal.status.as_u16()),
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_or_told_before_the_door() {
        const TOKENS: &str =
            "{ auth: { tokens: [{ name: ann, token: a-long-enough-secret-token }] } }";
        for (gateway, host, path, expected, kept) in [
            ("{}", "localhost", "/mcp/server/time", Ok("known"), 1),
            ("{}", "localhost", "/mcp/server/nobody", Err(404), 0),
            ("{}", "evil.example", "/mcp/server/time", Err(403), 0),
            ("{}", "evil.example", "/mcp/server/nobody", Err(403), 0),
            ("{}", "evil.example", "/mcp/tags/x", Err(403), 0),
            (TOKENS, "localhost", "/mcp/server/time", Ok("known"), 1),
            (TOKENS, "localhost", "/mcp/server/nobody", Ok("nowhere"), 0),
            ("{ requireSelector: true }", "localhost", "/mcp", Err(400), 0),
            ("{ requireSelector: true }", "localhost", "/sse", Err(400), 0),
            ("{ requireSelector: true }", "localhost", "/messages", Err(400), 0),
            ("{ requireSelector: true }", "localhost", "/mcp/server/time/sse", Ok("known"), 1),
        ] {
            let front = front(gateway).await;
            assert_eq!(ask(&front, host, path), expected, "{gateway} {host} {path}");
            assert_eq!(front.lock().endpoints.len(), kept, "{gateway} {host} {path}");
        }
    }

    #[tokio::test]
    async fn choices_that_nobody_uses_make_room() {
        let front = front("{}").await;
        for number in 0..ENDPOINTS * 2 + 1 {
            assert_eq!(ask(&front, "localhost", &format!("/mcp/tags/t{number}")), Ok("known"));
        }
        assert_eq!(front.lock().endpoints.len(), 1);
        assert_eq!(ask(&front, "localhost", "/mcp"), Ok("known"));
    }

    #[tokio::test]
    async fn a_plan_may_not_open_a_door_that_was_put_elsewhere() {
        let text = "gateway: { plaintext: true, auth: { tokens: [{ name: ann, token: a-long-enough-secret-token }] } }\n\
                    mcpServers: {}";
        let gateway = Gateway::open(plan(text), settings()).await.unwrap();
        let open = plan("mcpServers: {}").gateway;
        for (address, is_good) in [("0.0.0.0:7373", false), ("127.0.0.1:7373", true)] {
            let front = Front::new(&gateway, address.parse().unwrap()).unwrap();
            assert_eq!(front.can_follow(&open).is_ok(), is_good, "{address}");
            assert!(front.can_follow(&plan(text).gateway).is_ok(), "{address}");
        }
        gateway.apply(plan("mcpServers: {}")).await.unwrap();
        assert!(Front::new(&gateway, "0.0.0.0:7373".parse().unwrap()).is_err());
    }
}
