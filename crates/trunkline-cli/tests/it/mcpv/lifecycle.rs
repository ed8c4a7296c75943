//! When processes start and when they end: on demand, when idle, with their clients, kept warm.

use std::time::Duration;

use serde_json::json;

use super::place::{NOTHING, Place, SOON, signal, until, write};

#[tokio::test]
async fn b02_a_server_starts_with_the_first_call() {
    let place = Place::new("b02");
    let gateway = place
        .serve(
            json!({ "a": place.fake("a", &[], json!({})), "b": place.fake("b", &[], json!({})) }),
        )
        .await;
    gateway.settled().await;
    let (asked_a, asked_b) = (place.starts("a").len(), place.starts("b").len());
    let mut client = gateway.client().await;
    assert_eq!(client.tools().await.len(), 28);
    assert_eq!(place.log().running(), NOTHING, "a client and its lists start nothing");
    assert_eq!(place.starts("a").len(), asked_a);

    assert_eq!(client.call("a.echo", json!({ "text": "hello" })).await, Ok("hello".to_owned()));
    assert_eq!(place.starts("a").len(), asked_a + 1, "one process for one call");
    assert_eq!(place.running("a"), [client.pid("a.pid").await]);
    assert_eq!(place.starts("b").len(), asked_b, "the other is not touched");
}

#[tokio::test]
async fn b03_an_idle_server_stops_while_its_client_stays() {
    let place = Place::new("b03");
    let warm = json!({ "idleSeconds": 1, "minReady": 1, "maxConcurrent": 1 });
    let gateway = place
        .serve(json!({
            "a": place.fake("a", &[], json!({ "idleSeconds": 1 })),
            "warm": place.fake("warm", &[], warm),
        }))
        .await;
    gateway.settled().await;
    let mut client = gateway.client().await;
    let first = client.pid("a.pid").await;
    let took = until("the idle child to go", SOON, async || place.running("a").is_empty()).await;
    assert!(took < Duration::from_secs(3), "it took {took:?}");
    let second = client.pid("a.pid").await;
    assert_ne!(first, second, "the next call works, at a new process");

    // Two at once need two; one of them stays for as long as there is a client.
    let said = client.at_once(2, "warm.slow", json!({ "ms": 300 })).await;
    assert!(said.iter().all(Result::is_ok), "{said:?}");
    until("one of two to go", SOON, async || place.running("warm").len() == 1).await;
    until("the other server to go", SOON, async || place.running("a").is_empty()).await;
    assert_eq!(place.running("warm").len(), 1, "`minReady` keeps one");
}

#[tokio::test]
async fn b04_servers_live_as_their_activation_says() {
    let place = Place::new("b04");
    let gateway = place
        .serve(json!({
            "always": place.fake("always", &[], json!({ "activation": "always-on" })),
            "demand": place.fake("demand", &[], json!({ "minReady": 1 })),
        }))
        .await;
    until("what is always on to run", SOON, async || place.running("always").len() == 1).await;
    until("the other to be known", SOON, async || {
        gateway.server("demand").await["tools"].is_number() && place.running("demand").is_empty()
    })
    .await;

    let one = gateway.client().await;
    let mut other = gateway.client().await;
    until("a client to bring it up", SOON, async || place.running("demand").len() == 1).await;
    let pid = other.pid("demand.pid").await;
    one.leave().await;
    until("one client to be left", SOON, async || {
        gateway.told("GET /v1/status").await["clients"] == 1
    })
    .await;
    assert_eq!(other.pid("demand.pid").await, pid, "the other client still has it");
    other.leave().await;
    until("the last client to take it along", SOON, async || place.running("demand").is_empty())
        .await;
    assert_eq!(place.running("always").len(), 1, "what is always on needs no client");
}

#[tokio::test]
async fn b10_the_warm_pool_is_refilled() {
    let place = Place::new("b10");
    let gateway = place.serve(json!({ "a": place.fake("a", &[], json!({ "minReady": 2 })) })).await;
    gateway.settled().await;
    let _client = gateway.client().await;
    until("two to be warm", SOON, async || place.running("a").len() == 2).await;
    let before = place.running("a");
    signal("KILL", before[0]);
    until("the pool to be full again", SOON, async || {
        let now = place.running("a");
        now.len() == 2 && !now.contains(&before[0])
    })
    .await;
    assert!(place.running("a").contains(&before[1]), "the other was left alone");
    assert_eq!(place.log().of("call").len(), 0, "nobody called");
}

#[tokio::test]
async fn b14_lists_are_served_while_nothing_runs_and_after_a_restart() {
    let place = Place::new("b14");
    let names: Vec<String> = (0..300).map(|at| format!("tool_{at:03}")).collect();
    write(&place.path("tools.json"), &json!(tools_of(&names)).to_string());
    let file = place.text("tools.json");
    let many = ["--page", "50", "--tools-file", &file, "--list-changed-on", "SIGUSR1"];
    let mut servers = json!({});
    for at in 0..4 {
        let name = format!("s{at}");
        servers[&name] = place.fake(&name, &many, json!({}));
    }
    let gateway = place.serve(servers).await;
    gateway.settled().await;
    assert_eq!(place.log().running(), NOTHING);
    let mut client = gateway.client().await;
    let (tools, pages) = client.list("tools").await;
    let (prompts, _) = client.list("prompts").await;
    let (resources, _) = client.list("resources").await;
    assert_eq!((tools.len(), prompts.len(), resources.len()), (1200, 8, 8));
    assert!(pages > 1, "1,200 tools are more than a page");
    let begun = place.log().of("start").len();
    drop(gateway);

    let gateway = place.open("127.0.0.1:0").await;
    let mut client = gateway.client().await;
    assert_eq!(client.list("tools").await.0, tools, "the same, in the same order");
    assert_eq!(client.list("prompts").await.0, prompts);
    assert_eq!(client.list("resources").await.0, resources);
    assert_eq!(place.log().of("start").len(), begun, "nothing was started for it");

    // A server that says that its tools changed, and shows the same, changes nothing.
    let heard = super::edge::hear(&gateway, trunkline::Revision::V2025_11_25).await;
    let pid: u32 = {
        client.call("s0.tool_000", json!({})).await.unwrap();
        place.running("s0")[0]
    };
    let fetched = |place: &Place| {
        let asked = place.log().of("request").into_iter();
        asked.filter(|it| it["method"] == "prompts/list" && it["pid"] == pid).count()
    };
    signal("USR1", pid);
    until("the lists to be fetched", SOON, async || fetched(&place) > 0).await;
    let (done, asked) = (heard.tools(), fetched(&place));
    write(&place.path("tools.json"), &json!(tools_of(&names[1..])).to_string());
    signal("USR1", pid);
    until("the lists to be fetched again", SOON, async || fetched(&place) > asked).await;
    until("the change to be told", SOON, async || heard.tools() > done).await;
    assert_eq!((done, heard.tools()), (0, 1), "told once, of the one that was one");
    let after = client.list("tools").await.0;
    assert_eq!(after.len(), 1199);
}

fn tools_of(names: &[String]) -> Vec<serde_json::Value> {
    let tool = |name: &String| json!({ "name": name, "inputSchema": { "type": "object" } });
    names.iter().map(tool).collect()
}
