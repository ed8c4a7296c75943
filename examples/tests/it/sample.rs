use trunkline::RawJson;
use trunkline::client::Sampling;
use trunkline::model::{Content, CreateMessageResult, ToolUseContent};
use trunkline::serde_json::json;

use crate::common::{ERAS, builder, example, text};

/// A model that looks at the thermometer before it answers.
fn model(request: &Sampling) -> CreateMessageResult {
    let last = request.messages.last().unwrap().content.as_slice();
    let content = match &last[0] {
        Content::ToolResult(result) => {
            Content::text(format!("It has {}.", result.content[0].as_text().unwrap()))
        }
        _ => {
            let city = RawJson::of(&json!({ "city": "Oslo" }));
            Content::ToolUse(ToolUseContent::new("use-1", &*request.tools[0].name, city))
        }
    };
    CreateMessageResult::new(content, "test-model")
}

#[tokio::test]
async fn the_model_answers() {
    for revision in ERAS {
        let builder = builder(revision).on_sample(async |request| {
            assert_eq!(request.text(), "In one sentence: Much happened.");
            request.reply("test-model", "Things happened.")
        });
        let client = builder.connect_args([example!("sample")]).await.unwrap();
        let result = client.call_tool("sum_up", json!({ "text": "Much happened." })).await.unwrap();
        assert_eq!(text(&result), "Things happened.");
        client.close().await;
    }
}

#[tokio::test]
async fn the_model_uses_a_tool_on_the_way() {
    for revision in ERAS {
        let builder = builder(revision).on_sample_with_tools(async |it| Ok(model(&it)));
        let client = builder.connect_args([example!("sample")]).await.unwrap();
        let question = json!({ "question": "Is it cold in Oslo?" });
        let result = client.call_tool("weather", question).await.unwrap();
        assert_eq!(text(&result), "It has -4 degrees.");
        client.close().await;
    }
}
