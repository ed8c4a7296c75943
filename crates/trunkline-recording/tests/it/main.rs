//! Recordings, from outside: what was said is written as in a transcript.

mod as_client;
mod as_server;
mod compare;
mod round_trip;

use serde_json::{Value, json};
use trunkline_recording::recording::Recording;
use trunkline_wire::jsonrpc::{Incoming, Message};

/// Lines of `> JSON` (the client) and `< JSON` (the server) → a recording. A number after the mark is the stream; with
/// `> ended` the client closes its side, with `>2 ended` that response.
#[track_caller]
fn recording(script: &str) -> Recording {
    let lines = script.lines().map(str::trim).filter(|it| !it.is_empty());
    let lines = lines.map(|line| {
        let (mark, json) = line.split_once(' ').expect("a mark and a message");
        let dir = if mark.starts_with('>') { "in" } else { "out" };
        let mut line = json!({ "v": 1, "t": 1, "side": "client", "dir": dir });
        if json == "ended" {
            line["note"] = json!({ "what": "ended" });
        } else {
            line["message"] = value(json);
        }
        if let Ok(stream) = mark[1..].parse::<u32>() {
            line["stream"] = stream.into();
        }
        line.to_string()
    });
    Recording::read(&lines.collect::<Vec<_>>().join("\n")).expect("a recording")
}

/// A message without its `jsonrpc` → the message.
#[track_caller]
fn value(json: &str) -> Value {
    let mut value: Value = serde_json::from_str(json).unwrap_or_else(|it| panic!("{json}: {it}"));
    value["jsonrpc"] = "2.0".into();
    value
}

#[track_caller]
fn message(json: &str) -> Message {
    match Incoming::parse(value(json).to_string().as_bytes()) {
        Incoming::One(message) => message,
        other => panic!("{json} is no message: {other:?}"),
    }
}
