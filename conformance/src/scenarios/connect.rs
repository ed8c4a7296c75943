//! The suite's server → a client that answers whatever it is asked.

use std::sync::Arc;

use serde_json::{Map, Value};
use trunkline::RawJson;
use trunkline::client::{Client, ClientBuilder, Hooks};
use trunkline::model::{Content, CreateMessageResult, ElicitParams, ElicitResult, Root};

use super::{Failure, Order, auth};

pub(super) async fn connect(order: &Order) -> Result<Client, Failure> {
    let mut builder: ClientBuilder<Hooks> =
        Client::builder("trunkline-conformance", env!("CARGO_PKG_VERSION")).responder(answers());
    if let Some(revision) = order.revision {
        builder = builder.protocol(revision);
    }
    if order.is_protected() {
        builder = builder.credentials(Arc::new(auth::credentials(order)?));
    }
    Ok(builder.connect_http(&order.url).await?)
}

/// A host that declares everything, so that the suite has everything to look at.
pub fn answers() -> Hooks {
    Hooks::new()
        .elicit(|question| async move { Ok(elicit(&question)) })
        .sample(|_| async {
            Ok(CreateMessageResult::new(Content::text("As you wish."), "conformance-model"))
        })
        .roots([Root::new("file:///conformance")])
}

fn elicit(question: &ElicitParams) -> ElicitResult {
    ElicitResult::accept(match question {
        ElicitParams::Form(form) => filled_in(&form.requested_schema),
        ElicitParams::Url(_) => RawJson::empty_object(),
    })
}

/// The answer of a user who leaves every field as it is.
pub(super) fn filled_in(schema: &RawJson) -> RawJson {
    let schema: Value = schema.to().unwrap_or_default();
    let fields = schema["properties"].as_object().into_iter().flatten();
    let content: Map<_, _> = fields.map(|(name, it)| (name.clone(), value_of(it))).collect();
    Value::Object(content).into()
}

/// What a field holds at first, or else something that fits it.
fn value_of(field: &Value) -> Value {
    if let Some(default) = field.get("default") {
        return default.clone();
    }
    if let Some(first) = field["enum"].get(0).or_else(|| field["oneOf"][0].get("const")) {
        return first.clone();
    }
    match field["type"].as_str() {
        Some("boolean") => true.into(),
        Some("integer" | "number") => 1.into(),
        Some("array") => Value::Array(Vec::new()),
        Some("object") => Value::Object(Map::new()),
        Some("null") => Value::Null,
        _ => "text".into(),
    }
}
