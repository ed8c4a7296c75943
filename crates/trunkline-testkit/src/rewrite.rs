//! A message into the model and out again, as its revision has it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use trunkline_wire::era::stateful::{self, Fit, RequestMeta, ResultBody, encode_params};
use trunkline_wire::era::stateless::{
    self, Decoded, Envelope, Extras, decode_cache, decode_result, subscription_id,
};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Incoming, Message, MethodName, Object, Params};
use trunkline_wire::model::*;
use trunkline_wire::revision::{Era, Revision};

/// Definitions that the model has no type for: bases that only others build on, unions that no
/// message says the member of, JSON of any kind, which is carried as it is, and the enumeration
/// that is read and written as its successor.
pub const UNTYPED: &[&str] = &[
    "Annotated",
    "BaseMetadata",
    "CacheableResult",
    "ClientResult",
    "Cursor",
    "GetTaskPayloadResult",
    "Icons",
    "JSONArray",
    "JSONObject",
    "JSONValue",
    "LegacyTitledEnumSchema",
    "MetaObject",
    "Notification",
    "NotificationMetaObject",
    "PaginatedResult",
    "RelatedTaskMetadata",
    "Request",
    "ResourceContents",
    "Result",
    "ResultMetaObject",
    "ResultType",
    "ServerResult",
    "SubscriptionsListenResultMetaObject",
    "TaskAugmentedRequestParams",
    "ToolExecution",
];

/// Reads `json` as the type of that definition and writes it as the revision has it; `None` if the
/// model has no such type. Panics if it cannot be read.
pub fn rewrite(revision: Revision, definition: &str, json: &Json) -> Option<Json> {
    let is_stateless = revision.era() == Era::Stateless;
    let it = Rewriter { revision };
    Some(match definition {
        // What the stateless revision asks is no message of its own.
        "CreateMessageRequest" | "ElicitRequest" | "InputRequest" | "ListRootsRequest"
            if is_stateless =>
        {
            same::<InputRequest>(json)
        }
        "Annotations" => same::<Annotations>(json),
        "AudioContent"
        | "ContentBlock"
        | "EmbeddedResource"
        | "ImageContent"
        | "ResourceLink"
        | "SamplingMessageContentBlock"
        | "TextContent"
        | "ToolResultContent"
        | "ToolUseContent" => it.fitted::<Content>(json),
        "BlobResourceContents" | "TextResourceContents" => it.fitted::<ResourceContents>(json),
        "BooleanSchema"
        | "EnumSchema"
        | "MultiSelectEnumSchema"
        | "NumberSchema"
        | "PrimitiveSchemaDefinition"
        | "SingleSelectEnumSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => it.field(json),
        "CallToolRequestParams" => it.params::<CallToolParams>(json),
        "CancelledNotificationParams" => it.params::<CancelledParams>(json),
        "ClientCapabilities" => it.fitted::<ClientCapabilities>(json),
        "CompleteRequestParams" => it.params::<CompleteParams>(json),
        "CreateMessageRequestParams" => it.params::<CreateMessageParams>(json),
        "CreateTaskResult" => {
            let task = Object::parse(json.get()).unwrap().take("task").unwrap();
            stateful::encode_task_created(&read(&task))
        }
        "ElicitRequestFormParams" | "ElicitRequestParams" | "ElicitRequestURLParams" => {
            it.params::<ElicitParams>(json)
        }
        "GetPromptRequestParams" => it.params::<GetPromptParams>(json),
        "CancelTaskResult" | "GetTaskResult" | "Task" | "TaskStatusNotificationParams" => {
            stateful::encode_task(&read(json))
        }
        "Icon" => same::<Icon>(json),
        "Implementation" => it.fitted::<Implementation>(json),
        "InitializeRequestParams" => it.params::<InitializeParams>(json),
        "InputRequests" => member::<InputRequired>("inputRequests", json),
        "InputResponse" => same::<InputResponse>(json),
        "InputResponseRequestParams" => it.params::<ListParams>(json),
        "InputResponses" => member::<InputResponses>("inputResponses", json),
        "Error"
        | "InternalError"
        | "InvalidParamsError"
        | "InvalidRequestError"
        | "MethodNotFoundError"
        | "ParseError" => same::<ErrorObject>(json),
        "ListTasksResult" => stateful::encode_task_list(&read(json)),
        "LoggingLevel" => same::<LogLevel>(json),
        "LoggingMessageNotificationParams" => it.params::<LogMessage>(json),
        "ModelHint" => same::<ModelHint>(json),
        "ModelPreferences" => same::<ModelPreferences>(json),
        "NotificationParams" | "PaginatedRequestParams" | "RequestParams" => {
            it.params::<ListParams>(json)
        }
        "ProgressNotificationParams" => it.params::<ProgressParams>(json),
        "ProgressToken" | "RequestId" => Id::from_json(json.get()).unwrap().to_json(),
        "Prompt" => it.fitted::<Prompt>(json),
        "PromptArgument" => it.fitted::<PromptArgument>(json),
        "PromptMessage" => same::<PromptMessage>(json),
        "PromptReference" | "ResourceReference" | "ResourceTemplateReference" => {
            same::<Reference>(json)
        }
        "ReadResourceRequestParams" | "ResourceRequestParams" => {
            it.params::<ReadResourceParams>(json)
        }
        "RequestMetaObject" => Envelope::read(Some(json)).unwrap().to_json(),
        "Resource" => it.fitted::<Resource>(json),
        "ResourceTemplate" => it.fitted::<ResourceTemplate>(json),
        "ResourceUpdatedNotificationParams" => it.params::<ResourceUpdatedParams>(json),
        "Role" => same::<Role>(json),
        "Root" => it.fitted::<Root>(json),
        "SamplingMessage" => same::<SamplingMessage>(json),
        "ServerCapabilities" => it.fitted::<ServerCapabilities>(json),
        "SetLevelRequestParams" => it.params::<SetLevelParams>(json),
        "SubscribeRequestParams" | "UnsubscribeRequestParams" => it.params::<SubscribeParams>(json),
        "SubscriptionFilter" => same::<SubscriptionFilter>(json),
        "SubscriptionsAcknowledgedNotificationParams" => it.params::<AcknowledgedParams>(json),
        "SubscriptionsListenRequestParams" => it.params::<ListenParams>(json),
        "TaskMetadata" => same::<TaskRequest>(json),
        "TaskStatus" => same::<TaskStatus>(json),
        "Tool" => it.fitted::<Tool>(json),
        "ToolAnnotations" => same::<ToolAnnotations>(json),
        "ToolChoice" => same::<ToolChoice>(json),
        _ if UNTYPED.contains(&definition) => return None,
        "JSONRPCBatchRequest"
        | "JSONRPCBatchResponse"
        | "JSONRPCMessage"
        | "JSONRPCResponse"
        | "JSONRPCResultResponse" => it.messages(json),
        _ if definition.ends_with("Request") || definition.ends_with("Notification") => {
            it.messages(json)
        }
        _ if definition.ends_with("Error") || definition == "JSONRPCErrorResponse" => {
            it.messages(json)
        }
        _ => match definition.strip_suffix("Response") {
            Some(kind) => it.response(kind, json),
            None => return it.result(definition, json),
        },
    })
}

struct Rewriter {
    revision: Revision,
}

impl Rewriter {
    fn result(&self, definition: &str, json: &Json) -> Option<Json> {
        Some(match definition {
            "CallToolResult" => self.complete::<CallToolResult>(json),
            "CompleteResult" => self.complete::<CompleteResult>(json),
            "CreateMessageResult" => self.fitted::<CreateMessageResult>(json),
            "DiscoverResult" => self.complete::<DiscoverResult>(json),
            "ElicitResult" => self.fitted::<ElicitResult>(json),
            "EmptyResult" | "SubscriptionsListenResult" => self.complete::<EmptyResult>(json),
            "GetPromptResult" => self.complete::<GetPromptResult>(json),
            "InitializeResult" => self.complete::<InitializeResult>(json),
            "InputRequiredResult" => match decode_result(json.clone()) {
                Ok(Decoded::InputRequired(input)) => {
                    stateless::encode_input_required(&input, &Extras::default())
                }
                other => panic!("{other:?} is not what {json} says"),
            },
            "ListPromptsResult" => self.complete::<ListPromptsResult>(json),
            "ListResourceTemplatesResult" => self.complete::<ListResourceTemplatesResult>(json),
            "ListResourcesResult" => self.complete::<ListResourcesResult>(json),
            "ListRootsResult" => self.fitted::<ListRootsResult>(json),
            "ListToolsResult" => self.complete::<ListToolsResult>(json),
            "ReadResourceResult" => self.complete::<ReadResourceResult>(json),
            _ => return None,
        })
    }

    fn complete<T: DeserializeOwned + ResultBody>(&self, json: &Json) -> Json {
        if self.revision.era() == Era::Stateful {
            return stateful::encode_result(read::<T>(json), self.revision.profile());
        }
        let Ok(Decoded::Complete(raw)) = decode_result(json.clone()) else {
            panic!("{json} is an answer")
        };
        let extras = Extras { cache: Some(decode_cache(json)), server_info: None };
        stateless::encode_result(read::<T>(&raw), &extras)
    }

    fn fitted<T: DeserializeOwned + Serialize + Fit>(&self, json: &Json) -> Json {
        encode_params(read::<T>(json), self.revision.profile()).to_json()
    }

    /// A field of a form, which is fitted with it.
    fn field(&self, json: &Json) -> Json {
        let form = format!(
            r#"{{"message":"","requestedSchema":{{"type":"object","properties":{{"it":{json}}}}}}}"#
        );
        let form = self.fitted::<ElicitParams>(&Json::parse(form).unwrap());
        let mut form: serde_json::Value = form.to().unwrap();
        Json::of(&form["requestedSchema"]["properties"]["it"].take())
    }

    /// Parameters, in the stateless revision with what was answered, and their `_meta`: an
    /// envelope, a notification's subscription, or what the stateful revisions have there.
    fn params<T: DeserializeOwned + Serialize + Fit>(&self, json: &Json) -> Json {
        let is_stateless = self.revision.era() == Era::Stateless;
        let mut object = Object::parse(json.get()).unwrap();
        let meta = object.take("_meta");
        let mut answers = Object::default();
        for name in ["inputResponses", "requestState"].into_iter().filter(|_| is_stateless) {
            if let Some(it) = object.take(name) {
                answers.set(name, it);
            }
        }
        let mut written = encode_params(read::<T>(&object.to_json()), self.revision.profile());
        let answers = Object::of(&read::<InputResponses>(&answers.to_json()));
        for (name, it) in answers.iter() {
            written.set(name.to_owned(), it.clone());
        }
        let Some(meta) = meta else { return written.to_json() };
        let again = if !is_stateless {
            RequestMeta::read(Some(&meta)).unwrap().to_json().unwrap()
        } else if Envelope::peek(Some(&meta)).is_some() {
            Envelope::read(Some(&meta)).unwrap().to_json()
        } else {
            assert!(subscription_id(&meta).is_some(), "{meta} is of no kind");
            meta
        };
        written.set("_meta", again);
        written.to_json()
    }

    /// One message or an array of them.
    fn messages(&self, json: &Json) -> Json {
        match Incoming::parse(json.get().as_bytes()) {
            Incoming::One(message) => self.written(&self.message(message)),
            Incoming::Batch(all) => {
                let all = all.into_iter().map(|it| self.message(it.unwrap()).to_text());
                Json::parse(format!("[{}]", all.collect::<Vec<_>>().join(","))).unwrap()
            }
            other @ Incoming::Bad(_) => panic!("{json} is a message, not {other:?}"),
        }
    }

    fn written(&self, message: &Message) -> Json {
        let json = Json::parse(message.to_text()).unwrap();
        let is_null = self.revision.profile().unreadable_id_is_null;
        match message {
            Message::Response { id: None, .. } if is_null => {
                let mut object = Object::parse(json.get()).unwrap();
                object.set("id", Json::null());
                object.to_json()
            }
            _ => json,
        }
    }

    fn message(&self, message: Message) -> Message {
        match message {
            Message::Request { id, method, params } => {
                let params = self.called(&method, params);
                Message::Request { id, method, params }
            }
            Message::Notification { method, params } => {
                let params = self.called(&method, params);
                Message::Notification { method, params }
            }
            Message::Response { .. } => message,
        }
    }

    /// An answer whose result is of a known kind.
    fn response(&self, definition: &str, json: &Json) -> Json {
        match Incoming::parse(json.get().as_bytes()) {
            Incoming::One(Message::Response { id, outcome: Ok(raw) }) => {
                let is_asking = matches!(decode_result(raw.clone()), Ok(Decoded::InputRequired(_)));
                let definition = if is_asking { "InputRequiredResult" } else { definition };
                let result = self.result(definition, &raw);
                let result = result.unwrap_or_else(|| panic!("Nothing reads `{definition}`"));
                self.written(&Message::Response { id, outcome: Ok(result) })
            }
            other => panic!("{other:?} is no answer"),
        }
    }

    fn called(&self, method: &MethodName, given: Params) -> Params {
        let Params::Object(object) = given else { return given };
        let json = object.to_json();
        let written = match &**method {
            "initialize" => self.params::<InitializeParams>(&json),
            "tools/call" => self.params::<CallToolParams>(&json),
            "completion/complete" => self.params::<CompleteParams>(&json),
            "prompts/get" => self.params::<GetPromptParams>(&json),
            "resources/read" => self.params::<ReadResourceParams>(&json),
            "resources/subscribe" | "resources/unsubscribe" => {
                self.params::<SubscribeParams>(&json)
            }
            "logging/setLevel" => self.params::<SetLevelParams>(&json),
            "sampling/createMessage" => self.params::<CreateMessageParams>(&json),
            "elicitation/create" => self.params::<ElicitParams>(&json),
            "subscriptions/listen" => self.params::<ListenParams>(&json),
            "tasks/get" | "tasks/cancel" | "tasks/result" => self.params::<TaskParams>(&json),
            "notifications/tasks/status" => stateful::encode_task(&read(&json)),
            "notifications/elicitation/complete" => self.params::<ElicitationCompleteParams>(&json),
            "notifications/subscriptions/acknowledged" => self.params::<AcknowledgedParams>(&json),
            "notifications/cancelled" => self.params::<CancelledParams>(&json),
            "notifications/message" => self.params::<LogMessage>(&json),
            "notifications/progress" => self.params::<ProgressParams>(&json),
            "notifications/resources/updated" => self.params::<ResourceUpdatedParams>(&json),
            "ping"
            | "roots/list"
            | "server/discover"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "tasks/list"
            | "tools/list"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/tools/list_changed" => self.params::<ListParams>(&json),
            other if other.starts_with("example/") => json,
            other => panic!("There is no rule for the parameters of `{other}`."),
        };
        Params::Object(Object::parse(written.get()).unwrap())
    }
}

fn same<T: DeserializeOwned + Serialize>(json: &Json) -> Json {
    Json::of(&read::<T>(json))
}

fn read<T: DeserializeOwned>(json: &Json) -> T {
    json.to().unwrap_or_else(|err| panic!("{err} in {json}"))
}

/// A type that is one member of another.
fn member<T: DeserializeOwned + Serialize>(name: &'static str, json: &Json) -> Json {
    let mut object = Object::default();
    object.set(name, json.clone());
    Object::of(&read::<T>(&object.to_json())).take(name).unwrap()
}
