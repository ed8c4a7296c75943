//! Tasks in a store that is slow, fails, or is shared with a process that is wrongly believed dead.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use trunkline::model::TaskSupport;
use trunkline::server::{ServerBuilder, ToolEntry};
use trunkline::store::{
    Capabilities, Cursor, Entry, Expect, Lease, Listener, Memory, Page, Pending, Store, StoreError,
    Swap, Ttl, Version,
};
use trunkline::{Context, Revision, Server, ToolError, tool};
use trunkline_testkit::peer::Peer;

use crate::server::{ERAS, builder, counted, open, soon, text, until};

const EXTENSION: Revision = Revision::V2026_07_28;

/// A store that can block its callers. An operation that began happens, but its caller does not
/// learn so while the store is blocked: like a disk, whose writes do not stop when their caller is
/// cancelled.
struct BlockingStore {
    store: Arc<Memory>,
    open: watch::Sender<bool>,
    /// Notified whenever a caller blocks.
    waits: Notify,
    /// How many of the next writes fail.
    failures: AtomicU32,
    /// Whether heartbeats are lost.
    deaf: AtomicBool,
}

impl BlockingStore {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            store: Arc::default(),
            open: watch::Sender::new(true),
            waits: Notify::new(),
            failures: AtomicU32::new(0),
            deaf: AtomicBool::new(false),
        })
    }

    fn shut(&self) {
        self.open.send_replace(false);
    }

    fn open(&self) {
        self.open.send_replace(true);
    }

    async fn pass<T>(&self, result: T) -> T {
        let mut door = self.open.subscribe();
        if !*door.borrow() {
            self.waits.notify_one();
        }
        door.wait_for(|is_open| *is_open).await.expect("the door is there");
        result
    }

    fn hears(&self) -> Result<(), StoreError> {
        match self.deaf.load(SeqCst) {
            true => Err(StoreError::Unavailable("nobody hears".to_owned())),
            false => Ok(()),
        }
    }

    async fn status(&self, id: &Value) -> Value {
        let key = format!("task/{}", id.as_str().expect("an id is a text"));
        let kept = self.store.get(&key).await.unwrap().expect("it is kept");
        let kept: Value = serde_json::from_slice(&kept.value).unwrap();
        kept["task"]["task"]["status"].clone()
    }
}

impl Store for BlockingStore {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        Box::pin(async move { self.pass(self.store.get(key).await).await })
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a [u8], ttl: Ttl) -> Pending<'a, Version> {
        self.store.put(key, value, ttl)
    }

    fn swap<'a>(&'a self, key: &'a str, old: Expect, new: &'a [u8], ttl: Ttl) -> Pending<'a, Swap> {
        Box::pin(async move {
            let fails = self.failures.fetch_update(SeqCst, SeqCst, |it| it.checked_sub(1));
            if fails.is_ok() {
                return Err(StoreError::Unavailable("it is being mended".to_owned()));
            }
            self.pass(self.store.swap(key, old, new, ttl).await).await
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, bool> {
        self.store.delete(key)
    }

    fn count<'a>(&'a self, key: &'a str, by: i64, ttl: Ttl) -> Pending<'a, i64> {
        self.store.count(key, by, ttl)
    }

    fn lease<'a>(&'a self, name: &'a str, ttl: Duration) -> Pending<'a, Option<Lease>> {
        Box::pin(async move {
            self.hears()?;
            self.store.lease(name, ttl).await
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Pending<'a, bool> {
        Box::pin(async move {
            self.hears()?;
            self.store.renew(lease, ttl).await
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, bool> {
        self.store.release(lease)
    }

    fn scan<'a>(&'a self, prefix: &'a str, after: Cursor<'a>, limit: usize) -> Pending<'a, Page> {
        self.store.scan(prefix, after, limit)
    }

    fn publish<'a>(&'a self, channel: &'a str, message: &'a [u8]) -> Pending<'a, ()> {
        self.store.publish(channel, message)
    }

    fn listen<'a>(&'a self, channel: &'a str) -> Pending<'a, Listener> {
        self.store.listen(channel)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

fn over(store: Arc<dyn Store>) -> ServerBuilder {
    builder().task_store(store).take_over_after(Duration::from_millis(60))
}

fn lasting(entry: ToolEntry) -> ToolEntry {
    entry.task(TaskSupport::Required).resume()
}

async fn greet(cx: Context) -> Result<String, ToolError> {
    let first = cx.ask::<String>("First name?").await?.accepted()?;
    let last = cx.ask::<String>("Last name?").await?.accepted()?;
    Ok(format!("Hello, {first} {last}!"))
}

async fn peer(server: &Server) -> Peer {
    let mut peer = open(server, EXTENSION).await;
    peer.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    peer
}

async fn start(peer: &mut Peer, name: &str) -> Value {
    peer.expect("tools/call", json!({ "name": name })).await["taskId"].clone()
}

async fn task_when(peer: &mut Peer, id: &Value, is: impl Fn(&Value) -> bool) -> Value {
    soon(async {
        loop {
            let task = peer.expect("tasks/get", json!({ "taskId": id })).await;
            if is(&task) {
                return task;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

/// A task that has asked its first question.
async fn greeting(store: &Arc<BlockingStore>) -> (Server, Peer, Value) {
    let server = over(store.clone()).tool(lasting(tool("greet", greet))).build();
    let mut peer = peer(&server).await;
    let id = start(&mut peer, "greet").await;
    task_when(&mut peer, &id, |it| it["status"] == "input_required").await;
    (server, peer, id)
}

/// The second question comes, and its answer ends the task.
async fn is_answered_again(peer: &mut Peer, id: &Value) {
    task_when(peer, id, |it| it["inputRequests"].get("q2").is_some()).await;
    peer.expect("tasks/update", answer(id, "q2", "Lovelace")).await;
    let task = task_when(peer, id, |it| it["status"] == "completed").await;
    assert_eq!(text(&task["result"]), "Hello, Ada Lovelace!");
}

/// A tool that is done when it is let.
fn waiting(go: &Arc<Notify>) -> ToolEntry {
    let goes = Arc::clone(go);
    let wait = move || {
        let goes = Arc::clone(&goes);
        async move {
            goes.notified().await;
            "Done."
        }
    };
    tool("wait", wait)
}

fn answer(id: &Value, key: &str, name: &str) -> Value {
    let answer = json!({ "action": "accept", "content": { "value": name } });
    json!({ "taskId": id, "inputResponses": { key: answer } })
}

#[tokio::test]
async fn a_task_that_is_cancelled_in_the_middle_of_a_write_is_cancelled_for_good() {
    let store = BlockingStore::new();
    let (begun, begins) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, told) = (Arc::clone(&begun), Arc::clone(&begins));
    let pay = move |cx: Context| {
        let (tell, told) = (Arc::clone(&tell), Arc::clone(&told));
        async move {
            tell.notify_one();
            told.notified().await;
            cx.once("pay", async || Ok::<_, ToolError>(1)).await?;
            pending::<()>().await;
            Ok::<_, ToolError>("Paid.")
        }
    };
    let server = over(store.clone()).tool(lasting(tool("pay", pay))).build();
    let mut peer = peer(&server).await;
    let id = start(&mut peer, "pay").await;
    soon(begun.notified()).await;
    store.shut();
    begins.notify_one();
    // The effect is in the store, and the handler waits for the confirmation.
    soon(store.waits.notified()).await;
    let cancel = peer.request("tasks/cancel", json!({ "taskId": id })).await;
    soon(store.waits.notified()).await;
    store.open();
    soon(peer.answer_to(&cancel)).await.expect("it is cancelled");
    assert_eq!(store.status(&id).await, "cancelled");
}

#[tokio::test]
async fn a_task_outlives_whoever_answers_it_and_leaves() {
    let store = BlockingStore::new();
    let (_server, mut peer, id) = greeting(&store).await;
    store.shut();
    let update = peer.request("tasks/update", answer(&id, "q1", "Ada")).await;
    soon(store.waits.notified()).await;
    peer.cancel(&update).await;
    store.open();
    is_answered_again(&mut peer, &id).await;
}

#[tokio::test]
async fn whoever_looks_at_a_task_that_was_left_and_leaves_does_not_strand_it() {
    let store = BlockingStore::new();
    let (first, before, id) = greeting(&store).await;
    drop((before, first));

    let second = over(store.clone()).tool(lasting(tool("greet", greet))).build();
    let mut after = peer(&second).await;
    store.shut();
    let look = after.request("tasks/get", json!({ "taskId": id })).await;
    soon(store.waits.notified()).await;
    after.cancel(&look).await;
    store.open();
    task_when(&mut after, &id, |it| it["status"] == "input_required").await;
    // Until its old process counts as dead it cannot be answered.
    until(async || after.call("tasks/update", answer(&id, "q1", "Ada")).await.is_ok()).await;
    is_answered_again(&mut after, &id).await;
}

#[tokio::test]
async fn a_result_is_kept_before_it_is_told_however_often_the_store_fails() {
    let store = BlockingStore::new();
    let go = Arc::new(Notify::new());
    let server = over(store.clone()).tool(lasting(waiting(&go))).build();
    let mut peer = peer(&server).await;
    let id = start(&mut peer, "wait").await;
    store.failures.store(2, SeqCst);
    go.notify_one();
    task_when(&mut peer, &id, |it| it["status"] == "completed").await;
    assert_eq!(store.failures.load(SeqCst), 0);
    assert_eq!(store.status(&id).await, "completed");
}

#[tokio::test]
async fn two_processes_agree_on_what_a_task_came_to() {
    let store = BlockingStore::new();
    let go = Arc::new(Notify::new());
    let make =
        |store: Arc<dyn Store>| over(store).tool(waiting(&go).task(TaskSupport::Required)).build();
    let first = make(store.clone());
    let mut here = peer(&first).await;
    let id = start(&mut here, "wait").await;
    // Its heartbeats are lost, so another process takes it for dead.
    store.deaf.store(true, SeqCst);
    let second = make(store.store.clone());
    let mut there = peer(&second).await;
    task_when(&mut there, &id, |it| it["status"] == "failed").await;
    store.deaf.store(false, SeqCst);
    go.notify_one();
    let task = task_when(&mut here, &id, |it| it["status"] != "working").await;
    assert_eq!(task["status"], "failed", "the first learns what the second decided");
}

#[tokio::test]
async fn an_effect_happens_once_however_often_it_is_named_in_every_era() {
    for revision in ERAS {
        let (payments, pay) = counted(|cx, payments| async move {
            let pay = || cx.once("pay", async || Ok::<_, ToolError>(payments.fetch_add(1, SeqCst)));
            for _ in 0..3 {
                pay().await?;
            }
            Ok::<_, ToolError>("Paid.")
        });
        let twice = async |cx: Context| {
            let wait = || {
                cx.once("wait", async || {
                    tokio::task::yield_now().await;
                    Ok::<_, ToolError>(())
                })
            };
            let (one, other) = tokio::join!(wait(), wait());
            one.and(other).map(|()| "Both?")
        };
        let server = builder().tool(tool("pay", pay)).tool(tool("twice", twice)).build();
        let mut peer = open(&server, revision).await;
        assert_eq!(text(&peer.tool("pay", json!({})).await), "Paid.", "{revision}");
        assert_eq!(payments.load(SeqCst), 1, "{revision}");
        let told = peer.tool("twice", json!({})).await;
        assert_eq!(text(&told), "Two effects called `wait` happen at once; rename one.");
    }
}
