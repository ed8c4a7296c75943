//! The plugin protocol: messages to and from plugins as JSON lines.

use serde::{Deserialize, Serialize};
use trunkline_wire::frame::{Framing, encode};
use trunkline_wire::json::Json;

use super::CallView;
use crate::catalog::plan::{Category, PluginPlan};
use crate::policy::audit::Called;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    Request,
    Response,
    /// The caller's answers to a server's questions; only for plugins that ask for it.
    Answer,
}

/// What a server sends back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Result,
    Error,
    Question,
    Log,
    Progress,
}

impl Kind {
    /// The word for plugins. A result needs none.
    fn word(self) -> Option<&'static str> {
        match self {
            Self::Result => None,
            Self::Error => Some("error"),
            Self::Question => Some("question"),
            Self::Log => Some("log"),
            Self::Progress => Some("progress"),
        }
    }
}

/// How a plugin introduces itself.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Hello {
    pub(super) name: String,
    pub(super) category: String,
    /// Its own version, for logs.
    #[serde(default)]
    pub(super) version: Option<String>,
    /// What it wants to be asked about; requests and responses by default.
    #[serde(default)]
    pub(super) flows: Option<Vec<Phase>>,
}

/// A plugin's decision about a call.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Continue { arguments: Option<Json>, result: Option<Json> },
    Reject { code: Option<String>, message: Option<String> },
}

/// Asks about a call: `value` is its arguments or its result.
pub(super) fn ask(phase: Phase, kind: Kind, id: u64, call: &CallView, value: &Json) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<&'static str>,
        id: u64,
        call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Json>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Call<'a> {
        server: &'a str,
        #[serde(flatten)]
        what: What<'a>,
        principal: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        trace_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<&'a Json>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    enum What<'a> {
        Tool(&'a str),
        Uri(&'a str),
        Prompt(&'a str),
    }
    let what = match &call.what {
        Called::Tool(name) => What::Tool(name),
        Called::Uri(uri) => What::Uri(uri),
        Called::Prompt(name) => What::Prompt(name),
    };
    let is_request = phase != Phase::Response;
    let kind = if phase == Phase::Answer { Some("answer") } else { kind.word() };
    line(&Line {
        r#type: if is_request { "request" } else { "response" },
        kind,
        id,
        call: Call {
            server: &call.server,
            what,
            principal: call.principal.as_deref(),
            trace_id: call.trace.as_deref(),
            arguments: Some(value).filter(|_| is_request),
        },
        result: Some(value).filter(|_| !is_request),
    })
}

/// Sends a plugin its configuration.
pub(super) fn configure(config: &serde_json::Value) -> Vec<u8> {
    line(&serde_json::json!({ "type": "configure", "config": config }))
}

/// Tells a plugin to end.
pub(super) fn shutdown() -> Vec<u8> {
    line(&serde_json::json!({ "type": "shutdown" }))
}

/// Parses the first line of a plugin, and checks that it is the expected plugin.
pub(super) fn hello(text: &[u8], plan: &PluginPlan) -> Result<Hello, String> {
    let hello: Hello = serde_json::from_slice(text)
        .map_err(|error| format!("it did not begin with a `hello`: {error}"))?;
    let category = category(plan.category);
    if hello.name != plan.name {
        return Err(format!("it calls itself `{}`, not `{}`", hello.name, plan.name));
    }
    if hello.category != category {
        return Err(format!("it is for `{}`, and not for `{category}`", hello.category));
    }
    Ok(hello)
}

/// Parses an answer: the id of the question, and the decision; the inner `Err` if the plugin itself failed.
pub(super) fn answer(text: &[u8]) -> Result<(u64, Result<Answer, String>), String> {
    #[derive(Deserialize)]
    struct Id {
        id: u64,
    }
    #[derive(Deserialize)]
    struct Said {
        decision: Option<Box<str>>,
        code: Option<String>,
        message: Option<String>,
        arguments: Option<Json>,
        result: Option<Json>,
    }
    let Id { id } =
        serde_json::from_slice(text).map_err(|error| format!("its line has no `id`: {error}"))?;
    let said: Said = match serde_json::from_slice(text) {
        Ok(said) => said,
        Err(error) => return Ok((id, Err(format!("its answer cannot be read: {error}")))),
    };
    let answer = match said.decision.as_deref() {
        Some("continue") => Ok(Answer::Continue { arguments: said.arguments, result: said.result }),
        Some("reject") => Ok(Answer::Reject { code: said.code, message: said.message }),
        Some(_) => Err("its decision is neither `continue` nor `reject`".to_owned()),
        None => Err("its answer has no decision".to_owned()),
    };
    Ok((id, answer))
}

/// The word in files and in the protocol.
pub(super) fn category(category: Category) -> &'static str {
    match category {
        Category::Observability => "observability",
        Category::Authentication => "authentication",
        Category::Authorization => "authorization",
        Category::RateLimiting => "rate_limiting",
        Category::Validation => "validation",
        Category::Content => "content",
        Category::Audit => "audit",
    }
}

impl Phase {
    /// What a plugin may change in this direction.
    pub(super) fn subject(self) -> &'static str {
        match self {
            Self::Request | Self::Answer => "arguments",
            Self::Response => "result",
        }
    }
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    let write = |out: &mut Vec<u8>| {
        serde_json::to_writer(out, value)
            .expect("what plugins are told is always writable as JSON");
    };
    // Carried JSON may have line breaks between its tokens; this removes them.
    encode(Framing::Newline, write, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;
    use crate::policy::What;

    fn call(what: What<'_>) -> CallView {
        CallView::about("git", what, Some("alice")).trace("t1")
    }

    fn text(line: Vec<u8>) -> String {
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_question_is_a_line() {
        let arguments = Json::parse("{\n\"a\" : 1.50\r\n}").unwrap();
        assert_eq!(
            text(ask(Phase::Request, Kind::Result, 7, &call(What::Tool("push")), &arguments)),
            "{\"type\":\"request\",\"id\":7,\"call\":{\"server\":\"git\",\"tool\":\"push\",\
             \"principal\":\"alice\",\"traceId\":\"t1\",\"arguments\":{ \"a\" : 1.50  }}}\n"
        );
        let result = Json::parse(r#"{"content":[]}"#).unwrap();
        assert_eq!(
            text(ask(Phase::Response, Kind::Result, 8, &call(What::Resource("a:b")), &result)),
            "{\"type\":\"response\",\"id\":8,\"call\":{\"server\":\"git\",\"uri\":\"a:b\",\
             \"principal\":\"alice\",\"traceId\":\"t1\"},\"result\":{\"content\":[]}}\n"
        );
        let error = Json::parse(r#"{"code":1}"#).unwrap();
        let asked = ask(Phase::Response, Kind::Error, 9, &call(What::Resource("a:b")), &error);
        assert!(text(asked).starts_with("{\"type\":\"response\",\"kind\":\"error\",\"id\":9"));
        let asked = ask(Phase::Answer, Kind::Result, 9, &call(What::Resource("a:b")), &error);
        assert!(text(asked).starts_with("{\"type\":\"request\",\"kind\":\"answer\",\"id\":9"));
        assert_eq!(text(shutdown()), "{\"type\":\"shutdown\"}\n");
        let config = serde_json::json!({ "a": 1 });
        assert_eq!(text(configure(&config)), "{\"config\":{\"a\":1},\"type\":\"configure\"}\n");
    }

    #[test]
    fn a_plugin_sees_the_servers_own_name() {
        let name = "pu\u{202e}sh".repeat(1_000);
        let line =
            ask(Phase::Request, Kind::Result, 1, &call(What::Tool(&name)), &Json::empty_object());
        let told: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(told["call"]["tool"], name);
    }

    #[test]
    fn answers_are_read() {
        let read = |text: &str| answer(text.as_bytes());
        let (id, said) = read(r#"{"id":7,"decision":"continue","arguments":{"n":1.50}}"#).unwrap();
        let arguments = Some(Json::parse(r#"{"n":1.50}"#).unwrap());
        assert_eq!((id, said), (7, Ok(Answer::Continue { arguments, result: None })));
        let (_, said) = read(r#"{"type":"answer","id":7,"decision":"reject","code":"c"}"#).unwrap();
        assert_eq!(said, Ok(Answer::Reject { code: Some("c".into()), message: None }));
        for fault in [r#"{"id":7}"#, r#"{"id":7,"decision":"maybe"}"#, r#"{"id":7,"decision":1}"#] {
            let (id, said) = read(fault).unwrap();
            assert!(id == 7 && said.is_err(), "{fault}");
        }
        for nonsense in ["", "hello", r#"{"decision":"continue"}"#, r#"{"id":"7"}"#] {
            assert!(read(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_plugin_must_be_the_expected_one() {
        let plan = plan("guard", Category::RateLimiting);
        let read = |text: &str| hello(text.as_bytes(), &plan).map(|it| it.flows);
        let good = r#"{"type":"hello","name":"guard","category":"rate_limiting","version":"1"}"#;
        assert_eq!(read(good), Ok(None));
        let flows = r#"{"name":"guard","category":"rate_limiting","flows":["request"]}"#;
        assert_eq!(read(flows), Ok(Some(vec![Phase::Request])));
        for (text, fault) in [
            (r#"{"name":"other","category":"rate_limiting"}"#, "it calls itself `other`"),
            (r#"{"name":"guard","category":"audit"}"#, "it is for `audit`"),
            (r#"{"name":"guard"}"#, "it did not begin with a `hello`"),
            ("GET / HTTP/1.1", "it did not begin with a `hello`"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(fault), "{said}");
        }
    }
}
