//! A listener → an authorization server there, until it is dropped.

use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_body::Body;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use trunkline_auth::fetch::{Ask, Fetch};
use trunkline_transport::Limits;
use trunkline_transport::http::{Answers, Envelopes, HttpBody, RequestBody, serve};

use crate::authority::Authority;
use crate::message::{Request, Response};
use crate::page;
use crate::settings::Settings;

/// An authorization server that answers over HTTP until this is dropped.
#[must_use = "it is over when this is dropped"]
pub struct Serving {
    authority: Arc<Authority>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Authority {
    /// Serves at a listener. The issuer is `http://` and the listener's address.
    pub fn serve(listener: TcpListener, settings: Settings) -> io::Result<Serving> {
        let issuer = format!("http://{}", listener.local_addr()?);
        Serving::start(Self::new(issuer, settings), listener, None)
    }
}

impl Serving {
    /// Serves an authorization server at a listener. What it [wants](Authority::wants) is fetched
    /// by `fetch`, and not found without one.
    pub fn start(
        authority: Authority,
        listener: TcpListener,
        fetch: Option<Arc<dyn Fetch>>,
    ) -> io::Result<Self> {
        let (authority, address) = (Arc::new(authority), listener.local_addr()?);
        let door = Arc::new(Entrance { authority: authority.clone(), fetch });
        // It owns every connection: when it is stopped, so are they.
        let accepting = tokio::spawn(async move {
            drop(serve(listener, door, limits(), pending()).await);
        });
        Ok(Self { authority, address, accepting })
    }

    /// Where it listens.
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

/// Where requests come in.
struct Entrance {
    authority: Arc<Authority>,
    fetch: Option<Arc<dyn Fetch>>,
}

impl Answers for Entrance {
    async fn answer(
        &self,
        request: http::Request<RequestBody>,
        _: &Envelopes,
    ) -> http::Response<HttpBody> {
        answer(&self.authority, self.fetch.as_deref(), request).await
    }

    fn hang_up(&self) {}

    fn end(&self) {}
}

fn limits() -> Limits {
    Limits::default().connections(CONNECTIONS).header_read(DEADLINE).header_bytes(LONGEST_HEAD)
}

async fn answer(
    authority: &Authority,
    fetch: Option<&dyn Fetch>,
    request: http::Request<RequestBody>,
) -> http::Response<HttpBody> {
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
async fn read(request: http::Request<RequestBody>) -> Option<Request> {
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

fn written(response: Response) -> http::Response<HttpBody> {
    let mut written = http::Response::builder().status(response.status);
    for (name, value) in response.headers {
        written = written.header(name, value);
    }
    written.body(HttpBody::from(response.body.into_bytes())).unwrap_or_else(|_| {
        let mut broken = http::Response::new(HttpBody::default());
        *broken.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        broken
    })
}

const CONNECTIONS: usize = 512;
const LARGEST: usize = 64 * 1024;
const LONGEST_HEAD: usize = 32 * 1024;
const DEADLINE: Duration = Duration::from_secs(15);
