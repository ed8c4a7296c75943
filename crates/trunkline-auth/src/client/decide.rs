//! A refused request → what to do about it. And which scopes to request.

use super::authorize::OFFLINE;
use super::store::TokenOrigin;
use crate::scope::Scopes;

/// What is known when a request was refused.
#[derive(Clone, Debug)]
pub(super) struct Situation {
    pub(super) status: u16,
    /// How often this request was refused.
    pub(super) times: u32,
    /// The `error` of the challenge.
    pub(super) error: Option<String>,
    /// The scopes that the request needs, if the challenge names them.
    pub(super) needed: Scopes,
    /// The login that it was sent with; `None` if there was none.
    pub(super) sent: Option<Sent>,
}

#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) origin: TokenOrigin,
    pub(super) is_bound: bool,
    pub(super) can_renew: bool,
    pub(super) requested: Scopes,
    pub(super) granted: Scopes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Retry: something has changed already.
    Again,
    /// Refresh the tokens, and log in if that fails.
    Renew,
    /// Log in.
    LogIn,
    GiveUp(Why),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The login is not the reason.
    Forbidden,
    /// The login has the required scopes.
    HasScopes,
    /// The scopes were requested before, and not granted.
    NotGranted,
    /// A new login is refused.
    Useless,
    TooOften,
    /// Every DPoP proof is refused.
    Proof,
}

/// Decides. Each login costs a person's time: there are at most three per request, and none that
/// would only repeat the last one.
pub(super) fn next(situation: &Situation) -> Next {
    let Situation { status, times, error, needed, sent } = situation;
    let Some(sent) = sent else {
        return match status {
            _ if *times > MAX_LOGINS => Next::GiveUp(Why::TooOften),
            403 => Next::GiveUp(Why::Forbidden),
            _ => Next::LogIn,
        };
    };
    if sent.is_bound && error.as_deref() == Some("use_dpop_nonce") {
        return if *times > MAX_NONCES { Next::GiveUp(Why::TooOften) } else { Next::Again };
    }
    if sent.is_bound && error.as_deref() == Some("invalid_dpop_proof") {
        // Not the login is refused, so a new one would not help.
        return if *times > MAX_PROOFS { Next::GiveUp(Why::Proof) } else { Next::Again };
    }
    if *times > MAX_LOGINS {
        return Next::GiveUp(Why::TooOften);
    }
    let lacks = |has: &Scopes| needed.as_slice().iter().any(|it| !has.contains(it));
    if *status == 403 {
        return match error.as_deref() {
            Some("insufficient_scope") if !lacks(&sent.granted) => Next::GiveUp(Why::HasScopes),
            Some("insufficient_scope")
                if !lacks(&sent.requested) && sent.origin == TokenOrigin::LoggedIn =>
            {
                Next::GiveUp(Why::NotGranted)
            }
            Some("insufficient_scope") => Next::LogIn,
            _ => Next::GiveUp(Why::Forbidden),
        };
    }
    match sent.origin {
        TokenOrigin::LoggedIn if *times > 1 => Next::GiveUp(Why::Useless),
        TokenOrigin::Renewed if *times > 1 => Next::LogIn,
        _ if sent.can_renew && !lacks(&sent.requested) => Next::Renew,
        _ => Next::LogIn,
    }
}

/// The sources of the scopes to request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<'a> {
    /// The scopes of the challenge.
    pub(super) challenged: Option<&'a Scopes>,
    /// The scopes of the set-up.
    pub(super) wished: &'a Scopes,
    /// The scopes in the server's metadata.
    pub(super) supported: &'a Scopes,
    /// The scopes requested before, which must not be lost.
    pub(super) before: &'a Scopes,
    /// Whether `offline_access` is wanted, and the authorization server lists it.
    pub(super) offline: bool,
}

/// The scopes to request. If empty, omit the parameter and leave it to the authorization server.
pub(super) fn scopes(choice: Choice<'_>) -> Scopes {
    let base = match choice.challenged {
        Some(challenged) => challenged,
        None if choice.wished.is_empty() => choice.supported,
        None => choice.wished,
    };
    let all = choice.before.union(base);
    // No resource needs it, whatever servers list: only the authorization server offers it.
    let all: Scopes = all.as_slice().iter().filter(|it| *it != OFFLINE).collect();
    let all = all.union(choice.wished);
    // Alone it would replace the scopes that are granted by default.
    if choice.offline && !all.is_empty() { all.union(&Scopes::parse(OFFLINE)) } else { all }
}

/// Authorizations per request.
const MAX_LOGINS: u32 = 3;
/// Nonces change, and several requests may be in flight.
const MAX_NONCES: u32 = 5;
/// One more proof, also after a nonce.
const MAX_PROOFS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(origin: TokenOrigin, can_renew: bool) -> Option<Sent> {
        let (requested, granted) = (Scopes::parse("a b"), Scopes::parse("a"));
        Some(Sent { origin, is_bound: false, can_renew, requested, granted })
    }

    fn check(status: u16, times: u32, error: &str, needed: &str, sent: Option<Sent>) -> Next {
        let error = Some(error.to_owned()).filter(|it| !it.is_empty());
        next(&Situation { status, times, error, needed: Scopes::parse(needed), sent })
    }

    #[test]
    fn a_request_without_a_login_gets_one() {
        assert_eq!(check(401, 1, "", "", None), Next::LogIn);
        assert_eq!(check(401, 3, "", "", None), Next::LogIn);
        assert_eq!(check(401, 4, "", "", None), Next::GiveUp(Why::TooOften));
        assert_eq!(check(403, 1, "insufficient_scope", "a", None), Next::GiveUp(Why::Forbidden));
        assert_eq!(check(401, 1, "use_dpop_nonce", "", None), Next::LogIn);
    }

    #[test]
    fn a_login_that_is_refused_is_renewed_or_made_anew() {
        use TokenOrigin::{LoggedIn, Renewed, Stored};
        for (times, needed, origin, can_renew, expected) in [
            (1, "", Stored, true, Next::Renew),
            (1, "b", Stored, true, Next::Renew),
            (1, "c", Stored, true, Next::LogIn),
            (1, "", Stored, false, Next::LogIn),
            (1, "", LoggedIn, true, Next::Renew),
            (1, "", LoggedIn, false, Next::LogIn),
            (1, "", Renewed, true, Next::Renew),
            (2, "", Renewed, true, Next::LogIn),
            (2, "", Stored, true, Next::Renew),
            (2, "", LoggedIn, true, Next::GiveUp(Why::Useless)),
            (3, "", Renewed, true, Next::LogIn),
            (4, "", Renewed, true, Next::GiveUp(Why::TooOften)),
        ] {
            let got = check(401, times, "invalid_token", needed, sent(origin, can_renew));
            assert_eq!(got, expected, "{times} {needed} {origin:?} {can_renew}");
        }
    }

    #[test]
    fn scopes_are_stepped_up_but_never_asked_for_twice() {
        use TokenOrigin::{LoggedIn, Renewed, Stored};
        let short = "insufficient_scope";
        for (times, error, needed, origin, expected) in [
            (1, short, "c", LoggedIn, Next::LogIn),
            (1, short, "c", Stored, Next::LogIn),
            (3, short, "c", LoggedIn, Next::LogIn),
            (4, short, "c", LoggedIn, Next::GiveUp(Why::TooOften)),
            (1, short, "a", Stored, Next::GiveUp(Why::HasScopes)),
            (1, short, "", Stored, Next::GiveUp(Why::HasScopes)),
            (1, short, "a b", LoggedIn, Next::GiveUp(Why::NotGranted)),
            (1, short, "a b", Stored, Next::LogIn),
            (1, short, "a b", Renewed, Next::LogIn),
            (1, "", "c", LoggedIn, Next::GiveUp(Why::Forbidden)),
            (1, "invalid_token", "c", LoggedIn, Next::GiveUp(Why::Forbidden)),
        ] {
            let got = check(403, times, error, needed, sent(origin, true));
            assert_eq!(got, expected, "{times} {error} {needed} {origin:?}");
        }
    }

    #[test]
    fn a_nonce_is_a_reason_to_send_again_if_there_was_a_proof() {
        let bound = || sent(TokenOrigin::LoggedIn, false).map(|it| Sent { is_bound: true, ..it });
        assert_eq!(check(401, 1, "use_dpop_nonce", "", bound()), Next::Again);
        assert_eq!(check(401, 5, "use_dpop_nonce", "", bound()), Next::Again);
        assert_eq!(check(401, 6, "use_dpop_nonce", "", bound()), Next::GiveUp(Why::TooOften));
        let bearer = sent(TokenOrigin::Stored, false);
        assert_eq!(check(401, 1, "use_dpop_nonce", "", bearer), Next::LogIn);
    }

    #[test]
    fn a_proof_that_is_refused_is_no_reason_to_log_in() {
        let bound = |origin| sent(origin, true).map(|it| Sent { is_bound: true, ..it });
        for origin in [TokenOrigin::LoggedIn, TokenOrigin::Renewed, TokenOrigin::Stored] {
            for (status, times, expected) in [
                (401, 1, Next::Again),
                (401, 2, Next::Again),
                (401, 3, Next::GiveUp(Why::Proof)),
                (401, 9, Next::GiveUp(Why::Proof)),
            ] {
                let got = check(status, times, "invalid_dpop_proof", "", bound(origin));
                assert_eq!(got, expected, "{status} {times} {origin:?}");
            }
        }
        let bearer = sent(TokenOrigin::Stored, false);
        assert_eq!(check(401, 1, "invalid_dpop_proof", "", bearer), Next::LogIn);
    }

    #[test]
    fn scopes_are_chosen_in_the_order_of_the_spec() {
        for (challenged, wished, supported, before, offline, expected) in [
            (None, "", "", "", false, ""),
            (None, "", "", "", true, ""),
            (None, "", "s t", "", false, "s t"),
            (None, "w", "s t", "", false, "w"),
            (Some("c"), "", "s t", "", false, "c"),
            (Some("c"), "w", "s t", "", false, "c w"),
            (Some(""), "", "s", "", false, ""),
            (Some("c"), "", "s", "b c", false, "b c"),
            (Some("c"), "", "", "", true, "c offline_access"),
            (Some("c offline_access"), "", "", "", false, "c"),
            (None, "", "s offline_access", "", false, "s"),
            (None, "", "offline_access s", "", true, "s offline_access"),
            (Some("c"), "offline_access", "", "", false, "c offline_access"),
            (Some("c"), "", "", "b offline_access", true, "b c offline_access"),
        ] {
            let parsed = challenged.map(Scopes::parse);
            let (wished, supported) = (&Scopes::parse(wished), &Scopes::parse(supported));
            let before = &Scopes::parse(before);
            let choice = Choice { challenged: parsed.as_ref(), wished, supported, before, offline };
            assert_eq!(scopes(choice).to_string(), expected, "{choice:?}");
        }
    }
}
