//! Lines of JSON-RPC on stdin → answers on stdout, with nothing in between: the limit the others are compared with.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Write};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

fn main() -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    let mut answers = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return output.flush();
        }
        match serde_json::from_slice::<Request>(&line) {
            Ok(request) => answer(&request, &mut answers)?,
            Err(error) => eprintln!("`bare` got a line it cannot read: {error}."),
        }
        // One write for everything that was read together. Half a line left in the buffer counts as more to come.
        if input.buffer().is_empty() || answers.len() > BUFFER {
            output.write_all(&answers)?;
            output.flush()?;
            answers.clear();
        }
    }
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Arguments<'a>,
    #[serde(borrow, default)]
    protocol_version: Cow<'a, str>,
    /// Only there in 2026-07-28, whose results carry a `resultType`.
    #[serde(rename = "_meta")]
    meta: Option<IgnoredAny>,
}

#[derive(Deserialize, Default)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

/// Appends the answer and its newline; a notification gets none.
fn answer(request: &Request, out: &mut Vec<u8>) -> io::Result<()> {
    let Some(id) = request.id else { return Ok(()) };
    let params = &request.params;
    out.reserve(params.arguments.text.len() + 256);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.get().as_bytes());
    match &*request.method {
        "tools/call" if params.name == "echo" => {
            let head: &[u8] = match params.meta {
                Some(_) => {
                    br#","result":{"resultType":"complete","content":[{"type":"text","text":"#
                }
                None => br#","result":{"content":[{"type":"text","text":"#,
            };
            out.extend_from_slice(head);
            serde_json::to_writer(&mut *out, &*params.arguments.text)?;
            out.extend_from_slice(br#"}],"isError":false}}"#);
        }
        "tools/call" => {
            out.extend_from_slice(br#","error":{"code":-32602,"message":"Unknown tool"}}"#)
        }
        "initialize" => {
            out.extend_from_slice(br#","result":{"protocolVersion":"#);
            serde_json::to_writer(&mut *out, &params.protocol_version)?;
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
        _ => out.extend_from_slice(br#","error":{"code":-32601,"message":"Method not found"}}"#),
    }
    out.push(b'\n');
    Ok(())
}

const BUFFER: usize = 64 * 1024;
const SERVER_INFO: &[u8] = br#"{"name":"bare","version":"0.1.0"}"#;
const TOOLS: &[u8] = br#","result":{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}}"#;
