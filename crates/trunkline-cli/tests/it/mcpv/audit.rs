//! What is noted of calls and of the gateway itself, and whether anybody has touched it since.

use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;

use super::place::{Place, SOON, signal, until, write};
use crate::run::TRUNKLINE;

async fn verify(place: &Place, more: &[&str]) -> Output {
    let mut command = Command::new(TRUNKLINE);
    command.args(["audit", "verify"]).arg(place.path("audit.jsonl")).args(more);
    command.output().await.unwrap()
}

fn lines(place: &Place) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path("audit.jsonl")).unwrap();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[tokio::test]
async fn an_audit_notes_what_happens_and_shows_what_was_done_to_it() {
    let place = Place::new("audit");
    let token = "a-token-of-some-length";
    let catalog = |audit: &str| {
        json!({
            "mcpServers": { "a": place.fake("a", &[], json!({})) },
            "gateway": {
                "audit": { "path": place.text("audit.jsonl"), "onFailure": audit },
                "auth": { "tokens": [{ "name": "ann", "token": token }] },
            },
        })
    };
    place.write(&catalog("refuse"));
    for round in 0..2 {
        let mut gateway = place.open("127.0.0.1:0").await;
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        for _ in 0..3 {
            assert_eq!(gateway.http("POST /mcp", &headers, hello).await.0, 401);
        }
        let bearer = [("Authorization", "Bearer a-token-of-some-length")];
        let mut ann = super::place::Caller::open(gateway.address, "/mcp", &bearer).await;
        assert_eq!(ann.call("a.echo", json!({ "text": "in" })).await, Ok("in".to_owned()));
        if round == 0 {
            write(&place.path("catalog.json"), "{");
            assert_eq!(gateway.admin("POST /v1/reload").await.0, 422);
            place.write(&catalog("refuse"));
            assert_eq!(gateway.admin("POST /v1/reload").await.0, 200);
        }
        let status = gateway.told("GET /v1/status").await;
        assert_eq!(
            (&status["audit"]["failing"], &status["audit"]["lost"]),
            (&Value::Null, &0.into())
        );
        gateway.terminate();
        gateway.process.wait().await.unwrap();
    }
    let noted = lines(&place);
    let count = |event: &str| noted.iter().filter(|it| it["event"] == event).count();
    assert_eq!((count("started"), count("stopped")), (2, 2), "{noted:#?}");
    assert!(count("reload_refused") >= 1 && count("reloaded") >= 1, "{noted:#?}");
    let refused = noted.iter().filter(|it| it["event"] == "refused" && it["status"] == 401);
    assert_eq!(refused.filter_map(|it| it["count"].as_u64()).sum::<u64>(), 6, "{noted:#?}");
    let calls: Vec<_> = noted.iter().filter(|it| it["tool"] == "echo").collect();
    assert!(calls.len() == 2 && calls[0]["principal"] == "ann", "{calls:#?}");

    let good = verify(&place, &["--json"]).await;
    assert!(good.status.success(), "{good:?}");
    let found: Value = serde_json::from_slice(&good.stdout).unwrap();
    assert_eq!(found["found"]["lines"], noted.len());
    let last = noted[noted.len() - 1]["hash"].as_str().unwrap();
    assert!(verify(&place, &["--last", last]).await.status.success());
    let said = String::from_utf8(verify(&place, &[]).await.stdout).unwrap();
    assert!(said.contains("The chain holds") && said.contains(last), "{said}");

    let text = std::fs::read_to_string(place.path("audit.jsonl")).unwrap();
    write(&place.path("audit.jsonl"), &text.replacen("\"allowed\"", "\"denied\"", 1));
    let bad = verify(&place, &[]).await;
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
    let said = String::from_utf8(bad.stderr).unwrap();
    assert!(said.contains("its hash does not fit"), "{said}");
    let cut = text.lines().count() - 2;
    let cut: String = text.split_inclusive('\n').take(cut).collect();
    write(&place.path("audit.jsonl"), &cut);
    let bad = verify(&place, &[]).await;
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
    assert!(String::from_utf8(bad.stderr).unwrap().contains("missing at the end"));
}

#[tokio::test]
async fn what_a_plugin_has_started_goes_with_a_gateway_that_is_killed() {
    let place = Place::new("plugin-kill");
    write(&place.path("plugin.py"), &super::plugins::program());
    let script = r#"sleep 1000 & echo $! > "$3"; exec python3 "$1" audit audit "$2""#;
    let files = ["plugin.py", "asked", "child"].map(|it| place.text(it));
    let command = json!(["sh", "-c", script, "sh", files[0], files[1], files[2]]);
    let plugins = json!([{ "name": "audit", "category": "audit", "command": command }]);
    place.write(&json!({
        "mcpServers": { "a": place.fake("a", &[], json!({})) }, "gateway": { "plugins": plugins },
    }));
    let gateway = place.open("127.0.0.1:0").await;
    let child = std::fs::read_to_string(place.path("child")).unwrap();
    // Corpses that nobody has buried yet have no words.
    let words = format!("/proc/{}/cmdline", child.trim());
    let alive = || std::fs::read(&words).is_ok_and(|it| !it.is_empty());
    assert!(alive(), "{child}");
    signal("KILL", gateway.pid());
    until("what the plugin has started to end", SOON, async || !alive()).await;
}
