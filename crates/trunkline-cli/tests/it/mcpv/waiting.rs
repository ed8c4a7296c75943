//! Servers that take long to start, or never do: who waits for them, and what they hear meanwhile.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use trunkline::{Client, Revision};

use super::place::{Gateway, Place};

async fn client(gateway: &Gateway, revision: Revision) -> Client {
    let builder = Client::builder("person", "1").protocol(revision);
    builder.connect_http(format!("http://{}/mcp", gateway.address)).await.unwrap()
}

const INSTALLING: &str =
    "npm warn exec The following package was not found and will be installed: fake@1";

#[tokio::test]
async fn a_call_waits_for_a_slow_start_and_hears_what_for() {
    for revision in [Revision::V2025_06_18, Revision::LATEST] {
        let place = Place::new(&format!("waiting-{revision}"));
        let options = ["--start-delay", "6000", "--stderr", INSTALLING];
        let gateway = place.serve(json!({ "slow": place.fake("slow", &options, json!({})) })).await;
        let client = client(&gateway, revision).await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&heard);
        let call =
            client.call_tool("slow.echo", json!({ "text": "up" })).on_progress(move |step| {
                hears.lock().unwrap().push(step.message.unwrap_or_default());
            });
        let said = call.await.unwrap();
        assert_eq!(said.content[0].as_text(), Some("up"), "{revision}");
        let heard = heard.lock().unwrap();
        assert_eq!(
            heard.first().map(String::as_str),
            Some("Waiting for `slow`: installing `fake@1`…")
        );
    }
}

#[tokio::test]
async fn a_list_says_what_it_lacks_and_nobody_waits_twice() {
    let place = Place::new("waiting-hung");
    let catalog = json!({
        "hung": place.fake("hung", &["--hang-on", "initialize", "--hang-on", "server/discover"], json!({})),
        "fine": place.fake("fine", &[], json!({})),
    });
    let gateway = place.serve(catalog).await;
    let client = client(&gateway, Revision::V2025_06_18).await;
    let mut took = Vec::new();
    for _ in 0..4 {
        let began = Instant::now();
        let page = client.list_tools_page(None).await.unwrap();
        took.push(began.elapsed());
        assert!(page.tools.iter().all(|it| it.name.starts_with("fine.")));
        let meta = page.meta.expect("it says what it lacks");
        let meta: serde_json::Value = serde_json::from_str(meta.get()).unwrap();
        assert_eq!(meta["trunkline/missing"]["hung"], "It is starting; try again soon.");
    }
    assert!(took[1..].iter().all(|it| *it < Duration::from_secs(5)), "{took:?}");
}
