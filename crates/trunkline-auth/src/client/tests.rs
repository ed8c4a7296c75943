//! Transcripts with scripted servers, browsers and vaults.
//!
//! A script has one line per thing that happens:
//!
//! ```text
//! call                    the transport sends a request, again and again if it is worth it
//! background              the same, when nobody may be asked to log in
//! login, logout           somebody asks for it
//! killed                  a login that is killed while a person looks at the page; another process begins
//! process                 another process begins, with the same vault
//! wait 60                 time passes
//! > GET URL               what is asked of the transcript, in this order; `*` stands for anything
//! > POST URL a=b c=d [header]
//! > MCP Bearer token      a request to the server, with what lets it in (`-`: nothing)
//! > BROWSER URL a=b       a page that a person is shown
//! < 200 body              what the transcript answers; a challenge for MCP; a query for BROWSER
//! < nothing               the page leads nowhere
//! = 200                   how a call ends
//! ! sentence              how it fails
//! ```

mod bound;
mod cancelled;
mod discovery;
mod machine;
mod redirect;
mod refresh;
mod register;
mod scopes;
mod trust;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};

use super::browser::{Browser, Prepared, Visit};
use super::vault::{Vault, VaultError};
use super::{AuthError, OAuth};
use crate::credentials::{Credentials, Denied, Refused, Target};
use crate::fetch::{Answer, Ask, Fetch, FetchError, Pending};
use crate::jose;
use crate::url;

const SERVER: &str = "https://mcp.example/mcp";

/// Plays a script against a login that was set up this way, and returns the state afterwards.
#[track_caller]
/// Plays the script that these parts are, with nothing set up.
fn check(script: &[&str]) -> Transcript {
    check_with(|it| it, &script.concat())
}

fn check_with(set_up: impl Fn(OAuth) -> OAuth, script: &str) -> Transcript {
    let transcript = Transcript::new(script);
    play(&transcript, set_up);
    transcript
}

fn play(transcript: &Transcript, set_up: impl Fn(OAuth) -> OAuth) {
    let mut oauth = set_up(transcript.process());
    while let Some(line) = transcript.take() {
        let result = match &*line {
            "call" => run(call(&oauth, transcript, true)),
            "background" => run(call(&oauth, transcript, false)),
            "login" => run(oauth.login()).map(|it| format!("login {}", it.issuer)).map_err(words),
            "logout" => run(oauth.logout()).map(|()| "logout".to_owned()).map_err(words),
            "full" | "room" => {
                transcript.0.lock().unwrap().is_full = line == "full";
                continue;
            }
            "killed" => {
                {
                    let mut login = pin!(oauth.login());
                    while !std::mem::take(&mut transcript.0.lock().unwrap().is_left_waiting) {
                        let polled = login.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                        assert!(polled.is_pending(), "it ended: {:?}", polled.map_err(words));
                    }
                }
                oauth = set_up(transcript.process());
                continue;
            }
            "process" => {
                oauth = set_up(transcript.process());
                continue;
            }
            other => match other.strip_prefix("wait ") {
                Some(more) => {
                    transcript.0.lock().unwrap().now += Duration::from_secs(more.parse().unwrap());
                    continue;
                }
                None => panic!("not expected here: {other}"),
            },
        };
        transcript.expect(&result.map_or_else(|why| format!("! {why}"), |it| format!("= {it}")));
    }
}

fn words(error: AuthError) -> String {
    error.to_string()
}

/// What a transport does with a request.
async fn call(oauth: &OAuth, transcript: &Transcript, may_ask: bool) -> Result<String, String> {
    let to = Target { method: "POST", url: SERVER };
    let waiting = Mutex::new(Vec::new());
    let people = |is_waiting: bool| waiting.lock().unwrap().push(is_waiting);
    let mut times = 0;
    loop {
        let sent = oauth.headers(to).await.map_err(|it| it.why)?;
        let find = |name: &str| sent.iter().find(|(it, _)| *it == name).map(|(_, value)| &**value);
        let line = transcript.with_proof(find("authorization").unwrap_or("-"), find("dpop"));
        transcript.expect(&format!("> MCP {line}"));
        let answer = transcript.answer();
        let (status, rest) = answer.split_once(' ').unwrap_or((&answer, ""));
        let status: u16 = status.parse().unwrap();
        let (nonce, challenge) = match rest.strip_prefix("nonce=") {
            Some(rest) => rest.split_once(' ').map_or((Some(rest), ""), |(a, b)| (Some(a), b)),
            None => (None, rest),
        };
        if let Some(nonce) = nonce {
            oauth.nonce(to, nonce);
        }
        if status != 401 && (status != 403 || challenge.is_empty()) {
            let waiting = waiting.lock().unwrap();
            assert!(waiting.chunks(2).all(|it| it == [true, false]), "{waiting:?}");
            return Ok(status.to_string());
        }
        times += 1;
        let challenges: Vec<_> =
            Some(challenge.to_owned()).filter(|it| !it.is_empty()).into_iter().collect();
        let refusal = Refused { status, challenges: &challenges, sent: &sent, times };
        let people: Option<&crate::credentials::People<'_>> = may_ask.then_some(&people);
        oauth.refused(to, refusal, people).await.map_err(|it| it.why)?;
    }
}

/// Runs to the end. Everything here makes progress when it is polled.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(it) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return it;
        }
    }
}

/// Runs several, in turns.
fn run_all<'a, T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>) -> Vec<T> {
    let mut done: Vec<_> = futures.iter().map(|_| None).collect();
    while done.iter().any(Option::is_none) {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            let mut context = Context::from_waker(Waker::noop());
            if done.is_none()
                && let Poll::Ready(it) = future.as_mut().poll(&mut context)
            {
                *done = Some(it);
            }
        }
    }
    done.into_iter().flatten().collect()
}

/// Yields once.
async fn turn() {
    let mut is_first = true;
    std::future::poll_fn(|_| match std::mem::take(&mut is_first) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

#[derive(Clone)]
struct Transcript(Arc<Mutex<Scene>>);

struct Scene {
    script: VecDeque<String>,
    now: SystemTime,
    vault: BTreeMap<String, String>,
    locked: HashSet<String>,
    /// The PKCE challenge of the last visit.
    challenge: String,
    state: String,
    /// Proofs are single-use.
    proofs: HashSet<String>,
    /// Whether the vault is full.
    is_full: bool,
    /// The port of the next visit that may choose one.
    port: u16,
    /// Redirect URIs that are in use.
    taken: HashSet<String>,
    /// Whether a page was shown that never redirects.
    is_left_waiting: bool,
}

impl Transcript {
    fn new(script: &str) -> Self {
        let script = script.lines().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
        Self(Arc::new(Mutex::new(Scene {
            script: script.collect(),
            now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
            vault: BTreeMap::new(),
            locked: HashSet::new(),
            challenge: String::new(),
            state: String::new(),
            proofs: HashSet::new(),
            is_full: false,
            port: 9000,
            taken: HashSet::new(),
            is_left_waiting: false,
        })))
    }

    fn more(&self, script: &str) {
        let lines = script.lines().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
        self.0.lock().unwrap().script.extend(lines);
    }

    fn process(&self) -> OAuth {
        let transcript = Arc::new(self.clone());
        let (fetch, vault) = (Arc::clone(&transcript), Arc::clone(&transcript));
        OAuth::new(SERVER).fetch(fetch).vault(vault).browser(transcript)
    }

    fn take(&self) -> Option<String> {
        self.0.lock().unwrap().script.pop_front()
    }

    /// The next line of the script must be this one.
    fn expect(&self, line: &str) {
        let next = self.take().unwrap_or_else(|| "the end".to_owned());
        assert!(fits(&next, line), "\nexpected: {next}\n happened: {line}\n");
    }

    fn answer(&self) -> String {
        let next = self.take().unwrap_or_else(|| "the end".to_owned());
        next.strip_prefix("< ").unwrap_or_else(|| panic!("no answer: {next}")).to_owned()
    }

    /// A line about a request with a DPoP proof, which is never repeated.
    fn with_proof(&self, line: &str, proof: Option<&str>) -> String {
        let Some(proof) = proof else { return line.to_owned() };
        let header = jose::peek(proof).unwrap();
        assert_eq!(header.typ.as_deref(), Some("dpop+jwt"));
        let claims: serde_json::Value =
            serde_json::from_slice(&jose::unverified_payload(proof).unwrap()).unwrap();
        let text = |name: &str| claims[name].as_str().unwrap_or("-").to_owned();
        assert!(self.0.lock().unwrap().proofs.insert(text("jti")), "a proof is used twice");
        let ath = if claims["ath"].is_null() { "" } else { " ath" };
        let (htm, htu, nonce) = (text("htm"), text("htu"), text("nonce"));
        format!("{line} [dpop {htm} {htu} nonce={nonce}{ath}]")
    }

    /// What is stored under the only name with this prefix.
    fn kept(&self, start: &str) -> serde_json::Value {
        let scene = self.0.lock().unwrap();
        let mut found = scene.vault.iter().filter(|(name, _)| name.starts_with(start));
        let (_, text) = found.next().unwrap_or_else(|| panic!("nothing kept as {start}"));
        assert!(found.next().is_none(), "several are kept as {start}");
        serde_json::from_str(text).unwrap()
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().vault.keys().cloned().collect()
    }
}

impl Fetch for Transcript {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        Box::pin(async move {
            turn().await;
            let mut line = format!("> {} {}", ask.method, ask.url);
            let header = |name| ask.headers.iter().find(|(it, _)| *it == name).map(|(_, it)| &**it);
            let body = String::from_utf8(ask.body.clone()).unwrap();
            if header("content-type") == Some("application/json") {
                line = format!("{line} {body}");
            } else {
                for (name, value) in url::fields(&body) {
                    if name == "code_verifier" {
                        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, value.as_bytes()));
                        assert_eq!(challenge, self.0.lock().unwrap().challenge);
                    }
                    line = format!("{line} {name}={value}");
                }
            }
            if let Some(basic) = header("authorization").and_then(|it| it.strip_prefix("Basic ")) {
                let pair = String::from_utf8(STANDARD.decode(basic).unwrap()).unwrap();
                line = format!("{line} [basic {pair}]");
            }
            if let Some(token) = header("authorization").and_then(|it| it.strip_prefix("Bearer ")) {
                line = format!("{line} [bearer {token}]");
            }
            self.expect(&self.with_proof(&line, header("dpop")));
            let answer = self.answer();
            if let Some(why) = answer.strip_prefix("failed ") {
                return Err(FetchError::Failed(why.to_owned()));
            }
            if let Some(why) = answer.strip_prefix("forbidden ") {
                return Err(FetchError::Forbidden(why.to_owned()));
            }
            let (status, body) = answer.split_once(' ').unwrap_or((&answer, ""));
            let (nonce, body) = match body.strip_prefix("nonce=") {
                Some(rest) => {
                    rest.split_once(' ').map(|(nonce, body)| (Some(nonce), body)).unwrap()
                }
                None => (None, body),
            };
            let answer = Answer::new(status.parse().unwrap(), body);
            Ok(nonce.into_iter().fold(answer, |it, nonce| it.header("dpop-nonce", nonce)))
        })
    }

    fn now(&self) -> SystemTime {
        self.0.lock().unwrap().now
    }
}

impl Vault for Transcript {
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>> {
        Box::pin(async move { Ok(self.0.lock().unwrap().vault.get(name).cloned()) })
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>> {
        assert!(name.bytes().all(|it| it == b' ' || it.is_ascii_graphic()), "{name}");
        let mut scene = self.0.lock().unwrap();
        if scene.is_full {
            return Box::pin(async { Err(VaultError("The disk is full.".to_owned())) });
        }
        scene.vault.insert(name.to_owned(), text.to_owned());
        Box::pin(async { Ok(()) })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>> {
        self.0.lock().unwrap().vault.remove(name);
        Box::pin(async { Ok(()) })
    }

    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>> {
        Box::pin(async { Ok(Transcript::names(self)) })
    }

    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>> {
        let lock = Lock { name: name.to_owned(), transcript: self.clone() };
        Box::pin(async move {
            while !lock.transcript.0.lock().unwrap().locked.insert(lock.name.clone()) {
                turn().await;
            }
            Ok(Box::new(lock) as Box<dyn Send>)
        })
    }
}

struct Lock {
    name: String,
    transcript: Transcript,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.transcript.0.lock().unwrap().locked.remove(&self.name);
    }
}

impl Browser for Transcript {
    fn prepare<'a>(&'a self, uris: &'a [String]) -> Prepared<'a> {
        Box::pin(async move {
            let mut scene = self.0.lock().unwrap();
            let uri = match uris.iter().find(|it| !scene.taken.contains(*it)) {
                Some(uri) => uri.clone(),
                None if uris.is_empty() => {
                    scene.port += 1;
                    format!("http://127.0.0.1:{}/callback", scene.port)
                }
                None => return Err("The port is taken.".to_owned()),
            };
            drop(scene);
            Ok(Box::new(OneVisit { uri, transcript: self.clone() }) as Box<dyn Visit>)
        })
    }
}

struct OneVisit {
    uri: String,
    transcript: Transcript,
}

impl Visit for OneVisit {
    fn redirect_uri(&self) -> &str {
        &self.uri
    }

    fn go(self: Box<Self>, url: String) -> Pending<'static, Result<String, String>> {
        Box::pin(async move {
            turn().await;
            let (endpoint, query) = url.split_once('?').unwrap();
            let fields = url::fields(query);
            let field = |name: &str| {
                let found = fields.iter().find(|(it, _)| it == name);
                found.map_or_else(String::new, |(_, value)| value.clone())
            };
            let shown: Vec<_> = fields.iter().map(|(name, it)| format!(" {name}={it}")).collect();
            self.transcript.expect(&format!("> BROWSER {endpoint}{}", shown.concat()));
            assert_eq!(field("redirect_uri"), self.uri);
            let (answer, state) = (self.transcript.answer(), field("state"));
            if answer == "nothing" {
                self.transcript.0.lock().unwrap().is_left_waiting = true;
                return std::future::pending().await;
            }
            let mut scene = self.transcript.0.lock().unwrap();
            let answer = answer.replace("{state}", &state).replace("{old}", &scene.state);
            scene.challenge = field("code_challenge");
            scene.state = state;
            answer.strip_prefix("failed ").map_or(Ok(answer.clone()), |why| Err(why.to_owned()))
        })
    }
}

/// Whether a line matches a pattern; `*` is anything.
fn fits(pattern: &str, line: &str) -> bool {
    let Some((start, pattern)) = pattern.split_once('*') else { return pattern == line };
    let Some(mut rest) = line.strip_prefix(start) else { return false };
    let (middle, end) = pattern.rsplit_once('*').unwrap_or(("", pattern));
    for part in middle.split('*') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(end)
}

/// The server's document is asked for and names `https://id.example`; `more` members follow.
fn resource(more: &str) -> String {
    format!(
        r#"> GET https://mcp.example/.well-known/oauth-protected-resource/mcp
        < 200 {{"resource":"https://mcp.example/mcp","authorization_servers":["https://id.example"]{more}}}
        "#
    )
}

/// That issuer's document is asked for; `more` members follow.
fn issuer(more: &str) -> String {
    format!(
        r#"> GET https://id.example/.well-known/oauth-authorization-server
        < 200 {{"issuer":"https://id.example","authorization_endpoint":"https://id.example/authorize","token_endpoint":"https://id.example/token","registration_endpoint":"https://id.example/register","code_challenge_methods_supported":["S256"]{more}}}
        "#
    )
}

const REGISTER: &str = r#"
    > POST https://id.example/register {*"application_type":"native"*
    < 201 {"client_id":"c-1"}
"#;
const VISIT: &str = "
    > BROWSER https://id.example/authorize response_type=code client_id=c-1 *
    < code=k-1&state={state}
";
const EXCHANGE: &str = r#"
    > POST https://id.example/token grant_type=authorization_code code=k-1 *
    < 200 {"access_token":"t-1","token_type":"Bearer","expires_in":3600,"refresh_token":"r-1"}
"#;

/// A login of somebody who is not known there yet.
fn logs_in() -> String {
    [REGISTER, VISIT, EXCHANGE, "= login https://id.example"].concat()
}

/// A call that ends with a first login: `t-1`, renewed by `r-1`.
fn first_login() -> String {
    [
        "call\n> MCP -\n< 401 Bearer\n",
        &resource(""),
        &issuer(""),
        REGISTER,
        VISIT,
        EXCHANGE,
        "> MCP Bearer t-1\n< 200\n= 200\n",
    ]
    .concat()
}
