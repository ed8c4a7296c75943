//! `trunkline ps`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::admin::Gateway;
use crate::admin::table::{span, table};
use crate::output::{Screen, one_line};

/// Shows what a gateway runs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show every instance, too.
    #[arg(short, long)]
    instances: bool,
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let mut all = Vec::new();
    let mut failed = None;
    for gateway in args.gateway.all().await? {
        match gateway.get("/v1/status").await {
            Ok(status) => all.push(status),
            Err(failure) => failed = Some(failure),
        }
    }
    // A gateway that has just ended must not hide the others.
    if let Some(failure) = failed.filter(|_| all.is_empty()) {
        return Err(failure.into());
    }
    if args.gateway.json {
        match &all[..] {
            [status] => screen.json(status)?,
            all => screen.json(&json!({ "gateways": all }))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    for (at, status) in all.iter().enumerate() {
        if at > 0 {
            screen.print("")?;
        }
        show(status, args.instances, screen)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(status: &Value, with_instances: bool, screen: &Screen) -> Result<()> {
    let servers = status["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = servers.iter().map(row).collect();
    screen.print(&head(status))?;
    let replicas = replicas(&status["replicas"]);
    if !replicas.is_empty() {
        let heads = ["REPLICA", "ADDRESS", "SESSIONS", "UP", "NOTE"];
        screen.print(&format!("{}\n", table(screen, &heads, &replicas)))?;
    }
    if rows.is_empty() {
        return screen.print("The catalog names no server.");
    }
    let heads = ["SERVER", "STATE", "INSTANCES", "CALLS", "WAITING", "TOOLS", "NOTE"];
    screen.print(&table(screen, &heads, &rows))?;
    let rows: Vec<_> = servers.iter().flat_map(instances).collect();
    if with_instances && !rows.is_empty() {
        let heads = ["INSTANCE", "SERVER", "STATE", "PID", "CALLS", "AGE", "IDLE", "FOR"];
        screen.print(&format!("\n{}", table(screen, &heads, &rows)))?;
    }
    Ok(())
}

/// One line about the gateway itself.
fn head(status: &Value) -> String {
    let text = |name: &str| status[name].as_str().unwrap_or("?").to_owned();
    let mut line = format!(
        "trunkline {} at {}{}, up {}, clients: {}",
        text("version"),
        text("listen"),
        config(status),
        span(status["uptimeMs"].as_f64().unwrap_or_default()),
        status["clients"]
    );
    if status["lastReload"]["ok"] == false {
        line.push_str("; the catalog has faults and was not taken over (`trunkline check`)");
    }
    if let Some(why) = status["audit"]["failing"].as_str() {
        line.push_str(&format!("; the audit cannot be written: {why}"));
    } else if status["audit"]["lost"].as_u64().is_some_and(|it| it > 0) {
        line.push_str(&format!("; the audit lacks {} calls", status["audit"]["lost"]));
    }
    one_line(&line)
}

/// All replicas of the gateway, if it has any.
fn replicas(status: &Value) -> Vec<Vec<String>> {
    let row = |it: &Value| {
        let text = |name: &str| it[name].as_str().unwrap_or("?").to_owned();
        let mut notes = Vec::new();
        if it["id"] == status["me"] {
            notes.push("this one");
            if status["storeAway"] == true {
                notes.push("the store is away");
            }
            if status["leased"] == false {
                notes.push("it may not answer for its sessions now");
            }
        }
        vec![
            text("id"),
            text("url"),
            number(&it["sessions"]),
            span(it["runningMs"].as_f64().unwrap_or_default()),
            notes.join("; "),
        ]
    };
    status["all"].as_array().into_iter().flatten().map(row).collect()
}

/// The catalog that it serves, if its address does not tell.
fn config(status: &Value) -> String {
    let is_url = status["listen"].as_str().is_some_and(|it| it.contains("://"));
    match status["config"].as_str().filter(|_| !is_url) {
        Some(path) => format!(" with `{path}`"),
        None => String::new(),
    }
}

fn row(server: &Value) -> Vec<String> {
    let instances = server["instances"].as_array().map(Vec::as_slice).unwrap_or_default();
    let calls: u64 = instances.iter().filter_map(|it| it["inFlight"].as_u64()).sum();
    let text = |name: &str| server[name].as_str().unwrap_or("?").to_owned();
    vec![
        text("name"),
        text("state"),
        instances.len().to_string(),
        calls.to_string(),
        number(&server["waiters"]),
        number(&server["tools"]),
        note(server),
    ]
}

/// What the operator should know.
fn note(server: &Value) -> String {
    let mut notes = Vec::new();
    let held_back = held(server).count();
    if held_back > 0 {
        let name = server["name"].as_str().unwrap_or("SERVER");
        notes.push(format!("{held_back} held back{} (`trunkline approve {name}`)", why(server)));
    }
    let refused = server["heldBack"].as_array().map_or(0, Vec::len) - held_back;
    if refused > 0 {
        notes.push(format!("{refused} refused"));
    }
    if let Some(replica) = server["replica"].as_str() {
        notes.push(format!("lives at {replica}"));
    }
    if let Some(count) = server["logins"].as_u64() {
        notes.push(format!("{count} logged in"));
    }
    let looks = &server["looks"];
    if let (Some(times), Some(most)) = (looks["lastHour"].as_u64(), looks["most"].as_u64())
        && times >= most
    {
        notes.push(format!(
            "announces changes all the time: its lists were read {times} times in an hour, and no more"
        ));
    }
    if let Some(millis) = server["nextRetryMs"].as_f64() {
        notes.push(format!("next try in {}", span(millis)));
    }
    if let Some(error) = server["lastError"].as_str() {
        notes.push(error.to_owned());
    }
    notes.join("; ")
}

/// The definitions that wait for a decision.
fn held(server: &Value) -> impl Iterator<Item = &Value> {
    let all = server["heldBack"].as_array().into_iter().flatten();
    all.filter(|it| it["refused"] != true)
}

/// Why definitions are held back: each reason once, with a count if there are several reasons.
fn why(server: &Value) -> String {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for held in held(server) {
        if let Some(why) = held["why"].as_str() {
            *counts.entry(why).or_default() += 1;
        }
    }
    let told: Vec<_> = match counts.len() {
        0 => return String::new(),
        1 => counts.keys().map(|why| (*why).to_owned()).collect(),
        _ => counts.iter().map(|(why, count)| format!("{count} {why}")).collect(),
    };
    format!(": {}", told.join(", "))
}

fn instances(server: &Value) -> Vec<Vec<String>> {
    let all = server["instances"].as_array().into_iter().flatten();
    let time = |it: &Value| it.as_f64().map(span).unwrap_or_default();
    all.map(|it| {
        vec![
            number(&it["id"]),
            server["name"].as_str().unwrap_or("?").to_owned(),
            it["state"].as_str().unwrap_or("?").to_owned(),
            it["pid"].as_u64().map(|it| it.to_string()).unwrap_or_default(),
            number(&it["inFlight"]),
            time(&it["ageMs"]),
            time(&it["idleMs"]),
            it["cause"].as_str().unwrap_or_default().to_owned(),
        ]
    })
    .collect()
}

/// A number, or the length of a list.
fn number(value: &Value) -> String {
    match value {
        Value::Array(all) => all.len().to_string(),
        Value::Number(number) => number.to_string(),
        _ => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_replica_is_one_row() {
        let status = json!({
            "me": "b", "leased": false, "storeAway": true,
            "all": [
                { "id": "a", "url": "http://10.0.0.7:7474", "sessions": 3, "runningMs": 1500 },
                { "id": "b", "url": "http://10.0.0.8:7474", "sessions": 0, "runningMs": 90_000 },
            ],
        });
        let note = "this one; the store is away; it may not answer for its sessions now";
        assert_eq!(
            replicas(&status),
            [
                ["a", "http://10.0.0.7:7474", "3", "1.5 s", ""],
                ["b", "http://10.0.0.8:7474", "0", &span(90_000.0), note],
            ]
        );
        assert!(replicas(&Value::Null).is_empty(), "a gateway that is alone");
    }

    #[test]
    fn a_server_is_one_row() {
        let server = json!({
            "name": "git", "state": "backoff", "tools": 3, "waiters": 2,
            "instances": [{ "inFlight": 2 }, { "inFlight": 1 }],
            "heldBack": [{ "kind": "tool", "name": "push", "why": "changed" }], "nextRetryMs": 1500, "lastError": "It exited with code 1.",
        });
        let note = "1 held back: changed (`trunkline approve git`); next try in 1.5 s; \
                    It exited with code 1.";
        assert_eq!(row(&server), ["git", "backoff", "2", "3", "2", "3", note]);
        let own = json!({ "name": "c", "heldBack": [
            { "name": "push", "why": "changed", "refused": true },
            { "name": "pull", "why": "new", "refused": false },
        ] });
        let note = "1 held back: new (`trunkline approve c`); 1 refused";
        assert_eq!(row(&own).last().map(String::as_str), Some(note));
        let own = json!({ "name": "b", "logins": 2 });
        assert_eq!(row(&own).last().map(String::as_str), Some("2 logged in"));
        assert_eq!(row(&json!({ "name": "a" })), ["a", "?", "0", "0", "0", "0", ""]);
    }
}
