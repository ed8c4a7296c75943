//! `asks`, `timeout`, `visible` and `resume`, on functions and on methods; and `entry()`.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline::client::Framing;
use trunkline::server::{QuestionKind, ServerBuilder};
use trunkline::store::{Memory, Store};
use trunkline::transport::memory;
use trunkline::{
    Caller, Client, Context, Revision, Server, State, ToolError, prompt, resource, tool, toolbox,
};
use trunkline_testkit::peer::{PATIENCE, Peer};

/// Asks for folders.
#[tool(asks = "roots")]
async fn folders(cx: Context) -> Result<String, ToolError> {
    Ok(format!("{} folders", cx.roots().await?.len()))
}

/// Asks for anything.
#[tool(asks = ["form", "url", "sampling", "sampling_tools"])]
async fn anything() -> String {
    unreachable!("nobody here can be asked")
}

/// Asks for a form.
#[prompt(asks = "form")]
async fn form() -> String {
    unreachable!("nobody here can be asked")
}

/// Asks for a visit.
#[resource("test://visit", asks = "url")]
async fn visit() -> String {
    unreachable!("nobody here can be asked")
}

/// Never ends.
#[tool(timeout = "5ms")]
async fn endless() -> String {
    pending().await
}

/// Never ends.
#[prompt(timeout = "5ms")]
async fn endless_prompt() -> String {
    pending().await
}

/// Never ends.
#[resource("test://endless/{n}", timeout = "5ms")]
async fn endless_resource(n: String) -> String {
    pending::<()>().await;
    n
}

fn is_trusted(caller: &Caller<'_>) -> bool {
    caller.client().is_some_and(|it| it.name == "trusted")
}

/// Is shown to some.
#[tool(visible = is_trusted)]
async fn secret() -> &'static str {
    "It is blue."
}

/// Is shown to some.
#[prompt(visible = self::is_trusted)]
async fn secret_prompt() -> String {
    "It is blue.".to_owned()
}

/// Is shown to some.
#[resource("test://secret", visible = crate::handler_options::is_trusted)]
async fn secret_resource() -> &'static str {
    "It is blue."
}

struct Shelf;

#[toolbox]
impl Shelf {
    fn is_shown(caller: &Caller<'_>) -> bool {
        is_trusted(caller)
    }

    /// Is shown to some, asks, and never ends.
    #[tool(visible = Self::is_shown, timeout = "5ms")]
    async fn hidden(&self) -> String {
        pending().await
    }

    /// Asks for a form.
    #[tool(asks = "form")]
    async fn asking(&self) -> String {
        unreachable!("nobody here can be asked")
    }
}

fn server() -> ServerBuilder {
    Server::builder("test", "1")
        .tool(folders)
        .tool(anything)
        .prompt(form)
        .resource(visit)
        .tool(endless)
        .prompt(endless_prompt)
        .resource(endless_resource)
        .tool(secret)
        .prompt(secret_prompt)
        .resource(secret_resource)
        .toolbox(Shelf)
}

async fn connect(name: &str, builder: ServerBuilder) -> Client {
    let server = builder.protocol(Revision::V2026_07_28).build();
    Client::builder(name, "1").connect_memory(&server).await.unwrap()
}

async fn meet(server: &Server) -> Peer {
    let ((reader, writer), (far_reader, far_writer)) = memory::pair();
    let server = server.clone();
    tokio::spawn(async move { server.serve(far_reader, far_writer).await });
    let mut peer = Peer::new(reader, writer, Framing::Newline, Revision::V2026_07_28);
    peer.open().await;
    peer
}

#[tokio::test]
async fn who_cannot_be_asked_is_told_what_is_missing() {
    let mut peer = meet(&server().build()).await;
    peer.capabilities = json!({});
    for (method, params, required) in [
        ("tools/call", json!({ "name": "folders" }), json!({ "roots": {} })),
        (
            "tools/call",
            json!({ "name": "anything" }),
            json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} } }),
        ),
        ("tools/call", json!({ "name": "asking" }), json!({ "elicitation": { "form": {} } })),
        ("prompts/get", json!({ "name": "form" }), json!({ "elicitation": { "form": {} } })),
        (
            "resources/read",
            json!({ "uri": "test://visit" }),
            json!({ "elicitation": { "url": {} } }),
        ),
    ] {
        let error = peer.call(method, params).await.unwrap_err();
        assert_eq!(error["code"], -32021, "{error}");
        assert_eq!(error["data"]["requiredCapabilities"], required);
    }
}

#[tokio::test]
async fn what_takes_longer_than_its_timeout_is_stopped() {
    let client = connect("trusted", server()).await;
    for name in ["endless", "hidden"] {
        let told = client.call_tool(name, ()).await.unwrap();
        let told = told.content[0].as_text().unwrap_or_default();
        let late = format!("`{name}` took longer than 5ms and was stopped.");
        assert!(told.starts_with(&late), "{told}");
    }
    let error = client.get_prompt("endless_prompt", [("", ""); 0]).await.unwrap_err();
    assert!(format!("{error:?}").contains("timeout"), "{error:?}");
    let error = client.read_resource("test://endless/1").await.unwrap_err();
    assert!(format!("{error:?}").contains("timeout"), "{error:?}");
}

#[tokio::test]
async fn what_is_not_visible_is_not_there() {
    for (name, count) in [("trusted", 1), ("other", 0)] {
        let client = connect(name, server()).await;
        let tools = client.list_tools().await.unwrap();
        for tool in ["secret", "hidden"] {
            assert_eq!(tools.iter().filter(|it| it.name == tool).count(), count, "{name} {tool}");
        }
        let prompts = client.list_prompts().await.unwrap();
        assert_eq!(prompts.iter().filter(|it| it.name == "secret_prompt").count(), count);
        let resources = client.list_resources().await.unwrap();
        assert_eq!(resources.iter().filter(|it| it.uri == "test://secret").count(), count);
        assert_eq!(client.call_tool("secret", ()).await.is_ok(), count == 1);
    }
}

/// Waits for the end of the world, or finds that it has begun before.
#[tool(task = "required", resume)]
async fn wait(begun: State<Arc<AtomicU32>>) -> &'static str {
    if begun.fetch_add(1, SeqCst) == 0 {
        pending::<()>().await;
    }
    "Done."
}

/// The same, but nobody may begin it again.
#[tool(task = "required", resume = false)]
async fn wait_once(begun: State<Arc<AtomicU32>>) -> &'static str {
    begun.fetch_add(1, SeqCst);
    pending().await
}

#[tokio::test]
async fn a_task_is_begun_again_if_it_may_be() {
    for (name, status) in [("wait", "completed"), ("wait_once", "failed")] {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let begun = Arc::new(AtomicU32::new(0));
        let server = || {
            Server::builder("test", "1")
                .state(Arc::clone(&begun))
                .task_store(Arc::clone(&store))
                .take_over_after(Duration::from_millis(60))
                .tool(wait)
                .tool(wait_once)
                .build()
        };
        let first = server();
        let mut before = meet(&first).await;
        before.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        let created = before.expect("tools/call", json!({ "name": name })).await;
        let begins = async {
            while begun.load(SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, begins).await.expect("it begins in time");
        drop((before, first));

        let mut after = meet(&server()).await;
        after.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        let over = async {
            loop {
                let task = after.expect("tasks/get", json!({ "taskId": created["taskId"] })).await;
                if task["status"] != "working" {
                    return task;
                }
                tokio::task::yield_now().await;
            }
        };
        let task: Value = tokio::time::timeout(PATIENCE, over).await.expect("it is over in time");
        assert_eq!(task["status"], status, "{task}");
    }
}

#[tokio::test]
async fn an_entry_can_be_told_more_without_a_trait() {
    let builder = Server::builder("test", "1")
        .tool(secret::entry().title("Secret").visible(|_| true).asks(QuestionKind::Form))
        .prompt(secret_prompt::entry().title("Secret").visible(|_| true))
        .resource(secret_resource::entry().title("Secret").visible(|_| true))
        .resource(endless_resource::entry().title("Endless"));
    let client = connect("other", builder).await;
    let titles = [
        client.list_tools().await.unwrap()[0].title.clone(),
        client.list_prompts().await.unwrap()[0].title.clone(),
        client.list_resources().await.unwrap()[0].title.clone(),
        client.list_resource_templates().await.unwrap()[0].title.clone(),
    ];
    let [secrets @ .., last] = titles.each_ref().map(Option::as_deref);
    assert_eq!((secrets, last), ([Some("Secret"); 3], Some("Endless")));
}
