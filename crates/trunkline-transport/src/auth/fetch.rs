//! Requests of the authorization rules → HTTP, within a guard.
//!
//! A host is resolved once, every address is checked, and one of those is called. There is no second
//! lookup that DNS rebinding could answer differently.

mod connect;

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::{HeaderName, HeaderValue, Request, Response};
use tokio::time::timeout;
use trunkline_auth::address::Guard;
use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};
use trunkline_auth::url;

use crate::http::client::target::Address;
use crate::http::client::{Pieces, send_single};
use connect::{Connector, Network, Stream, Way};

/// Makes the requests that the authorization rules need.
///
/// Each request has its own connection and no cookies, and ignores proxy environment variables. A
/// request with all its redirects takes at most 15 s, and its answer has at most 256 KiB.
pub struct HttpFetch {
    guard: Guard,
    connector: Box<dyn Connector>,
    way: OnceLock<Result<Way, String>>,
    /// Root certificates as PEM.
    roots: Vec<Vec<u8>>,
}

impl HttpFetch {
    /// Makes requests that `guard` allows.
    pub fn new(guard: Guard) -> Self {
        Self::through(guard, Network)
    }

    /// Makes requests for the client of a server that the user named: see [`Guard::for_server`].
    pub fn for_server(url: &str) -> Self {
        Self::new(Guard::for_server(url))
    }

    /// Also trusts certificates issued by these roots, one or more in PEM. The first request over
    /// `https` reports an invalid one.
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    fn through(guard: Guard, connector: impl Connector) -> Self {
        let connector = Box::new(connector);
        Self { guard, connector, way: OnceLock::new(), roots: Vec::new() }
    }

    async fn follow(&self, mut ask: Ask) -> Result<Answer, FetchError> {
        let mut at = Address::parse(&ask.url).map_err(FetchError::Forbidden)?;
        for _ in 0..=HOPS {
            let answer = self.once(&ask, &at).await?;
            let Some(location) = redirect(&ask, &answer) else { return Ok(answer) };
            let next = at.resolve(location).map_err(FetchError::Forbidden)?;
            if at.origin.is_tls && !next.origin.is_tls {
                let why = format!(
                    "`{}` redirects from `https` to `http`, where others can listen in. Ask \
                     its operator.",
                    at.origin
                );
                return Err(FetchError::Forbidden(why));
            }
            if next.origin != at.origin {
                // Headers meant for one origin are not sent to another.
                ask.headers.retain(|(name, _)| name.eq_ignore_ascii_case("accept"));
            }
            at = next;
        }
        let url = url::shown(&ask.url);
        let why = format!("`{url}` redirects more than {HOPS} times. Ask its operator.");
        Err(FetchError::Failed(why))
    }

    async fn once(&self, ask: &Ask, at: &Address) -> Result<Answer, FetchError> {
        let failed = |why: String| {
            FetchError::Failed(format!("Asking `{}` failed: {why}.", url::shown(&at.to_string())))
        };
        let request = request(ask, at).map_err(failed)?;
        let stream = self.connect(at).await?;
        let response = send_single(stream, request).await.map_err(|it| failed(it.to_string()))?;
        read(response).await.map_err(failed)
    }

    async fn connect(&self, at: &Address) -> Result<Box<dyn Stream>, FetchError> {
        let (stream, host) = connect::connect(&*self.connector, self.guard, &at.origin).await?;
        if !at.origin.is_tls {
            return Ok(stream);
        }
        let failed =
            |why: &str| FetchError::Failed(format!("Connecting to `{}` failed: {why}.", at.origin));
        let way = self.way.get_or_init(|| Way::new(&self.roots));
        let way = way.as_ref().map_err(|why| failed(why.trim_end_matches('.')))?;
        way.secure(&host, stream).await.map_err(|why| failed(&why))
    }
}

impl Fetch for HttpFetch {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        let url = url::shown(&ask.url);
        Box::pin(async move {
            timeout(DEADLINE, self.follow(ask)).await.unwrap_or_else(|_| {
                let seconds = DEADLINE.as_secs();
                let why = format!("`{url}` did not answer within {seconds} s. Try again later.");
                Err(FetchError::Failed(why))
            })
        })
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn detach(&self, work: Pending<'static, ()>) -> Pending<'static, ()> {
        let task = tokio::spawn(work);
        Box::pin(async move {
            // A panic in the task becomes a panic of its caller.
            if let Err(error) = task.await
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        })
    }
}

impl fmt::Debug for HttpFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFetch").field("guard", &self.guard).finish_non_exhaustive()
    }
}

/// The redirect target of an answer to a GET. A POST is never sent elsewhere.
fn redirect<'a>(ask: &Ask, answer: &'a Answer) -> Option<&'a str> {
    let is_redirect = matches!(answer.status, 301 | 302 | 303 | 307 | 308) && ask.method == "GET";
    answer.first("location").filter(|_| is_redirect)
}

fn request(ask: &Ask, at: &Address) -> Result<Request<Bytes>, String> {
    let mut request = Request::new(Bytes::copy_from_slice(&ask.body));
    *request.method_mut() = ask.method.parse().map_err(|_| "its method is none".to_owned())?;
    *request.uri_mut() = at.path.clone();
    let headers = request.headers_mut();
    headers.insert(HOST, at.origin.name.clone());
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    for (name, value) in &ask.headers {
        let parsed: Result<HeaderName, _> = name.parse();
        let Ok(name) = parsed else { return Err(format!("`{name}` is no name of a header")) };
        // The value may be a secret, so it is not repeated.
        let value = HeaderValue::from_str(value);
        let value = value.map_err(|_| format!("the value of `{name}` cannot stand in a header"))?;
        headers.append(name, value);
    }
    Ok(request)
}

async fn read(mut response: Response<Pieces>) -> Result<Answer, String> {
    let mut answer = Answer::new(response.status().as_u16(), Vec::new());
    for (name, value) in response.headers() {
        if let Ok(value) = value.to_str() {
            answer.headers.push((name.as_str().to_owned(), value.to_owned()));
        }
    }
    let body = response.body_mut();
    while let Some(data) = body.next().await {
        let data = data.map_err(|error| error.to_string())?;
        if answer.body.len() + data.len() > BODY {
            return Err(format!("its answer is longer than {} KiB", BODY / 1024));
        }
        answer.body.extend_from_slice(&data);
    }
    Ok(answer)
}

/// How many redirects are followed.
const HOPS: usize = 3;
/// The deadline of a request with all its redirects.
const DEADLINE: Duration = Duration::from_secs(15);
/// The longest body of an answer.
const BODY: usize = 256 * 1024;
const AGENT: &str = concat!("trunkline/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests;
