//! With real programs: these tests need `python3`.

use std::path::PathBuf;
use std::time::Duration;

use trunkline_testkit::{Folder, PLUGIN};

use super::*;

/// A plugin that does what its configuration says, and logs what it is told to a file.
const PROGRAM: &str = r#"
name, category = sys.argv[1], sys.argv[2]
say(type="hello", name=name, category=category, version="1")
config, held = {}, []
def note(what):
    if "log" in config:
        with open(config["log"], "a") as log:
            log.write(what + "\n")
for line in reader:
    message = json.loads(line)
    kind = message["type"]
    if kind == "configure":
        config = message["config"]
        continue
    note(name + " " + kind)
    if kind == "shutdown":
        break
    id, call = message["id"], message["call"]
    do = config.get("do", {}).get(call.get("tool"), config.get("always"))
    if do == "hang":
        continue
    elif do == "die":
        sys.stderr.write("password=hunter2 I am dying\n")
        sys.exit(3)
    elif do == "reject":
        say(id=id, decision="reject", code="no", message="Not\u001b today.")
    elif do == "reject bare":
        say(id=id, decision="reject")
    elif do == "huge":
        say(id=id, decision="continue", arguments={"x": "x" * (17 << 20)})
    elif do == "nonsense":
        say(hello="world")
        say(id=id, decision="perhaps")
    elif do == "list":
        say(id=id, decision="continue", arguments=[1])
    elif do == "environment":
        say(id=id, decision="continue", arguments=dict(os.environ))
    elif do == "backwards":
        held.append((id, call["arguments"]))
        if len(held) == config["count"]:
            for id, arguments in reversed(held):
                say(id=id, decision="continue", arguments={"n": arguments["n"] * 2})
    elif kind == "request":
        say(id=id, decision="continue", arguments={**call["arguments"], name: True})
    else:
        say(id=id, decision="continue", result={**message["result"], name: True})
"#;

pub(super) fn plan(name: &str, category: Category) -> PluginPlan {
    let program = [PLUGIN, PROGRAM].concat();
    let category_name = message::category(category);
    PluginPlan {
        name: name.to_owned(),
        category,
        required: true,
        command: ["python3", "-c", &program, name, category_name].map(str::to_owned).to_vec(),
        env: Vec::new(),
        timeout: Duration::from_secs(30),
        config: serde_json::json!({}),
    }
}

fn with(plan: PluginPlan, config: serde_json::Value) -> PluginPlan {
    PluginPlan { config, ..plan }
}

fn call(tool: &str) -> CallView {
    CallView::new("git", tool, Some("alice")).trace("t1")
}

async fn start(plans: &[PluginPlan]) -> Pipeline {
    Pipeline::start(plans).await.unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn value(json: &Json) -> serde_json::Value {
    json.to().unwrap()
}

async fn running(pipeline: &Pipeline) {
    for plugin in &pipeline.plugins {
        let state = |it: &State| match it {
            State::Down { last_error } => panic!("`{}`: {last_error}", plugin.plan().name),
            it => *it == State::Running,
        };
        plugin.until(state).await;
    }
}

/// A temporary file.
struct Log {
    _folder: Folder,
    file: PathBuf,
}

impl Log {
    fn new() -> Self {
        let folder = Folder::new();
        Self { file: folder.join("plugins.log"), _folder: folder }
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.file).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn without_plugins_nothing_happens() {
    let pipeline = start(&[]).await;
    assert!(pipeline.is_empty() && pipeline.status().is_empty());
    let twice = json(r#"{"a":1,"a":2}"#);
    assert_eq!(pipeline.request(&call("push"), twice.clone()).await, Ok(twice));
    pipeline.close().await;
}

#[tokio::test]
async fn the_plugin_of_the_documentation_works() {
    let text = include_str!("../../../../../docs/gateway-plugins.md");
    let code = text.split("```python\n").nth(1).and_then(|it| it.split("```").next()).unwrap();
    assert!(code.lines().count() <= 34, "it is a short one");
    let guard = PluginPlan {
        command: ["python3", "-c", code].map(str::to_owned).to_vec(),
        config: serde_json::json!({ "remote": "backup" }),
        ..plan("guard", Category::Content)
    };
    let pipeline = start(&[guard]).await;
    let arguments = pipeline.request(&call("push"), json(r#"{"branch":"main"}"#)).await.unwrap();
    assert_eq!(value(&arguments), serde_json::json!({ "branch": "main", "remote": "backup" }));
    let rejected = pipeline.request(&call("push"), json(r#"{"force":true}"#)).await.unwrap_err();
    assert_eq!(
        value(&rejected.to_result()),
        serde_json::json!({
            "content": [{ "type": "text", "text": "no_force: Forced pushes are not allowed." }],
            "isError": true,
        })
    );
    assert_eq!(rejected.to_failure("git").reason, "rejected");
    let result = json(r#"{"content":[{"type":"text","text":"by ann@example.org"}]}"#);
    let result = pipeline.response(&call("push"), result).await.unwrap();
    assert_eq!(value(&result)["content"][0]["text"], "by (hidden)");
    pipeline.close().await;
}

#[tokio::test]
async fn they_are_asked_by_category_and_then_in_the_order_of_the_file() {
    let log = Log::new();
    let config = serde_json::json!({ "log": log.file });
    let plugins = [
        ("last", Category::Audit),
        ("b", Category::Content),
        ("a", Category::Content),
        ("first", Category::Authentication),
        ("second", Category::Authorization),
        ("third", Category::RateLimiting),
        ("fourth", Category::Validation),
    ];
    let plans = plugins.map(|(name, category)| with(plan(name, category), config.clone()));
    let pipeline = start(&plans).await;
    pipeline.request(&call("push"), json("{}")).await.unwrap();
    let order = ["first", "second", "third", "fourth", "b", "a", "last"];
    assert_eq!(log.lines(), order.map(|it| format!("{it} request")));
    pipeline.response(&call("push"), json("{}")).await.unwrap();
    assert_eq!(log.lines()[7..], order.map(|it| format!("{it} response")));
}

#[tokio::test]
async fn those_for_content_change_the_call_and_the_reply_and_no_others_do() {
    let plans = [
        plan("one", Category::Content),
        plan("two", Category::Content),
        plan("other", Category::Validation),
        plan("late", Category::Audit),
    ];
    let pipeline = start(&plans).await;
    let expected = serde_json::json!({ "n": 1, "one": true, "two": true });
    let arguments = pipeline.request(&call("push"), json(r#"{"n":1}"#)).await.unwrap();
    assert_eq!(value(&arguments), expected);
    let result = pipeline.response(&call("push"), json(r#"{"n":1}"#)).await.unwrap();
    assert_eq!(value(&result), expected);
}

#[tokio::test]
async fn a_rejection_ends_the_walk_also_by_one_that_is_not_needed() {
    let log = Log::new();
    let no = PluginPlan {
        required: false,
        ..with(
            plan("no", Category::Authorization),
            serde_json::json!({ "do": { "push": "reject", "pull": "reject bare" } }),
        )
    };
    let after = with(plan("after", Category::Content), serde_json::json!({ "log": log.file }));
    let pipeline = start(&[after, no]).await;
    let rejected = pipeline.request(&call("push"), json("{}")).await.unwrap_err();
    assert_eq!(rejected.to_string(), "no: Not today.");
    let rejected = pipeline.response(&call("pull"), json("{}")).await.unwrap_err();
    assert_eq!(rejected.to_string(), "rejected: The plugin `no` does not allow this.");
    assert_eq!(rejected.plugin, "no");
    running(&pipeline).await;
    assert!(log.lines().is_empty(), "nobody else was asked");
}

#[tokio::test]
async fn a_required_plugin_aborts_and_an_optional_one_is_skipped() {
    let faults =
        serde_json::json!({ "do": { "huge": "huge", "nonsense": "nonsense", "list": "list" } });
    let needed = with(plan("faulty", Category::Content), faults);
    let optional = PluginPlan { required: false, ..needed.clone() };
    let (needed, optional) = (start(&[needed]).await, start(&[optional]).await);
    for (tool, fault) in [
        ("huge", "more than 16777216 bytes"),
        ("nonsense", "neither `continue` nor `reject`"),
        ("list", "`arguments` that are no object"),
    ] {
        let rejected = needed.request(&call(tool), json("{}")).await.unwrap_err();
        assert_eq!(rejected.code, "plugin_failed");
        assert!(rejected.message.contains(fault), "{rejected}");
        assert_eq!(optional.request(&call(tool), json("{}")).await, Ok(json("{}")), "{tool}");
    }
    assert!(needed.request(&call("good"), json("{}")).await.is_ok(), "it goes on");
}

#[tokio::test]
async fn a_slow_plugin_times_out() {
    let slow = PluginPlan {
        timeout: Duration::from_millis(50),
        ..with(plan("slow", Category::Content), serde_json::json!({ "always": "hang" }))
    };
    let optional = PluginPlan { required: false, ..slow.clone() };
    let needed = start(&[slow]).await;
    let rejected = needed.request(&call("push"), json("{}")).await.unwrap_err();
    assert_eq!(
        rejected.to_string(),
        "plugin_failed: The call was not made, for the plugin `slow` is needed: it did not answer \
         within 50 ms."
    );
    let rejected = needed.response(&call("push"), json("{}")).await.unwrap_err();
    assert!(rejected.message.starts_with("The call was made, but its result"), "{rejected}");
    let optional = start(&[optional]).await;
    running(&optional).await;
    assert_eq!(optional.request(&call("push"), json("{}")).await, Ok(json("{}")));
}

#[tokio::test]
async fn a_dead_plugin_is_started_again() {
    let dying = serde_json::json!({ "do": { "die": "die" } });
    let pipeline = start(&[with(plan("mortal", Category::Content), dying)]).await;
    assert!(pipeline.request(&call("live"), json("{}")).await.is_ok());
    let plugin = &pipeline.plugins[0];
    let rejected = pipeline.request(&call("die"), json("{}")).await.unwrap_err();
    assert!(rejected.message.contains("it ended before it answered"), "{rejected}");
    let mut why = String::new();
    plugin
        .until(|state| match state {
            State::Down { last_error } => {
                why.clone_from(last_error);
                true
            }
            _ => false,
        })
        .await;
    assert_eq!(why, "it exited with code 3, and its last words were: password=*** I am dying");
    let rejected = pipeline.request(&call("live"), json("{}")).await.unwrap_err();
    assert!(rejected.message.contains("it is not running: it exited with code 3"), "{rejected}");
    plugin.until(|state| *state == State::Running).await;
    assert!(pipeline.request(&call("live"), json("{}")).await.is_ok());
    assert_eq!(pipeline.status()[0].starts, 2);
}

#[tokio::test]
async fn a_hung_plugin_is_started_again() {
    let hanging = serde_json::json!({ "do": { "hang": "hang" } });
    let hung = PluginPlan {
        timeout: Duration::from_millis(20),
        required: false,
        ..with(plan("sleeper", Category::Content), hanging)
    };
    let pipeline = start(&[hung]).await;
    running(&pipeline).await;
    let plugin = &pipeline.plugins[0];
    for _ in 0..5 {
        pipeline.request(&call("hang"), json("{}")).await.unwrap();
    }
    plugin.until(|state| matches!(state, State::Down { .. })).await;
    plugin.until(|state| *state == State::Running).await;
    assert_eq!(pipeline.status()[0].starts, 2);
}

#[tokio::test]
async fn observers_are_told_and_never_awaited() {
    let log = Log::new();
    let observer = with(
        plan("observer", Category::Observability),
        serde_json::json!({ "log": log.file, "always": "hang" }),
    );
    let pipeline = start(&[observer]).await;
    running(&pipeline).await;
    let asked = pipeline.request(&call("push"), json(r#"{"a":1}"#)).await;
    assert_eq!(asked, Ok(json(r#"{"a":1}"#)));
    assert_eq!(pipeline.response(&call("push"), json("{}")).await, Ok(json("{}")));
    pipeline.close().await;
    let expected = ["observer request", "observer response", "observer shutdown"];
    assert_eq!(log.lines(), expected, "it was told all of it, and to end");
}

#[tokio::test]
async fn an_observer_that_is_not_there_misses_something() {
    let gone = PluginPlan {
        command: vec!["no-such-plugin".to_owned()],
        required: false,
        ..plan("gone", Category::Observability)
    };
    let pipeline = start(&[gone]).await;
    pipeline.plugins[0].until(|state| matches!(state, State::Down { .. })).await;
    for _ in 0..5_000 {
        assert!(pipeline.request(&call("push"), json("{}")).await.is_ok());
    }
    assert!(pipeline.status()[0].missed >= 1, "{:?}", pipeline.status());
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let missing = PluginPlan {
        command: vec!["no-such-plugin".to_owned()],
        ..plan("missing", Category::Validation)
    };
    let optional = PluginPlan { required: false, ..missing.clone() };
    let pipeline = Pipeline::begin(std::slice::from_ref(&missing));
    let rejected = pipeline.request(&call("push"), json("{}")).await.unwrap_err();
    assert!(rejected.message.contains("`no-such-plugin` was not found on PATH"), "{rejected}");
    let failure = Pipeline::start(&[plan("good", Category::Content), missing]).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "The plugin `missing` did not start: `no-such-plugin` was not found on PATH. Install it, or \
         give its full path. Try its command in a terminal, or say `required: false`."
    );
    let pipeline = start(&[optional]).await;
    assert!(pipeline.request(&call("push"), json("{}")).await.is_ok());
    let status = serde_json::to_value(pipeline.status()).unwrap();
    assert_eq!((&status[0]["name"], &status[0]["required"]), (&"missing".into(), &false.into()));
}

#[tokio::test]
async fn a_plugin_with_another_name_is_not_asked() {
    let mut liar = plan("liar", Category::Validation);
    liar.command[4] = "audit".to_owned();
    let failure = Pipeline::start(&[liar]).await.unwrap_err();
    assert!(failure.message.contains("it is for `audit`, and not for `validation`"), "{failure}");
}

#[tokio::test]
async fn the_duration_of_each_answer_is_observed() {
    let (told, mut times) = tokio::sync::mpsc::unbounded_channel();
    let pipeline = start(&[plan("p", Category::Validation)]).await;
    let pipeline = pipeline.watched(move |name, took| drop(told.send((name.to_owned(), took))));
    pipeline.request(&call("push"), json("{}")).await.unwrap();
    let (name, took) = times.recv().await.unwrap();
    assert!(name == "p" && took > Duration::ZERO);
}

#[tokio::test]
async fn dropping_tells_them_to_end_too() {
    let log = Log::new();
    let config = serde_json::json!({ "log": log.file });
    let pipeline = start(&[with(plan("p", Category::Validation), config)]).await;
    let task = pipeline.plugins[0].take_task().unwrap();
    drop(pipeline);
    task.await.unwrap();
    assert_eq!(log.lines(), ["p shutdown"]);
}

#[tokio::test]
async fn a_plugin_gets_its_own_variables_and_none_of_ours() {
    let mut spy =
        with(plan("spy", Category::Content), serde_json::json!({ "always": "environment" }));
    spy.env.push(("REGION".to_owned(), "eu".to_owned()));
    let pipeline = start(&[spy]).await;
    let seen = value(&pipeline.request(&call("push"), json("{}")).await.unwrap());
    assert_eq!(seen["REGION"], "eu");
    let socket = PathBuf::from(seen["TRUNKLINE_PLUGIN_SOCKET"].as_str().unwrap());
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some() && seen.get("CARGO_PKG_NAME").is_none());
    let folder = socket.parent().unwrap().to_owned();
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&folder).unwrap());
    assert_eq!(mode & 0o777, 0o700);
    let late = tokio::net::UnixStream::connect(&socket).await;
    assert!(late.is_err(), "one connection is all there is");
    pipeline.close().await;
    assert!(!folder.exists(), "nothing is left");
}

#[tokio::test]
async fn answers_in_any_order_reach_their_callers() {
    let count = 100;
    let config = serde_json::json!({ "always": "backwards", "count": count });
    let pipeline = Arc::new(start(&[with(plan("p", Category::Content), config)]).await);
    let asked = (0..count).map(|number| {
        let pipeline = Arc::clone(&pipeline);
        tokio::spawn(async move {
            let arguments = Json::of(&serde_json::json!({ "n": number }));
            (number, pipeline.request(&call("push"), arguments).await)
        })
    });
    for task in asked.collect::<Vec<_>>() {
        let (number, arguments) = task.await.unwrap();
        assert_eq!(value(&arguments.unwrap())["n"], 2 * number);
    }
}

#[tokio::test]
async fn arguments_that_can_be_read_in_two_ways_are_rejected() {
    let pipeline = start(&[plan("p", Category::Validation)]).await;
    let rejected = pipeline.request(&call("push"), json(r#"{"a":{"b":1,"b":2}}"#)).await;
    assert_eq!(rejected.unwrap_err().code, "ambiguous_arguments");
}

#[test]
fn what_a_plugin_says_is_bounded() {
    let plan = plan("p", Category::Validation);
    let long = Some("é".repeat(1 << 20));
    let answer = Answer::Reject { code: long.clone(), message: long };
    let Ok(Verdict::Reject(rejected)) = judge(&plan, Phase::Request, answer) else {
        panic!("it is a rejection");
    };
    assert!(rejected.code.len() < 70 && rejected.message.len() < 2_100);
}
