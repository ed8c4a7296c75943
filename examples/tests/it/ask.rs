use std::sync::{Arc, Mutex};

use trunkline::client::Question;
use trunkline::serde_json::json;
use trunkline::{Client, Revision};

use crate::common::{ERAS, builder, example, text};

type Asked = Arc<Mutex<Vec<Question>>>;

/// A client whose user answers everything but the bank.
async fn client(revision: Revision) -> (Client, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let builder = builder(revision).on_ask(move |question| {
        seen.lock().unwrap().push(question.clone());
        async move {
            match question.message() {
                "Tell me about your trip." => {
                    let trip = json!({ "city": "Oslo", "seat": "Window", "meals": ["fish"] });
                    question.accept(trip)
                }
                "Will you swim?" => question.accept(true),
                "How many kilograms can you carry?" => question.accept(8),
                _ => question.accept(()),
            }
        }
    });
    (builder.connect_args([example!("ask")]).await.unwrap(), asked)
}

/// Calls a tool, which must say this, and returns what it asked.
async fn call(tool: &str, revision: Revision, says: &str) -> Vec<Question> {
    let (client, asked) = client(revision).await;
    let result = client.call_tool(tool, ()).await.unwrap();
    assert_eq!(text(&result), says);
    client.close().await;
    let mut asked = asked.lock().unwrap();
    std::mem::take(&mut *asked)
}

#[tokio::test]
async fn a_struct_is_a_form() {
    for revision in ERAS {
        let asked = call("plan", revision, "2 nights in Oslo, Window, [Fish]").await;
        let form = asked[0].form().unwrap();
        let fields: Vec<_> = form.properties.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(fields, ["city", "nights", "seat", "meals"]);
    }
}

#[tokio::test]
async fn two_questions_go_together() {
    for revision in ERAS {
        let asked = call("pack", revision, "Take a towel and 4 books.").await;
        assert_eq!(asked.len(), 2);
    }
}

#[tokio::test]
async fn a_page_is_visited() {
    for revision in ERAS {
        let asked = call("connect_bank", revision, "The user went to the bank.").await;
        assert_eq!(asked[0].url(), Some("https://bank.example/login"));
    }
}

#[tokio::test]
async fn no_is_an_answer() {
    for revision in ERAS {
        let no = builder(revision).on_ask(async |question| question.decline());
        let client = no.connect_args([example!("ask")]).await.unwrap();
        assert_eq!(text(&client.call_tool("plan", ()).await.unwrap()), "Another time, then.");
        client.close().await;
    }
}
