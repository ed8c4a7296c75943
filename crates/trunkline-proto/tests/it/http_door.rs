//! What is decided before a body is read: Host, Origin, type and length.

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use trunkline_proto::http::door::{Door, accepts_both, accepts_events, check_body};
use trunkline_proto::http::fields::Fields;

fn map(headers: &[(HeaderName, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

/// The status of a refusal, 200 without one.
fn knock(door: &Door, uri: &str, headers: &[(HeaderName, &str)]) -> u16 {
    let uri: Uri = uri.parse().unwrap();
    door.check(&uri, &Fields::of(&map(headers))).map_or_else(|it| it.status.as_u16(), |()| 200)
}

#[test]
fn a_server_goes_by_the_names_of_this_machine() {
    let door = Door::default();
    for host in [
        "localhost",
        "LOCALHOST",
        "LocalHost:3000",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:65535",
    ] {
        assert_eq!(knock(&door, "/mcp", &[(HOST, host)]), 200, "{host}");
        assert_eq!(knock(&door, &format!("http://{host}/mcp"), &[]), 200, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:3000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.localhost",
        "localhost.",
        "127.0.0.2",
        "127.1",
        "0.0.0.0",
        "2130706433",
        "::1",
        "[::1",
        "[::ffff:127.0.0.1]",
        "localhost:80:80",
        "localhost:abc",
        "localhost:80@evil.example",
        "user@localhost",
        "localhost, evil.example",
        "localhost/",
        "local host",
    ] {
        assert_eq!(knock(&door, "/mcp", &[(HOST, host)]), 403, "{host}");
    }
}

#[test]
fn a_request_names_one_host() {
    let door = Door::default();
    assert_eq!(knock(&door, "/mcp", &[]), 400);
    assert_eq!(knock(&door, "/mcp", &[(HOST, "localhost"), (HOST, "localhost")]), 400);
    assert_eq!(knock(&door, "/mcp", &[(HOST, "localhost"), (HOST, "evil.example")]), 400);
    assert_eq!(knock(&door, "/mcp", &[(HOST, "\u{e9}")]), 400);
    // In absolute form and in HTTP/2 the target names the host; then both must be allowed.
    assert_eq!(knock(&door, "http://localhost/mcp", &[(HOST, "localhost:1")]), 200);
    assert_eq!(knock(&door, "http://evil.example/mcp", &[(HOST, "localhost")]), 403);
    assert_eq!(knock(&door, "http://localhost/mcp", &[(HOST, "evil.example")]), 403);
    assert_eq!(knock(&door, "http://evil.example/mcp", &[]), 403);
    assert_eq!(knock(&door, "http://localhost@evil.example/mcp", &[]), 403);
}

#[test]
fn other_names_are_let_in_by_name() {
    let mut door = Door::default();
    door.allow_host("MCP.example.com");
    door.allow_host("fixed.example.com:8443");
    for (host, status) in [
        ("mcp.example.com", 200),
        ("mcp.EXAMPLE.com:99", 200),
        ("fixed.example.com:8443", 200),
        ("fixed.example.com", 403),
        ("fixed.example.com:8444", 403),
        ("sub.mcp.example.com", 403),
        ("example.com", 403),
        ("localhost", 200),
    ] {
        assert_eq!(knock(&door, "/mcp", &[(HOST, host)]), status, "{host}");
    }
}

#[test]
fn only_pages_of_our_own_talk_to_us() {
    let door = Door::default();
    let from = |origins: &[&str]| {
        let mut headers = vec![(HOST, "127.0.0.1:3000")];
        headers.extend(origins.iter().map(|it| (ORIGIN, *it)));
        knock(&door, "/mcp", &headers)
    };
    assert_eq!(from(&[]), 200);
    for origin in ["http://127.0.0.1:3000", "https://127.0.0.1:3000", "HTTP://127.0.0.1:3000"] {
        assert_eq!(from(&[origin]), 200, "{origin}");
    }
    for origin in [
        "null",
        "",
        "http://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:3001",
        "http://localhost:3000",
        "http://127.0.0.1:3000/",
        "http://127.0.0.1:3000.evil.example",
        "http://127.0.0.1:3000@evil.example",
        "http://evil.example#127.0.0.1:3000",
        "ftp://127.0.0.1:3000",
        "127.0.0.1:3000",
        "//127.0.0.1:3000",
        "http:/127.0.0.1:3000",
        "h\u{fc}tp://127.0.0.1:3000",
        "\u{fc}",
        "http://127.0.0.1:3000, http://127.0.0.1:3000",
    ] {
        assert_eq!(from(&[origin]), 403, "{origin}");
    }
    assert_eq!(from(&["http://127.0.0.1:3000", "http://127.0.0.1:3000"]), 403);
    assert_eq!(from(&["http://127.0.0.1:3000", "http://evil.example"]), 403);
    assert_eq!(from(&["http://evil.example", "http://127.0.0.1:3000"]), 403);
    // With two names, the target decides which is its own.
    for (origin, status) in [("http://localhost:1", 200), ("http://localhost:2", 403)] {
        let headers = [(HOST, "localhost:2"), (ORIGIN, origin)];
        assert_eq!(knock(&door, "http://localhost:1/mcp", &headers), status, "{origin}");
    }
}

#[test]
fn other_pages_are_let_in_by_name() {
    let mut door = Door::default();
    door.allow_origin("https://App.example.com/");
    let from = |origin| knock(&door, "/mcp", &[(HOST, "localhost"), (ORIGIN, origin)]);
    assert_eq!(from("https://app.example.com"), 200);
    assert_eq!(from("HTTPS://APP.example.com"), 200);
    for origin in [
        "http://app.example.com",
        "https://app.example.com:444",
        "https://app.example.com.evil.example",
        "null",
    ] {
        assert_eq!(from(origin), 403, "{origin}");
    }
    assert!(door.knows_origin("https://app.example.com"));
    // The server's own origin is allowed but not on the list.
    assert!(!door.knows_origin("http://localhost"));
    // An allowed origin does not make a foreign Host acceptable.
    let headers = [(HOST, "evil.example"), (ORIGIN, "https://app.example.com")];
    assert_eq!(knock(&door, "/mcp", &headers), 403);
}

#[test]
fn a_body_is_json_and_plain() {
    let body = |headers: &[(HeaderName, &str)]| {
        check_body(&Fields::of(&map(headers)), 100).map_or_else(|it| it.status.as_u16(), |()| 200)
    };
    for kind in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "application/json ; charset = utf-8",
        "application/json;",
        "application/json; profile=x",
    ] {
        assert_eq!(body(&[(CONTENT_TYPE, kind)]), 200, "{kind}");
    }
    for kind in [
        "",
        "text/plain",
        "text/json",
        "application/jsonx",
        "application/json-rpc",
        "application/vnd.api+json",
        "application/json, text/plain",
        "application/json text/plain",
        "text/plain; application/json",
        "text/plain, application/json",
        "application/*",
        "*/*",
        "json",
        "application/json; charset=utf-16",
        "application/json; charset=latin1",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "\u{fc}",
    ] {
        assert_eq!(body(&[(CONTENT_TYPE, kind)]), 415, "{kind}");
    }
    assert_eq!(body(&[]), 415);
    let json = (CONTENT_TYPE, "application/json");
    assert_eq!(body(&[json.clone(), json.clone()]), 415);
    assert_eq!(body(&[json.clone(), (CONTENT_TYPE, "text/plain")]), 415);
    assert_eq!(body(&[json.clone(), (CONTENT_ENCODING, "identity")]), 200);
    for encoding in ["gzip", "br", "x-gzip", "identity, gzip", "gzip, identity", ""] {
        assert_eq!(body(&[json.clone(), (CONTENT_ENCODING, encoding)]), 415, "{encoding}");
    }
    let plain = (CONTENT_ENCODING, "identity");
    assert_eq!(body(&[json.clone(), plain, (CONTENT_ENCODING, "gzip")]), 415);
    for (length, status) in [("0", 200), ("100", 200), ("101", 413), ("18446744073709551615", 413)]
    {
        assert_eq!(body(&[json.clone(), (CONTENT_LENGTH, length)]), status, "{length}");
    }
}

#[test]
fn an_answer_can_be_either_kind() {
    let found = |accept: &[&str]| {
        let headers: Vec<_> = accept.iter().map(|it| (ACCEPT, *it)).collect();
        let headers = map(&headers);
        (accepts_both(&Fields::of(&headers)), accepts_events(&headers))
    };
    let either = [
        "application/json, text/event-stream",
        "text/event-stream,application/json",
        "APPLICATION/JSON, Text/Event-Stream",
        "*/*",
        "application/*, text/*",
        "application/json;q=0.5, text/event-stream;q=1.0",
        "application/json; charset=utf-8, text/event-stream",
        "application/json, text/event-stream, text/html",
        "TEXT/Event-Stream;q=0.1, Application/JSON",
        "application/json;q=, text/event-stream",
    ];
    let events_alone = [
        "text/event-stream",
        "application/jsonx, text/event-stream",
        "application/json;q=0, text/event-stream",
        "application/json;q=0.0, text/event-stream",
    ];
    let neither = [
        "application/json",
        "text/html",
        "",
        "application/json, text/event-streams",
        "application/json, text/event-stream;q=0.000",
        "application/json text/event-stream",
        "application, text",
        "application/json, text/event-stream;q=0",
        "application/json, text/event-stream; Q=0",
        "application/xml, text/html",
        "json, events",
        "text/json, application/event-stream",
    ];
    for (accepts, expected) in
        [(&either[..], (true, true)), (&events_alone, (false, true)), (&neither, (false, false))]
    {
        for accept in accepts {
            assert_eq!(found(&[accept]), expected, "{accept:?}");
        }
    }
    // None, and several.
    assert_eq!(found(&[]), (false, false));
    assert_eq!(found(&["text/html", "text/event-stream"]), (false, true));
    assert_eq!(found(&["application/json", "text/event-stream"]), (true, true));
    assert_eq!(found(&["text/event-stream", "application/json"]), (true, true));
}
