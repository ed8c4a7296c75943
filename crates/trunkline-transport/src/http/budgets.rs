//! What the requests of an endpoint hold → whether one more byte, session or subscription fits.
//!
//! A body counts for the memory it holds, from the first byte that has to wait until its call is
//! answered. Its `Content-Length` is a promise and takes nothing, but a length that cannot fit any more
//! is refused before anything is read. So bodies are admitted byte by byte, before their calls, and no
//! number of requests exceeds the budget. A short body that has arrived completely, as nearly all have,
//! is not counted: it waits for nothing, and its call is counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use http::{Extensions, StatusCode};
use trunkline_auth::Principal;
use trunkline_proto::budget::Over;
use trunkline_proto::http::Refusal;
use trunkline_wire::jsonrpc::ErrorObject;

use crate::budget::{Budget, Held};
use crate::limits::Limits;

/// The budgets, in total and per principal. Clones share them, and so do endpoints that belong
/// together.
#[derive(Clone, Debug)]
pub struct Budgets {
    bodies: Budget,
    sessions: Budget,
    listeners: Budget,
    subscribed: Budget,
    calls: Budget,
    answers: Budget,
    /// Bytes of answers that no client has read. Shares are only checked once this is large.
    unread: Arc<AtomicUsize>,
    answers_share: usize,
    knows_callers: bool,
}

impl Budgets {
    /// Budgets within these limits. Without named callers there are no shares to protect.
    pub fn new(limits: &Limits, knows_callers: bool) -> Self {
        let of = |total: usize, share: usize| match knows_callers {
            true => Budget::new(total, share),
            false => Budget::new(total, total),
        };
        Self {
            bodies: of(limits.bodies_bytes, limits.bodies_share),
            sessions: of(limits.sessions, limits.sessions_share),
            listeners: of(limits.sessions, limits.sessions_share),
            subscribed: of(limits.subscribed_bytes, limits.subscribed_share),
            calls: of(limits.calls, limits.calls_share),
            answers: of(limits.answers_bytes, limits.answers_share),
            unread: Arc::default(),
            answers_share: limits.answers_share.min(limits.answers_bytes),
            knows_callers,
        }
    }

    /// The bytes of requests.
    pub fn bodies(&self) -> &Budget {
        &self.bodies
    }

    /// The sessions.
    pub fn sessions(&self) -> &Budget {
        &self.sessions
    }

    /// The bytes of the URIs that are subscribed to.
    pub fn subscribed(&self) -> &Budget {
        &self.subscribed
    }

    /// Counts the bytes subscribed to beyond those that `held` counts already.
    pub(super) fn subscribe(
        &self,
        caller: &Extensions,
        bytes: usize,
        held: &mut Option<Box<Held>>,
    ) -> Result<(), Refusal> {
        let counted = match held {
            Some(held) => held.grow(bytes),
            none => {
                let taken = self.subscribed.take(&principal(caller), bytes);
                taken.map(|it| *none = Some(Box::new(it)))
            }
        };
        counted.map_err(|over| self.refusal(over, "bytes of subscriptions"))
    }

    /// A place for one more call in the half that callers share fairly, counted for the caller.
    pub(super) fn call(&self, caller: &Extensions) -> Result<Held, Refusal> {
        let taken = self.calls.take(&principal(caller), 1);
        taken.map_err(|over| self.refusal(over, "calls"))
    }

    /// Whether the caller has read enough of its earlier answers.
    pub(super) fn reads(&self, caller: &Extensions) -> Result<(), Refusal> {
        if self.unread.load(Ordering::Relaxed) < self.answers_share {
            return Ok(());
        }
        let fits = self.answers.fits(&principal(caller), 1);
        fits.map_err(|over| self.refusal(over, "unread bytes of answers"))
    }

    /// Counts an answer until it is sent or its client is gone.
    pub(super) fn answer(&self, caller: &Extensions, text: Bytes) -> Bytes {
        if text.len() <= FREE {
            return text;
        }
        let unread = Arc::clone(&self.unread);
        unread.fetch_add(text.len(), Ordering::Relaxed);
        let _held = self.answers.owe(&principal(caller), text.len());
        Bytes::from_owner(Unread { text, unread, _held })
    }

    /// A place for one more session.
    pub(super) fn session(&self, caller: &Extensions) -> Result<Held, Refusal> {
        let taken = self.sessions.take(&principal(caller), 1);
        taken.map_err(|over| self.refusal(over, "sessions"))
    }

    /// A place for one more subscription of 2026-07-28.
    pub(super) fn listener(&self, caller: &Extensions) -> Result<Held, Refusal> {
        let taken = self.listeners.take(&principal(caller), 1);
        taken.map_err(|over| self.refusal(over, "subscriptions"))
    }

    pub(super) fn body<'a>(&'a self, caller: &'a Extensions) -> Meter<'a> {
        Meter { budgets: self, caller, held: None, counted: 0 }
    }

    /// A caller over its own share gets 429; over the total nobody is to blame.
    fn refusal(&self, over: Over, of: &str) -> Refusal {
        let (status, message) = match over {
            Over::Share if self.knows_callers => {
                let message = format!("You have too many {of} open; end some, or try later.");
                (StatusCode::TOO_MANY_REQUESTS, message)
            }
            Over::Share | Over::Total => {
                let message = format!("There are too many {of} open; try later.");
                (StatusCode::SERVICE_UNAVAILABLE, message)
            }
        };
        let error = ErrorObject::internal("overloaded", message);
        Refusal { error, ..Refusal::new(status, "") }
    }
}

/// An answer that the client has not read yet.
struct Unread {
    text: Bytes,
    unread: Arc<AtomicUsize>,
    _held: Held,
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.unread.fetch_sub(self.text.len(), Ordering::Relaxed);
    }
}

/// What a session has ever subscribed to. Unsubscribed URIs count until the session ends, but no
/// session counts for more than it can have at once.
#[derive(Default)]
pub(super) struct Subscribed(Mutex<Option<Box<Held>>>);

impl Subscribed {
    /// Counts a new subscription.
    pub(super) fn count(
        &self,
        budgets: &Budgets,
        caller: &Extensions,
        bytes: usize,
    ) -> Result<(), Refusal> {
        if bytes == 0 {
            return Ok(());
        }
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = trunkline_proto::subscribe::SUBSCRIBED;
        let left = left.saturating_sub(held.as_ref().map_or(0, |it| it.amount()));
        match bytes.min(left) {
            0 => Ok(()),
            bytes => budgets.subscribe(caller, bytes, &mut held),
        }
    }
}

/// Counts one body as it arrives.
pub(super) struct Meter<'a> {
    budgets: &'a Budgets,
    caller: &'a Extensions,
    held: Option<Held>,
    counted: usize,
}

impl Meter<'_> {
    /// Whether a body of that length can fit at all.
    pub(super) fn expect(&self, length: usize) -> Result<(), Refusal> {
        if length <= FREE {
            return Ok(());
        }
        let fits = self.budgets.bodies.fits(&principal(self.caller), length);
        fits.map_err(|over| self.refusal(over))
    }

    /// Counts what is held of it by now. `is_whole` if the body is complete.
    pub(super) fn count(&mut self, kept: usize, is_whole: bool) -> Result<(), Refusal> {
        let kept = kept.max(LEAST);
        if kept <= self.counted || (is_whole && kept <= FREE && self.held.is_none()) {
            return Ok(());
        }
        let more = kept - self.counted;
        let counted = match &mut self.held {
            Some(held) => held.grow(more),
            none => {
                let held = self.budgets.bodies.take(&principal(self.caller), more);
                held.map(|held| *none = Some(held))
            }
        };
        counted.map_err(|over| self.refusal(over))?;
        self.counted = kept;
        Ok(())
    }

    fn refusal(&self, over: Over) -> Refusal {
        self.budgets.refusal(over, "bytes of requests")
    }

    /// The counted bytes, for the caller to hold until the call is answered.
    pub(super) fn into_held(self) -> Option<Held> {
        self.held
    }
}

/// The principal that is charged. All unnamed callers share one.
pub(super) fn principal(caller: &Extensions) -> Arc<str> {
    static NOBODY: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(""));
    caller.get::<Principal>().map_or_else(|| Arc::clone(&NOBODY), |it| Arc::from(it.id()))
}

/// A complete body no longer than this is not counted.
const FREE: usize = 16 << 10;
/// What an incomplete body costs beyond its bytes.
const LEAST: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_with_unread_answers_is_refused_before_any_effect() {
        let limits = Limits::default().answers_bytes(200 << 10).answers_share(100 << 10);
        let budgets = Budgets::new(&limits, true);
        let [alice, bob, carol] = ["alice", "bob", "carol"].map(|name| {
            let mut caller = Extensions::new();
            caller.insert(Principal::new(name));
            caller
        });
        let status = |caller| budgets.reads(caller).err().map(|it| it.status.as_u16());
        let answer =
            |caller, kib: usize| budgets.answer(caller, Bytes::from(vec![b'x'; kib << 10]));
        let short: Vec<_> = (0..100).map(|_| answer(&alice, 16)).collect();
        assert_eq!(status(&alice), None, "short ones are not counted");
        let long = answer(&alice, 150);
        assert_eq!(long.len(), 150 << 10, "what is there is not lost");
        assert_eq!((status(&alice), status(&bob)), (Some(429), None));
        let other = answer(&bob, 50);
        assert_eq!((status(&bob), status(&carol)), (Some(503), Some(503)));
        drop((short, long, other));
        assert_eq!((status(&alice), budgets.unread.load(Ordering::Relaxed)), (None, 0));
    }
}
