//! Conversations with the demo, each in every revision that has it, in memory and over stdio, with
//! lines and with `Content-Length` headers: what is heard must be the same all four ways, and every
//! message is judged by its revision's schema.

use serde_json::{Value, json};
use trunkline::Revision::{self, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};
use trunkline::client::Framing;
use trunkline_testkit::peer::{Peer, masked};

use crate::stdio::{Session, Way};

const ALL: [Revision; 5] = Revision::ALL;
const STATEFUL: [Revision; 4] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];

/// Plays a script after the handshake, in each of `revisions`, all four ways.
async fn play(revisions: impl IntoIterator<Item = Revision>, script: impl AsyncFn(&mut Peer)) {
    play_from(revisions, async |peer| {
        peer.open().await;
        script(peer).await;
    })
    .await;
}

/// Plays a script that shakes hands itself, or does not.
async fn play_from(revisions: impl IntoIterator<Item = Revision>, script: impl AsyncFn(&mut Peer)) {
    for revision in revisions {
        let mut first: Option<Vec<Value>> = None;
        for way in Way::ALL {
            let mut session = Session::new(way, revision).await;
            script(&mut session.peer).await;
            let heard: Vec<Value> = session.peer.heard.iter().map(masked).collect();
            session.end().await;
            assert!(!heard.is_empty(), "a conversation without an answer shows nothing");
            let first = first.get_or_insert_with(|| heard.clone());
            assert_eq!(&heard, first, "{way:?} differs from {:?} in {revision}", Way::ALL[0]);
        }
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("there is no text in {result}"))
}

/// The notifications of one method among what was heard.
fn notified<'a>(peer: &'a Peer, method: &str) -> Vec<&'a Value> {
    let of_method = peer.heard.iter().filter(|it| it["method"] == method);
    of_method.map(|it| &it["params"]).collect()
}

fn names<'a>(result: &'a Value, list: &str, member: &str) -> Vec<&'a str> {
    let items = result[list].as_array().expect("a list is an array");
    items.iter().map(|it| it[member].as_str().expect("names are texts")).collect()
}

#[tokio::test]
async fn a_handshake_tells_who_the_server_is_and_what_it_offers() {
    play(ALL, async |peer| {
        let info = match peer.is_stateless() {
            true => &peer.opened["_meta"]["io.modelcontextprotocol/serverInfo"],
            false => &peer.opened["serverInfo"],
        };
        assert_eq!(info["name"], "trunkline-demo");
        assert!(peer.opened["instructions"].as_str().is_some_and(|it| it.contains("greet")));
        let offered = &peer.opened["capabilities"];
        for list in ["tools", "prompts", "resources"] {
            assert_eq!(offered[list]["listChanged"], true);
        }
        assert_eq!(offered["resources"]["subscribe"], true);
        assert!(offered["logging"].is_object());
        let has = |name: &str| offered.get(name).is_some();
        assert_eq!(has("completions"), peer.revision() >= V2025_03_26);
        assert_eq!(has("tasks"), peer.revision() == V2025_11_25);
        assert_eq!(has("extensions"), peer.is_stateless());
    })
    .await;
}

#[tokio::test]
async fn a_method_is_served_only_in_the_revisions_that_have_it() {
    let methods = [
        ("initialize", V2024_11_05, V2025_11_25),
        ("ping", V2024_11_05, V2025_11_25),
        ("logging/setLevel", V2024_11_05, V2025_11_25),
        ("resources/subscribe", V2024_11_05, V2025_11_25),
        ("resources/unsubscribe", V2024_11_05, V2025_11_25),
        ("tasks/get", V2025_11_25, V2026_07_28),
        ("tasks/cancel", V2025_11_25, V2026_07_28),
        ("tasks/list", V2025_11_25, V2025_11_25),
        ("tasks/result", V2025_11_25, V2025_11_25),
        ("tasks/update", V2026_07_28, V2026_07_28),
        ("server/discover", V2026_07_28, V2026_07_28),
        ("subscriptions/listen", V2026_07_28, V2026_07_28),
        ("tools/invent", V2026_07_28, V2024_11_05),
        ("sampling/createMessage", V2026_07_28, V2024_11_05),
    ];
    play(ALL, async |peer| {
        for (method, since, until) in methods {
            if since <= peer.revision() && peer.revision() <= until {
                continue;
            }
            let error = peer.call_unchecked(method, json!({})).await.expect_err(method);
            assert_eq!(error["code"], -32601, "{method} in {}: {error}", peer.revision());
        }
        peer.tool("echo", json!({ "text": "still here" })).await;
    })
    .await;
}

#[tokio::test]
async fn a_ping_is_answered_even_before_the_handshake() {
    play_from(STATEFUL, async |peer| {
        peer.expect("ping", json!({})).await;
        assert_eq!(peer.refused("tools/list", json!({})).await, -32600);
        peer.open().await;
        assert_eq!(peer.expect("ping", json!({})).await, json!({}));
    })
    .await;
}

#[tokio::test]
async fn tools_are_listed_as_far_as_the_revision_can_describe_them() {
    play(ALL, async |peer| {
        let listed = peer.expect("tools/list", json!({})).await;
        let found = names(&listed, "tools", "name");
        for name in [
            "echo", "sum", "progress", "sleep", "greet", "book", "open_page", "sample", "roots",
            "log", "kinds", "fail", "boom", "touch", "announce", "work",
        ] {
            assert!(found.contains(&name), "{name} is missing in {found:?}");
        }
        let tool = |name: &str| {
            listed["tools"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap()
        };
        let has = |name: &str, member: &str| tool(name).get(member).is_some();
        assert_eq!(has("echo", "annotations"), peer.revision() >= V2025_03_26);
        assert_eq!(has("sum", "title"), peer.revision() >= V2025_06_18);
        assert_eq!(has("sum", "outputSchema"), peer.revision() >= V2025_06_18);
        assert_eq!(has("work", "execution"), peer.revision() == V2025_11_25);
        assert_eq!(tool("echo")["inputSchema"]["properties"]["text"]["type"], "string");
    })
    .await;
}

#[tokio::test]
async fn tools_answer_and_fail_as_the_revision_has_it() {
    play(ALL, async |peer| {
        let said = "Grüße, 世界\n\u{2028}\"\\ \u{1f600}";
        let echoed = peer.tool("echo", json!({ "text": said })).await;
        assert_eq!(text(&echoed), said);

        let sum = peer.tool("sum", json!({ "a": 2, "b": 3 })).await;
        assert_eq!(text(&sum), r#"{"sum":5}"#);
        let structured = (peer.revision() >= V2025_06_18).then(|| json!({ "sum": 5 }));
        assert_eq!(sum.get("structuredContent"), structured.as_ref());

        let failed = peer.tool("fail", json!({ "message": "No bread." })).await;
        assert_eq!((&failed["isError"], text(&failed)), (&json!(true), "No bread."));

        assert_eq!(peer.refused("tools/call", json!({ "name": "nobody" })).await, -32602);
        let wrong = json!({ "name": "sum", "arguments": { "a": "two" } });
        match peer.call("tools/call", wrong).await {
            Err(error) => {
                assert!(peer.revision() < V2025_11_25);
                assert_eq!(error["code"], -32602);
            }
            Ok(result) => {
                assert!(peer.revision() >= V2025_11_25);
                assert_eq!(result["isError"], true);
                assert!(text(&result).starts_with("The arguments do not fit"), "{result}");
            }
        }
        let boom = peer.call("tools/call", json!({ "name": "boom" })).await.unwrap_err();
        assert_eq!((&boom["code"], &boom["data"]["reason"]), (&json!(-32603), &json!("panic")));
        assert!(!boom.to_string().contains("this is what"), "the panic's text stays inside");
    })
    .await;
}

#[tokio::test]
async fn content_of_every_kind_reaches_those_who_know_it() {
    play(ALL, async |peer| {
        let result = peer.tool("kinds", json!({})).await;
        let kinds = names(&result, "content", "type");
        let expected: &[&str] = match peer.revision() {
            V2024_11_05 => &["text", "image", "text", "text", "resource"],
            V2025_03_26 => &["text", "image", "audio", "text", "resource"],
            _ => &["text", "image", "audio", "resource_link", "resource"],
        };
        assert_eq!(kinds, expected, "in {}", peer.revision());
    })
    .await;
}

#[tokio::test]
async fn resources_and_templates_are_listed_and_read() {
    play(ALL, async |peer| {
        let listed = peer.expect("resources/list", json!({})).await;
        assert_eq!(names(&listed, "resources", "uri"), ["demo://readme", "demo://logo"]);
        let listed = peer.expect("resources/templates/list", json!({})).await;
        let templates = names(&listed, "resourceTemplates", "uriTemplate");
        assert_eq!(templates, ["demo://greeting/{name}"]);

        let readme = peer.expect("resources/read", json!({ "uri": "demo://readme" })).await;
        assert_eq!(readme["contents"][0]["mimeType"], "text/markdown");
        assert!(readme["contents"][0]["text"].as_str().unwrap().starts_with("# The trunkline demo"));
        let logo = peer.expect("resources/read", json!({ "uri": "demo://logo" })).await;
        assert!(logo["contents"][0]["blob"].as_str().unwrap().starts_with("iVBORw0KGgo"));
        let uri = "demo://greeting/Ada%20Lovelace";
        let greeting = peer.expect("resources/read", json!({ "uri": uri })).await;
        assert_eq!(greeting["contents"][0]["text"], "Hello, Ada Lovelace!");
        assert_eq!(greeting["contents"][0]["uri"], uri);

        let nowhere = json!({ "uri": "demo://nowhere" });
        let error = peer.call("resources/read", nowhere).await.unwrap_err();
        let code = if peer.is_stateless() { -32602 } else { -32002 };
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(code), &json!("demo://nowhere")));
    })
    .await;
}

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    play(ALL, async |peer| {
        let listed = peer.expect("prompts/list", json!({})).await;
        assert_eq!(names(&listed, "prompts", "name"), ["review", "greet"]);
        assert_eq!(listed["prompts"][0]["arguments"][0]["name"], "code");
        assert_eq!(listed["prompts"][0]["arguments"][0]["required"], true);

        let review = json!({ "name": "review", "arguments": { "code": "x = 1", "language": "ruby" } });
        let got = peer.expect("prompts/get", review).await;
        assert_eq!(got["messages"][0]["role"], "user");
        assert_eq!(
            got["messages"][0]["content"]["text"],
            "Please review this code:\n```ruby\nx = 1\n```"
        );
        for wrong in [json!({ "name": "review" }), json!({ "name": "nobody" })] {
            assert_eq!(peer.refused("prompts/get", wrong).await, -32602);
        }
    })
    .await;
}

#[tokio::test]
async fn arguments_are_completed() {
    play(ALL, async |peer| {
        let prompt = json!({ "type": "ref/prompt", "name": "review" });
        let template = json!({ "type": "ref/resource", "uri": "demo://greeting/{name}" });
        for (reference, name, typed, expected) in [
            (&prompt, "language", "ru", vec!["ruby", "rust"]),
            (&prompt, "language", "", vec![
                "c", "go", "java", "javascript", "python", "ruby", "rust", "typescript",
            ]),
            (&prompt, "code", "x", vec![]),
            (&template, "name", "a", vec!["Ada", "Alan"]),
        ] {
            let argument = json!({ "name": name, "value": typed });
            let params = json!({ "ref": reference, "argument": argument });
            let result = peer.expect("completion/complete", params).await;
            assert_eq!(result["completion"]["values"], json!(expected));
        }
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "nobody" },
            "argument": { "name": "language", "value": "" },
        });
        assert_eq!(peer.refused("completion/complete", params).await, -32602);
    })
    .await;
}

#[tokio::test]
async fn a_cursor_that_was_never_handed_out_is_refused() {
    play(ALL, async |peer| {
        for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            assert_eq!(peer.expect(list, json!({})).await.get("nextCursor"), None);
            for cursor in ["", "nonsense", "after-1000"] {
                let code = peer.refused(list, json!({ "cursor": cursor })).await;
                assert_eq!(code, -32602, "{list} {cursor:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_log_message_is_sent_to_those_who_chose_its_level() {
    play(ALL, async |peer| {
        let level = "io.modelcontextprotocol/logLevel";
        for (chosen, sent, heard) in [
            ("warning", "info", false),
            ("warning", "error", true),
            ("debug", "debug", true),
        ] {
            match peer.is_stateless() {
                true => drop(peer.meta.insert(level.to_owned(), json!(chosen))),
                false => drop(peer.expect("logging/setLevel", json!({ "level": chosen })).await),
            }
            let before = notified(peer, "notifications/message").len();
            peer.tool("log", json!({ "level": sent, "message": "The kettle boils." })).await;
            let messages = notified(peer, "notifications/message");
            assert_eq!(messages.len() > before, heard, "{sent} when {chosen} was chosen");
            if heard {
                let expected =
                    json!({ "level": sent, "logger": "demo", "data": "The kettle boils." });
                assert_eq!(*messages[before], expected);
            }
        }
        peer.meta.clear();
        if peer.is_stateless() {
            let before = peer.heard.len();
            peer.tool("log", json!({ "level": "emergency", "message": "Fire!" })).await;
            assert_eq!(peer.heard.len(), before + 1, "who chose no level hears no log");
        } else {
            let loud = peer.call_unchecked("logging/setLevel", json!({ "level": "loud" })).await;
            assert_eq!(loud.unwrap_err()["code"], -32602);
        }
    })
    .await;
}

#[tokio::test]
async fn progress_is_reported_to_those_who_ask_for_it() {
    play(ALL, async |peer| {
        for token in [json!("a token"), json!(7)] {
            let before = notified(peer, "notifications/progress").len();
            let params = json!({
                "name": "progress",
                "arguments": { "steps": 3 },
                "_meta": { "progressToken": token },
            });
            assert_eq!(text(&peer.expect("tools/call", params).await), "done");
            let steps = &notified(peer, "notifications/progress")[before..];
            assert_eq!(steps.len(), 3);
            for (at, step) in steps.iter().enumerate() {
                assert_eq!(step["progressToken"], token);
                assert_eq!((step["progress"].as_f64(), step["total"].as_f64()), (Some(at as f64 + 1.0), Some(3.0)));
                let message = format!("step {} of 3", at + 1);
                let message = (peer.revision() >= V2025_03_26).then_some(json!(message));
                assert_eq!(step.get("message"), message.as_ref());
            }
        }
        let before = peer.heard.len();
        peer.tool("progress", json!({ "steps": 2 })).await;
        assert_eq!(peer.heard.len(), before + 1, "nobody asked for progress");
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_and_the_next_one_is() {
    play(ALL, async |peer| {
        let sleep = json!({ "name": "sleep", "arguments": { "ms": 600_000 } });
        let id = peer.request("tools/call", sleep).await;
        peer.cancel(&id).await;
        peer.cancel(&json!("nobody")).await;
        let before = peer.heard.len();
        peer.tool("echo", json!({ "text": "awake" })).await;
        assert_eq!(peer.heard.len(), before + 1, "the cancelled call is silent");
        // Its id is free again.
        let again = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": peer.enveloped(json!({})) });
        peer.send(&again, None).await;
        assert!(peer.answer_to(&id).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_subscriber_hears_of_what_it_subscribed_to() {
    play(STATEFUL, async |peer| {
        let updated = "notifications/resources/updated";
        let (readme, logo) = (json!({ "uri": "demo://readme" }), json!({ "uri": "demo://logo" }));
        peer.tool("touch", readme.clone()).await;
        assert!(notified(peer, updated).is_empty(), "nobody has subscribed yet");
        peer.expect("resources/subscribe", readme.clone()).await;
        peer.tool("touch", logo).await;
        peer.tool("touch", readme.clone()).await;
        assert_eq!(notified(peer, updated), [&readme]);
        peer.expect("resources/unsubscribe", readme.clone()).await;
        peer.tool("touch", readme.clone()).await;
        assert_eq!(notified(peer, updated).len(), 1);

        for kind in ["tools", "prompts", "resources"] {
            peer.tool("announce", json!({ "kind": kind })).await;
            let method = format!("notifications/{kind}/list_changed");
            assert_eq!(notified(peer, &method).len(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_listener_hears_of_what_it_listens_to() {
    play([V2026_07_28], async |peer| {
        let tag = |id: &Value| json!({ "io.modelcontextprotocol/subscriptionId": id });
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["demo://readme"] });
        let first = peer.request("subscriptions/listen", json!({ "notifications": filter })).await;
        let acknowledged = peer.next().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(acknowledged["params"], json!({ "notifications": filter, "_meta": tag(&first) }));
        let prompts = json!({ "promptsListChanged": true });
        let second = peer.request("subscriptions/listen", json!({ "notifications": prompts })).await;
        peer.next().await;

        for kind in ["tools", "prompts", "resources"] {
            peer.tool("announce", json!({ "kind": kind })).await;
        }
        peer.tool("touch", json!({ "uri": "demo://logo" })).await;
        peer.tool("touch", json!({ "uri": "demo://readme" })).await;
        let only = |method: &str| {
            let found = notified(peer, method);
            assert!(found.len() <= 1, "{method}");
            found.first().map(|it| (*it).clone())
        };
        assert_eq!(only("notifications/tools/list_changed").unwrap()["_meta"], tag(&first));
        assert_eq!(only("notifications/prompts/list_changed").unwrap()["_meta"], tag(&second));
        assert_eq!(only("notifications/resources/list_changed"), None);
        let updated = only("notifications/resources/updated").unwrap();
        assert_eq!(updated, json!({ "uri": "demo://readme", "_meta": tag(&first) }));

        peer.cancel(&first).await;
        let before = peer.heard.len();
        peer.tool("announce", json!({ "kind": "tools" })).await;
        assert_eq!(peer.heard.len(), before + 1, "who stopped listening hears nothing");
        peer.cancel(&second).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_ends_says_goodbye_to_its_listeners() {
    for way in Way::ALL {
        let mut session = Session::new(way, V2026_07_28).await;
        let peer = &mut session.peer;
        peer.open().await;
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let id = peer.request("subscriptions/listen", filter).await;
        peer.next().await;
        peer.hang_up();
        let result = peer.answer_to(&id).await.unwrap();
        assert_eq!(result["resultType"], "complete", "{way:?}");
        assert_eq!(peer.try_next().await, None);
    }
}

/// Asks how a task stands until it stands so. Only the last answer counts as heard.
async fn until(peer: &mut Peer, task: &Value, status: &str) -> Value {
    loop {
        let before = peer.heard.len();
        let task = peer.expect("tasks/get", json!({ "taskId": task })).await;
        if task["status"] == status {
            return task;
        }
        assert_eq!(task["status"], "working", "{task}");
        peer.heard.truncate(before);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_tool_runs_as_a_task_when_its_caller_wants_one() {
    play([V2025_11_25], async |peer| {
        let work = json!({ "name": "work", "arguments": { "steps": 2 }, "task": { "ttl": 60_000 } });
        let created = peer.expect("tools/call", work).await;
        let (task, id) = (&created["task"], &created["task"]["taskId"]);
        assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)));

        let result = peer.expect("tasks/result", json!({ "taskId": id })).await;
        assert_eq!(text(&result), "worked 2 steps");
        let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": id } });
        assert_eq!(result["_meta"], related);
        let task = peer.expect("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["status"], "completed");
        let listed = peer.expect("tasks/list", json!({})).await;
        assert_eq!(names(&listed, "tasks", "status"), ["completed"]);
        assert_eq!(peer.refused("tasks/cancel", json!({ "taskId": id })).await, -32602);

        let long = json!({ "name": "work", "arguments": { "steps": 1000 }, "task": {} });
        let id = peer.expect("tools/call", long).await["task"]["taskId"].clone();
        let cancelled = peer.expect("tasks/cancel", json!({ "taskId": id })).await;
        assert_eq!(cancelled["status"], "cancelled");
        assert_eq!(peer.refused("tasks/get", json!({ "taskId": "guess" })).await, -32602);

        let no_task = json!({ "name": "echo", "arguments": { "text": "" }, "task": {} });
        assert_eq!(peer.refused("tools/call", no_task).await, -32601);
        let plain = peer.tool("work", json!({ "steps": 1 })).await;
        assert_eq!(text(&plain), "worked 1 steps");
    })
    .await;
}

#[tokio::test]
async fn a_tool_runs_as_a_task_for_those_who_know_the_extension() {
    play([V2026_07_28], async |peer| {
        let work = json!({ "name": "work", "arguments": { "steps": 2 } });
        let plain = peer.expect("tools/call", work.clone()).await;
        assert_eq!((&plain["resultType"], text(&plain)), (&json!("complete"), "worked 2 steps"));
        assert_eq!(peer.refused("tasks/get", json!({ "taskId": "guess" })).await, -32021);

        peer.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        let created = peer.expect("tools/call", work).await;
        assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
        let done = until(peer, &created["taskId"], "completed").await;
        assert_eq!(text(&done["result"]), "worked 2 steps");

        let long = json!({ "name": "work", "arguments": { "steps": 1000 } });
        let created = peer.expect("tools/call", long).await;
        let id = json!({ "taskId": created["taskId"] });
        peer.expect("tasks/cancel", id.clone()).await;
        until(peer, &created["taskId"], "cancelled").await;
        // Too late is no error in this generation.
        peer.expect("tasks/cancel", id).await;
        assert_eq!(peer.refused("tasks/get", json!({ "taskId": "guess" })).await, -32602);
    })
    .await;
}

#[tokio::test]
async fn questions_are_asked_and_their_answers_used() {
    play(ALL, async |peer| {
        assert_eq!(
            text(&peer.tool("sample", json!({ "prompt": "What is it?" })).await),
            "oracle-1 said: forty-two"
        );
        assert_eq!(text(&peer.tool("roots", json!({})).await), "file:///home/ada\nfile:///srv");
        if peer.revision() >= V2025_06_18 {
            assert_eq!(text(&peer.tool("greet", json!({})).await), "Hello, Ada!");
            let prompt = peer.expect("prompts/get", json!({ "name": "greet" })).await;
            let said = &prompt["messages"][0]["content"]["text"];
            assert_eq!(said, "Say hello to Ada, in one sentence.");
        }
        if peer.revision() >= V2025_11_25 {
            assert_eq!(text(&peer.tool("open_page", json!({})).await), "accepted");
        }
    })
    .await;
}

#[tokio::test]
async fn broken_messages_are_refused_and_the_conversation_goes_on() {
    play(ALL, async |peer| {
        let unreadable = (peer.revision() < V2025_11_25).then_some(&Value::Null);
        for (broken, code) in [
            ("not json", -32700),
            (r#"{"jsonrpc":"2.0","id":"#, -32700),
            ("[]", -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, -32600),
            (r#""text""#, -32600),
            ("{}", -32600),
        ] {
            peer.send_text(broken).await;
            let answer = peer.next().await;
            assert_eq!(answer["error"]["code"], code, "{broken}: {answer}");
            assert_eq!(answer.get("id"), unreadable, "{broken} in {}", peer.revision());
        }
        for (broken, id, code) in [
            (r#"{"jsonrpc":"1.0","id":"a","method":"tools/list"}"#, "a", -32600),
            (r#"{"jsonrpc":"2.0","id":"b","method":7}"#, "b", -32600),
            (r#"{"jsonrpc":"2.0","id":"c","method":"tools/list","params":[1]}"#, "c", -32602),
            (r#"{"jsonrpc":"2.0","id":"d","id":"d","method":"tools/list"}"#, "d", -32600),
        ] {
            peer.send_text(broken).await;
            let answer = peer.next().await;
            assert_eq!(answer["error"]["code"], code, "{broken}: {answer}");
            if id != "d" {
                assert_eq!(answer["id"], id, "{broken}");
            }
        }
        // Nobody answers these.
        for ignored in [
            r#"{"jsonrpc":"2.0","id":"nobody","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"?"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/unheard_of"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}"#,
        ] {
            peer.send_text(ignored).await;
        }
        let before = peer.heard.len();
        peer.tool("echo", json!({ "text": "unshaken" })).await;
        assert_eq!(peer.heard.len(), before + 1);
    })
    .await;
}

#[tokio::test]
async fn a_batch_is_answered_where_batches_exist_and_refused_elsewhere() {
    play(STATEFUL, async |peer| {
        let echo = json!({ "name": "echo", "arguments": { "text": "batched" } });
        let first = peer.prepare("tools/call", echo);
        let second = peer.prepare("ping", json!({}));
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/unheard_of" });
        peer.send_text(&json!([first, note, second]).to_string()).await;
        let answer = peer.next().await;
        if peer.revision() <= V2025_03_26 {
            let mut ids: Vec<_> = answer.as_array().unwrap().iter().map(|it| &it["id"]).collect();
            ids.sort_by_key(|it| it.as_i64());
            assert_eq!(ids, [&first["id"], &second["id"]]);
        } else {
            assert_eq!(answer["error"]["code"], -32600);
        }
        peer.expect("ping", json!({})).await;
    })
    .await;
}

#[tokio::test]
async fn a_request_of_the_newest_revision_must_say_who_speaks() {
    play([V2026_07_28], async |peer| {
        let version = "io.modelcontextprotocol/protocolVersion";
        let mut strange = peer.prepare("tools/list", json!({}));
        strange["params"]["_meta"][version] = json!("2031-01-01");
        peer.send_text(&strange.to_string()).await;
        let error = peer.answer_to(&strange["id"]).await.unwrap_err();
        assert_eq!(error["code"], -32022);
        assert_eq!(error["data"], json!({ "supported": ["2026-07-28"], "requested": "2031-01-01" }));

        let mut anonymous = peer.prepare("tools/list", json!({}));
        let meta = anonymous["params"]["_meta"].as_object_mut().unwrap();
        meta.remove("io.modelcontextprotocol/clientCapabilities");
        peer.send_text(&anonymous.to_string()).await;
        let error = peer.answer_to(&anonymous["id"]).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
    })
    .await;
}

#[tokio::test]
async fn one_process_speaks_every_revision_to_one_peer() {
    for framing in [Framing::Newline, Framing::ContentLength] {
        let mut session = Session::new(Way::Process(framing), V2025_06_18).await;
        session.peer.open().await;
        let peer = &mut session.peer;
        // A stateless request in the middle of a session speaks for itself alone.
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "peer", "version": "2" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = json!({
            "jsonrpc": "2.0", "id": "new", "method": "tools/call",
            "params": { "name": "echo", "arguments": { "text": "hi" }, "_meta": meta },
        });
        peer.remember(&request);
        peer.send_text(&request.to_string()).await;
        let result = peer.answer_to(&json!("new")).await.unwrap();
        assert_eq!(result["resultType"], "complete");
        let result = peer.tool("echo", json!({ "text": "hi" })).await;
        assert_eq!(result.get("resultType"), None);
        session.end().await;
    }
}
