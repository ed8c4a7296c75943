//! The files the suite leaves behind into scenarios, their checks, and what counts against us.

use crate::json::{self, Json, Lenient};
use std::path::Path;

/// One scenario that ran.
#[derive(Debug, PartialEq)]
pub struct Scenario {
    /// As the suite lists it, such as `tools-list` or `auth/dpop`.
    pub name: String,
    /// In the order the suite made them.
    pub checks: Vec<Check>,
}

/// Why a check of a scenario that fails does not count in a run, if it does not.
pub type Except<'a> = &'a dyn Fn(&str, &Check) -> Option<&'static str>;

/// One assertion of a scenario.
#[derive(Debug, PartialEq)]
pub struct Check {
    /// Not unique within a scenario; `name` is.
    pub id: String,
    /// The check's own name.
    pub name: String,
    /// What the suite found.
    pub status: Status,
    /// Why, where it was no success.
    pub message: String,
}

/// What the suite says about a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// As it must be.
    Success,
    /// A rule is broken.
    Failure,
    /// A recommendation is not followed.
    Warning,
    /// Not looked at.
    Skipped,
    /// Noted only.
    Info,
}

/// The number of checks by outcome. Unavoidable ones are counted separately.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Successes.
    pub ok: usize,
    /// Failures.
    pub failed: usize,
    /// Warnings.
    pub warned: usize,
    /// Skipped, and avoidable.
    pub skipped: usize,
    /// Noted only, and avoidable.
    pub noted: usize,
    /// Skipped or noted, whatever an implementation does.
    pub excused: usize,
}

/// The outcome of a scenario.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Its checks, counted.
    pub tally: Tally,
    /// A line for each that counts against us; the scenario has passed if there is none.
    pub against: Vec<String>,
    /// A line for each that is excused.
    pub excused: Vec<String>,
}

impl Tally {
    /// Adds another tally to this one.
    pub fn add(&mut self, other: Tally) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.warned += other.warned;
        self.skipped += other.skipped;
        self.noted += other.noted;
        self.excused += other.excused;
    }
}

impl Scenario {
    /// Counts the checks, with a line for each that counts against us or is excused: here, or by
    /// `except`.
    pub fn judge(&self, except: Except<'_>) -> Verdict {
        let Verdict { mut tally, mut against, mut excused } = Verdict::default();
        for check in self.checks.iter().filter(|check| !check.is_traffic()) {
            if check.is_bad()
                && let Some(reason) = except(&self.name, check)
            {
                excused.push(format!("{}, {}: {reason}", self.name, check.id));
                tally.excused += 1;
                continue;
            }
            let counter = match check.status {
                Status::Success => &mut tally.ok,
                Status::Failure => &mut tally.failed,
                Status::Warning => &mut tally.warned,
                Status::Skipped | Status::Info if let Some(reason) = self.excuse(check) => {
                    excused.push(format!("{}, {}: {reason}", self.name, check.name));
                    tally.excused += 1;
                    continue;
                }
                Status::Skipped => &mut tally.skipped,
                Status::Info => &mut tally.noted,
            };
            *counter += 1;
            if check.status != Status::Success {
                against.push(check.line());
            }
        }
        if tally == Tally::default() {
            against.push("no check was made".to_owned());
        }
        Verdict { tally, against, excused }
    }

    /// Why a check that was skipped or only noted does not count.
    fn excuse(&self, check: &Check) -> Option<&'static str> {
        let row = UNAVOIDABLE
            .iter()
            .find(|(scenario, name, _)| *scenario == self.name && *name == check.name);
        row.map(|(_, _, reason)| *reason)
    }
}

impl Check {
    /// Whether it is no success.
    pub fn is_bad(&self) -> bool {
        self.status != Status::Success
    }

    fn is_traffic(&self) -> bool {
        self.status == Status::Info && TRAFFIC.contains(&self.id.as_str())
    }

    fn line(&self) -> String {
        let word = match self.status {
            Status::Success => "SUCCESS",
            Status::Failure => "FAILURE",
            Status::Warning => "WARNING",
            Status::Skipped => "SKIPPED",
            Status::Info => "INFO",
        };
        format!("{word} {} ({}): {}", self.id, self.name, self.message)
    }
}

/// Reads every `checks.json` below a folder; `prefix` is what the suite puts before a name.
pub fn read(folder: &Path, prefix: &str) -> Result<Vec<Scenario>, String> {
    let mut scenarios = Vec::new();
    if folder.is_dir() {
        collect(folder, "", prefix, &mut scenarios)?;
    }
    scenarios.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(scenarios)
}

/// Names with a `/` lie in folders of folders.
fn collect(
    folder: &Path,
    above: &str,
    prefix: &str,
    scenarios: &mut Vec<Scenario>,
) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("Cannot read `{}`: {error}.", folder.display());
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if !path.is_dir() {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = path.join("checks.json");
        if !file.is_file() {
            collect(&path, &format!("{above}{name}/"), prefix, scenarios)?;
            continue;
        }
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("Cannot read `{}`: {error}.", file.display()))?;
        let checks = parse(&text).map_err(|error| format!("`{}`: {error}", file.display()))?;
        let name = format!("{above}{}", without_time(&name));
        let name = name.strip_prefix(prefix).unwrap_or(&name).to_owned();
        scenarios.push(Scenario { name, checks });
    }
    Ok(())
}

/// Reads one `checks.json`.
fn parse(text: &str) -> Result<Vec<Check>, String> {
    let Json::Array(items) = json::parse(text)? else {
        return Err("The checks are not an array.".to_owned());
    };
    items.iter().map(check).collect()
}

fn check(item: &Json) -> Result<Check, String> {
    let status = match item["status"].str() {
        "SUCCESS" => Status::Success,
        "FAILURE" => Status::Failure,
        "WARNING" => Status::Warning,
        "SKIPPED" => Status::Skipped,
        "INFO" => Status::Info,
        other => return Err(format!("A check has the unknown status `{other}`.")),
    };
    // Some say in `details` why they were only noted, and some just say what they looked at.
    let said = [&item["errorMessage"], &item["details"]["message"]];
    let said = said.iter().map(|json| json.str()).find(|text| !text.is_empty());
    Ok(Check {
        id: item["id"].str().to_owned(),
        name: item["name"].str().to_owned(),
        status,
        message: said.unwrap_or(item["description"].str()).to_owned(),
    })
}

/// `tools-list-2026-11-15T12-06-38-379Z` into `tools-list`.
fn without_time(name: &str) -> &str {
    let Some(at) = name.len().checked_sub(TIME.len()) else { return name };
    let is_time = name.is_char_boundary(at)
        && name[at..].bytes().zip(TIME.bytes()).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            _ => byte == shape,
        });
    if is_time { &name[..at] } else { name }
}

const TIME: &str = "-0000-00-00T00-00-00-000Z";

/// Entries that record what went over the wire; they assert nothing.
const TRAFFIC: &[&str] = &[
    "incoming-auth-request",
    "incoming-request",
    "incoming-response",
    "incoming-sse-event",
    "outgoing-auth-response",
    "outgoing-request",
    "outgoing-response",
    "outgoing-sse-event",
    "outgoing-stream-close",
    "scope-retry-auth-attempt",
    "server-info",
    "stream-closed",
];

/// What is skipped or only noted whatever an implementation does: scenario, check, reason.
const UNAVOIDABLE: &[(&str, &str, &str)] = &[
    (
        "server-sse-multiple-streams",
        "ServerSSEStreamsFunctional",
        "answers in JSON are no streams; the other runs have them as streams",
    ),
    (
        "tasks-status-notifications",
        "TasksStatusNotificationsScenario",
        "the suite skips it always; its harness waits for a rewrite",
    ),
    (
        "http-standard-headers",
        "ClientMcpMethodHeader_initialize",
        "2026-07-28 has no `initialize` that a client could send",
    ),
    (
        "http-standard-headers",
        "ClientMcpMethodHeader_notifications_initialized",
        "2026-07-28 has no `notifications/initialized` that a client could send",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"[
        {"id":"a","name":"A","description":"a is so","status":"SUCCESS","timestamp":"t"},
        {"id":"b","name":"B","description":"b is so","status":"FAILURE","errorMessage":"it is \"not\""},
        {"id":"c","name":"C","description":"c is so","status":"WARNING","details":{"message":"hardly"}},
        {"id":"d","name":"D","description":"d is so","status":"SKIPPED"},
        {"id":"e","name":"E","description":"e is so","status":"INFO"},
        {"id":"incoming-request","name":"IncomingRequest","description":"POST /","status":"INFO"}
    ]"#;

    fn scenario(name: &str, text: &str) -> Scenario {
        Scenario { name: name.to_owned(), checks: parse(text).expect("the text lists checks") }
    }

    #[test]
    fn whatever_is_no_success_is_counted_and_said() {
        let Verdict { tally, against, excused } = scenario("x", TEXT).judge(&|_, _| None);
        assert_eq!(excused, Vec::<String>::new());
        let want = Tally { ok: 1, failed: 1, warned: 1, skipped: 1, noted: 1, excused: 0 };
        assert_eq!(tally, want);
        let want = [
            "FAILURE b (B): it is \"not\"",
            "WARNING c (C): hardly",
            "SKIPPED d (D): d is so",
            "INFO e (E): e is so",
        ];
        assert_eq!(against, want);
    }

    #[test]
    fn what_nobody_can_avoid_is_excused_but_its_failure_is_not() {
        let (name, check, _) = UNAVOIDABLE[1];
        let text = |status| format!(r#"[{{"id":"i","name":"{check}","status":"{status}"}}]"#);
        let none = Tally::default();
        for (name, status, want) in [
            (name, "SKIPPED", Tally { excused: 1, ..none }),
            (name, "FAILURE", Tally { failed: 1, ..none }),
            ("another", "SKIPPED", Tally { skipped: 1, ..none }),
        ] {
            let verdict = scenario(name, &text(status)).judge(&|_, _| None);
            assert_eq!(verdict.tally, want, "{name} {status}");
            assert_eq!(verdict.excused.len(), want.excused, "{name} {status}");
            assert_eq!(verdict.against.len(), 1 - want.excused, "{name} {status}");
        }
    }

    #[test]
    fn a_scenario_without_a_check_has_not_passed() {
        let traffic = r#"[{"id":"incoming-request","name":"IncomingRequest","status":"INFO"}]"#;
        for text in ["[]", traffic] {
            assert_eq!(
                scenario("x", text).judge(&|_, _| None).against,
                ["no check was made"],
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_list_of_checks_is_refused() {
        for text in ["", "{}", "[{}]", r#"[{"id":"a","status":"FINE"}]"#, "[1]"] {
            assert!(parse(text).is_err(), "`{text}` was read");
        }
    }

    #[test]
    fn a_folder_is_named_after_its_scenario_and_the_time() {
        assert_eq!(without_time("tools-list-2026-11-15T12-06-38-379Z"), "tools-list");
        for name in ["tools-list", "auth", "tools-list-2026-11-15T12-06-38-37xZ", "é"] {
            assert_eq!(without_time(name), name);
        }
    }

    #[test]
    fn scenarios_are_found_in_folders_of_folders() {
        let folder = std::env::temp_dir().join(format!("trunkline-checks-{}", std::process::id()));
        let time = "2026-11-15T12-06-38-379Z";
        for name in [format!("server-b-{time}"), format!("auth/a-{time}")] {
            std::fs::create_dir_all(folder.join(&name)).expect("the folder can be made");
            std::fs::write(folder.join(&name).join("checks.json"), TEXT).expect("it is writable");
        }
        let found = read(&folder, "server-");
        std::fs::remove_dir_all(&folder).expect("the folder can be removed");
        let found = found.expect("the files are readable");
        let names: Vec<(&str, usize)> =
            found.iter().map(|s| (s.name.as_str(), s.checks.len())).collect();
        assert_eq!(names, [("auth/a", 6), ("b", 6)]);
    }
}
