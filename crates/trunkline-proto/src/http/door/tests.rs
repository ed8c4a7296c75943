use http::header::{CONTENT_TYPE, HOST};

use super::*;

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(*name, value.parse().expect("it can stand in a header"));
    }
    map
}

fn door() -> Door {
    let mut door = Door::default();
    door.allow_host("mcp.example");
    door.allow_host("other.example:8080");
    door.allow_origin("https://app.example/");
    door
}

/// The status and the message; 200 for a request that is let in.
fn checked(target: &'static str, fields: &[(&'static str, &str)]) -> (u16, String) {
    match door().check(&Uri::from_static(target), &Fields::of(&headers(fields))) {
        Ok(()) => (200, String::new()),
        Err(refusal) => (refusal.status.as_u16(), refusal.error.message.to_string()),
    }
}

const STRANGER: &str = "This server does not go by that name; its owner can allow it by name.";
const FOREIGN: &str = "This origin may not talk to this server; its owner can allow it by name.";

#[test]
fn hosts_are_let_in_by_name() {
    let ours = [
        "localhost",
        "LOCALHOST:3000",
        "127.0.0.1:1",
        "[::1]:3000",
        "[::1]",
        "mcp.example",
        "MCP.example:443",
        "other.example:8080",
    ];
    let others = [
        "other.example",
        "other.example:80",
        "evil.example",
        "mcp.example.evil",
        "localhost:evil",
        "",
    ];
    for host in ours {
        assert_eq!(checked("/mcp", &[("host", host)]), (200, String::new()), "{host}");
    }
    for host in others {
        assert_eq!(checked("/mcp", &[("host", host)]), (403, STRANGER.to_owned()), "{host}");
    }
    // Both the target and the header must be allowed.
    for (target, host, expected) in [
        ("http://mcp.example/mcp", "localhost", (200, "")),
        ("http://mcp.example/mcp", "evil.example", (403, STRANGER)),
        ("http://evil.example/mcp", "localhost", (403, STRANGER)),
    ] {
        let (status, message) = checked(target, &[("host", host)]);
        assert_eq!((status, &*message), expected, "{target} {host}");
    }
    let none = "The request names no Host.";
    assert_eq!(checked("/mcp", &[]), (400, none.to_owned()));
    assert_eq!(checked("http://localhost/mcp", &[]), (200, String::new()));
    let two = [("host", "localhost"), ("host", "localhost")];
    assert_eq!(checked("/mcp", &two), (400, "There is more than one Host.".to_owned()));
    let mut unreadable = HeaderMap::new();
    unreadable.insert(HOST, HeaderValue::from_bytes(b"local\xffhost").expect("it is opaque"));
    let refusal = door().check(&Uri::from_static("/mcp"), &Fields::of(&unreadable)).unwrap_err();
    assert_eq!((refusal.status.as_u16(), &*refusal.error.message), (400, "This is no Host."));
}

#[test]
fn origins_are_our_own_or_named() {
    for (host, origin, expected) in [
        ("localhost:3000", "http://localhost:3000", (200, "")),
        ("localhost:3000", "HTTPS://LOCALHOST:3000", (200, "")),
        ("localhost:3000", "http://localhost:3001", (403, FOREIGN)),
        ("localhost:3000", "http://localhost", (403, FOREIGN)),
        ("localhost", "ftp://localhost", (403, FOREIGN)),
        ("localhost", "http://", (403, FOREIGN)),
        ("localhost", "localhost", (403, FOREIGN)),
        ("localhost", "null", (403, FOREIGN)),
        ("localhost", "", (403, FOREIGN)),
        ("localhost", "https://app.example", (200, "")),
        ("localhost", "https://APP.example", (200, "")),
        ("localhost", "http://app.example", (403, FOREIGN)),
        ("localhost", "https://app.example.evil", (403, FOREIGN)),
        ("localhost", "https://evil.example", (403, FOREIGN)),
    ] {
        let (status, message) = checked("/mcp", &[("host", host), ("origin", origin)]);
        let why = message.split(" Write ").next().unwrap_or_default();
        assert_eq!((status, why), expected, "{host} {origin}");
        // Text that could be an origin can be allowed.
        let can_be = status == 403 && origin.starts_with("http") && origin.len() > 8;
        let hint = format!("`allow_origin(\"{origin}\")`");
        assert_eq!(message.contains(&hint), can_be, "{message}");
    }
    let two =
        [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
    assert_eq!(checked("/mcp", &two), (403, FOREIGN.to_owned()));
    assert!(door().knows_origin("https://app.example"));
    assert!(door().knows_origin("HTTPS://app.EXAMPLE"));
    assert!(!door().knows_origin("https://evil.example"));
    assert!(!Door::default().knows_origin("https://app.example"));
}

#[test]
fn websockets_are_refused() {
    let asked = |upgrade| checked("/mcp", &[("host", "localhost"), ("upgrade", upgrade)]);
    assert_eq!(asked("WebSocket"), (400, "There are no WebSockets here.".to_owned()));
    assert_eq!(asked("h2c"), (200, String::new()));
}

#[test]
fn bodies_are_plain_json_of_a_bounded_length() {
    let json = ("content-type", "application/json");
    for (fields, expected) in [
        (&[json][..], 200),
        (&[("content-type", "Application/JSON; charset=UTF-8")], 200),
        (&[("content-type", "application/json; charset=\"utf-8\"; v=1")], 200),
        (&[("content-type", "application/json;charset=latin1")], 415),
        (&[("content-type", "application/jsonl")], 415),
        (&[("content-type", "text/plain")], 415),
        (&[("content-type", "text/plain; charset=utf-8")], 415),
        (&[], 415),
        (&[json, json], 415),
        (&[json, ("content-encoding", "identity")], 200),
        (&[json, ("content-encoding", "IDENTITY")], 200),
        (&[json, ("content-encoding", "gzip")], 415),
        (&[json, ("content-encoding", "identity"), ("content-encoding", "gzip")], 415),
        (&[json, ("content-length", "9")], 200),
        (&[json, ("content-length", "10")], 200),
        (&[json, ("content-length", "11")], 413),
        (&[json, ("content-length", "many")], 200),
    ] {
        let found = check_body(&Fields::of(&headers(fields)), 10)
            .map_or_else(|it| it.status.as_u16(), |()| 200);
        assert_eq!(found, expected, "{fields:?}");
    }
    let refusal = too_long(10);
    assert_eq!(refusal.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(refusal.error.message, "A body may have at most 10 bytes.");
    let mut opaque = HeaderMap::new();
    opaque.insert(CONTENT_TYPE, HeaderValue::from_bytes(b"\xff").expect("it is opaque"));
    assert_eq!(
        check_body(&Fields::of(&opaque), 10).unwrap_err().status,
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
}

#[test]
fn ports_are_digits() {
    let is_ours = |host: &str, name| {
        let mut door = Door { hosts: Vec::new(), origins: Vec::new() };
        door.allow_host(name);
        door.is_ours(host.as_bytes())
    };
    for (host, name) in [
        ("a:80", "a"),
        ("a:", "a"),
        ("a", "a"),
        ("A:80", "a"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("a:b", "a:b"),
    ] {
        assert!(is_ours(host, name), "{host} {name}");
    }
    for (host, name) in
        [("a:b", "a"), ("a:80:80", "a"), ("a:80", "a:8"), ("ab", "a"), ("a80", "a"), ("é:80", "a")]
    {
        assert!(!is_ours(host, name), "{host} {name}");
    }
}
