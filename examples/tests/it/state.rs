use trunkline::RawJson;
use trunkline::serde_json::json;

use crate::common::{ERAS, connect, example, text};

#[tokio::test]
async fn rooms_are_taken_until_none_is_left() {
    for revision in ERAS {
        let client = connect(example!("state"), revision).await;
        let take = || client.call_tool("take", json!({ "city": "Oslo" }));
        assert_eq!(text(&take().await.unwrap()), "1 rooms left.");
        let in_norwegian = take().meta("com.example/language", RawJson::of("no"));
        assert_eq!(text(&in_norwegian.await.unwrap()), "0 rom igjen.");
        let full = take().await.unwrap();
        assert!(full.is_error());
        let told = full.content[0].as_text();
        assert_eq!(told, Some("Every room in Oslo is taken. Try another city."));
        client.close().await;
    }
}
