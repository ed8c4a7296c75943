//! The admin API from outside: over sockets, with a fake gateway.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use trunkline_auth::tag::random_name;

use super::*;
use crate::catalog::plan::AdminPlan;
use crate::failure::{Reason, Stage};
use crate::traffic::Traffic;

mod browsers;

#[tokio::test]
async fn every_route_answers() {
    let admin = Running::on_socket().await;
    for (request, expected) in [
        (
            "GET /v1/status",
            r#"200 {"servers":[{"instances":[{"id":7}],"name":"time"},{"name":"git"}]}"#,
        ),
        ("GET /v1/servers/git", r#"200 {"name":"git"}"#),
        ("GET /v1/instances", r#"200 {"instances":[{"id":7,"server":"time"}]}"#),
        ("GET /v1/calls", r#"200 {"calls":[100]}"#),
        ("GET /v1/calls?limit=5", r#"200 {"calls":[5]}"#),
        ("POST /v1/servers/time/retry", r#"200 {"retried":"time"}"#),
        ("POST /v1/servers/time/stop", r#"200 {"stopped":"time"}"#),
        ("POST /v1/reload", r#"200 {"changed":1}"#),
        ("GET /healthz", "200 ok"),
        ("GET /readyz", "200 ok"),
        ("GET /metrics", "200 trunkline_up 1"),
        (
            "GET /v1/logs",
            "200 {\"line\":\"a\",\"server\":\"time\"}\n{\"line\":\"b\",\"server\":\"git\"}",
        ),
        ("GET /v1/logs?limit=1", r#"200 {"line":"b","server":"git"}"#),
        ("GET /v1/logs?server=time&follow=0", r#"200 {"line":"a","server":"time"}"#),
    ] {
        assert_eq!(admin.ask(request, "", "").await, expected, "{request}");
    }
    let approve = "POST /v1/servers/time/approve";
    let body = r#"{"approve":[{"kind":"tool","name":"now","digest":"sha256:1"}]}"#;
    assert_eq!(admin.ask(approve, "", body).await, r#"200 {"approved":["tool now sha256:1"]}"#);
    let held = admin.ask("GET /v1/servers/time/held", "", "").await;
    assert_eq!(held, r#"200 {"held":"time"}"#);
    admin.stop().await;
}

#[tokio::test]
async fn invalid_requests_are_refused_with_advice() {
    let admin = Running::on_socket().await;
    for (request, body, expected) in [
        ("GET /x", "", "404 There is nothing at `/x`. | `/v1/status` is a good place to begin."),
        ("GET /v1/traffic?since=soon", "", "400 `since` is a time such as `90s`"),
        ("GET /v1/traffic?colour=red", "", "400 `colour` means nothing here."),
        ("GET /v1/traffic/stream", "", "409 Calls are not recorded. | Remove `recording: off`"),
        ("GET /v1/calls/nope", "", "404 There is no call `nope`, or not any more."),
        ("GET /v1/console/link", "", "405 "),
        ("GET /v1/status/x", "", "404 There is nothing at `/v1/status/x`. | `/v1/"),
        ("GET /v1/servers/time/retry/x", "", "404 There is nothing at"),
        ("POST /v1/status", "", "405 `/v1/status` is asked for with GET."),
        ("GET /v1/reload", "", "405 `/v1/reload` is asked for with POST."),
        ("DELETE /v1/servers/time", "", "405 "),
        ("GET /v1/calls?limit=many", "", "400 `limit` is no number."),
        ("GET /v1/status?limit=1", "", "400 `limit` means nothing here."),
        ("GET /v1/logs?follow=maybe", "", "400 `follow` is `1` or `0`."),
        ("GET /v1/servers/nope", "", "404 There is no server `nope`. | See those there are"),
        ("POST /v1/servers/nope/retry", "", "404 There is no server `nope`. | See those"),
        ("POST /v1/servers/git/stop", "", "409 It is busy. | Wait."),
        ("POST /v1/servers/time/approve", "", "400 It is not clear what is approved. | Send"),
        ("POST /v1/servers/time/approve", "{}", "400 It is not clear"),
        ("POST /v1/servers/time/approve", r#"{"approve":[]}"#, "400 It is not clear"),
        ("POST /v1/servers/time/approve", r#"{"all":true}"#, "400 It is not clear"),
        (
            "POST /v1/servers/time/approve",
            r#"{"approve":[{"kind":"tool","name":"now"}]}"#,
            "400 It is not clear",
        ),
    ] {
        let found = admin.refused(request, body).await;
        assert!(found.starts_with(expected), "{request}: {found}");
    }
    let long = "x".repeat(65 << 10);
    let found = admin.refused("POST /v1/servers/time/approve", &long).await;
    assert!(found.starts_with("413 The body has more than 65536 bytes."), "{found}");

    *admin.operate.faults.lock().unwrap() = Some(json!({ "faults": [
        { "message": "`mcpServers.time.url` is no URL." }, { "message": "`x` is unknown." },
    ]}));
    let found = admin.refused("POST /v1/reload", "").await;
    assert!(
        found.starts_with(
            "422 The catalog was not taken over. `mcpServers.time.url` is no URL. `x` is unknown. | \
             See all that is wrong with `trunkline check`"
        ),
        "{found}"
    );
    let whole = admin.ask("POST /v1/reload", "", "").await;
    assert!(whole.contains(r#""faults":[{"message""#), "{whole}");
    admin.stop().await;
}

#[tokio::test]
async fn a_refusal_is_read_however_long_the_body_is() {
    let running = Running::on_socket().await;
    let long = " ".repeat(3 << 20);
    for _ in 0..10 {
        for (request, status) in [
            ("POST /nowhere", "404"),
            ("POST /v1/status", "405"),
            ("POST /v1/servers/a/approve", "413"),
        ] {
            let answer = running.ask(request, "", &long).await;
            assert!(answer.starts_with(status), "{request}: {answer}");
        }
    }
    running.stop().await;
}

#[tokio::test]
async fn the_log_is_followed_until_the_client_disconnects() {
    let admin = Running::on_socket().await;
    let mut lines = admin.follow("/v1/logs?server=time&follow=1").await;
    assert_eq!(lines.next().await, r#"{"line":"a","server":"time"}"#);
    for (server, line) in [("git", "c"), ("time", "d")] {
        admin.operate.updates.send(Arc::new(line_of(server, line))).unwrap();
    }
    assert_eq!(lines.next().await, r#"{"line":"d","server":"time"}"#);
    drop(lines);
    // A client that disconnects frees its place, again and again.
    for _ in 0..40 {
        let mut lines = admin.follow("/v1/logs?follow").await;
        lines.next().await;
    }
    // Remaining followers are disconnected when the server ends.
    let mut lines = admin.follow("/v1/logs?follow=1").await;
    lines.next().await;
    admin.stop().await;
    lines.end().await;
}

#[tokio::test]
async fn over_tcp_there_is_a_token_and_a_name() {
    let (admin, token) = Running::on_tcp().await;
    let kept = std::fs::read_to_string(admin.state.join("admin.token")).unwrap();
    assert_eq!((token.len(), &kept), (64, &token));
    let wrong = token.replace(|it: char| it.is_ascii_digit(), "x");
    for (headers, expected) in [
        (format!("host: localhost\r\nauthorization: Bearer {token}\r\n"), "200"),
        (format!("host: 127.0.0.1:9\r\nauthorization: bearer {token}\r\n"), "200"),
        ("host: localhost\r\n".to_owned(), "401"),
        (format!("host: localhost\r\nauthorization: Bearer {wrong}\r\n"), "401"),
        (format!("host: localhost\r\nauthorization: Bearer {}\r\n", &token[1..]), "401"),
        (format!("host: localhost\r\nauthorization: Basic {token}\r\n"), "401"),
        ("host: localhost\r\nauthorization: Bearer\r\n".to_owned(), "401"),
        (format!("host: evil.example\r\nauthorization: Bearer {token}\r\n"), "403"),
        (
            format!(
                "host: localhost\r\norigin: https://evil.example\r\nauthorization: Bearer {token}\r\n"
            ),
            "403",
        ),
    ] {
        let found = admin.ask("GET /v1/servers/git", &headers, "").await;
        assert!(found.starts_with(expected), "{headers}{found}");
    }
    let refused = admin.ask("GET /v1/status", "host: localhost\r\n", "").await;
    assert!(refused.contains("The admin API wants a token."), "{refused}");
    assert!(refused.contains("Authorization: Bearer TOKEN"), "{refused}");
    // Everyone may ask for health, under an allowed Host name.
    assert_eq!(admin.ask("GET /healthz", "host: localhost\r\n", "").await, "200 ok");
    assert!(admin.ask("GET /healthz", "host: evil.example\r\n", "").await.starts_with("403"));
    *admin.operate.is_ready.lock().unwrap() = false;
    assert_eq!(admin.ask("GET /readyz", "host: localhost\r\n", "").await, "503 not ready");
    admin.stop().await;
}

#[tokio::test]
async fn the_page_is_for_everyone_and_strict() {
    let admin = Running::on_socket().await;
    let (head, body) = admin.raw("GET /", "host: localhost\r\n", "").await;
    assert_eq!(body, "<p>page</p>");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self';",
        "x-content-type-options: nosniff",
        "content-type: text/html; charset=utf-8",
        "referrer-policy: no-referrer",
        "etag: \"1\"\r\n",
        "vary: accept-encoding",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    assert!(!head.contains("-inline") && !head.contains("set-cookie"), "{head}");
    assert!(!head.contains("content-encoding"), "{head}");
    let known = "host: localhost\r\nif-none-match: \"1\"\r\n";
    assert!(admin.raw("GET /", known, "").await.0.starts_with("HTTP/1.1 304"));
    assert!(admin.raw("POST /", "host: localhost\r\n", "").await.0.starts_with("HTTP/1.1 405"));
    assert!(admin.ask("GET /web/nothing.js", "", "").await.starts_with("404"));
    admin.stop().await;
}

#[tokio::test]
async fn the_page_is_compressed_for_those_who_ask_for_that() {
    let admin = Running::on_socket().await;
    let browser = "host: localhost\r\naccept-encoding: gzip, deflate, br\r\n";
    let (head, body) = admin.raw("GET /", browser, "").await;
    assert_eq!(body, "packed");
    for header in [
        "content-encoding: gzip\r\n",
        "content-length: 6\r\n",
        "content-type: text/html; charset=utf-8",
        "etag: \"1-gzip\"\r\n",
        "vary: accept-encoding",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    let (head, body) = admin.raw("HEAD /", browser, "").await;
    assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
    assert!(head.contains("content-length: 6\r\n") && body.is_empty(), "{head}{body}");
    // What was kept of one is not what the other stands for.
    for (tag, expected) in [("1-gzip", "HTTP/1.1 304"), ("1", "HTTP/1.1 200")] {
        let known = format!("{browser}if-none-match: \"{tag}\"\r\n");
        let (head, _) = admin.raw("GET /", &known, "").await;
        assert!(head.starts_with(expected) && head.contains("vary: accept-encoding"), "{head}");
    }
    let plain = "host: localhost\r\naccept-encoding: gzip;q=0\r\n";
    let (head, body) = admin.raw("GET /", plain, "").await;
    assert!(!head.contains("content-encoding") && body == "<p>page</p>", "{head}{body}");
    let (head, body) = admin.raw("HEAD /", plain, "").await;
    assert!(head.contains("content-length: 11\r\n") && body.is_empty(), "{head}{body}");
    admin.stop().await;
}

#[tokio::test]
async fn the_token_stays_the_same_and_no_other_place_is_opened() {
    let state = folder();
    let listen = |it: &str| AdminPlan { listen: Some(it.to_owned()), ..AdminPlan::default() };
    let first = open(&listen("127.0.0.1:0"), &state).await.unwrap();
    let second = open(&listen("localhost:0"), &state).await.unwrap();
    assert!(first.token.is_some() && first.token == second.token);
    let noted = std::fs::read_to_string(state.join("admin.place")).unwrap();
    assert_eq!(noted, second.place, "the last one is the one that is found");
    assert!(first.place.starts_with("http://127.0.0.1:"), "{}", first.place);
    let given = AdminPlan { token: Some("s".repeat(20)), ..listen("127.0.0.1:0") };
    assert_eq!(open(&given, &state).await.unwrap().token, given.token);

    let short = AdminPlan { token: Some("secret".to_owned()), ..listen("127.0.0.1:0") };
    for (plan, expected) in [
        (&listen("0.0.0.0:0"), "would be open to other machines at `0.0.0.0:0`"),
        (&listen("[::]:0"), "set `gateway.admin.mtls`"),
        (&listen("nowhere"), "cannot listen at `nowhere`"),
        (&short, "fewer than 16 characters"),
    ] {
        let error = open(plan, &state).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.ends_with('.'), "{error}");
    }
    std::fs::write(state.join("admin.token"), "\n").unwrap();
    let error = open(&listen("127.0.0.1:0"), &state).await.unwrap_err().to_string();
    assert!(error.contains("holds no token; remove the file"), "{error}");
    std::fs::remove_dir_all(state).unwrap();
}

#[tokio::test]
async fn with_client_certificates_it_may_be_open_to_other_machines() {
    let state = folder();
    std::fs::create_dir(&state).unwrap();
    let (certificate, key) = (state.join("c.pem"), state.join("k.pem"));
    let pair = crate::certificates::self_signed();
    std::fs::write(&certificate, pair.0).unwrap();
    std::fs::write(&key, pair.1).unwrap();
    let plan = AdminPlan {
        listen: Some("0.0.0.0:0".to_owned()),
        token: None,
        mtls: Some((certificate.clone(), key, certificate)),
    };
    let opened = open(&plan, &state).await.unwrap();
    assert!(opened.place.starts_with("https://0.0.0.0:"), "{}", opened.place);
    assert!(opened.token.is_some(), "a certificate is not all it takes");
    let missing = AdminPlan {
        mtls: plan.mtls.clone().map(|(it, key, _)| (it, key, state.join("none.pem"))),
        ..plan
    };
    let error = open(&missing, &state).await.unwrap_err().to_string();
    assert!(error.starts_with("Cannot read `") && error.contains("none.pem"), "{error}");
    std::fs::remove_dir_all(state).unwrap();
}

/// A fake gateway.
struct MadeUp {
    updates: broadcast::Sender<Arc<Value>>,
    /// What is recorded, if anything is.
    traffic: Mutex<Option<Arc<Traffic>>>,
    /// The events of calls that are tried.
    tries: Mutex<Vec<mpsc::Sender<Vec<u8>>>>,
    faults: Mutex<Option<Value>>,
    is_ready: Mutex<bool>,
}

fn line_of(server: &str, line: &str) -> Value {
    json!({ "line": line, "server": server })
}

impl Operate for MadeUp {
    type Line = Value;

    fn status(&self) -> Value {
        json!({ "servers": [{ "name": "time", "instances": [{ "id": 7 }] }, { "name": "git" }] })
    }

    fn is_ready(&self) -> bool {
        *self.is_ready.lock().unwrap()
    }

    fn metrics(&self) -> String {
        "trunkline_up 1\n".to_owned()
    }

    fn calls(&self, limit: usize) -> Value {
        json!([limit])
    }

    fn follow_traffic(&self, filter: TrafficFilter) -> Option<TrafficUpdates> {
        let traffic = self.traffic.lock().unwrap();
        traffic.as_ref().map(|it| TrafficUpdates::new(it, filter, None))
    }

    fn begin_try(&self, request: TryRequest) -> Result<mpsc::Receiver<Vec<u8>>, Complaint> {
        let (sender, events) = mpsc::channel(8);
        let size =
            request.params.values().filter_map(|it| it.as_str()).map(str::len).sum::<usize>();
        sender.try_send(format!("data: {size}\n\n").into_bytes()).unwrap();
        self.tries.lock().unwrap().push(sender);
        Ok(events)
    }

    fn answer_try(&self, _: &str, answer: TryAnswer) -> Result<Value, Complaint> {
        let told = answer.outcome.map_or_else(|it| json!(it), |_| json!(answer.question));
        Ok(json!({ "answered": told }))
    }

    async fn remove_recording(&self, id: String) -> Result<Value, Complaint> {
        match &*id {
            "one" => Ok(json!({ "removed": id })),
            _ => {
                let message = format!("There is no recording `{id}`.");
                Err(Complaint::new(StatusCode::NOT_FOUND, message))
            }
        }
    }

    fn logs(&self, server: Option<&str>) -> Followed<Value> {
        let lines = [line_of("time", "a"), line_of("git", "b")].into_iter();
        let fitting = lines.filter(|it| server.is_none_or(|server| Self::is_of(it, server)));
        (fitting.map(Arc::new).collect(), self.updates.subscribe())
    }

    fn is_of(line: &Value, server: &str) -> bool {
        line["server"] == server
    }

    async fn reload(&self) -> Result<Value, Value> {
        match &*self.faults.lock().unwrap() {
            Some(faults) => Err(faults.clone()),
            None => Ok(json!({ "changed": 1 })),
        }
    }

    fn retry(&self, server: &str) -> Result<Value, Complaint> {
        match server {
            "time" => Ok(json!({ "retried": server })),
            _ => Err(Complaint::no_server(server)),
        }
    }

    fn held(&self, server: &str) -> Result<Value, Complaint> {
        Ok(json!({ "held": server }))
    }

    async fn approve(&self, _: &str, which: &[Approval]) -> Result<Value, Complaint> {
        let told = |it: &Approval| format!("{} {} {}", it.kind.word(), it.name, it.digest);
        Ok(json!({ "approved": which.iter().map(told).collect::<Vec<_>>() }))
    }

    async fn stop(&self, server: &str) -> Result<Value, Complaint> {
        match server {
            "git" => Err(Failure::new(Reason::Busy, Stage::Acquire, "It is busy.")
                .advice("Wait.")
                .into()),
            _ => Ok(json!({ "stopped": server })),
        }
    }
}

/// A page of one file.
fn page(path: &str) -> Option<WebFile> {
    let unpack = |_: &[u8]| b"<p>page</p>".to_vec();
    let (content_type, gzip, tag) = ("text/html; charset=utf-8", b"packed", "1");
    (path == "/").then_some(WebFile { content_type, gzip, unpack, tag })
}

struct Running {
    operate: Arc<MadeUp>,
    place: String,
    token: Option<String>,
    state: PathBuf,
    end: oneshot::Sender<()>,
    served: JoinHandle<io::Result<()>>,
}

impl Running {
    async fn on_socket() -> Self {
        Self::open(&AdminPlan::default()).await
    }

    /// It, and its token.
    async fn on_tcp() -> (Self, String) {
        let listen = Some("127.0.0.1:0".to_owned());
        let admin = Self::open(&AdminPlan { listen, ..AdminPlan::default() }).await;
        let token = admin.token.clone().unwrap();
        (admin, token)
    }

    async fn open(plan: &AdminPlan) -> Self {
        let state = folder();
        let opened = open(plan, &state).await.unwrap();
        let (place, token) = (opened.place.clone(), opened.token.clone());
        let operate = Arc::new(MadeUp {
            updates: broadcast::Sender::new(8),
            traffic: Mutex::default(),
            tries: Mutex::default(),
            faults: Mutex::default(),
            is_ready: Mutex::new(true),
        });
        let (end, ended) = oneshot::channel::<()>();
        let shutdown = async { drop(ended.await) };
        let opened = opened.with_page(page);
        let served = tokio::spawn(serve(opened, Arc::clone(&operate), shutdown));
        Self { operate, place, token, state, end, served }
    }

    async fn connect(&self) -> Box<dyn Stream> {
        match self.place.strip_prefix("unix:") {
            Some(path) => Box::new(UnixStream::connect(path).await.unwrap()),
            None => {
                let address = self.place.strip_prefix("http://").unwrap();
                Box::new(TcpStream::connect(address).await.unwrap())
            }
        }
    }

    /// The status and the body, trimmed.
    async fn ask(&self, request: &str, headers: &str, body: &str) -> String {
        let (head, body) = self.raw(request, headers, body).await;
        assert!(!head.contains("access-control"), "{head}");
        assert!(head.contains("cache-control: no-store"), "{head}");
        format!("{} {}", &head["HTTP/1.1 ".len()..][..3], body.trim_end())
    }

    /// The head and the body.
    async fn raw(&self, request: &str, headers: &str, body: &str) -> (String, String) {
        let mut stream = self.connect().await;
        let headers = if headers.is_empty() { "host: localhost\r\n" } else { headers };
        let length = body.len();
        let head = format!(
            "{request} HTTP/1.1\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // An early refusal arrives as a response, not as a connection reset.
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// The status, the message and the advice.
    async fn refused(&self, request: &str, body: &str) -> String {
        let answer = self.ask(request, "", body).await;
        let (status, body) = answer.split_once(' ').unwrap();
        let error = serde_json::from_str::<Value>(body).unwrap()["error"].take();
        let advice = error["advice"].as_str().map(|it| format!(" | {it}")).unwrap_or_default();
        format!("{status} {}{advice}", error["message"].as_str().unwrap())
    }

    async fn follow(&self, path: &str) -> Lines {
        self.stream(&format!("GET {path}"), "", "").await
    }

    /// A request whose answer goes on.
    async fn stream(&self, request: &str, headers: &str, body: &str) -> Lines {
        let mut stream = self.connect().await;
        let headers = if headers.is_empty() { "host: localhost\r\n" } else { headers };
        let length = body.len();
        let head = format!(
            "{request} HTTP/1.1\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        Lines(BufReader::new(stream))
    }

    /// The key of a new link.
    async fn link(&self) -> String {
        let token = self.token.as_ref().unwrap();
        let own = format!("host: localhost\r\nauthorization: Bearer {token}\r\n");
        let told = self.ask("POST /v1/console/link", &own, "").await;
        let key = told.split_once("/#k=").and_then(|it| it.1.strip_suffix("\"}"));
        key.unwrap_or_else(|| panic!("{told}")).to_owned()
    }

    /// The headers of a browser that was let in.
    async fn browser(&self) -> String {
        let body = json!({ "key": self.link().await }).to_string();
        let (head, told) = self.raw("POST /v1/console/enter", "", &body).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        let cookie = head.lines().find_map(|it| it.strip_prefix("set-cookie: ")).unwrap();
        let (cookie, csrf) = (cookie.split(';').next().unwrap(), told["csrf"].as_str().unwrap());
        format!("host: localhost\r\ncookie: {cookie}\r\nx-trunkline-csrf: {csrf}\r\n")
    }

    async fn stop(self) {
        self.end.send(()).unwrap();
        self.served.await.unwrap().unwrap();
        if let Some(path) = self.place.strip_prefix("unix:") {
            assert!(!Path::new(path).exists(), "the socket is gone");
        }
        std::fs::remove_dir_all(self.state).unwrap();
    }
}

trait Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send {}
impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send> Stream for S {}

struct Lines(BufReader<Box<dyn Stream>>);

impl Lines {
    /// The next line of JSON, without framing.
    async fn next(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).await.unwrap() > 0, "it goes on");
            if line.starts_with('{') {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Waits until the body says this; for nothing in particular, until there is one.
    async fn says(&mut self, what: &str) {
        let mut is_head = true;
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).await.unwrap() > 0, "it goes on");
            assert!(!is_head || !line.starts_with("HTTP/1.1") || line.contains(" 200 "), "{line}");
            is_head &= line != "\r\n";
            if line.contains(what) && (!what.is_empty() || !is_head) {
                return;
            }
        }
    }

    async fn end(mut self) {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).await.unwrap();
        assert!(rest.ends_with(b"0\r\n\r\n"), "it ends as it should");
    }
}

/// So much time passes at once.
async fn time_passes(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("trunkline-{}", &random_name()[..12]))
}
