use trunkline::serde_json::json;

use crate::common::{ERAS, Served, builder, connect, example, text};

#[tokio::test]
async fn it_greets_in_both_eras_over_stdio_and_http() {
    let served = Served::start(example!("hello"), &["--http", "127.0.0.1:0"]);
    for revision in ERAS {
        let over_stdio = connect(example!("hello"), revision).await;
        let over_http = builder(revision).ask_anew().connect_http(&served.url).await.unwrap();
        for client in [over_stdio, over_http] {
            assert_eq!(client.revision(), revision);
            let tools = client.list_tools().await.unwrap();
            assert_eq!(tools[0].description.as_deref(), Some("Says hello."));
            assert!(tools[0].input_schema.get().contains("Whom to greet."));
            let result = client.call_tool("hello", json!({ "name": "Ada" })).await.unwrap();
            assert_eq!(text(&result), "Hello, Ada!");
            client.close().await;
        }
    }
}
