//! The expiry of a credential → the end of the streams it opened.
//!
//! A call ends by itself, and so does its stream. A stream that waits for no answer would outlive the
//! token that opened it. It ends with the token, and a client with a new token reconnects.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use http::Extensions;
use tokio::time::{Instant, Sleep, sleep_until};
use trunkline_auth::Principal;
use trunkline_proto::Attached;

use crate::clock::now;

/// When the credential expires, if ever.
pub(super) struct Expiry(Option<Pin<Box<Sleep>>>);

impl Expiry {
    pub(super) fn never() -> Self {
        Self(None)
    }

    /// The expiry of the credential that came with a request.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let expires = extensions.get::<Principal>().and_then(|it| it.expires);
        Self::at(
            expires.and_then(|it| (now() + LEEWAY).checked_add(remaining(it, SystemTime::now()))),
        )
    }

    pub(super) fn of_caller(caller: &Attached) -> Self {
        caller.get().map_or_else(Self::never, Self::of)
    }

    /// Whether it expires now. Ready once.
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

/// The time that is left; zero, not negative, if the clock of the checker is behind ours.
fn remaining(expires: SystemTime, now: SystemTime) -> Duration {
    expires.duration_since(now).unwrap_or_default()
}

/// Clock skew: how long a credential is accepted after its expiry.
const LEEWAY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
