//! What a server has: tools, resources, prompts, completions, and the questions it asks.

use serde_json::json;
use trunkline::Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};

use super::{ALL, names, play, text};

#[tokio::test]
async fn tools_are_listed_as_far_as_the_revision_can_describe_them() {
    play(ALL, async |peer| {
        let listed = peer.expect("tools/list", json!({})).await;
        let found = names(&listed, "tools", "name");
        for name in [
            "echo",
            "sum",
            "progress",
            "sleep",
            "greet",
            "book",
            "open_page",
            "sample",
            "roots",
            "log",
            "kinds",
            "fail",
            "boom",
            "touch",
            "announce",
            "work",
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
        let boom = peer.tool("boom", json!({})).await;
        assert_eq!(boom["isError"], true);
        assert!(text(&boom).starts_with("`boom` failed unexpectedly."), "{boom}");
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
            V2024_11_05 => &["text", "image", "resource", "text", "resource"],
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
        let lists: [(&str, &str, &str, &[&str]); 2] = [
            ("resources/list", "resources", "uri", &["demo://readme", "demo://logo"]),
            (
                "resources/templates/list",
                "resourceTemplates",
                "uriTemplate",
                &["demo://greeting/{name}"],
            ),
        ];
        for (method, list, member, expected) in lists {
            let listed = peer.expect(method, json!({})).await;
            assert_eq!(names(&listed, list, member), expected);
        }

        let readme = peer.expect("resources/read", json!({ "uri": "demo://readme" })).await;
        assert_eq!(readme["contents"][0]["mimeType"], "text/markdown");
        assert!(
            readme["contents"][0]["text"].as_str().unwrap().starts_with("# The trunkline demo")
        );
        let logo = peer.expect("resources/read", json!({ "uri": "demo://logo" })).await;
        assert!(logo["contents"][0]["blob"].as_str().unwrap().starts_with("iVBORw0KGgo"));
        let uri = "demo://greeting/Ada%20Lovelace";
        let greeting = peer.expect("resources/read", json!({ "uri": uri })).await;
        assert_eq!(greeting["contents"][0]["text"], "Hello, Ada Lovelace!");
        assert_eq!(greeting["contents"][0]["uri"], uri);

        let nowhere = json!({ "uri": "demo://nowhere" });
        let error = peer.call("resources/read", nowhere).await.unwrap_err();
        let code = if peer.is_stateless() { -32602 } else { -32002 };
        assert_eq!(
            (&error["code"], &error["data"]["uri"]),
            (&json!(code), &json!("demo://nowhere"))
        );
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

        let review =
            json!({ "name": "review", "arguments": { "code": "x = 1", "language": "ruby" } });
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
            (
                &prompt,
                "language",
                "",
                vec!["c", "go", "java", "javascript", "python", "ruby", "rust", "typescript"],
            ),
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
