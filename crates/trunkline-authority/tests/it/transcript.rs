//! A conversation as text, and the check that it goes that way.
//!
//! ```text
//! authorize state=s1                  a GET of the authorization endpoint; the usual fields, but for these
//! exchange code_verifier=wrong        a POST of the code; the usual fields, but for these
//! refresh client_id=other             a POST of the refresh token
//! > POST /token grant_type=x a=b      any other request; `+` is a space, `a=-` leaves a field out
//! | DPoP: $proof                      a header of the request above
//! < 400 error=invalid_grant a=?       what came: fields of the redirect or members of the JSON; `?` keeps it as $a,
//!                                     `-` says that it is not there
//! "The code has expired."             the sentence that came with it
//! wait 61                             seconds pass
//! set old=$refresh_token              keeps a value under another name
//! ```

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use trunkline_auth::jose::{Algorithm, Jwks, SigningKey, verify};
use trunkline_authority::{Authority, Client, Request, Response, Settings};

pub(crate) const ISSUER: &str = "http://localhost:9000";
pub(crate) const RESOURCE: &str = "http://localhost:3000/mcp";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Who is known and what may be asked for, in every conversation.
pub(crate) fn settings() -> Settings {
    let redirect = "http://127.0.0.1/callback";
    Settings::new()
        .approve_as("alice")
        .scopes(["files:read", "files:write", "admin"])
        .resource(RESOURCE)
        .resource("http://localhost:3001/mcp")
        .client(Client::new("tool").redirect(redirect).scope("files:read files:write"))
        .client(Client::new("other").redirect(redirect))
        .client(Client::new("web").redirect("https://app.example/callback").secret("s3cret"))
        .client(Client::new("mcp-server").secret("s3rver").introspects())
}

/// The time at which every conversation begins.
pub(crate) fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

/// A key and the set that publishes it.
pub(crate) fn key() -> (SigningKey, Jwks) {
    let key = SigningKey::generate();
    let keys = Jwks::new([key.public().clone()]);
    (key, keys)
}

/// Checks a conversation with the usual settings.
#[track_caller]
pub(crate) fn check(script: &str) {
    check_with(settings(), &[], script);
}

/// Checks a conversation with settings and values of its own.
#[track_caller]
pub(crate) fn check_with(settings: Settings, values: &[(&str, &str)], script: &str) {
    let mut talk = Talk::new(Authority::new(ISSUER, settings));
    for (name, value) in values {
        talk.values.insert((*name).to_owned(), (*value).to_owned());
    }
    talk.run(script);
}

/// A conversation that goes on.
pub(crate) struct Talk {
    pub(crate) authority: Authority,
    pub(crate) now: SystemTime,
    pub(crate) values: HashMap<String, String>,
    asked: Option<Request>,
    pub(crate) answer: Option<Response>,
}

impl Talk {
    /// What a token says that was given out under this name.
    pub(crate) fn claims(&self, name: &str) -> Value {
        let token = verify(&self.values[name], &self.authority.keys(), &[Algorithm::ES256]);
        serde_json::from_slice(&token.unwrap().payload).unwrap()
    }

    pub(crate) fn new(authority: Authority) -> Self {
        let values = [
            ("verifier", VERIFIER),
            ("challenge", CHALLENGE),
            ("issuer", ISSUER),
            ("resource", RESOURCE),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { authority, now: start(), values: values.into(), asked: None, answer: None }
    }

    #[track_caller]
    pub(crate) fn run(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
            match verb {
                "authorize" => self.ask("GET", "/authorize", AUTHORIZE, rest),
                "exchange" => self.ask("POST", "/token", EXCHANGE, rest),
                "refresh" => self.ask("POST", "/token", REFRESH, rest),
                ">" => {
                    let (method, rest) = rest.split_once(' ').expect("a method and a path");
                    let (path, fields) = rest.split_once(' ').unwrap_or((rest, ""));
                    self.ask(method, path, "", fields);
                }
                "|" => {
                    let (name, value) = rest.split_once(": ").expect("a name and a value");
                    let value = self.filled(value);
                    let asked = self.asked.take().expect("a request before its headers");
                    self.asked = Some(asked.header(name, value));
                }
                "<" => self.expect(rest, line),
                "wait" => self.now += Duration::from_secs(rest.parse().expect("seconds")),
                "set" => {
                    let (name, value) = rest.split_once('=').expect("a name and a value");
                    let value = self.filled(value);
                    self.values.insert(name.to_owned(), value);
                }
                _ if line.starts_with('"') => {
                    let said = self.members("error_description");
                    assert_eq!(format!("\"{}\"", said.unwrap_or_default()), line);
                }
                _ => panic!("`{line}` is no line of a transcript"),
            }
        }
    }

    fn ask(&mut self, method: &str, path: &str, usual: &str, fields: &str) {
        let mut all: Vec<(&str, String)> = Vec::new();
        for part in usual.split_whitespace().chain(fields.split_whitespace()) {
            let (name, value) = part.split_once('=').expect("a name and a value");
            let is_again = name.strip_prefix('&');
            let name = is_again.unwrap_or(name);
            if is_again.is_none() {
                all.retain(|(it, _)| *it != name);
            }
            if value != "-" {
                all.push((name, self.filled(value).replace('+', " ")));
            }
        }
        let fields: Vec<_> = all.iter().map(|(name, value)| (*name, &**value)).collect();
        let mut request = Request::form(path, &fields, self.now);
        if method != "POST" {
            let query = String::from_utf8(std::mem::take(&mut request.body)).expect("it was text");
            request = Request::new(method, &format!("{path}?{query}"), self.now);
        }
        self.asked = Some(request);
    }

    #[track_caller]
    fn expect(&mut self, rest: &str, line: &str) {
        let asked = self.asked.take().expect("a request before its answer");
        let answer = self.authority.answer(asked);
        let (status, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        assert_eq!(answer.status.to_string(), status, "{line}: {}", answer.body);
        self.answer = Some(answer);
        for part in fields.split_whitespace() {
            let (name, value) = part.split_once('=').expect("a name and a value");
            let found = self.members(name);
            match value {
                "-" => assert_eq!(found, None, "{line}: `{name}`"),
                "?" => {
                    let found = found.unwrap_or_else(|| panic!("{line}: there is no `{name}`"));
                    self.values.insert(name.to_owned(), found);
                }
                value => {
                    assert_eq!(
                        found,
                        Some(self.filled(value).replace('+', " ")),
                        "{line}: `{name}`"
                    );
                }
            }
        }
    }

    /// A field of the redirect or a member of the JSON of the last answer.
    pub(crate) fn members(&self, name: &str) -> Option<String> {
        let answer = self.answer.as_ref().expect("an answer");
        if let Some(location) = answer.first("location") {
            let query = location.split_once('?')?.1;
            let mut fields = query.split('&').filter_map(|it| it.split_once('='));
            let found = fields.find(|(it, _)| *it == name)?.1;
            return Some(decoded(found));
        }
        match answer.json().get(name)? {
            Value::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        }
    }

    /// `$name` → its value.
    fn filled(&self, text: &str) -> String {
        match text.strip_prefix('$') {
            Some(name) => self.values.get(name).unwrap_or_else(|| panic!("no `${name}`")).clone(),
            None => text.to_owned(),
        }
    }
}

/// `%41` → `A`.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next().unwrap()).to_digit(16).unwrap();
                (digit() * 16 + digit()) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).expect("UTF-8")
}

const AUTHORIZE: &str = "response_type=code client_id=tool redirect_uri=http://127.0.0.1:7777/callback \
    code_challenge=$challenge code_challenge_method=S256 resource=$resource scope=files:read";
const EXCHANGE: &str = "grant_type=authorization_code client_id=tool code=$code code_verifier=$verifier \
    redirect_uri=http://127.0.0.1:7777/callback resource=$resource";
const REFRESH: &str = "grant_type=refresh_token client_id=tool refresh_token=$refresh_token";
