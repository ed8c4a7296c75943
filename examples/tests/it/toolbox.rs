use trunkline::model::ResourceData;
use trunkline::serde_json::{Value, json};

use crate::common::{ERAS, connect, example};

#[tokio::test]
async fn methods_are_tools_prompts_and_resources() {
    for revision in ERAS {
        let client = connect(example!("toolbox"), revision).await;
        let book = json!({ "title": "Hunger", "shelf": "classics" });
        let added: Value = client.call("add", json!({ "book": book })).await.unwrap();
        assert_eq!(added, book);

        let shelf = client.read_resource("library://classics").await.unwrap();
        assert_eq!(shelf.contents[0].data, ResourceData::Text("Hunger".to_owned()));
        assert!(client.read_resource("library://cookery").await.is_err(), "an empty shelf is none");

        let prompt = client.get_prompt("recommend", [("mood", "a quiet")]).await.unwrap();
        let said = prompt.messages[0].content.as_text();
        assert_eq!(said, Some("Choose one of the 1 books in library:// for a quiet mood."));
        client.close().await;
    }
}
