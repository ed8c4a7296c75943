use std::sync::{Arc, Mutex};

use trunkline::Client;
use trunkline::serde_json::{Value, json};

use crate::common::{ERAS, Served, builder, example, printed};

/// Books, and says what was seen: each step once, in order, before the result.
async fn books(client: &Client) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let call = client.call::<Value>("book", json!({ "city": "Oslo", "nights": 2 }));
    let booking = call.on_progress(move |it| seen.lock().unwrap().push(it.progress)).await.unwrap();
    assert_eq!(booking, json!({ "reference": "Oslo-2", "total": 198.0 }));
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0]);
}

#[tokio::test]
async fn the_server_books_in_both_eras_over_stdio_and_http() {
    let served = Served::start(example!("travel-server"), &["--http", "127.0.0.1:0"]);
    for revision in ERAS {
        let builder = builder(revision).on_ask(async |question| {
            assert_eq!(question.message(), "2 nights in Oslo for 198 euros?");
            question.accept(true)
        });
        let client = builder.clone().connect_args([example!("travel-server")]).await.unwrap();
        assert!(client.list_tools().await.unwrap()[0].output_schema.is_some());
        books(&client).await;
        client.close().await;
        books(&builder.ask_anew().connect_http(&served.url).await.unwrap()).await;
    }
}

#[tokio::test]
async fn the_user_may_say_no() {
    for revision in ERAS {
        let no = builder(revision).on_ask(async |question| question.accept(false));
        let client = no.connect_args([example!("travel-server")]).await.unwrap();
        let result =
            client.call_tool("book", json!({ "city": "Oslo", "nights": 2 })).await.unwrap();
        assert!(result.is_error());
        let told = result.content[0].as_text();
        assert_eq!(told, Some("The user does not want it at that price."));
    }
}

#[test]
fn the_client_books_with_a_command_and_with_a_url() {
    let expected =
        "1 of Some(2.0)\n2 of Some(2.0)\nBooking { reference: \"Oslo-2\", total: 198.0 }\n";
    assert_eq!(printed(example!("travel-client"), &[example!("travel-server")]), expected);
    let served = Served::start(example!("travel-server"), &["--http", "127.0.0.1:0"]);
    assert_eq!(printed(example!("travel-client"), &[&served.url]), expected);
}
