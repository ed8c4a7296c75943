//! The official example messages of 2026-07-28: each is read into the model and written again,
//! and must come out as equal JSON.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use trunkline_wire::era::stateful::{Fit, ResultBody, encode_params};
use trunkline_wire::era::stateless::{
    Decoded, Envelope, Extras, decode_cache, decode_result, encode_input_required, encode_result,
    subscription_id,
};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Incoming, Message, Object, Params};
use trunkline_wire::model::*;
use trunkline_wire::revision::Revision;

use crate::value;

#[test]
fn all_examples_come_out_as_they_went_in() {
    let folder = shared().join("protocol/examples/2026-07-28");
    let mut checked = 0;
    let mut failures = Vec::new();
    for kind in sorted(&folder) {
        let name = kind.file_name().unwrap().to_str().unwrap().to_owned();
        for file in sorted(&kind) {
            let text = std::fs::read_to_string(&file).unwrap();
            let json = Json::parse(text.trim()).unwrap();
            let written = rewrite(&name, &json);
            if value(written.get()) != value(json.get()) {
                failures.push(format!("{}:\n  in  {json}\n  out {written}", file.display()));
            }
            checked += 1;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(checked >= 129, "only {checked} examples were found in {}", folder.display());
}

/// Reads an example as the type its folder is named after, and writes it again.
fn rewrite(kind: &str, json: &Json) -> Json {
    match kind {
        "AudioContent" => same::<AudioContent>(json),
        "BlobResourceContents" | "TextResourceContents" => same::<ResourceContents>(json),
        "BooleanSchema"
        | "NumberSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => same::<PrimitiveSchema>(json),
        "CallToolRequestParams" => params::<CallToolParams>(json),
        "CancelledNotificationParams" => params::<CancelledParams>(json),
        "ClientCapabilities" => same::<ClientCapabilities>(json),
        "CompleteRequestParams" => params::<CompleteParams>(json),
        "CreateMessageRequest" | "ElicitRequest" => same::<InputRequest>(json),
        // The example has an `id`, which an embedded request does not have and we do not keep.
        "ListRootsRequest" => with_id(same::<InputRequest>(json), json),
        "CreateMessageRequestParams" => same::<CreateMessageParams>(json),
        "CreateMessageResult" => same::<CreateMessageResult>(json),
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => same::<ElicitParams>(json),
        "ElicitResult" => same::<ElicitResult>(json),
        "EmbeddedResource" => same::<EmbeddedResource>(json),
        "GetPromptRequestParams" => params::<GetPromptParams>(json),
        "ImageContent" => same::<ImageContent>(json),
        "InputRequests" => member::<InputRequired>("inputRequests", json),
        "InputResponses" => member::<InputResponses>("inputResponses", json),
        "InternalError" | "InvalidParamsError" | "MethodNotFoundError" | "ParseError" => {
            same::<ErrorObject>(json)
        }
        "ListRootsResult" => same::<ListRootsResult>(json),
        "LoggingMessageNotificationParams" => params::<LogMessage>(json),
        "ModelPreferences" => same::<ModelPreferences>(json),
        "PaginatedRequestParams" => params::<ListParams>(json),
        "ProgressNotificationParams" => params::<ProgressParams>(json),
        "ReadResourceRequestParams" => params::<ReadResourceParams>(json),
        "Resource" => same::<Resource>(json),
        "ResourceLink" => same::<ResourceLink>(json),
        "ResourceUpdatedNotificationParams" => params::<ResourceUpdatedParams>(json),
        "Root" => same::<Root>(json),
        "SamplingMessage" => same::<SamplingMessage>(json),
        "ServerCapabilities" => same::<ServerCapabilities>(json),
        "TextContent" => same::<TextContent>(json),
        "Tool" => same::<Tool>(json),
        "ToolResultContent" => same::<ToolResultContent>(json),
        "ToolUseContent" => same::<ToolUseContent>(json),
        _ if kind.ends_with("Request") || kind.ends_with("Notification") => call(json),
        _ if kind.ends_with("Error") => message(json, |outcome| outcome),
        _ => match kind.strip_suffix("Response") {
            Some(kind) => {
                message(json, |outcome| outcome.map(|raw| hinted(result(kind, &raw), &raw)))
            }
            None => result(kind, json),
        },
    }
}

fn result(kind: &str, json: &Json) -> Json {
    match kind {
        "CallToolResult" => complete::<CallToolResult>(json),
        "CompleteResult" => complete::<CompleteResult>(json),
        "DiscoverResult" => complete::<DiscoverResult>(json),
        "GetPromptResult" => complete::<GetPromptResult>(json),
        "InputRequiredResult" => match decode_result(json.clone()) {
            Ok(Decoded::InputRequired(input)) => encode_input_required(&input, &Extras::default()),
            other => panic!("{other:?} is not what {json} says"),
        },
        "ListPromptsResult" => complete::<ListPromptsResult>(json),
        "ListResourceTemplatesResult" => complete::<ListResourceTemplatesResult>(json),
        "ListResourcesResult" => complete::<ListResourcesResult>(json),
        "ListToolsResult" => complete::<ListToolsResult>(json),
        "ReadResourceResult" => complete::<ReadResourceResult>(json),
        "SubscriptionsListenResult" => complete::<EmptyResult>(json),
        _ => panic!("There is no rule for the examples of `{kind}`; add one to `rewrite`."),
    }
}

fn same<T: DeserializeOwned + Serialize>(json: &Json) -> Json {
    Json::of(&read::<T>(json))
}

fn read<T: DeserializeOwned>(json: &Json) -> T {
    json.to().unwrap_or_else(|err| panic!("{err} in {json}"))
}

fn complete<T: DeserializeOwned + ResultBody>(json: &Json) -> Json {
    let Ok(Decoded::Complete(raw)) = decode_result(json.clone()) else {
        panic!("{json} is an answer")
    };
    let extras = Extras { cache: Some(decode_cache(json)), server_info: None };
    encode_result(read::<T>(&raw), &extras)
}

/// Parameters with their `_meta`: an envelope, or a notification's subscription.
fn params<T: DeserializeOwned + Serialize + Fit>(json: &Json) -> Json {
    let mut object = Object::parse(json.get()).unwrap();
    let meta = object.take("_meta");
    let mut written = encode_params(read::<T>(&object.to_json()), Revision::V2026_07_28.profile());
    if let Some(meta) = meta {
        let is_request = Envelope::peek(Some(&meta)).is_some();
        assert!(is_request || subscription_id(&meta).is_some(), "{meta} is of neither kind");
        let again = if is_request { Envelope::read(Some(&meta)).unwrap().to_json() } else { meta };
        written.set("_meta", again);
    }
    written.to_json()
}

fn call(json: &Json) -> Json {
    let Incoming::One(message) = Incoming::parse(json.get().as_bytes()) else {
        panic!("{json} is a message")
    };
    let rewrite = |method: &str, given: Params| {
        let Params::Object(object) = given else { return given };
        let json = object.to_json();
        let written = match method {
            "tools/call" => params::<CallToolParams>(&json),
            "completion/complete" => params::<CompleteParams>(&json),
            "prompts/get" => params::<GetPromptParams>(&json),
            "resources/read" => params::<ReadResourceParams>(&json),
            "subscriptions/listen" => params::<ListenParams>(&json),
            "notifications/subscriptions/acknowledged" => params::<AcknowledgedParams>(&json),
            "notifications/cancelled" => params::<CancelledParams>(&json),
            "notifications/message" => params::<LogMessage>(&json),
            "notifications/progress" => params::<ProgressParams>(&json),
            "notifications/resources/updated" => params::<ResourceUpdatedParams>(&json),
            "server/discover"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "tools/list"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/tools/list_changed" => params::<ListParams>(&json),
            other => panic!("There is no rule for the parameters of `{other}`."),
        };
        Params::Object(Object::parse(written.get()).unwrap())
    };
    let message = match message {
        Message::Request { id, method, params } => {
            let params = rewrite(&method, params);
            Message::Request { id, method, params }
        }
        Message::Notification { method, params } => {
            let params = rewrite(&method, params);
            Message::Notification { method, params }
        }
        Message::Response { .. } => panic!("{json} is a call"),
    };
    Json::parse(message.to_text()).unwrap()
}

fn message(
    json: &Json,
    rewrite: impl FnOnce(Result<Json, ErrorObject>) -> Result<Json, ErrorObject>,
) -> Json {
    match Incoming::parse(json.get().as_bytes()) {
        Incoming::One(Message::Response { id, outcome }) => {
            let message = Message::Response { id, outcome: rewrite(outcome) };
            Json::parse(message.to_text()).unwrap()
        }
        other => panic!("{other:?} is no response"),
    }
}

/// A type that is one member of another.
fn member<T: DeserializeOwned + Serialize>(name: &'static str, json: &Json) -> Json {
    let mut object = Object::default();
    object.set(name, json.clone());
    Object::of(&read::<T>(&object.to_json())).take(name).unwrap()
}

fn with_id(written: Json, json: &Json) -> Json {
    let mut written = Object::parse(written.get()).unwrap();
    let id = Object::parse(json.get()).unwrap().take("id");
    written.set("id", id.expect("the published example has an id"));
    written.to_json()
}

/// One example of `resources/read` lacks the cache hint that its schema requires and we always
/// send; there we must have said that nothing is to be kept.
fn hinted(written: Json, example: &Json) -> Json {
    let mut object = Object::parse(written.get()).unwrap();
    if object.get("contents").is_none() || example.get().contains("ttlMs") {
        return written;
    }
    assert_eq!(decode_cache(&written), CacheHint::NONE);
    assert!(object.take("ttlMs").is_some() && object.take("cacheScope").is_some());
    object.to_json()
}

fn sorted(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|err| panic!("The folder `{}` cannot be read: {err}.", folder.display()));
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The folder with the published schemas and examples.
fn shared() -> PathBuf {
    if let Some(folder) = std::env::var_os("TRUNKLINE_SHARED") {
        return folder.into();
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "`TRUNKLINE_SHARED` is not set; point it at the folder that holds `protocol/examples`."
    );
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    assert!(
        beside.is_dir(),
        "There are no example messages: set `TRUNKLINE_SHARED` to the folder that holds \
         `protocol/examples`, or put it beside the repository as `shared`."
    );
    beside
}
