use std::sync::{Arc, Mutex};

use trunkline::serde_json::json;

use crate::common::{ERAS, builder, connect, example, text};

#[tokio::test]
async fn two_servers_are_one() {
    for revision in ERAS {
        let client = connect(example!("compose"), revision).await;
        let sum = client.call_tool("math.add", json!({ "a": 1, "b": 2 })).await.unwrap();
        assert_eq!(text(&sum), "3");
        assert_eq!(text(&client.call_tool("health", ()).await.unwrap()), "All is well.");
        client.close().await;
    }
}

#[tokio::test]
async fn a_third_runs_elsewhere() {
    for revision in ERAS {
        let words = [example!("compose"), example!("travel-server")];
        let client = builder(revision).connect_args(words).await.unwrap();
        let names: Vec<_> =
            client.list_tools().await.unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["math.add", "health", "far.book"]);
        let trip = json!({ "city": "Oslo", "nights": 2 });
        let steps = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&steps);
        let call = client.call_tool("far.book", trip);
        let call = call.on_progress(move |it| seen.lock().unwrap().push(it.progress));
        assert!(call.await.unwrap().is_error(), "its question is declined");
        assert_eq!(*steps.lock().unwrap(), [1.0]);
        client.close().await;
    }
}
