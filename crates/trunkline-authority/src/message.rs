//! A request as it came, and the response to it: what a web server reads and writes, as values.

use std::fmt;
use std::time::SystemTime;

use serde_json::Value;
use trunkline_auth::url;

/// A request, read whole.
#[derive(Clone)]
pub struct Request {
    /// Such as `GET`.
    pub method: String,
    /// The path, as it was sent.
    pub path: String,
    /// What stands behind the `?`, as it was sent.
    pub query: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
    /// When it came.
    pub now: SystemTime,
}

impl Request {
    /// A request without a body.
    pub fn new(method: &str, target: &str, now: SystemTime) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            now,
        }
    }

    /// A GET of a path, with or without a query.
    pub fn get(target: &str, now: SystemTime) -> Self {
        Self::new("GET", target, now)
    }

    /// A POST of a form.
    pub fn form(target: &str, fields: &[(&str, &str)], now: SystemTime) -> Self {
        let mut request = Self::new("POST", target, now);
        request.body = url::form(fields).into_bytes();
        request.header("content-type", "application/x-www-form-urlencoded")
    }

    /// A POST of a JSON value.
    pub fn json(target: &str, value: &Value, now: SystemTime) -> Self {
        let mut request = Self::new("POST", target, now);
        request.body = value.to_string().into_bytes();
        request.header("content-type", "application/json")
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(it, _)| it == name).map(|(_, value)| &**value)
    }

    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }
}

impl fmt::Debug for Request {
    /// Without query, headers and body, which hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// A response, written whole.
#[derive(Clone)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The whole body.
    pub body: String,
}

impl Response {
    /// The first header of this name, which is in lower case.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| *it == name).map(|(_, value)| &**value)
    }

    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    pub(crate) fn of(status: u16, value: &Value) -> Self {
        let mut response = Self::new(status).with("content-type", "application/json");
        response.body = value.to_string();
        response
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// What nobody may keep: tokens, secrets and pages about them.
    #[must_use]
    pub(crate) fn unkept(self) -> Self {
        self.with("cache-control", "no-store").with("pragma", "no-cache")
    }

    /// What pages of every origin may read.
    #[must_use]
    pub(crate) fn public(self) -> Self {
        self.with("access-control-allow-origin", "*")
            .with("access-control-expose-headers", "DPoP-Nonce, WWW-Authenticate")
    }
}

impl fmt::Debug for Response {
    /// Without headers and body, which may hold codes and tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}
