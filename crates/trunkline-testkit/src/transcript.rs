//! A conversation written as text → the steps it consists of.
//!
//! One line is one step; `#` begins a comment. What the peer and the people around us do:
//!
//! ```text
//! > TEXT                                   the peer says this
//! done KEY RESULT                          the handler of call KEY is done
//! fail KEY CODE MESSAGE                    … with an error
//! say KEY progress|log JSON                it speaks while it works
//! ask TICKET [during KEY] [within TIME] [loudly] [relaying] METHOD [PARAMS]
//!                                          we call the peer (loudly: with progress; relaying:
//!                                          its questions are for whoever calls)
//! drop TICKET                              nobody waits for that call any more
//! changed tools|prompts|resources|URI      something peers may listen to
//! changed task JSON JSON | changed elicitation ID
//! notify METHOD [PARAMS]                   send this notification, if the revision has it
//! wait 5s | wait 100ms                     time passes
//! close                                    the conversation should end
//! ```
//!
//! What the conversation does, in exactly this order:
//!
//! ```text
//! < JSON                                   we say this
//! call KEY METHOD [PARAMS]                 have this call answered (PARAMS compared if given)
//! abandon KEY                              stop answering it
//! settled TICKET RESULT | WORDS            a call of ours is over
//! heard METHOD [for TICKET] [PARAMS]       the peer told us something
//! opened REVISION | failed WORDS           the client's handshake
//! ```
//!
//! JSON is compared as a value, and `"*"` in an expectation stands for anything.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// One line.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The module's table says what each is.
pub enum Step {
    Peer(String),
    Done { key: u64, result: String },
    Fail { key: u64, code: i64, message: String },
    Say { key: u64, what: Saying, json: String },
    Ask(Asking),
    Drop(u64),
    Changed(String),
    Notify { method: String, params: Option<String> },
    Wait(Duration),
    Close,

    We(Value),
    Call { key: u64, method: String, params: Option<Value> },
    Abandon(u64),
    Settled { ticket: u64, outcome: Words },
    Heard { method: String, ticket: Option<u64>, params: Option<Value> },
    Opened(String),
    Failed(String),
}

/// A call of ours.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Asking {
    pub ticket: u64,
    pub during: Option<u64>,
    pub within: Option<Duration>,
    pub loudly: bool,
    pub relaying: bool,
    pub method: String,
    pub params: Option<String>,
}

/// What a handler says while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Saying {
    Progress,
    Log,
}

/// JSON where it is JSON, plain words otherwise.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Words {
    Json(Value),
    Plain(String),
}

/// The steps of a script.
///
/// # Panics
/// When a line cannot be read, naming it: a script is part of a test.
pub fn parse(script: &str) -> Vec<Step> {
    let lines = script.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| Step::parse(line).unwrap_or_else(|| panic!("This line makes no sense: {line}")))
        .collect()
}

impl Step {
    fn parse(line: &str) -> Option<Self> {
        let (verb, rest) = split(line);
        Some(match verb {
            ">" => Self::Peer(rest.to_owned()),
            "<" => Self::We(json(rest)?),
            "call" => {
                let (key, rest) = number(rest)?;
                let (method, params) = split(rest);
                Self::Call { key, method: method.to_owned(), params: optional(params)? }
            }
            "done" => {
                let (key, result) = number(rest)?;
                json(result)?;
                Self::Done { key, result: result.to_owned() }
            }
            "fail" => {
                let (key, rest) = number(rest)?;
                let (code, message) = split(rest);
                Self::Fail { key, code: code.parse().ok()?, message: message.to_owned() }
            }
            "say" => {
                let (key, rest) = number(rest)?;
                let (what, rest) = split(rest);
                let what = match what {
                    "progress" => Saying::Progress,
                    "log" => Saying::Log,
                    _ => return None,
                };
                json(rest)?;
                Self::Say { key, what, json: rest.to_owned() }
            }
            "ask" => Self::parse_ask(rest)?,
            "drop" => Self::Drop(rest.parse().ok()?),
            "changed" => Self::Changed(rest.to_owned()),
            "notify" => {
                let (method, params) = split(rest);
                Self::Notify { method: method.to_owned(), params: text(params)? }
            }
            "wait" => Self::Wait(duration(rest)?),
            "close" => Self::Close,
            "abandon" => Self::Abandon(rest.parse().ok()?),
            "settled" => {
                let (ticket, outcome) = number(rest)?;
                Self::Settled { ticket, outcome: Words::from(outcome) }
            }
            "heard" => {
                let (method, rest) = split(rest);
                let (ticket, rest) = match rest.strip_prefix("for ") {
                    Some(rest) => number(rest).map(|(ticket, rest)| (Some(ticket), rest))?,
                    None => (None, rest),
                };
                Self::Heard { method: method.to_owned(), ticket, params: optional(rest)? }
            }
            "opened" => Self::Opened(rest.to_owned()),
            "failed" => Self::Failed(rest.to_owned()),
            _ => return None,
        })
    }

    fn parse_ask(rest: &str) -> Option<Self> {
        let (ticket, rest) = number(rest)?;
        let (during, rest) = match rest.strip_prefix("during ") {
            Some(rest) => number(rest).map(|(key, rest)| (Some(key), rest))?,
            None => (None, rest),
        };
        let (within, rest) = match rest.strip_prefix("within ").map(split) {
            Some((time, rest)) => (Some(duration(time)?), rest),
            None => (None, rest),
        };
        let (loudly, rest) = match rest.strip_prefix("loudly ") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (relaying, rest) = match rest.strip_prefix("relaying ") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (method, params) = split(rest);
        let (method, params) = (method.to_owned(), text(params)?);
        Some(Self::Ask(Asking { ticket, during, within, loudly, relaying, method, params }))
    }

    /// Whether this is something that happens to the conversation, not something it does.
    pub fn is_input(&self) -> bool {
        !matches!(
            self,
            Self::We(_)
                | Self::Call { .. }
                | Self::Abandon(_)
                | Self::Settled { .. }
                | Self::Heard { .. }
                | Self::Opened(_)
                | Self::Failed(_)
        )
    }

    /// Whether `self`, as expected, describes what was `done`.
    pub fn matches(&self, done: &Self) -> bool {
        let same = |expected: &Option<Value>, done: &Option<Value>| match (expected, done) {
            (Some(expected), Some(done)) => alike(expected, done),
            (expected, _) => expected.is_none(),
        };
        match (self, done) {
            (Self::We(expected), Self::We(done)) => alike(expected, done),
            (
                Self::Call { key, method, params },
                Self::Call { key: its_key, method: its_method, params: its_params },
            ) => key == its_key && method == its_method && same(params, its_params),
            (
                Self::Heard { method, ticket, params },
                Self::Heard { method: its_method, ticket: its_ticket, params: its_params },
            ) => ticket == its_ticket && method == its_method && same(params, its_params),
            (
                Self::Settled { ticket, outcome: Words::Json(expected) },
                Self::Settled { ticket: its_ticket, outcome: Words::Json(done) },
            ) => ticket == its_ticket && alike(expected, done),
            _ => self == done,
        }
    }
}

/// Whether two values are equal, `"*"` in the first standing for anything.
fn alike(expected: &Value, done: &Value) -> bool {
    match (expected, done) {
        (Value::String(any), _) if any == "*" => true,
        (Value::Array(expected), Value::Array(done)) => {
            expected.len() == done.len() && expected.iter().zip(done).all(|(e, d)| alike(e, d))
        }
        (Value::Object(expected), Value::Object(done)) => {
            expected.len() == done.len()
                && expected.iter().all(|(name, e)| done.get(name).is_some_and(|d| alike(e, d)))
        }
        _ => expected == done,
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Self {
        json(text).map_or_else(|| Self::Plain(text.to_owned()), Self::Json)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tail =
            |value: &Option<Value>| value.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
        match self {
            Self::Peer(text) => write!(f, "> {text}"),
            Self::Done { key, result } => write!(f, "done {key} {result}"),
            Self::Fail { key, code, message } => write!(f, "fail {key} {code} {message}"),
            Self::Say { key, what, json } => write!(f, "say {key} {what:?} {json}"),
            Self::Ask(Asking { ticket, during, method, params, .. }) => {
                let during = during.map(|key| format!(" during {key}")).unwrap_or_default();
                write!(f, "ask {ticket}{during} {method} {}", params.as_deref().unwrap_or(""))
            }
            Self::Drop(ticket) => write!(f, "drop {ticket}"),
            Self::Changed(what) => write!(f, "changed {what}"),
            Self::Notify { method, params } => {
                write!(f, "notify {method} {}", params.as_deref().unwrap_or(""))
            }
            Self::Wait(time) => write!(f, "wait {time:?}"),
            Self::Close => f.write_str("close"),
            Self::We(message) => write!(f, "< {message}"),
            Self::Call { key, method, params } => write!(f, "call {key} {method}{}", tail(params)),
            Self::Abandon(key) => write!(f, "abandon {key}"),
            Self::Settled { ticket, outcome: Words::Json(it) } => {
                write!(f, "settled {ticket} {it}")
            }
            Self::Settled { ticket, outcome: Words::Plain(it) } => {
                write!(f, "settled {ticket} {it}")
            }
            Self::Heard { method, ticket, params } => {
                let ticket = ticket.map(|it| format!(" for {it}")).unwrap_or_default();
                write!(f, "heard {method}{ticket}{}", tail(params))
            }
            Self::Opened(revision) => write!(f, "opened {revision}"),
            Self::Failed(why) => write!(f, "failed {why}"),
        }
    }
}

fn split(text: &str) -> (&str, &str) {
    text.split_once(' ').map_or((text, ""), |(first, rest)| (first, rest.trim_start()))
}

fn number(text: &str) -> Option<(u64, &str)> {
    let (number, rest) = split(text);
    Some((number.parse().ok()?, rest))
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Nothing, or JSON.
fn optional(text: &str) -> Option<Option<Value>> {
    if text.is_empty() { Some(None) } else { json(text).map(Some) }
}

/// Nothing, or the text of some JSON.
fn text(text: &str) -> Option<Option<String>> {
    Some(optional(text)?.map(|_| text.to_owned()))
}

fn duration(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(millis) => millis.parse().ok().map(Duration::from_millis),
        None => text.strip_suffix('s')?.parse().ok().map(Duration::from_secs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_line_by_line_and_comments_are_skipped() {
        let steps = parse(
            r#"
            # A comment.
            > {"a":1}
            < {"b":2}
            ask 7 during 1 within 90s loudly roots/list {}
            wait 100ms
            settled 7 timed out
            "#,
        );
        assert_eq!(steps.len(), 5);
        assert_eq!(steps.iter().filter(|step| step.is_input()).count(), 3);
        let Step::Ask(ask) = &steps[2] else { panic!("{:?}", steps[2]) };
        assert_eq!((ask.ticket, ask.during, ask.loudly), (7, Some(1), true));
        assert_eq!(ask.within, Some(Duration::from_secs(90)));
        assert_eq!(steps[3], Step::Wait(Duration::from_millis(100)));
    }

    #[test]
    fn json_is_compared_as_a_value_and_a_star_stands_for_anything() {
        let matches = |expected: &str, done: &str| parse(expected)[0].matches(&parse(done)[0]);
        assert!(matches(r#"< {"a":1,"b":[2]}"#, r#"< {"b": [2], "a": 1}"#));
        assert!(matches(r#"< {"a":"*","b":[2]}"#, r#"< {"a":{"x":1},"b":[2]}"#));
        assert!(!matches(r#"< {"a":"*"}"#, r#"< {}"#));
        assert!(!matches(r#"< {"a":1}"#, r#"< {"a":1,"b":2}"#));
        assert!(!matches(r#"< {"a":[1]}"#, r#"< {"a":[1,2]}"#));
        assert!(matches("call 1 ping", r#"call 1 ping {"a":1}"#));
        assert!(!matches(r#"call 1 ping {"a":2}"#, r#"call 1 ping {"a":1}"#));
        assert!(!matches("call 1 ping", "call 2 ping"));
        assert!(!matches("abandon 1", "call 1 ping"));
    }

    #[test]
    #[should_panic(expected = "This line makes no sense: frobnicate 1")]
    fn a_line_that_makes_no_sense_is_named() {
        parse("frobnicate 1");
    }
}
