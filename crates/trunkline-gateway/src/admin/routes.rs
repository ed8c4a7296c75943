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
use tokio::time::timeout;
use trunkline_transport::http::{Answers, Envelopes, HttpBody, RequestBody};

use super::open::Entry;
use super::{Complaint, Operate, answer, limits};
use crate::policy::pins::Approval;

/// The admin API of a gateway.
pub(crate) struct Admin<O> {
    operate: Arc<O>,
    entry: Entry,
    /// Clients that follow the log.
    followers: Mutex<JoinSet<()>>,
}

impl<O: Operate> Admin<O> {
    pub(super) fn new(operate: Arc<O>, entry: Entry) -> Self {
        Self { operate, entry, followers: Mutex::default() }
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
        self.entry.knows(&head)?;
        let wanted = Wanted::of(path).ok_or_else(|| nothing_at(path))?;
        only(&head, wanted.method())?;
        let query = Query::of(&head, &wanted)?;
        let operate = &self.operate;
        let done = match wanted {
            Wanted::Metrics => {
                return Ok(answer::text(StatusCode::OK, PROMETHEUS, operate.metrics()));
            }
            Wanted::Logs => return self.logs(&query),
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

    /// The last lines; with `follow`, also the next ones as they come.
    fn logs(&self, query: &Query) -> Result<Response<HttpBody>, Complaint> {
        let server = query.server.as_deref();
        let (lines, updates) = self.operate.logs(server);
        let older = lines.len().saturating_sub(query.limit.unwrap_or(LINES));
        let mut first = Vec::new();
        lines[older..].iter().for_each(|it| write_line(&mut first, &**it));
        if !query.follow {
            return Ok(answer::lines(first.into()));
        }
        let (sender, pieces) = mpsc::channel(PIECES);
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        while followers.try_join_next().is_some() {}
        if followers.len() >= FOLLOWERS {
            let message = "Too many clients follow the log already.";
            return Err(Complaint::new(StatusCode::SERVICE_UNAVAILABLE, message)
                .advice("End one of them, or ask without `follow`."));
        }
        followers.spawn(follow::<O>(first, updates, query.server.clone(), sender));
        Ok(answer::lines(HttpBody::pieces(pieces)))
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
        self.followers.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    fn end(&self) {}
}

/// What a path means.
enum Wanted<'a> {
    Status,
    Server(&'a str),
    Instances,
    Calls,
    Logs,
    Metrics,
    Reload,
    Retry(&'a str),
    Held(&'a str),
    Approve(&'a str),
    Stop(&'a str),
    LogOut(&'a str),
}

impl<'a> Wanted<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let rest = match path {
            "/metrics" => return Some(Self::Metrics),
            path => path.strip_prefix("/v1/")?,
        };
        let mut parts = rest.split('/');
        let wanted = match (parts.next()?, parts.next(), parts.next()) {
            ("status", None, None) => Self::Status,
            ("instances", None, None) => Self::Instances,
            ("calls", None, None) => Self::Calls,
            ("logs", None, None) => Self::Logs,
            ("reload", None, None) => Self::Reload,
            ("servers", Some(name), None) => Self::Server(name),
            ("servers", Some(name), Some("retry")) => Self::Retry(name),
            ("servers", Some(name), Some("held")) => Self::Held(name),
            ("servers", Some(name), Some("approve")) => Self::Approve(name),
            ("servers", Some(name), Some("stop")) => Self::Stop(name),
            ("servers", Some(name), Some("logout")) => Self::LogOut(name),
            _ => return None,
        };
        parts.next().is_none().then_some(wanted)
    }

    fn method(&self) -> &'static Method {
        match self {
            Self::Reload | Self::Retry(_) | Self::Approve(_) | Self::Stop(_) | Self::LogOut(_) => {
                &Method::POST
            }
            _ => &Method::GET,
        }
    }
}

/// The query parameters.
#[derive(Default)]
struct Query {
    server: Option<String>,
    limit: Option<usize>,
    follow: bool,
}

impl Query {
    fn of(head: &Parts, wanted: &Wanted<'_>) -> Result<Self, Complaint> {
        let wrong = |message: String| Complaint::new(StatusCode::BAD_REQUEST, message);
        let mut query = Self::default();
        let pairs = head.uri.query().unwrap_or_default().split('&').filter(|it| !it.is_empty());
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (name, wanted) {
                ("server", Wanted::Logs) => {
                    query.server = (!value.is_empty()).then(|| value.to_owned());
                }
                ("limit", Wanted::Logs | Wanted::Calls) => {
                    let limit =
                        value.parse().map_err(|_| wrong("`limit` is no number.".to_owned()))?;
                    query.limit = Some(limit);
                }
                ("follow", Wanted::Logs) => match value {
                    "" | "1" | "true" => query.follow = true,
                    "0" | "false" => query.follow = false,
                    _ => return Err(wrong("`follow` is `1` or `0`.".to_owned())),
                },
                _ => {
                    let name: String = name.chars().take(64).collect();
                    return Err(wrong(format!("`{name}` means nothing here.")));
                }
            }
        }
        Ok(query)
    }
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
    let limits = limits();
    let reading = async {
        let (mut text, mut body) = (Vec::new(), pin!(body));
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let Ok(frame) = frame else {
                let message = "The body ended before it was complete.";
                return Err(Complaint::new(StatusCode::BAD_REQUEST, message));
            };
            let Ok(mut data) = frame.into_data() else { continue };
            if text.len() + data.remaining() > limits.body_bytes {
                let message = format!("The body has more than {} bytes.", limits.body_bytes);
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
