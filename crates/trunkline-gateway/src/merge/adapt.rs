//! Encodes a server's items as JSON for a client of some revision.

use serde::Serialize;
use trunkline_wire::era::stateful::{self, Fit};
use trunkline_wire::era::stateless::{self, Extras};
use trunkline_wire::json::{Json, write_string};
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Tool,
};
use trunkline_wire::revision::{Era, Revision};

use super::Kind;

/// One encoded item.
pub(super) fn write<T: Fit + Serialize>(mut item: T, revision: Revision) -> Box<str> {
    item.fit(revision.profile());
    Json::of(&item).get().into()
}

/// A page of encoded items: the era encodes the result around them.
pub(super) fn page(
    kind: Kind,
    revision: Revision,
    items: &[&str],
    next: Option<String>,
    extras: &Extras<'_>,
) -> Json {
    macro_rules! frame {
        ($List:ident) => {{
            let mut list = $List::new(Vec::new());
            list.next_cursor = next;
            match revision.era() {
                Era::Stateful => stateful::encode_result(list, revision.profile()),
                Era::Stateless => stateless::encode_result(list, extras),
            }
        }};
    }
    let frame = match kind {
        Kind::Tools => frame!(ListToolsResult),
        Kind::Prompts => frame!(ListPromptsResult),
        Kind::Resources => frame!(ListResourcesResult),
        Kind::Templates => frame!(ListResourceTemplatesResult),
    };
    if items.is_empty() {
        return frame;
    }
    // At most a cursor follows the empty array, and a JSON string contains no bare quote: so the last
    // occurrence of this text is the array.
    let empty = format!(r#""{}":[]"#, kind.member());
    let at = frame.get().rfind(&empty).expect("the empty list was just written") + empty.len() - 1;
    let (head, tail) = frame.get().split_at(at);
    let length = items.iter().map(|it| it.len() + 1).sum::<usize>();
    let mut text = String::with_capacity(head.len() + length + tail.len());
    text.push_str(head);
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(item);
    }
    text.push_str(tail);
    Json::parse(text).expect("items that were written one by one make a list")
}

/// Removes the `x-mcp-header` annotations from a schema and keeps the rest unchanged: a client that sends the
/// headers to a server that ignores them would rely on a check that nobody makes.
pub(super) fn without_headers(schema: &Json) -> Json {
    if !schema.get().contains("x-mcp-header") && !schema.get().contains(r"\u") {
        return schema.clone();
    }
    let mut out = Vec::with_capacity(schema.get().len());
    strip(schema, &mut out);
    let text = String::from_utf8(out).expect("written from texts");
    Json::parse(text).unwrap_or_else(|_| schema.clone())
}

fn strip(schema: &Json, out: &mut Vec<u8>) {
    if schema.get().starts_with('[')
        && let Ok(items) = schema.to::<Vec<Json>>()
    {
        out.push(b'[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            strip(item, out);
        }
        return out.push(b']');
    }
    members(schema, out, |name, value, out| match name {
        "x-mcp-header" => false,
        // These hold data, not schemas.
        "const" | "enum" | "default" | "examples" => keep(value, out),
        // These hold schemas under names that the author chose.
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            members(value, out, |_, schema, out| {
                strip(schema, out);
                true
            });
            true
        }
        _ => {
            strip(value, out);
            true
        }
    });
}

fn keep(value: &Json, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(value.get().as_bytes());
    true
}

/// Writes the members that `write` accepts; a value that is no object stays as it is.
fn members(object: &Json, out: &mut Vec<u8>, write: impl Fn(&str, &Json, &mut Vec<u8>) -> bool) {
    let Ok(parsed) = Object::parse(object.get()) else {
        keep(object, out);
        return;
    };
    out.push(b'{');
    let mut is_first = true;
    for (name, value) in parsed.iter() {
        let before = out.len();
        if !is_first {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        if write(name, value, out) {
            is_first = false;
        } else {
            out.truncate(before);
        }
    }
    out.push(b'}');
}

/// Rewrites a tool's UI link to the URI by which the resource is shown (MCP Apps, SEP-1865).
pub(super) fn point_interface(tool: &mut Tool, shown: impl Fn(&str) -> Option<String>) {
    let Some(meta) = &tool.meta else { return };
    if !meta.get().contains("resourceUri") {
        return;
    }
    let Ok(mut members) = Object::parse(meta.get()) else { return };
    let moved = |uri: &Json| shown(&uri.to::<String>().ok()?).map(|uri| Json::string(&uri));
    let mut is_changed = false;
    if let Some(ui) = members.get("ui")
        && let Ok(mut ui) = Object::parse(ui.get())
        && let Some(uri) = ui.get("resourceUri").and_then(moved)
    {
        ui.set("resourceUri", uri);
        members.set("ui", ui.to_json());
        is_changed = true;
    }
    // The same link in its first spelling.
    if let Some(uri) = members.get("ui/resourceUri").and_then(moved) {
        members.set("ui/resourceUri", uri);
        is_changed = true;
    }
    if is_changed {
        tool.meta = Some(members.to_json());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_go_and_everything_else_stays_as_it_was_spelled() {
        let schema = r#"{"type":"object","properties":{"x-mcp-header":{"type":"string","x-mcp-header":"A"},"n":{"type":"integer","maximum":1.50e3,"default":{"x-mcp-header":1}}},"anyOf":[{"x-mcp-header":"B"},true],"$defs":{"d":{"x-mcp-header":"C","z":[]}}}"#;
        let stripped = without_headers(&Json::parse(schema).unwrap());
        assert_eq!(
            stripped.get(),
            r#"{"type":"object","properties":{"x-mcp-header":{"type":"string"},"n":{"type":"integer","maximum":1.50e3,"default":{"x-mcp-header":1}}},"anyOf":[{},true],"$defs":{"d":{"z":[]}}}"#
        );
        let plain = Json::parse(r#"{ "type" : "object" }"#).unwrap();
        assert_eq!(without_headers(&plain), plain);
    }

    #[test]
    fn interfaces_are_pointed_at_the_shown_uri() {
        let meta = r#"{"a":1.0,"ui":{"resourceUri":"ui://x","b":2},"ui/resourceUri":"ui://x"}"#;
        let mut tool = Tool::new("t", Json::empty_object()).meta(Json::parse(meta).unwrap());
        point_interface(&mut tool, |uri| Some(format!("trunkline:s/{uri}")));
        let shown = r#"{"a":1.0,"ui":{"resourceUri":"trunkline:s/ui://x","b":2},"ui/resourceUri":"trunkline:s/ui://x"}"#;
        assert_eq!(tool.meta.as_ref().unwrap().get(), shown);
        point_interface(&mut tool, |_| None);
        assert_eq!(tool.meta.unwrap().get(), shown);
    }
}
