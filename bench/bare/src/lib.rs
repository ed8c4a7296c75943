//! A JSON-RPC text → the bytes that answer it: the envelope every bare program shares.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// What is read of a message; the texts are borrowed from it.
#[derive(Deserialize)]
pub struct Request<'a> {
    /// Absent in a notification.
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    /// The method's name.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    /// What the methods below need of their parameters.
    #[serde(borrow, default)]
    pub params: Params<'a>,
}

/// The parameters of every method answered here.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Params<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Arguments<'a>,
    #[serde(borrow, default)]
    protocol_version: Cow<'a, str>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Deserialize, Default)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    /// Only there in 2026-07-28, whose results carry a `resultType`.
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<Cow<'a, str>>,
}

impl Request<'_> {
    /// Appends the answer; false for a notification or a call that is parked, which get none.
    pub fn answer(&self, out: &mut Vec<u8>) -> bool {
        let Some(id) = self.id else { return false };
        if self.is_parked() {
            return false;
        }
        out.reserve(self.params.arguments.text.len() + 256);
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.get().as_bytes());
        match &*self.method {
            "tools/call" if matches!(&*self.params.name, "echo" | "progress") => {
                let head: &[u8] = match self.params.meta.protocol_version {
                    Some(_) => STATELESS_RESULT,
                    None => br#","result":{"content":[{"type":"text","text":"#,
                };
                out.extend_from_slice(head);
                string(out, &self.params.arguments.text);
                out.extend_from_slice(b"}]}}");
            }
            "tools/call" => {
                out.extend_from_slice(br#","error":{"code":-32602,"message":"Unknown tool"}}"#)
            }
            "initialize" => {
                out.extend_from_slice(br#","result":{"protocolVersion":"#);
                string(out, &self.params.protocol_version);
                out.extend_from_slice(br#","capabilities":{"tools":{}},"serverInfo":"#);
                out.extend_from_slice(SERVER_INFO);
                out.extend_from_slice(b"}}");
            }
            "server/discover" => {
                out.extend_from_slice(
                    br#","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"#,
                );
                out.extend_from_slice(
                    br#""capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"private","#,
                );
                out.extend_from_slice(br#""_meta":{"io.modelcontextprotocol/serverInfo":"#);
                out.extend_from_slice(SERVER_INFO);
                out.extend_from_slice(b"}}}");
            }
            "tools/list" => out.extend_from_slice(TOOLS),
            "ping" => out.extend_from_slice(br#","result":{}}"#),
            _ => {
                out.extend_from_slice(br#","error":{"code":-32601,"message":"Method not found"}}"#)
            }
        }
        true
    }

    /// Whether this is a call of the tool that never answers.
    pub fn is_parked(&self) -> bool {
        self.params.name == "park" && self.method == "tools/call"
    }

    /// Whether the message is of 2026-07-28, which numbers no events.
    pub fn is_stateless(&self) -> bool {
        self.params.meta.protocol_version.is_some()
    }

    /// Whether this is a call of the tool that speaks before it answers.
    pub fn wants_progress(&self) -> bool {
        self.params.meta.progress_token.is_some()
            && self.method == "tools/call"
            && self.params.name == "progress"
    }

    /// Appends the notification that such a call sends first.
    pub fn progress(&self, out: &mut Vec<u8>) {
        let token = self.params.meta.progress_token.map_or("null", RawValue::get);
        out.extend_from_slice(
            br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#,
        );
        out.extend_from_slice(token.as_bytes());
        out.extend_from_slice(br#","progress":1,"total":2}}"#);
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a `Vec` takes every byte");
}

const SERVER_INFO: &[u8] = br#"{"name":"bare","version":"0.1.0"}"#;
/// A result as the servers measured write it.
const STATELESS_RESULT: &[u8] = br#","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bare","version":"0.1.0"}},"content":[{"type":"text","text":"#;
const TOOLS: &[u8] = br#","result":{"resultType":"complete","ttlMs":60000,"cacheScope":"private","tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"park","inputSchema":{"type":"object"}}]}}"#;
