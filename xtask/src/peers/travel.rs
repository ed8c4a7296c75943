//! The travel server and client, with every SDK at the other end → a table of what each saw, and whether it had to be so.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::process::{Listening, output};
use super::{folder, venv};
use crate::json::{self, Json, Lenient};
use crate::run;

/// The name of this run of the peers.
pub const NAME: &str = "travel";

/// Lets each client meet each server over stdio and over HTTP.
pub fn run() -> Result<(), String> {
    build()?;
    println!(
        "{:<21} {:<12} {:<6} {:<11} {:<9} {:<9}",
        HEAD[0], HEAD[1], HEAD[2], HEAD[3], HEAD[4], HEAD[5]
    );
    let mut table = Table { cells: 0, failed: Vec::new() };
    let ours = [path(&bin("travel-server"))];
    table.over_both("trunkline", &ours, &["--http", "127.0.0.1:0"], &clients());
    for (name, server) in servers() {
        let clients = our_clients(name);
        table.over_both(name, &server, &["--http"], &clients);
    }
    println!("{} of {} as expected", table.cells - table.failed.len(), table.cells);
    if table.failed.is_empty() { Ok(()) } else { Err(table.failed.join("\n")) }
}

const HEAD: [&str; 6] = ["client", "server", "over", "revision", "arrived", "handed on"];

/// A client: what starts it, before the server's command line or URL, and what it must see.
struct Client {
    name: String,
    words: Vec<String>,
    /// The revision it must have agreed on, when it says which.
    revision: Option<&'static str>,
    /// What it must pay, when it is known for how many nights it asks.
    total: Option<u32>,
    hands_on: HandsOn,
    read: fn(&str) -> Result<Report, String>,
}

/// What a client's own progress handler gets of the notifications that arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandsOn {
    /// All, in order.
    All,
    /// All, in any order: a task is started for each.
    Unordered,
    /// In order, but not those that arrive in one chunk with an answer: their handler is forgotten by then.
    NotAll,
}

/// What a client saw.
#[derive(Debug, Default, PartialEq)]
struct Report {
    revision: String,
    /// Progress as it came over the wire, when the client can be looked at there.
    arrived: Option<Vec<String>>,
    /// Progress as the client's caller heard it.
    heard: Vec<String>,
    /// How often it was asked, when it counts.
    asked: Option<String>,
    /// Whether the tool had an output schema, when it looked.
    schema: Option<bool>,
    reference: String,
    total: String,
}

/// The clients of other projects, and the eras each can speak.
fn clients() -> Vec<Client> {
    let node = path(&folder().join("travel/client.mjs"));
    let python = [path(&venv().join("bin/python")), path(&folder().join("travel/client.py"))];
    let rmcp = path(&rmcp("travel-client"));
    let [py, fast] = ["py", "fast"].map(|it| [&python[..], &[it.to_owned()]].concat());
    let [ts1, ts2] = ["ts1", "ts2"].map(|it| vec!["node".to_owned(), node.clone(), it.to_owned()]);
    let both = &["auto", "legacy"][..];
    [
        ("rmcp", vec![rmcp], HandsOn::Unordered, both),
        ("TypeScript 1.x", ts1, HandsOn::NotAll, &["legacy"]),
        ("TypeScript 2.x", ts2, HandsOn::NotAll, both),
        ("Python", py, HandsOn::All, both),
        ("FastMCP", fast, HandsOn::All, both),
    ]
    .into_iter()
    .flat_map(|(name, words, hands_on, eras)| {
        eras.iter().map(move |era| Client {
            name: format!("{name} {era}"),
            words: [&words[..], &[(*era).to_owned()]].concat(),
            revision: Some(if *era == "auto" { MODERN } else { LEGACY }),
            total: Some(TOTAL),
            hands_on,
            read: report,
        })
    })
    .collect()
}

/// Servers made with other SDKs.
fn servers() -> Vec<(&'static str, Vec<String>)> {
    let script = |name: &str| path(&folder().join("travel").join(name));
    let python = path(&venv().join("bin/python"));
    vec![
        ("rmcp", vec![path(&rmcp("travel-server"))]),
        (FIRST, vec!["node".to_owned(), script("ts1_server.mjs")]),
        ("TypeScript 2", vec!["node".to_owned(), script("ts2_server.mjs")]),
        ("Python", vec![python.clone(), script("py_server.py")]),
        ("FastMCP", vec![python, script("fast_server.py")]),
    ]
}

/// The example, which chooses for itself, and the command line told to speak as before 2026-07-28.
fn our_clients(server: &str) -> Vec<Client> {
    let example = Client {
        name: "trunkline auto".to_owned(),
        words: vec![path(&bin("travel-client"))],
        // It does not say.
        revision: None,
        total: None,
        hands_on: HandsOn::All,
        read: printed,
    };
    let script = path(&folder().join("travel/cli_client.py"));
    let python = path(&venv().join("bin/python"));
    let cli = |revision: &'static str| Client {
        name: format!("trunkline {}", if revision == MODERN { "modern" } else { "legacy" }),
        words: vec![python.clone(), script.clone(), path(&run::trunkline()), revision.to_owned()],
        revision: Some(revision),
        total: Some(TOTAL),
        hands_on: HandsOn::All,
        read: report,
    };
    // The 1.x line has no 2026-07-28.
    if server == FIRST {
        vec![example, cli(LEGACY)]
    } else {
        vec![example, cli(MODERN), cli(LEGACY)]
    }
}

struct Table {
    cells: usize,
    failed: Vec<String>,
}

impl Table {
    fn over_both(&mut self, server: &str, words: &[String], http: &[&str], clients: &[Client]) {
        for client in clients {
            self.cell(client, server, "stdio", words);
        }
        let http: Vec<String> = http.iter().map(|it| (*it).to_owned()).collect();
        match Listening::start(&[words, &http].concat()) {
            Ok(listening) => {
                for client in clients {
                    self.cell(client, server, "HTTP", std::slice::from_ref(&listening.url));
                }
            }
            Err(message) => {
                println!("FAILED: {message}");
                self.cells += clients.len();
                self.failed.extend(clients.iter().map(|_| message.clone()));
            }
        }
    }

    fn cell(&mut self, client: &Client, server: &str, over: &str, target: &[String]) {
        self.cells += 1;
        let said = output(&[&client.words[..], target].concat(), Duration::from_secs(60));
        let (report, wrong) = match said.and_then(|it| (client.read)(&it)) {
            Ok(report) => {
                let wrong = report.wrong(client);
                (report, wrong)
            }
            Err(message) => (Report::default(), vec![message]),
        };
        let verdict = if wrong.is_empty() {
            "ok".to_owned()
        } else {
            format!("FAILED: {}", wrong.join("; "))
        };
        println!(
            "{:<21} {server:<12} {over:<6} {:<11} {:<9} {:<9} {verdict}",
            client.name,
            if report.revision.is_empty() { "–" } else { &report.revision },
            report.arrived.as_ref().map_or("–".to_owned(), |it| it.join(" ")),
            report.heard.join(" "),
        );
        if !wrong.is_empty() {
            let why = wrong.join("; ");
            self.failed.push(format!("{} with {server} over {over}: {why}.", client.name));
        }
    }
}

impl Report {
    /// Each thing that is not as it had to be.
    fn wrong(&self, client: &Client) -> Vec<String> {
        let mut wrong = Vec::new();
        let both: Vec<String> = STEPS.map(str::to_owned).into();
        if let Some(revision) = client.revision.filter(|it| *it != self.revision) {
            wrong.push(format!("it spoke `{}` instead of `{revision}`", self.revision));
        }
        if let Some(arrived) = self.arrived.as_ref().filter(|it| **it != both) {
            wrong.push(format!("`{}` arrived instead of `{}`", arrived.join(" "), both.join(" ")));
        }
        let is_heard = match client.hands_on {
            HandsOn::All => self.heard == both,
            HandsOn::Unordered => {
                let mut sorted = self.heard.clone();
                sorted.sort();
                sorted == both
            }
            HandsOn::NotAll => {
                let mut rest = both.iter();
                self.heard.iter().all(|step| rest.any(|it| it == step))
            }
        };
        if !is_heard {
            wrong.push(format!("its caller heard `{}`", self.heard.join(" ")));
        }
        if let Some(times) = self.asked.as_ref().filter(|it| *it != "1") {
            wrong.push(format!("it was asked {times} times"));
        }
        if self.schema == Some(false) {
            wrong.push("it found no output schema".to_owned());
        }
        let total = self.total.parse::<u32>().unwrap_or_default();
        let is_paid =
            client.total.map_or(total > 0 && total.is_multiple_of(A_NIGHT), |it| it == total);
        if self.reference.is_empty() || !is_paid {
            wrong.push(format!("it got the booking `{}` for `{}`", self.reference, self.total));
        }
        wrong
    }
}

/// The line of JSON that a script prints.
fn report(said: &str) -> Result<Report, String> {
    let line = said.lines().rfind(|it| it.starts_with('{')).ok_or("it printed no report")?;
    let json = json::parse(line)?;
    let steps = |key: &str| -> Option<Vec<String>> {
        let Json::Array(items) = &json[key] else { return None };
        let step = |it: &Json| it.items().iter().map(number).collect::<Vec<_>>().join("/");
        Some(items.iter().map(step).collect())
    };
    if json["error"] == true {
        return Err("the tool failed".to_owned());
    }
    let result = &json["result"];
    Ok(Report {
        revision: json["revision"].str().to_owned(),
        arrived: steps("wire"),
        heard: steps("heard").unwrap_or_default(),
        asked: Some(number(&json["asked"])).filter(|it| !it.is_empty()),
        schema: json["schema"].as_bool(),
        reference: result["reference"].str().to_owned(),
        total: number(&result["total"]),
    })
}

/// A number without the `.0` that some languages write.
fn number(json: &Json) -> String {
    match json {
        Json::Number(number) => {
            let text = number.to_string();
            text.strip_suffix(".0").unwrap_or(&text).to_owned()
        }
        _ => String::new(),
    }
}

/// What the example client prints: `1 of 2` for each step, then the booking, both in whatever form of Rust's.
fn printed(said: &str) -> Result<Report, String> {
    let mut report = Report::default();
    for line in said.lines() {
        if let Some(step) = step(line) {
            report.heard.push(step);
            continue;
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let words: Vec<&str> = line.split(|c| !is_word(c)).collect();
        if let Some(reference) = words.iter().find(|it| it.starts_with(REFERENCE)) {
            report.reference = (*reference).to_owned();
            // The largest number is its total; nights may stand beside it.
            let numbers = words.iter().filter_map(|it| it.parse::<f64>().ok());
            report.total = numbers.fold(0.0, f64::max).to_string();
        }
    }
    Ok(report)
}

/// `1 of 2`, `1.0 of Some(2.0)` → `1/2`.
fn step(line: &str) -> Option<String> {
    let (done, total) = line.split_once(" of ")?;
    let total = total.strip_prefix("Some(").and_then(|it| it.strip_suffix(')')).unwrap_or(total);
    let (done, total): (f64, f64) = (done.trim().parse().ok()?, total.trim().parse().ok()?);
    Some(format!("{done}/{total}"))
}

/// Builds rmcp's programs, in a workspace and a folder of their own; ours come with the rest of the workspace.
fn build() -> Result<(), String> {
    for name in ["travel-server", "travel-client"] {
        if !bin(name).exists() {
            return Err(format!("`{name}` is not built; run `cargo build --workspace --bins`."));
        }
    }
    let mut rmcp = run::cargo(["build", "--quiet", "--locked", "--target-dir"]);
    rmcp.arg(run::target().join("peers-rmcp")).current_dir(folder().join("rmcp"));
    run::run(&mut rmcp)
}

fn bin(name: &str) -> PathBuf {
    run::target().join("debug").join(name)
}

fn rmcp(name: &str) -> PathBuf {
    run::target().join("peers-rmcp/debug").join(name)
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const A_NIGHT: u32 = 99;
/// The scripts ask for three.
const TOTAL: u32 = 3 * A_NIGHT;
/// What the servers of other SDKs begin a booking's reference with.
const REFERENCE: &str = "R-";
const STEPS: [&str; 2] = ["1/2", "2/2"];
/// The one server that speaks the older revisions alone.
const FIRST: &str = "TypeScript 1";

#[cfg(test)]
mod tests {
    use super::*;

    fn client(hands_on: HandsOn) -> Client {
        let (revision, total) = (Some(LEGACY), Some(TOTAL));
        Client { name: String::new(), words: Vec::new(), revision, total, hands_on, read: report }
    }

    fn line(wire: &str, heard: &str) -> String {
        format!(
            r#"{{"revision":"{LEGACY}","schema":true,"asked":1,"wire":{wire},"heard":{heard},"error":false,"result":{{"reference":"R-1","total":297.0}}}}"#
        )
    }

    #[test]
    fn duplicates_gaps_and_wrong_orders_are_found() {
        let both = "[[1.0,2.0],[2,2]]";
        for (wire, heard, hands_on, faults) in [
            (both, both, HandsOn::All, 0),
            (both, "[[2,2],[1,2]]", HandsOn::All, 1),
            (both, "[[2,2],[1,2]]", HandsOn::Unordered, 0),
            (both, "[[1,2]]", HandsOn::Unordered, 1),
            (both, "[[1,2]]", HandsOn::NotAll, 0),
            (both, "[]", HandsOn::NotAll, 0),
            (both, "[[2,2],[1,2]]", HandsOn::NotAll, 1),
            (both, "[[1,2],[1,2]]", HandsOn::NotAll, 1),
            ("[[1,2],[1,2],[2,2]]", both, HandsOn::All, 1),
            ("[[2,2],[1,2]]", both, HandsOn::All, 1),
        ] {
            let found = report(&line(wire, heard)).expect("a report").wrong(&client(hands_on));
            assert_eq!(found.len(), faults, "{wire} {heard}: {found:?}");
        }
    }

    #[test]
    fn a_report_says_what_else_is_wrong() {
        let bad = r#"{"revision":"2024-11-05","schema":false,"asked":2,"wire":[],"heard":[],"result":null}"#;
        assert_eq!(report(bad).expect("a report").wrong(&client(HandsOn::All)).len(), 6);
        assert!(report("").is_err());
        assert!(report(r#"{"error":true}"#).is_err());
    }

    #[test]
    fn what_the_example_prints_is_read() {
        let expected = Report {
            heard: vec!["1/2".to_owned(), "2/2".to_owned()],
            reference: "R-1".to_owned(),
            total: "297".to_owned(),
            ..Report::default()
        };
        for booking in [
            "Booking { reference: \"R-1\", total: 297 }",
            "Booking { reference: \"R-1\", total: 297.0 }",
            "R-1: 297",
            "booked R-1 for 297, 3 nights in Oslo",
        ] {
            for steps in ["1 of 2\n2 of 2", "1 of Some(2.0)\n2 of Some(2.0)"] {
                let said = format!("connected\n{steps}\n{booking}\n");
                assert_eq!(printed(&said).as_ref(), Ok(&expected), "{said}");
            }
        }
    }
}
