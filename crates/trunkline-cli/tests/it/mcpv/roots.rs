//! Servers that ask for roots as they start and keep them, as the published file server does.

use serde_json::json;
use trunkline::client::Roots;
use trunkline::model::Root;
use trunkline::{Client, Revision};

use super::place::{Gateway, Place, SOON, until};

/// A client whose project is this one, and what tells of another.
async fn host(gateway: &Gateway, revision: Revision, project: &str) -> (Client, Roots) {
    let roots = Roots::new([Root::new(uri(project))]);
    let builder = Client::builder("host", "1").protocol(revision).roots(roots.clone());
    let client = builder.connect_http(format!("http://{}/mcp", gateway.address)).await.unwrap();
    (client, roots)
}

fn uri(project: &str) -> String {
    format!("file:///{project}")
}

/// The roots that the server has.
async fn kept(client: &Client) -> String {
    let said = client.call_tool("a.kept", json!({})).await.unwrap();
    said.content[0].as_text().expect("it says a text").to_owned()
}

fn only(project: &str) -> String {
    json!([{ "uri": uri(project) }]).to_string()
}

#[tokio::test]
async fn the_first_call_finds_the_roots_of_its_caller() {
    for revision in Revision::ALL {
        let place = Place::new(&format!("roots-{revision}"));
        let options = ["--revision", "2025-11-25", "--roots-at-start"];
        let gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
        let (ada, _roots) = host(&gateway, revision, "ada").await;
        assert_eq!(kept(&ada).await, only("ada"), "{revision}: at once");
        assert_eq!(kept(&ada).await, only("ada"), "{revision}: and later");
    }
}

#[tokio::test]
async fn sessions_do_not_share_a_server_that_keeps_their_roots() {
    let place = Place::new("roots-two");
    let options = ["--roots-at-start"];
    let gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
    gateway.settled().await;
    let (ada, _adas) = host(&gateway, Revision::V2025_11_25, "ada").await;
    let (grace, _graces) = host(&gateway, Revision::V2025_11_25, "grace").await;
    for _ in 0..2 {
        assert_eq!(kept(&ada).await, only("ada"));
        assert_eq!(kept(&grace).await, only("grace"));
    }
    assert_eq!(place.starts("a").len(), 3, "for its lists, and for each session");
}

#[tokio::test]
async fn a_server_that_keeps_roots_hears_of_others() {
    let place = Place::new("roots-change");
    let options = ["--roots-at-start"];
    let gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
    let (ada, roots) = host(&gateway, Revision::V2025_11_25, "ada").await;
    let (grace, _graces) = host(&gateway, Revision::V2025_11_25, "grace").await;
    assert_eq!((kept(&ada).await, kept(&grace).await), (only("ada"), only("grace")));
    roots.set([Root::new(uri("engines"))]);
    ada.roots_changed().await;
    until("it has them", SOON, async || kept(&ada).await == only("engines")).await;
    assert_eq!(kept(&grace).await, only("grace"), "nobody else's changed");
}
