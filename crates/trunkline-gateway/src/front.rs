//! Routes HTTP requests to the handler of their selector: by path, by header, or all servers.
//!
//! Admission comes first: nothing is built, stored or disclosed for a request before its Host, its Origin and
//! its sender are checked.

mod choice;
mod instances;

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use http::{Extensions, HeaderMap, Request, Response, StatusCode, Uri, request};
use trunkline_auth::Principal;
use trunkline_auth::address::{Guard, Reach};
use trunkline_auth::resource::{Gate, JwtIssuer, Protect};
use trunkline_proto::http::Refusal;
use trunkline_proto::http::door::{Door, check_coding, check_one_host};
use trunkline_proto::http::fields::Fields;
use trunkline_proto::server::EnvelopeCache;
use trunkline_transport::auth::HttpFetch;
use trunkline_transport::budget::{Budget, Held};
use trunkline_transport::http::forward::AnswersForwarded;
use trunkline_transport::http::{
    Answers, Budgets, Endpoint, HttpBody, LentHead, LetIn, RequestBody, Settings, plain, refuse,
};

use crate::accounts;
use crate::caller::Caller;
use crate::catalog::may_listen;
use crate::catalog::plan::{GatewayPlan, Inward};
use crate::failure::{Failure, Reason, Stage};
use crate::gateway::Gateway;
use crate::scoped_handler::ScopedHandler;
use crate::selector::Selector;
use crate::state::Visibility;
use choice::{ALL, Choice, Place};
use instances::Instances;

/// The HTTP front of a gateway.
pub struct Front {
    gateway: Gateway,
    doors: RwLock<Doors>,
    /// The bound on endpoints of choices, in all and for one caller.
    room: Budget,
    /// The budgets of all requests together, whichever servers they choose.
    budgets: Budgets,
    /// The gateway's own origin, as clients see it.
    origin: String,
    address: SocketAddr,
    /// Whether it ends soon, so that balancers should send nothing more.
    is_leaving: AtomicBool,
    /// The endpoints for other replicas that use instances of this one.
    instances: Instances,
}

/// What was built for the auth rules in force.
struct Doors {
    plan: GatewayPlan,
    gate: Option<Arc<Gate>>,
    /// The endpoint of all servers, which nearly every client uses.
    all: Arc<Endpoint<ScopedHandler>>,
    chosen: HashMap<Choice, Chosen>,
    is_closing: bool,
}

/// The endpoint of a choice.
struct Chosen {
    endpoint: Arc<Endpoint<ScopedHandler>>,
    /// When it was last used.
    used: Mutex<Instant>,
    /// Its place under the bound, charged to the caller that asked first.
    _room: Held,
}

impl Chosen {
    /// Whether evicting it loses nothing.
    fn is_idle(&self) -> bool {
        // A request being answered holds a reference of its own.
        Arc::strong_count(&self.endpoint) == 1 && self.endpoint.is_idle()
    }

    fn asked(&self) -> Arc<Endpoint<ScopedHandler>> {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Arc::clone(&self.endpoint)
    }

    fn since(&self) -> Duration {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

impl Front {
    /// The front of a gateway that listens at `address`.
    pub fn new(gateway: &Gateway, address: SocketAddr) -> Result<Arc<Self>, Failure> {
        let plan = gateway.0.active_plan().plan.gateway.clone();
        // The plan may have changed since it was checked.
        may_listen(&address.to_string(), &plan)
            .map_err(|why| Failure::new(Reason::BadAuth, Stage::Policy, why))?;
        let scheme = if plan.tls.is_some() { "https" } else { "http" };
        let origin = format!("{scheme}://{}", reached_at(address, &plan.hosts));
        let gate = gate(&plan.auth, &origin)?;
        gateway.0.accounts.reached_at(plan.auth.resource.as_deref().unwrap_or(&origin));
        let budgets = Budgets::new(&gateway.0.settings.limits, true);
        let all = build(gateway, &plan, gate.as_ref(), &budgets, &Choice::ALL);
        let doors = Doors { plan, gate, all, chosen: HashMap::new(), is_closing: false };
        let (gateway, doors) = (gateway.clone(), RwLock::new(doors));
        let room = Budget::new(CHOICES, CHOICES_OF_ONE);
        let is_leaving = AtomicBool::new(false);
        let instances = Instances::new(&gateway);
        Ok(Arc::new(Self { gateway, doors, room, budgets, origin, address, is_leaving, instances }))
    }

    /// Whether a plan can be put in force here. A plan that is valid by itself may open a door on an address
    /// that was given elsewhere than in the plan.
    pub fn can_follow(&self, plan: &GatewayPlan) -> Result<(), Failure> {
        may_listen(&self.address.to_string(), plan)
            .map_err(|why| Failure::new(Reason::BadAuth, Stage::Policy, why))?;
        gate(&plan.auth, &self.origin).map(drop)
    }

    /// Puts a changed plan in force: admission follows its rules.
    pub fn follow(&self) -> Result<(), Failure> {
        let plan = self.gateway.0.active_plan().plan.gateway.clone();
        let public = plan.auth.resource.as_deref().unwrap_or(&self.origin);
        self.gateway.0.accounts.reached_at(public);
        let mut doors = self.write();
        let is_same = (&doors.plan.auth, &doors.plan.hosts, &doors.plan.origins)
            == (&plan.auth, &plan.hosts, &plan.origins);
        if !is_same {
            let gate = gate(&plan.auth, &self.origin)?;
            let all = build(&self.gateway, &plan, gate.as_ref(), &self.budgets, &Choice::ALL);
            if doors.is_closing {
                all.hang_up();
            }
            doors.gate = gate;
            std::mem::replace(&mut doors.all, all).hang_up();
            for (_, chosen) in doors.chosen.drain() {
                chosen.endpoint.hang_up();
            }
            doors.chosen.shrink_to_fit();
        }
        doors.plan = plan;
        Ok(())
    }

    /// Whether clients should come: the front is not closing, and will not soon.
    pub fn is_open(&self) -> bool {
        !self.is_leaving.load(Ordering::Acquire) && !self.read().is_closing
    }

    /// From now on `/readyz` says that it ends soon. Clients are served as before.
    pub fn leaves(&self) {
        self.is_leaving.store(true, Ordering::Release);
    }

    /// Releases the sessions in which nothing is in flight, of those that are `owned`, so that another replica
    /// can go on with them.
    pub fn release_quiet_sessions(&self, owned: impl Fn(&str) -> bool) -> Vec<String> {
        self.every().iter().flat_map(|it| it.release_quiet_sessions(&owned)).collect()
    }

    /// Serves a released session again: it could not be handed over.
    pub fn take_back(&self, id: &str) {
        self.every().iter().for_each(|it| it.take_back(id));
    }

    /// Whether a call is in flight, or waits here for its caller's answer.
    pub fn is_busy(&self) -> bool {
        self.gateway.0.parked_calls.len() > 0
            || self.every().iter().any(|it| it.is_busy())
            || self.instances.is_busy()
    }

    /// Stops the instances that serve other replicas, too, each as soon as nothing is in flight in it, or `at_once`.
    /// Returns whether none is left.
    pub async fn let_go_of_instances(&self, at_once: bool) -> bool {
        self.gateway.let_go_of_instances(at_once).await
    }

    /// Counts a refused request.
    fn note_refusal(&self, response: &Response<HttpBody>) {
        if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return;
        }
        self.gateway.0.refused(response.status().as_u16());
    }

    fn read(&self) -> RwLockReadGuard<'_, Doors> {
        self.doors.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Doors> {
        self.doors.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which endpoint sees a request first.
    fn first(&self, uri: &Uri, headers: &HeaderMap) -> First {
        let path = uri.path();
        match path {
            "/healthz" => return First::Known(Box::new(plain(StatusCode::OK, "ok\n"))),
            "/readyz" => return First::Known(Box::new(self.readiness())),
            path if path.starts_with(accounts::PATHS) && self.has_accounts() => {
                return First::Accounts;
            }
            _ => {}
        }
        let place = Place::of(path);
        let doors = self.read();
        let all = Arc::clone(&doors.all);
        let is_of_all = place.is_of_all(headers) && !doors.plan.selector_required;
        match is_of_all || !place.is_mcp {
            true => First::All(all),
            false => First::Gate(all, place.base.to_owned()),
        }
    }

    /// What `/readyz` says.
    fn readiness(&self) -> Response<HttpBody> {
        match self.is_open() {
            true => plain(StatusCode::OK, "ok\n"),
            false => plain(StatusCode::SERVICE_UNAVAILABLE, "closing\n"),
        }
    }

    /// Which endpoint answers an admitted request.
    fn second<B>(
        &self,
        request: &Request<B>,
    ) -> Result<(Arc<Endpoint<ScopedHandler>>, Option<Uri>), Refusal> {
        let (path, active) = (request.uri().path(), self.gateway.0.active_plan());
        let place = Place::of(path);
        let choice = place.choice(request.headers(), &active.tags)?;
        let caller = Caller::let_in(request.extensions());
        match &choice.selector {
            Selector::All if self.read().plan.selector_required => {
                let why = "Choose servers: `/mcp/server/NAME`, `/mcp/tags/A,B`, or the header \
                           `X-Mcp-Server` or `X-Mcp-Tags`.";
                return Err(Refusal::new(StatusCode::BAD_REQUEST, why));
            }
            // A caller that may see nothing of a server does not learn that it exists.
            Selector::Server(name) if !Visibility::new(&active, &caller).sees_server(name) => {
                let mut why = format!("There is no server `{name}` here.");
                if let Some(out) = active.why_not(&Visibility::new(&active, &caller), name) {
                    why = format!("{why} {out}");
                }
                return Err(Refusal::new(StatusCode::NOT_FOUND, why));
            }
            _ => {}
        }
        let base = choice.path();
        let to = (base != place.base).then(|| {
            // The canonical spelling of the same choice, which was a path before.
            let query = request.uri().query().map(|it| format!("?{it}")).unwrap_or_default();
            format!("{base}{}{query}", &path[place.base.len()..]).parse().ok()
        });
        Ok((self.endpoint(choice, request.extensions())?, to.flatten()))
    }

    fn endpoint(
        &self,
        choice: Choice,
        sender: &Extensions,
    ) -> Result<Arc<Endpoint<ScopedHandler>>, Refusal> {
        {
            let doors = self.read();
            if choice == Choice::ALL {
                return Ok(Arc::clone(&doors.all));
            }
            if let Some(chosen) = doors.chosen.get(&choice) {
                return Ok(chosen.asked());
            }
        }
        let mut doors = self.write();
        // Evicts choices that nobody has used for a while.
        doors.chosen.retain(|_, it| it.since() < KEPT || !it.is_idle());
        if let Some(chosen) = doors.chosen.get(&choice) {
            return Ok(chosen.asked());
        }
        let who = sender.get::<Principal>().map(Principal::id).unwrap_or_default().into();
        let room = self.room.take(&who, 1).or_else(|_| {
            doors.chosen.retain(|_, it| !it.is_idle());
            self.room.take(&who, 1)
        });
        let Ok(_room) = room else {
            let why = "Too many different choices of servers are in use.";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        let (plan, gate) = (&doors.plan, doors.gate.as_ref());
        let endpoint = build(&self.gateway, plan, gate, &self.budgets, &choice);
        if doors.is_closing {
            endpoint.hang_up();
        }
        let used = Mutex::new(Instant::now());
        doors.chosen.insert(choice, Chosen { endpoint: Arc::clone(&endpoint), used, _room });
        Ok(endpoint)
    }

    fn every(&self) -> Vec<Arc<Endpoint<ScopedHandler>>> {
        let doors = self.read();
        let chosen = doors.chosen.values().map(|it| &it.endpoint);
        chosen.chain([&doors.all]).cloned().collect()
    }
}

/// The address at which clients reach a listener. For an unspecified address (`0.0.0.0`) it is the first
/// allowed host, or else loopback, as in the check of a request's Host.
///
/// ```
/// let everywhere = "0.0.0.0:7373".parse().unwrap();
/// assert_eq!(trunkline_gateway::reached_at(everywhere, &[]), "127.0.0.1:7373");
/// ```
pub fn reached_at(address: SocketAddr, hosts: &[String]) -> String {
    let port = address.port();
    match (address.ip(), hosts.first()) {
        (ip, _) if !ip.is_unspecified() => address.to_string(),
        (_, Some(host)) if has_port(host) => host.clone(),
        (_, Some(host)) => format!("{host}:{port}"),
        (IpAddr::V4(_), None) => format!("127.0.0.1:{port}"),
        (IpAddr::V6(_), None) => format!("[::1]:{port}"),
    }
}

fn has_port(host: &str) -> bool {
    let port = host.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Which endpoint sees a request first. Small, because every request keeps it while it is answered.
enum First {
    /// None: the answer is known.
    Known(Box<Response<HttpBody>>),
    /// The pages of accounts.
    Accounts,
    /// The endpoint of all servers, which answers it.
    All(Arc<Endpoint<ScopedHandler>>),
    /// The endpoint of all servers, which only admits it to the given path.
    Gate(Arc<Endpoint<ScopedHandler>>, String),
}

fn build(
    gateway: &Gateway,
    plan: &GatewayPlan,
    gate: Option<&Arc<Gate>>,
    budgets: &Budgets,
    choice: &Choice,
) -> Arc<Endpoint<ScopedHandler>> {
    let shared = &gateway.0;
    let mut settings = Settings::new(shared.settings.limits.clone());
    settings.path = choice.path().into_owned();
    let pair = match settings.path.as_str() {
        ALL => ("/sse".to_owned(), "/messages".to_owned()),
        base => (format!("{base}/sse"), format!("{base}/messages")),
    };
    settings.sse_paths = Some(pair);
    settings.door = door(plan);
    settings.gate = gate.cloned();
    settings.budgets = Some(budgets.clone());
    settings.lasting = shared.settings.lasting.clone();
    settings.replicas = shared.settings.sessions.clone();
    let handler = gateway.handler(choice.selector.clone());
    Endpoint::new(Arc::new(shared.core_of(&handler.view)), handler, settings)
}

/// What is wrong with a head, whoever is asked: elsewhere the door says it. Probes may name any host.
fn malformed(head: &request::Parts) -> Option<Refusal> {
    let fields = Fields::of(&head.headers);
    check_one_host(head.version, &fields).and_then(|()| check_coding(&fields)).err()
}

/// Which Host and Origin headers are allowed.
fn door(plan: &GatewayPlan) -> Door {
    let mut door = Door::default();
    plan.hosts.iter().for_each(|it| door.allow_host(it));
    plan.origins.iter().for_each(|it| door.allow_origin(it));
    door
}

impl Answers for Front {
    async fn answer(
        &self,
        request: Request<RequestBody>,
        memo: &Mutex<EnvelopeCache>,
    ) -> Response<HttpBody> {
        let (head, mut body) = request.into_parts();
        self.answer_in_place(&mut head.into(), &mut body, memo).await
    }

    // In its caller the future is made where it stays: it is large.
    #[inline]
    fn answer_in_place(
        &self,
        head: &mut LentHead,
        body: &mut RequestBody,
        memo: &Mutex<EnvelopeCache>,
    ) -> impl Future<Output = Response<HttpBody>> + Send {
        let first = self.first(&head.uri, &head.headers);
        async move {
            let response = match first {
                First::All(all) => all.answer_in_place(head, body, memo).await,
                // Boxed: few requests need it, and all would carry its size.
                First::Gate(all, path) => {
                    let request = body.take_whole(head);
                    Box::pin(self.answer_chosen(&all, &path, request, memo)).await
                }
                First::Accounts => Box::pin(self.answer_browser(body.take_whole(head))).await,
                First::Known(response) => malformed(head).map_or(*response, refuse),
            };
            self.note_refusal(&response);
            response
        }
    }

    fn hang_up(&self) {
        self.write().is_closing = true;
        self.every().iter().for_each(|it| it.hang_up());
        self.instances.hang_up();
    }

    fn end(&self) {
        self.every().iter().for_each(|it| it.end());
        self.instances.end();
    }
}

impl AnswersForwarded for Front {
    /// Answers what a client sent to another replica, which has let it in.
    async fn answer_forwarded(
        &self,
        request: LetIn<RequestBody>,
        memo: &Mutex<EnvelopeCache>,
    ) -> Response<HttpBody> {
        let path = request.get().uri().path();
        if path.starts_with(accounts::PATHS) {
            return Box::pin(self.show_account(request.into_inner())).await;
        }
        if path == crate::gate::TASKS_PATH {
            return Box::pin(self.answer_about_tasks(request.into_inner())).await;
        }
        match self.instances.at(path) {
            Some(endpoint) => Box::pin(endpoint.answer_let_in(request, memo)).await,
            None => self.answer_let_in(request, memo).await,
        }
    }
}

impl Front {
    /// Tells another replica of the tasks that this one holds.
    async fn answer_about_tasks(&self, request: Request<RequestBody>) -> Response<HttpBody> {
        let (head, body) = request.into_parts();
        let Some(question) = accounts::read_form(body).await else {
            return plain(StatusCode::BAD_REQUEST, "The question did not arrive.\n");
        };
        let shared = &self.gateway.0;
        let answer = crate::gate::answer_about_tasks(shared, &head.extensions, &question).await;
        Response::new(HttpBody::from(answer))
    }

    /// Whether some server has `auth.perUser`.
    fn has_accounts(&self) -> bool {
        let active = self.gateway.0.active_plan();
        active.plan.servers.values().any(|it| it.per_user().is_some())
    }

    /// Answers a browser, which has no token: the pages identify the person.
    async fn answer_browser(&self, request: Request<RequestBody>) -> Response<HttpBody> {
        let door = door(&self.read().plan);
        let fields = Fields::of(request.headers());
        let checked = door.check(request.uri(), &fields);
        if let Err(refusal) = checked.and_then(|()| check_coding(&fields)) {
            return refuse(refusal);
        }
        let shared = &self.gateway.0;
        let holder = shared.accounts.holder(&request).map(str::to_owned);
        if let (Some(holder), Some(sessions)) = (holder, &shared.settings.sessions) {
            let (head, body) = request.into_parts();
            let Some(body) = accounts::read_form(body).await else {
                return plain(StatusCode::BAD_REQUEST, "The form did not arrive.\n");
            };
            let answer = sessions.answer_of(&holder, &head, body.into()).await;
            // Its links and logins have ended with it.
            return answer.unwrap_or_else(accounts::used_up);
        }
        self.show_account(request).await
    }

    /// Answers a browser whose request was checked.
    async fn show_account(&self, request: Request<RequestBody>) -> Response<HttpBody> {
        let gate = self.read().gate.clone();
        let shared = &self.gateway.0;
        let plan = Arc::clone(&shared.active_plan().plan);
        let (response, changed) = shared.accounts.answer(request, &plan, gate.as_deref()).await;
        if let Some(changed) = changed {
            shared.account_changed(&changed);
        }
        response
    }

    /// Lets one endpoint admit a request and another answer it.
    async fn answer_chosen(
        &self,
        all: &Endpoint<ScopedHandler>,
        path: &str,
        request: Request<RequestBody>,
        memo: &Mutex<EnvelopeCache>,
    ) -> Response<HttpBody> {
        match all.let_in(request, path).await {
            Ok(request) => self.answer_let_in(request, memo).await,
            Err(response) => response,
        }
    }

    async fn answer_let_in(
        &self,
        mut request: LetIn<RequestBody>,
        memo: &Mutex<EnvelopeCache>,
    ) -> Response<HttpBody> {
        match self.second(request.get()) {
            Ok((endpoint, to)) => {
                if let Some(to) = to {
                    request.redirect(to);
                }
                endpoint.answer_let_in(request, memo).await
            }
            Err(refusal) => refuse(refusal),
        }
    }
}

/// The check of tokens, if `gateway.auth` demands any.
pub(crate) fn gate(auth: &Inward, origin: &str) -> Result<Option<Arc<Gate>>, Failure> {
    if auth.tokens.is_empty() && auth.issuers.is_empty() {
        return Ok(None);
    }
    let resource = auth.resource.clone().unwrap_or_else(|| format!("{origin}/mcp"));
    let mut protect = Protect::new(resource);
    for issuer in &auth.issuers {
        let mut issuer = JwtIssuer::new(issuer);
        for (role, claim) in auth.claims.roles() {
            issuer = issuer.claim(role, claim);
        }
        protect = protect.jwt(issuer);
    }
    for token in &auth.tokens {
        protect = protect.api_key(&token.name, &token.token, &auth.scopes);
    }
    if !auth.scopes.is_empty() {
        protect = protect.scopes_required(&auth.scopes);
    }
    let fetch = Arc::new(HttpFetch::new(Guard::new(Reach::Local)));
    let gate = Gate::new(protect, fetch).map_err(|error| {
        Failure::new(
            Reason::BadAuth,
            Stage::Policy,
            format!("`gateway.auth` does not work: {error}"),
        )
    })?;
    Ok(Some(Arc::new(gate)))
}

/// The bound on choices of servers, in all and for one caller.
const CHOICES: usize = 256;
const CHOICES_OF_ONE: usize = 128;
/// How long an unused choice is kept.
const KEPT: Duration = Duration::from_secs(5 * 60);

#[cfg(test)]
mod tests;
