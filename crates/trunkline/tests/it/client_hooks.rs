//! What a builder declares by its closures, and the shorthands for answers.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline::client::{Client, ClientBuilder, Question, Responder, Roots};
use trunkline::model::{ElicitAction, Root};
use trunkline::{Context, Revision, Server, ToolError, tool};

use crate::client_peer::{ERAS, Peer, builder, open};

fn form(properties: Value, required: Value) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "message": "Fill in.", "mode": "form", "requestedSchema": schema })
}

fn visit() -> Value {
    json!({ "mode": "url", "message": "Go", "url": "https://x.example/a", "elicitationId": "1" })
}

/// What the client answers to a question.
async fn answer<H: Responder>(builder: ClientBuilder<H>, params: Value) -> Value {
    let (_client, mut peer) = open(builder, Revision::V2025_11_25).await;
    let method = "elicitation/create";
    peer.send(json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).await;
    peer.next().await.unwrap()
}

#[tokio::test]
async fn a_closure_declares_its_capability_and_no_other() {
    let cases = [
        (builder().on_ask(|it| async move { it.decline() }), json!({ "form": {}, "url": {} })),
        (builder().on_ask_form(|it| async move { it.decline() }), json!({ "form": {} })),
        (builder().on_ask_url(|it| async move { it.decline() }), json!({ "url": {} })),
        (builder().on_log(|_| {}), Value::Null),
    ];
    for (builder, declared) in cases {
        let (client, mut peer) = open(builder, Revision::V2026_07_28).await;
        let serve = async {
            let request = peer.expect("tools/call").await;
            let meta = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            assert_eq!(meta["elicitation"], declared);
            assert_eq!((&meta["sampling"], &meta["roots"]), (&Value::Null, &Value::Null));
            peer.reply(&request, json!({ "content": [] })).await;
        };
        tokio::join!(async { client.call_tool("x", ()).await.unwrap() }, serve);
    }
}

#[tokio::test]
async fn forms_and_urls_go_to_their_own_closures() {
    let both = || {
        builder().on_ask_form(|it| async move { it.accept(json!({ "name": "Ada" })) }).on_ask_url(
            |it| async move {
                assert_eq!(it.url(), Some("https://x.example/a"));
                it.accept("not sent")
            },
        )
    };
    let asked = form(json!({ "name": { "type": "string" } }), json!(["name"]));
    let accepted = answer(both(), asked.clone()).await;
    assert_eq!(accepted["result"], json!({ "action": "accept", "content": { "name": "Ada" } }));
    let visited = answer(both(), visit()).await;
    assert_eq!(visited["result"], json!({ "action": "accept" }));

    let forms = builder().on_ask_form(|it| async move { it.cancel() });
    assert_eq!(answer(forms.clone(), asked).await["result"], json!({ "action": "cancel" }));
    assert_eq!(answer(forms, visit()).await["error"]["code"], -32602);
}

#[tokio::test]
async fn one_value_fills_the_only_field() {
    let yes = || builder().on_ask(|it| async move { it.accept(true) });
    let one = form(json!({ "value": { "type": "boolean" } }), json!(["value"]));
    assert_eq!(answer(yes(), one).await["result"]["content"], json!({ "value": true }));
    let fields = json!({ "a": { "type": "boolean" }, "b": { "type": "boolean" } });
    let refused = answer(yes(), form(fields, json!([]))).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("must be an object"), "{message}");
}

#[tokio::test]
async fn a_form_is_filled_in_with_its_defaults() {
    let fields = json!({
        "given": { "type": "string", "default": "Ada" },
        "no": { "type": "boolean", "default": false },
        "yes": { "type": "boolean" },
        "mail": { "type": "string", "format": "email" },
        "long": { "type": "string", "minLength": 3 },
        "nights": { "type": "integer", "minimum": 2 },
        "price": { "type": "number", "maximum": -1.5 },
        "size": { "type": "string", "enum": ["s", "m"] },
        "many": { "type": "array", "minItems": 2, "items": { "type": "string", "enum": ["a", "b", "c"] } },
        "left": { "type": "string" },
        "kept": { "type": "integer", "default": 4 },
    });
    let required = ["given", "no", "yes", "mail", "long", "nights", "price", "size", "many"];
    let builder = builder().on_ask(|it: Question| async move { it.accept_defaults() });
    let answered = answer(builder.clone(), form(fields, json!(required))).await;
    let expected = json!({
        "given": "Ada", "no": false, "yes": true, "mail": "user@example.com", "long": "xxx",
        "nights": 2, "price": -1.5, "size": "s", "many": ["a", "b"], "kept": 4,
    });
    assert_eq!(answered["result"], json!({ "action": "accept", "content": expected }));
    assert_eq!(answer(builder, visit()).await["result"], json!({ "action": "accept" }));
}

#[tokio::test]
async fn roots_may_change() {
    let roots = Roots::new([Root::new("file:///a")]);
    let fixed = builder().roots([Root::new("file:///f")]);
    let changing = builder().roots(roots.clone());
    for (builder, may_change) in [(fixed, false), (changing, true)] {
        let ((reader, writer), mut peer) = crate::client_peer::pair();
        let serve = async {
            let request = peer.expect("initialize").await;
            let declared = &request["params"]["capabilities"]["roots"];
            assert_eq!(declared["listChanged"].as_bool().unwrap_or(false), may_change);
        };
        let connecting = builder.protocol(Revision::V2025_06_18).connect_io(reader, writer);
        tokio::select! { _ = connecting => panic!("nobody answered"), () = serve => {} }
    }
    let (client, mut peer) = open(builder().roots(roots.clone()), Revision::V2025_06_18).await;
    for uri in ["file:///a", "file:///b"] {
        roots.set([Root::new(uri)]);
        client.roots_changed().await;
        peer.expect("notifications/roots/list_changed").await;
        peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" })).await;
        assert_eq!(peer.next().await.unwrap()["result"], json!({ "roots": [{ "uri": uri }] }));
    }
    assert_eq!(roots.get(), [Root::new("file:///b")]);
}

#[tokio::test]
async fn a_client_that_watches_its_roots_tells_when_they_change() {
    let folder = Folder::new("watched");
    let root = || Root::new(format!("file://{}", folder.0.display()));
    let roots = Roots::new([root()]);
    let (client, mut peer) = open(builder().roots(roots.clone()), Revision::V2025_06_18).await;
    let watch = client.watch_roots(&roots, Duration::from_millis(10));
    let told = async |peer: &mut Peer, expected: &[Root]| {
        peer.expect("notifications/roots/list_changed").await;
        peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" })).await;
        let answer = peer.next().await.unwrap();
        assert_eq!(answer["result"]["roots"], json!(expected));
    };
    // A folder disappears from disk and appears again.
    std::fs::remove_dir(&folder.0).unwrap();
    told(&mut peer, &[]).await;
    std::fs::create_dir(&folder.0).unwrap();
    told(&mut peer, &[root()]).await;
    // The host adds a folder; whether it exists is checked later.
    let above = Root::new("file:///");
    roots.set([root(), above.clone()]);
    told(&mut peer, &[root(), above.clone()]).await;
    // The watch is over.
    drop(watch);
    roots.set([above]);
    client.roots_changed().await;
    peer.expect("notifications/roots/list_changed").await;
    client.close().await;
    assert_eq!(peer.next().await, None, "it was told twice");
}

#[tokio::test]
async fn the_newest_revision_has_no_word_for_changed_roots() {
    let roots = Roots::new([Root::new("file:///")]);
    let (client, mut peer) = open(builder().roots(roots.clone()), Revision::V2026_07_28).await;
    client.watch_roots(&roots, Duration::from_millis(10)).detach();
    roots.set([]);
    client.roots_changed().await;
    let (pinged, ()) = tokio::join!(client.ping(), peer.discover());
    assert!(pinged.is_ok(), "nothing came before it");
}

/// A temporary folder of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("trunkline-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test]
async fn the_model_is_asked_and_may_be_refused() {
    async fn think(cx: Context) -> Result<String, ToolError> {
        use trunkline::model::{CreateMessageParams, SamplingMessage};
        let params = CreateMessageParams::new(vec![SamplingMessage::user("2 + 2?")], 10);
        Ok(cx.sample(params).await?.text())
    }
    let server = Server::builder("think", "1.0.0").tool(tool("think", think)).build();
    for revision in ERAS {
        let says = Client::builder("test", "1").protocol(revision).on_sample(|it| async move {
            assert_eq!((it.text().as_str(), it.max_tokens, it.server()), ("2 + 2?", 10, None));
            it.reply("m", "Four.")
        });
        let client = says.connect_memory(&server).await.unwrap();
        let result = client.call_tool("think", ()).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("Four."));

        let refuses = Client::builder("test", "1").protocol(revision);
        let refuses = refuses.on_sample(|it| async move { it.refuse() });
        let client = refuses.connect_memory(&server).await.unwrap();
        let outcome = client.call_tool("think", ()).await;
        assert!(outcome.is_err() || outcome.unwrap().is_error(), "{revision}");
    }
}

#[tokio::test]
async fn a_question_can_be_declined() {
    let asked = form(json!({ "name": { "type": "string" } }), json!([]));
    let declined = answer(builder().on_ask(|it| async move { it.decline() }), asked).await;
    assert_eq!(declined["result"]["action"], json!(ElicitAction::Decline));
}
