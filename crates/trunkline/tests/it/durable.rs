//! Tasks that outlive their process, in both generations. Dropping a server stands for the end of
//! its process; the store keeps its tasks.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Request};
use serde_json::{Value, json};
use tower_service::Service;
use trunkline::model::TaskSupport;
use trunkline::server::{HttpService, ServerBuilder, Task};
use trunkline::store::{Folder, Memory, Store};
use trunkline::{Context, Principal, Revision, Server, ToolError, tool};
use trunkline_testkit::http::Guest;
use trunkline_testkit::peer::Peer;

use crate::server::{ERAS, at_once, builder, open, soon, text};

const CORE: Revision = Revision::V2025_11_25;
const EXTENSION: Revision = Revision::V2026_07_28;

/// Effects outside all servers.
#[derive(Default)]
struct Effects {
    payments: AtomicU32,
    begun: AtomicU32,
}

/// Pays once, then asks, then waits forever if told to.
fn server(store: &Arc<dyn Store>, effects: &Arc<Effects>, forever: bool) -> Server {
    let (paying, waiting) = (Arc::clone(effects), Arc::clone(effects));
    let pay = move |cx: Context| {
        let effects = Arc::clone(&paying);
        async move {
            effects.begun.fetch_add(1, SeqCst);
            let number = cx
                .once("pay", async || Ok::<_, ToolError>(effects.payments.fetch_add(1, SeqCst) + 1))
                .await?;
            let name = cx.ask::<String>("Who pays?").await?.accepted()?;
            if forever {
                pending::<()>().await;
            }
            Ok::<_, ToolError>(format!("{name} made payment {number}."))
        }
    };
    let wait = move || {
        let effects = Arc::clone(&waiting);
        async move {
            effects.begun.fetch_add(1, SeqCst);
            if forever {
                pending::<()>().await;
            }
            "Done."
        }
    };
    with_store(builder().tasks(at_once()), store)
        .tool(tool("pay", pay).task(TaskSupport::Required).resume())
        .tool(tool("wait", wait).task(TaskSupport::Required))
        .build()
}

fn with_store(builder: ServerBuilder, store: &Arc<dyn Store>) -> ServerBuilder {
    builder.task_store(Arc::clone(store)).take_over_after(Duration::from_millis(60))
}

async fn peer(server: &Server, revision: Revision) -> Peer {
    let mut peer = open(server, revision).await;
    if peer.is_stateless() {
        peer.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    }
    peer
}

async fn start(peer: &mut Peer, name: &str) -> Value {
    let mut params = json!({ "name": name });
    if !peer.is_stateless() {
        params["task"] = json!({});
    }
    let created = peer.expect("tools/call", params).await;
    let task = if peer.is_stateless() { &created } else { &created["task"] };
    task["taskId"].clone()
}

async fn until(peer: &mut Peer, id: &Value, status: &str) -> Value {
    soon(async {
        loop {
            let task = peer.expect("tasks/get", json!({ "taskId": id })).await;
            if task["status"] == status {
                return task;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

fn answer(id: &Value, name: &str) -> Value {
    let answer = json!({ "action": "accept", "content": { "value": name } });
    json!({ "taskId": id, "inputResponses": { "q1": answer } })
}

#[tokio::test]
async fn what_a_task_came_to_is_there_after_its_process() {
    for revision in ERAS {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let effects = Arc::default();
        let first = server(&store, &effects, false);
        let mut before = peer(&first, revision).await;
        let id = start(&mut before, "wait").await;
        until(&mut before, &id, "completed").await;
        drop((before, first));

        let second = server(&store, &effects, false);
        let mut after = peer(&second, revision).await;
        let task = after.expect("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["status"], "completed", "{revision}");
        match revision {
            CORE => {
                let result = after.expect("tasks/result", json!({ "taskId": id })).await;
                assert_eq!(text(&result), "Done.");
                let list = after.expect("tasks/list", json!({})).await;
                assert_eq!(list["tasks"][0]["taskId"], id);
            }
            _ => assert_eq!(text(&task["result"]), "Done."),
        }
        assert_eq!(effects.begun.load(SeqCst), 1, "it is not begun again");
    }
}

#[tokio::test]
async fn a_call_that_is_answered_at_once_leaves_nothing_in_the_store() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let pay = async |cx: Context| cx.once("pay", async || Ok::<_, ToolError>(7)).await.map(drop);
    let wait = async || pending::<()>().await;
    let server = with_store(builder(), &store)
        .tool(tool("pay", pay).task(TaskSupport::Required).resume())
        .tool(tool("wait", wait).task(TaskSupport::Required))
        .build();
    let mut peer = peer(&server, EXTENSION).await;
    let paid = peer.expect("tools/call", json!({ "name": "pay" })).await;
    assert_eq!(paid["resultType"], "complete", "{paid}");
    let kept = async || store.scan("task/", None, 10).await.unwrap().items.len();
    assert_eq!(kept().await, 0);
    start(&mut peer, "wait").await;
    assert_eq!(kept().await, 1, "a task that somebody knows of is kept");
}

#[tokio::test]
async fn a_task_goes_on_elsewhere_and_pays_once() {
    let place = Place::new("goes-on");
    let in_memory: Arc<dyn Store> = Arc::new(Memory::default());
    for reopen in [None, Some(&place)] {
        let store = async || match reopen {
            None => Arc::clone(&in_memory),
            Some(place) => place.open().await,
        };
        let effects = Arc::<Effects>::default();
        let first = server(&store().await, &effects, true);
        let mut before = peer(&first, EXTENSION).await;
        let id = start(&mut before, "pay").await;
        let asked = until(&mut before, &id, "input_required").await;
        drop((before, first));

        let second = server(&store().await, &effects, true);
        let mut after = peer(&second, EXTENSION).await;
        let again = until(&mut after, &id, "input_required").await;
        assert_eq!(again["inputRequests"], asked["inputRequests"], "the question is the same");
        // It asks again only once it runs again.
        soon(async {
            while effects.begun.load(SeqCst) < 2 {
                after.expect("tasks/get", json!({ "taskId": id })).await;
            }
        })
        .await;
        until(&mut after, &id, "input_required").await;
        after.expect("tasks/update", answer(&id, "Ada")).await;
        until(&mut after, &id, "working").await;
        drop((after, second));

        let third = server(&store().await, &effects, false);
        let mut last = peer(&third, EXTENSION).await;
        let done = until(&mut last, &id, "completed").await;
        assert_eq!(text(&done["result"]), "Ada made payment 1.");
        assert_eq!(effects.begun.load(SeqCst), 3, "once by each process");
        assert_eq!(effects.payments.load(SeqCst), 1);
    }
}

#[tokio::test]
async fn a_task_of_the_first_generation_goes_on_too() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let effects = Arc::<Effects>::default();
    let first = server(&store, &effects, true);
    let mut before = peer(&first, CORE).await;
    let id = start(&mut before, "pay").await;
    // Its question is a request on the wire, and is answered there.
    before.request("tasks/result", json!({ "taskId": id })).await;
    soon(async {
        while before.rounds.is_empty() {
            before.expect("tasks/get", json!({ "taskId": id })).await;
        }
    })
    .await;
    until(&mut before, &id, "working").await;
    drop((before, first));

    let second = server(&store, &effects, false);
    let mut after = peer(&second, CORE).await;
    let result = soon(after.expect("tasks/result", json!({ "taskId": id }))).await;
    assert_eq!(text(&result), "Ada made payment 1.");
    assert_eq!(effects.payments.load(SeqCst), 1);
}

#[tokio::test]
async fn what_cannot_be_begun_again_has_failed() {
    for revision in ERAS {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let effects = Arc::<Effects>::default();
        let first = server(&store, &effects, true);
        let mut before = peer(&first, revision).await;
        let id = start(&mut before, "wait").await;
        drop((before, first));

        let second = server(&store, &effects, true);
        let mut after = peer(&second, revision).await;
        let task = until(&mut after, &id, "failed").await;
        let why = "The server ended while the task ran. What it has done is not known.";
        assert_eq!(task["statusMessage"], why, "{revision}");
        assert_eq!(effects.begun.load(SeqCst), 1, "{revision}");
    }
}

#[tokio::test]
async fn while_its_process_lives_a_task_is_only_looked_at() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let effects = Arc::<Effects>::default();
    let first = with_store(builder(), &store).take_over_after(Duration::from_secs(600));
    let endless = async || pending::<()>().await;
    let first = first.tool(tool("endless", endless).task(TaskSupport::Required).resume()).build();
    let mut here = peer(&first, EXTENSION).await;
    let id = start(&mut here, "endless").await;

    let second = server(&store, &effects, false);
    let mut there = peer(&second, EXTENSION).await;
    let task = there.expect("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(task["status"], "working");
    let refused = there.call("tasks/cancel", json!({ "taskId": id })).await.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("another process"), "{refused}");
    here.expect("tasks/cancel", json!({ "taskId": id })).await;
    until(&mut there, &id, "cancelled").await;
}

#[tokio::test]
async fn a_tool_that_returns_a_task_is_one_where_the_caller_has_tasks() {
    async fn render(cx: Context) -> Result<Task<String>, ToolError> {
        let title = cx.ask::<String>("Which film?").await?.accepted()?;
        if title == "none" {
            return Err(ToolError::new("There is no such film."));
        }
        Ok(Task::new(async move |cx: Context| {
            cx.progress(1.0, 2.0).await;
            Ok(format!("{title}, the film."))
        }))
    }
    let server = builder().tool(tool("render", render)).build();
    for revision in Revision::ALL.into_iter().filter(|it| *it >= Revision::V2025_06_18) {
        let mut plain = open(&server, revision).await;
        assert_eq!(text(&plain.tool("render", json!({})).await), "Ada, the film.", "{revision}");
    }
    let mut peer = peer(&server, EXTENSION).await;
    let created = peer.tool("render", json!({})).await;
    assert_eq!(created["resultType"], "task", "{created}");
    let done = until(&mut peer, &created["taskId"], "completed").await;
    assert_eq!(text(&done["result"]), "Ada, the film.");
    assert_eq!(peer.rounds, [["Which film?"]], "the question was asked before, and once");
}

/// One user's access to a server.
struct As {
    service: HttpService,
    guest: Guest,
    name: &'static str,
}

impl As {
    async fn call(&mut self, method: &str, params: Value) -> Value {
        let message = self.guest.prepare(method, params);
        let mut request = Request::post(format!("http://{}/mcp", self.guest.address));
        for (name, value) in self.guest.headers(&message) {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request = request.header(name, HeaderValue::from_str(&value).unwrap());
        }
        let principal = Principal::new(self.name).issued_by("https://id.example");
        let request = request.extension(principal).body(message.to_string()).unwrap();
        let response = self.service.call(request).await.unwrap();
        crate::http_service::whole(response).await.1
    }
}

#[tokio::test]
async fn nobody_sees_the_tasks_of_somebody_else() {
    let endless = async || pending::<()>().await;
    let server = builder().tool(tool("endless", endless).task(TaskSupport::Required)).build();
    let service = server.http().service();
    let mut guest = Guest::new("127.0.0.1:1".parse().unwrap(), EXTENSION);
    guest.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    let mut ann = As { service: service.clone(), guest: guest.clone(), name: "ann" };
    let mut bob = As { service, guest, name: "bob" };
    let created = ann.call("tools/call", json!({ "name": "endless" })).await;
    let id = created["result"]["taskId"].clone();
    assert!(id.is_string(), "{created}");
    let unknown = bob.call("tasks/get", json!({ "taskId": "none" })).await;
    for method in ["tasks/get", "tasks/cancel"] {
        let refused = bob.call(method, json!({ "taskId": id })).await;
        assert_eq!(refused["error"], unknown["error"], "{method}");
    }
    let refused = bob.call("tasks/update", answer(&id, "Bob")).await;
    assert_eq!(refused["error"], unknown["error"]);
    let task = ann.call("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(task["result"]["status"], "working");
}

/// A temporary folder of the test.
struct Place(std::path::PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("trunkline-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(Folder::open(&self.0).await.expect("the folder can be made"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
