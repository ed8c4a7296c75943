use trunkline::{Client, Revision};

use crate::common::{ERAS, Served, builder, example, page, text};

fn served() -> Served {
    Served::start(example!("http"), &["127.0.0.1:0"])
}

async fn client(served: &Served, revision: Revision, key: &str) -> Client {
    let builder = builder(revision).ask_anew().header("authorization", format!("Bearer {key}"));
    builder.connect_http(&served.url).await.unwrap()
}

#[tokio::test]
async fn callers_see_what_is_for_them() {
    let served = served();
    for revision in ERAS {
        let ada = client(&served, revision, "ada-key").await;
        let bob = client(&served, revision, "bob-key").await;
        assert_eq!(text(&ada.call_tool("whoami", ()).await.unwrap()), "ada");
        assert_eq!(text(&bob.call_tool("whoami", ()).await.unwrap()), "bob");

        assert_eq!(ada.list_tools().await.unwrap().len(), 2);
        assert_eq!(text(&ada.call_tool("reset", ()).await.unwrap()), "Forgotten.");
        assert_eq!(bob.list_tools().await.unwrap().len(), 1);
        let error = bob.call_tool("reset", ()).await.unwrap_err().to_string();
        assert!(error.contains("reset"), "for bob there is no such tool: {error}");
    }
}

#[tokio::test]
async fn nobody_else_gets_in() {
    let served = served();
    for revision in ERAS {
        let builder = builder(revision).ask_anew().header("authorization", "Bearer guessed");
        let error = builder.connect_http(&served.url).await.unwrap_err().to_string();
        assert!(error.contains("401"), "{error}");
    }
}

#[test]
fn the_rest_of_the_web_server_goes_on() {
    let served = served();
    assert!(page(&served.url, "/health").ends_with("ok"));
}
