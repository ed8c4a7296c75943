//! The hosts of one person: they share a gateway if they want to, and all gateways are found.

use std::path::Path;

use serde_json::{Value, json};
use trunkline::Client;
use trunkline::client::Command;

use super::place::{Place, SOON, signal, until};
use crate::run::TRUNKLINE;

/// A host: `serve --stdio`, with these options.
async fn host(place: &Place, more: &[&str]) -> Client {
    let (catalog, state) = (place.text("catalog.json"), place.text("state"));
    let command = Command::new(TRUNKLINE)
        .args(["serve", "--stdio", "--config", &catalog, "--state", &state])
        .args(more);
    Client::builder("host", "1").connect(command).await.unwrap()
}

async fn pid(host: &Client) -> String {
    let said = host.call_tool("a.pid", json!({})).await.unwrap();
    said.content[0].as_text().unwrap().to_owned()
}

/// What a command says about the gateways of this place.
fn said(place: &Place, words: &[&str]) -> String {
    let mut command = std::process::Command::new(TRUNKLINE);
    command.args(words).arg("--state").arg(place.path("state")).env_remove("TRUNKLINE_ADMIN");
    let told = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr))
}

/// The processes of `serve` with this place's catalog, by a word of their command line.
fn serving(place: &Place, word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|it| it.parse::<u32>().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&place.text("catalog.json")) && line.contains(word) {
            found.push(pid);
        }
    }
    found
}

/// Ends what runs in the background.
struct Background<'a>(&'a Place);

impl Drop for Background<'_> {
    fn drop(&mut self) {
        serving(self.0, "--attached").into_iter().for_each(|it| signal("KILL", it));
    }
}

#[tokio::test]
async fn hosts_that_share_have_one_process_of_each_server() {
    let place = Place::new("shared-hosts");
    let servers = json!({ "a": place.fake("a", &[], json!({})) });
    place.write(&json!({ "mcpServers": servers }));
    let _background = Background(&place);
    // All at the same moment: one of the gateways that they start is the gateway of all.
    let (one, two, three, four) = tokio::join!(
        host(&place, &["--share"]),
        host(&place, &["--share"]),
        host(&place, &["--share"]),
        host(&place, &["--share", "--server", "a"])
    );
    let first = pid(&one).await;
    assert_eq!((pid(&two).await, pid(&three).await), (first.clone(), first.clone()));
    assert_eq!(four.list_tools().await.unwrap()[0].name, "echo", "it sees one server alone");
    until("one gateway to be left", SOON, async || serving(&place, "--attached").len() == 1).await;
    let shown = said(&place, &["ps"]);
    assert!(shown.contains("clients: 4") && shown.contains("catalog.json"), "{shown}");

    // A host that is killed disturbs nobody.
    let hosts = serving(&place, "--share");
    assert_eq!(hosts.len(), 4);
    signal("KILL", hosts[0]);
    until("it to be missed", SOON, async || said(&place, &["ps"]).contains("clients: 3")).await;
    let mut alive = 0;
    for host in [&two, &three] {
        if let Ok(said) = host.call_tool("a.pid", json!({})).await {
            assert_eq!(said.content[0].as_text(), Some(&*first));
            alive += 1;
        }
    }
    assert!(alive >= 1, "at most one of them was killed");
}

#[tokio::test]
async fn a_gateway_in_the_background_goes_when_no_host_is_left() {
    let place = Place::new("shared-end");
    place.write(&json!({ "mcpServers": { "a": place.fake("a", &[], json!({})) } }));
    let _background = Background(&place);
    let mut command = place.command();
    command.args(["--attached", "--linger", "4"]).kill_on_drop(true);
    let mut gateway = command.spawn().unwrap();
    until("it to be there", SOON, async || said(&place, &["ps"]).contains("clients: 0")).await;
    let one = host(&place, &[]).await;
    let two = host(&place, &["--share"]).await;
    assert_eq!(pid(&one).await, pid(&two).await, "both came to the one that runs");
    let own = host(&place, &["--own"]).await;
    assert_ne!(pid(&own).await, pid(&one).await);
    own.close().await;
    one.close().await;
    two.close().await;
    let ended = tokio::time::timeout(SOON, gateway.wait()).await.expect("it ends by itself");
    assert!(ended.unwrap().success());
    until("its servers to be gone", SOON, async || place.running("a").is_empty()).await;
    let left: Vec<_> = sockets(&place.path("state"));
    assert_eq!(left, Vec::<String>::new(), "nothing is left behind");
}

fn sockets(state: &Path) -> Vec<String> {
    let names = std::fs::read_dir(state).unwrap().flatten();
    let names = names.map(|it| it.file_name().to_string_lossy().into_owned());
    names.filter(|it| it.ends_with(".sock")).collect()
}

#[tokio::test]
async fn a_host_comes_to_the_gateway_that_serves_its_catalog_over_http() {
    let place = Place::new("shared-http");
    let gateway = place.serve(json!({ "a": place.fake("a", &[], json!({})) })).await;
    gateway.settled().await;
    let (one, two) = (host(&place, &[]).await, host(&place, &["--share"]).await);
    assert_eq!(pid(&one).await, pid(&two).await);
    let told = gateway.told("GET /v1/status").await;
    assert_eq!(told["clients"], 2, "{told}");
    drop(gateway);
    assert!(one.call_tool("a.pid", json!({})).await.is_err(), "it ended with its gateway");
}

#[tokio::test]
async fn gateways_of_hosts_are_found_and_can_be_approved() {
    let place = Place::new("shared-own");
    let tools = |about: &str| {
        let schema = json!({ "type": "object" });
        json!([{ "name": "pid", "description": about, "inputSchema": schema }]).to_string()
    };
    super::place::write(&place.path("tools.json"), &tools("Says who it is."));
    let file = place.text("tools.json");
    let options = ["--tools-file", &file];
    place.write(&json!({ "mcpServers": { "a": place.fake("a", &options, json!({})) } }));
    let first = host(&place, &[]).await;
    pid(&first).await;
    // It is another tool for whoever comes now.
    super::place::write(&place.path("tools.json"), &tools("Says who it is, and more."));
    let (one, two) = (host(&place, &["--own"]).await, host(&place, &["--own"]).await);
    for host in [&one, &two] {
        let refused = host.call_tool("a.pid", json!({})).await;
        assert!(format!("{refused:?}").contains("trunkline approve a"), "{refused:?}");
    }
    let shown = said(&place, &["ps"]);
    assert_eq!(shown.matches("stdin and stdout of process").count(), 3, "{shown}");
    let all: Value = serde_json::from_str(&said(&place, &["ps", "--json"])).unwrap();
    assert_eq!(all["gateways"].as_array().unwrap().len(), 3);
    let told = said(&place, &["approve", "a", "pid", "--yes"]);
    assert!(!told.contains("no gateway"), "{told}");
    for host in [&one, &two] {
        pid(host).await;
    }
}

#[tokio::test]
async fn a_person_has_a_catalog_of_their_own() {
    let place = Place::new("shared-user");
    let catalog = json!({ "mcpServers": { "mine": place.fake("mine", &[], json!({})) } });
    let folder = place.path("config/trunkline");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(place.path("elsewhere")).unwrap();
    super::place::write(&folder.join("trunkline.yaml"), &catalog.to_string());
    let check = |folder: &str| {
        let mut command = std::process::Command::new(TRUNKLINE);
        command.arg("check").current_dir(place.path(folder)).env_remove("TRUNKLINE_CONFIG");
        let told = command.env("XDG_CONFIG_HOME", place.path("config")).output().unwrap();
        String::from_utf8_lossy(&told.stdout).into_owned()
    };
    let told = check("elsewhere");
    assert!(told.contains("It has one server: mine."), "{told}");
    // The one in a folder comes first.
    super::place::write(&place.path("elsewhere/trunkline.yaml"), "mcpServers: {}");
    assert!(check("elsewhere").contains("It has no servers."));
}
