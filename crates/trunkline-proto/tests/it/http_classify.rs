//! The ladder that decides where a POST goes, one table per rung, in every revision it concerns.

use http::{HeaderMap, HeaderName, HeaderValue};
use trunkline_proto::http::classify::{Route, Rules, classify, session_request};
use trunkline_proto::http::fields::Fields;
use trunkline_proto::server::{Config, EnvelopeCache};
use trunkline_wire::code::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, UNSUPPORTED_REVISION,
};
use trunkline_wire::jsonrpc::{Id, Incoming};
use trunkline_wire::model::Implementation;
use trunkline_wire::revision::{Era, Revision, Revisions};

const NEWEST: &str = "2026-07-28";
const LEGACY: [Revision; 3] = [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// A refusal: status, code, id.
type Refused = (u16, i64, Option<Id>);

/// Where a message goes, and what was decided about it.
#[derive(Debug, PartialEq)]
enum Goes {
    Stateless(Revision),
    Dialect,
    Open,
    Session(String),
    Nowhere(Revision),
    Drop,
}

const ALONE: Goes = Goes::Stateless(Revision::LATEST);

impl From<Route<'_>> for Goes {
    fn from(route: Route<'_>) -> Self {
        match route {
            Route::Stateless(request) => Self::Stateless(request.revision()),
            Route::Dialect => Self::Dialect,
            Route::Open => Self::Open,
            Route::Session(id) => Self::Session(id.to_owned()),
            Route::Nowhere(revision) => Self::Nowhere(revision),
            Route::Drop => Self::Drop,
        }
    }
}

/// A server under test.
struct Desk {
    config: Config,
    sessions: bool,
}

impl Desk {
    fn new() -> Self {
        Self { config: Config::new(Implementation::new("test", "1")), sessions: true }
    }

    fn speaking(revisions: Revisions) -> Self {
        let mut desk = Self::new();
        desk.config.revisions = revisions;
        desk
    }

    fn ask(&self, headers: &[(&str, &str)], body: &str) -> Result<Goes, Refused> {
        let rules = Rules { config: &self.config, sessions: self.sessions };
        let (headers, incoming) = (map(headers), Incoming::parse(body.as_bytes()));
        let (fields, mut envelopes) = (Fields::of(&headers).mcp, EnvelopeCache::default());
        let first = classify(&fields, &incoming, rules, &mut envelopes);
        // What was read once is remembered, and changes nothing.
        assert_eq!(classify(&fields, &incoming, rules, &mut envelopes), first, "{body}");
        first.map(Goes::from).map_err(|it| (it.status.as_u16(), it.error.code, it.id))
    }
}

fn map(headers: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), value)
    };
    let mut map = HeaderMap::new();
    for (name, value) in headers.iter().map(pair) {
        map.append(name, value);
    }
    map
}

fn envelope(version: &str) -> String {
    format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    )
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
}

/// A call of the newest revision.
fn call() -> String {
    request("tools/call", &format!(r#""name":"sum",{}"#, envelope(NEWEST)))
}

const VERSION: (&str, &str) = ("mcp-protocol-version", NEWEST);
const METHOD: (&str, &str) = ("mcp-method", "tools/call");
const NAME: (&str, &str) = ("mcp-name", "sum");
const SESSION: (&str, &str) = ("mcp-session-id", "s");

fn refused(status: u16, code: i64) -> Result<Goes, Refused> {
    Err((status, code, Some(Id::Number(1))))
}

fn unread(status: u16, code: i64) -> Result<Goes, Refused> {
    Err((status, code, None))
}

#[test]
fn malformed_messages_are_refused() {
    let desk = Desk::new();
    for (body, code) in [
        ("", PARSE_ERROR),
        ("{", PARSE_ERROR),
        ("{}", INVALID_REQUEST),
        ("7", INVALID_REQUEST),
        (r#"{"jsonrpc":"1.0","method":"x"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, INVALID_REQUEST),
    ] {
        for revision in Revision::ALL {
            let version = ("mcp-protocol-version", revision.as_str());
            let id = revision.profile().unreadable_id_is_null.then_some(Id::Null);
            assert_eq!(desk.ask(&[version, SESSION], body), Err((400, code, id)), "{body}");
        }
        assert_eq!(desk.ask(&[], body), unread(400, code), "{body}");
    }
    // The id of a response is ours, so an error must not carry it.
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#;
    assert_eq!(desk.ask(&[SESSION], both), unread(400, INVALID_REQUEST));
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#;
    assert_eq!(desk.ask(&[VERSION], twice), refused(400, INVALID_REQUEST));
}

#[test]
fn arrays_are_for_sessions_without_a_claim() {
    let desk = Desk::new();
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let claim = call();
    let refusal = unread(400, INVALID_REQUEST);
    assert_eq!(desk.ask(&[SESSION], "[]"), refusal);
    assert_eq!(desk.ask(&[SESSION], &format!("[{one}]")), Ok(Goes::Session("s".to_owned())));
    assert_eq!(desk.ask(&[SESSION], &format!("[{one},{claim}]")), refusal);
    assert_eq!(desk.ask(&[SESSION], &format!("[{claim}]")), refusal);
    assert_eq!(desk.ask(&[VERSION, SESSION], &format!("[{one}]")), refusal);
    assert_eq!(desk.ask(&[], &format!("[{one}]")), unread(400, INVALID_REQUEST));
    let news = format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{{}}}}}"#, envelope(NEWEST));
    assert_eq!(desk.ask(&[SESSION], &format!("[{one},{news}]")), refusal);
}

#[test]
fn a_response_belongs_to_a_session() {
    let desk = Desk::new();
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
    ] {
        assert_eq!(desk.ask(&[SESSION], body), Ok(Goes::Session("s".to_owned())));
        assert_eq!(desk.ask(&[VERSION, SESSION], body), unread(400, INVALID_REQUEST));
        assert_eq!(desk.ask(&[], body), unread(400, INVALID_REQUEST));
    }
}

#[test]
fn initialize_opens_a_session_unless_the_head_is_of_another_era() {
    let desk = Desk::new();
    let hello = request("initialize", r#""protocolVersion":"2025-11-25""#);
    assert_eq!(desk.ask(&[], &hello), Ok(Goes::Open));
    for revision in Revision::ALL {
        let version = ("mcp-protocol-version", revision.as_str());
        let expected = match revision.era() {
            Era::Stateful => Ok(Goes::Open),
            Era::Stateless => refused(400, HEADER_MISMATCH),
        };
        assert_eq!(desk.ask(&[version], &hello), expected, "{revision}");
        // A stale session id is ignored: `initialize` opens a new session.
        assert_eq!(desk.ask(&[version, SESSION], &hello), expected, "{revision}");
    }
    let odd = ("mcp-protocol-version", "1999-01-01");
    assert_eq!(desk.ask(&[odd], &hello), refused(400, UNSUPPORTED_REVISION));
    // With the stateless envelope it is a method that the era lacks.
    let modern = request("initialize", &envelope(NEWEST));
    assert_eq!(desk.ask(&[VERSION, ("mcp-method", "initialize")], &modern), Ok(ALONE));
    // As a notification it opens nothing.
    let news = r#"{"jsonrpc":"2.0","method":"initialize"}"#;
    assert_eq!(desk.ask(&[], news), unread(400, INVALID_REQUEST));
    assert_eq!(desk.ask(&[], &format!("[{hello}]")), unread(400, INVALID_REQUEST));
}

#[test]
fn a_claim_is_served_if_head_and_body_agree() {
    let desk = Desk::new();
    let mismatch = refused(400, HEADER_MISMATCH);
    let right = [VERSION, METHOD, NAME];
    assert_eq!(desk.ask(&right, &call()), Ok(ALONE));
    assert_eq!(desk.ask(&[VERSION, METHOD, NAME, SESSION], &call()), Ok(ALONE));
    // Each header missing, and each twice, equal or not.
    for at in 0..right.len() {
        let without: Vec<_> = (0..right.len()).filter(|it| *it != at).map(|it| right[it]).collect();
        assert_eq!(desk.ask(&without, &call()), mismatch, "without {:?}", right[at]);
        for other in [right[at].1, "other", ""] {
            let mut twice = right.to_vec();
            twice.push((right[at].0, other));
            let (status, code, _) = desk.ask(&twice, &call()).unwrap_err();
            assert_eq!((status, code), (400, HEADER_MISMATCH), "{twice:?}");
        }
    }
    for (name, values) in [
        (
            VERSION.0,
            &["2025-11-25", "2099-01-01", "", "2026-07-28x", "=?base64?MjAyNi0wNy0yOA==?="][..],
        ),
        (METHOD.0, &["tools/list", "Tools/Call", "tools/call ,", ""]),
        (NAME.0, &["sleep", "SUM", "sum,sum", "", "su m"]),
    ] {
        for value in values {
            let headers: Vec<_> =
                right.iter().map(|it| if it.0 == name { (name, *value) } else { *it }).collect();
            assert_eq!(desk.ask(&headers, &call()), mismatch, "{name}: {value}");
        }
    }
}

#[test]
fn names_may_be_encoded_and_are_compared_decoded() {
    let desk = Desk::new();
    let read = |name: &str, header: &str| {
        let body = request("resources/read", &format!(r#""uri":{name},{}"#, envelope(NEWEST)));
        desk.ask(&[VERSION, ("mcp-method", "resources/read"), ("mcp-name", header)], &body)
    };
    for (name, header) in [
        (r#""test://a""#, "test://a"),
        (r#""test://a""#, "=?base64?dGVzdDovL2E=?="),
        (r#""grüße""#, "=?base64?Z3LDvMOfZQ==?="),
        (r#""\u0067r\u00fcße""#, "=?base64?Z3LDvMOfZQ==?="),
        (r#"" padded ""#, "=?base64?IHBhZGRlZCA=?="),
        (r#""=?base64?eA==?=""#, "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
    ] {
        assert_eq!(read(name, header), Ok(ALONE), "{header}");
    }
    for (name, header) in [
        (r#""test://a""#, "=?base64?dGVzdDovL2I=?="),
        (r#""x""#, "=?base64?eA?="),
        (r#""x""#, "=?base64?eA==="),
        (r#""x""#, "=?base64?!!!!?="),
        (r#""x""#, "=?base64?eA==?=x"),
        (r#""x""#, "=?BASE64?eA==?="),
        (r#""x""#, "=?base64? eA==?="),
        (r#""\ufffd""#, "=?base64?//79?="),
        (r#""""#, "=?base64?eA==?="),
        // A value that looks encoded is decoded, so it cannot stand for itself.
        (r#""=?base64?eA==?=""#, "=?base64?eA==?="),
    ] {
        assert_eq!(read(name, header), refused(400, HEADER_MISMATCH), "{name} as {header}");
    }
}

#[test]
fn every_method_that_is_about_something_says_what_in_its_head() {
    let desk = Desk::new();
    for (method, member) in [
        ("tools/call", "name"),
        ("prompts/get", "name"),
        ("resources/read", "uri"),
        ("tasks/get", "taskId"),
        ("tasks/update", "taskId"),
        ("tasks/cancel", "taskId"),
    ] {
        let body = request(method, &format!(r#""{member}":"x",{}"#, envelope(NEWEST)));
        let ask = |headers: &[(&str, &str)]| {
            desk.ask(&[&[VERSION, ("mcp-method", method)], headers].concat(), &body)
        };
        assert_eq!(ask(&[("mcp-name", "x")]), Ok(ALONE), "{method}");
        assert_eq!(ask(&[("mcp-name", "y")]), refused(400, HEADER_MISMATCH), "{method}");
        let without = match member {
            "taskId" => Ok(ALONE),
            _ => refused(400, HEADER_MISMATCH),
        };
        assert_eq!(ask(&[]), without, "{method}: FastMCP names no tasks");
    }
    // Other methods have no name, so the header is ignored.
    let list = request("tools/list", &envelope(NEWEST));
    for name in [&[][..], &[("mcp-name", "x")]] {
        let headers = [&[VERSION, ("mcp-method", "tools/list")], name].concat();
        assert_eq!(desk.ask(&headers, &list), Ok(ALONE));
    }
}

#[test]
fn the_envelope_comes_before_its_revision_and_that_before_the_rest() {
    let desk = Desk::new();
    let with = |meta: &str| request("tools/call", &format!(r#""name":"sum","_meta":{meta}"#));
    let key = "io.modelcontextprotocol/protocolVersion";
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    // Invalid, however wrong the head is.
    for meta in [
        format!(r#"{{"{key}":"{NEWEST}"}}"#),
        format!("{{{capabilities}}}"),
        format!(r#"{{"{key}":7,{capabilities}}}"#),
        format!(r#"{{"{key}":null,{capabilities}}}"#),
        format!(r#"{{"{key}":"{NEWEST}","io.modelcontextprotocol/clientCapabilities":[]}}"#),
        format!(r#"{{"{key}":"{NEWEST}","io.modelcontextprotocol/clientCapabilities":null}}"#),
    ] {
        for headers in
            [&[VERSION, METHOD, NAME][..], &[], &[SESSION], &[("mcp-protocol-version", "x")]]
        {
            assert_eq!(desk.ask(headers, &with(&meta)), refused(400, INVALID_PARAMS), "{meta}");
        }
    }
    for (header, body, code) in [
        (NEWEST, "2099-01-01", HEADER_MISMATCH),
        ("2099-01-01", NEWEST, HEADER_MISMATCH),
        ("2025-11-25", NEWEST, HEADER_MISMATCH),
        ("2099-01-01", "2099-01-01", UNSUPPORTED_REVISION),
        ("2025-11-25", "2025-11-25", UNSUPPORTED_REVISION),
        ("2024-11-05", "2024-11-05", UNSUPPORTED_REVISION),
        ("", "", UNSUPPORTED_REVISION),
    ] {
        // An unknown revision is reported before an unknown method.
        let body = request("no/such", &envelope(body));
        let version = ("mcp-protocol-version", header);
        assert_eq!(desk.ask(&[version], &body), refused(400, code), "{header} and {body}");
    }
}

#[test]
fn a_head_of_the_newest_revision_is_never_served_as_an_older_one() {
    let desk = Desk::new();
    for method in ["tools/call", "ping", "no/such", "server/discover"] {
        for params in ["", r#""name":"sum""#, r#""_meta":{}"#, r#""_meta":{"progressToken":1}"#] {
            let body = request(method, params);
            for session in [&[][..], &[SESSION]] {
                let headers = [&[VERSION], session].concat();
                assert_eq!(desk.ask(&headers, &body), refused(400, INVALID_PARAMS), "{body}");
            }
        }
    }
    let positional = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}"#;
    assert_eq!(desk.ask(&[VERSION], positional), refused(400, INVALID_PARAMS));
    // The one method that only the stateless era has.
    assert_eq!(desk.ask(&[], &request("server/discover", "")), refused(400, INVALID_PARAMS));
}

#[test]
fn whatever_remains_belongs_to_a_session() {
    let desk = Desk::new();
    let bodies = [
        request("tools/list", ""),
        request("no/such", ""),
        request("tools/list", r#""_meta":{"progressToken":1}"#),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(),
    ];
    for body in &bodies {
        let found = Ok(Goes::Session("s".to_owned()));
        assert_eq!(desk.ask(&[SESSION], body), found);
        assert_eq!(desk.ask(&[], body), refused(400, INVALID_REQUEST));
        for revision in LEGACY {
            let version = ("mcp-protocol-version", revision.as_str());
            assert_eq!(desk.ask(&[version, SESSION], body), found, "{revision}");
            assert_eq!(desk.ask(&[version], body), refused(400, INVALID_REQUEST), "{revision}");
        }
        for odd in ["1999-01-01", "latest", "", "2025-11-25,2025-11-25"] {
            let version = ("mcp-protocol-version", odd);
            let (status, ..) = desk.ask(&[version, SESSION], body).unwrap_err();
            assert_eq!(status, 400, "{odd}");
        }
        let (status, ..) = desk.ask(&[SESSION, SESSION], body).unwrap_err();
        assert_eq!(status, 400);
        let (status, ..) = desk.ask(&[SESSION, ("mcp-session-id", "t")], body).unwrap_err();
        assert_eq!(status, 400);
    }
}

#[test]
fn a_server_without_sessions_says_which_revision_it_heard() {
    let desk = Desk { sessions: false, ..Desk::new() };
    let body = request("tools/list", "");
    assert_eq!(desk.ask(&[], &body), Ok(Goes::Nowhere(Revision::V2025_03_26)));
    assert_eq!(desk.ask(&[SESSION], &body), Ok(Goes::Nowhere(Revision::V2025_03_26)));
    for revision in LEGACY {
        let version = ("mcp-protocol-version", revision.as_str());
        assert_eq!(desk.ask(&[version], &body), Ok(Goes::Nowhere(revision)));
    }
    assert_eq!(desk.ask(&[], &request("initialize", "")), Ok(Goes::Open));
    assert_eq!(desk.ask(&[VERSION, METHOD, NAME], &call()), Ok(ALONE));
}

#[test]
fn a_notification_of_the_newest_revision_is_taken_and_dropped() {
    let desk = Desk::new();
    let plain = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let claim = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{{}}}}}"#,
        envelope(NEWEST)
    );
    let method = ("mcp-method", "notifications/x");
    for (headers, body) in [
        (&[VERSION][..], plain),
        (&[VERSION, method], plain),
        (&[VERSION], &claim),
        (&[VERSION, method], &claim),
        (&[], &claim),
        (&[method], &claim),
        (&[VERSION, SESSION], plain),
    ] {
        assert_eq!(desk.ask(headers, body), Ok(Goes::Drop), "{headers:?} {body}");
    }
    for (headers, body) in [
        (&[VERSION, METHOD][..], plain),
        (&[("mcp-protocol-version", "2025-11-25")], &claim),
        (&[VERSION, method, method], plain),
    ] {
        assert_eq!(desk.ask(headers, body), unread(400, HEADER_MISMATCH), "{headers:?} {body}");
    }
    assert_eq!(desk.ask(&[SESSION], plain), Ok(Goes::Session("s".to_owned())));
    assert_eq!(desk.ask(&[], plain), unread(400, INVALID_REQUEST));
}

#[test]
fn the_dialect_is_stateless_where_it_is_served() {
    let mut desk = Desk::new();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"mcp/listTools","params":{}}"#;
    let null = r#"{"jsonrpc":"2.0","id":null,"method":"mcp/listTools"}"#;
    assert_eq!(desk.ask(&[], body), Ok(Goes::Dialect));
    assert_eq!(desk.ask(&[], null), Ok(Goes::Dialect));
    // But not with the header of a stateless revision.
    assert_eq!(desk.ask(&[VERSION], body), refused(400, INVALID_PARAMS));
    // Nor with an envelope, which it does not know.
    let claim = request("mcp/listTools", &envelope(NEWEST));
    assert_eq!(desk.ask(&[VERSION, ("mcp-method", "mcp/listTools")], &claim), refused(404, -32601));
    desk.config.dialect = false;
    assert_eq!(desk.ask(&[], body), refused(400, INVALID_REQUEST));
    assert_eq!(desk.ask(&[SESSION], body), Ok(Goes::Session("s".to_owned())));
    assert_eq!(desk.ask(&[], null), unread(400, INVALID_REQUEST));
}

#[test]
fn a_server_of_one_era_says_what_it_speaks() {
    let newest = Desk::speaking(Revisions::only(Revision::V2026_07_28));
    assert_eq!(newest.ask(&[VERSION, METHOD, NAME], &call()), Ok(ALONE));
    for revision in LEGACY {
        let version = ("mcp-protocol-version", revision.as_str());
        let unsupported = refused(400, UNSUPPORTED_REVISION);
        assert_eq!(newest.ask(&[version, SESSION], &request("ping", "")), unsupported);
    }
    let old = Desk::speaking(Revisions::only(Revision::V2025_11_25));
    let (status, ..) = old.ask(&[VERSION, METHOD, NAME], &call()).unwrap_err();
    assert_eq!(status, 400);
    let other = ("mcp-protocol-version", "2025-06-18");
    assert_eq!(
        old.ask(&[other, SESSION], &request("ping", "")),
        refused(400, UNSUPPORTED_REVISION)
    );
}

#[test]
fn a_session_of_no_revision_that_is_spoken_is_no_session() {
    let newest = Desk::speaking(Revisions::only(Revision::V2026_07_28));
    let unsupported = refused(400, UNSUPPORTED_REVISION);
    assert_eq!(newest.ask(&[SESSION], &request("tools/list", "")), unsupported);
    let mut old = Desk::speaking(Revisions::only(Revision::V2025_11_25));
    old.sessions = false;
    let route = old.ask(&[], &request("tools/list", ""));
    assert_eq!(route, Ok(Goes::Nowhere(Revision::V2025_11_25)), "not one it does not speak");
}

#[test]
fn a_method_is_not_encoded() {
    // Proxies read it undecoded.
    let headers = [VERSION, ("mcp-method", "=?base64?dG9vbHMvY2FsbA==?="), NAME];
    assert_eq!(Desk::new().ask(&headers, &call()), refused(400, HEADER_MISMATCH));
}

#[test]
fn a_name_in_the_head_that_the_body_does_not_have_is_a_mismatch() {
    let desk = Desk::new();
    for params in
        ["", r#""Name":"sum","#, r#""name\u0000":"sum","#, r#""name":7,"#, r#""name":null,"#]
    {
        let body = request("tools/call", &format!("{params}{}", envelope(NEWEST)));
        let (status, ..) = desk.ask(&[VERSION, METHOD, NAME], &body).unwrap_err();
        assert_eq!(status, 400, "{body}");
    }
}

#[test]
fn a_duplicate_name_in_the_envelope_is_malformed() {
    let desk = Desk::new();
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    for meta in [
        format!("{version},{version},{capabilities}"),
        format!("{version},{capabilities},{capabilities}"),
        format!(r#"{version},{capabilities},"x":1,"x":2"#),
    ] {
        let body = request("tools/call", &format!(r#""name":"sum","_meta":{{{meta}}}"#));
        assert_eq!(
            desk.ask(&[VERSION, METHOD, NAME], &body),
            refused(400, INVALID_REQUEST),
            "{meta}"
        );
    }
}

#[test]
fn a_request_without_a_body_is_about_a_session() {
    let ask = |desk: &Desk, headers: &[(&str, &str)]| {
        let rules = Rules { config: &desk.config, sessions: desk.sessions };
        let headers = map(headers);
        session_request(&headers, rules).map(str::to_owned).map_err(|it| it.status.as_u16())
    };
    let desk = Desk::new();
    assert_eq!(ask(&desk, &[SESSION]), Ok("s".to_owned()));
    assert_eq!(ask(&desk, &[]), Err(400));
    assert_eq!(ask(&desk, &[SESSION, SESSION]), Err(400));
    for revision in LEGACY {
        let version = ("mcp-protocol-version", revision.as_str());
        assert_eq!(ask(&desk, &[version, SESSION]), Ok("s".to_owned()), "{revision}");
        assert_eq!(ask(&desk, &[version, version, SESSION]), Err(400), "{revision}");
    }
    for odd in ["1999-01-01", "latest", ""] {
        assert_eq!(ask(&desk, &[("mcp-protocol-version", odd), SESSION]), Err(400), "{odd}");
    }
    assert_eq!(ask(&desk, &[VERSION, SESSION]), Err(405));
    assert_eq!(ask(&desk, &[VERSION]), Err(405));
    let replica = Desk { sessions: false, ..Desk::new() };
    assert_eq!(ask(&replica, &[SESSION]), Err(405));
    let newest = Desk::speaking(Revisions::only(Revision::V2026_07_28));
    assert_eq!(ask(&newest, &[SESSION]), Err(405));
}
