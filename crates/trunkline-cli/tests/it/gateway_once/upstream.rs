//! An HTTP server that counts how often it carries each call out, and answers it in whatever way the call asks for.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use trunkline::Revision;

/// How a revision does HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// 2024-11-05: answers come on a stream of their own.
    Sse,
    /// Up to 2025-11-25: sessions.
    Session,
    /// 2026-07-28: nothing but requests.
    Alone,
}

impl Way {
    pub(crate) fn of(revision: Revision) -> Self {
        match revision {
            Revision::V2024_11_05 => Self::Sse,
            Revision::V2026_07_28 => Self::Alone,
            _ => Self::Session,
        }
    }
}

/// The server. Cheap to clone; clones are the same one.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    revision: Revision,
    known: Arc<Mutex<Known>>,
    accepting: AbortHandle,
}

#[derive(Default)]
struct Known {
    /// By the call's key: how often it arrived, and how often it was carried out.
    calls: HashMap<u64, (u32, u32)>,
    /// Sessions that are there.
    sessions: HashSet<String>,
    opened: u32,
    /// The streams on which it speaks of its own accord.
    streams: HashMap<String, mpsc::UnboundedSender<String>>,
    /// What serves each connection.
    serving: Vec<AbortHandle>,
}

/// What it does about a call, in this order.
enum Step {
    Write(String),
    /// Says something on the stream of the session.
    Say(String),
    /// Ends that stream.
    Hush,
    /// Ends the connection in good order.
    Close,
    /// Ends the connection with a reset.
    Reset,
    /// Is gone from now on.
    Stop,
}

struct Request {
    verb: String,
    path: String,
    session: Option<String>,
    body: Value,
}

impl Upstream {
    pub(crate) async fn start(revision: Revision) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there are free ports");
        let address = listener.local_addr().expect("it is bound");
        let known = Arc::<Mutex<Known>>::default();
        let shared = Arc::clone(&known);
        let (hand, mut handed) = mpsc::unbounded_channel::<AbortHandle>();
        let accepting = tokio::spawn(async move {
            let this = handed.recv().await.expect("it is handed over at once");
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let ours =
                    Self { address, revision, known: Arc::clone(&shared), accepting: this.clone() };
                let serving = tokio::spawn(ours.serve(stream)).abort_handle();
                let mut known = shared.lock().unwrap_or_else(PoisonError::into_inner);
                known.serving.retain(|it| !it.is_finished());
                known.serving.push(serving);
            }
        })
        .abort_handle();
        let _ = hand.send(accepting.clone());
        Self { address, revision, known, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Listens no more, and hangs up on everybody.
    pub(crate) fn stop(&self) {
        self.accepting.abort();
        self.lock().serving.drain(..).for_each(|it| it.abort());
    }

    /// How often a call was carried out.
    pub(crate) fn executed(&self, key: u64) -> u32 {
        self.lock().calls.get(&key).map_or(0, |it| it.1)
    }

    /// How often anything was.
    pub(crate) fn executions(&self) -> u32 {
        self.lock().calls.values().map(|it| it.1).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, stream: TcpStream) {
        stream.set_nodelay(true).expect("this is a socket");
        let mut stream = BufReader::new(stream);
        while let Some(request) = read(&mut stream).await {
            if request.verb == "GET" {
                return self.listen(&request, stream).await;
            }
            let session = self.session_of(&request);
            for step in self.react(&request, session.as_deref()) {
                match step {
                    Step::Write(text) => {
                        if stream.get_mut().write_all(text.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                    Step::Say(text) => {
                        let to =
                            session.as_ref().and_then(|it| self.lock().streams.get(it).cloned());
                        if let Some(to) = to {
                            let _ = to.send(text);
                        }
                    }
                    Step::Hush => {
                        session.as_ref().and_then(|it| self.lock().streams.remove(it));
                    }
                    Step::Close => return,
                    Step::Reset => {
                        stream.get_ref().set_zero_linger().expect("this is a socket");
                        return;
                    }
                    Step::Stop => self.stop(),
                }
            }
        }
    }

    fn session_of(&self, request: &Request) -> Option<String> {
        match Way::of(self.revision) {
            Way::Sse => request.path.split_once("?s=").map(|it| it.1.to_owned()),
            Way::Session => request.session.clone(),
            Way::Alone => None,
        }
    }

    fn new_session(&self) -> String {
        let mut known = self.lock();
        known.opened += 1;
        let session = format!("s{}", known.opened);
        known.sessions.insert(session.clone());
        session
    }

    /// The stream on which it speaks of its own accord.
    async fn listen(&self, request: &Request, mut stream: BufReader<TcpStream>) {
        let way = Way::of(self.revision);
        let session = match way {
            Way::Sse => Some(self.new_session()),
            Way::Session => {
                let of = request.session.clone();
                of.filter(|it| self.lock().sessions.contains(it))
            }
            Way::Alone => None,
        };
        let Some(session) = session else {
            let _ = stream.get_mut().write_all(headed(405, "", "").as_bytes()).await;
            return;
        };
        let (tell, mut told) = mpsc::unbounded_channel();
        self.lock().streams.insert(session.clone(), tell);
        let mut text = events("");
        if way == Way::Sse {
            text.push_str(&chunk(&format!("event: endpoint\ndata: /messages?s={session}\n\n")));
        }
        let (mut reader, mut writer) = stream.into_inner().into_split();
        let writing = async {
            let mut said = Some(text);
            while let Some(text) = said.take() {
                if writer.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
                said = told.recv().await.map(|it| chunk(&event(&it)));
            }
        };
        let hung_up = async {
            let mut rest = [0; 64];
            while reader.read(&mut rest).await.is_ok_and(|it| it > 0) {}
        };
        tokio::select! {
            () = writing => {}
            () = hung_up => {}
        }
    }

    fn react(&self, request: &Request, session: Option<&str>) -> Vec<Step> {
        let (way, id) = (Way::of(self.revision), request.body["id"].clone());
        if request.verb != "POST" {
            return vec![Step::Write(headed(200, "", ""))];
        }
        if way == Way::Sse && !request.path.starts_with("/messages") {
            return vec![Step::Write(headed(405, "", ""))];
        }
        let is_known = session.is_some_and(|it| self.lock().sessions.contains(it));
        let method = request.body["method"].as_str().unwrap_or_default();
        if way == Way::Session && !matches!(method, "initialize" | "server/discover") && !is_known {
            return vec![Step::Write(headed(404, "", ""))];
        }
        let answer = |result: Value| {
            let text = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
            self.answer(&text)
        };
        match (method, way) {
            ("server/discover", Way::Alone) => answer(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "ttlMs": 0, "cacheScope": "public",
            })),
            ("server/discover", _) => vec![Step::Write(headed(400, "", ""))],
            ("initialize", Way::Sse | Way::Session) => {
                let text = json!({ "jsonrpc": "2.0", "id": id, "result": {
                    "protocolVersion": self.revision.as_str(), "capabilities": { "tools": {} },
                    "serverInfo": { "name": "upstream", "version": "1" },
                }});
                match way {
                    Way::Sse => self.answer(&text.to_string()),
                    _ => {
                        let headers = format!("{JSON}mcp-session-id: {}\r\n", self.new_session());
                        vec![Step::Write(headed(200, &headers, &text.to_string()))]
                    }
                }
            }
            ("tools/list", _) => {
                let schema = json!({ "type": "object" });
                let mut result = json!({ "tools": [
                    { "name": "work", "inputSchema": schema },
                    { "name": "again", "inputSchema": schema, "annotations": { "idempotentHint": true } },
                ]});
                if way == Way::Alone {
                    result["resultType"] = "complete".into();
                    result["ttlMs"] = 0.into();
                    result["cacheScope"] = "public".into();
                }
                answer(result)
            }
            ("ping", Way::Sse | Way::Session) => answer(json!({})),
            ("tools/call", _) => self.call(request, session),
            _ if id.is_null() => vec![Step::Write(headed(202, "", ""))],
            _ => {
                let error = json!({ "code": -32601, "message": "No such method." });
                let text = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
                match way {
                    Way::Sse => self.answer(&text),
                    _ => vec![Step::Write(headed(404, JSON, &text))],
                }
            }
        }
    }

    /// An answer as it should be.
    fn answer(&self, text: &str) -> Vec<Step> {
        match Way::of(self.revision) {
            Way::Sse => vec![Step::Say(text.to_owned()), Step::Write(headed(202, "", ""))],
            _ => vec![Step::Write(headed(200, JSON, text))],
        }
    }

    fn call(&self, request: &Request, session: Option<&str>) -> Vec<Step> {
        let arguments = &request.body["params"]["arguments"];
        let how = arguments["how"].as_str().expect("a call says how");
        let key = arguments["key"].as_u64().expect("a call has a key");
        let is_moved = request.path.ends_with("/there");
        let arrivals = {
            let mut known = self.lock();
            let call = known.calls.entry(key).or_default();
            call.0 += 1;
            call.0
        };
        let lose = || {
            self.lock().sessions.remove(session.unwrap_or_default());
        };
        let does_it = match how {
            _ if how.starts_with("refused_") || how == "reset_unread" => false,
            "redirect_307" => is_moved,
            "redirect_loop" | "redirect_away" => false,
            "lost" => arrivals > 1,
            "lost_then_no" => arrivals == 2,
            "lost_twice" => arrivals > 2,
            _ => true,
        };
        if does_it {
            self.lock().calls.entry(key).or_default().1 += 1;
        }
        let id = &request.body["id"];
        let is_new = Way::of(self.revision) == Way::Alone;
        let mut result = json!({ "content": [{ "type": "text", "text": format!("did {key}") }] });
        if is_new {
            result["resultType"] = "complete".into();
        }
        let said = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        let error = |id: Value| {
            let error = json!({ "code": -32000, "message": "It failed." });
            json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
        };
        let write = |text: String| vec![Step::Write(text)];
        let half = |text: &str| text[..text.len() / 2].to_owned();
        let whole = headed(200, JSON, &said);
        let (head, body) = whole.split_at(whole.len() - said.len());
        match how {
            "answer" => self.answer(&said),
            "events" => write(events(&event(&said)) + END),
            "events_twice" => write(events(&(event(&said) + &event(&said))) + END),
            "events_cut" => write(events(": hello\n\n") + END),
            "events_other" => write(events(&event(&error(json!(999_999)))) + END),
            "events_reset" => vec![Step::Write(events(": hello\n\n")), Step::Reset],
            "said_twice" => {
                let (a, b) = (Step::Say(said.clone()), Step::Say(said));
                vec![a, b, Step::Write(headed(202, "", ""))]
            }
            "404_said" => vec![Step::Say(said), Step::Write(headed(404, "", ""))],
            "said_and_500" => vec![Step::Say(said), Step::Write(headed(500, "", ""))],
            "said_and_reset" => vec![Step::Say(said), Step::Reset],
            "stream_dies" => vec![Step::Hush, Step::Write(whole)],
            "stream_dies_silently" => vec![Step::Write(headed(202, "", "")), Step::Hush],
            "accepted" => write(headed(202, "", "")),
            "accepted_late" => vec![Step::Write(headed(202, "", "")), Step::Say(said)],
            "empty" => write(headed(200, JSON, "")),
            "page" => write(headed(200, HTML, &said)),
            "untyped" => write(headed(200, "", &said)),
            "gzip" => write(headed(200, &format!("{JSON}content-encoding: gzip\r\n"), &said)),
            "reset_unread" | "reset_before" => vec![Step::Reset],
            "reset_and_stop" => vec![Step::Stop, Step::Reset],
            "close_before" => vec![Step::Close],
            "reset_head" => vec![Step::Write(half(head)), Step::Reset],
            "close_head" => vec![Step::Write(half(head)), Step::Close],
            "reset_body" => vec![Step::Write(head.to_owned() + &half(body)), Step::Reset],
            "close_body" => vec![Step::Write(head.to_owned() + &half(body)), Step::Close],
            "reset_after" => vec![Step::Write(whole), Step::Reset],
            "close_after" => {
                let mut steps = self.answer(&said);
                steps.push(Step::Close);
                steps
            }
            "lost" if arrivals > 1 => self.answer(&said),
            "lost" | "lost_twice" => {
                lose();
                write(headed(404, "", ""))
            }
            "lost_then_no" => {
                if arrivals == 1 {
                    lose();
                }
                write(headed(404, "", ""))
            }
            "redirect_307" if is_moved => self.answer(&said),
            "redirect_307" => {
                write(headed(307, &format!("location: {}/there\r\n", moved(&request.path)), ""))
            }
            "redirect_loop" => write(headed(307, &format!("location: {}\r\n", request.path), "")),
            "redirect_away" => write(headed(307, "location: http://192.0.2.1/mcp\r\n", "")),
            "redirect_302" => write(headed(302, "location: /elsewhere\r\n", "")),
            _ => {
                let (status, body) = how.split_once('_').expect("a status and a body");
                let (status, body) = match status {
                    "refused" => (body, "bare"),
                    status => (status, body),
                };
                let status = status.parse().unwrap_or_else(|_| panic!("`{how}` is not known"));
                write(match body {
                    "bare" => headed(status, "", ""),
                    "page" => headed(status, HTML, "<h1>No</h1>"),
                    "result" => headed(status, JSON, &said),
                    "error" => headed(status, JSON, &error(id.clone())),
                    "null" => headed(status, JSON, &error(Value::Null)),
                    "other" => headed(status, JSON, &error(json!(999_999))),
                    _ => panic!("`{how}` is not known"),
                })
            }
        }
    }
}

/// Where a call goes on, with whatever it said of its session.
fn moved(path: &str) -> String {
    path.split('?').next().unwrap_or_default().to_owned()
}

fn headed(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} Whatever\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

fn events(text: &str) -> String {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    head.to_owned() + &chunk(text)
}

fn chunk(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{:x}\r\n{text}\r\n", text.len()),
    }
}

fn event(text: &str) -> String {
    format!("data: {text}\n\n")
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let (mut line, mut length, mut session) = (String::new(), 0, None);
    stream.read_line(&mut line).await.ok().filter(|it| *it > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|it| *it > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "mcp-session-id" => session = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Request { verb, path, session, body })
}

const JSON: &str = "content-type: application/json\r\n";
const HTML: &str = "content-type: text/html\r\n";
const END: &str = "0\r\n\r\n";
