//! Many servers in one host: names, lists, consent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use serde_json::json;
use trunkline::client::{
    CallError, Client, Command, Consent, Event, Hooks, Host, HostError, Target, Wish,
};
use trunkline::model::{CreateMessageParams, LogLevel, SamplingMessage};
use trunkline::{Context, Form, Json, Server, ToolError, prompt, resource, tool};

use crate::client_peer::{Diary, ERAS};
use crate::http::House;

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema, Debug, PartialEq)]
struct Count {
    count: u32,
}

async fn ask(cx: Context) -> Result<String, ToolError> {
    #[derive(Form)]
    struct Yes {
        value: bool,
    }
    let yes = cx.ask::<Yes>("Sure?").await?.accepted()?;
    Ok(yes.value.to_string())
}

async fn think(cx: Context) -> Result<String, ToolError> {
    let params = CreateMessageParams::new(vec![SamplingMessage::user("2 + 2?")], 10);
    Ok(cx.sample(params).await?.text())
}

async fn chat(cx: Context) -> &'static str {
    cx.log(LogLevel::Info, json!("hello")).await;
    "said"
}

/// A server with an entry of every kind, which counts the calls of `delete.all`.
fn server(runs: &Arc<AtomicU32>) -> Server {
    let runs = Arc::clone(runs);
    let delete = move |cx: Context| {
        let count = runs.fetch_add(1, SeqCst) + 1;
        async move {
            cx.progress(1.0, 1.0).await;
            Json(Count { count })
        }
    };
    Server::builder("one", "1.0.0")
        .tool(tool("delete.all", delete))
        .tool(tool("ask", ask))
        .tool(tool("think", think))
        .tool(tool("chat", chat))
        .prompt(prompt("review", async || "Look at this.".to_owned()))
        .resource(resource("demo://x.y/z", "z", async || "text".to_owned()))
        .build()
}

fn text(result: &trunkline::model::CallToolResult) -> &str {
    result.content[0].as_text().unwrap()
}

fn names<T>(listed: &trunkline::client::Listed<T>) -> Vec<&str> {
    listed.items.iter().map(|it| it.name.as_str()).collect()
}

#[tokio::test]
async fn everything_has_a_name_that_leads_back_to_it() {
    let (one, bare) = (server(&Arc::default()), Server::builder("bare", "1").build());
    let house = House::of(&one).await;
    let host = Host::builder("app", "1.0.0")
        .server("one", &one)
        .server("web", format!("http://{}/mcp", house.address))
        .server("bare", &bare)
        .connect()
        .await
        .unwrap();
    assert_eq!(host.servers().collect::<Vec<_>>(), ["one", "web", "bare"]);
    let tools = host.tools().await;
    assert_eq!(tools.errors, []);
    let of =
        |server: &str| ["delete.all", "ask", "think", "chat"].map(|it| format!("{server}.{it}"));
    assert_eq!(names(&tools), [of("one"), of("web")].concat());
    assert_eq!(
        (tools.items[4].server.as_str(), tools.items[4].it.name.as_str()),
        ("web", "delete.all")
    );
    assert_eq!(names(&host.prompts().await), ["one.review", "web.review"]);
    assert_eq!(names(&host.resources().await), ["one.demo://x.y/z", "web.demo://x.y/z"]);
    assert_eq!(host.resource_templates().await.items, []);

    assert_eq!(host.call::<Count>("web.delete.all", ()).await.unwrap(), Count { count: 1 });
    assert_eq!(host.call::<Count>("one.delete.all", &json!({})).await.unwrap(), Count { count: 2 });
    let read = host.read_resource("web.demo://x.y/z").await.unwrap();
    assert_eq!(read.contents[0].uri, "demo://x.y/z");
    let none: [(&str, &str); 0] = [];
    assert_eq!(host.get_prompt("one.review", none).await.unwrap().messages.len(), 1);
    let mut stream = host.call::<Count>("one.delete.all", ()).stream();
    assert!(matches!(stream.next().await, Some(Event::Progress(_))));
    assert_eq!(stream.next().await, Some(Event::Done(Ok(Count { count: 3 }))));
    assert_eq!(host.client("one").unwrap().server_info().unwrap().name, "one");

    for unknown in ["two.x", "one", "one.", ".x", ""] {
        let error = host.call_tool(unknown, ()).await.unwrap_err();
        assert!(matches!(&error, CallError::Refused(_)), "{error}");
        assert!(error.to_string().contains("`one`, `web`, `bare`"), "{error}");
    }
    let closed = host.close().await;
    assert_eq!(closed.len(), 3);
}

#[tokio::test]
async fn one_bad_server_does_not_break_the_others() {
    let one = server(&Arc::default());
    let host = Host::builder("app", "1.0.0")
        .server("gone", Command::new("/nowhere/no-such-server"))
        .server("one", &one)
        .connect()
        .await
        .unwrap();
    let failures: Vec<_> = host.failures().map(|(name, error)| (name, error.stage())).collect();
    assert_eq!(failures, [("gone", "spawn")]);
    assert!(host.client("gone").is_none());
    let tools = host.tools().await;
    assert_eq!(tools.items.len(), 4);
    let [(name, CallError::Unreachable(why))] = &tools.errors[..] else { panic!("{tools:?}") };
    assert!(name == "gone" && why.contains("no-such-server"), "{why}");
    assert!(matches!(host.call_tool("gone.x", ()).await, Err(CallError::Unreachable(_))));
    assert_eq!(text(&host.call_tool("one.chat", ()).await.unwrap()), "said");
}

#[tokio::test]
async fn names_that_would_be_ambiguous_are_refused() {
    let one = server(&Arc::default());
    for bad in ["", "a.b", "a b", "ä"] {
        let built = Host::builder("app", "1").server(bad, &one).connect().await;
        assert_eq!(built.unwrap_err(), HostError::BadName(bad.to_owned()));
    }
    let twice = Host::builder("app", "1").server("a", &one).server("a", Target::from(&one));
    assert_eq!(twice.connect().await.unwrap_err(), HostError::NameTwice("a".to_owned()));
}

/// A consent rule that `allowed` names: `allow`, `deny` or `ask`.
fn rule(allowed: &'static str, seen: Diary) -> impl Fn(&Wish) -> Consent + Send + Sync + 'static {
    move |wish| {
        seen.note(format!("may I {wish}?"));
        assert_eq!(wish.server(), "one");
        match allowed {
            "allow" => Consent::Allow,
            "deny" => Consent::deny("Not today."),
            _ => Consent::Ask,
        }
    }
}

#[tokio::test]
async fn a_tool_is_called_only_with_consent() {
    let cases = [
        ("allow", None, Ok(())),
        ("deny", Some(true), Err("Not today.")),
        ("ask", Some(true), Ok(())),
        ("ask", Some(false), Err("The user said no.")),
        ("ask", None, Err("there is no way to ask")),
    ];
    for revision in ERAS {
        for (allowed, user, expected) in cases {
            let (runs, diary) = (Arc::default(), Diary::default());
            let client = Client::builder("app", "1").protocol(revision);
            let mut host = Host::builder("app", "1")
                .server_with("one", client, &server(&runs))
                .consent(rule(allowed, diary.clone()));
            if let Some(user) = user {
                host = host.on_consent(move |wish| async move {
                    let Wish::Tool { tool, arguments, .. } = wish else { panic!("{wish}") };
                    assert_eq!((tool.as_str(), arguments.get()), ("delete.all", "{\"sure\":1}"));
                    user
                });
            }
            let host = host.connect().await.unwrap();
            let outcome = host.call::<Count>("one.delete.all", &json!({ "sure": 1 })).await;
            assert_eq!(diary.read(), ["may I call `one.delete.all`?"]);
            match expected {
                Ok(()) => assert_eq!(outcome, Ok(Count { count: 1 })),
                Err(part) => {
                    let Err(CallError::Denied(why)) = outcome else { panic!("{outcome:?}") };
                    assert!(why.contains(part), "{why}");
                }
            }
            assert_eq!(runs.load(SeqCst), u32::from(expected.is_ok()));
        }
    }
}

#[tokio::test]
async fn without_a_rule_whoever_can_be_asked_is_asked_about_everything() {
    for agrees in [true, false] {
        let (runs, diary) = (Arc::default(), Diary::default());
        let note = diary.clone();
        let host = Host::builder("app", "1")
            .server("one", &server(&runs))
            .hooks(Hooks::new().on_ask(|question| async move { question.accept(true) }))
            .on_consent(move |wish| {
                note.note(wish.to_string());
                let is_tool = matches!(&wish, Wish::Tool { tool, .. } if tool != "delete.all");
                async move { is_tool || agrees }
            })
            .connect()
            .await
            .unwrap();
        assert_eq!(host.call_tool("one.delete.all", ()).await.is_ok(), agrees);
        assert_eq!(runs.load(SeqCst), u32::from(agrees));
        let asked = host.call_tool("one.ask", ()).await;
        assert_eq!(asked.is_ok_and(|it| !it.is_error()), agrees);
        assert_eq!(diary.read(), ["call `one.delete.all`", "call `one.ask`", "let `one` ask you"]);
    }
}

#[tokio::test]
async fn with_nobody_to_decide_servers_reach_only_what_the_hooks_answer() {
    let runs = Arc::default();
    let hooks = Hooks::new().on_ask(|question| async move { question.accept(true) });
    let host = Host::builder("app", "1").server("one", &server(&runs)).hooks(hooks);
    let host = host.connect().await.unwrap();
    assert!(host.call_tool("one.delete.all", ()).await.is_ok());
    assert_eq!(text(&host.call_tool("one.ask", ()).await.unwrap()), "true");
    let thought = host.call_tool("one.think", ()).await;
    assert!(thought.is_err() || thought.unwrap().is_error(), "there is no model");
    let host = Host::builder("app", "1").server("one", &server(&runs)).connect().await.unwrap();
    let asked = host.call_tool("one.ask", ()).await;
    assert!(asked.is_err() || asked.unwrap().is_error(), "there is nobody to ask");
}

#[tokio::test]
async fn the_annotations_of_a_tool_help_to_decide() {
    let (seen, runs) = (Diary::default(), Arc::default());
    let note = seen.clone();
    let host = Host::builder("app", "1").server("one", &server(&runs)).consent(move |wish| {
        let Wish::Tool { annotations, .. } = wish else { panic!("{wish}") };
        note.note(annotations.is_some().to_string());
        Consent::Allow
    });
    let host = host.connect().await.unwrap();
    host.call_tool("one.chat", ()).await.unwrap();
    host.tools().await;
    host.call_tool("one.chat", ()).await.unwrap();
    assert_eq!(seen.read(), ["false", "true"]);
}

#[tokio::test]
async fn servers_ask_with_consent_and_are_named_to_whoever_answers() {
    for revision in ERAS {
        for (allowed, asked, thought) in
            [("allow", Some("true"), Some("Four.")), ("deny", None, None)]
        {
            let diary = Diary::default();
            let hooks = Hooks::new()
                .on_ask(|question| async move {
                    assert_eq!(question.server(), Some("one"));
                    question.accept(true)
                })
                .on_sample(|request| async move {
                    assert_eq!(request.server(), Some("one"));
                    request.reply("m", "Four.")
                });
            let of_servers = rule(allowed, diary.clone());
            let client = Client::builder("app", "1").protocol(revision);
            let host = Host::builder("app", "1")
                .server_with("one", client, &server(&Arc::default()))
                .hooks(hooks)
                .consent(move |wish| match wish {
                    Wish::Tool { .. } => Consent::Allow,
                    other => of_servers(other),
                })
                .connect()
                .await
                .unwrap();
            for (tool, expected) in [("one.ask", asked), ("one.think", thought)] {
                let outcome = host.call_tool(tool, ()).await;
                match expected {
                    Some(expected) => assert_eq!(text(&outcome.unwrap()), expected, "{revision}"),
                    None => assert!(outcome.is_err() || outcome.unwrap().is_error(), "{tool}"),
                }
            }
            let seen = ["may I let `one` ask you?", "may I let `one` ask the model?"];
            assert_eq!(diary.read(), seen, "{revision}");
        }
    }
}

#[tokio::test]
async fn logs_say_whose_they_are() {
    let diary = Diary::default();
    let heard = diary.clone();
    let one = server(&Arc::default());
    let client = || Client::builder("app", "1").log_level(LogLevel::Debug);
    let host = Host::builder("app", "1")
        .server_with("a", client(), &one)
        .server_with("b", client(), &one)
        .on_log(move |server, message| heard.note(format!("{server}: {}", message.data)))
        .connect()
        .await
        .unwrap();
    host.call_tool("b.chat", ()).await.unwrap();
    host.call_tool("a.chat", ()).await.unwrap();
    assert_eq!(diary.read(), ["b: \"hello\"", "a: \"hello\""]);
}

#[tokio::test]
async fn a_denied_call_is_over_at_once_as_a_stream_too() {
    let runs = Arc::default();
    let host = Host::builder("app", "1")
        .server("one", &server(&runs))
        .consent(|_| Consent::deny("No."))
        .connect()
        .await
        .unwrap();
    let mut steps = 0;
    let mut stream = host.call_tool("one.delete.all", ()).stream();
    while let Some(event) = stream.next().await {
        steps += 1;
        assert_eq!(event, Event::Done(Err(CallError::Denied("No.".to_owned()))));
    }
    assert_eq!((steps, runs.load(SeqCst)), (1, 0));
}
