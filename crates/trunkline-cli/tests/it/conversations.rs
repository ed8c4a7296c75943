//! Conversations with the demo, each in every revision that has it, in memory and over stdio, with
//! lines and with `Content-Length` headers: what is heard must be the same all four ways, and every
//! message is judged by its revision's schema.

mod calls;
mod events;

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
            for (at, (one, other)) in first.iter().zip(&heard).enumerate() {
                assert_eq!(one, other, "message {at} in {revision} by {way:?} is another");
            }
            assert_eq!(first.len(), heard.len(), "in {revision} by {way:?}");
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
        assert_eq!(
            error["data"],
            json!({ "supported": ["2026-07-28"], "requested": "2031-01-01" })
        );

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
