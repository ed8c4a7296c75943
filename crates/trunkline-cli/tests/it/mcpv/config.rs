//! What the catalog may say, and what is said about one that is wrong.

use std::process::Command;

use serde_json::{Value, json};

use super::place::{Place, write};
use crate::run::TRUNKLINE;

/// Runs `trunkline check` on a catalog: its exit code, and each fault's path and message.
fn check(place: &Place, catalog: &str, variables: &[(&str, &str)]) -> (i32, Vec<(String, String)>) {
    write(&place.path("catalog.json"), catalog);
    let mut command = Command::new(TRUNKLINE);
    command.args(["check", "--json"]).arg(place.path("catalog.json"));
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let fault = |it: &Value| (text(&it["path"]), text(&it["message"]));
    let faults = told["faults"].as_array().unwrap().iter().map(fault).collect();
    (output.status.code().unwrap(), faults)
}

#[tokio::test]
async fn b01_a_catalog_is_checked_and_all_its_faults_are_told_at_once() {
    let place = Place::new("b01");
    let good = "servers:\n  - name: a\n    cmd: [run, it]\n    maxConcurrent: ${MOST}\n    \
                disabled: ${OFF}\n    env: { REGION: \"${REGION:-eu}\" }\n  - name: b\n    \
                transport: streamable_http\n    url: http://localhost:1/mcp\n";
    let variables = [("MOST", "7"), ("OFF", "false")];
    assert_eq!(check(&place, good, &variables), (0, vec![]));
    let (code, faults) = check(&place, good, &[("MOST", "many"), ("OFF", "false")]);
    assert_eq!((code, faults.len(), &*faults[0].0), (2, 1, "servers[0].maxConcurrent"));
    let (code, faults) = check(&place, good, &[("OFF", "false")]);
    assert_eq!(code, 2);
    assert!(faults[0].1.contains("`MOST` is not set"), "{faults:?}");

    // Each alone is found, and all of them together.
    let bad = [
        (json!({}), "servers[0]"),
        (json!({ "cmd": ["x"], "maxConcurrent": 0 }), "servers[0].maxConcurrent"),
        (json!({ "url": "http://localhost/", "cmd": ["x"] }), "servers[0]"),
        (
            json!({ "url": "http://localhost/", "headers": { "Mcp-Session-Id": "x" } }),
            "servers[0].headers",
        ),
        (json!({ "cmd": ["x"], "strategy": "sharded" }), "servers[0].strategy"),
        (json!({ "cmd": ["x"], "env": { "A": "${NOT_SET_ANYWHERE}" } }), "servers[0].env"),
    ];
    let mut all = Vec::new();
    for (at, (entry, path)) in bad.iter().enumerate() {
        let mut entry = entry.clone();
        entry["name"] = json!(format!("s{at}"));
        let (code, faults) = check(&place, &json!({ "servers": [entry] }).to_string(), &[]);
        assert_eq!(code, 2, "{entry}");
        assert!(faults.iter().any(|it| it.0.starts_with(path)), "{entry}: {faults:?}");
        all.push(entry);
    }
    all.push(json!({ "name": "s1", "cmd": ["x"] }));
    let whole = json!({ "servers": all }).to_string();
    let (code, faults) = check(&place, &whole, &[]);
    assert_eq!(code, 2);
    for at in 0..all.len() {
        let place = format!("servers[{at}]");
        assert!(faults.iter().any(|it| it.0.starts_with(&place)), "{place}: {faults:?}");
    }

    // What `check` refuses is not served either.
    let served = place.command().args(["--listen", "127.0.0.1:0"]).output().await.unwrap();
    let said = String::from_utf8(served.stderr).unwrap();
    assert_eq!(served.status.code(), Some(2), "{said}");
    assert!(
        said.contains("servers[1].maxConcurrent") && said.contains("servers[4].strategy"),
        "{said}"
    );
}

#[tokio::test]
async fn b01_variables_reach_the_server_and_nothing_else_does() {
    let place = Place::new("b01-env");
    let keys = json!({ "env": { "GIVEN": "${MCPV_GIVEN}-${MCPV_NOT:-else}" }, "maxConcurrent": "${MCPV_MOST}" });
    place.write(&json!({ "mcpServers": { "a": place.fake("a", &[], keys) } }));
    let mut command = place.command();
    command.env("MCPV_GIVEN", "one").env("MCPV_MOST", "3").args(["--listen", "127.0.0.1:0"]);
    let gateway = super::place::Gateway::start(&mut command, place.path("state/admin.sock")).await;
    let mut client = gateway.client().await;
    let given = client.call("a.env", json!({ "name": "GIVEN" })).await;
    assert_eq!(given, Ok("one-else".to_owned()));
    let other = client.call("a.env", json!({ "name": "MCPV_GIVEN" })).await;
    assert_eq!(other, Ok(String::new()), "a child gets what the catalog gives it");
}
