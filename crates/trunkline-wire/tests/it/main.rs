//! The crate from outside: one binary, one file per subject.

mod codec;
mod dialect;
mod jsonrpc;
mod model;
mod results;

use serde_json::Value;
use trunkline_wire::json::Json;

/// A text as a value, for comparing JSON regardless of order.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|err| panic!("{err} in {text}"))
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|err| panic!("{err} in {text}"))
}
