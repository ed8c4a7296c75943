//! A listener → an authorization server there, until it is dropped.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use trunkline_auth::fetch::{Ask, Fetch};

use crate::authority::Authority;
use crate::message::{Request, Response};
use crate::page;
use crate::settings::Settings;

/// An authorization server that answers over HTTP until this is dropped.
///
/// ```
/// # use trunkline_authority::{Authority, Settings};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let authority = Authority::serve(listener, Settings::new().approve_as("alice"))?;
/// assert_eq!(authority.issuer(), format!("http://{}", authority.address()));
/// assert_eq!(authority.stats().requests, 0);
/// # Ok::<(), std::io::Error>(()) })?; Ok::<(), std::io::Error>(())
/// ```
#[must_use = "it is over when this is dropped"]
pub struct Serving {
    authority: Arc<Authority>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Authority {
    /// Serves at a listener. The issuer is `http://` and the listener's address.
    ///
    /// ```
    /// # use trunkline_authority::{Authority, Settings};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let authority = Authority::serve(listener, Settings::new())?;
    /// assert!(authority.issuer().starts_with("http://127.0.0.1:"));
    /// # Ok::<(), std::io::Error>(()) })?; Ok::<(), std::io::Error>(())
    /// ```
    pub fn serve(listener: TcpListener, settings: Settings) -> io::Result<Serving> {
        let issuer = format!("http://{}", listener.local_addr()?);
        Serving::start(Self::new(issuer, settings), listener, None)
    }
}

impl Serving {
    /// Serves an authorization server at a listener. What it [wants](Authority::wants) is fetched
    /// by `fetch`, and not found without one.
    ///
    /// ```
    /// # use trunkline_authority::{Authority, Serving, Settings};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let issuer = format!("http://localhost:{}", listener.local_addr()?.port());
    /// let authority = Authority::new(issuer, Settings::new());
    /// let serving = Serving::start(authority, listener, None)?;
    /// assert!(serving.issuer().starts_with("http://localhost:"));
    /// # Ok::<(), std::io::Error>(()) })?; Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(
        authority: Authority,
        listener: TcpListener,
        fetch: Option<Arc<dyn Fetch>>,
    ) -> io::Result<Self> {
        let (authority, address) = (Arc::new(authority), listener.local_addr()?);
        let accepting = tokio::spawn(accept(listener, authority.clone(), fetch));
        Ok(Self { authority, address, accepting })
    }

    /// Where it listens.
    ///
    /// ```
    /// # use trunkline_authority::{Authority, Settings};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let authority = Authority::serve(listener, Settings::new())?;
    /// assert!(authority.address().ip().is_loopback());
    /// # Ok::<(), std::io::Error>(()) })?; Ok::<(), std::io::Error>(())
    /// ```
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Deref for Serving {
    type Target = Authority;

    fn deref(&self) -> &Authority {
        &self.authority
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// Owns every connection: when it is stopped, so are they.
async fn accept(listener: TcpListener, authority: Arc<Authority>, fetch: Option<Arc<dyn Fetch>>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, for the most part: some come back when connections end.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (authority, fetch) = (authority.clone(), fetch.clone());
        connections.spawn(async move {
            let service = service_fn(|request| {
                let (authority, fetch) = (authority.clone(), fetch.clone());
                async move { Ok::<_, Infallible>(answer(&authority, fetch.as_deref(), request).await) }
            });
            let mut connection = http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(DEADLINE).max_buf_size(32 * 1024);
            // Whoever hangs up in the middle has no use for an answer.
            drop(connection.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn answer(
    authority: &Authority,
    fetch: Option<&dyn Fetch>,
    request: hyper::Request<Incoming>,
) -> hyper::Response<String> {
    let response = match timeout(DEADLINE, read(request)).await {
        Ok(Some(request)) => {
            if let Some(url) = authority.wants(&request) {
                let found = match fetch {
                    Some(fetch) => fetch.fetch(Ask::get(&*url)).await.ok(),
                    None => None,
                };
                let found = found.filter(|it| it.is_ok()).map(|it| it.body);
                authority.learn(&url, found.as_deref(), request.now);
            }
            authority.answer(request)
        }
        Ok(None) => page::message(413, "Too long", "The request is too long, or broke off."),
        Err(_) => page::message(408, "Too slow", "The request took too long."),
    };
    written(response)
}

/// Reads a request whole, if it is not too long.
async fn read(request: hyper::Request<Incoming>) -> Option<Request> {
    let (head, mut body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("/", |it| it.as_str());
    let mut request = Request::new(head.method.as_str(), target, SystemTime::now());
    for (name, value) in &head.headers {
        // A header that is no text is none that we read, and must not be mistaken for absent.
        request = request.header(name.as_str(), String::from_utf8_lossy(value.as_bytes()));
    }
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame.ok()?.into_data() {
            request.body.extend_from_slice(&data);
        }
        if request.body.len() > LARGEST {
            return None;
        }
    }
    Some(request)
}

fn written(response: Response) -> hyper::Response<String> {
    let mut written = hyper::Response::builder().status(response.status);
    for (name, value) in response.headers {
        written = written.header(name, value);
    }
    written.body(response.body).unwrap_or_else(|_| {
        let mut broken = hyper::Response::new(String::new());
        *broken.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
        broken
    })
}

const CONNECTIONS: usize = 512;
const LARGEST: usize = 64 * 1024;
const DEADLINE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(50);
