//! Servers that announce changes of their lists whenever they like: what is new is seen, and nothing is
//! started for it.

use serde_json::{Value, json};
use trunkline::Revision;

use super::edge::hear;
use super::place::{Gateway, NOTHING, Place, SOON, signal, until, write};

const REVISIONS: [&str; 3] = ["2024-11-05", "2025-11-25", "2026-07-28"];

/// How often the lists of a server were read because it announced something.
async fn looks(gateway: &Gateway) -> u64 {
    gateway.server("a").await["looks"]["lastHour"].as_u64().expect("it is counted")
}

#[tokio::test]
async fn a_server_that_announces_as_it_starts_is_started_once() {
    for revision in REVISIONS {
        let place = Place::new("announced-start");
        let options = ["--revision", revision, "--announce", "start", "--list-by-client"];
        let gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
        until("what it announced to be looked at", SOON, async || looks(&gateway).await == 1).await;
        until("it to be gone", SOON, async || place.running("a") == NOTHING).await;
        assert_eq!(place.starts("a").len(), 1, "{revision}: nobody has called");

        // Somebody who cannot be asked to sample has it started, and it announces again.
        let mut client = gateway.client().await;
        assert_eq!(client.call("a.echo", json!({ "text": "hi" })).await.as_deref(), Ok("hi"));
        until("that to be looked at", SOON, async || looks(&gateway).await == 2).await;
        let tools = client.tools().await;
        assert!(tools.contains(&"a.extra".to_owned()), "{revision}: all see the same: {tools:?}");
        assert_eq!(client.call("a.echo", json!({ "text": "ho" })).await.as_deref(), Ok("ho"));
        assert_eq!(place.starts("a").len(), 2, "{revision}: for its lists, and for a call");
    }
}

#[tokio::test]
async fn a_server_that_never_stops_announcing_is_hardly_looked_at() {
    for revision in REVISIONS {
        let place = Place::new("announced-ever");
        let options = ["--revision", revision, "--announce", "list", "--announce", "2"];
        let gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
        let mut client = gateway.client().await;
        let enough =
            |it: &[Value]| it.iter().filter(|it| it["event"] == "announced").count() > 1_500;
        until("many announcements", 3 * SOON, async || {
            let said = client.call("a.echo", json!({ "text": "hi" })).await;
            assert_eq!(said.as_deref(), Ok("hi"), "{revision}");
            enough(&place.log().all())
        })
        .await;
        // Rarer and rarer: that nothing was new is the rule here.
        let looks = looks(&gateway).await;
        assert!((1..=8).contains(&looks), "{revision}: {looks}");
        assert!(place.starts("a").len() <= 2, "{revision}: {:?}", place.starts("a"));
    }
}

#[tokio::test]
async fn what_is_new_is_told_and_listed_at_the_cost_of_one_start() {
    let place = Place::new("announced-new");
    let tools = |names: &[&str]| -> String {
        let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
        names.iter().map(tool).collect::<Value>().to_string()
    };
    write(&place.path("tools.json"), &tools(&["before"]));
    let file = place.text("tools.json");
    let options = ["--tools-file", &file, "--list-changed-on", "SIGUSR1", "--list-by-client"];
    let gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
    gateway.settled().await;
    until("it to be gone", SOON, async || place.running("a") == NOTHING).await;
    // This client cannot be asked to sample, so its instance is not one that all lists are of.
    let old = hear(&gateway, Revision::V2025_11_25).await;
    old.client.call_tool("a.before", json!({})).await.unwrap();
    write(&place.path("tools.json"), &tools(&["before", "after"]));
    signal("USR1", place.running("a")[0]);
    until("it to be told", SOON, async || old.tools() > 0).await;
    let names = old.client.list_tools().await.unwrap().into_iter().map(|it| it.name);
    assert_eq!(names.collect::<Vec<_>>(), ["a.before", "a.after", "a.extra"]);
    assert_eq!(place.starts("a").len(), 3, "lists, a call, and the lists that somebody asked for");
}

#[tokio::test]
async fn the_lists_of_a_stateless_server_do_not_depend_on_who_called_first() {
    let place = Place::new("announced-first");
    let options = ["--revision", "2026-07-28", "--list-changed-on", "SIGUSR1", "--list-by-client"];
    let gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
    gateway.settled().await;
    until("it to be gone", SOON, async || place.running("a") == NOTHING).await;
    // This client cannot be asked to sample, and the instance that it has started serves all.
    let old = hear(&gateway, Revision::V2025_11_25).await;
    old.client.call_tool("a.echo", json!({ "text": "hi" })).await.unwrap();
    let before = looks(&gateway).await;
    signal("USR1", place.running("a")[0]);
    until("that to be looked at", SOON, async || looks(&gateway).await > before).await;
    let names: Vec<_> =
        old.client.list_tools().await.unwrap().into_iter().map(|it| it.name).collect();
    assert!(names.contains(&"a.extra".to_owned()), "all see the same: {names:?}");
}
