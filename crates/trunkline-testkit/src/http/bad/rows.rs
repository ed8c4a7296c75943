//! Requests with one fault each, and the expected answers.
// tidy: table

use Twist::*;

/// What is wrong with a request that would be right.
#[derive(Clone, Copy, Debug)]
pub enum Twist {
    /// Another request line.
    Asks(&'static str),
    /// Another value.
    Set(&'static str, &'static str),
    /// One more line of a header.
    Add(&'static str, &'static str),
    /// A header fewer.
    Drop(&'static str),
    /// Another body.
    Body(&'static str),
    /// Another body, which is no text.
    Bytes(&'static [u8]),
    /// A body in which one text is another.
    Swap(&'static str, &'static str),
    /// A body with this behind it.
    Tail(&'static str),
    /// A body in which one text is another, `@` in it standing for 10,000 of the third, a number,
    /// and 10,000 of the last.
    Deep(&'static str, &'static str, &'static str, &'static str),
    /// A body in other bytes.
    Recode(fn(&str) -> Vec<u8>),
}

/// A call of 2026-07-28 that is right.
pub const MODERN: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","arguments":{"a":1,"b":2},"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#
);
/// A call of the stateful revisions that is right.
pub const LEGACY: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","arguments":{}}}"#;
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
/// What [`MODERN`] says about itself.
pub const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{}"#;

/// The status, the code if there is one, and what is wrong.
pub type Row = (u16, Option<i64>, &'static [Twist]);

/// A call of 2026-07-28, twisted.
pub const STATELESS: &[Row] = &[
    // Not JSON.
    (400, Some(-32700), &[Body("")]),
    (400, Some(-32700), &[Body(" \r\n")]),
    (400, Some(-32700), &[Body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","#)]),
    (
        400,
        Some(-32700),
        &[Bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\xff\xfe\"}")],
    ),
    (
        400,
        Some(-32700),
        &[Bytes(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}")],
    ),
    (400, Some(-32700), &[Bytes(b"{\0\"\0j\0")]),
    (400, Some(-32700), &[Tail("\0")]),
    (400, Some(-32700), &[Tail("{}")]),
    (400, Some(-32700), &[Tail("x")]),
    (400, Some(-32700), &[Swap(r#""a":1"#, r#""a":NaN"#)]),
    (400, Some(-32700), &[Swap(r#""a":1"#, r#""a":1,"#)]),
    // No message.
    (400, Some(-32600), &[Body("null")]),
    (400, Some(-32600), &[Body("true")]),
    (400, Some(-32600), &[Body("42")]),
    (400, Some(-32600), &[Body(r#""tools/call""#)]),
    (400, Some(-32600), &[Body("{}")]),
    (400, Some(-32600), &[Body("[]")]),
    (400, Some(-32600), &[Body("[[]]")]),
    (400, Some(-32600), &[Body("[1]")]),
    (400, Some(-32600), &[Swap(r#""jsonrpc":"2.0","#, "")]),
    (400, Some(-32600), &[Swap(r#""2.0""#, r#""1.0""#)]),
    (400, Some(-32600), &[Swap(r#""2.0""#, "2.0")]),
    (400, Some(-32600), &[Swap(r#""2.0""#, "null")]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":null"#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":1.5"#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":1e400"#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":true"#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":{}"#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":[1]"#)]),
    (400, Some(-32600), &[Swap(r#""method":"tools/call","#, "")]),
    (400, Some(-32600), &[Swap(r#""tools/call""#, "7")]),
    (400, Some(-32600), &[Swap(r#""tools/call""#, "null")]),
    (400, Some(-32600), &[Swap(r#""tools/call""#, r#"["tools/call"]"#)]),
    (400, Some(-32600), &[Body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}"#)]),
    (400, Some(-32600), &[Body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}"#)]),
    // Names that are not quite the same, or stand twice.
    (400, Some(-32600), &[Swap(r#""method""#, r#""Method""#)]),
    (400, Some(-32600), &[Swap(r#""method""#, r#""METHOD""#)]),
    (400, Some(-32600), &[Swap(r#""jsonrpc""#, r#""JsonRpc""#)]),
    (400, Some(-32600), &[Swap(r#""params""#, r#""Params""#)]),
    (400, Some(-32600), &[Swap(r#""method""#, r#""method\u0000""#)]),
    (400, Some(-32600), &[Swap(r#""method":"#, r#""method\u0000":"tools/list","method":"#)]),
    (400, Some(-32600), &[Swap(r#""name":"#, r#""name\u0000":"sleep","name":"#)]),
    (400, Some(-32600), &[Swap(r#""method":"#, r#""method":"tools/list","method":"#)]),
    (400, Some(-32600), &[Swap(r#""method":"#, r#""method":"tools/list","m\u0065thod":"#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":1,"id":2"#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":1,"x":1,"x":2"#)]),
    (400, Some(-32600), &[Swap(r#""jsonrpc""#, r#""jsonrpc":"2.0","jsonrpc""#)]),
    (400, Some(-32600), &[Swap(r#""params""#, r#""params":{},"params""#)]),
    (400, Some(-32600), &[Swap(r#""name""#, r#""name":"sleep","name""#)]),
    (400, Some(-32600), &[Swap(r#""arguments""#, r#""arguments":{},"arguments""#)]),
    (400, Some(-32600), &[Swap(r#""_meta""#, r#""_meta":{},"_meta""#)]),
    // More than one message.
    (400, Some(-32600), &[Swap(r#"{"jsonrpc""#, r#"[{"jsonrpc""#), Tail("]")]),
    (
        400,
        Some(-32600),
        &[Drop("MCP-Protocol-Version"), Swap(r#"{"jsonrpc""#, r#"[{"jsonrpc""#), Tail("]")],
    ),
    // Responses to requests that were never sent.
    (400, Some(-32600), &[Body(r#"{"jsonrpc":"2.0","id":1,"result":{"x":1}}"#)]),
    (400, Some(-32600), &[Body(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":1,"result":{}"#)]),
    // The envelope.
    (400, Some(-32602), &[Body(LEGACY)]),
    (400, Some(-32602), &[Body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#)]),
    (400, Some(-32602), &[Body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}"#)]),
    (400, Some(-32602), &[Body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}"#)]),
    (
        400,
        Some(-32602),
        &[Body(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","_meta":[]}}"#,
        )],
    ),
    (
        400,
        Some(-32602),
        &[Body(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","_meta":"x"}}"#,
        )],
    ),
    (
        400,
        Some(-32602),
        &[Body(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","_meta":null}}"#,
        )],
    ),
    (400, Some(-32602), &[Swap(VERSION, r#""x":1"#)]),
    (400, Some(-32602), &[Swap(VERSION, r#""io.modelcontextprotocol/protocolVersion":7"#)]),
    (400, Some(-32602), &[Swap(VERSION, r#""io.modelcontextprotocol/protocolVersion":null"#)]),
    (
        400,
        Some(-32602),
        &[Swap(VERSION, r#""io.modelcontextprotocol/ProtocolVersion":"2026-07-28""#)],
    ),
    (400, Some(-32602), &[Swap(CAPABILITIES, r#""x":1"#)]),
    (
        400,
        Some(-32602),
        &[Swap(CAPABILITIES, r#""io.modelcontextprotocol/clientCapabilities":null"#)],
    ),
    (
        400,
        Some(-32602),
        &[Swap(CAPABILITIES, r#""io.modelcontextprotocol/clientCapabilities":[]"#)],
    ),
    // The revision, which the head and the body must agree on before it is known or not.
    (400, Some(-32020), &[Drop("MCP-Protocol-Version")]),
    (400, Some(-32020), &[Set("MCP-Protocol-Version", "2025-11-25")]),
    (400, Some(-32020), &[Set("MCP-Protocol-Version", "2099-01-01")]),
    (400, Some(-32020), &[Set("MCP-Protocol-Version", "")]),
    (400, Some(-32020), &[Set("MCP-Protocol-Version", "2026-07-28, 2026-07-28")]),
    (400, Some(-32020), &[Add("MCP-Protocol-Version", "2026-07-28")]),
    (400, Some(-32020), &[Add("MCP-Protocol-Version", "2025-11-25")]),
    (400, Some(-32020), &[Swap("2026-07-28", "2099-01-01")]),
    (
        400,
        Some(-32022),
        &[Swap("2026-07-28", "2099-01-01"), Set("MCP-Protocol-Version", "2099-01-01")],
    ),
    (
        400,
        Some(-32022),
        &[Swap("2026-07-28", "2025-11-25"), Set("MCP-Protocol-Version", "2025-11-25")],
    ),
    (
        400,
        Some(-32022),
        &[Swap("2026-07-28", "2024-11-05"), Set("MCP-Protocol-Version", "2024-11-05")],
    ),
    // The method and the name.
    (400, Some(-32020), &[Drop("Mcp-Method")]),
    (400, Some(-32020), &[Set("Mcp-Method", "")]),
    (400, Some(-32020), &[Set("Mcp-Method", "tools/list")]),
    (400, Some(-32020), &[Set("Mcp-Method", "TOOLS/CALL")]),
    (400, Some(-32020), &[Add("Mcp-Method", "tools/call")]),
    (400, Some(-32020), &[Add("Mcp-Method", "tools/list")]),
    (400, Some(-32020), &[Drop("Mcp-Name")]),
    (400, Some(-32020), &[Set("Mcp-Name", "")]),
    (400, Some(-32020), &[Set("Mcp-Name", "sleep")]),
    (400, Some(-32020), &[Set("Mcp-Name", "Sum")]),
    (400, Some(-32020), &[Set("Mcp-Name", "su")]),
    (400, Some(-32020), &[Add("Mcp-Name", "sum")]),
    (400, Some(-32020), &[Add("Mcp-Name", "sleep")]),
    (400, Some(-32020), &[Set("Mcp-Name", "=?base64?c2xlZXA=?=")]),
    (400, Some(-32020), &[Set("Mcp-Name", "=?base64?!!!!?=")]),
    (400, Some(-32020), &[Set("Mcp-Name", "=?base64?c3V")]),
    (400, Some(-32020), &[Set("Mcp-Name", "=?base64?//79?=")]),
    (400, Some(-32020), &[Set("Mcp-Name", "=?base64??=")]),
    (400, Some(-32020), &[Set("Mcp-Name", "=?BASE64?c3Vt?=")]),
    (400, Some(-32020), &[Swap(r#""sum""#, r#""sum\u0000""#)]),
    // What this revision does not have.
    (404, Some(-32601), &[Swap("tools/call", "no/such"), Set("Mcp-Method", "no/such")]),
    (404, Some(-32601), &[Swap("tools/call", "initialize"), Set("Mcp-Method", "initialize")]),
    (404, Some(-32601), &[Swap("tools/call", "ping"), Set("Mcp-Method", "ping")]),
    (
        404,
        Some(-32601),
        &[Swap("tools/call", "logging/setLevel"), Set("Mcp-Method", "logging/setLevel")],
    ),
    (
        404,
        Some(-32601),
        &[Swap("tools/call", "resources/subscribe"), Set("Mcp-Method", "resources/subscribe")],
    ),
    (
        404,
        Some(-32601),
        &[
            Swap("tools/call", "notifications/initialized"),
            Set("Mcp-Method", "notifications/initialized"),
        ],
    ),
    (400, Some(-32020), &[Body(HELLO), Set("Mcp-Method", "initialize")]),
    // A notification that says one thing twice, differently.
    (
        400,
        Some(-32020),
        &[Body(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)],
    ),
    // What the body is.
    (415, None, &[Set("Content-Type", "text/plain")]),
    (415, None, &[Set("Content-Type", "text/json")]),
    (415, None, &[Set("Content-Type", "application/jsonx")]),
    (415, None, &[Set("Content-Type", "application/json, text/plain")]),
    (415, None, &[Set("Content-Type", "application/json text/plain")]),
    (415, None, &[Set("Content-Type", "text/plain; application/json")]),
    (415, None, &[Set("Content-Type", "application/json; charset=utf-16")]),
    (415, None, &[Set("Content-Type", "application/x-www-form-urlencoded")]),
    (415, None, &[Set("Content-Type", "multipart/form-data; boundary=x")]),
    (415, None, &[Set("Content-Type", "*/*")]),
    (415, None, &[Set("Content-Type", "")]),
    (415, None, &[Drop("Content-Type")]),
    (415, None, &[Add("Content-Type", "text/plain")]),
    (415, None, &[Add("Content-Encoding", "gzip")]),
    (415, None, &[Add("Content-Encoding", "br")]),
    (415, None, &[Add("Content-Encoding", "identity"), Add("Content-Encoding", "deflate")]),
    // What the answer may be.
    (406, None, &[Drop("Accept")]),
    (406, None, &[Set("Accept", "")]),
    (406, None, &[Set("Accept", "application/json")]),
    (406, None, &[Set("Accept", "text/event-stream")]),
    (406, None, &[Set("Accept", "text/html")]),
    (406, None, &[Set("Accept", "application/jsonx, text/event-stream")]),
    (406, None, &[Set("Accept", "application/json, text/event-streams")]),
    (406, None, &[Set("Accept", "application/json;q=0, text/event-stream")]),
    (406, None, &[Set("Accept", "application/json, text/event-stream; q=0.0")]),
    // Where it comes from and for whom it is.
    (403, None, &[Add("Origin", "http://evil.example")]),
    (403, None, &[Add("Origin", "null")]),
    (403, None, &[Add("Origin", "")]),
    (403, None, &[Add("Origin", "http://127.0.0.1:1")]),
    (403, None, &[Add("Origin", "http://127.0.0.1")]),
    (403, None, &[Add("Origin", "http://localhost.evil.example")]),
    (403, None, &[Add("Origin", "http://$HOST/")]),
    (403, None, &[Add("Origin", "http://$HOST@evil.example")]),
    (403, None, &[Add("Origin", "http://$HOST.evil.example")]),
    (403, None, &[Add("Origin", "http://$HOST"), Add("Origin", "http://$HOST")]),
    (403, None, &[Add("Origin", "http://$HOST"), Add("Origin", "http://evil.example")]),
    (403, None, &[Set("Host", "evil.example")]),
    (403, None, &[Set("Host", "evil.example:8700")]),
    (403, None, &[Set("Host", "127.0.0.1.evil.example")]),
    (403, None, &[Set("Host", "localhost.evil.example:80")]),
    (403, None, &[Set("Host", "localhost@evil.example")]),
    (403, None, &[Set("Host", "127.0.0.2")]),
    (403, None, &[Set("Host", "0.0.0.0")]),
    (403, None, &[Set("Host", "localhost, evil.example")]),
    (403, None, &[Asks("POST http://evil.example/mcp")]),
    (403, None, &[Asks("POST http://$HOST/mcp"), Set("Host", "evil.example")]),
    (400, None, &[Drop("Host")]),
    (400, None, &[Add("Host", "$HOST")]),
    (400, None, &[Add("Host", "evil.example")]),
    // How and where it is asked.
    (405, None, &[Asks("GET /mcp"), Set("Accept", "text/event-stream")]),
    (405, None, &[Asks("GET /mcp"), Add("Mcp-Session-Id", "$SESSION")]),
    (
        405,
        None,
        &[
            Asks("GET /mcp"),
            Add("Mcp-Session-Id", "$SESSION"),
            Add("Last-Event-ID", "0-0-0000000000000000"),
        ],
    ),
    (405, None, &[Asks("DELETE /mcp"), Add("Mcp-Session-Id", "$SESSION")]),
    (405, None, &[Asks("PUT /mcp")]),
    (405, None, &[Asks("PATCH /mcp")]),
    (405, None, &[Asks("TRACE /mcp")]),
    (405, None, &[Asks("post /mcp")]),
    (405, None, &[Asks("OPTIONS /mcp")]),
    (
        405,
        None,
        &[
            Asks("OPTIONS /mcp"),
            Add("Origin", "http://$HOST"),
            Add("Access-Control-Request-Method", "POST"),
        ],
    ),
    (
        403,
        None,
        &[
            Asks("OPTIONS /mcp"),
            Add("Origin", "http://evil.example"),
            Add("Access-Control-Request-Method", "POST"),
        ],
    ),
    (404, None, &[Asks("POST /")]),
    (404, None, &[Asks("POST /mcp/")]),
    (404, None, &[Asks("POST //mcp")]),
    (404, None, &[Asks("POST /MCP")]),
    (404, None, &[Asks("POST /%6dcp")]),
    (404, None, &[Asks("POST /x/../mcp")]),
    (404, None, &[Asks("POST /mcp;x")]),
    // What HTTP itself forbids.
    (400, None, &[Add("Content-Length", "5")]),
    (400, None, &[Add("Transfer-Encoding", "xchunked")]),
    (400, None, &[Add("X : y", "z")]),
    (400, None, &[Add("X", "a\0b")]),
    (400, None, &[Add("X", "a\r\n b")]),
];

/// A call in a session of 2025-11-25, twisted.
pub const STATEFUL: &[Row] = &[
    (404, None, &[Set("Mcp-Session-Id", "00000000-0000-0000-0000-000000000000")]),
    (404, None, &[Set("Mcp-Session-Id", "$SESSION0")]),
    (
        404,
        None,
        &[
            Set("Mcp-Session-Id", "0"),
            Body(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        ],
    ),
    (404, None, &[Set("Mcp-Session-Id", "0"), Body(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)]),
    (400, None, &[Drop("Mcp-Session-Id")]),
    (400, None, &[Drop("Mcp-Session-Id"), Drop("MCP-Protocol-Version")]),
    (
        400,
        None,
        &[
            Drop("Mcp-Session-Id"),
            Body(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        ],
    ),
    (400, None, &[Drop("Mcp-Session-Id"), Body(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)]),
    (400, None, &[Add("Mcp-Session-Id", "$SESSION")]),
    (400, None, &[Add("Mcp-Session-Id", "0")]),
    (404, None, &[Set("Mcp-Session-Id", "é")]),
    (400, None, &[Set("MCP-Protocol-Version", "1999-01-01")]),
    (400, None, &[Set("MCP-Protocol-Version", "latest")]),
    (400, None, &[Set("MCP-Protocol-Version", "")]),
    (400, None, &[Add("MCP-Protocol-Version", "2025-11-25")]),
    (400, Some(-32602), &[Set("MCP-Protocol-Version", "2026-07-28")]),
    (400, Some(-32020), &[Body(MODERN)]),
    (400, Some(-32020), &[Body(HELLO), Set("MCP-Protocol-Version", "2026-07-28")]),
    (400, Some(-32600), &[Body("[]")]),
    (400, Some(-32600), &[Swap(r#"{"jsonrpc""#, r#"[{"jsonrpc""#), Tail("]")]),
    (
        400,
        Some(-32600),
        &[
            Set("MCP-Protocol-Version", "2025-03-26"),
            Swap(r#"{"jsonrpc""#, r#"[{"jsonrpc""#),
            Tail("]"),
        ],
    ),
    (400, Some(-32700), &[Body(r#"{"jsonrpc":"2.0","id":1,"#)]),
    (400, Some(-32600), &[Swap(r#""2.0""#, r#""1.0""#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":null"#)]),
    (400, Some(-32600), &[Swap(r#""id":1"#, r#""id":1.5"#)]),
    (400, Some(-32600), &[Swap(r#""method""#, r#""Method""#)]),
    (400, Some(-32600), &[Swap(r#""method":"#, r#""method":"tools/list","method":"#)]),
    (400, Some(-32600), &[Swap(r#""name""#, r#""name":"sleep","name""#)]),
    (
        400,
        Some(-32600),
        &[Body(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#)],
    ),
    (403, None, &[Add("Origin", "http://evil.example")]),
    (403, None, &[Add("Origin", "null")]),
    (403, None, &[Set("Host", "evil.example")]),
    (406, None, &[Drop("Accept")]),
    (406, None, &[Set("Accept", "application/json")]),
    (415, None, &[Set("Content-Type", "text/plain")]),
    (415, None, &[Add("Content-Encoding", "gzip")]),
    (400, None, &[Asks("GET /mcp"), Drop("Mcp-Session-Id")]),
    (404, None, &[Asks("GET /mcp"), Set("Mcp-Session-Id", "0")]),
    (406, None, &[Asks("GET /mcp"), Set("Accept", "application/json")]),
    (406, None, &[Asks("GET /mcp"), Drop("Accept")]),
    (400, None, &[Asks("GET /mcp"), Set("MCP-Protocol-Version", "1999-01-01")]),
    (400, None, &[Asks("GET /mcp"), Add("MCP-Protocol-Version", "2026-07-28")]),
    (400, None, &[Asks("DELETE /mcp"), Set("MCP-Protocol-Version", "1999-01-01")]),
    (403, None, &[Asks("GET /mcp"), Add("Origin", "http://evil.example")]),
    (403, None, &[Asks("DELETE /mcp"), Add("Origin", "http://evil.example")]),
    (400, None, &[Asks("DELETE /mcp"), Drop("Mcp-Session-Id")]),
    (404, None, &[Asks("DELETE /mcp"), Set("Mcp-Session-Id", "0")]),
    (403, None, &[Asks("GET /sse"), Add("Origin", "http://evil.example")]),
    (403, None, &[Asks("GET /sse"), Set("Host", "evil.example")]),
    (406, None, &[Asks("GET /sse"), Set("Accept", "application/json")]),
    (405, None, &[Asks("POST /sse")]),
    (405, None, &[Asks("GET /messages?sessionId=$SESSION")]),
    (404, None, &[Asks("POST /messages?sessionId=$SESSION")]),
    (404, None, &[Asks("POST /messages?sessionId=0")]),
    (404, None, &[Asks("POST /messages")]),
    (403, None, &[Asks("POST /messages?sessionId=0"), Add("Origin", "http://evil.example")]),
    (403, None, &[Asks("POST /messages?sessionId=0"), Set("Host", "evil.example")]),
];

/// Twists that change nothing.
pub const HARMLESS: &[&[Twist]] = &[
    &[],
    &[Set("Content-Type", "application/json; charset=utf-8")],
    &[Set("Content-Type", "Application/JSON;charset=\"UTF-8\"")],
    &[Set("Accept", "*/*")],
    &[Set("Accept", "text/*;q=0.1, application/*")],
    &[Set("Accept", "APPLICATION/JSON,TEXT/EVENT-STREAM")],
    &[Set("Accept", "application/json"), Add("Accept", "text/event-stream")],
    &[Add("Content-Encoding", "identity")],
    &[Add("Origin", "http://$HOST")],
    &[Set("Host", "LOCALHOST:1")],
    &[Set("Host", "[::1]:3000")],
    &[Set("Host", "127.0.0.1")],
    &[Asks("POST http://$HOST/mcp")],
    &[Asks("POST /mcp?x=1")],
    &[Tail(" \r\n")],
];
