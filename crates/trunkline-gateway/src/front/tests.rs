use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use trunkline_transport::Limits;
use trunkline_transport::http::serve_stream;

use super::*;
use crate::fixture::{plan, settings};

const TOKENS: &str = "auth: { tokens: [{ name: ann, token: a-long-enough-secret-token }, \
                      { name: bob, token: another-long-enough-token, tags: [b] }] }";

async fn front(gateway: &str) -> Arc<Front> {
    let text = format!(
        "gateway: {{ {gateway} }}\n\
         mcpServers:\n  \
           time: {{ url: 'http://127.0.0.1:9/mcp', tags: [a] }}\n  \
           vault: {{ url: 'http://127.0.0.1:9/mcp', tags: [b] }}\n"
    );
    let gateway = Gateway::open(plan(&text), settings()).await.unwrap();
    Front::new(&gateway, "127.0.0.1:7373".parse().unwrap()).unwrap()
}

/// What happens to a request before an endpoint answers it: the path it is answered at, or the status of a
/// refusal.
async fn ask(front: &Front, host: &str, path: &str, token: &str) -> Result<String, u16> {
    let request = Request::get(path).header("host", host);
    let request = match token {
        "" => request,
        token => request.header("authorization", format!("Bearer {token}")),
    };
    let request = request.body(String::new()).unwrap();
    let (all, base) = match front.first(request.uri(), request.headers()) {
        First::Accounts => return Ok("accounts".to_owned()),
        First::All(_) => return Ok("all".to_owned()),
        First::Gate(all, base) => (all, base),
        First::Known(response) => return Ok(response.status().to_string()),
    };
    let request = all.let_in(request, &base).await.map_err(|it| it.status().as_u16())?;
    let (_, to) = front.second(request.get()).map_err(|it| it.status.as_u16())?;
    Ok(to.unwrap_or_else(|| request.get().uri().clone()).to_string())
}

#[tokio::test]
async fn nothing_is_stored_or_disclosed_before_admission() {
    const ANN: &str = "a-long-enough-secret-token";
    const BOB: &str = "another-long-enough-token";
    const RULES: &str = "rules: [{ tools: ['vault.*'], effect: deny }]";
    let long = format!("/mcp/tags/{}", "abc,".repeat(4000));
    let long = long.as_str();
    for (gateway, host, path, token, expected, kept) in [
        ("", "localhost", "/mcp/server/time", "", Ok("/mcp/server/time"), 1),
        ("", "localhost", "/mcp/server/nobody", "", Err(404), 0),
        ("", "localhost", "/mcp/tags/x,A", "", Ok("/mcp/tags/a"), 1),
        ("", "localhost", "/mcp/tags/x/sse?y=1", "", Ok("/mcp/tags/,/sse?y=1"), 1),
        ("", "localhost", long, "", Err(414), 0),
        ("", "evil.example", "/mcp/server/time", "", Err(403), 0),
        ("", "evil.example", "/mcp/server/nobody", "", Err(403), 0),
        ("", "evil.example", "/mcp/tags/x", "", Err(403), 0),
        (TOKENS, "localhost", "/mcp/server/time", ANN, Ok("/mcp/server/time"), 1),
        (TOKENS, "localhost", "/mcp/server/time", "", Err(401), 0),
        (TOKENS, "localhost", "/mcp/server/nobody", "", Err(401), 0),
        (TOKENS, "localhost", "/mcp/server/nobody", ANN, Err(404), 0),
        (TOKENS, "localhost", "/mcp/tags/x", "", Err(401), 0),
        (TOKENS, "localhost", long, "", Err(401), 0),
        (TOKENS, "localhost", "/mcp/server/time", BOB, Err(404), 0),
        (TOKENS, "localhost", "/mcp/server/vault", BOB, Ok("/mcp/server/vault"), 1),
        (RULES, "localhost", "/mcp/server/vault", "", Err(404), 0),
        (RULES, "localhost", "/mcp/server/time", "", Ok("/mcp/server/time"), 1),
        ("requireSelector: true", "localhost", "/mcp", "", Err(400), 0),
        ("requireSelector: true", "localhost", "/sse", "", Err(400), 0),
        ("requireSelector: true", "localhost", "/messages", "", Err(400), 0),
        (
            "requireSelector: true",
            "localhost",
            "/mcp/server/time/sse",
            "",
            Ok("/mcp/server/time/sse"),
            1,
        ),
    ] {
        let front = front(gateway).await;
        let came = ask(&front, host, path, token).await;
        assert_eq!(came, expected.map(str::to_owned), "{gateway} {host} {path} {token}");
        assert_eq!(front.read().chosen.len(), kept, "{gateway} {host} {path} {token}");
    }
}

#[tokio::test]
async fn a_refused_request_leaves_nothing_behind() {
    let front = front(TOKENS).await;
    let tags: String = (0..15_500).map(|it| format!("{:03x},", it % 4096)).collect();
    for number in 0..100 {
        let request = Request::post(format!("/mcp/tags/{number},{tags}"));
        let request = request.header("host", "localhost").body(String::new()).unwrap();
        let First::Gate(all, base) = front.first(request.uri(), request.headers()) else {
            panic!("{number}")
        };
        let refused = all.let_in(request, &base).await.err().expect("it has no token");
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    }
    assert_eq!(front.read().chosen.capacity(), 0);
    assert_eq!(front.room.used(), 0);
    assert_eq!(front.gateway.0.known_views(), 1, "that of all");
}

#[tokio::test]
async fn made_up_tags_are_one_choice() {
    let front = front("").await;
    for number in 0..2000 {
        let path = format!("/mcp/tags/t{number},u{number}");
        assert_eq!(ask(&front, "localhost", &path, "").await, Ok("/mcp/tags/,".to_owned()));
    }
    assert_eq!(front.read().chosen.len(), 1);
    assert_eq!(front.gateway.0.known_views(), 2, "that of all is the other one");
}

#[tokio::test]
async fn unused_choices_are_evicted() {
    let tags: Vec<_> = (0..12).map(|it| format!("t{it}")).collect();
    let text =
        format!("mcpServers: {{ a: {{ url: 'http://127.0.0.1:9', tags: [{}] }} }}", tags.join(","));
    let gateway = Gateway::open(plan(&text), settings()).await.unwrap();
    let front = Front::new(&gateway, "127.0.0.1:7373".parse().unwrap()).unwrap();
    for number in 1..=CHOICES * 2 {
        let some = tags.iter().enumerate().filter(|(at, _)| number >> at & 1 == 1);
        let some: Vec<_> = some.map(|(_, it)| it.as_str()).collect();
        let came = ask(&front, "localhost", &format!("/mcp/tags/{}", some.join(",")), "").await;
        assert!(came.is_ok(), "{came:?}");
        assert!(front.read().chosen.len() <= CHOICES_OF_ONE, "{number}");
    }
}

#[tokio::test]
async fn a_plan_may_not_open_a_door_that_was_put_elsewhere() {
    let text = format!("gateway: {{ plaintext: true, {TOKENS} }}\nmcpServers: {{}}");
    let gateway = Gateway::open(plan(&text), settings()).await.unwrap();
    let open = plan("mcpServers: {}").gateway;
    for (address, is_good) in [("0.0.0.0:7373", false), ("127.0.0.1:7373", true)] {
        let front = Front::new(&gateway, address.parse().unwrap()).unwrap();
        assert_eq!(front.can_follow(&open).is_ok(), is_good, "{address}");
        assert!(front.can_follow(&plan(&text).gateway).is_ok(), "{address}");
    }
    gateway.apply(plan("mcpServers: {}")).await.unwrap();
    assert!(Front::new(&gateway, "0.0.0.0:7373".parse().unwrap()).is_err());
}

#[test]
fn an_unspecified_address_is_replaced() {
    for (address, hosts, expected) in [
        ("127.0.0.1:7373", &[][..], "127.0.0.1:7373"),
        ("10.0.0.7:80", &["gate.example"], "10.0.0.7:80"),
        ("0.0.0.0:7373", &[], "127.0.0.1:7373"),
        ("[::]:7373", &[], "[::1]:7373"),
        ("0.0.0.0:7373", &["gate.example", "other.example"], "gate.example:7373"),
        ("0.0.0.0:7373", &["gate.example:443"], "gate.example:443"),
        ("[::]:7373", &["[2001:db8::1]"], "[2001:db8::1]:7373"),
    ] {
        let hosts: Vec<String> = hosts.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(reached_at(address.parse().unwrap(), &hosts), expected, "{address}");
    }
}

#[tokio::test]
async fn a_probe_is_answered_if_its_head_is_in_order() {
    const NEXT: &str = "GET /healthz HTTP/1.1\r\nhost: 10.0.0.7\r\nconnection: close\r\n\r\n";
    let chunked = |coding: &str| {
        format!("POST /healthz HTTP/1.1\r\nhost: a\r\ntransfer-encoding: {coding}\r\n\r\n0\r\n\r\n")
    };
    let front = front("").await;
    for (text, expected) in [
        ("GET /readyz HTTP/1.1\r\nhost: evil.example\r\n\r\n", &["200", "200"][..]),
        ("GET /readyz HTTP/1.0\r\n\r\n", &["200"]),
        ("GET /readyz HTTP/1.1\r\n\r\n", &["400", "200"]),
        ("GET /healthz HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n", &["400", "200"]),
        (&chunked("Chunked"), &["200", "200"]),
        (&chunked("chunked, chunked"), &["501"]),
        (&chunked("gzip, chunked"), &["501"]),
        (&chunked("identity, chunked"), &["501"]),
        (&chunked("chunked\r\ntransfer-encoding: chunked"), &["501"]),
    ] {
        let (mut ours, theirs) = duplex(1 << 12);
        let serving = tokio::spawn(serve_stream(theirs, Arc::clone(&front), Limits::default()));
        ours.write_all(format!("{text}{NEXT}").as_bytes()).await.unwrap();
        ours.shutdown().await.unwrap();
        let mut said = String::new();
        ours.read_to_string(&mut said).await.unwrap();
        let statuses: Vec<_> = said.split("HTTP/1.1 ").skip(1).map(|it| &it[..3]).collect();
        assert_eq!(statuses, expected, "{text}");
        serving.await.unwrap();
    }
}
