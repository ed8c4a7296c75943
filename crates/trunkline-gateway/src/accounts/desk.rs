//! Links and visits: who may open which page, once and for how long. Sans-IO.
//!
//! A link leads to the first page. Opening it there turns it into a visit, to which the browser's cookie and
//! the `state` of the authorization request (RFC 6749 §10.12) belong.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use trunkline_auth::seal::Sealer;
use trunkline_auth::tag::random_name;

use super::Owner;

/// All links and visits. `F` is a login in progress.
pub(super) struct Desk<F> {
    sealer: Sealer,
    links: HashMap<String, Issued>,
    visits: HashMap<String, Visit<F>>,
}

/// A link to hand out.
#[derive(Debug)]
pub(super) struct Link {
    /// The token in the URL.
    pub(super) sealed: String,
    /// The elicitation id.
    pub(super) elicitation: String,
}

struct Issued {
    owner: Owner,
    sealed: String,
    elicitation: String,
    expires: SystemTime,
    /// How many proofs of identity failed there.
    failures: u32,
}

/// A browser that was redirected and has to return.
pub(super) struct Visit<F> {
    pub(super) owner: Owner,
    /// The cookie's value.
    pub(super) browser: String,
    pub(super) step: Step,
    pub(super) flow: F,
    expires: SystemTime,
}

/// Why the browser is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The user proves to be the principal, at the gateway's own issuer.
    Proving,
    /// The principal logs in at the server's authorization server.
    Connecting,
}

/// The bound is reached.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Why a returning browser is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// No login has this `state`, or not any more.
    Unknown,
    /// Another browser began it.
    OtherBrowser,
}

impl<F> Desk<F> {
    pub(super) fn new() -> Self {
        Self { sealer: Sealer::random(), links: HashMap::new(), visits: HashMap::new() }
    }

    /// A link for a principal. A link that is valid for long enough is reused.
    pub(super) fn issue(&mut self, owner: &Owner, now: SystemTime) -> Result<Link, Full> {
        self.links.retain(|_, it| it.expires > now);
        let is_fresh = |it: &&Issued| it.owner == *owner && it.expires > now + LIFE / 2;
        if let Some(it) = self.links.values().find(is_fresh) {
            let (sealed, elicitation) = (it.sealed.clone(), it.elicitation.clone());
            return Ok(Link { sealed, elicitation });
        }
        let own = self.links.values().filter(|it| it.owner.id == owner.id).count();
        if own >= LINKS.1 || self.links.len() >= LINKS.0 {
            return Err(Full);
        }
        let (name, expires) = (random_name(), now + LIFE);
        let sealed = self.sealer.seal(name.as_bytes(), CONTEXT, expires);
        let elicitation = random_name();
        let link = Link { sealed: sealed.clone(), elicitation: elicitation.clone() };
        let owner = owner.clone();
        self.links.insert(name, Issued { owner, sealed, elicitation, expires, failures: 0 });
        Ok(link)
    }

    /// The owner of a link, if it is valid.
    pub(super) fn look(&self, sealed: &str, now: SystemTime) -> Option<&Owner> {
        self.issued(sealed, now).and_then(|name| self.links.get(&name)).map(|it| &it.owner)
    }

    /// Consumes a link.
    pub(super) fn open(&mut self, sealed: &str, now: SystemTime) -> Option<Owner> {
        let name = self.issued(sealed, now)?;
        self.links.remove(&name).map(|it| it.owner)
    }

    /// A proof of identity failed. A few failures may be typing errors.
    pub(super) fn failed(&mut self, sealed: &str, now: SystemTime) {
        let Some(name) = self.issued(sealed, now) else { return };
        if let Some(link) = self.links.get_mut(&name) {
            link.failures += 1;
            if link.failures >= FAILURES {
                self.links.remove(&name);
            }
        }
    }

    /// Drops unfinished logins of the same principal at the same server.
    pub(super) fn drop_unfinished(&mut self, owner: &Owner) {
        self.visits.retain(|_, it| it.owner != *owner);
    }

    /// The browser was redirected and will return with `state`. Its cookie is `browser`.
    pub(super) fn away(
        &mut self,
        state: String,
        (owner, browser, step): (Owner, String, Step),
        flow: F,
        now: SystemTime,
    ) -> Result<(), Full> {
        self.visits.retain(|_, it| it.expires > now);
        let own = self.visits.values().filter(|it| it.owner.id == owner.id).count();
        if own >= VISITS.1 || self.visits.len() >= VISITS.0 {
            return Err(Full);
        }
        let expires = now + LIFE;
        self.visits.insert(state, Visit { owner, browser, step, flow, expires });
        Ok(())
    }

    /// The browser has returned. A replay of the same `state` is refused.
    pub(super) fn back(
        &mut self,
        state: &str,
        browser: Option<&str>,
        now: SystemTime,
    ) -> Result<(Owner, String, Step, F), Lost> {
        self.visits.retain(|_, it| it.expires > now);
        let visit = self.visits.get(state).ok_or(Lost::Unknown)?;
        if browser != Some(&*visit.browser) {
            return Err(Lost::OtherBrowser);
        }
        let visit = self.visits.remove(state).ok_or(Lost::Unknown)?;
        Ok((visit.owner, visit.browser, visit.step, visit.flow))
    }

    /// Whether a login is in progress in the browser with this cookie.
    pub(super) fn knows(&self, browser: &str) -> bool {
        self.visits.values().any(|it| it.browser == browser)
    }

    fn issued(&self, sealed: &str, now: SystemTime) -> Option<String> {
        let name = self.sealer.open(sealed, CONTEXT, now).ok()?;
        String::from_utf8(name).ok()
    }
}

/// How long a link is valid, and how long a browser may be away.
pub(super) const LIFE: Duration = Duration::from_secs(600);
const CONTEXT: &[u8] = b"trunkline gateway\0login";
/// How many there may be in all, and of one principal.
const LINKS: (usize, usize) = (4096, 16);
const VISITS: (usize, usize) = (512, 8);
const FAILURES: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, server: &str) -> Owner {
        let (id, server) = (format!("n0:{name}").into(), server.to_owned());
        Owner { id, name: name.to_owned(), issuer: None, server }
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_link_is_good_once_and_for_ten_minutes() {
        let (mut desk, now) = (Desk::<()>::new(), SystemTime::now());
        let ann = owner("ann", "git");
        let link = desk.issue(&ann, now).unwrap();
        assert_eq!(desk.issue(&ann, now + MINUTE).unwrap().sealed, link.sealed, "still fresh");
        let later = desk.issue(&ann, now + 6 * MINUTE).unwrap();
        assert_ne!(later.sealed, link.sealed, "it would end soon");
        assert_eq!(desk.look(&link.sealed, now + 9 * MINUTE), Some(&ann));
        assert_eq!(desk.look(&link.sealed, now + 10 * MINUTE + MINUTE / 60), None, "too late");
        assert_eq!(desk.open(&link.sealed, now), Some(ann));
        assert_eq!(desk.open(&link.sealed, now), None, "twice");
        assert_eq!(desk.open("made-up", now), None);
        assert!(Desk::<()>::new().look(&later.sealed, now).is_none(), "of another gateway");
    }

    #[test]
    fn tokens_cannot_be_guessed_at_a_link() {
        let (mut desk, now) = (Desk::<()>::new(), SystemTime::now());
        let link = desk.issue(&owner("ann", "git"), now).unwrap().sealed;
        for _ in 1..FAILURES {
            desk.failed(&link, now);
            assert!(desk.look(&link, now).is_some());
        }
        desk.failed(&link, now);
        assert!(desk.look(&link, now).is_none());
    }

    #[test]
    fn one_principal_cannot_take_all_the_links() {
        let (mut desk, now) = (Desk::<()>::new(), SystemTime::now());
        for at in 0..LINKS.1 {
            desk.issue(&owner("ann", &format!("s{at}")), now).unwrap();
        }
        assert_eq!(desk.issue(&owner("ann", "more"), now).unwrap_err(), Full);
        assert!(desk.issue(&owner("bob", "more"), now).is_ok());
        assert!(desk.issue(&owner("ann", "more"), now + 11 * MINUTE).is_ok(), "they ended");
    }

    #[test]
    fn a_browser_comes_back_once_by_itself_and_in_time() {
        let (mut desk, now) = (Desk::new(), SystemTime::now());
        let visit = || (owner("ann", "git"), "cookie".to_owned(), Step::Connecting);
        desk.away("s1".into(), visit(), 7, now).unwrap();
        let lost = |it: Result<(Owner, String, Step, i32), Lost>| it.map(|it| it.3).unwrap_err();
        assert_eq!(lost(desk.back("s2", Some("cookie"), now)), Lost::Unknown);
        assert_eq!(lost(desk.back("s1", Some("other"), now)), Lost::OtherBrowser);
        assert_eq!(lost(desk.back("s1", None, now)), Lost::OtherBrowser);
        assert!(desk.knows("cookie") && !desk.knows("other"));
        let (who, _, step, flow) = desk.back("s1", Some("cookie"), now).unwrap();
        assert_eq!((&*who.name, step, flow), ("ann", Step::Connecting, 7));
        assert_eq!(lost(desk.back("s1", Some("cookie"), now)), Lost::Unknown, "twice");
        desk.away("s3".into(), visit(), 8, now).unwrap();
        desk.drop_unfinished(&owner("ann", "mail"));
        assert!(desk.knows("cookie"), "of another server");
        desk.drop_unfinished(&owner("ann", "git"));
        assert!(!desk.knows("cookie"), "given up");
        desk.away("s3".into(), visit(), 8, now).unwrap();
        assert_eq!(lost(desk.back("s3", Some("cookie"), now + 11 * MINUTE)), Lost::Unknown);
    }
}
