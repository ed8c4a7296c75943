//! Raw HTTP/1.1 to a server of the SDK: no handler runs for somebody who may not come in, and what
//! goes out is HTTP.

use std::cell::Cell;

use trunkline::server::protect::Protect;
use trunkline::{Server, prompt, resource, template, tool};

use crate::input::Input;
use crate::raw::{exchange, first_status, has};

thread_local! {
    /// How often a handler ran; inputs are checked one after another on a thread.
    static RUNS: Cell<usize> = const { Cell::new(0) };
    static SERVER: Server = server();
}

/// A byte of settings, one for the chunks, then the bytes of a connection.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (settings, seed) = (input.byte(), input.byte());
    let bytes = input.rest();
    RUNS.set(0);
    let is_protected = settings & 4 == 4;
    let out = exchange(bytes, seed, || {
        let mut http = SERVER.with(Server::http);
        if settings & 1 == 1 {
            http = http.stateless();
        }
        if settings & 2 == 2 {
            http = http.always_stream();
        }
        if is_protected {
            let protect = Protect::new("http://localhost/mcp").api_key("robot", KEY, ["files"]);
            http = http.protect(protect).expect("the settings are in order");
        }
        let service = http.service();
        move |request| {
            let service = service.clone();
            async move { service.answer(request).await }
        }
    });

    let status = first_status(&out);
    assert_ne!(status, Some(500), "{}", out.escape_ascii());
    let runs = RUNS.get();
    if runs > 0 {
        let names_us = ["localhost", "127.0.0.1", "[::1]"].iter().any(|it| has(bytes, it));
        assert!(names_us, "a handler ran for a host that is not ours");
        assert!(!is_protected || has(bytes, KEY), "a handler ran for nobody");
        assert!(has(bytes, "POST"), "a handler ran without a message");
    }
    if is_protected && status == Some(200) {
        let is_public = has(bytes, "oauth-protected-resource") || has(bytes, "OPTIONS");
        assert!(is_public || has(bytes, KEY), "{}", out.escape_ascii());
    }
    assert!(!has(&out, KEY) || has(bytes, "POST"), "the key came back");
}

fn ran() {
    RUNS.set(RUNS.get() + 1);
}

fn server() -> Server {
    Server::builder("fuzz", "1.0.0")
        .tool(tool("now", async || {
            ran();
            "noon"
        }))
        .tool(tool("fail", async || {
            ran();
            Err::<String, _>(trunkline::ToolError::new("It does not work."))
        }))
        .resource(resource("menu://today", "menu", async || {
            ran();
            "Soup."
        }))
        .resource(template("city://{name}", "city", async || {
            ran();
            "A city."
        }))
        .prompt(prompt("greet", async || {
            ran();
            "Hello.".to_owned()
        }))
        .build()
}

const KEY: &str = "pQ7-lVhCgW2kXr9bTz4n";
pub(crate) const WORDS: &[&str] = &[
    "POST /mcp HTTP/1.1\r\n",
    "GET /mcp HTTP/1.1\r\n",
    "DELETE /mcp HTTP/1.1\r\n",
    "GET /sse HTTP/1.1\r\n",
    "POST /messages?session=",
    "OPTIONS /mcp HTTP/1.1\r\n",
    "host: localhost\r\n",
    "host: evil.example\r\n",
    "authorization: Bearer pQ7-lVhCgW2kXr9bTz4n\r\n",
    "origin: http://localhost\r\n",
    "accept: application/json, text/event-stream\r\n",
    "content-type: application/json\r\n",
    "content-length: ",
    "transfer-encoding: chunked\r\n",
    "0\r\n\r\n",
    "expect: 100-continue\r\n",
    "connection: close\r\n",
    "connection: upgrade\r\nupgrade: websocket\r\n",
    "last-event-id: 1\r\n",
    "mcp-protocol-version: 2026-07-28\r\n",
    "mcp-protocol-version: 2025-11-25\r\n",
    "mcp-session-id: ",
    "mcp-method: tools/call\r\n",
    "mcp-name: now\r\n",
    "\r\n\r\n",
    "GET /.well-known/oauth-protected-resource HTTP/1.1\r\n",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"now\"}}",
    "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}",
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{},\"io.modelcontextprotocol/clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}",
];
