//! Messages into lines on standard output.

use std::io::{self, Write};

use serde_json::{Value, json};

/// Writes the answer to a request.
pub(crate) fn answer(id: &Value, outcome: Result<Value, Value>) {
    send(match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    });
}

/// Writes a notification.
pub(crate) fn notify(method: &str, params: Value) {
    send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
}

/// Writes one message, whole; several threads may.
pub(crate) fn send(message: Value) {
    let line = format!("{message}\n");
    let mut out = io::stdout().lock();
    // The client has disconnected: the end of standard input says so too.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

/// An error object.
pub(crate) fn error(code: i64, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

/// A result of one text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A result that says that the tool failed.
pub(crate) fn failed(sentence: &str) -> Value {
    let mut result = text(sentence);
    result["isError"] = true.into();
    result
}
