//! Tasks through the gateway, for every pairing of client and server generation.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use trunkline::Revision::{self, V2025_06_18, V2025_11_25, V2026_07_28};
use trunkline::client::{CallError, ToolCall};
use trunkline::model::{Task, TaskStatus, TaskSupport};
use trunkline::server::TaskBounds;
use trunkline::{Change, Client, Context, Server, ToolError, tool};
use trunkline_testkit::http::Guest;
use trunkline_testkit::peer::PATIENCE;

use crate::run::TRUNKLINE;

const ALL: [Revision; 3] = [V2025_06_18, V2025_11_25, V2026_07_28];
const WITH_TASKS: [Revision; 2] = [V2025_11_25, V2026_07_28];

/// A gateway of its own, with its folder.
struct Gateway {
    address: SocketAddr,
    process: Child,
    folder: PathBuf,
}

impl Gateway {
    async fn serve(name: &str, catalog: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("trunkline-tasks-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("trunkline.yaml");
        std::fs::write(&file, catalog).unwrap();
        let mut command = Command::new(TRUNKLINE);
        command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file);
        command.arg("--state").arg(folder.join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().expect("the binary was built");
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let address = loop {
            let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
            let line = line.expect("it says where it is").unwrap();
            let line = line.unwrap_or_else(|| panic!("It ended: {said}"));
            // What it logs meanwhile may name other URLs.
            let is_it = line.starts_with("The gateway serves ");
            let found = line.split_once("http://").filter(|_| is_it);
            let found = found.and_then(|it| it.1.split_once('/'));
            if let Some(address) = found.and_then(|it| it.0.parse().ok()) {
                break address;
            }
            let _ = writeln!(said, "{line}");
        };
        // Whoever does not read what it says later would block it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { address, process, folder }
    }

    /// The demo, once in each revision, under its name.
    async fn with_demos(name: &str) -> Self {
        let demos = catalog(&ALL, &format!("command: {TRUNKLINE:?}, args: [demo]"));
        Self::serve(name, &demos).await
    }

    /// One with a server of each generation, as most tests want it.
    async fn of_house(name: &str) -> Self {
        Self::with_house(name, house().await.0, "").await
    }

    /// A server of this process, in both generations of tasks.
    async fn with_house(name: &str, house: SocketAddr, rest: &str) -> Self {
        let houses = catalog(&WITH_TASKS, &format!("url: \"http://{house}/mcp\""));
        Self::serve(name, &format!("{houses}{rest}")).await
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Has all instances of a server stopped.
    async fn stop(&self, server: &str) {
        let path = self.folder.join("state").join("admin.sock");
        let mut socket = UnixStream::connect(path).await.unwrap();
        let request = format!(
            "POST /v1/servers/{server}/stop HTTP/1.1\r\nHost: admin\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    }

    /// A client that says yes to everything.
    async fn client(&self, revision: Revision) -> Client {
        let builder = Client::builder("test", "1.0.0").protocol(revision);
        let builder = builder.on_ask(|question| async move { question.accept(true) });
        builder.connect_http(self.url()).await.unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A catalog with one server in each of the revisions.
fn catalog(revisions: &[Revision], server: &str) -> String {
    let line = |it: &Revision| {
        format!("  {}: {{ {server}, protocolVersion: {:?} }}\n", server_of(*it), it.as_str())
    };
    format!("mcpServers:\n{}", revisions.iter().map(line).collect::<String>())
}

fn server_of(revision: Revision) -> String {
    format!("r{}", revision.as_str().replace('-', ""))
}

fn named(server: Revision, tool: &str) -> String {
    format!("{}.{tool}", server_of(server))
}

/// The task that a call became.
async fn begin(client: &Client, name: String) -> Task {
    match client.call_tool_task(name.as_str(), json!({})).await {
        Ok(ToolCall::Task(task)) => task,
        other => panic!("`{name}` became no task: {other:?}"),
    }
}

/// A server whose tools are tasks, and how often `endless` was given up.
pub(crate) async fn house() -> (SocketAddr, Arc<AtomicU32>) {
    struct GivenUp(Arc<AtomicU32>);
    impl Drop for GivenUp {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    async fn ask(cx: Context) -> Result<String, ToolError> {
        Ok(cx.ask::<bool>("Go on?").await?.accepted()?.to_string())
    }
    let given_up = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&given_up);
    let endless = move || {
        let guard = GivenUp(Arc::clone(&counter));
        async move {
            let _guard = guard;
            std::future::pending::<&'static str>().await
        }
    };
    let server = Server::builder("house", "1.0.0")
        .tasks(TaskBounds { inline: Duration::ZERO, ..TaskBounds::default() })
        .tool(tool("ask", ask).task(TaskSupport::Optional))
        .tool(tool("now", async || "noon"))
        .tool(tool("must", ask).task(TaskSupport::Required))
        .tool(tool("endless", endless).task(TaskSupport::Optional))
        .tool(
            tool("fail", async || Err::<String, _>(ToolError::new("Full.")))
                .task(TaskSupport::Optional),
        )
        .build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.http().serve(listener, std::future::pending()));
    (address, given_up)
}

#[tokio::test]
async fn every_client_gets_the_work_of_every_server_in_its_own_way() {
    let gateway = Gateway::with_demos("pairs").await;
    for client_revision in ALL {
        let client = gateway.client(client_revision).await;
        for server in ALL {
            let name = named(server, "work");
            let pair = format!("{client_revision} at {server}");
            let begun = client.call_tool_task(name.as_str(), json!({ "steps": 3 })).await;
            let result = match (client_revision, server, begun) {
                // Who has no tasks answers as if none were asked for.
                (V2025_06_18, _, Ok(ToolCall::Done(result)))
                | (_, V2025_06_18, Ok(ToolCall::Done(result))) => result,
                (_, V2025_11_25 | V2026_07_28, Ok(ToolCall::Task(task))) => {
                    assert_eq!(task.status, TaskStatus::Working, "{pair}");
                    assert!(task.ttl_ms.is_some() && task.poll_interval_ms.is_some(), "{pair}");
                    let result = client.task_result(task.task_id.as_str()).await.unwrap();
                    let now = client.get_task(task.task_id).await.unwrap();
                    assert_eq!(now.task.status, TaskStatus::Completed, "{pair}");
                    assert_eq!(now.result.is_some(), client_revision == V2026_07_28, "{pair}");
                    result
                }
                (.., other) => panic!("{pair}: {other:?}"),
            };
            assert_eq!(result.content[0].as_text(), Some("worked 3 steps"), "{pair}");
        }
    }
}

#[tokio::test]
async fn a_task_asks_the_client_that_waits_for_it() {
    let gateway = Gateway::of_house("asks").await;
    for client_revision in WITH_TASKS {
        let client = gateway.client(client_revision).await;
        let tools = client.list_tools().await.unwrap();
        for server in WITH_TASKS {
            let name = named(server, "ask");
            let listed = tools.iter().find(|it| it.name == name).unwrap().task_support;
            let is_told = client_revision == V2025_11_25;
            let expected = if is_told { TaskSupport::Optional } else { TaskSupport::Forbidden };
            assert_eq!(listed, expected, "{client_revision} at {server}");
            let task = begin(&client, named(server, "ask")).await;
            let result = client.task_result(task.task_id).await.unwrap();
            let said = result.content[0].as_text();
            assert_eq!(said, Some("true"), "{client_revision} at {server}");
        }
    }
}

#[tokio::test]
async fn a_result_that_is_there_at_once_is_a_task_that_is_over() {
    let gateway = Gateway::of_house("minted").await;
    let client = gateway.client(V2025_11_25).await;
    let task = begin(&client, named(V2026_07_28, "now")).await;
    assert_eq!(task.status, TaskStatus::Completed);
    let result = client.task_result(task.task_id.as_str()).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("noon"));
    // A server that says which of its tools run as tasks is taken at its word.
    match client.call_tool_task(named(V2025_11_25, "now"), json!({})).await {
        Err(CallError::Peer(error)) => assert_eq!(error.code, -32601, "{error}"),
        other => panic!("{other:?}"),
    }
    let client = gateway.client(V2026_07_28).await;
    for server in WITH_TASKS {
        match client.call_tool_task(named(server, "now"), json!({})).await {
            Ok(ToolCall::Done(result)) => assert_eq!(result.content[0].as_text(), Some("noon")),
            other => panic!("{server}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_task_outlives_the_connection_to_a_server_that_keeps_nothing_in_it() {
    let gateway = Gateway::of_house("moves").await;
    for client_revision in WITH_TASKS {
        let client = gateway.client(client_revision).await;
        let task = begin(&client, named(V2026_07_28, "ask")).await;
        gateway.stop(&server_of(V2026_07_28)).await;
        let result = client.task_result(task.task_id).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("true"), "{client_revision}");
    }
}

#[tokio::test]
async fn a_client_without_tasks_has_its_call_driven_to_the_end() {
    let gateway = Gateway::of_house("driven").await;
    let client = gateway.client(V2025_06_18).await;
    for server in WITH_TASKS {
        let result = client.call_tool(named(server, "must"), json!({})).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("true"), "at {server}");
        // 2026-07-28 without the extension: the call ends with the question, and is made again.
        let mut guest = Guest::open(gateway.address, V2026_07_28).await;
        guest.capabilities = json!({ "elicitation": {} });
        let params = json!({ "name": named(server, "must"), "arguments": {} });
        let result = guest.expect("tools/call", params).await;
        assert_eq!(result["resultType"], "input_required", "{result}");
        let (key, asked) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(asked["method"], "elicitation/create");
        let form = asked["params"]["requestedSchema"]["properties"].as_object().unwrap();
        let field = form.keys().next().unwrap().as_str();
        let answer = json!({ "action": "accept", "content": { field: true } });
        let params = json!({
            "name": named(server, "must"), "arguments": {},
            "requestState": result["requestState"], "inputResponses": { key.as_str(): answer },
        });
        let result = guest.expect("tools/call", params).await;
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(result["content"][0]["text"], "true", "{result}");
    }
}

#[tokio::test]
async fn a_tool_that_reports_an_error_has_failed_in_one_generation_and_completed_in_the_other() {
    let gateway = Gateway::of_house("fails").await;
    for (client_revision, expected) in
        [(V2025_11_25, TaskStatus::Failed), (V2026_07_28, TaskStatus::Completed)]
    {
        let client = gateway.client(client_revision).await;
        for server in WITH_TASKS {
            let task = begin(&client, named(server, "fail")).await;
            let result = client.task_result(task.task_id.as_str()).await.unwrap();
            assert!(result.is_error(), "{client_revision} at {server}");
            let now = client.get_task(task.task_id).await.unwrap().task;
            assert_eq!(now.status, expected, "{client_revision} at {server}");
        }
    }
}

#[tokio::test]
async fn a_task_that_is_cancelled_is_given_up_at_its_server() {
    let (house, given_up) = house().await;
    let gateway = Gateway::with_house("cancels", house, "").await;
    let mut expected = 0;
    for client_revision in WITH_TASKS {
        let client = gateway.client(client_revision).await;
        for server in WITH_TASKS {
            let pair = format!("{client_revision} at {server}");
            let task = begin(&client, named(server, "endless")).await;
            client.cancel_task(task.task_id.as_str()).await.unwrap();
            let now = client.get_task(task.task_id.as_str()).await.unwrap().task;
            assert_eq!(now.status, TaskStatus::Cancelled, "{pair}");
            expected += 1;
            assert_eq!(given_up.load(SeqCst), expected, "{pair}");
            // What is over cannot be cancelled, and the newer generation does not mind.
            let again = client.cancel_task(task.task_id).await;
            assert_eq!(again.is_err(), client_revision == V2025_11_25, "{pair}: {again:?}");
        }
    }
}

#[tokio::test]
async fn a_task_is_there_for_whoever_began_it_alone() {
    let (house, _) = house().await;
    let auth = "gateway: { auth: { tokens: [\
        { name: alice, token: alice-0123456789abcdef }, \
        { name: bob, token: bob-0123456789abcdef }] } }\n";
    let gateway = Gateway::with_house("owners", house, auth).await;
    let open = async |token: &str, revision| {
        let builder = Client::builder("test", "1.0.0").protocol(revision);
        let builder = builder.header("Authorization", format!("Bearer {token}-0123456789abcdef"));
        builder.connect_http(gateway.url()).await.unwrap()
    };
    let (alice, bob) = (open("alice", V2025_11_25).await, open("bob", V2025_11_25).await);
    let task = begin(&alice, named(V2026_07_28, "endless")).await;
    let listed = alice.list_tasks().await.unwrap();
    assert_eq!(listed.iter().map(|it| &it.task_id).collect::<Vec<_>>(), [&task.task_id]);
    assert_eq!(bob.list_tasks().await.unwrap(), []);
    for revision in WITH_TASKS {
        let bob = open("bob", revision).await;
        match bob.get_task(task.task_id.as_str()).await {
            Err(CallError::Peer(error)) => assert_eq!(error.code, -32602, "{error}"),
            other => panic!("{other:?}"),
        }
    }
    // The same person in another generation.
    let alice = open("alice", V2026_07_28).await;
    let now = alice.get_task(task.task_id.as_str()).await.unwrap();
    assert_eq!(now.task.status, TaskStatus::Working);
    alice.cancel_task(task.task_id).await.unwrap();
}

#[tokio::test]
async fn clients_hear_how_their_tasks_stand() {
    let gateway = Gateway::with_demos("status").await;
    for server in WITH_TASKS {
        let (heard, mut changes) = mpsc::unbounded_channel();
        let builder = Client::builder("test", "1.0.0").protocol(V2025_11_25);
        let builder = builder.on_change(move |change| {
            if let Change::Task(task, _) = change {
                let _ = heard.send((**task).clone());
            }
        });
        let client = builder.connect_http(gateway.url()).await.unwrap();
        let ToolCall::Task(task) =
            client.call_tool_task(named(server, "work"), json!({ "steps": 20 })).await.unwrap()
        else {
            panic!("it is no task");
        };
        let completed = async {
            loop {
                let change = changes.recv().await.expect("the client is there");
                assert_eq!(change.task_id, task.task_id, "{server}");
                if change.status == TaskStatus::Completed {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, completed).await.expect("the end is told");
    }
}

#[tokio::test]
async fn a_task_whose_process_is_gone_is_told_to_be_lost() {
    let gateway = Gateway::with_demos("lost").await;
    for client_revision in WITH_TASKS {
        let client = gateway.client(client_revision).await;
        let name = named(V2025_11_25, "work");
        let begun = client.call_tool_task(name.as_str(), json!({ "steps": 1000 })).await.unwrap();
        let ToolCall::Task(task) = begun else { panic!("it is no task") };
        let pid = gateway.process.id().expect("it runs");
        let mut killed = 0;
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
            let path = thread.path().join("children");
            for child in std::fs::read_to_string(path).unwrap_or_default().split_whitespace() {
                let status = std::process::Command::new("kill").args(["-9", child]).status();
                killed += u32::from(status.unwrap().success());
            }
        }
        assert!(killed > 0, "nothing runs");
        match client.task_result(task.task_id.as_str()).await {
            Err(CallError::Peer(error)) => {
                let data = error.data.as_ref().map(ToString::to_string).unwrap_or_default();
                assert!(data.contains("task_lost"), "{client_revision}: {error} {data}");
            }
            other => panic!("{client_revision}: {other:?}"),
        }
        assert_eq!(client.get_task(task.task_id).await.unwrap().task.status, TaskStatus::Failed);
    }
}
