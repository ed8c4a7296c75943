//! A played server over HTTP: sessions up to 2025-11-25, single requests from 2026-07-28 on.

use std::collections::HashMap;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode, request};
use tokio::sync::mpsc;
use trunkline_auth::tag::random_name;
use trunkline_proto::http::Refusal;
use trunkline_recording::as_server::{Output, ServerPlayer};
use trunkline_recording::recording::Recording;
use trunkline_transport::Limits;
use trunkline_transport::http::{HttpBody, RequestBody};
use trunkline_wire::frame::sse::Event;
use trunkline_wire::header::SESSION_ID;
use trunkline_wire::jsonrpc::{Id, Message};

use crate::loopback::{self, Responder};
use crate::output::Screen;
use trunkline_recording::lines::messages;

/// Plays the server until a signal.
pub(super) async fn run(
    recording: &Recording,
    address: SocketAddr,
    screen: &Screen,
) -> Result<ExitCode> {
    loopback::check(address)?;
    let listener = loopback::bind(address).await?;
    // The reader of stderr may be gone.
    let at = listener.local_addr()?;
    let _ = writeln!(std::io::stderr(), "Playing the recorded server at http://{at}/mcp.");
    let player = ServerPlayer::new(recording);
    let state = State { unnamed: Actor::new(player.clone()), sessions: HashMap::new() };
    let limits = Limits::default();
    let stage =
        Stage { player, state: Mutex::new(state), limits: limits.clone(), screen: screen.clone() };
    loopback::serve(listener, Arc::new(stage), limits, std::future::pending()).await?;
    Ok(ExitCode::SUCCESS)
}

struct Stage {
    /// As it is before the first request.
    player: ServerPlayer,
    state: Mutex<State>,
    limits: Limits,
    screen: Screen,
}

struct State {
    /// For clients without a session.
    unnamed: Actor,
    sessions: HashMap<String, Actor>,
}

/// The server as one client sees it.
struct Actor {
    player: ServerPlayer,
    /// The open event streams of requests.
    streams: HashMap<Id, mpsc::Sender<Vec<u8>>>,
    general: Option<mpsc::Sender<Vec<u8>>>,
    /// What was said before the client opened the general stream.
    early: Vec<Vec<u8>>,
}

impl Responder for Stage {
    async fn respond(
        &self,
        head: request::Parts,
        body: RequestBody,
    ) -> Result<Response<HttpBody>, Refusal> {
        match head.method {
            Method::POST => {
                let text = body.read_all(self.limits.message_bytes, self.limits.body_read).await?;
                self.post(&head.headers, &text)
            }
            Method::GET => self.get(&head.headers),
            Method::DELETE => self.delete(&head.headers),
            _ => Err(Refusal::method("GET, POST, DELETE")),
        }
    }

    fn hang_up(&self) {
        let mut state = self.lock();
        state.sessions.clear();
        state.unnamed = Actor::new(self.player.clone());
    }
}

impl Stage {
    fn post(&self, headers: &HeaderMap, text: &[u8]) -> Result<Response<HttpBody>, Refusal> {
        let messages = messages(text);
        let [message] = messages.as_slice() else {
            let why = "Send one message of JSON-RPC.";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, why));
        };
        let mut state = self.lock();
        let opens = matches!(message, Message::Request { method, .. } if *method == "initialize");
        let opened = opens.then(random_name);
        if let Some(id) = &opened {
            if state.sessions.len() >= self.limits.sessions {
                let why = "There are too many sessions.";
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why));
            }
            state.sessions.insert(id.clone(), Actor::new(self.player.clone()));
        }
        let actor = match opened.as_deref().or(session_of(headers)) {
            Some(id) => state.sessions.get_mut(id).ok_or_else(no_session)?,
            None => &mut state.unnamed,
        };
        let outputs = actor.player.receive(message);
        for remark in actor.player.remarks() {
            self.screen.aside("replay", &remark);
        }
        let mut response = actor.respond(message, outputs);
        if let Some(id) = opened.and_then(|it| HeaderValue::try_from(it).ok()) {
            response.headers_mut().insert(SESSION, id);
        }
        Ok(response)
    }

    fn get(&self, headers: &HeaderMap) -> Result<Response<HttpBody>, Refusal> {
        let Some(id) = session_of(headers) else { return Err(Refusal::method("POST")) };
        let mut state = self.lock();
        let actor = state.sessions.get_mut(id).ok_or_else(no_session)?;
        let (sender, receiver) = mpsc::channel(PIECES);
        for piece in actor.early.drain(..) {
            let _ = sender.try_send(piece);
        }
        actor.general = Some(sender);
        Ok(events(receiver))
    }

    fn delete(&self, headers: &HeaderMap) -> Result<Response<HttpBody>, Refusal> {
        let removed = session_of(headers).and_then(|it| self.lock().sessions.remove(it));
        removed.ok_or_else(no_session)?;
        let mut response = Response::new(HttpBody::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Actor {
    fn new(player: ServerPlayer) -> Self {
        Self { player, streams: HashMap::new(), general: None, early: Vec::new() }
    }

    /// The response to a POST; what belongs elsewhere goes there.
    fn respond(&mut self, message: &Message, outputs: Vec<Output>) -> Response<HttpBody> {
        let Message::Request { id, .. } = message else {
            outputs.into_iter().for_each(|it| self.say(it));
            let mut response = Response::new(HttpBody::default());
            *response.status_mut() = StatusCode::ACCEPTED;
            return response;
        };
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for output in outputs {
            match output.request.as_ref() == Some(id) {
                true => own.push(output),
                false => others.push(output),
            }
        }
        let response = match own.as_slice() {
            // The answer alone needs no stream.
            [only] if only.is_last => {
                let mut response =
                    Response::new(HttpBody::from(only.message.to_text().into_bytes()));
                let status = only.status.and_then(|it| StatusCode::from_u16(it).ok());
                *response.status_mut() = status.unwrap_or(StatusCode::OK);
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, json);
                response
            }
            _ => {
                let (sender, receiver) = mpsc::channel(PIECES);
                self.streams.retain(|_, it| !it.is_closed());
                self.streams.insert(id.clone(), sender);
                own.into_iter().for_each(|it| self.say(it));
                events(receiver)
            }
        };
        others.into_iter().for_each(|it| self.say(it));
        response
    }

    /// Says something on the stream that it belongs on. A client that does not read loses it.
    fn say(&mut self, output: Output) {
        let mut piece = Vec::new();
        let text = output.message.to_text();
        Event { data: text.as_bytes(), ..Event::default() }.write(&mut piece);
        match &output.request {
            Some(id) => {
                if let Some(stream) = self.streams.get(id) {
                    let _ = stream.try_send(piece);
                }
                if output.is_last {
                    self.streams.remove(id);
                }
            }
            None => match &self.general {
                Some(stream) => drop(stream.try_send(piece)),
                None if self.early.len() < PIECES => self.early.push(piece),
                None => {}
            },
        }
    }
}

fn events(pieces: mpsc::Receiver<Vec<u8>>) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::pieces(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

fn no_session() -> Refusal {
    let message = "There is no such session; open one with `initialize`.";
    Refusal::new(StatusCode::NOT_FOUND, message)
}

const SESSION: HeaderName = HeaderName::from_static(SESSION_ID);
/// How many pieces may wait for a client.
const PIECES: usize = 1024;
