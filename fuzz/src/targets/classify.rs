//! Headers and a body: a POST goes somewhere or is refused with a status and words of ours, whatever
//! came before on the same connection.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use trunkline_proto::http::Refusal;
use trunkline_proto::http::classify::{Route, Rules, classify, session_request};
use trunkline_proto::http::door::{Door, accepts_both, accepts_events, check_body};
use trunkline_proto::http::fields::Fields;
use trunkline_proto::server::{Config, EnvelopeCache};
use trunkline_wire::jsonrpc::{Id, Incoming, Message};
use trunkline_wire::model::Implementation;
use trunkline_wire::revision::{Era, Revisions};

use crate::input::Input;

/// A byte of settings, the target, lines of headers, a body; then headers and a body that came
/// before.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let settings = input.byte();
    let target = input.text();
    let headers = headers(input.part());
    let incoming = Incoming::parse(input.part());
    let before = (self::headers(input.part()), Incoming::parse(input.part()));

    if let Ok(uri) = target.parse::<Uri>() {
        door(&uri, &headers);
    }
    let rules =
        Rules { config: &CONFIGS[usize::from(settings >> 1) % 4], sessions: settings & 1 == 1 };
    let mut fresh = EnvelopeCache::default();
    let fields = Fields::of(&headers).mcp;
    let route = classify(&fields, &incoming, rules, &mut fresh);
    assert_eq!(route, classify(&fields, &incoming, rules, &mut fresh), "asked twice");
    let mut used = EnvelopeCache::default();
    let _ = classify(&Fields::of(&before.0).mcp, &before.1, rules, &mut used);
    assert_eq!(route, classify(&fields, &incoming, rules, &mut used), "something came before");

    match &route {
        Err(refusal) => {
            refused(refusal);
            match (&incoming, &refusal.id) {
                (_, None | Some(Id::Null)) => {}
                (Incoming::One(Message::Request { id, .. }), Some(told)) => assert_eq!(id, told),
                (Incoming::Bad(bad), Some(told)) => {
                    assert!(bad.id.as_ref() == Some(told) && !bad.is_response, "{bad:?}");
                }
                (other, Some(told)) => panic!("{told} is the id of no request: {other:?}"),
            }
        }
        Ok(Route::Session(_)) => assert!(rules.sessions),
        Ok(Route::Nowhere(revision)) => {
            assert!(!rules.sessions && rules.config.revisions.contains(*revision));
        }
        Ok(Route::Open | Route::Stateless(_) | Route::Dialect | Route::Drop) => {
            assert!(!matches!(incoming, Incoming::Bad(_)), "this is no message");
        }
    }
    match session_request(&headers, rules) {
        Ok(_) => assert!(rules.sessions),
        Err(refusal) => refused(&refusal),
    }
}

fn door(uri: &Uri, headers: &HeaderMap) {
    let fields = Fields::of(headers);
    let _ = (accepts_both(&fields), accepts_events(headers));
    if let Err(refusal) = check_body(&fields, 1000) {
        refused(&refusal);
    }
    match Door::default().check(uri, &fields) {
        Err(refusal) => refused(&refusal),
        Ok(()) => {
            let named = headers.get_all("host").iter().filter_map(|it| it.to_str().ok());
            let named = named.chain(uri.authority().map(|it| it.as_str()));
            for host in named {
                let name = host.to_ascii_lowercase();
                let is_ours = ["localhost", "127.0.0.1", "[::1]"].iter().any(|it| {
                    name.strip_prefix(it).is_some_and(|rest| {
                        let is_port = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
                        rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)
                    })
                });
                assert!(is_ours, "`{host}` was let in");
            }
        }
    }
}

fn refused(refusal: &Refusal) {
    assert!(refusal.status.as_u16() >= 400, "{refusal:?}");
    let text = refusal.clone().message().to_text();
    let again = Incoming::parse(text.as_bytes());
    assert!(matches!(again, Incoming::One(Message::Response { outcome: Err(_), .. })), "{text}");
}

fn headers(lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

static CONFIGS: LazyLock<[Config; 4]> = LazyLock::new(|| {
    let all = Config::new(Implementation::new("fuzz", "1.0"));
    let old = Config { revisions: Revisions::ALL.of_era(Era::Stateful), ..all.clone() };
    let new = Config { revisions: Revisions::ALL.of_era(Era::Stateless), ..all.clone() };
    let strict = Config { dialect: false, ..all.clone() };
    [all, old, new, strict]
});
pub(crate) const WORDS: &[&str] = &[
    "\0",
    "host: localhost",
    "host: evil.example",
    "origin: http://localhost",
    "origin: null",
    "accept: application/json, text/event-stream",
    "content-type: application/json; charset=utf-8",
    "mcp-protocol-version: 2026-07-28",
    "mcp-protocol-version: 2025-06-18",
    "mcp-method: tools/call",
    "mcp-name: echo",
    "mcp-name: =?base64?ZWNobw==?=",
    "mcp-session-id: s-1",
    "upgrade: websocket",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",",
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",",
    "\"io.modelcontextprotocol/clientCapabilities\":{}",
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"a\",\"version\":\"1\"}",
    "\"progressToken\":7",
    "\"method\":\"initialize\"",
    "\"method\":\"server/discover\"",
    "\"method\":\"mcp/list_tools\"",
    "http://localhost:1/mcp",
    "http://[::1]/mcp",
    "/mcp",
    "\"id\":null",
    "[{",
    "}]",
    "\"result\":{}",
];
