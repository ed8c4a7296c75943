//! Tools that may run as tasks: quick ones cost nothing, and progress arrives, in every revision.

use std::sync::mpsc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use trunkline::client::{Event, ToolCall};
use trunkline::model::{Progress, TaskSupport};
use trunkline::server::{TaskBounds, ToolEntry};
use trunkline::{Client, Context, Revision, Server, ToolError, tool};

async fn quick(cx: Context) -> &'static str {
    cx.progress(1.0, 2.0).await;
    cx.report(Progress::new(2.0).total(2.0).message("Done.")).await;
    "done"
}

async fn slow(cx: Context) -> &'static str {
    for step in 1..=3 {
        cx.progress(f64::from(step), 3.0).await;
        // the sleep is the subject: the clock is paused, and this advances it
        sleep(Duration::from_secs(2)).await;
    }
    "done"
}

fn entry(support: TaskSupport) -> ToolEntry {
    tool("quick", quick).task(support)
}

fn server(entry: ToolEntry) -> Server {
    Server::builder("work", "1.0.0").tool(entry).build()
}

async fn client(server: &Server, revision: Revision) -> Client {
    let client = Client::builder("host", "1.0.0").protocol(revision);
    client.connect_memory(server).await.expect("it is there")
}

/// The duration of a call by the runtime's clock, and its progress.
async fn call(server: &Server, revision: Revision) -> (Duration, Vec<Progress>) {
    let client = client(server, revision).await;
    let begun = Instant::now();
    client.call_tool("quick", ()).await.expect("it can be called");
    let took = begun.elapsed();
    let (heard, steps) = mpsc::channel();
    let call = client.call_tool("quick", ()).on_progress(move |it| heard.send(it).unwrap());
    assert_eq!(call.await.unwrap().content[0].as_text(), Some("done"));
    (took, steps.iter().collect())
}

#[tokio::test(start_paused = true)]
async fn a_quick_task_costs_no_time_and_its_progress_is_heard() {
    for revision in Revision::ALL {
        let server = server(entry(TaskSupport::Optional));
        let (took, steps) = call(&server, revision).await;
        assert_eq!(took, Duration::ZERO, "{revision}");
        let steps: Vec<_> = steps.iter().map(|it| it.progress).collect();
        assert_eq!(steps, [1.0, 2.0], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_must_be_a_task_is_found_done_within_two_milliseconds() {
    let server = server(entry(TaskSupport::Required));
    let (took, steps) = call(&server, Revision::V2025_11_25).await;
    assert!(took <= Duration::from_millis(2), "{took:?}");
    // Progress between two polls is skipped, but the last one arrives.
    assert_eq!(steps.last().map(|it| it.progress), Some(2.0));
    assert_eq!(steps.last().and_then(|it| it.message.clone()).as_deref(), Some("Done."));
}

#[tokio::test(start_paused = true)]
async fn the_progress_of_a_long_task_is_heard_once_and_in_order() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = server(tool("slow", slow).task(TaskSupport::Required));
        let client = client(&server, revision).await;
        let mut events = client.call_tool("slow", ()).stream();
        let mut steps = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                Event::Progress(it) => steps.push((it.progress, it.total)),
                Event::Done(result) => {
                    assert_eq!(result.unwrap().content[0].as_text(), Some("done"));
                }
            }
        }
        let all = [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))];
        assert_eq!(steps, all, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_may_make_every_call_a_task() {
    let bounds = TaskBounds { inline: Duration::ZERO, ..TaskBounds::default() };
    let server =
        Server::builder("work", "1.0.0").tasks(bounds).tool(entry(TaskSupport::Optional)).build();
    let client = client(&server, Revision::V2026_07_28).await;
    let called = client.call_tool_task("quick", ()).await.unwrap();
    let ToolCall::Task(task) = called else { panic!("{called:?}") };
    let result = client.task_result(&task.task_id).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("done"));
}

#[tokio::test(start_paused = true)]
async fn a_question_makes_a_task_of_the_call_at_once() {
    async fn ask(cx: Context) -> Result<String, ToolError> {
        Ok(format!("{} nights", cx.ask::<u32>("How many nights?").await?.accepted()?))
    }
    let server = server(tool("ask", ask).task(TaskSupport::Optional));
    let client = Client::builder("host", "1.0.0")
        .protocol(Revision::V2026_07_28)
        .on_ask(|question| async move { question.accept(2) })
        .connect_memory(&server)
        .await
        .unwrap();
    let begun = Instant::now();
    let result = client.call_tool("ask", ()).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("2 nights"));
    assert!(begun.elapsed() < Duration::from_millis(50), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn quick_calls_leave_no_tasks_behind() {
    let bounds = TaskBounds { tasks: 2, ..TaskBounds::default() };
    let server =
        Server::builder("work", "1.0.0").tasks(bounds).tool(entry(TaskSupport::Optional)).build();
    let newest = client(&server, Revision::V2026_07_28).await;
    for _ in 0..5 {
        newest.call_tool("quick", ()).await.expect("there is room again");
    }
    let older = client(&server, Revision::V2025_11_25).await;
    assert_eq!(older.list_tasks().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_given_up_before_it_is_a_task_stops() {
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel::<()>();
    let (held, mut ended) = tokio::sync::mpsc::unbounded_channel::<()>();
    let endless = move || {
        let (begun, held) = (begun.clone(), held.clone());
        async move {
            begun.send(()).expect("the test waits");
            std::future::pending::<()>().await;
            drop(held);
        }
    };
    let bounds = TaskBounds { tasks: 1, ..TaskBounds::default() };
    let server = Server::builder("work", "1.0.0")
        .tasks(bounds)
        .tool(tool("endless", endless).task(TaskSupport::Optional))
        .build();
    let client = client(&server, Revision::V2026_07_28).await;
    for _ in 0..2 {
        let mut call = client.call_tool("endless", ()).into_future();
        tokio::select! {
            _ = &mut call => panic!("it has no end"),
            _ = has_begun.recv() => {}
        }
        drop(call);
        // A request sent now is answered after the cancellation.
        client.ping().await.unwrap();
    }
    drop(server);
    client.close().await;
    assert_eq!(ended.recv().await, None);
}
