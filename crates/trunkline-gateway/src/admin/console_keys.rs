//! Who may use the console: a link that works once → a session of one browser.
//!
//! Nothing here makes up randomness or reads a clock. Sessions live in memory: they end with the process, and no other
//! process knows them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Links that were not used yet, and sessions.
#[derive(Default)]
pub(super) struct ConsoleKeys {
    links: VecDeque<(String, Instant)>,
    sessions: VecDeque<Session>,
}

struct Session {
    cookie: String,
    csrf: String,
    until: Instant,
    /// Dropped with the session, which ends what was opened in it.
    goes_on: watch::Sender<()>,
}

/// For how long somebody is let in.
pub(super) struct Stay {
    pub(super) until: Instant,
    /// Closed once the session was left.
    goes_on: watch::Receiver<()>,
}

impl Stay {
    /// Waits until the session was left.
    pub(super) async fn left(mut self) {
        // Nothing is ever sent.
        while self.goes_on.changed().await.is_ok() {}
    }
}

impl ConsoleKeys {
    /// A key that is good once.
    pub(super) fn issue(&mut self, key: String, now: Instant) {
        if self.links.len() >= MOST_LINKS {
            self.links.pop_front();
        }
        self.links.push_back((key, now + LINK));
    }

    /// Takes a key for a session with this cookie and this token against forged requests.
    pub(super) fn enter(&mut self, key: &str, cookie: String, csrf: String, now: Instant) -> bool {
        self.links.retain(|(_, until)| *until > now);
        // All are compared, so that the time tells nothing.
        let all = self.links.iter().enumerate();
        let found = all.fold(None, |found, (place, (it, _))| match is_same(it, key) {
            true => Some(place),
            false => found,
        });
        let Some(place) = found else { return false };
        self.links.remove(place);
        if self.sessions.len() >= MOST_SESSIONS {
            self.sessions.pop_front();
        }
        let (until, goes_on) = (now + SESSION, watch::Sender::new(()));
        self.sessions.push_back(Session { cookie, csrf, until, goes_on });
        true
    }

    /// The token against forged requests of the session with this cookie.
    pub(super) fn csrf(&mut self, cookie: &str, now: Instant) -> Option<&str> {
        self.session(cookie, now).map(|it| it.csrf.as_str())
    }

    /// That token, and for how long the session goes on.
    pub(super) fn entered(&mut self, cookie: &str, now: Instant) -> Option<(&str, Stay)> {
        let Session { csrf, until, goes_on, .. } = self.session(cookie, now)?;
        Some((csrf, Stay { until: *until, goes_on: goes_on.subscribe() }))
    }

    fn session(&mut self, cookie: &str, now: Instant) -> Option<&Session> {
        self.sessions.retain(|it| it.until > now);
        self.sessions.iter().fold(None, |found, it| match is_same(&it.cookie, cookie) {
            true => Some(it),
            false => found,
        })
    }

    /// Ends a session.
    pub(super) fn leave(&mut self, cookie: &str) {
        self.sessions.retain(|it| !is_same(&it.cookie, cookie));
    }
}

/// Constant-time comparison.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    let differing =
        pairs.fold(0, |found, (one, other)| std::hint::black_box(found | (one ^ other)));
    one.len() == other.len() && differing == 0
}

/// How long a link is good, and a session.
const LINK: Duration = Duration::from_secs(5 * 60);
const SESSION: Duration = Duration::from_secs(12 * 60 * 60);
const MOST_LINKS: usize = 16;
const MOST_SESSIONS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(keys: &mut ConsoleKeys, key: &str, now: Instant) -> bool {
        keys.enter(key, format!("cookie of {key}"), format!("csrf of {key}"), now)
    }

    #[test]
    fn a_link_is_good_once_and_for_five_minutes() {
        let (mut keys, now) = (ConsoleKeys::default(), Instant::now());
        keys.issue("one".to_owned(), now);
        keys.issue("two".to_owned(), now);
        assert!(!enter(&mut keys, "", now) && !enter(&mut keys, "on", now));
        assert!(enter(&mut keys, "one", now), "another link does not make it old");
        assert!(!enter(&mut keys, "one", now), "it was used");
        assert!(!enter(&mut keys, "two", now + LINK), "it is too old");
        assert_eq!(keys.csrf("cookie of one", now), Some("csrf of one"));
        assert_eq!(keys.csrf("cookie of two", now), None);
    }

    #[test]
    fn a_session_ends_when_it_is_left_or_old() {
        let (mut keys, now) = (ConsoleKeys::default(), Instant::now());
        for key in ["one", "two"] {
            keys.issue(key.to_owned(), now);
            assert!(enter(&mut keys, key, now));
        }
        keys.leave("cookie of one");
        assert_eq!(keys.csrf("cookie of one", now), None);
        assert!(keys.csrf("cookie of two", now).is_some());
        assert_eq!(keys.csrf("cookie of two", now + SESSION), None);
    }

    #[tokio::test]
    async fn whoever_stays_hears_of_the_end_of_that_session_alone() {
        let (mut keys, now) = (ConsoleKeys::default(), Instant::now());
        for key in ["one", "two"] {
            keys.issue(key.to_owned(), now);
            assert!(enter(&mut keys, key, now));
        }
        let [one, two] =
            ["one", "two"].map(|it| keys.entered(&format!("cookie of {it}"), now).map(|it| it.1));
        assert_eq!(one.as_ref().map(|it| it.until), Some(now + SESSION));
        keys.leave("cookie of one");
        one.unwrap().left().await;
        assert!(two.unwrap().goes_on.has_changed().is_ok());
        assert!(keys.entered("cookie of one", now).is_none());
    }

    #[test]
    fn links_and_sessions_are_bounded() {
        let (mut keys, now) = (ConsoleKeys::default(), Instant::now());
        for number in 0..100 {
            keys.issue(number.to_string(), now);
            assert!(enter(&mut keys, &number.to_string(), now));
            keys.issue(format!("unused {number}"), now);
        }
        assert!(keys.links.len() <= MOST_LINKS && keys.sessions.len() <= MOST_SESSIONS);
        assert!(keys.csrf("cookie of 99", now).is_some(), "the newest stay");
    }
}
