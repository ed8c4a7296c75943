//! Policy: whether a caller may make a call, how often, and what is recorded of it.
//!
//! Everything that decides is pure: [`rules`], [`ask`], [`quota`], [`pins`] and [`redact`] take the time and
//! return what should happen. [`audit`] and [`plugins`] act.

pub mod ask;
pub mod audit;
pub mod canonical;
pub mod hidden;
pub mod pins;
pub mod plugins;
pub mod quota;
pub mod redact;
pub mod rules;
pub mod stamp;
pub mod subject;
pub(crate) mod uri;

use crate::merge::{Item, Target};
use std::time::Duration;

use crate::failure::{Failure, Reason, Stage};

/// The target of a call, by its server's own name.
///
/// Completing an argument concerns the prompt or the template's URI; subscribing to a resource concerns its
/// URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What<'a> {
    /// A tool, by its name.
    Tool(&'a str),
    /// A resource, by its URI.
    Resource(&'a str),
    /// A prompt, by its name.
    Prompt(&'a str),
}

impl<'a> What<'a> {
    /// The name of a target for rules and rate limits.
    pub(crate) fn of(target: &'a Target) -> Self {
        match &target.item {
            Item::Tool(_) => Self::Tool(&target.name),
            Item::Prompt(_) => Self::Prompt(&target.name),
            Item::Resource(_) | Item::Template(_) | Item::Unlisted => Self::Resource(&target.name),
        }
    }

    /// The name for rules and rate limits: `server.tool`, `server.read:URI` or `server.prompt:NAME`.
    pub fn on(self, server: &str) -> String {
        match self {
            Self::Tool(name) => format!("{server}.{name}"),
            Self::Resource(uri) => format!("{server}.read:{uri}"),
            Self::Prompt(name) => format!("{server}.prompt:{name}"),
        }
    }

    /// `tool`, `uri` or `prompt`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "uri",
            Self::Prompt(_) => "prompt",
        }
    }

    /// Its name or URI alone.
    pub fn name(self) -> &'a str {
        match self {
            Self::Tool(name) | Self::Resource(name) | Self::Prompt(name) => name,
        }
    }
}

/// The failure for a caller over its rate limit.
pub fn limited(server: &str, what: What<'_>, retry_after: Duration) -> Failure {
    let seconds = retry_after.as_millis().div_ceil(1000);
    let message = format!("`{}` was called too often.", what.on(server));
    let mut failure = Failure::new(Reason::RateLimited, Stage::Policy, message).of(server);
    failure.retry_after = Some(retry_after);
    failure.advice(format!("Try again in {seconds} s."))
}

/// The failure for a caller whose user did not approve.
pub fn not_approved(server: &str, what: What<'_>) -> Failure {
    let message = format!("The user did not approve of this call of `{}`.", what.on(server));
    Failure::new(Reason::NotApproved, Stage::Policy, message)
        .of(server)
        .advice("Ask the user what to do instead.")
}

/// The failure for a caller whose user cannot be asked.
pub fn cannot_ask(server: &str, what: What<'_>) -> Failure {
    let name = what.on(server);
    let message =
        format!("Calls of `{name}` need the user's approval, and this client cannot ask.");
    Failure::new(Reason::ApprovalUnavailable, Stage::Policy, message)
        .of(server)
        .advice("Use a client that supports elicitation, or change the rule.")
}

/// Makes a foreign text safe to show: removes control characters and bidirectional marks, and shortens it to
/// `limit` bytes with a `…`.
pub(crate) fn plain(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    for character in text.chars() {
        if character.is_control() || is_turning(character) {
            continue;
        }
        if out.len() + character.len_utf8() > limit {
            out.push('…');
            break;
        }
        out.push(character);
    }
    out
}

/// Marks that reverse or hide text. Tags (U+E0000…) are invisible and still read by models.
fn is_turning(character: char) -> bool {
    matches!(character,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_resources_and_prompts_have_names_of_one_kind() {
        assert_eq!(What::Tool("push").on("git"), "git.push");
        assert_eq!(What::Resource("file:///a").on("git"), "git.read:file:///a");
        assert_eq!(What::Prompt("review").on("git"), "git.prompt:review");
        assert_eq!((What::Resource("x").kind(), What::Resource("x").name()), ("uri", "x"));
    }

    #[test]
    fn refusals_say_what_to_do() {
        let failure = limited("git", What::Tool("push"), Duration::from_millis(1500));
        assert_eq!(failure.to_string(), "`git.push` was called too often. Try again in 2 s.");
        assert_eq!(failure.retry_after, Some(Duration::from_millis(1500)));
        assert_eq!(failure.reason, "rate_limited");
        assert_eq!(not_approved("git", What::Tool("push")).reason, "not_approved");
        let failure = cannot_ask("git", What::Prompt("x"));
        assert!(failure.to_string().contains("`git.prompt:x`"), "{failure}");
    }

    #[test]
    fn shown_text_has_no_control_characters_and_an_end() {
        assert_eq!(plain("a\u{1b}[2J\r\nb\u{202e}c\u{200b}\u{e0041}", 99), "a[2Jbc");
        assert_eq!(plain("ééé", 4), "éé…");
        assert_eq!(plain("abc", 3), "abc");
    }
}
