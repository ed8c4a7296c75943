//! A call that failed → what is known of its work, and whether it may be made again.
//!
//! The one place that decides this. `docs/gateway.md` has it as a table for people.

use serde::Serialize;

use super::HttpError;
use crate::CallError;

/// What is known of the work of a call that has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// It was not begun: nothing of the call was written, or HTTP says that it was not acted upon.
    No,
    /// Nobody knows. It must not be repeated without looking.
    Unknown,
}

impl CallError {
    /// What is known of the work; `None` if the peer answered, for then it says so itself.
    pub fn done(&self) -> Option<Done> {
        match self {
            Self::Peer(_) => None,
            Self::Refused(_) | Self::Credentials(_) | Self::Unreachable(_) => Some(Done::No),
            Self::Http(error) if error.is_refusal() => Some(Done::No),
            Self::Http(_)
            | Self::Invalid(_)
            | Self::TimedOut
            | Self::Cancelled
            | Self::Closed
            | Self::Lost(_) => Some(Done::Unknown),
        }
    }

    /// Whether whoever made the call may make it once more: if it provably was not made, or if its
    /// answer was lost and repeating it does no harm. A refusal stays one.
    pub fn may_go_again(&self, is_repeatable: bool) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Closed | Self::Lost(_) => is_repeatable,
            _ => false,
        }
    }

    /// The same failure of a call that was made before and got no answer: that this time nothing was
    /// done does not undo the first.
    #[must_use]
    pub fn after_unknown(self) -> Self {
        match self.done() {
            Some(Done::No) => Self::Lost(format!("it was made before, and now: {self}")),
            _ => self,
        }
    }
}

impl HttpError {
    /// Whether the status says, by its definition, that the request was not acted upon. A status
    /// that some server or proxy gives after the work was done (400, 403, 404, 409, every 5xx …) says
    /// nothing.
    pub fn is_refusal(&self) -> bool {
        match self.status {
            // RFC 9110 §15.4.8 and §15.4.9: it is to be made elsewhere, and was not made here. 301, 302
            // and 303 are also what a form is answered with after it was processed.
            307 | 308 => true,
            // RFC 9110 §15.5.2: "has not been applied"; §15.5.8 is the same of a proxy.
            401 | 407 => true,
            // A scope is missing (RFC 6750 §3.1). Without a challenge it may be a filter that looked
            // at the answer.
            403 => self.challenge.is_some(),
            // RFC 9110 §15.5: method, length, size, URI, type, expectation, wrong server, upgrade.
            405 | 411 | 413 | 414 | 415 | 417 | 421 | 426 => true,
            // RFC 8470 §5.2, RFC 6585 §§3-5: too early, a condition is missing, too many, headers.
            425 | 428 | 429 | 431 => true,
            _ => false,
        }
    }
}

/// What to do about a message that was refused because the server does not know its session.
#[derive(Clone, Debug, PartialEq)]
pub enum OnSessionGone {
    /// Ask in the same session whether it is there, with something that changes nothing (`ping`).
    AskForSession,
    /// Begin another session, and send the message there, once.
    SendAgain,
    /// Give it up so, and never send it again.
    GiveUp(CallError),
}

/// Decides about a message that was answered with a 404 that holds no answer. `was_sent_again` says
/// whether that was the second 404 in a row; `is_gone` what asking for the session has shown.
///
/// A 404 in a session means that the session is gone and nothing was done (2025-11-25, Transports,
/// Session Management). But servers and proxies give it for other reasons too, also after the work was
/// done; only a session that is gone for a `ping` as well is proof.
///
/// ```
/// # use trunkline_proto::client::*;
/// // The session is there, so the 404 was about something else: what it was nobody knows.
/// let OnSessionGone::GiveUp(why) = on_session_gone(false, Some(false)) else { panic!() };
/// assert_eq!(why.done(), Some(Done::Unknown));
/// ```
pub fn on_session_gone(was_sent_again: bool, is_gone: Option<bool>) -> OnSessionGone {
    let lost = |why: &str| OnSessionGone::GiveUp(CallError::Lost(why.to_owned()));
    match (was_sent_again, is_gone) {
        (true, _) => lost("the server answered with HTTP status 404 in a new session too."),
        (false, None) => OnSessionGone::AskForSession,
        (false, Some(true)) => OnSessionGone::SendAgain,
        (false, Some(false)) => {
            lost("the server answered with HTTP status 404, but still knows the session.")
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_wire::jsonrpc::ErrorObject;

    use super::*;

    #[test]
    fn only_what_proves_that_nothing_was_begun_says_so() {
        let text = || "x".to_owned();
        let http = |status| CallError::Http(HttpError::new(status, ""));
        let (no, unknown) = (Some(Done::No), Some(Done::Unknown));
        // The failure, what is known, whether it is made again, whether it is if that does no harm.
        for (error, done, again, harmless) in [
            (CallError::Peer(ErrorObject::new(1, "x")), None, false, false),
            (CallError::Refused(ErrorObject::new(1, "x")), no, false, false),
            (CallError::Credentials(text()), no, false, false),
            (CallError::Unreachable(text()), no, true, true),
            (CallError::Lost(text()), unknown, false, true),
            (CallError::Closed, unknown, false, true),
            (CallError::TimedOut, unknown, false, false),
            (CallError::Cancelled, unknown, false, false),
            (CallError::Invalid(text()), unknown, false, false),
            (http(401), no, false, false),
            (http(429), no, false, false),
            (http(404), unknown, false, false),
            (http(503), unknown, false, false),
        ] {
            assert_eq!(error.done(), done, "{error:?}");
            assert_eq!(error.may_go_again(false), again, "{error:?}");
            assert_eq!(error.may_go_again(true), harmless, "{error:?}");
            let later = error.clone().after_unknown().done();
            assert_eq!(later, done.map(|_| Done::Unknown), "{error:?}");
        }
    }

    #[test]
    fn a_status_is_a_refusal_only_by_its_definition() {
        let refusals =
            [307, 308, 401, 405, 407, 411, 413, 414, 415, 417, 421, 425, 426, 428, 429, 431];
        for status in 100..600 {
            let is_one = HttpError::new(status, "").is_refusal();
            assert_eq!(is_one, refusals.contains(&status), "{status}");
        }
        let challenge = Some("Bearer error=\"insufficient_scope\"".to_owned());
        assert!(HttpError { challenge, ..HttpError::new(403, "") }.is_refusal());
    }

    #[test]
    fn a_session_that_is_gone_twice_is_not_asked_for_a_third_time() {
        for is_gone in [None, Some(true), Some(false)] {
            let OnSessionGone::GiveUp(why) = on_session_gone(true, is_gone) else {
                panic!("it is given up");
            };
            assert_eq!((why.done(), why.may_go_again(false)), (Some(Done::Unknown), false));
        }
    }
}
