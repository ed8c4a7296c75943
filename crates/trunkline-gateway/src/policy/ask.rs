//! A call that needs approval → the question to the user; an answer → whether this very call may be
//! made, once.
//!
//! An approval is a [`Ticket`](Approvals::ask): it opens for the same principal, server, tool and
//! arguments alone, within its time, and once. Where the answer comes back to the call that asked,
//! [`is_approved`] is enough; where the client makes the call again with the answer, the ticket
//! travels with it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use trunkline_auth::seal::Sealer;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{ElicitAction, ElicitParams, ElicitResult};

use super::{What, canonical, plain};

/// Asks whether this call may be made. The arguments are shown as JSON, the long ones shortened.
pub fn question(server: &str, what: What<'_>, arguments: Option<&Json>) -> ElicitParams {
    let verb = match what {
        What::Tool(_) => "call the tool",
        What::Resource(_) => "read the resource",
        What::Prompt(_) => "get the prompt",
    };
    let (name, server) = (plain(what.name(), NAME), plain(server, NAME));
    let mut message = format!("May `{name}` of the server `{server}` be used this once?\n");
    let _ = write!(message, "\nTo {verb}");
    match arguments.map(shown).filter(|it| !it.is_empty()) {
        Some(shown) => {
            let _ = write!(message, " with:\n{shown}");
        }
        None => message.push_str(" without arguments."),
    }
    ElicitParams::form(message, Json::of(&schema()))
}

/// Whether the user said yes. Anything but an accepted form with `approve: true` is a no.
pub fn is_approved(answer: &ElicitResult) -> bool {
    #[derive(serde::Deserialize)]
    struct Form {
        approve: bool,
    }
    answer.action == ElicitAction::Accept
        && answer.content.as_ref().and_then(|it| it.read().ok()).is_some_and(|it: Form| it.approve)
}

/// What an approval is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding(Json);

impl Binding {
    /// Binds to a principal, a server, what is called and the digest of the arguments.
    pub fn new(
        principal: Option<&str>,
        server: &str,
        what: What<'_>,
        arguments: Option<&Json>,
    ) -> Self {
        let digest = arguments.map(canonical::digest);
        // As JSON, so that no name can pretend to be two.
        Self(Json::of(&(principal, server, what.kind(), what.name(), digest)))
    }
}

/// Questions that were asked and not yet redeemed.
pub struct Approvals {
    sealer: Sealer,
    open: BTreeSet<u64>,
    next: u64,
    patience: Duration,
}

impl Approvals {
    /// Nothing is asked yet. Answers must come within `patience`.
    pub fn new(patience: Duration) -> Self {
        Self { sealer: Sealer::random(), open: BTreeSet::new(), next: 0, patience }
    }

    /// Hands out a ticket for a question about this call. Whoever carries it can neither read nor
    /// change it. If too many are out, the oldest is worth nothing any more: that user is asked anew.
    pub fn ask(&mut self, binding: &Binding, now: SystemTime) -> String {
        let number = self.next;
        self.next += 1;
        self.open.insert(number);
        if self.open.len() > MOST {
            self.open.pop_first();
        }
        let context = binding.0.get().as_bytes();
        self.sealer.seal(&number.to_be_bytes(), context, now + self.patience)
    }

    /// Whether the ticket is for this call, in time, and was not redeemed before. It is then.
    pub fn redeem(&mut self, ticket: &str, binding: &Binding, now: SystemTime) -> bool {
        self.number(ticket, binding, now).is_some_and(|it| self.open.remove(&it))
    }

    /// Whether it could be redeemed.
    pub(crate) fn is_for(&self, ticket: &str, binding: &Binding, now: SystemTime) -> bool {
        self.number(ticket, binding, now).is_some_and(|it| self.open.contains(&it))
    }

    fn number(&self, ticket: &str, binding: &Binding, now: SystemTime) -> Option<u64> {
        let opened = self.sealer.open(ticket, binding.0.get().as_bytes(), now).ok();
        opened.and_then(|it| it.try_into().ok()).map(u64::from_be_bytes)
    }
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// A line for each argument.
fn shown(arguments: &Json) -> String {
    let mut out = String::new();
    let Ok(object) = Object::parse(arguments.get()) else { return plain(arguments.get(), VALUE) };
    for (index, (name, value)) in object.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if out.len() > WHOLE {
            let _ = write!(out, "… and more; {} bytes in all", arguments.get().len());
            break;
        }
        let (length, value) = (value.get().len(), plain(value.get(), VALUE));
        let _ = write!(out, "- {}: {value}", plain(name, NAME));
        if value.ends_with('…') {
            let _ = write!(out, " ({length} bytes)");
        }
    }
    out
}

fn schema() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "approve": {
                "type": "boolean",
                "title": "Approve",
                "description": "Whether this one call may be made.",
                "default": false,
            },
        },
        "required": ["approve"],
    })
}

/// How much of a name is shown, in bytes.
const NAME: usize = 128;
/// How much of one argument is shown.
const VALUE: usize = 300;
/// After so much no further argument is shown.
const WHOLE: usize = 2_000;
/// Tickets that are out at a time.
const MOST: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    fn asked(arguments: &str) -> String {
        let arguments = json(arguments);
        question("git", What::Tool("push"), Some(&arguments)).message().to_owned()
    }

    #[test]
    fn the_question_shows_what_would_be_done() {
        assert_eq!(
            asked(r#"{"remote":"origin","force":true}"#),
            "May `push` of the server `git` be used this once?\n\n\
             To call the tool with:\n- remote: \"origin\"\n- force: true"
        );
        let without = question("git", What::Prompt("review"), None);
        assert!(without.message().ends_with("To get the prompt without arguments."));
        assert!(asked("{}").ends_with("without arguments."));
    }

    #[test]
    fn the_form_asks_for_one_yes() {
        let ElicitParams::Form(form) = question("a", What::Tool("b"), None) else {
            panic!("it is a form");
        };
        let schema: serde_json::Value = form.requested_schema.to().unwrap();
        assert_eq!(schema["properties"]["approve"]["type"], "boolean");
        assert_eq!(schema["required"], serde_json::json!(["approve"]));
    }

    #[test]
    fn long_and_hostile_arguments_are_shortened_and_cleaned() {
        let long = format!(r#"{{"a":"{}","b":1}}"#, "x".repeat(5_000));
        let shown = asked(&long);
        assert!(shown.contains("… (5002 bytes)\n- b: 1"), "{shown}");
        let many: Vec<_> =
            (0..1_000).map(|it| format!(r#""k{it}":"{}""#, "v".repeat(90))).collect();
        let shown = asked(&format!("{{{}}}", many.join(",")));
        assert!(shown.len() < 3_000 && shown.contains("bytes in all"), "{shown}");
        let hostile = question("gi\u{1b}[2Jt", What::Tool("pu\u{202e}sh\n"), None);
        assert!(hostile.message().contains("`push` of the server `gi[2Jt`"));
        let name = "n".repeat(100_000);
        assert!(question("git", What::Tool(&name), None).message().len() < 400);
        assert!(!asked("{\"a\":\"\u{202e}\u{200b}x\"}").contains('\u{202e}'));
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        let accept = |text| ElicitResult::accept(json(text));
        assert!(is_approved(&accept(r#"{"approve":true}"#)));
        for no in [
            accept(r#"{"approve":false}"#),
            accept(r#"{"approve":"true"}"#),
            accept("{}"),
            accept("true"),
            ElicitResult::new(ElicitAction::Accept),
            ElicitResult::new(ElicitAction::Decline),
            ElicitResult::new(ElicitAction::Cancel),
        ] {
            assert!(!is_approved(&no), "{no:?}");
        }
        let mut declined = accept(r#"{"approve":true}"#);
        declined.action = ElicitAction::Decline;
        assert!(!is_approved(&declined));
    }

    fn binding(principal: &str, server: &str, tool: &str, arguments: &str) -> Binding {
        Binding::new(Some(principal), server, What::Tool(tool), Some(&json(arguments)))
    }

    #[test]
    fn an_approval_is_for_one_call_once() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let mut approvals = Approvals::new(Duration::from_secs(300));
        let mine = binding("alice", "git", "push", r#"{"a":1,"b":2}"#);
        let ticket = approvals.ask(&mine, now);
        for other in [
            binding("bob", "git", "push", r#"{"a":1,"b":2}"#),
            binding("alice", "hub", "push", r#"{"a":1,"b":2}"#),
            binding("alice", "git", "pull", r#"{"a":1,"b":2}"#),
            binding("alice", "git", "push", r#"{"a":1,"b":3}"#),
            Binding::new(None, "git", What::Tool("push"), Some(&json(r#"{"a":1,"b":2}"#))),
            Binding::new(Some("alice"), "git", What::Prompt("push"), None),
        ] {
            assert!(!approvals.redeem(&ticket, &other, now), "{other:?}");
        }
        assert!(!approvals.redeem("nonsense", &mine, now));
        assert!(!approvals.redeem(&ticket, &mine, now + Duration::from_secs(301)), "too late");
        let same = binding("alice", "git", "push", r#"{ "b": 2, "a": 1 }"#);
        assert!(approvals.is_for(&ticket, &same, now));
        assert!(approvals.redeem(&ticket, &same, now + Duration::from_secs(299)));
        assert!(!approvals.redeem(&ticket, &mine, now), "it was used");
        assert!(!approvals.is_for(&ticket, &mine, now), "it was used");
    }

    #[test]
    fn the_number_of_open_questions_is_bounded() {
        let now = SystemTime::UNIX_EPOCH;
        let mut approvals = Approvals::new(Duration::from_secs(300));
        let call = binding("alice", "git", "push", "{}");
        let first = approvals.ask(&call, now);
        let tickets: Vec<_> = (0..MOST).map(|_| approvals.ask(&call, now)).collect();
        assert_eq!(approvals.open.len(), MOST);
        assert!(!approvals.redeem(&first, &call, now), "the oldest went");
        assert!(approvals.redeem(&tickets[0], &call, now));
    }
}
