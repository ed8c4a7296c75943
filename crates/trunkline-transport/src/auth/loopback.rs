//! A page shown to a person → the one redirect back to this machine (RFC 8252 §7.3).

use std::fmt;
use std::future::poll_fn;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline_auth::client::browser::{Browser, Prepared, Visit};
use trunkline_auth::fetch::Pending;
use trunkline_auth::setters;
use trunkline_auth::url::fields;

use super::open::{Opener, check};
use crate::http::linger;
use crate::limits::Limits;

/// Lets people log in with the browser of this machine.
///
/// It listens on a loopback port, opens the page, answers the redirect with the `state` of that page,
/// and stops listening. Every other request meanwhile, from other programs or from pages that guess the
/// port, gets 404.
#[derive(Clone)]
pub struct Loopback {
    opener: Option<Opener>,
    tell: Option<Tell>,
    patience: Duration,
}

type Tell = Arc<dyn Fn(&str) + Send + Sync>;

impl Loopback {
    /// Opens pages in the browser of this machine.
    pub fn new() -> Self {
        Self { opener: Some(Opener::default()), tell: None, patience: LOGIN_TIMEOUT }
    }

    setters! {
        /// Also reports the URL of the page. Then a browser that does not open is no error.
        tell(tell: impl Fn(&str) + Send + Sync + 'static) { tell = Some(Arc::new(tell)) }

        /// Opens no browser: [`tell`](Self::tell) is all that happens.
        without_opening() { opener = None }

        /// Sets how long a person may take; five minutes by default.
        patience(patience: Duration) { patience = patience }
    }
}

impl Default for Loopback {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopback")
            .field("opens", &self.opener.is_some())
            .field("tell", &self.tell.is_some())
            .field("patience", &self.patience)
            .finish()
    }
}

impl Browser for Loopback {
    fn prepare<'a>(&'a self, redirect_uris: &'a [String]) -> Prepared<'a> {
        Box::pin(async move {
            let any = ["http://127.0.0.1/callback".to_owned()];
            let wanted = if redirect_uris.is_empty() { &any } else { redirect_uris };
            let mut why = None;
            for uri in wanted {
                let Some(place) = LoopbackUri::of(uri) else { continue };
                match TcpListener::bind(SocketAddr::new(place.ip, place.port)).await {
                    Err(error) => why = Some(format!("`{uri}` cannot be used: {error}")),
                    Ok(listener) => {
                        let bound = listener.local_addr().map_err(|error| error.to_string())?;
                        return Ok(Box::new(Waiting {
                            redirect_uri: place.uri(bound.port()),
                            host: place.authority(bound.port()),
                            path: place.path.to_owned(),
                            listener,
                            browser: self.clone(),
                        }) as Box<dyn Visit>);
                    }
                }
            }
            let why = why.unwrap_or("none of them is `http` on this machine".to_owned());
            Err(format!("No redirect URI of this client can be used: {why}."))
        })
    }
}

/// A listener, and the redirect it waits for.
struct Waiting {
    redirect_uri: String,
    host: String,
    path: String,
    listener: TcpListener,
    browser: Loopback,
}

impl Visit for Waiting {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn go(self: Box<Self>, url: String) -> Pending<'static, Result<String, String>> {
        Box::pin(async move {
            let Self { host, path, listener, browser, .. } = *self;
            check(&url)?;
            let Some(state) = url.split_once('?').and_then(|(_, query)| state(query)) else {
                let why = "The page has no `state`, so nobody could tell its redirect from others.";
                return Err(why.to_owned());
            };
            let wanted = Wanted { path, host, state };
            if let Some(tell) = &browser.tell {
                tell(&url);
            }
            let showing = async {
                let Some(opener) = &browser.opener else { return Ok(()) };
                let opened = opener.open(&url).await;
                if browser.tell.is_some() { Ok(()) } else { opened }
            };
            let hearing = await_redirect(listener, wanted);
            match timeout(browser.patience, both(showing, hearing)).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    let seconds = browser.patience.as_secs();
                    Err(format!("Nobody logged in within {seconds} s. Try again."))
                }
            }
        })
    }
}

/// A redirect URI on this machine.
struct LoopbackUri<'a> {
    host: &'a str,
    ip: std::net::IpAddr,
    /// 0 if the URI names none: then any port will do.
    port: u16,
    path: &'a str,
}

impl<'a> LoopbackUri<'a> {
    fn of(uri: &'a str) -> Option<Self> {
        let rest = uri.strip_prefix("http://")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, 0),
        };
        let ip = match host {
            "127.0.0.1" | "localhost" => Ipv4Addr::LOCALHOST.into(),
            "[::1]" => Ipv6Addr::LOCALHOST.into(),
            _ => return None,
        };
        (!path.contains(['?', '#'])).then_some(Self { host, ip, port, path })
    }

    fn uri(&self, port: u16) -> String {
        format!("http://{}{}", self.authority(port), self.path)
    }

    fn authority(&self, port: u16) -> String {
        format!("{}:{port}", self.host)
    }
}

/// Runs `first` beside `second`, and ends with the second or an error of the first.
async fn both(
    first: impl Future<Output = Result<(), String>>,
    second: impl Future<Output = Result<String, String>>,
) -> Result<String, String> {
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    let mut is_first_done = false;
    poll_fn(|cx| {
        if let Poll::Ready(outcome) = second.as_mut().poll(cx) {
            return Poll::Ready(outcome);
        }
        if !is_first_done && let Poll::Ready(outcome) = first.as_mut().poll(cx) {
            is_first_done = true;
            if let Err(why) = outcome {
                return Poll::Ready(Err(why));
            }
        }
        Poll::Pending
    })
    .await
}

/// Waits for the one redirect and returns its query.
async fn await_redirect(listener: TcpListener, wanted: Wanted) -> Result<String, String> {
    let answered = Arc::new(AtomicBool::new(false));
    let wanted = Arc::new(wanted);
    // Browsers open speculative connections, so none may block the others.
    let mut visitors = JoinSet::new();
    poll_fn(|cx| {
        loop {
            while let Poll::Ready(Some(done)) = visitors.poll_join_next(cx) {
                if let Ok(Some(query)) = done {
                    return Poll::Ready(Ok(query));
                }
            }
            if visitors.len() >= VISITORS {
                return Poll::Pending;
            }
            match listener.poll_accept(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok((stream, _))) => {
                    let (wanted, answered) = (Arc::clone(&wanted), Arc::clone(&answered));
                    visitors.spawn(async move {
                        let met =
                            timeout(REQUEST_TIMEOUT, answer_visitor(stream, &wanted, &answered))
                                .await;
                        met.ok().flatten()
                    });
                }
                Poll::Ready(Err(error)) => {
                    let why = format!("The redirect cannot be heard: {error}. Try again.");
                    return Poll::Ready(Err(why));
                }
            }
        }
    })
    .await
}

/// Answers one connection; returns the query if it is the redirect.
async fn answer_visitor(
    mut stream: TcpStream,
    wanted: &Wanted,
    answered: &AtomicBool,
) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        if head.len() > HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let query = wanted.asked(&head).filter(|_| !answered.swap(true, Ordering::SeqCst));
    let answer = match query {
        Some(_) => page("200 OK", DONE),
        None => page("404 Not Found", NOTHING),
    };
    // The redirect counts even if the page cannot be shown.
    let _ = stream.write_all(answer.as_bytes()).await;
    // Other clients may send a body; the person does not wait for that.
    linger(&mut stream, query.is_none(), &Limits::default()).await;
    query
}

/// Recognises the one redirect. Every page in the same browser can send a GET here, but only the opened
/// one knows the state.
struct Wanted {
    path: String,
    host: String,
    state: String,
}

impl Wanted {
    /// The query, if this is the redirect.
    fn asked(&self, head: &[u8]) -> Option<String> {
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = head.split("\r\n");
        let target = lines.next()?.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
        let mut hosts = lines.filter_map(|it| {
            let (name, value) = it.split_once(':')?;
            name.eq_ignore_ascii_case("host").then_some(value.trim())
        });
        // With DNS rebinding the Host would not be the one in the redirect URI.
        let host = hosts.next().filter(|_| hosts.next().is_none())?;
        let is_addressed = host == self.host || self.host.strip_suffix(":80") == Some(host);
        let (asked, query) = target.split_once('?')?;
        // A URI without a path is requested as `/`.
        let is_here = asked == self.path || (self.path.is_empty() && asked == "/");
        let is_ours = state(query).is_some_and(|it| it == self.state);
        (is_addressed && is_here && is_ours).then(|| query.to_owned())
    }
}

/// The state in a query, if there is exactly one.
fn state(query: &str) -> Option<String> {
    let fields = fields(query.split('#').next().unwrap_or_default());
    let mut states = fields.into_iter().filter(|(name, _)| name == "state").map(|(_, it)| it);
    let state = states.next()?;
    (states.next().is_none() && !state.is_empty()).then_some(state)
}

fn page(status: &str, text: &str) -> String {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>trunkline</title>\
         <p>{text}</p></html>"
    );
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{html}",
        html.len()
    )
}

const DONE: &str = "You can close this window and go back to the program that opened it.";
const NOTHING: &str = "There is nothing here.";
/// How long a person may take.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a connection may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest head of a request.
const HEAD: usize = 16 * 1024;
/// Concurrent connections.
const VISITORS: usize = 32;

#[cfg(test)]
mod tests;
