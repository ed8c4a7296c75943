//! A played client ⇄ a server at a URL.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use trunkline_recording::as_client::{ClientPlayer, Next};
use trunkline_transport::http::client::{Direct, Flow};
use trunkline_wire::code;
use trunkline_wire::frame::DEFAULT_LIMIT;
use trunkline_wire::frame::sse::{Decoder, Received};
use trunkline_wire::header::{self, ParamRegistry, encode_value};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Incoming, Message, Params};
use trunkline_wire::model::meta;

use super::{LAST_NEWS, PAUSE};
use crate::failure::Failure;
use crate::recordings::now;

/// Plays until everything is answered; otherwise says why not.
pub(super) async fn play(
    player: &mut ClientPlayer,
    direct: Direct,
    patience: Duration,
) -> Result<Option<String>> {
    let (tell, mut heard) = mpsc::channel(HEARD);
    let mut line = Line {
        direct: Arc::new(direct),
        tell,
        tasks: JoinSet::new(),
        session: None,
        revision: None,
        params: ParamRegistry::new(),
        has_stream: false,
        open: HashMap::new(),
    };
    let ended = loop {
        let next = line.say_all(player).await?;
        let patience = match next {
            Next::Done if !player.is_missing_news() => break None,
            Next::Done | Next::Listen => LAST_NEWS,
            _ => patience,
        };
        match timeout(patience, heard.recv()).await {
            Err(_) if next == Next::Done => break None,
            Err(_) if next == Next::Listen => player.misses_news(),
            Err(_) => break Some("The server did not answer in time.".to_owned()),
            Ok(None) => break None,
            Ok(Some(Heard::Session(id))) => line.session = Some(id),
            // It was on its way when the client left.
            Ok(Some(Heard::Message(_, Some(stream)))) if !line.open.contains_key(&stream) => {}
            Ok(Some(Heard::Message(message, stream))) => {
                line.learn(&message);
                if let Some(reply) = player.receive(message, stream, now()) {
                    line.post(reply, None).await?;
                }
            }
        }
    };
    line.hang_up().await;
    Ok(ended)
}

/// What a task heard from the server.
enum Heard {
    Session(HeaderValue),
    Message(Message, Option<u32>),
}

struct Line {
    direct: Arc<Direct>,
    tell: mpsc::Sender<Heard>,
    tasks: JoinSet<()>,
    session: Option<HeaderValue>,
    /// The revision that `initialize` agreed on.
    revision: Option<HeaderValue>,
    params: ParamRegistry,
    has_stream: bool,
    /// The requests whose responses are read, by their streams.
    open: HashMap<u32, AbortHandle>,
}

impl Line {
    /// Says what can be said now, and what there is to wait for then.
    async fn say_all(&mut self, player: &mut ClientPlayer) -> Result<Next> {
        loop {
            match player.next(now()) {
                Next::Send(message, stream) => self.post(message, Some(stream)).await?,
                Next::SendLater(message, stream) => {
                    sleep(PAUSE).await;
                    self.post(message, Some(stream)).await?;
                }
                // Over HTTP each request stands for itself.
                Next::Close => {}
                Next::Leave(stream) => drop(self.open.remove(&stream).map(|it| it.abort())),
                wait @ (Next::Wait | Next::Listen | Next::Done) => return Ok(wait),
            }
        }
    }

    /// Posts a message. What is no request is delivered before anything else is said.
    async fn post(&mut self, message: Message, stream: Option<u32>) -> Result<()> {
        let request = self.request(&message);
        let direct = Arc::clone(&self.direct);
        match message {
            Message::Request { .. } => {
                let tell = self.tell.clone();
                let delivery = deliver(direct, request, message, stream, tell);
                let task = self.tasks.spawn(delivery);
                self.open.extend(stream.map(|it| (it, task)));
            }
            _ => {
                let sent = direct.send(request).await;
                sent.map_err(|error| Failure::reach("replay", error.to_string()))?;
                let is_open = matches!(&message, Message::Notification { method, .. } if *method == "notifications/initialized");
                if is_open && !self.has_stream {
                    self.has_stream = true;
                    self.open_stream();
                }
            }
        }
        Ok(())
    }

    fn request(&self, message: &Message) -> Request<Bytes> {
        let mut request = Request::new(Bytes::from(message.to_text()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.direct.path().parse().expect("it was parsed before");
        let headers = request.headers_mut();
        *headers = self.headers();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = "application/json, text/event-stream";
        headers.insert(ACCEPT, HeaderValue::from_static(both));
        if let Message::Request { method, params, .. } | Message::Notification { method, params } =
            message
            && let Some(revision) = revision_of(params)
        {
            // From 2026-07-28 on headers repeat parts of the body.
            let mut add = |name: &str, value: &str| {
                if let (Ok(name), Ok(value)) =
                    (HeaderName::try_from(name), HeaderValue::from_str(value))
                {
                    headers.insert(name, value);
                }
            };
            add(header::PROTOCOL_VERSION, &revision);
            add(header::METHOD, &encode_value(method));
            let member = method.known().and_then(header::name_member);
            let name = member.and_then(|it| params.get(it)?.to::<String>().ok());
            if let Some(name) = name {
                add(header::NAME, &encode_value(&name));
                for (header, value) in self.params.headers(&name, params.get("arguments")) {
                    add(&header, &value);
                }
            }
        }
        request
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.session {
            headers.insert(SESSION, id.clone());
        }
        if let Some(revision) = &self.revision {
            headers.insert(VERSION, revision.clone());
        }
        headers
    }

    /// Opens the general stream of a session; a server may have none.
    fn open_stream(&mut self) {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.direct.path().parse().expect("it was parsed before");
        *request.headers_mut() = self.headers();
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let (direct, tell) = (Arc::clone(&self.direct), self.tell.clone());
        self.tasks.spawn(async move {
            if let Ok(response) = direct.send(request).await
                && response.status().is_success()
            {
                let _ = read(response, None, &tell).await;
            }
        });
    }

    /// Learns what later requests have to repeat.
    fn learn(&mut self, message: &Message) {
        let Message::Response { outcome: Ok(result), .. } = message else { return };
        self.params.learn(result);
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Agreed {
            protocol_version: String,
        }
        if let Ok(agreed) = result.to::<Agreed>() {
            self.revision = HeaderValue::from_str(&agreed.protocol_version).ok();
        }
    }

    /// Ends the session.
    async fn hang_up(mut self) {
        self.tasks.abort_all();
        if self.session.is_some() {
            let mut request = Request::new(Bytes::new());
            *request.method_mut() = Method::DELETE;
            *request.uri_mut() = self.direct.path().parse().expect("it was parsed before");
            *request.headers_mut() = self.headers();
            let _ = timeout(LAST_NEWS, self.direct.send(request)).await;
        }
    }
}

/// Sends a request and reads its response. A failure of HTTP is told as an error.
async fn deliver(
    direct: Arc<Direct>,
    request: Request<Bytes>,
    message: Message,
    stream: Option<u32>,
    tell: mpsc::Sender<Heard>,
) {
    let Message::Request { id, .. } = message else { return };
    let why = match direct.send(request).await {
        Ok(response) => {
            if let Some(session) = response.headers().get(&SESSION).cloned() {
                let _ = tell.send(Heard::Session(session)).await;
            }
            let status = response.status();
            match read(response, stream, &tell).await {
                0 => format!("The response ended without an answer (HTTP {status})."),
                _ => return,
            }
        }
        Err(error) => error.to_string(),
    };
    let error = Message::error(id, ErrorObject::new(code::INTERNAL_ERROR, why));
    let _ = tell.send(Heard::Message(error, stream)).await;
}

/// Reads a response, and says how many answers it held.
async fn read(response: Response<Flow>, stream: Option<u32>, tell: &mpsc::Sender<Heard>) -> usize {
    let media = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let is_events = media.is_some_and(|it| it.starts_with("text/event-stream"));
    let mut flow = response.into_body();
    let (mut decoder, mut whole, mut count) = (Decoder::new(DEFAULT_LIMIT), Vec::new(), 0);
    while let Some(Ok(piece)) = flow.next().await {
        if !is_events {
            whole.extend_from_slice(&piece);
            if whole.len() > DEFAULT_LIMIT {
                return count;
            }
            continue;
        }
        decoder.push(&piece);
        let mut texts = Vec::new();
        while let Some(event) = decoder.next() {
            if let Received::Event(event) = event {
                texts.push(event.data.to_vec());
            }
        }
        for text in texts {
            count += tell_all(&text, stream, tell).await;
        }
    }
    count + tell_all(&whole, stream, tell).await
}

async fn tell_all(text: &[u8], stream: Option<u32>, tell: &mpsc::Sender<Heard>) -> usize {
    let messages = match Incoming::parse(text) {
        Incoming::One(message) => vec![message],
        Incoming::Batch(all) => all.into_iter().flatten().collect(),
        Incoming::Bad(_) => return 0,
    };
    let mut count = 0;
    for message in messages {
        count += usize::from(matches!(message, Message::Response { .. }));
        let _ = tell.send(Heard::Message(message, stream)).await;
    }
    count
}

fn revision_of(params: &Params) -> Option<String> {
    let members = trunkline_wire::jsonrpc::Object::parse(params.get("_meta")?.get()).ok()?;
    members.get(meta::PROTOCOL_VERSION).and_then(Json::as_str).map(|it| it.into_owned())
}

const SESSION: HeaderName = HeaderName::from_static(header::SESSION_ID);
const VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);
/// How many messages may wait to be heard.
const HEARD: usize = 256;
