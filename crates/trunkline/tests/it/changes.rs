//! Tools, prompts and resources that change while clients of every revision listen.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::server::ServerBuilder;
use trunkline::{
    Args, Context, Revision, Server, State, ToolError, prompt, resource, template, tool,
};
use trunkline_testkit::http::{Guest, Line};
use trunkline_testkit::peer::Peer;

use crate::faults::{Gate, Side, Transport, transports_of, wait};
use crate::http::House;
use crate::server::{ERAS, builder, open, soon, text};

const NEWEST: Revision = Revision::V2026_07_28;
const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";

/// A listener, in its revision's way.
enum TestListener {
    Pipes(Box<Peer>),
    /// With the server that it listens to.
    Http(Box<Guest>, Line, #[allow(dead_code)] House),
}

impl TestListener {
    async fn open(server: &Server, transport: Transport, revision: Revision) -> Self {
        let filter = json!({ "notifications": {
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        } });
        match Side::of(server, transport, revision).await {
            Side::Pipes(mut peer) => {
                if revision == NEWEST {
                    peer.request("subscriptions/listen", filter).await;
                    let first = peer.next().await;
                    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
                } else {
                    // By then the server has received `notifications/initialized`.
                    peer.expect("ping", json!({})).await;
                }
                Self::Pipes(peer)
            }
            Side::Http(mut guest, house) => {
                let line = match revision {
                    NEWEST => {
                        let asked = guest.prepare("subscriptions/listen", filter);
                        let (mut line, _) = guest.post(&asked).await;
                        let (_, first) = line.message().await.unwrap();
                        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
                        line
                    }
                    _ => guest.get(None).await.0,
                };
                Self::Http(guest, line, house)
            }
        }
    }

    /// The next notification.
    async fn news(&mut self) -> String {
        let message = match self {
            Self::Pipes(peer) => peer.next().await,
            Self::Http(guest, line, _) => {
                let (_, message) = soon(line.message()).await.expect("the stream goes on");
                guest.judge(&message, &Value::Null);
                message
            }
        };
        message["method"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned()
    }

    async fn names(&mut self, method: &str, list: &str) -> Vec<String> {
        let result = match self {
            Self::Pipes(peer) => peer.expect(method, json!({})).await,
            Self::Http(guest, ..) => guest.expect(method, json!({})).await,
        };
        let items = result[list].as_array().unwrap();
        items.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn tools(&mut self) -> Vec<String> {
        self.names("tools/list", "tools").await
    }
}

async fn hi() -> String {
    "hi".to_owned()
}

fn empty() -> ServerBuilder {
    builder().tools_later().prompts_later().resources_later()
}

#[tokio::test]
async fn every_change_reaches_every_listener_and_its_list_has_it() {
    for (transport, revision) in transports_of(&Revision::ALL) {
        let server = empty().build();
        let mut listener = TestListener::open(&server, transport, revision).await;
        for round in 0..2 {
            server.put_tool(tool("a", hi)).unwrap();
            assert_eq!(listener.news().await, TOOLS, "{transport:?} {revision}");
            assert_eq!(listener.tools().await, ["a"]);
            server.put_prompt(prompt("b", hi)).unwrap();
            assert_eq!(listener.news().await, PROMPTS);
            assert_eq!(listener.names("prompts/list", "prompts").await, ["b"]);
            server.put_resource(resource("test://c", "c", hi)).unwrap();
            assert_eq!(listener.news().await, RESOURCES);
            assert_eq!(listener.names("resources/list", "resources").await, ["c"]);
            server.put_resource(template("test://d/{n}", "d", hi)).unwrap();
            assert_eq!(listener.news().await, RESOURCES);
            let templates = "resources/templates/list";
            assert_eq!(listener.names(templates, "resourceTemplates").await, ["d"]);
            // Replaces the one of the same name or URI.
            server.put_resource(resource("test://c", "e", hi)).unwrap();
            assert_eq!(listener.news().await, RESOURCES);
            assert_eq!(listener.names("resources/list", "resources").await, ["e"], "round {round}");
            assert!(server.remove_tool("a"));
            assert_eq!(listener.news().await, TOOLS);
            assert_eq!(listener.tools().await, [""; 0]);
            assert!(server.remove_prompt("b"));
            assert_eq!(listener.news().await, PROMPTS);
            assert!(server.remove_resource("test://c"));
            assert_eq!(listener.news().await, RESOURCES);
            assert!(server.remove_resource("test://d/{n}"));
            assert_eq!(listener.news().await, RESOURCES);
            assert_eq!(listener.names(templates, "resourceTemplates").await, [""; 0]);
            // Removing what does not exist is not a change.
            assert!(!server.remove_tool("a") && !server.remove_resource("test://c"));
        }
    }
}

#[tokio::test]
async fn ten_clients_of_all_revisions_hear_the_same_in_the_same_order() {
    let server = empty().build();
    let mut listeners = Vec::new();
    for (transport, revision) in transports_of(&Revision::ALL) {
        listeners.push(TestListener::open(&server, transport, revision).await);
    }
    listeners.push(TestListener::open(&server, Transport::Http, NEWEST).await);
    assert_eq!(listeners.len(), 10);
    let mut silent = open(&server, NEWEST).await;
    let mut expected = Vec::new();
    for at in 0..5 {
        server.put_tool(tool(format!("tool-{at}"), hi)).unwrap();
        server.put_resource(resource(format!("test://{at}"), "r", hi)).unwrap();
        server.put_prompt(prompt(format!("prompt-{at}"), hi)).unwrap();
        server.put_tool(tool("same", hi)).unwrap();
        expected.extend([TOOLS, RESOURCES, PROMPTS, TOOLS]);
        for listener in &mut listeners {
            for change in &expected[expected.len() - 4..] {
                assert_eq!(listener.news().await, *change);
            }
            assert_eq!(listener.tools().await.len(), at + 2);
        }
    }
    let before = silent.heard.len();
    assert_eq!(silent.expect("tools/list", json!({})).await["tools"].as_array().unwrap().len(), 6);
    assert_eq!(silent.heard.len(), before + 1, "who did not ask hears nothing");
}

#[tokio::test]
async fn a_filter_lets_through_what_was_asked_for() {
    let server = empty().build();
    for wanted in ["toolsListChanged", "promptsListChanged", "resourcesListChanged"] {
        let mut peer = open(&server, NEWEST).await;
        let filter = json!({ "notifications": { wanted: true } });
        let id = peer.request("subscriptions/listen", filter).await;
        peer.next().await;
        server.put_tool(tool("a", hi)).unwrap();
        server.put_prompt(prompt("b", hi)).unwrap();
        server.put_resource(resource("test://c", "c", hi)).unwrap();
        let news = peer.next().await;
        assert!(news["method"].as_str().unwrap().contains(&wanted[..5]), "{wanted} brought {news}");
        assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
        let before = peer.heard.len();
        peer.expect("tools/list", json!({})).await;
        assert_eq!(peer.heard.len(), before + 1, "one is enough");
        // After the subscription is cancelled, nothing arrives.
        peer.cancel(&id).await;
        peer.expect("tools/list", json!({})).await;
        server.put_tool(tool("a", hi)).unwrap();
        let before = peer.heard.len();
        peer.expect("tools/list", json!({})).await;
        assert_eq!(peer.heard.len(), before + 1, "{wanted}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_changes_never_loses_the_last_state() {
    let server = empty().build();
    let mut listeners = Vec::new();
    for (transport, revision) in transports_of(&Revision::ALL) {
        listeners.push(TestListener::open(&server, transport, revision).await);
    }
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let server = server.clone();
            std::thread::spawn(move || {
                for at in 0..250 {
                    server.put_tool(tool(format!("tool-{writer}-{}", at % 7), hi)).unwrap();
                    assert!(server.remove_tool(&format!("tool-{writer}-{}", at % 7)));
                }
                server.put_tool(tool(format!("last-{writer}"), hi)).unwrap();
            })
        })
        .collect();
    for listener in &mut listeners {
        let mut seen = BTreeSet::new();
        let mut told = 0;
        while seen.len() < 4 {
            assert_eq!(listener.news().await, TOOLS);
            told += 1;
            let names = listener.tools().await;
            seen = names.into_iter().filter(|it| it.starts_with("last-")).collect();
        }
        assert!(told <= 2004, "{told}");
    }
    for writer in writers {
        writer.join().unwrap();
    }
    for listener in &mut listeners {
        assert_eq!(listener.tools().await.len(), 4, "nothing else is left");
    }
}

#[tokio::test]
async fn a_call_under_way_outlives_its_tool() {
    for (transport, revision) in transports_of(&ERAS) {
        let gate = Gate::new();
        let server = builder()
            .shared_state(Arc::clone(&gate))
            .tool(tool("wait", wait))
            .prompt(prompt("wait", async |gate: State<Gate>| wait(gate).await.to_owned()))
            .resource(resource("test://wait", "wait", wait))
            .build();
        let mut side = Side::of(&server, transport, revision).await;
        let mut begun = Vec::new();
        for (method, params) in [
            ("tools/call", json!({ "name": "wait" })),
            ("prompts/get", json!({ "name": "wait" })),
            ("resources/read", json!({ "uri": "test://wait" })),
            ("tools/call", json!({ "name": "wait" })),
        ] {
            begun.push(side.begin(method, params).await);
            gate.pass(&gate.entered).await;
        }
        server.put_tool(tool("wait", async || "another")).unwrap();
        assert!(server.remove_prompt("wait") && server.remove_resource("test://wait"));
        assert_eq!(text(&side.tool("wait", json!({})).await), "another");
        assert!(server.remove_tool("wait"));
        let error = side.call("tools/call", json!({ "name": "wait" })).await.unwrap_err();
        assert_eq!(error["message"], "There is no tool `wait`.");
        assert_eq!(gate.dropped.available_permits(), 0, "they are still at it");
        gate.open.add_permits(begun.len());
        for begun in begun {
            let result = side.answer_to(begun).await.unwrap();
            assert!(result.to_string().contains("waited"), "{transport:?} {revision}: {result}");
        }
    }
}

#[tokio::test]
async fn a_cursor_outlives_changes() {
    for (transport, revision) in transports_of(&Revision::ALL) {
        let mut server = builder().page_size(2);
        for name in ["a", "b", "c", "d", "e"] {
            server = server.tool(tool(name, hi));
        }
        let server = server.build();
        let mut side = Side::of(&server, transport, revision).await;
        let first = side.call("tools/list", json!({})).await.unwrap();
        let names = |page: &Value| -> Vec<String> {
            let tools = page["tools"].as_array().unwrap();
            tools.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&first), ["a", "b"]);
        assert!(server.remove_tool("a") && server.remove_tool("b") && server.remove_tool("c"));
        server.put_tool(tool("f", hi)).unwrap();
        let params = json!({ "cursor": first["nextCursor"] });
        let second = side.call("tools/list", params).await.unwrap();
        assert_eq!(names(&second), ["d", "e"], "{transport:?} {revision}");
        let params = json!({ "cursor": second["nextCursor"] });
        let third = side.call("tools/list", params).await.unwrap();
        assert_eq!((names(&third), third.get("nextCursor")), (vec!["f".to_owned()], None));
    }
}

#[tokio::test]
async fn a_handler_changes_its_own_server_and_its_caller_hears_of_it() {
    async fn grow(State(server): State<std::sync::OnceLock<Server>>) -> Result<String, ToolError> {
        server.get().unwrap().put_tool(tool("grown", hi))?;
        Ok("done".to_owned())
    }
    for (transport, revision) in transports_of(&Revision::ALL) {
        let own = Arc::new(std::sync::OnceLock::new());
        let server = builder().shared_state(Arc::clone(&own)).tool(tool("grow", grow)).build();
        own.set(server.clone()).unwrap();
        let mut listener = TestListener::open(&server, transport, revision).await;
        let grown = match &mut listener {
            TestListener::Pipes(peer) => {
                let id = peer.request("tools/call", json!({ "name": "grow" })).await;
                assert_eq!(peer.next().await["method"], TOOLS, "before the answer: {revision}");
                text(&peer.answer_to(&id).await.unwrap()).to_owned()
            }
            TestListener::Http(guest, line, _) => {
                let grown = guest.tool("grow", json!({})).await;
                assert_eq!(soon(line.message()).await.unwrap().1["method"], TOOLS);
                grown
            }
        };
        assert_eq!(grown, "done");
        assert_eq!(listener.tools().await, ["grow", "grown"]);
        // It belongs to the server itself.
        assert!(server.remove_tool("grown"));
    }
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Name {
    name: String,
}

#[tokio::test]
async fn what_cannot_be_added_is_refused_with_a_sentence_and_nobody_is_told() {
    let server = builder().tool(tool("a", hi)).build();
    let mut peer = open(&server, Revision::V2025_11_25).await;
    let completes = |it: Args<Name>| async move { it.0.name };
    let faults = [
        server.put_prompt(prompt("p", hi)),
        server.put_resource(resource("test://r", "r", hi)),
        server.put_resource(template("test://{", "r", hi)),
        server.put_tool(tool("a b", hi)),
        server.put_tool(tool("b", async |_: State<Gate>| "no")),
        server.put_tool(tool("b", hi).task(trunkline::model::TaskSupport::Optional)),
        empty().build().put_prompt(prompt("p", completes).complete("name", |_, _| Vec::new())),
    ];
    for (fault, expected) in faults.into_iter().zip([
        "`prompts_later()`",
        "`resources_later()`",
        "cannot be used",
        "needs another name",
        "add `.state(..)`",
        "Begin with a tool that does.",
        "Begin with something that does.",
    ]) {
        let why = fault.unwrap_err().to_string();
        assert!(why.contains(expected), "{expected} is not in: {why}");
    }
    let before = peer.heard.len();
    let list = peer.expect("tools/list", json!({})).await;
    assert_eq!(list["tools"].as_array().unwrap().len(), 1);
    assert_eq!(peer.heard.len(), before + 1);
}

#[tokio::test]
async fn a_question_goes_on_with_the_tool_that_is_there_now() {
    async fn ask(cx: Context) -> Result<String, ToolError> {
        Ok(format!("old: {}", cx.roots().await?.len()))
    }
    async fn ask_anew(cx: Context) -> Result<String, ToolError> {
        Ok(format!("new: {}", cx.roots().await?.len()))
    }
    for revision in ERAS {
        let server = builder().tool(tool("ask", ask)).build();
        let mut peer = open(&server, revision).await;
        let other = server.clone();
        peer.host = Box::new(move |_, _| {
            other.put_tool(tool("ask", ask_anew)).unwrap();
            Ok(json!({ "roots": [] }))
        });
        // A call of one request keeps its tool; the second request of a two-round call gets the new
        // one.
        let expected = if revision == NEWEST { "new: 0" } else { "old: 0" };
        assert_eq!(text(&peer.tool("ask", json!({})).await), expected, "{revision}");
    }
}
