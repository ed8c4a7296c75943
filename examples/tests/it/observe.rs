use trunkline::serde_json::json;

use crate::common::{ERAS, Served, builder, example, page, text};

#[tokio::test]
async fn calls_are_counted_and_traced_without_what_they_say() {
    let mut served = Served::start(example!("observe"), &["127.0.0.1:0"]);
    for revision in ERAS {
        let client = builder(revision).ask_anew().connect_http(&served.url).await.unwrap();
        let result = client.call_tool("divide", json!({ "a": 7151, "b": 2 })).await.unwrap();
        assert_eq!(text(&result), "3575.5");
        assert!(client.call_tool("divide", json!({ "a": 1, "b": 0 })).await.unwrap().is_error());
        let closed = served.line_with("tools/call divide");
        assert!(!closed.contains("7151"), "{closed}");
    }
    let metrics = page(&served.url, "/metrics");
    assert!(metrics.contains(r#"gen_ai_tool_name="divide""#), "{metrics}");
    assert!(metrics.contains(r#"error_type="tool_error""#), "{metrics}");
}
