use trunkline::model::SubscriptionFilter;
use trunkline::serde_json::json;
use trunkline::{Change, Client};

use crate::common::{ERAS, connect, example, text};

async fn names(client: &Client) -> Vec<String> {
    client.list_tools().await.unwrap().into_iter().map(|it| it.name).collect()
}

#[tokio::test]
async fn a_tool_comes_and_goes_and_listeners_are_told() {
    for revision in ERAS {
        let client = connect(example!("change"), revision).await;
        let filter = SubscriptionFilter::new().tools_list_changed(true);
        let mut changes = client.listen(filter).await.unwrap();
        assert_eq!(names(&client).await, ["learn", "forget"]);

        client.call_tool("learn", json!({ "word": "moo" })).await.unwrap();
        assert_eq!(changes.next().await, Some(Change::Tools));
        assert_eq!(names(&client).await, ["learn", "forget", "moo"]);
        assert_eq!(text(&client.call_tool("moo", ()).await.unwrap()), "moo!");

        client.call_tool("forget", json!({ "word": "moo" })).await.unwrap();
        assert_eq!(changes.next().await, Some(Change::Tools));
        assert_eq!(names(&client).await, ["learn", "forget"]);
        client.close().await;
    }
}
