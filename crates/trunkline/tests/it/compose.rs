//! Mounted servers: names, states, visibility, tasks, skills, and changes while they run.

use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::model::TaskSupport;
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::server::ServerBuilder;
use trunkline::{
    Answer, Args, Change, Client, Context, Form, Revision, Server, State, ToolError, prompt,
    resource, skill, template, tool,
};
use trunkline_testkit::peer::Peer;

use crate::server::{ERAS, at_once, open, text};

/// A state of the handler's own server.
struct Till(&'static str);

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

#[derive(Form)]
struct Name {
    name: String,
}

async fn till(State(till): State<Till>) -> &'static str {
    till.0
}

async fn greet(Args(it): Args<City>, State(till): State<Till>) -> String {
    format!("Hello {}, says {}", it.city, till.0)
}

async fn ask(cx: Context, State(till): State<Till>) -> Result<String, ToolError> {
    match cx.ask::<Name>(format!("Who are you to {}?", till.0)).await? {
        Answer::Accept(it) => Ok(it.name),
        _ => Ok("nobody".to_owned()),
    }
}

/// A server with one entry of every kind.
fn bank(name: &'static str) -> ServerBuilder {
    Server::builder(name, "1")
        .state(Till(name))
        .tool(tool("till", till))
        .tool(tool("ask", ask))
        .prompt(prompt("greet", greet).complete("city", |typed, _| vec![format!("{typed}slo")]))
        .resource(resource(format!("{name}://till"), "till", till))
        .resource(
            template(format!("{name}://rooms/{{city}}"), "rooms", greet)
                .complete("city", |typed, _| vec![format!("{typed}o")]),
        )
}

async fn names(peer: &mut Peer, method: &str, list: &str, member: &str) -> Vec<String> {
    let result = peer.expect(method, json!({})).await;
    let items = result[list].as_array().unwrap().iter();
    items.map(|it| it[member].as_str().unwrap().to_owned()).collect()
}

async fn tools(peer: &mut Peer) -> Vec<String> {
    names(peer, "tools/list", "tools", "name").await
}

#[tokio::test]
async fn everything_of_a_mounted_server_is_there_and_has_its_own_state() {
    // Three deep: each handler gets the state of the server it was registered with.
    let inner = bank("inner").build();
    let middle = bank("middle").mount("in", inner);
    let outer = bank("outer").mount("mid", middle).merge(Server::builder("empty", "1")).build();
    for revision in Revision::ALL {
        let mut peer = open(&outer, revision).await;
        let expected = ["till", "ask", "mid.till", "mid.ask", "mid.in.till", "mid.in.ask"];
        assert_eq!(tools(&mut peer).await, expected, "{revision}");
        let prompts = names(&mut peer, "prompts/list", "prompts", "name").await;
        assert_eq!(prompts, ["greet", "mid.greet", "mid.in.greet"]);
        let resources = names(&mut peer, "resources/list", "resources", "uri").await;
        assert_eq!(resources, ["outer://till", "middle://till", "inner://till"]);

        for (tool, owner) in [("till", "outer"), ("mid.till", "middle"), ("mid.in.till", "inner")] {
            assert_eq!(text(&peer.tool(tool, json!({})).await), owner, "{revision}");
        }
        let params = json!({ "name": "mid.in.greet", "arguments": { "city": "Oslo" } });
        let got = peer.expect("prompts/get", params).await;
        assert_eq!(got["messages"][0]["content"]["text"], "Hello Oslo, says inner");
        let read = peer.expect("resources/read", json!({ "uri": "inner://till" })).await;
        assert_eq!(read["contents"][0]["text"], "inner");
        let read = peer.expect("resources/read", json!({ "uri": "middle://rooms/Rome" })).await;
        assert_eq!(read["contents"][0]["text"], "Hello Rome, says middle");

        for (reference, value) in [
            (json!({ "type": "ref/prompt", "name": "mid.in.greet" }), "Oslo"),
            (json!({ "type": "ref/resource", "uri": "inner://rooms/{city}" }), "Oo"),
        ] {
            let argument = json!({ "name": "city", "value": "O" });
            let params = json!({ "ref": reference, "argument": argument });
            let completed = peer.expect("completion/complete", params).await;
            assert_eq!(completed["completion"]["values"], json!([value]));
        }
        assert_eq!(peer.refused("tools/call", json!({ "name": "in.till" })).await, -32602);
    }
}

#[tokio::test]
async fn a_mounted_handler_asks_in_every_revision_that_has_questions() {
    let outer = Server::builder("outer", "1").mount("b", bank("bank")).build();
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut peer = open(&outer, revision).await;
        assert_eq!(text(&peer.tool("b.ask", json!({})).await), "Ada", "{revision}");
        assert_eq!(peer.rounds, [["Who are you to bank?"]]);
    }
}

#[tokio::test]
async fn a_mounted_tool_runs_as_a_task_of_the_outer_server() {
    let work = tool("work", till).task(TaskSupport::Optional);
    let inner = Server::builder("inner", "1").state(Till("inner")).tool(work);
    let outer = Server::builder("outer", "1").tasks(at_once()).mount("in", inner).build();
    for revision in ERAS {
        let client = Client::builder("test", "1").protocol(revision);
        let client = client.connect_memory(&outer).await.unwrap();
        assert!(client.has_tasks(), "{revision}");
        let started = client.call_tool_task("in.work", ()).await.unwrap();
        let trunkline::client::ToolCall::Task(task) = started else {
            panic!("it should be a task in {revision}")
        };
        let result = client.task_result(task.task_id).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("inner"));
    }
}

#[tokio::test]
async fn what_one_may_not_see_inside_one_does_not_see_outside() {
    let hidden = tool("hidden", async || "secret")
        .visible(|caller| caller.client().is_some_and(|it| it.name == "friend"));
    let inner = Server::builder("inner", "1").tool(hidden).tool(tool("open", async || "hello"));
    let outer = Server::builder("outer", "1").mount("in", inner).build();
    for revision in ERAS {
        for (who, expected) in [("friend", 2), ("stranger", 1)] {
            let client = Client::builder(who, "1").protocol(revision);
            let client = client.connect_memory(&outer).await.unwrap();
            assert_eq!(client.list_tools().await.unwrap().len(), expected, "{who}");
            assert_eq!(client.call_tool("in.hidden", ()).await.is_ok(), expected == 2, "{who}");
        }
    }
}

#[tokio::test]
async fn skills_come_along() {
    let cook = "---\nname: cook\ndescription: Cooks.\n---\nStir.";
    let cook = skill("cook", cook).unwrap().file("herbs.md", "text/markdown", "Thyme.").unwrap();
    let inner = Server::builder("inner", "1").skill(cook.clone());
    let outer = Server::builder("outer", "1").mount("in", inner).build();
    let mut peer = open(&outer, Revision::V2026_07_28).await;
    let listed = names(&mut peer, "resources/list", "resources", "uri").await;
    assert_eq!(listed, ["skill://cook/SKILL.md"]);
    for (file, content) in [("SKILL.md", "Stir."), ("herbs.md", "Thyme.")] {
        let params = json!({ "uri": format!("skill://cook/{file}") });
        let read = peer.expect("resources/read", params).await;
        assert!(read["contents"][0]["text"].as_str().unwrap().ends_with(content));
    }
    let skills = peer.expect("skills/list", json!({})).await;
    assert_eq!(skills["skills"][0]["uri"], "skill://cook/SKILL.md");

    let again = Server::builder("inner", "1").skill(cook.clone());
    let twice = Server::builder("outer", "1").skill(cook).merge(again).try_build();
    assert!(twice.unwrap_err().to_string().contains("another skill `skill://cook/SKILL.md`"));
}

#[test]
fn all_faults_are_told_at_once_and_name_both_sides() {
    let long = "x".repeat(100);
    let lacks_state = Server::builder("broken", "1").tool(tool("till", till));
    let error = bank("outer")
        .merge(bank("other"))
        .mount("a", Server::builder("one", "1").tool(tool("same", async || "")))
        .mount("a", Server::builder("two", "1").tool(tool("same", async || "")))
        .mount(&*long, Server::builder("deep", "1").tool(tool(&*long, async || "")))
        .mount("not legal", Server::builder("odd", "1"))
        .mount("b", lacks_state)
        .try_build()
        .unwrap_err();
    let told = error.to_string();
    for part in [
        "two tools `till`: one of the server itself, one of the merged server `other`",
        "two prompts `greet`: one of the server itself, one of the merged server `other`",
        "two tools `a.same`: one of what is mounted as `a`, one of what is mounted as `a`",
        "which is no name for a tool; use a shorter prefix",
        "Nothing can be mounted as `not legal`",
        "In what is mounted as `b`: `till` takes a `State<",
    ] {
        assert!(told.contains(part), "`{part}` is missing in: {told}");
    }
    assert_eq!(error.faults().len(), 7, "{told}");
    let uris = bank("same").mount("x", bank("same")).try_build().unwrap_err();
    assert!(uris.to_string().contains("two resources `same://till`"), "{uris}");
    assert!(uris.to_string().contains("two templates `same://rooms/{city}`"), "{uris}");
    assert!(uris.to_string().contains("give one of them another URI."), "{uris}");
    assert!(!uris.to_string().contains("another prefix"), "a prefix does not help: {uris}");
}

/// The next message, which must be this notification.
async fn hears(peer: &mut Peer, what: &str) {
    let heard: Value = peer.next().await;
    assert_eq!(heard["method"], format!("notifications/{what}"), "{heard}");
}

#[tokio::test]
async fn changes_inside_reach_the_clients_outside_in_order() {
    let inner = Server::builder("inner", "1").tools_later().prompts_later().resources_later();
    let inner = inner.build();
    let middle = Server::builder("middle", "1").mount("in", &inner).build();
    let outer = Server::builder("outer", "1")
        .tool(tool("own", async || "own"))
        .mount("mid", &middle)
        .merge(&inner)
        .build();
    drop(middle);
    for revision in ERAS {
        let mut peer = open(&outer, revision).await;
        if peer.is_stateless() {
            let all = json!({
                "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
                "resourceSubscriptions": ["test://a"],
            });
            peer.request("subscriptions/listen", json!({ "notifications": all })).await;
            peer.next().await;
        } else {
            peer.expect("resources/subscribe", json!({ "uri": "test://a" })).await;
        }
        assert_eq!(tools(&mut peer).await, ["own"]);
        let state = Arc::new(revision.as_str().to_owned());
        let which = move || {
            let state = Arc::clone(&state);
            async move { (*state).clone() }
        };
        inner.put_tool(tool("new", which)).unwrap();
        // Once per mount that it came through.
        hears(&mut peer, "tools/list_changed").await;
        hears(&mut peer, "tools/list_changed").await;
        assert_eq!(tools(&mut peer).await, ["own", "mid.in.new", "new"]);
        assert_eq!(text(&peer.tool("mid.in.new", json!({})).await), revision.as_str());

        inner.put_prompt(prompt("p", async || "hi".to_owned())).unwrap();
        hears(&mut peer, "prompts/list_changed").await;
        hears(&mut peer, "prompts/list_changed").await;
        inner.changed(Change::Resource("test://a".to_owned())).await;
        hears(&mut peer, "resources/updated").await;
        hears(&mut peer, "resources/updated").await;

        assert!(inner.remove_tool("new") && inner.remove_prompt("p"));
        for list in ["tools", "tools", "prompts", "prompts"] {
            hears(&mut peer, &format!("{list}/list_changed")).await;
        }
        assert_eq!(tools(&mut peer).await, ["own"]);
        assert_eq!(names(&mut peer, "prompts/list", "prompts", "name").await.len(), 0);
    }
}

#[tokio::test]
async fn what_comes_too_late_for_its_name_does_not_replace_what_has_it() {
    let inner = Server::builder("inner", "1").tools_later().build();
    let outer = Server::builder("outer", "1").tool(tool("a", async || "own")).merge(&inner).build();
    let mut peer = open(&outer, Revision::V2025_11_25).await;
    assert_eq!(tools(&mut peer).await, ["a"]);
    inner.put_tool(tool("a", async || "other")).unwrap();
    hears(&mut peer, "tools/list_changed").await;
    assert_eq!(text(&peer.tool("a", json!({})).await), "own");
    inner.remove_tool("a");
    hears(&mut peer, "tools/list_changed").await;
    assert_eq!(text(&peer.tool("a", json!({})).await), "own");
}

#[tokio::test]
async fn what_is_mounted_is_changed_only_where_it_is_at_home() {
    let inner = bank("inner").build();
    let outer = bank("outer").mount("in", &inner).build();
    let error = outer.put_tool(tool("in.till", async || "other")).unwrap_err().to_string();
    assert!(error.contains("The tool `in.till` is that of what is mounted as `in`"), "{error}");
    let error = outer.put_resource(resource("inner://till", "till", async || "other"));
    assert!(error.unwrap_err().to_string().contains("The resource `inner://till`"));
    assert!(!outer.remove_tool("in.till") && !outer.remove_prompt("in.greet"));
    assert!(!outer.remove_resource("inner://till"));
    let mut peer = open(&outer, Revision::V2025_11_25).await;
    assert_eq!(text(&peer.tool("in.till", json!({})).await), "inner");
    outer.put_tool(tool("till", async || "changed")).unwrap();
    assert_eq!(text(&peer.tool("till", json!({})).await), "changed");
    assert!(inner.remove_tool("till") && outer.remove_tool("till"));
    assert_eq!(tools(&mut peer).await, ["ask", "in.ask"]);
}

#[tokio::test]
async fn what_came_too_late_for_its_name_gets_it_once_it_is_free() {
    let make = |name| Server::builder(name, "1").tools_later().build();
    let (one, other) = (make("one"), make("other"));
    let own = Server::builder("middle", "1").tool(tool("a.x", async || "own"));
    let middle = own.mount("a", &one).mount("a", &other).build();
    let outer = Server::builder("outer", "1").mount("mid", &middle).build();
    let mut peer = open(&outer, Revision::V2025_11_25).await;
    let mut answer = async || text(&peer.tool("mid.a.x", json!({})).await).to_owned();
    one.put_tool(tool("x", async || "one")).unwrap();
    other.put_tool(tool("x", async || "other")).unwrap();
    assert_eq!(answer().await, "own");
    assert!(middle.remove_tool("a.x"));
    assert_eq!(answer().await, "one");
    assert!(one.remove_tool("x"));
    assert_eq!(answer().await, "other");
    assert!(other.remove_tool("x"));
    assert!(tools(&mut peer).await.is_empty());
}

#[tokio::test]
async fn an_outer_server_that_is_gone_is_forgotten() {
    let inner = Server::builder("inner", "1").tools_later().build();
    for _ in 0..3 {
        let outer = Server::builder("outer", "1").mount("in", &inner).build();
        let mut peer = open(&outer, Revision::V2025_11_25).await;
        assert!(tools(&mut peer).await.is_empty());
        inner.put_tool(tool("t", async || "t")).unwrap();
        hears(&mut peer, "tools/list_changed").await;
        assert_eq!(tools(&mut peer).await, ["in.t"]);
        peer.hang_up().await;
        drop(outer);
        assert!(inner.remove_tool("t"));
    }
}

#[tokio::test]
async fn many_changes_at_once_leave_both_lists_the_same() {
    let inner = Server::builder("inner", "1").tools_later().build();
    let outer = Server::builder("outer", "1").mount("in", &inner).page_size(1000).build();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let inner = inner.clone();
            std::thread::spawn(move || {
                for at in 0..100 {
                    let name = format!("t{}", (at * 7 + thread) % 13);
                    match (at + thread) % 3 {
                        0 => drop(inner.remove_tool(&name)),
                        _ => inner.put_tool(tool(name, async || "")).unwrap(),
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|it| it.join().unwrap());
    let mut inside = tools(&mut open(&inner, Revision::V2025_11_25).await).await;
    let mut outside = tools(&mut open(&outer, Revision::V2025_11_25).await).await;
    inside.iter_mut().for_each(|it| it.insert_str(0, "in."));
    inside.sort();
    outside.sort();
    assert_eq!(outside, inside);
}
