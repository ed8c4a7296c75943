//! Until when whoever was let in may listen → the end of what it listens to.
//!
//! A call ends by itself, and so does its stream. A stream that nobody waits for an answer on would
//! go on for ever, and with it what a token that is long over gets to hear: it ends with the token,
//! and a client that has a new one comes back.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use http::Extensions;
use tokio::time::{Instant, Sleep, sleep_until};
use trunkline_auth::Principal;
use trunkline_proto::Attached;

use crate::clock::now;

/// When somebody's time is over, if it ever is.
pub(super) struct Expiry(Option<Pin<Box<Sleep>>>);

impl Expiry {
    pub(super) fn never() -> Self {
        Self(None)
    }

    /// The end of the credential that came with a request.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let expires = extensions.get::<Principal>().and_then(|it| it.expires);
        Self::at(expires.and_then(|it| (now() + LEEWAY).checked_add(left(it, SystemTime::now()))))
    }

    pub(super) fn of_caller(caller: &Attached) -> Self {
        caller.get().map_or_else(Self::never, Self::of)
    }

    /// Whether it is over now. It says so once.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(timer) = &mut self.0 else { return false };
        if timer.as_mut().poll(cx) == Poll::Pending {
            return false;
        }
        self.0 = None;
        true
    }

    fn at(when: Option<std::time::Instant>) -> Self {
        Self(when.map(|it| Box::pin(sleep_until(Instant::from_std(it)))))
    }
}

/// Whoever checked the credential may go by a clock that is behind ours: then nothing is left, but
/// not less.
fn left(expires: SystemTime, now: SystemTime) -> Duration {
    expires.duration_since(now).unwrap_or_default()
}

/// For how long a credential is still good after its time, for clocks differ.
const LEEWAY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
