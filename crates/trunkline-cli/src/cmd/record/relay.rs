//! A tap on HTTP: requests and responses pass between the client and a server at a URL, and are recorded before they
//! do. Event streams pass as they come.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, request};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use trunkline_proto::http::Refusal;
use trunkline_recording::line::{HttpHead, Party};
use trunkline_recording::recorder::Place;
use trunkline_transport::Limits;
use trunkline_transport::http::client::{Direct, Flow, HttpTarget};
use trunkline_transport::http::forward::remove_hop_by_hop;
use trunkline_transport::http::{HttpBody, RequestBody};
use trunkline_wire::frame::sse::{Decoder, Received};
use trunkline_wire::header::SESSION_ID;

use super::file::RecordingFile;
use crate::failure::Failure;
use crate::interrupt::Signals;
use crate::loopback::{self, Responder};

/// Serves until a signal.
pub(super) async fn run(
    target: HttpTarget,
    listen: SocketAddr,
    file: RecordingFile,
) -> Result<ExitCode> {
    let mut signals = Signals::new()?;
    let limits = Limits::default().shutdown(LAST_CALLS);
    let direct = Direct::new(&target, &limits).map_err(Failure::usage)?;
    let path = direct.path();
    let listener = loopback::bind(listen).await?;
    let at = listener.local_addr()?;
    let (url, path_shown) = (target.shown(), path.split('?').next().unwrap_or_default());
    let hint = format!("Have the client use http://{at}{path_shown}; `{url}` is recorded.");
    // The reader of stderr may be gone.
    let _ = writeln!(std::io::stderr(), "{hint}");
    let relay = Arc::new(Relay {
        direct: Arc::new(direct),
        path,
        file: Arc::new(file),
        streams: AtomicU32::new(0),
        passing: Mutex::default(),
        endless: Mutex::default(),
        limits: limits.clone(),
    });
    let mut number = 0;
    let stopped = async { number = signals.next().await };
    loopback::serve(listener, Arc::clone(&relay), limits, stopped).await?;
    relay.file.finish(None);
    // Ended as asked for.
    Ok(match number {
        2 | 15 => ExitCode::SUCCESS,
        other => ExitCode::from(128 + other),
    })
}

struct Relay {
    direct: Arc<Direct>,
    /// The path and query of the server; what is elsewhere passes unrecorded, because it may be a login.
    path: String,
    file: Arc<RecordingFile>,
    streams: AtomicU32,
    /// Responses that are being passed on.
    passing: Mutex<JoinSet<()>>,
    /// Those to a GET, which never end by themselves.
    endless: Mutex<JoinSet<()>>,
    limits: Limits,
}

impl Responder for Relay {
    async fn respond(
        &self,
        head: request::Parts,
        body: RequestBody,
    ) -> Result<Response<HttpBody>, Refusal> {
        let body = body.read_all(self.limits.message_bytes, self.limits.body_read).await?;
        let is_recorded = head.uri.path() == self.path.split('?').next().unwrap_or_default();
        let place = is_recorded.then(|| self.record_request(&head, &body));
        let is_endless = head.method == Method::GET;
        let request = self.passed_on(head, body.clone(), is_recorded)?;
        // The client may leave while the server thinks: then this future is dropped.
        let mut waiting = Waiting(place.map(|it| (it, Arc::clone(&self.file))));
        let response = self.direct.send(request).await;
        waiting.0 = None;
        let mut response = response.map_err(|error| unreachable(&error.to_string()))?;
        remove_hop_by_hop(response.headers_mut(), &ALSO_REMOVED);
        let place = place.map(|it| self.record_response(it, &response, &body));
        let (parts, flow) = response.into_parts();
        let media = parts.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let media = media.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let taking = place.map(|place| Taking {
            place,
            file: Arc::clone(&self.file),
            body: match media {
                "text/event-stream" => Body::Events(Decoder::new(self.limits.message_bytes)),
                "application/json" => Body::Text(Vec::new(), self.limits.message_bytes),
                _ => Body::Other,
            },
        });
        let (pieces, receiver) = mpsc::channel(PIECES);
        let mut passing = lock(if is_endless { &self.endless } else { &self.passing });
        while passing.try_join_next().is_some() {}
        passing.spawn(forward(flow, taking, pieces));
        Ok(Response::from_parts(parts, HttpBody::relayed(receiver)))
    }

    fn hang_up(&self) {
        lock(&self.endless).abort_all();
    }

    fn end(&self) {
        lock(&self.passing).abort_all();
    }
}

impl Relay {
    /// A request as the server gets it.
    fn passed_on(
        &self,
        mut head: request::Parts,
        body: Vec<u8>,
        is_recorded: bool,
    ) -> Result<Request<Bytes>, Refusal> {
        let path = match is_recorded {
            true => self.path.as_str(),
            false => head.uri.path_and_query().map_or("/", |it| it.as_str()),
        };
        let mut request = Request::new(Bytes::from(body));
        *request.uri_mut() = path.parse().map_err(|_| unreachable("The path is none."))?;
        *request.method_mut() = head.method;
        remove_hop_by_hop(&mut head.headers, &ALSO_REMOVED);
        // The server judges where we come from, not which page the client shows.
        head.headers.remove(header::ORIGIN);
        head.headers.remove(header::CONTENT_LENGTH);
        // A compressed answer could not be recorded.
        head.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        *request.headers_mut() = head.headers;
        Ok(request)
    }

    /// Notes a request, and says where its response belongs.
    fn record_request(&self, head: &request::Parts, body: &[u8]) -> Place {
        let stream = self.streams.fetch_add(1, Ordering::Relaxed) + 1;
        let session = head.headers.get(SESSION_ID).and_then(|it| it.to_str().ok());
        self.file.write(|recorder, now, out| {
            let session = Some(recorder.session(session, body));
            let place = Place { session, stream: Some(stream) };
            let http = HttpHead { method: Some(head.method.to_string()), ..HttpHead::default() };
            recorder.head(Party::Client, place, http, texts(&head.headers), now, out);
            if !body.is_empty() {
                recorder.message(Party::Client, place, body, now, out);
            }
            place
        })
    }

    fn record_response(&self, place: Place, response: &Response<Flow>, asked: &[u8]) -> Place {
        let session = response.headers().get(SESSION_ID).and_then(|it| it.to_str().ok());
        self.file.write(|recorder, now, out| {
            if let Some(number) = place.session
                && response.status().is_success()
                && is_opening(asked)
            {
                recorder.opened(number, session);
            }
            let status = Some(response.status().as_u16());
            let http = HttpHead { status, ..HttpHead::default() };
            recorder.head(Party::Server, place, http, texts(response.headers()), now, out);
        });
        place
    }
}

/// A request that waits for the head of its response. Dropping it means that the client has left.
struct Waiting(Option<(Place, Arc<RecordingFile>)>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((place, file)) = self.0.take() {
            file.write(|recorder, now, out| recorder.left(place, now, out));
        }
    }
}

/// A response that is recorded as it passes.
struct Taking {
    place: Place,
    file: Arc<RecordingFile>,
    body: Body,
}

enum Body {
    Events(Decoder),
    /// One text, and how long it may be.
    Text(Vec<u8>, usize),
    Other,
}

impl Taking {
    /// Takes a piece, and says whether it may pass. A text passes as a whole, once it is recorded.
    fn take(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        match &mut self.body {
            Body::Events(decoder) => {
                decoder.push(piece);
                while let Some(event) = decoder.next() {
                    if let Received::Event(event) = event
                        && event.event.is_none_or(|it| it == "message")
                        && !event.data.is_empty()
                    {
                        let (place, data) = (self.place, event.data);
                        self.file.write(|recorder, now, out| {
                            recorder.message(Party::Server, place, data, now, out);
                        });
                    }
                }
                Some(piece.to_vec())
            }
            Body::Text(text, limit) => {
                text.extend_from_slice(piece);
                if text.len() <= *limit {
                    return None;
                }
                let text = std::mem::take(text);
                self.body = Body::Other;
                Some(text)
            }
            Body::Other => Some(piece.to_vec()),
        }
    }

    /// The response is whole: what has not passed yet.
    fn finish(self) -> Option<Vec<u8>> {
        let Body::Text(text, _) = self.body else { return None };
        let place = self.place;
        self.file.write(|recorder, now, out| {
            recorder.message(Party::Server, place, &text, now, out);
        });
        Some(text)
    }
}

/// Passes a body on, at the pace of the client, until one of both is gone.
async fn forward(
    mut flow: Flow,
    mut taking: Option<Taking>,
    pieces: mpsc::Sender<io::Result<Vec<u8>>>,
) {
    loop {
        let piece = tokio::select! {
            piece = flow.next() => piece,
            () = pieces.closed() => return leave(taking),
        };
        let passed = match piece {
            Some(Ok(piece)) => match &mut taking {
                Some(taking) => taking.take(&piece),
                None => Some(piece.to_vec()),
            },
            // The client must not take it for complete.
            Some(Err(error)) => return drop(pieces.send(Err(error)).await),
            None => break,
        };
        if let Some(passed) = passed
            && pieces.send(Ok(passed)).await.is_err()
        {
            return leave(taking);
        }
    }
    if let Some(rest) = taking.and_then(Taking::finish) {
        let _ = pieces.send(Ok(rest)).await;
    }
}

/// The client has closed a response before its end.
fn leave(taking: Option<Taking>) {
    if let Some(Taking { place, file, .. }) = taking {
        file.write(|recorder, now, out| recorder.left(place, now, out));
    }
}

fn is_opening(body: &[u8]) -> bool {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let message = trunkline_recording::tree::Tree::parse(text).ok();
    message.is_some_and(|it| it.get("method").and_then(|it| it.as_text()) == Some("initialize"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn texts(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()))
}

fn unreachable(why: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_GATEWAY, format!("The recorded server cannot be reached: {why}"))
}

/// How long open calls may continue once a signal has come.
const LAST_CALLS: Duration = Duration::from_secs(3);
/// How many pieces may wait for the client.
const PIECES: usize = 16;
/// What else is about the client and us alone.
const ALSO_REMOVED: [HeaderName; 2] = [HeaderName::from_static("proxy-connection"), header::EXPECT];
