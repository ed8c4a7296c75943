//! The path and the query of a request → what it wants.

use http::request::Parts;
use http::{Method, StatusCode};

use super::{Complaint, TrafficFilter};

/// What a path means.
pub(super) enum Wanted<'a> {
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
    Servers,
    Traffic,
    Stream,
    Export,
    Call(&'a str),
    Me,
    Link,
    Leave,
    Offers(&'a str),
    Try,
    TryAnswer(&'a str),
    TryCancel(&'a str),
    Tokens,
    Approvals,
    ApproveOne,
    RefuseOne,
    Recordings,
    Keep,
    Kept(&'a str),
    Remove(&'a str),
    Compare,
    LoginStart,
    LoginStep,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(path: &'a str, method: &Method) -> Option<Self> {
        let rest = match path {
            "/metrics" => return Some(Self::Metrics),
            path => path.strip_prefix("/v1/")?,
        };
        let mut parts = rest.split('/');
        let wanted = match (parts.next()?, parts.next(), parts.next()) {
            ("status", None, None) => Self::Status,
            ("instances", None, None) => Self::Instances,
            ("calls", None, None) => Self::Calls,
            ("calls", Some(id), None) => Self::Call(id),
            ("traffic", None, None) => Self::Traffic,
            ("traffic", Some("stream"), None) => Self::Stream,
            ("traffic", Some("export"), None) => Self::Export,
            ("servers", Some(name), Some("offers")) => Self::Offers(name),
            ("try", None, None) => Self::Try,
            ("try", Some(id), Some("answer")) => Self::TryAnswer(id),
            ("try", Some(id), Some("cancel")) => Self::TryCancel(id),
            ("tokens", None, None) => Self::Tokens,
            ("approvals", None, None) => Self::Approvals,
            ("approvals", Some("approve"), None) => Self::ApproveOne,
            ("approvals", Some("refuse"), None) => Self::RefuseOne,
            ("recordings", None, None) if *method == Method::POST => Self::Keep,
            ("recordings", None, None) => Self::Recordings,
            ("recordings", Some("diff"), None) if *method == Method::POST => Self::Compare,
            ("recordings", Some(id), None) if *method == Method::DELETE => Self::Remove(id),
            ("recordings", Some(id), None) => Self::Kept(id),
            ("login", Some("start"), None) => Self::LoginStart,
            ("login", Some("step"), None) => Self::LoginStep,
            ("console", Some("me"), None) => Self::Me,
            ("console", Some("link"), None) => Self::Link,
            ("console", Some("leave"), None) => Self::Leave,
            ("logs", None, None) => Self::Logs,
            ("reload", None, None) => Self::Reload,
            ("servers", None, None) => Self::Servers,
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

    pub(super) fn method(&self) -> &'static Method {
        match self {
            Self::Reload | Self::Retry(_) | Self::Approve(_) | Self::Stop(_) | Self::LogOut(_) => {
                &Method::POST
            }
            Self::Link | Self::Leave | Self::ApproveOne | Self::RefuseOne => &Method::POST,
            Self::Try | Self::TryAnswer(_) | Self::TryCancel(_) => &Method::POST,
            Self::Keep | Self::Compare | Self::LoginStart | Self::LoginStep => &Method::POST,
            Self::Remove(_) => &Method::DELETE,
            _ => &Method::GET,
        }
    }
}

/// The query parameters.
#[derive(Default)]
pub(super) struct Query {
    pub(super) server: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) follow: bool,
    pub(super) filter: TrafficFilter,
    pub(super) revision: Option<String>,
}

impl Query {
    pub(super) fn of(head: &Parts, wanted: &Wanted<'_>) -> Result<Self, Complaint> {
        let wrong = |message: String| Complaint::new(StatusCode::BAD_REQUEST, message);
        let mut query = Self::default();
        let pairs = head.uri.query().unwrap_or_default().split('&').filter(|it| !it.is_empty());
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if matches!(wanted, Wanted::Traffic | Wanted::Stream | Wanted::Export)
                && query.filter.set(name, &decoded(value)).map_err(wrong)?
            {
                continue;
            }
            match (name, wanted) {
                ("server", Wanted::Logs) => {
                    query.server = (!value.is_empty()).then(|| value.to_owned());
                }
                ("limit", Wanted::Logs | Wanted::Calls) => {
                    let limit =
                        value.parse().map_err(|_| wrong("`limit` is no number.".to_owned()))?;
                    query.limit = Some(limit);
                }
                ("revision", Wanted::Offers(_)) => query.revision = Some(decoded(value)),
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

/// A value of a query without its escapes.
fn decoded(value: &str) -> String {
    let (mut out, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = |it: &u8| char::from(*it).to_digit(16);
        let escaped = match (first, after) {
            (b'%', [high, low, ..]) => hex(high).zip(hex(low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => out.push((high * 16 + low) as u8),
            None => out.push(if *first == b'+' { b' ' } else { *first }),
        }
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}
