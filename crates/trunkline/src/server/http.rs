//! A server over HTTP: every revision on one URL, as a listener or as a service for axum and hyper.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Buf;
use http::{Request, Response};
use http_body::Body;
use tokio::net::{TcpListener, ToSocketAddrs};
use tower_service::Service;
use trunkline_auth::setters;
use trunkline_proto::server::EnvelopeCache;
#[cfg(feature = "replicas")]
use trunkline_transport::http::UntilLeft;
/// Listens at an address, with a backlog for bursts of connections.
pub use trunkline_transport::http::bind;
use trunkline_transport::http::{Endpoint, Settings, serve};

pub use trunkline_transport::http::HttpBody;

use super::Server;
#[cfg(feature = "replicas")]
use super::replicas::Membership;
use super::router::Router;
use crate::observe::Transport;

/// How a server is reached over HTTP. [`Server::http`] returns one.
///
/// By default it accepts requests to localhost names only. [`Self::allow_host`] adds the server's
/// other names.
///
/// ```
/// # use trunkline::{Client, Server, server::bind};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder("empty", "1.0.0").build();
/// let listener = bind("127.0.0.1:0").await?;
/// let url = format!("http://{}/here", listener.local_addr()?);
/// tokio::spawn(server.http().path("/here").serve(listener, std::future::pending()));
/// let client = Client::builder("example", "1.0.0").connect_http(url).await?;
/// assert_eq!(client.server_info().unwrap().name, "empty");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it serves"]
pub struct Http {
    pub(super) server: Server,
    pub(super) settings: Settings,
}

impl Http {
    pub(super) fn new(server: Server) -> Self {
        let settings = Settings::new(server.0.0.limits.clone());
        Self { server, settings }
    }

    setters! {
        /// The path; by default `/mcp`.
        ///
        /// ```
        /// let http = trunkline::Server::builder("empty", "1.0.0").build().http().path("/tools");
        /// assert!(format!("{http:?}").contains("/tools"));
        /// ```
        path(path: impl Into<String>) { settings.path = path.into() }

        /// The paths of the 2024-11-05 transport for events and messages; by default `/sse` and
        /// `/messages`.
        ///
        /// ```
        /// # use trunkline::{Client, Revision, Server, server::bind};
        /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// # let server = Server::builder("empty", "1.0.0").build();
        /// let listener = bind("127.0.0.1:0").await?;
        /// let url = format!("http://{}/events", listener.local_addr()?);
        /// let http = server.http().sse_paths("/events", "/events/messages");
        /// tokio::spawn(http.serve(listener, std::future::pending()));
        /// let client = Client::builder("old", "1").protocol(Revision::V2024_11_05).connect_http(url);
        /// assert_eq!(client.await?.revision(), Revision::V2024_11_05);
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        sse_paths(events: impl Into<String>, messages: impl Into<String>) {
            settings.sse_paths = Some((events.into(), messages.into()))
        }

        /// Does not serve the two paths of 2024-11-05.
        ///
        /// ```
        /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// let service = Server::builder("empty", "1.0.0").build().http().without_sse().service();
        /// let request = http::Request::get("http://localhost/sse").body(String::new())?;
        /// assert_eq!(service.answer(request).await.status(), 404);
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        without_sse() { settings.sse_paths = None }

        /// Accepts requests to this host: a name for every port, or a name with a port.
        ///
        /// ```
        /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// let http = Server::builder("empty", "1.0.0").build().http();
        /// let asked = || http::Request::get("http://mcp.example.com/health").body(String::new());
        /// let http = http.page("/health", || "I am well.".to_owned());
        /// assert_eq!(http.clone().service().answer(asked()?).await.status(), 403);
        /// let http = http.allow_host("mcp.example.com");
        /// assert_eq!(http.service().answer(asked()?).await.status(), 200);
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        allow_host(host: impl AsRef<str>) { settings.door.allow_host(host.as_ref()) }

        /// Accepts web pages of this origin, such as `https://app.example.com`. The server's own origin
        /// is always accepted.
        ///
        /// ```
        /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// let http = Server::builder("empty", "1.0.0").build().http();
        /// let http = http.page("/health", || "I am well.".to_owned());
        /// let service = http.allow_origin("https://app.example.com").service();
        /// let request = http::Request::get("http://localhost/health");
        /// let request = request.header("origin", "https://app.example.com").body(String::new())?;
        /// assert_eq!(service.answer(request).await.status(), 200);
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        allow_origin(origin: impl AsRef<str>) { settings.door.allow_origin(origin.as_ref()) }

        /// Gives clients before 2026-07-28 no session. Any replica can answer any request, but the
        /// server cannot ask such a client anything or notify it outside a request.
        ///
        /// ```
        /// # use trunkline::{Client, Revision, Server, server::bind};
        /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// # let server = Server::builder("empty", "1.0.0").build();
        /// let listener = bind("127.0.0.1:0").await?;
        /// let url = format!("http://{}/mcp", listener.local_addr()?);
        /// tokio::spawn(server.http().stateless().serve(listener, std::future::pending()));
        /// let client = Client::builder("old", "1").protocol(Revision::V2025_06_18).connect_http(url);
        /// assert!(client.await?.ping().await.is_ok());
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        stateless() { settings.sessions = false }

        /// Answers with an event stream even where one JSON body would do.
        ///
        /// ```
        /// # use trunkline::{Client, Server, server::bind};
        /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// # let server = Server::builder("empty", "1.0.0").build();
        /// let listener = bind("127.0.0.1:0").await?;
        /// let url = format!("http://{}/mcp", listener.local_addr()?);
        /// tokio::spawn(server.http().always_stream().serve(listener, std::future::pending()));
        /// let client = Client::builder("example", "1.0.0").connect_http(url).await?;
        /// assert!(client.ping().await.is_ok());
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        always_stream() { settings.always_stream = true }

        /// Serves a plain-text page beside the server, for example for health checks. `page` runs for
        /// each request and must not block.
        ///
        /// ```
        /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// let http = Server::builder("empty", "1.0.0").build().http();
        /// let service = http.page("/health", || "I am well.".to_owned()).service();
        /// let request = http::Request::get("http://localhost/health").body(String::new())?;
        /// assert_eq!(service.answer(request).await.status(), 200);
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        page(path: impl Into<String>, page: impl Fn() -> String + Send + Sync + 'static) {
            settings.pages.push((path.into(), Arc::new(page)))
        }
    }

    /// Serves connections until `shutdown`, then drains what is in flight and returns.
    ///
    /// ```
    /// # use trunkline::{Client, Server, server::bind};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = Server::builder("empty", "1.0.0").build();
    /// let listener = bind("127.0.0.1:0").await?;
    /// let url = format!("http://{}/mcp", listener.local_addr()?);
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let serving = tokio::spawn(server.http().serve(listener, async { drop(stopped.await) }));
    /// Client::builder("example", "1.0.0").connect_http(url).await?.close().await;
    /// drop(stop);
    /// assert!(serving.await?.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let limits = self.settings.limits.clone();
        self.server.0.0.watch_tasks();
        #[cfg(feature = "replicas")]
        if self.server.0.0.replicas.is_some() {
            // Its tasks go on for as long as it is served.
            let HttpService { endpoint, member, server: _server, .. } = self.joined(false).await?;
            let member = member.expect("it has joined");
            // Its sessions end after they were handed over: others still forward to them until then.
            let answers = Arc::new(UntilLeft(Arc::clone(&endpoint)));
            let served = serve(listener, answers, limits, member.drain_at(shutdown)).await;
            member.leave(&endpoint).await;
            endpoint.end();
            return served;
        }
        let service = self.answering(false);
        serve(listener, service.endpoint, limits, shutdown).await
    }

    /// The same as a service, to be mounted into axum or served by hyper. The program that serves
    /// it sets the limits of its connections, and how they close: a refusal may leave a body
    /// unread, and only a lingering close lets every client read the response. Paths other than the
    /// server's get 404. A router may have stripped the server's path and left `/`, as
    /// `nest_service("/mcp", …)` of axum does.
    ///
    /// ```
    /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let service = Server::builder("empty", "1.0.0").build().http().service();
    /// let request = http::Request::get("http://localhost/elsewhere").body(String::new())?;
    /// assert_eq!(service.answer(request).await.status(), 404);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn service(self) -> HttpService {
        #[cfg(feature = "replicas")]
        if self.server.0.0.replicas.is_some() {
            tracing::warn!("sessions are not shared with other replicas; use `shared_service`");
        }
        self.answering(true)
    }

    /// [`Self::service`] for a server with [replicas](super::Replicas): joins the others first. Call
    /// [`HttpService::leave`] before the program ends.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline::{Server, server::Replicas, store::Memory};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let replicas = Replicas::new(Arc::new(Memory::default()), [7; 32], "127.0.0.1:0");
    /// let server = Server::builder("empty", "1.0.0").replicas(replicas).build();
    /// let service = server.http().shared_service().await?;
    /// let request = http::Request::get("http://localhost/elsewhere").body(String::new())?;
    /// assert_eq!(service.answer(request).await.status(), 404);
    /// service.leave().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[cfg(feature = "replicas")]
    pub async fn shared_service(self) -> io::Result<HttpService> {
        match self.server.0.0.replicas.is_some() {
            true => self.joined(true).await,
            false => Ok(self.service()),
        }
    }

    /// Joins the other replicas and serves them.
    #[cfg(feature = "replicas")]
    async fn joined(mut self, is_nested: bool) -> io::Result<HttpService> {
        let limits = self.settings.limits.clone();
        let replicas = self.server.0.0.replicas.clone().expect("whoever calls has checked it");
        let joined = replicas.join(&limits).await?;
        self.settings.replicas = Some(Arc::clone(&joined.shared));
        let mut service = self.answering(is_nested);
        let endpoint = Arc::clone(&service.endpoint);
        let member = joined.serve(endpoint, service.server.inner(), &limits);
        service.member = Some(Arc::new(member));
        Ok(service)
    }

    fn answering(self, is_nested: bool) -> HttpService {
        let Self { server, mut settings } = self;
        settings.is_nested = is_nested;
        #[cfg(feature = "auth")]
        let is_protected = settings.gate.is_some();
        #[cfg(not(feature = "auth"))]
        let is_protected = false;
        if !is_protected && server.0.0.has_scopes() {
            // A layer in front may authenticate callers. This warning is for when none does.
            tracing::warn!("scopes are checked only if something in front says who calls");
        }
        let core = Arc::clone(&server.0.0.core);
        let router = Arc::new(Router(Arc::clone(&server.0.0), Some(Transport::Http)));
        HttpService {
            endpoint: Endpoint::new(core, router, settings),
            memo: Arc::default(),
            server,
            #[cfg(feature = "replicas")]
            member: None,
        }
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("path", &self.settings.path).finish_non_exhaustive()
    }
}

impl Server {
    /// Serves this server over HTTP.
    ///
    /// ```
    /// let http = trunkline::Server::builder("empty", "1.0.0").build().http();
    /// assert!(format!("{http:?}").contains("/mcp"));
    /// ```
    pub fn http(&self) -> Http {
        Http::new(self.clone())
    }

    /// Serves HTTP at an address, with all defaults, until the future is dropped.
    ///
    /// ```
    /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = Server::builder("empty", "1.0.0").build();
    /// let serving = server.serve_http("127.0.0.1:0");
    /// let soon = std::time::Duration::from_millis(10);
    /// assert!(tokio::time::timeout(soon, serving).await.is_err(), "it goes on");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn serve_http(&self, address: impl ToSocketAddrs) -> io::Result<()> {
        self.http().serve(bind(address).await?, pending()).await
    }
}

/// A server as a service: a function from requests to responses. Clones share everything.
///
/// ```
/// # use trunkline::Server; use tower_service::Service;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let mut service = Server::builder("empty", "1.0.0").build().http().service();
/// let request = http::Request::get("http://localhost/elsewhere").body(String::new())?;
/// assert_eq!(service.call(request).await?.status(), 404);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct HttpService {
    endpoint: Arc<Endpoint<Router>>,
    memo: Arc<Mutex<EnvelopeCache>>,
    /// Keeps tasks running for as long as the server is reachable.
    server: Server,
    #[cfg(feature = "replicas")]
    member: Option<Arc<Membership>>,
}

impl HttpService {
    /// Answers one request.
    ///
    /// ```
    /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let service = Server::builder("empty", "1.0.0").build().http().service();
    /// let request = http::Request::get("http://evil.example/mcp").body(String::new())?;
    /// assert_eq!(service.answer(request).await.status(), 403, "it is not known by that name");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn answer<B: Body<Data: Buf>>(&self, request: Request<B>) -> Response<HttpBody> {
        self.server.0.0.watch_tasks();
        self.endpoint.answer(request, &self.memo).await
    }

    /// Ends the streams and subscriptions that would never end by themselves. The program that
    /// serves this can then wait for the last request.
    ///
    /// ```
    /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let service = Server::builder("empty", "1.0.0").build().http().service();
    /// service.hang_up();
    /// let request = http::Request::get("http://localhost/elsewhere").body(String::new())?;
    /// assert_eq!(service.answer(request).await.status(), 404, "what comes is answered still");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn hang_up(&self) {
        self.endpoint.hang_up();
    }

    /// Gives each session to another replica, if there is one, as soon as nothing is in flight in it, whichever
    /// replica the request came to. Returns when all are given away; what takes longer than
    /// [`Limits::shutdown`](crate::Limits) is cut off.
    ///
    /// ```
    /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let service = Server::builder("empty", "1.0.0").build().http().service();
    /// service.leave().await; // It was alone.
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[cfg(feature = "replicas")]
    pub async fn leave(&self) {
        if let Some(member) = &self.member {
            member.leave(&self.endpoint).await;
        }
    }

    /// Ends every session and stops its handlers.
    ///
    /// ```
    /// # use trunkline::Server; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let service = Server::builder("empty", "1.0.0").build().http().service();
    /// service.end();
    /// let request = http::Request::get("http://localhost/elsewhere").body(String::new())?;
    /// assert_eq!(service.answer(request).await.status(), 404, "clones may still be served");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn end(&self) {
        self.endpoint.end();
    }
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body<Data: Buf + Send> + Send + 'static,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}
