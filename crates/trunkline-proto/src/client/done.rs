//! A failed call → whether it was carried out, and whether it may be retried.
//!
//! The one place that decides this. `docs/gateway.md` has the table.

use serde::Serialize;

use super::HttpError;
use crate::CallError;

/// Whether a call without an answer was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// It was not: nothing of the call was sent, or the HTTP status says that it was not acted upon.
    No,
    /// Unknown. Do not retry it blindly.
    Unknown,
}

impl CallError {
    /// Whether the call was carried out; `None` if the peer answered, because its answer says so.
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

    /// Whether the caller may retry the call: if it provably was not carried out, or if its answer was
    /// lost and it is idempotent. A refusal stands.
    pub fn may_go_again(&self, is_repeatable: bool) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Closed | Self::Lost(_) => is_repeatable,
            _ => false,
        }
    }

    /// The same failure for a retry of a call that got no answer: the retry proves nothing about the
    /// first attempt.
    #[must_use]
    pub fn after_unknown(self) -> Self {
        match self.done() {
            Some(Done::No) => Self::Lost(format!("it was made before, and now: {self}")),
            _ => self,
        }
    }
}

impl HttpError {
    /// Whether the status says, by its definition, that the request was not acted upon. Statuses that
    /// some servers or proxies send after the work was done (400, 403, 404, 409, every 5xx …) prove
    /// nothing.
    pub fn is_refusal(&self) -> bool {
        match self.status {
            // RFC 9110 §15.4.8 and §15.4.9: the client must send it elsewhere, and it was not processed
            // here. 301, 302 and 303 may also follow a processed form.
            307 | 308 => true,
            // RFC 9110 §15.5.2: "has not been applied"; §15.5.8 says the same of a proxy.
            401 | 407 => true,
            // A missing scope (RFC 6750 §3.1). Without a challenge, a filter may have blocked the
            // answer instead.
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
    /// Send a `ping`, which changes nothing, in the same session to check for it.
    AskForSession,
    /// Open a new session and retry the message there, once.
    SendAgain,
    /// Fail the message with this error, and do not retry.
    GiveUp(CallError),
}

/// Decides about a message that was answered with a 404 without an answer. `was_sent_again` says
/// whether that was the second 404 in a row; `is_gone` is the result of the `ping`.
///
/// A 404 in a session means that the session is gone and nothing was done (2025-11-25 §Transports,
/// Session Management). But servers and proxies send it for other reasons too, even after the work was
/// done. Only a `ping` that also gets 404 is proof.
///
/// ```
/// # use trunkline_proto::client::*;
/// // The session exists, so the 404 had another cause, which is unknown.
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
        // The failure, whether it was carried out, whether it is retried, whether it is if idempotent.
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
