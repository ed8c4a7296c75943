//! A message we send + the revision it speaks → what that revision's JSON Schema says about it.
//!
//! The facts of the published schemas (`schema/`) are part of the repository. Their known defects
//! are mended in memory ([`schema`]), and what they do not describe at all is listed in [`EXEMPT`].
//! Everything else must validate.

mod schema;

use serde_json::Value;
use trunkline_wire::method::Method;
use trunkline_wire::revision::{Era, Revision};

use schema::Schema;

/// Which end of a conversation sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Side {
    Client,
    Server,
}

/// Messages that no published schema describes, and why. Nothing else is exempt.
pub const EXEMPT: &[Exemption] = &[
    Exemption {
        what: "the `mcp/…` dialect",
        why: "it is older than MCP's schemas and shares none of their definitions",
        applies: |it| it.method.starts_with("mcp/"),
    },
    Exemption {
        what: "requests of the tasks extension and their answers",
        why: "extensions publish no part of the schema of 2026-07-28",
        applies: |it| it.is_stateless() && it.method.starts_with("tasks/"),
    },
    Exemption {
        what: "requests of the skills extension and their answers",
        why: "it publishes no schema, and belongs to no revision",
        applies: |it| it.method.starts_with("skills/") || it.method == "resources/directory/read",
    },
    Exemption {
        what: "`notifications/tasks`",
        why: "extensions publish no part of the schema of 2026-07-28",
        applies: |it| it.is_stateless() && it.method == "notifications/tasks",
    },
    Exemption {
        what: "a `tools/call` answered with `resultType` `task`",
        why: "extensions publish no part of the schema of 2026-07-28",
        applies: |it| {
            it.is_stateless() && it.method == "tools/call" && it.result_type() == Some("task")
        },
    },
];

/// A kind of message that the schemas leave out.
#[derive(Clone, Copy)]
pub struct Exemption {
    /// What it is.
    pub what: &'static str,
    /// Why no schema has it.
    pub why: &'static str,
    applies: fn(&Judged<'_>) -> bool,
}

/// Whether `sender` may send `text` in `revision`. A response is judged by the method it answers,
/// which must be given unless the response is an error.
pub fn validate(
    text: &str,
    revision: Revision,
    sender: Side,
    in_answer_to: Option<&str>,
) -> Result<(), String> {
    let message: Value = serde_json::from_str(text)
        .map_err(|err| format!("We sent something that is not JSON ({err}): {text}"))?;
    let method = message.get("method").and_then(Value::as_str).or(in_answer_to).unwrap_or_default();
    let judged = Judged { message: &message, revision, sender, method };
    if EXEMPT.iter().any(|it| (it.applies)(&judged)) {
        return judged.envelope();
    }
    judged.judge().map_err(|why| format!("{why}\n  in {revision}, sent by the {sender:?}: {text}"))
}

/// Whether an array of answers may be sent in `revision`; each of them is judged by [`validate`].
/// 2024-11-05 is silent about arrays, so JSON-RPC 2.0 itself decides there.
pub fn validate_batch(text: &str, revision: Revision) -> Result<(), String> {
    let message: Value = serde_json::from_str(text).map_err(|err| err.to_string())?;
    match revision {
        Revision::V2024_11_05 if message.as_array().is_some_and(|it| !it.is_empty()) => Ok(()),
        _ => Schema::of(revision)
            .check("JSONRPCBatchResponse", &message)
            .map_err(|why| format!("{why}\n  in {revision}: {text}")),
    }
}

/// Whether `text` is what the revision's definition of that name describes.
pub fn check(text: &str, revision: Revision, definition: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|err| format!("{err} in {text}"))?;
    let verdict = Schema::of(revision).check(definition, &value);
    verdict.map_err(|why| format!("{why}\n  in {revision}: {text}"))
}

/// The name of every definition of a revision.
pub fn definitions(revision: Revision) -> impl Iterator<Item = &'static str> {
    Schema::of(revision).names()
}

/// The members that `definition` requires in `value`: where, as a JSON pointer, and the name.
pub fn required(revision: Revision, definition: &str, value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let schema = Schema::of(revision);
    schema.required(schema.definition(definition), value, "", &mut found);
    found
}

/// A message and what is known about it.
struct Judged<'a> {
    message: &'a Value,
    revision: Revision,
    sender: Side,
    /// Its own method, or the one it answers.
    method: &'a str,
}

impl Judged<'_> {
    fn is_stateless(&self) -> bool {
        self.revision.era() == Era::Stateless
    }

    fn result_type(&self) -> Option<&str> {
        self.message.get("result")?.get("resultType")?.as_str()
    }

    /// What holds for every message, exempt or not.
    fn envelope(&self) -> Result<(), String> {
        match self.message.get("jsonrpc").and_then(Value::as_str) {
            Some("2.0") => Ok(()),
            _ => Err(format!("This is no JSON-RPC 2.0 message: {}", self.message)),
        }
    }

    fn judge(&self) -> Result<(), String> {
        self.envelope()?;
        let has = |name| self.message.get(name).is_some();
        match (has("method"), has("id"), has("result"), has("error")) {
            (true, true, false, false) => self.call("Request"),
            (true, false, false, false) => self.call("Notification"),
            (false, true, true, false) => self.result(),
            (false, _, false, true) => self.error(),
            _ => Err("It is neither request, notification, result nor error.".to_owned()),
        }
    }

    /// A request or notification: its own definition, and the envelope, which the definitions of
    /// the first three revisions leave out.
    fn call(&self, kind: &str) -> Result<(), String> {
        let schema = Schema::of(self.revision);
        let union = format!("{:?}{kind}", self.sender);
        let method = self.method;
        let definition = schema
            .variant(&union, kind, method)
            .ok_or_else(|| format!("`{union}` has no `{method}`."))?;
        schema.check(&format!("JSONRPC{kind}"), self.message)?;
        schema.check(&definition, self.message)
    }

    fn result(&self) -> Result<(), String> {
        let schema = Schema::of(self.revision);
        let asker = match self.sender {
            Side::Client => "ServerRequest",
            Side::Server => "ClientRequest",
        };
        let method = self.method;
        let request = schema
            .variant(asker, "Request", method)
            .ok_or_else(|| format!("`{asker}` has no `{method}`, so nothing can answer it."))?;
        schema.check(schema.result_envelope(), self.message)?;
        let result = &self.message["result"];
        match self.result_type() {
            Some("input_required") if self.is_stateless() => {
                if !Method::of(method).is_some_and(Method::may_ask) {
                    return Err(format!("`{method}` must not be answered with `input_required`."));
                }
                if result.get("inputRequests").is_none() && result.get("requestState").is_none() {
                    return Err("`input_required` with neither questions nor state.".to_owned());
                }
                schema.check("InputRequiredResult", result)
            }
            Some("complete") => schema.check(&schema.result_of(&request), result),
            Some(other) if self.is_stateless() => Err(format!("There is no `{other}` result.")),
            // The requestor of 2025-11-25 may ask for a task instead of a result.
            _ if result.get("task").is_some() && schema.has("CreateTaskResult") => {
                schema.check("CreateTaskResult", result)
            }
            _ => schema.check(&schema.result_of(&request), result),
        }
    }

    fn error(&self) -> Result<(), String> {
        let schema = Schema::of(self.revision);
        schema.check(schema.error_envelope(), self.message)?;
        let code = self.message["error"]["code"].as_i64().unwrap_or_default();
        let stateless = self.is_stateless();
        // Rules about codes that a schema cannot express, and the shapes that it can.
        match code {
            -32002 | -32042 if stateless => Err(format!("This revision has no error {code}.")),
            -32020 if stateless => schema.check("HeaderMismatchError", self.message),
            -32021 if stateless => {
                schema.check("MissingRequiredClientCapabilityError", self.message)
            }
            -32022 if stateless => schema.check("UnsupportedProtocolVersionError", self.message),
            -32099..=-32020 if code != -32042 => {
                Err(format!("The code {code} is reserved in this revision."))
            }
            -32042 if self.revision != Revision::V2025_11_25 => {
                Err("Only 2025-11-25 has the error -32042.".to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::*;
    use Side::{Client, Server};

    /// A message, its revision and sender, what it answers, and whether it may be sent.
    #[rustfmt::skip]
    const VERDICTS: &[(&str, Revision, Side, Option<&str>, bool)] = &[
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, V2024_11_05, Server, None, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, V2026_07_28, Client, None, false),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, V2025_11_25, Client, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#, V2025_06_18, Client, None, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, V2025_06_18, Client, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#, V2025_06_18, Server, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#, V2026_07_28, Client, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#, V2025_03_26, Server, None, false),
        (r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#, V2024_11_05, Server, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, V2025_11_25, Server, Some("tools/call"), true),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, V2025_11_25, Server, Some("tools/call"), false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}}"#, V2024_11_05, Server, Some("tools/call"), false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, V2026_07_28, Server, Some("tools/call"), false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#, V2026_07_28, Server, Some("tools/call"), true),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}"#, V2026_07_28, Server, Some("tools/list"), false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#, V2026_07_28, Server, Some("tools/call"), true),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}"#, V2026_07_28, Server, Some("tools/call"), false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#, V2026_07_28, Server, Some("tools/list"), false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, V2025_11_25, Server, None, false),
        // Corrected: floats in a form's answer and anywhere in a JSON value, `null` in the latter.
        (r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":1.5}}}"#, V2025_06_18, Client, Some("elicitation/create"), true),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":1.5}}}"#, V2025_11_25, Client, Some("elicitation/create"), true),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":{}}}}"#, V2025_11_25, Client, Some("elicitation/create"), false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"public","supportedVersions":[],"capabilities":{"experimental":{"x":{"f":1.5,"n":null}}}}}"#, V2026_07_28, Server, Some("server/discover"), true),
        // An error whose request's id could not be read.
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#, V2025_06_18, Server, None, true),
        (r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}"#, V2025_06_18, Server, None, false),
        (r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}"#, V2025_11_25, Server, None, true),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#, V2025_11_25, Server, None, false),
        // Codes.
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"?","data":{"supported":[],"requested":"x"}}}"#, V2026_07_28, Server, None, true),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"?"}}"#, V2026_07_28, Server, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"?","data":{"requiredCapabilities":[]}}}"#, V2026_07_28, Server, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"?"}}"#, V2026_07_28, Server, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"?"}}"#, V2025_11_25, Server, None, true),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"?"}}"#, V2025_06_18, Server, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"?"}}"#, V2025_11_25, Server, None, false),
        // Exempt, but only there.
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}"#, V2026_07_28, Client, None, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}"#, V2025_11_25, Client, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"result":[]}"#, V2025_11_25, Server, Some("mcp/listTools"), true),
        (r#"{"id":1,"result":[]}"#, V2025_11_25, Server, Some("mcp/listTools"), false),
    ];

    #[test]
    fn the_oracle_knows_right_from_wrong() {
        for (text, revision, sender, answers, allowed) in VERDICTS {
            let verdict = validate(text, *revision, *sender, *answers);
            assert_eq!(verdict.is_ok(), *allowed, "{text} in {revision}: {verdict:?}");
        }
    }

    #[test]
    fn only_the_oldest_revisions_send_arrays() {
        let batch = r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#;
        for revision in Revision::ALL {
            let allowed = matches!(revision, V2024_11_05 | V2025_03_26);
            assert_eq!(validate_batch(batch, revision).is_ok(), allowed, "{revision}");
        }
    }
}
