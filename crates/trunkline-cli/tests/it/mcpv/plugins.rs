//! Programs that look at every call: their order, what they refuse, and what they change.

use serde_json::{Value, json};

use super::place::{Caller, Place, SOON, reason, until, write};

/// A plugin: it notes what it is asked about, and does what its configuration says.
const PLUGIN: &str = r#"
name, category, log = sys.argv[1:]
say(type="hello", name=name, category=category, version="1.0")
config = {}
for line in reader:
    message = json.loads(line)
    if message["type"] == "configure":
        config = message["config"]
    elif message["type"] == "shutdown":
        break
    else:
        call = message["call"]
        with open(log, "a") as out:
            out.write(f"{message['type']} {category} {call['server']}.{call['tool']}\n")
        answer = {"id": message["id"], "decision": "continue"}
        if message["type"] == "request":
            text = call["arguments"].get("text", "")
            if text == config.get("dies_at"):
                sys.exit(1)
            if text == config.get("refuses"):
                answer.update(decision="reject", code="not_that", message=f"Not {text}.")
            elif config.get("adds"):
                answer["arguments"] = {**call["arguments"], "text": text + config["adds"]}
        elif config.get("ends"):
            result = message["result"]
            result["content"][0]["text"] += config["ends"]
            answer["result"] = result
        say(**answer)
"#;

/// The whole program.
pub(super) fn program() -> String {
    [trunkline_testkit::PLUGIN, PLUGIN].concat()
}

fn plugin(place: &Place, category: &str, required: bool, config: Value) -> Value {
    let command =
        json!(["python3", place.text("plugin.py"), category, category, place.text("asked")]);
    json!({
        "name": category, "category": category, "required": required,
        "command": command, "config": config,
    })
}

async fn echo(client: &mut Caller, text: &str) -> super::place::Said {
    client.call("a.echo", json!({ "text": text })).await
}

#[tokio::test]
async fn b18_plugins_decide_in_their_order_and_change_calls_and_replies() {
    let place = Place::new("b18");
    write(&place.path("plugin.py"), &program());
    // Against their order.
    let plugins = json!([
        plugin(&place, "audit", true, json!({})),
        plugin(&place, "content", true, json!({ "adds": "!", "ends": "?", "dies_at": "die" })),
        plugin(&place, "validation", true, json!({})),
        plugin(&place, "rate_limiting", false, json!({ "dies_at": "drop" })),
        plugin(&place, "authorization", true, json!({ "refuses": "bad" })),
        plugin(&place, "authentication", true, json!({})),
        plugin(&place, "observability", true, json!({})),
    ]);
    place.write(&json!({
        "mcpServers": { "a": place.fake("a", &[], json!({ "tags": ["t"] })) },
        "gateway": { "plugins": plugins, "automatic": { "tags": ["agent"] } },
    }));
    let gateway = place.open("127.0.0.1:0").await;
    let mut client = gateway.client().await;
    let asked = |kind: &str| -> Vec<String> {
        let text = std::fs::read_to_string(place.path("asked")).unwrap_or_default();
        let of_kind = text.lines().filter_map(|it| it.strip_prefix(kind)?.strip_prefix(' '));
        of_kind.map(str::to_owned).collect()
    };

    // What a content plugin changes is what the server and the caller get.
    assert_eq!(echo(&mut client, "hello").await, Ok("hello!?".to_owned()));
    assert_eq!(place.log().of("call")[0]["arguments"]["text"], "hello!");
    let order =
        ["authentication", "authorization", "rate_limiting", "validation", "content", "audit"];
    for kind in ["request", "response"] {
        let found = asked(kind);
        let found: Vec<_> = found.iter().filter_map(|it| it.strip_suffix(" a.echo")).collect();
        let waited: Vec<_> = found.iter().copied().filter(|it| *it != "observability").collect();
        assert_eq!(waited, order, "{kind}");
    }
    until("the one that only looks to have seen it", SOON, async || {
        asked("request").iter().any(|it| it.starts_with("observability"))
    })
    .await;

    // A rejection is a result that models read, and the server hears nothing of it.
    let refused = echo(&mut client, "bad").await.unwrap_err();
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(refused["content"][0]["text"], "not_that: Not bad.");
    assert_eq!(place.log().of("call").len(), 1);

    // The tool behind `call_tool` meets the same policy, under its own name.
    let mut agent = gateway.client_at("/mcp/tags/agent,t").await;
    let inner = json!({ "name": "a.echo", "arguments": { "text": "bad" } });
    let refused = agent.call("trunkline.call_tool", inner).await.unwrap_err();
    assert_eq!(refused["content"][0]["text"], "not_that: Not bad.", "{refused}");
    let inner = json!({ "name": "a.echo", "arguments": { "text": "fine" } });
    assert_eq!(agent.call("trunkline.call_tool", inner).await, Ok("fine!?".to_owned()));
    assert!(asked("request").iter().all(|it| it.ends_with(" a.echo")), "{:?}", asked("request"));

    // Without one that is optional things go on; without one that is required they do not.
    assert_eq!(echo(&mut client, "drop").await, Ok("drop!?".to_owned()));
    let failed = echo(&mut client, "die").await;
    let told = failed.unwrap_err();
    let text = told["content"][0]["text"].as_str();
    let is_told = told["data"]["reason"] == "plugin_failed"
        || text.is_some_and(|it| it.starts_with("plugin_failed"));
    assert!(is_told, "{told}");
    assert_eq!(place.log().of("call").len(), 3, "hello, fine, drop");
    until("it to be started again", SOON, async || echo(&mut client, "x").await.is_ok()).await;
}

#[tokio::test]
async fn b18_a_plugin_that_is_required_must_start() {
    let place = Place::new("b18-start");
    let servers = json!({ "a": place.fake("a", &[], json!({})) });
    let plugins = |required: bool| json!([{ "name": "gone", "category": "audit", "required": required, "command": ["/nowhere/at-all"] }]);
    place.write(&json!({ "mcpServers": servers, "gateway": { "plugins": plugins(true) } }));
    let output = place.command().args(["--listen", "127.0.0.1:0"]).output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("`gone`"), "{said}");
    place.write(&json!({ "mcpServers": servers, "gateway": { "plugins": plugins(false) } }));
    let gateway = place.open("127.0.0.1:0").await;
    assert_eq!(echo(&mut gateway.client().await, "on").await, Ok("on".to_owned()));

    // Nor is such a catalog taken over later.
    place.write(&json!({ "mcpServers": {}, "gateway": { "plugins": plugins(true) } }));
    until("the reload to fail", SOON, async || {
        gateway.told("GET /v1/status").await["lastReload"]["ok"] == false
    })
    .await;
    assert_eq!(echo(&mut gateway.client().await, "still").await, Ok("still".to_owned()));
    let unknown = gateway.client().await.call("a.nothing", json!({})).await;
    assert_eq!(reason(&unknown), "unknown_tool");
}
