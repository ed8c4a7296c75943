//! The parts of the features, each played by a client of one revision through the gateway.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::mpsc;
use trunkline::Revision::{V2024_11_05, V2025_06_18, V2025_11_25};
use trunkline::client::{CallError, ToolCall};
use trunkline::model::{
    CallToolResult, CompleteParams, LogLevel, Reference, ResourceData, Root, SubscriptionFilter,
    TaskStatus,
};
use trunkline::{Change, Client, Revision};

use super::place::{Hung, Over, Place, Upstream};
use super::unmapped::Told;

/// Something that a cell is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Progress,
    Structured,
    Read,
    Subscription,
    Prompts,
    Completion,
    Logging,
    Cancellation,
    Form,
    Rounds,
    Url,
    Sampling,
    Roots,
    Plain,
    Task,
    CancelledTask,
}

/// What happened instead of what should have.
type Outcome = Result<(), Told>;

/// A client of one revision at one server, through the gateway.
pub(super) struct Desk<'a> {
    place: &'a Place,
    upstream: Upstream,
    revision: Revision,
    client: Client,
    /// The same client at the server that all callers share.
    shared: Client,
    logged: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
}

impl<'a> Desk<'a> {
    pub(super) async fn open(
        place: &'a Place,
        revision: Revision,
        upstream: Upstream,
    ) -> Result<Self, String> {
        let (tell, logged) = mpsc::unbounded_channel();
        let client = connect(place, revision, &upstream.name(), tell.clone()).await?;
        let shared = connect(place, revision, &upstream.shared(), tell).await?;
        let logged = tokio::sync::Mutex::new(logged);
        Ok(Self { place, upstream, revision, client, shared, logged })
    }

    pub(super) async fn play(&self, part: Part) -> Outcome {
        match part {
            Part::Progress => self.progress().await,
            Part::Structured => self.structured().await,
            Part::Read => self.read().await,
            Part::Subscription => self.subscription().await,
            Part::Prompts => self.prompts().await,
            Part::Completion => self.completion().await,
            Part::Logging => self.logging().await,
            Part::Cancellation => self.cancellation().await,
            Part::Form => self.says("greet", json!({}), "Hello, Ada!").await,
            Part::Rounds => self.rounds().await,
            Part::Url => self.says("open_page", json!({}), "accepted").await,
            Part::Sampling => {
                self.says("sample", json!({ "prompt": "?" }), "oracle-1 said: forty-two").await
            }
            Part::Roots => self.says("roots", json!({}), "file:///home/ada\nfile:///srv").await,
            Part::Plain => self.says("work", json!({ "steps": 4 }), "worked 4 steps").await,
            Part::Task => self.task().await,
            Part::CancelledTask => self.cancelled_task().await,
        }
    }

    /// Whether both ends have what came with 2025-06-18.
    fn are_both_since(&self, revision: Revision) -> bool {
        self.revision >= revision && self.upstream.revision(self.revision) >= revision
    }

    async fn call(&self, tool: &str, arguments: serde_json::Value) -> Result<CallToolResult, Told> {
        result(self.client.call_tool(tool, arguments).await)
    }

    /// A tool says this.
    async fn says(&self, tool: &str, arguments: serde_json::Value, expected: &str) -> Outcome {
        let result = self.call(tool, arguments).await?;
        same(&text(&result), &expected)
    }

    async fn progress(&self) -> Outcome {
        let tools = called(self.client.list_tools().await)?;
        same(&tools.iter().any(|it| it.name == "progress"), &true)?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&seen);
        let call = self.client.call_tool("progress", json!({ "steps": 3 }));
        let call = call.on_progress(move |it| {
            heard.lock().unwrap().push((it.progress, it.total, it.message));
        });
        same(&text(&result(call.await)?), &"done")?;
        let seen = seen.lock().unwrap();
        let step = |at: u8| (f64::from(at), Some(3.0), Some(format!("step {at} of 3")));
        same(&*seen, &vec![step(1), step(2), step(3)])
    }

    async fn structured(&self) -> Outcome {
        let result = self.call("sum", json!({ "a": 2, "b": 3 })).await?;
        same(&text(&result), &r#"{"sum":5}"#)?;
        let found = result.structured_content.map(|it| it.get().to_owned());
        // Before 2025-06-18 there is the text alone.
        let has_it = self.are_both_since(V2025_06_18);
        same(&found, &has_it.then(|| r#"{"sum":5}"#.to_owned()))
    }

    async fn read(&self) -> Outcome {
        let resources = called(self.client.list_resources().await)?;
        same(&resources.iter().any(|it| it.uri == README), &true)?;
        let templates = called(self.client.list_resource_templates().await)?;
        same(&templates.iter().any(|it| it.uri_template == "demo://greeting/{name}"), &true)?;
        let read = called(self.client.read_resource(README).await)?;
        let is_it = |it: &str| it.starts_with("# The trunkline demo");
        same(&matches!(&read.contents[0].data, ResourceData::Text(it) if is_it(it)), &true)?;
        let greeting = called(self.client.read_resource("demo://greeting/Ada").await)?;
        same(&greeting.contents[0].data, &ResourceData::Text("Hello, Ada!".to_owned()))?;
        let logo = called(self.client.read_resource("demo://logo").await)?;
        same(&matches!(&logo.contents[0].data, ResourceData::Blob(_)), &true)
    }

    async fn subscription(&self) -> Outcome {
        let filter = SubscriptionFilter::new().resource_subscriptions(vec![README.to_owned()]);
        let mut listener = called(self.shared.listen(filter).await)?;
        let touched = self.shared.call_tool("touch", json!({ "uri": README }));
        same(&text(&result(touched.await)?), &"touched")?;
        same(&listener.next().await, &Some(Change::Resource(README.to_owned())))?;
        listener.close().await;
        Ok(())
    }

    async fn prompts(&self) -> Outcome {
        let prompts = called(self.client.list_prompts().await)?;
        same(&prompts.iter().any(|it| it.name == "review"), &true)?;
        let arguments = [("code", "1 + 1"), ("language", "rust")];
        let review = called(self.client.get_prompt("review", arguments).await)?;
        let said = review.messages[0].content.as_text().unwrap_or_default().to_owned();
        same(&said, &"Please review this code:\n```rust\n1 + 1\n```".to_owned())
    }

    async fn completion(&self) -> Outcome {
        let language = CompleteParams::new(Reference::prompt("review"), "language", "ru");
        same(
            &called(self.client.complete(language).await)?.values,
            &vec!["ruby".to_owned(), "rust".to_owned()],
        )?;
        let reference = Reference::resource("demo://greeting/{name}");
        let name = CompleteParams::new(reference, "name", "A");
        same(
            &called(self.client.complete(name).await)?.values,
            &vec!["Ada".to_owned(), "Alan".to_owned()],
        )
    }

    async fn logging(&self) -> Outcome {
        let mut logged = self.logged.lock().await;
        let message = format!("log {}", mark());
        // Less severe than what a server says by itself.
        let said = self.call("log", json!({ "level": "debug", "message": message })).await?;
        same(&text(&said), &"logged")?;
        same(&logged.recv().await, &Some(message))
    }

    async fn cancellation(&self) -> Outcome {
        let mark = mark();
        match self.upstream.over {
            Over::Stdio => {
                // Where a call was given up, questions and logs are nobody's for a while.
                let server = self.upstream.shared();
                let call = self.shared.call_tool("sleep", json!({ "ms": 600_000 + mark }));
                let is_call = |it: &serde_json::Value| {
                    it["params"]["arguments"]["ms"] == json!(600_000 + mark)
                };
                let (at, begun) = tokio::select! {
                    begun = self.place.until_sent(&server, 0, is_call) => begun,
                    said = call.into_future() => return Err(ended(said)),
                };
                self.place
                    .until_sent(&server, at, |it| {
                        it["method"] == "notifications/cancelled"
                            && it["params"]["requestId"] == begun["id"]
                    })
                    .await;
            }
            Over::Http => {
                let call = self.shared.call_tool("hang", json!({ "mark": mark }));
                tokio::select! {
                    () = self.place.hung(Hung::Begun(mark)) => {}
                    said = call.into_future() => return Err(ended(said)),
                }
                self.place.hung(Hung::GivenUp(mark)).await;
            }
        }
        // And it goes on.
        let echo = self.shared.call_tool("echo", json!({ "text": "still here" })).await;
        same(&text(&result(echo)?), &"still here")
    }

    /// A tool that may run as a task; whether it does is for the revisions to say.
    async fn task(&self) -> Outcome {
        let work = self.client.call_tool_task("work", json!({ "steps": 4 }));
        let done = match (called(work.await)?, self.are_both_since(V2025_11_25)) {
            (ToolCall::Done(done), false) => done,
            (ToolCall::Task(task), true) => {
                let done = called(self.client.task_result(&task.task_id).await)?;
                let now = called(self.client.get_task(&task.task_id).await)?;
                same(&now.task.status, &TaskStatus::Completed)?;
                done
            }
            (other, _) => return Err(Told::Wrong(format!("It came to {other:?}."))),
        };
        same(&text(&done), &"worked 4 steps")
    }

    /// A task that is given up, where there are any.
    async fn cancelled_task(&self) -> Outcome {
        let work = self.client.call_tool_task("work", json!({ "steps": 1000 }));
        if !self.are_both_since(V2025_11_25) {
            return match self.revision == V2025_11_25 {
                // A refusal, as the list has it.
                true => called(work.await).map(drop),
                // There is nothing to give up but the call.
                false => Ok(()),
            };
        }
        let ToolCall::Task(task) = called(work.await)? else {
            return Err(Told::Wrong("It did not become a task.".to_owned()));
        };
        called(self.client.cancel_task(&task.task_id).await)?;
        loop {
            let now = called(self.client.get_task(&task.task_id).await)?.task;
            match now.status {
                TaskStatus::Cancelled => return Ok(()),
                // The newest revision only asks for it; the server may take its time.
                TaskStatus::Working if self.revision > V2025_11_25 => {}
                other => return Err(Told::Wrong(format!("It is {other:?}."))),
            }
        }
    }

    /// Two questions at once, and a third that follows from them.
    async fn rounds(&self) -> Outcome {
        let result = self.call("book", json!({ "city": "Oslo", "nights": 2 })).await?;
        same(&text(&result), &r#"{"reference":"R-OSLO","total":198}"#)
    }
}

async fn connect(
    place: &Place,
    revision: Revision,
    server: &str,
    logged: mpsc::UnboundedSender<String>,
) -> Result<Client, String> {
    let mut url = format!("{}/mcp/server/{server}", place.url);
    if revision == V2024_11_05 {
        // That is how its clients came.
        url.push_str("/sse");
    }
    let client = Client::builder("matrix", "1.0.0")
        .protocol(revision)
        .on_ask(|question| async move {
            match (question.is_url(), question.message()) {
                (true, _) => question.accept(()),
                (_, asked) if asked.to_lowercase().contains("name") => {
                    question.accept(json!({ "name": "Ada" }))
                }
                _ => question.accept(json!({ "ok": true })),
            }
        })
        .on_sample(|request| async move { request.reply("oracle-1", "forty-two") })
        .roots([Root::new("file:///home/ada"), Root::new("file:///srv")])
        .log_level(LogLevel::Debug)
        .on_log(move |message| {
            let _ = logged.send(message.data.to::<String>().unwrap_or_default());
        })
        .connect_http(url)
        .await
        .map_err(|error| format!("The client did not connect: {error}"))?;
    match client.revision() == revision {
        true => Ok(client),
        false => Err(format!("The client speaks {}.", client.revision())),
    }
}

/// A part that took too long.
pub(super) fn late(part: Part) -> Told {
    Told::Wrong(format!("{part:?} did not end in time."))
}

fn ended(said: Result<CallToolResult, CallError>) -> Told {
    match result(said) {
        Ok(said) => Told::Wrong(format!("It ended: {}", text(&said))),
        Err(told) => told,
    }
}

/// A result that is none of a tool that failed.
fn result(said: Result<CallToolResult, CallError>) -> Result<CallToolResult, Told> {
    let said = called(said)?;
    match said.is_error() {
        true => Err(Told::Tool(text(&said).to_owned())),
        false => Ok(said),
    }
}

/// What a call came to; of an error, what programs can go by.
fn called<T>(said: Result<T, CallError>) -> Result<T, Told> {
    said.map_err(|error| match error {
        CallError::Peer(error) => {
            let data: serde_json::Value =
                error.data.as_ref().and_then(|it| it.to().ok()).unwrap_or_default();
            let words = match (data.get("reason"), data.get("requiredCapabilities")) {
                (Some(reason), _) => format!("reason {reason}"),
                (_, Some(required)) => format!("requiredCapabilities {required}"),
                _ => error.message,
            };
            Told::Error(error.code, words)
        }
        error => Told::Wrong(error.to_string()),
    })
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(Told::Wrong(format!("It is {found:?}, not {expected:?}."))),
    }
}

fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(|it| it.as_text()).unwrap_or_default()
}

/// A number that no other cell has.
fn mark() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

const README: &str = "demo://readme";
