//! Consent: builds the question to the user, and decides whether an answer approves this very call, once.
//!
//! An approval is a [`Ticket`](Approvals::ask): it is valid for the same principal, server, tool and arguments
//! alone, until its deadline, and once. If the answer returns to the call that asked, [`is_approved`] is
//! enough; if the client retries the call with the answer, the ticket travels with it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use trunkline_auth::seal::Sealer;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{ElicitAction, ElicitParams, ElicitResult};

use super::{What, canonical, is_turning, plain};

/// The question whether this call may be made. It shows the arguments as JSON. Long ones are shown with their
/// beginning, end and digest, and the question says so first: users must know that they do not see everything.
pub fn question(server: &str, what: What<'_>, arguments: Option<&Json>) -> ElicitParams {
    let verb = match what {
        What::Tool(_) => "call the tool",
        What::Resource(_) => "read the resource",
        What::Prompt(_) => "get the prompt",
    };
    let (name, server) = (plain(what.name(), NAME), plain(server, NAME));
    let mut message = format!("May `{name}` of the server `{server}` be used this once?\n");
    let _ = write!(message, "\nTo {verb}");
    match arguments.map(shown).filter(|it| !it.0.is_empty()) {
        Some((shown, 0)) => {
            let _ = write!(message, " with:\n{shown}");
        }
        Some((shown, hidden)) => {
            let _ = write!(
                message,
                " with what follows. NOT ALL OF IT IS SHOWN: {hidden} bytes are left out.\n{shown}"
            );
        }
        None => message.push_str(" without arguments."),
    }
    ElicitParams::form(message, Json::of(&schema()))
}

/// Whether the user approved. Anything but an accepted form with `approve: true` is a refusal.
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
    /// Binds to a principal, a server, a target and the digest of the arguments.
    pub fn new(
        principal: Option<&str>,
        server: &str,
        what: What<'_>,
        arguments: Option<&Json>,
    ) -> Self {
        let digest = arguments.map(canonical::digest);
        // As JSON, so that the fields cannot run into each other.
        Self(Json::of(&(principal, server, what.kind(), what.name(), digest)))
    }
}

/// Tickets that were issued and not redeemed.
pub struct Approvals {
    sealer: Sealer,
    open: BTreeSet<u64>,
    next: u64,
    patience: Duration,
}

impl Approvals {
    /// No open tickets. Answers must arrive within `patience`.
    pub fn new(patience: Duration) -> Self {
        Self { sealer: Sealer::random(), open: BTreeSet::new(), next: 0, patience }
    }

    /// Issues a ticket for a question about this call. Its carrier can neither read nor change it. Beyond the
    /// bound, the oldest ticket expires: that user is asked again.
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

    /// Redeems a ticket: whether it is for this call, in time, and was not redeemed before.
    pub fn redeem(&mut self, ticket: &str, binding: &Binding, now: SystemTime) -> bool {
        self.number(ticket, binding, now).is_some_and(|it| self.open.remove(&it))
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

/// Tickets that any replica issues and any redeems. Which were redeemed is remembered elsewhere, by name.
pub(crate) struct SharedTickets {
    sealer: Sealer,
    patience: Duration,
}

impl SharedTickets {
    pub(crate) fn new(sealer: Sealer, patience: Duration) -> Self {
        Self { sealer, patience }
    }

    /// Issues a ticket, as [`Approvals::ask`] does.
    pub(crate) fn ask(&self, binding: &Binding, now: SystemTime) -> String {
        let name = self.sealer.random_name();
        self.sealer.seal(name.as_bytes(), binding.0.get().as_bytes(), now + self.patience)
    }

    /// The name of a ticket, if it is for this call and in time.
    pub(crate) fn name(&self, ticket: &str, binding: &Binding, now: SystemTime) -> Option<String> {
        let opened = self.sealer.open(ticket, binding.0.get().as_bytes(), now).ok()?;
        String::from_utf8(opened).ok()
    }
}

/// A line for each argument, and how many bytes are hidden.
fn shown(arguments: &Json) -> (String, usize) {
    let Ok(object) = Object::parse(arguments.get()) else { return excerpt(arguments.get(), VALUE) };
    let (mut out, mut hidden) = (String::new(), 0);
    for (index, (name, value)) in object.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if out.len() > WHOLE {
            let left: usize = object.iter().skip(index).map(|(_, it)| it.get().len()).sum();
            let digest = canonical::digest(arguments);
            let _ = write!(
                out,
                "… and {} more arguments; {} bytes in all, {digest}",
                object.iter().count() - index,
                arguments.get().len()
            );
            return (out, hidden + left);
        }
        let (value, more) = excerpt(value.get(), VALUE);
        let _ = write!(out, "- {}: {value}", plain(name, NAME));
        hidden += more;
    }
    (out, hidden)
}

/// A short text as it is; otherwise its beginning, end, length and digest. Invisible marks are spelled out:
/// they are part of what is sent.
fn excerpt(text: &str, limit: usize) -> (String, usize) {
    if text.len() <= limit {
        return (spelt(text), 0);
    }
    let begin = &text[..text.floor_char_boundary(limit * 3 / 4)];
    let end = &text[text.ceil_char_boundary(text.len() - limit / 4)..];
    let hidden = text.len() - begin.len() - end.len();
    let digest = trunkline_auth::digest::sha256(text.as_bytes());
    let shown = format!(
        "{} … {hidden} of {} bytes are not shown, {digest} … {}",
        spelt(begin),
        text.len(),
        spelt(end)
    );
    (shown, hidden)
}

/// Spells every invisible mark as `<U+…>`.
fn spelt(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_turning(character) {
            let _ = write!(out, "<U+{:04X}>", u32::from(character));
        } else {
            out.push(character);
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

/// The bytes of a name that are shown.
const NAME: usize = 128;
/// The bytes of one argument that are shown.
const VALUE: usize = 2_000;
/// The bytes after which no further argument is shown.
const WHOLE: usize = 8_000;
/// The bound on open tickets.
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
        let long = format!(r#"{{"a":"begin{}end","b":1}}"#, "x".repeat(5_000));
        let shown = asked(&long);
        let digest =
            trunkline_auth::digest::sha256(format!("\"begin{}end\"", "x".repeat(5_000)).as_bytes());
        for part in [
            "NOT ALL OF IT IS SHOWN: 3010 bytes are left out.",
            "- a: \"beginxxx",
            &format!("3010 of 5010 bytes are not shown, {digest}"),
            "xxxend\"\n- b: 1",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let short = asked(&format!(r#"{{"a":"{}"}}"#, "x".repeat(1_900)));
        assert!(short.contains(&"x".repeat(1_900)) && !short.contains("NOT ALL"), "{short}");
        let many: Vec<_> =
            (0..1_000).map(|it| format!(r#""k{it}":"{}""#, "v".repeat(90))).collect();
        let shown = asked(&format!("{{{}}}", many.join(",")));
        assert!(shown.len() < 10_000 && shown.contains("bytes in all, sha256:"), "{shown}");
        assert!(shown.contains("NOT ALL OF IT IS SHOWN"), "{shown}");
        let hostile = question("gi\u{1b}[2Jt", What::Tool("pu\u{202e}sh\n"), None);
        assert!(hostile.message().contains("`push` of the server `gi[2Jt`"));
        let name = "n".repeat(100_000);
        assert!(question("git", What::Tool(&name), None).message().len() < 400);
        let turned = asked("{\"a\":\"\u{202e}\u{200b}x\"}");
        assert!(turned.contains("\"<U+202E><U+200B>x\""), "{turned}");
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
        assert!(approvals.redeem(&ticket, &same, now + Duration::from_secs(299)));
        assert!(!approvals.redeem(&ticket, &mine, now), "it was used");
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
