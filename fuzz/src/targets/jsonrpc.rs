//! A text: what is taken for a message means the same to any other reader, and is written and read
//! again as the same message.

use serde_json::Value;
use trunkline_wire::json::{MAX_DEPTH, is_too_deep};
use trunkline_wire::jsonrpc::{Id, Incoming, Message, Params};

/// The text itself.
pub(crate) fn check(data: &[u8]) {
    let incoming = Incoming::parse(data);
    // Numbers beyond a double, and depths beyond serde's, are read by us alone.
    let plain: Option<Value> = serde_json::from_slice(data).ok();
    match &incoming {
        Incoming::One(message) => {
            again(message);
            if let Some(plain) = &plain {
                same(message, plain);
            }
        }
        Incoming::Batch(items) => {
            if let Some(plain) = &plain {
                assert_eq!(plain.as_array().map(Vec::len), Some(items.len()));
            }
            for (place, item) in items.iter().enumerate() {
                match item {
                    Ok(message) => {
                        again(message);
                        if let Some(plain) = &plain {
                            same(message, &plain[place]);
                        }
                    }
                    Err(bad) => complaint(bad),
                }
            }
        }
        Incoming::Bad(bad) => {
            complaint(bad);
            if is_too_deep(data, MAX_DEPTH) || plain.is_none() {
                return;
            }
            let plain = plain.unwrap_or_default();
            let told = bad.to_error().code;
            assert!(told != -32700, "this is JSON, and was called none: {plain}");
        }
    }
}

/// A complaint can be sent, and never answers what must not be answered.
fn complaint(bad: &trunkline_wire::jsonrpc::Malformed) {
    let error = bad.to_error();
    assert!((-32700..=-32600).contains(&error.code), "{error:?}");
    assert!(!(bad.is_response && bad.is_notification), "{bad:?}");
    assert!(!bad.is_notification || bad.id.is_none(), "a notification has no id: {bad:?}");
}

fn again(message: &Message) {
    let text = message.to_text();
    let read = Incoming::parse(text.as_bytes());
    assert_eq!(read, Incoming::One(message.clone()), "written as {text}");
}

/// What a message says is what another reader of the same text finds.
fn same(message: &Message, plain: &Value) {
    assert_eq!(plain["jsonrpc"], "2.0");
    match message {
        Message::Request { id, method, params } => {
            same_id(id, &plain["id"]);
            same_call(method, params, plain);
        }
        Message::Notification { method, params } => {
            assert!(plain.get("id").is_none(), "{plain}");
            same_call(method, params, plain);
        }
        Message::Response { id, outcome } => {
            match id {
                Some(id) => same_id(id, &plain["id"]),
                None => assert!(plain["id"].is_null(), "{plain}"),
            }
            assert!(plain.get("method").is_none(), "{plain}");
            match outcome {
                Ok(result) => assert_eq!(value(result.get()), plain["result"]),
                Err(error) => {
                    assert_eq!(plain["error"]["code"], error.code);
                    assert_eq!(plain["error"]["message"], error.message.as_str());
                }
            }
        }
    }
}

fn same_id(id: &Id, plain: &Value) {
    match id {
        Id::Number(number) => assert_eq!(plain, &Value::from(*number)),
        Id::Text(text) => assert_eq!(plain, &Value::from(&**text)),
        Id::Null => assert!(plain.is_null()),
        Id::Big(_) => assert!(plain.is_number()),
    }
}

fn same_call(method: &str, params: &Params, plain: &Value) {
    assert_eq!(plain["method"], method);
    match params {
        Params::Absent => assert!(plain["params"].is_null(), "{plain}"),
        Params::Object(object) => {
            assert_eq!(value(object.to_json().get()), plain["params"]);
            let members = plain["params"].as_object().expect("it is an object");
            assert_eq!(object.iter().count(), members.len(), "a name stands twice in {plain}");
        }
        Params::Array(items) => {
            assert_eq!(plain["params"].as_array().map(Vec::len), Some(items.len()));
        }
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("we wrote no JSON ({why}): {text}"))
}

pub(crate) const WORDS: &[&str] = &[
    "{\"jsonrpc\":\"2.0\",",
    "\"jsonrpc\":\"2.0\"",
    "\"id\":",
    "\"method\":",
    "\"params\":",
    "\"result\":",
    "\"error\":",
    "{\"code\":-32600,\"message\":\"x\"}",
    "\"data\":",
    "null",
    "true",
    "false",
    "1e999",
    "-0",
    "9223372036854775808",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\"a\":1",
    "[[[[[[[[",
    "{\"a\":{\"a\":",
    "\"_meta\":",
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"",
    "\"io.modelcontextprotocol/clientCapabilities\":{}",
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"a\",\"version\":\"1\"}",
    "\"protocolVersion\":\"2025-11-25\"",
    "\"protocolVersion\":\"2024-11-05\"",
    "\"capabilities\":{}",
    "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}",
    "\"progressToken\":1",
    "\"cursor\":\"x\"",
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "\"requestId\":1",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "\"name\":\"echo\"",
    "\"arguments\":{}",
    "\"task\":{}",
    "resources/read",
    "\"uri\":\"a:b\"",
    "resources/subscribe",
    "subscriptions/listen",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "\"level\":\"debug\"",
    "tasks/get",
    "mcp/list_tools",
];
