use std::sync::{Arc, Mutex};

use trunkline::serde_json::{Value, json};

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
async fn a_third_runs_elsewhere_and_asks_our_user() {
    for revision in ERAS {
        let yes = builder(revision).on_ask(async |question| {
            assert_eq!(question.message(), "2 nights in Oslo for 198 euros?");
            question.accept(true)
        });
        let words = [example!("compose"), example!("travel-server")];
        let client = yes.connect_args(words).await.unwrap();
        let steps = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&steps);
        let call = client.call::<Value>("far.book", json!({ "city": "Oslo", "nights": 2 }));
        let call = call.on_progress(move |it| seen.lock().unwrap().push(it.progress));
        assert_eq!(call.await.unwrap(), json!({ "reference": "Oslo-2", "total": 198.0 }));
        assert_eq!(*steps.lock().unwrap(), [1.0, 2.0]);
        client.close().await;
    }
}
