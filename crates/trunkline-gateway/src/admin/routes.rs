//! Routes requests of the admin API to their answers.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Buf;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use trunkline_transport::Limits;
use trunkline_transport::http::{Answers, Envelopes, HttpBody, RequestBody};

use super::console::Console;
use super::console_keys::Stay;
use super::open::Entry;
use super::page::{self, WebFiles};
use super::wanted::{Query, Wanted};
use super::{
    Approving, Complaint, Keeping, Operate, TrafficFilter, TrafficUpdates, answer, limits,
};
use crate::policy::pins::Approval;

/// The admin API of a gateway.
pub(crate) struct Admin<O> {
    operate: Arc<O>,
    entry: Entry,
    console: Arc<Console>,
    files: Option<WebFiles>,
    /// Clients that follow the log or the traffic.
    followers: Mutex<JoinSet<()>>,
    /// Browsers that hear of the calls that they try.
    tries: Mutex<JoinSet<()>>,
}

impl<O: Operate> Admin<O> {
    pub(super) fn new(
        operate: Arc<O>,
        entry: Entry,
        console: Arc<Console>,
        files: Option<WebFiles>,
    ) -> Self {
        let (followers, tries) = Default::default();
        Self { operate, entry, console, files, followers, tries }
    }

    async fn respond(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<HttpBody>, Complaint> {
        let (head, body) = request.into_parts();
        self.entry.admits(&head)?;
        let path = head.uri.path();
        if let Some((status, text)) = answer::health(path, self.operate.is_ready()) {
            only(&head, &Method::GET)?;
            return Ok(answer::text(status, "text/plain; charset=utf-8", text.to_owned()));
        }
        if let Some(file) = self.files.and_then(|files| files(path)) {
            only(&head, &Method::GET)?;
            return Ok(page::respond(&head, file));
        }
        if path == ENTER {
            only(&head, &Method::POST)?;
            return self.console.enter(&read(body).await?);
        }
        let stay = self.knows(&head)?;
        let wanted = Wanted::of(path, &head.method).ok_or_else(|| nothing_at(path))?;
        only(&head, wanted.method())?;
        let query = Query::of(&head, &wanted)?;
        let operate = &self.operate;
        let done = match wanted {
            Wanted::Metrics => {
                return Ok(answer::text(StatusCode::OK, PROMETHEUS, operate.metrics()));
            }
            Wanted::Logs => return self.logs(&query, stay),
            Wanted::Servers => operate.servers(),
            Wanted::Traffic => operate.traffic(&query.filter),
            Wanted::Export => return Ok(answer::lines(operate.export(&query.filter).into())),
            Wanted::Stream => return self.stream(query.filter, stay),
            Wanted::Call(id) => {
                let found = operate.recorded_call(id).ok_or_else(|| no_call(id))?;
                return Ok(answer::json_text(StatusCode::OK, found));
            }
            Wanted::Offers(name) => operate.offers(name, query.revision).await?,
            Wanted::Try => {
                let events = operate.begin_try(parsed(&read_call(body).await?, TRY)?)?;
                return Ok(answer::events(self.while_let_in(events, stay)));
            }
            Wanted::TryAnswer(id) => {
                operate.answer_try(id, parsed(&read_call(body).await?, TRY_ANSWER)?)?
            }
            Wanted::TryCancel(id) => operate.cancel_try(id)?,
            Wanted::Tokens => operate.tokens(),
            Wanted::Approvals => operate.approvals(),
            Wanted::ApproveOne => {
                let which: Approving = parsed(&read(body).await?, APPROVE)?;
                operate.approve_one(&which).await?
            }
            Wanted::RefuseOne => {
                let which: Approving = parsed(&read(body).await?, APPROVE)?;
                operate.refuse_one(&which).await?
            }
            Wanted::Recordings => operate.recordings().await?,
            Wanted::Keep => {
                let keep: Keeping = parsed(&read(body).await?, KEEP)?;
                let filter = keep.filter()?;
                operate.keep_recording(keep.name, filter).await?
            }
            Wanted::Kept(id) => {
                let lines = operate.kept_recording(id.to_owned()).await?;
                return Ok(answer::lines(lines.into_bytes().into()));
            }
            Wanted::Remove(id) => operate.remove_recording(id.to_owned()).await?,
            Wanted::Compare => {
                let which: Comparing = parsed(&read(body).await?, COMPARE)?;
                operate.compare_recordings(which.a, which.b).await?
            }
            Wanted::LoginStart => {
                let LoginAt { url } = parsed(&read(body).await?, LOGIN)?;
                operate.begin_login(&url).await?
            }
            Wanted::LoginStep => {
                let LoginNamed { id } = parsed(&read(body).await?, LOGIN_STEP)?;
                operate.step_login(&id).await?
            }
            Wanted::Me => self.console.me(&head)?,
            Wanted::Link => json!({ "url": self.console.link()? }),
            Wanted::Leave => return Ok(self.console.leave(&head)),
            Wanted::Status => operate.status(),
            Wanted::Server(name) => server(operate.status(), name)?,
            Wanted::Instances => instances(operate.status()),
            Wanted::Calls => json!({ "calls": operate.calls(query.limit.unwrap_or(CALLS)) }),
            Wanted::Reload => operate.reload().await.map_err(not_taken)?,
            Wanted::Retry(name) => operate.retry(name)?,
            Wanted::Held(name) => operate.held(name)?,
            Wanted::Approve(name) => operate.approve(name, &approved(&read(body).await?)?).await?,
            Wanted::Stop(name) => operate.stop(name).await?,
            Wanted::LogOut(name) => {
                let whom = logged_out(&read(body).await?)?;
                operate.log_out(name, whom.as_deref()).await?
            }
        };
        Ok(answer::json(StatusCode::OK, &done))
    }

    /// Whether the request has the token, or comes from a browser that was let in, and for how long.
    fn knows(&self, head: &Parts) -> Result<Option<Stay>, Complaint> {
        let has_token = head.headers.contains_key(http::header::AUTHORIZATION);
        match self.console.knows(head).filter(|_| !has_token) {
            Some(known) => known.map(Some),
            None => self.entry.knows(head).map(|()| None),
        }
    }

    /// Recorded calls as they change.
    fn stream(
        &self,
        filter: TrafficFilter,
        stay: Option<Stay>,
    ) -> Result<Response<HttpBody>, Complaint> {
        let updates = self.operate.follow_traffic(filter).ok_or_else(|| {
            Complaint::new(StatusCode::CONFLICT, "Calls are not recorded.")
                .advice("Remove `recording: off` from the catalog.")
        })?;
        let pieces = self.follower(stay, |sender| tell(updates, sender))?;
        Ok(answer::events(pieces))
    }

    /// A body that a task writes until its client disconnects, or is no longer let in.
    fn follower<F: Future<Output = ()> + Send + 'static>(
        &self,
        stay: Option<Stay>,
        follow: impl FnOnce(mpsc::Sender<Vec<u8>>) -> F,
    ) -> Result<HttpBody, Complaint> {
        let (sender, pieces) = mpsc::channel(PIECES);
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        while followers.try_join_next().is_some() {}
        if followers.len() >= FOLLOWERS {
            let message = "Too many clients follow the log already.";
            return Err(Complaint::new(StatusCode::SERVICE_UNAVAILABLE, message)
                .advice("End one of them, or ask without `follow`."));
        }
        followers.spawn(until_out(stay, follow(sender)));
        Ok(HttpBody::pieces(pieces))
    }

    /// The events of a call, which is given up if its operator is no longer let in.
    fn while_let_in(&self, events: mpsc::Receiver<Vec<u8>>, stay: Option<Stay>) -> HttpBody {
        let Some(stay) = stay else { return HttpBody::pieces(events) };
        let (sender, pieces) = mpsc::channel(1);
        // There are no more of them than calls that can be tried at once.
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        while tries.try_join_next().is_some() {}
        tries.spawn(until_out(Some(stay), relay(events, sender)));
        HttpBody::pieces(pieces)
    }

    /// The last lines; with `follow`, also the next ones as they come.
    fn logs(&self, query: &Query, stay: Option<Stay>) -> Result<Response<HttpBody>, Complaint> {
        let server = query.server.as_deref();
        let (lines, updates) = self.operate.logs(server);
        let older = lines.len().saturating_sub(query.limit.unwrap_or(LINES));
        let mut first = Vec::new();
        lines[older..].iter().for_each(|it| write_line(&mut first, &**it));
        if !query.follow {
            return Ok(answer::lines(first.into()));
        }
        let server = query.server.clone();
        let pieces = self.follower(stay, |sender| follow::<O>(first, updates, server, sender))?;
        Ok(answer::lines(pieces))
    }
}

impl<O: Operate> Answers for Admin<O> {
    async fn answer(&self, request: Request<RequestBody>, _: &Envelopes) -> Response<HttpBody> {
        let response = self.respond(request).await.unwrap_or_else(|it| answer::refuse(&it));
        if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            self.operate.refused(response.status().as_u16());
        }
        response
    }

    fn hang_up(&self) {
        for tasks in [&self.followers, &self.tries] {
            tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        }
    }

    fn end(&self) {}
}

fn no_call(id: &str) -> Complaint {
    let id: String = id.chars().take(64).collect();
    Complaint::new(StatusCode::NOT_FOUND, format!("There is no call `{id}`, or not any more."))
        .advice("`/v1/traffic` has those there are.")
}

fn only(head: &Parts, method: &Method) -> Result<(), Complaint> {
    if head.method == *method || (head.method == Method::HEAD && *method == Method::GET) {
        return Ok(());
    }
    let message = format!("`{}` is asked for with {method}.", head.uri.path());
    Err(Complaint::new(StatusCode::METHOD_NOT_ALLOWED, message))
}

fn nothing_at(path: &str) -> Complaint {
    let path: String = path.chars().take(100).collect();
    Complaint::new(StatusCode::NOT_FOUND, format!("There is nothing at `{path}`."))
        .advice("`/v1/status` is a good place to begin.")
}

/// One server of the status.
fn server(mut status: Value, name: &str) -> Result<Value, Complaint> {
    let servers = status["servers"].as_array_mut();
    let found = servers.into_iter().flatten().find(|it| it["name"] == name);
    found.map(Value::take).ok_or_else(|| Complaint::no_server(name))
}

/// All instances of the status, each with its server.
fn instances(mut status: Value) -> Value {
    let mut found = Vec::new();
    for server in status["servers"].as_array_mut().into_iter().flatten() {
        let name = server["name"].take();
        let Value::Array(instances) = server["instances"].take() else { continue };
        for mut instance in instances {
            if let Value::Object(members) = &mut instance {
                members.insert("server".to_owned(), name.clone());
            }
            found.push(instance);
        }
    }
    json!({ "instances": found })
}

fn approved(body: &[u8]) -> Result<Vec<Approval>, Complaint> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        approve: Vec<Approval>,
    }
    match serde_json::from_slice(body) {
        Ok(Body { approve }) if !approve.is_empty() => Ok(approve),
        _ => {
            let message = "It is not clear what is approved.";
            Err(Complaint::new(StatusCode::BAD_REQUEST, message).advice(
                "Send `{\"approve\":[{\"kind\":\"tool\",\"name\":\"NAME\",\"digest\":\"sha256:…\"}]}`, \
                 with what `GET /v1/servers/NAME/held` says.",
            ))
        }
    }
}

/// Two recordings to compare.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comparing {
    a: String,
    b: String,
}

/// Where to log in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginAt {
    url: String,
}

/// Which login goes on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginNamed {
    id: String,
}

/// The body as JSON of this shape.
fn parsed<T: serde::de::DeserializeOwned>(body: &[u8], shape: &str) -> Result<T, Complaint> {
    serde_json::from_slice(body).map_err(|_| {
        let message = "The body cannot be understood.";
        Complaint::new(StatusCode::BAD_REQUEST, message).advice(format!("Send `{shape}`."))
    })
}

/// Who is logged out: one principal, or `None` for all.
fn logged_out(body: &[u8]) -> Result<Option<String>, Complaint> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        principal: Option<String>,
        #[serde(default)]
        all: bool,
    }
    match serde_json::from_slice(body) {
        Ok(Body { principal: Some(name), all: false }) => Ok(Some(name)),
        Ok(Body { principal: None, all: true }) => Ok(None),
        _ => {
            let message = "It is not clear who is logged out.";
            let advice = "Send `{\"principal\":\"NAME\"}`, or `{\"all\":true}`.";
            Err(Complaint::new(StatusCode::BAD_REQUEST, message).advice(advice))
        }
    }
}

/// The faults of a catalog as a complaint.
fn not_taken(faults: Value) -> Complaint {
    let told = |it: &Value| it.get("message").unwrap_or(it).as_str().map(str::to_owned);
    let list = faults.get("faults").unwrap_or(&faults);
    let mut sentences: Vec<_> = match list {
        Value::Array(all) => all.iter().filter_map(told).take(SHOWN).collect(),
        other => told(other).into_iter().collect(),
    };
    sentences.insert(0, "The catalog was not taken over.".to_owned());
    Complaint {
        faults: Some(list.clone()),
        ..Complaint::new(StatusCode::UNPROCESSABLE_ENTITY, sentences.join(" ")).advice(
            "See all that is wrong with `trunkline check`; the running catalog stays in force.",
        )
    }
}

/// Reads a body within the bounds of size and time.
async fn read(body: RequestBody) -> Result<Vec<u8>, Complaint> {
    read_within(body, &limits()).await
}

/// The same of a call, or of an answer within one: as much as the gateway accepts of a message.
async fn read_call(body: RequestBody) -> Result<Vec<u8>, Complaint> {
    let limits = Limits::default();
    let most = limits.message_bytes;
    read_within(body, &limits.body_bytes(most)).await
}

async fn read_within(body: RequestBody, limits: &Limits) -> Result<Vec<u8>, Complaint> {
    let most = limits.body_bytes;
    let reading = async {
        let (mut text, mut body) = (Vec::new(), pin!(body));
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let Ok(frame) = frame else {
                let message = "The body ended before it was complete.";
                return Err(Complaint::new(StatusCode::BAD_REQUEST, message));
            };
            let Ok(mut data) = frame.into_data() else { continue };
            if text.len() + data.remaining() > most {
                let message = format!("The body has more than {most} bytes.");
                return Err(Complaint::new(StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            text.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        Ok(text)
    };
    timeout(limits.body_read, reading).await.unwrap_or_else(|_| {
        let message = "The body did not come in time.";
        Err(Complaint::new(StatusCode::REQUEST_TIMEOUT, message))
    })
}

/// Works until it is done, or whoever it is for is no longer let in.
async fn until_out(stay: Option<Stay>, work: impl Future<Output = ()>) {
    let out = async {
        let Some(stay) = stay else { return std::future::pending().await };
        let until = sleep_until(stay.until.into());
        tokio::select! {
            () = until => {}
            () = stay.left() => {}
        }
    };
    tokio::select! {
        () = work => {}
        () = out => {}
    }
}

/// Passes pieces on until there are none, or the client disconnects.
async fn relay(mut from: mpsc::Receiver<Vec<u8>>, to: mpsc::Sender<Vec<u8>>) {
    loop {
        let piece = tokio::select! {
            () = to.closed() => return,
            piece = from.recv() => piece,
        };
        let Some(piece) = piece else { return };
        if to.send(piece).await.is_err() {
            return;
        }
    }
}

/// Streams changes of calls until the client disconnects.
async fn tell(mut updates: TrafficUpdates, sender: mpsc::Sender<Vec<u8>>) {
    // A comment shows at once that the server answers.
    let mut piece = b":\n\n".to_vec();
    while sender.send(piece).await.is_ok() {
        let next = tokio::select! {
            () = sender.closed() => return,
            next = updates.next() => next,
        };
        match next {
            Some(next) => piece = next,
            None => return,
        }
    }
}

/// Streams lines until the client disconnects. A client that is too slow is told how many lines it missed.
async fn follow<O: Operate>(
    first: Vec<u8>,
    mut updates: broadcast::Receiver<Arc<O::Line>>,
    server: Option<String>,
    sender: mpsc::Sender<Vec<u8>>,
) {
    // An empty line shows at once that the server answers.
    let mut piece = if first.is_empty() { b"\n".to_vec() } else { first };
    loop {
        if !piece.is_empty() && sender.send(std::mem::take(&mut piece)).await.is_err() {
            return;
        }
        let next = tokio::select! {
            () = sender.closed() => return,
            next = timeout(KEEP_ALIVE, updates.recv()) => next,
        };
        match next {
            Ok(Ok(line)) => {
                if server.as_deref().is_none_or(|it| O::is_of(&line, it)) {
                    write_line(&mut piece, &*line);
                }
            }
            Ok(Err(broadcast::error::RecvError::Lagged(missed))) => {
                write_line(&mut piece, &json!({ "missed": missed }));
            }
            Ok(Err(broadcast::error::RecvError::Closed)) => return,
            // Finds out whether the client is still connected.
            Err(_) => piece.push(b'\n'),
        }
    }
}

fn write_line(out: &mut Vec<u8>, line: &impl serde::Serialize) {
    serde_json::to_writer(&mut *out, line).expect("a line can be written to memory");
    out.push(b'\n');
}

/// Where a browser shows the key of a link.
const ENTER: &str = "/v1/console/enter";
/// The bodies of requests.
const TRY: &str = r#"{"server":"NAME","revision":"2026-07-28","method":"tools/call","params":{…}}"#;
const TRY_ANSWER: &str =
    r#"{"question":"ID","result":{…}}` or `{"question":"ID","error":{"code":-1,"message":"…"}}"#;
const APPROVE: &str = r#"{"server":"NAME","name":"NAME","digest":"sha256:…"}"#;
const KEEP: &str = r#"{"name":"NAME","filter":{"server":"NAME"}}"#;
const LOGIN: &str = r#"{"url":"https://…"}"#;
const LOGIN_STEP: &str = r#"{"id":"ID"}"#;
const COMPARE: &str = r#"{"a":"NAME","b":"NAME"}"#;
/// Calls and lines shown by default.
const CALLS: usize = 100;
const LINES: usize = 200;
/// The faults that a complaint names.
const SHOWN: usize = 3;
const FOLLOWERS: usize = 32;
/// Chunks of the log that may wait for a follower (back-pressure).
const PIECES: usize = 16;
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
