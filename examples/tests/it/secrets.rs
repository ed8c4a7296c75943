use trunkline::serde_json::json;

use crate::common::{ERAS, connect, example, text};

#[tokio::test]
async fn a_secret_is_used_and_not_told() {
    for revision in ERAS {
        let client = connect(example!("secrets"), revision).await;
        let tools = client.list_tools().await.unwrap();
        assert!(tools[0].input_schema.get().contains(r#""writeOnly":true"#), "{tools:?}");

        let log_in =
            |password| client.call_tool("log_in", json!({ "user": "ada", "password": password }));
        assert_eq!(text(&log_in("open sesame").await.unwrap()), "ada is logged in.");
        let wrong = log_in("swordfish").await.unwrap();
        let told = wrong.content[0].as_text().unwrap();
        assert_eq!(told, "The library does not know ada with [secret].");
        let short = log_in("hunter2").await.unwrap();
        let told = short.content[0].as_text().unwrap();
        assert!(short.is_error() && told.contains("/password"), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
        client.close().await;
    }
}
