//! The text of a tool's result → the result: in one pass, unless something about it is unusual.

use super::CallToolResult;
use crate::json::{Json, Reader};
use crate::model::Content;

impl CallToolResult {
    /// Reads a result, as serde does.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::CallToolResult};
    /// let json = Json::parse(r#"{"content":[{"type":"text","text":"Sunny"}]}"#).unwrap();
    /// assert_eq!(CallToolResult::read(&json).unwrap(), CallToolResult::text("Sunny"));
    /// ```
    pub fn read(json: &Json) -> Result<Self, serde_json::Error> {
        // What is wrong is told by those who have words for it.
        plain(json.get()).map_or_else(|| json.to(), Ok)
    }
}

/// A result without escapes in names, and in which nothing stands twice.
fn plain(text: &str) -> Option<CallToolResult> {
    let (mut reader, mut is_first) = (Reader::new(text), true);
    let (mut content, mut structured_content, mut is_error, mut meta) = (None, None, None, None);
    reader.open(b'{').ok()?;
    while let Some(name) = reader.member(std::mem::take(&mut is_first)).ok()? {
        let stands_twice = match name.plain()? {
            "content" => content.replace(blocks(&mut reader)?).is_some(),
            "structuredContent" => {
                structured_content.replace(Json::copied(reader.value().ok()?)).is_some()
            }
            "isError" => match reader.value().ok()? {
                "true" => is_error.replace(true).is_some(),
                "false" => is_error.replace(false).is_some(),
                _ => return None,
            },
            "_meta" => match reader.value().ok()? {
                "null" => return None,
                value => meta.replace(Json::copied(value)).is_some(),
            },
            _ => {
                reader.value().ok()?;
                false
            }
        };
        if stands_twice {
            return None;
        }
    }
    let content = content.unwrap_or_default();
    Some(CallToolResult { content, structured_content, is_error, meta })
}

fn blocks(reader: &mut Reader<'_>) -> Option<Vec<Content>> {
    // Nearly all have one.
    let (mut blocks, mut is_first) = (Vec::with_capacity(1), true);
    reader.open(b'[').ok()?;
    while reader.item(std::mem::take(&mut is_first)).ok()? {
        blocks.push(Content::next(reader)?);
    }
    Some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_as_serde_reads_it() {
        let text = r#"{"type":"text","text":"a"}"#;
        let image = r#"{"type":"image","data":"iVBORw0=","mimeType":"image/png"}"#;
        for result in [
            "{}".to_owned(),
            format!(r#"{{"content":[{text}]}}"#),
            format!(r#" {{ "content" : [ {text} , {image} ] , "isError" : true }} "#),
            format!(
                r#"{{"content":[],"structuredContent":{{"a":1.50}},"_meta":{{"b":[{text}]}}}}"#
            ),
            r#"{"content":[{"text":"a","type":"text","annotations":{"priority":0.5}}]}"#.to_owned(),
            r#"{"content":[{"type":"text","text":"a\nb","_meta":{"c":1}}]}"#.to_owned(),
            r#"{"content":[{"type":"text","text":"\u00e4"}]}"#.to_owned(),
            r#"{"content":[{"ty\u0070e":"text","text":"a"}]}"#.to_owned(),
            r#"{"content":[{"type":"hologram","text":{"x":1}}],"resultType":"complete"}"#
                .to_owned(),
            r#"{"cont\u0065nt":[],"isError":null,"structuredContent":null}"#.to_owned(),
            r#"{"_meta":null,"ttlMs":1}"#.to_owned(),
            // And what is none.
            r#"{"content":null}"#.to_owned(),
            r#"{"content":[[]]}"#.to_owned(),
            r#"{"content":["a"]}"#.to_owned(),
            r#"{"content":[{"text":"a"}]}"#.to_owned(),
            r#"{"content":[{"type":"text"}]}"#.to_owned(),
            r#"{"content":[{"type":"text","text":1}]}"#.to_owned(),
            r#"{"content":[{"type":"text","type":"text","text":"a"}]}"#.to_owned(),
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#.to_owned(),
            r#"{"content":[{"type":"image","data":"a"}]}"#.to_owned(),
            r#"{"content":[],"content":[]}"#.to_owned(),
            r#"{"isError":1}"#.to_owned(),
            r#"{"isError":true,"isError":true}"#.to_owned(),
        ] {
            let json = Json::parse(&result).expect("it is JSON");
            let words = |it: serde_json::Error| it.to_string();
            let expected = json.to::<CallToolResult>().map_err(words);
            assert_eq!(CallToolResult::read(&json).map_err(words), expected, "{result}");
        }
    }
}
