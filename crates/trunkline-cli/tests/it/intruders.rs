//! Those who may not use the console of a running gateway, and what they get.
//!
//! That a link is good for five minutes is tested where the clock can be moved: in the gateway's `admin::tests`.

use std::net::SocketAddr;

use serde_json::{Value, json};
use trunkline_testkit::http::{Head, Line, request};

use crate::console::{Operator, demo};
use crate::gateway_kit::{Gateway, Place};

/// A gateway whose console is at a port of its own.
pub(crate) struct House {
    pub(crate) operator: Operator,
    pub(crate) gateway: Gateway,
    place: Place,
}

impl House {
    pub(crate) async fn open(name: &str) -> Self {
        let (place, gateway, operator) = demo(name).await;
        Self { operator, gateway, place }
    }

    fn address(&self) -> SocketAddr {
        self.operator.address
    }

    /// The key of a new link.
    async fn link(&self) -> String {
        let link = self.place.run(&["console"]).await;
        link.trim().split_once("/#k=").unwrap().1.to_owned()
    }

    /// The status of the answer to a request with these headers.
    async fn status(&self, line: &str, headers: &[(&str, &str)], body: &str) -> u16 {
        ask(self.address(), line, headers, body).await.0.status
    }

    async fn enter(&self, key: &str, headers: &[(&str, &str)]) -> (Head, Value) {
        let body = json!({ "key": key }).to_string();
        ask(self.address(), "POST /v1/console/enter", headers, &body).await
    }

    /// A browser that was let in.
    pub(crate) async fn browser(&self) -> Browser {
        let (head, told) = self.enter(&self.link().await, &[]).await;
        let cookie = head.get("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Browser { cookie, csrf: told["csrf"].as_str().unwrap().to_owned() }
    }
}

/// The session of a browser.
pub(crate) struct Browser {
    /// `NAME=VALUE`.
    cookie: String,
    csrf: String,
}

impl Browser {
    /// The headers of its page's requests.
    pub(crate) fn headers(&self) -> [(&str, &str); 3] {
        [
            ("Cookie", &self.cookie),
            ("X-Trunkline-Csrf", &self.csrf),
            ("Sec-Fetch-Site", "same-origin"),
        ]
    }

    fn value(&self) -> &str {
        self.cookie.split_once('=').unwrap().1
    }
}

async fn ask(
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (Head, Value) {
    let mut stream = Line::to(address).await;
    stream.send(request(address, line, headers, body)).await;
    let head = stream.head().await;
    // What goes on has no end to wait for.
    let told =
        if head.status == 200 && head.is_events() { Value::Null } else { stream.json().await };
    (head, told)
}

/// What is worth asking for.
const ALL: [&str; 12] = [
    "GET /v1/status",
    "GET /v1/traffic",
    "GET /v1/traffic/stream",
    "GET /v1/traffic/export",
    "GET /v1/logs?follow=1",
    "GET /v1/servers/demo/offers",
    "GET /v1/recordings",
    "GET /v1/approvals",
    "POST /v1/console/link",
    "POST /v1/try",
    "POST /v1/servers/demo/stop",
    "DELETE /v1/recordings/one",
];

#[tokio::test]
async fn without_the_token_nothing_is_told_or_done() {
    let house = House::open("no-token").await;
    let nearly = format!("Bearer {}x", &house.operator.token[1..]);
    for line in ALL.into_iter().chain(["GET /metrics", "GET /v1/console/me", "GET /v1/nothing"]) {
        let guesses: [&[(&str, &str)]; 4] = [
            &[],
            &[("Authorization", "Bearer guessed-guessed-guessed")],
            &[("Authorization", &nearly)],
            &[("Cookie", "trunkline_console=1"), ("X-Trunkline-Csrf", "1")],
        ];
        for headers in guesses {
            let (head, told) = ask(house.address(), line, headers, "").await;
            assert_eq!(head.status, 401, "{line} {headers:?}: {told}");
            assert!(told["error"]["message"].is_string(), "{told}");
        }
    }
}

#[tokio::test]
async fn a_used_link_lets_no_second_browser_in() {
    let house = House::open("used-link").await;
    let key = house.link().await;
    assert_eq!(house.enter(&key, &[]).await.0.status, 200);
    let (head, told) = house.enter(&key, &[]).await;
    assert_eq!((head.status, head.get("set-cookie")), (401, None), "{told}");
    assert!(told["error"]["advice"].as_str().unwrap().contains("trunkline console"), "{told}");
    for guessed in ["", &key[1..], &key.to_uppercase()] {
        assert_eq!(house.enter(guessed, &[]).await.0.status, 401, "{guessed}");
    }
}

#[tokio::test]
async fn another_origin_gets_nothing_with_a_token_a_cookie_or_a_link() {
    let house = House::open("origin").await;
    let (browser, key) = (house.browser().await, house.link().await);
    let token = format!("Bearer {}", house.operator.token);
    // Another port of this machine is another origin.
    let beside = format!("http://127.0.0.1:{}", house.gateway.address.port());
    for origin in ["https://evil.example", "null", &beside] {
        for line in ALL {
            for (name, value) in [("Authorization", &*token), browser.headers()[0]] {
                let csrf = browser.headers()[1];
                let headers = [(name, value), csrf, ("Origin", origin)];
                assert_eq!(house.status(line, &headers, "").await, 403, "{line} {name} {origin}");
            }
        }
        assert_eq!(house.enter(&key, &[("Origin", origin)]).await.0.status, 403, "{origin}");
    }
    // A browser that says where its page is, and no origin.
    for site in ["cross-site", "same-site", "none"] {
        let [cookie, csrf, _] = browser.headers();
        for line in ALL {
            let headers = [cookie, csrf, ("Sec-Fetch-Site", site)];
            assert_eq!(house.status(line, &headers, "").await, 403, "{line} {site}");
        }
    }
    assert_eq!(house.status("GET /v1/status", &browser.headers(), "").await, 200);
    assert_eq!(house.enter(&key, &[]).await.0.status, 200, "the link is still good");
}

#[tokio::test]
async fn a_name_that_was_bound_to_this_machine_gets_nothing() {
    let house = House::open("rebinding").await;
    let (browser, key) = (house.browser().await, house.link().await);
    let token = format!("Bearer {}", house.operator.token);
    let address = house.address();
    let own = format!("Host: {address}");
    let send = async |line: &str, host: &str, headers: &[(&str, &str)], body: &str| {
        let text = String::from_utf8(request(address, line, headers, body)).unwrap();
        let mut stream = Line::to(address).await;
        stream.send(text.replacen(&own, &format!("Host: {host}"), 1)).await;
        stream.head().await.status
    };
    let port = address.port();
    for host in ["evil.example", &format!("evil.example:{port}"), "localhost.evil.example"] {
        for line in ALL.into_iter().chain(["GET /", "GET /healthz", "GET /metrics"]) {
            for (name, value) in [("Authorization", &*token), browser.headers()[0]] {
                let headers = [(name, value), browser.headers()[1]];
                assert_eq!(send(line, host, &headers, "").await, 403, "{line} {host} {name}");
            }
        }
        let body = json!({ "key": key }).to_string();
        assert_eq!(send("POST /v1/console/enter", host, &[], &body).await, 403, "{host}");
    }
    let headers = browser.headers();
    assert_eq!(send("GET /v1/status", &format!("localhost:{port}"), &headers, "").await, 200);
}

#[tokio::test]
async fn the_cookie_of_another_gateway_is_worth_nothing() {
    let (house, other) = (House::open("own").await, House::open("other").await);
    let (own, stolen) = (house.browser().await, other.browser().await);
    assert_eq!(other.status("GET /v1/status", &stolen.headers(), "").await, 200);
    let name = own.cookie.split_once('=').unwrap().0;
    assert_ne!(name, stolen.cookie.split_once('=').unwrap().0, "a port has a name of its own");
    // As the browser sends it, and under the name that this gateway looks for.
    for cookie in [stolen.cookie.clone(), format!("{name}={}", stolen.value())] {
        for line in ALL {
            for csrf in [&own.csrf, &stolen.csrf] {
                let headers = [("Cookie", &*cookie), ("X-Trunkline-Csrf", csrf)];
                assert_eq!(house.status(line, &headers, "").await, 401, "{line} {cookie}");
            }
        }
    }
    // Beside the right one it changes nothing.
    let both = format!("{}; {}", stolen.cookie, own.cookie);
    assert_eq!(house.status("GET /v1/status", &[("Cookie", &both)], "").await, 200);
}

#[tokio::test]
async fn signing_out_ends_what_the_browser_has_open_and_the_call_that_it_tries() {
    let house = House::open("sign-out").await;
    let browser = house.browser().await;
    let send = async |line: &str, body: &str| {
        let mut stream = Line::to(house.address()).await;
        stream.send(request(house.address(), line, &browser.headers(), body)).await;
        assert_eq!(stream.head().await.status, 200, "{line}");
        stream
    };
    let (mut watched, head) =
        house.operator.send("GET /v1/traffic/stream?server=demo", &Value::Null).await;
    assert_eq!(head.status, 200);
    let mut traffic = send("GET /v1/traffic/stream", "").await;
    let mut log = send("GET /v1/logs?follow=1", "").await;
    let tried = json!({
        "server": "demo", "revision": "2025-11-25", "method": "tools/call",
        "params": { "name": "greet", "arguments": {} },
    });
    let mut call = send("POST /v1/try", &tried.to_string()).await;
    while call.message().await.unwrap().0.event.as_deref() != Some("question") {}
    assert_eq!(house.status("POST /v1/console/leave", &browser.headers(), "").await, 200);
    assert_eq!(call.event().await, None, "nothing is told any more, not even `done`");
    while traffic.event().await.is_some() {}
    log.body().await;
    // The operator with the token goes on, and sees that nobody waits for the answer any more.
    let ended = loop {
        let (_, told) = watched.message().await.unwrap();
        if told["name"] == "demo.greet" && told["state"] == "done" {
            break told;
        }
    };
    assert_eq!(ended["outcome"], "cancelled", "{ended}");
    assert_eq!(house.status("GET /v1/traffic/stream", &browser.headers(), "").await, 401);
}
