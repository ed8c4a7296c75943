//! Work that outlives the call it was begun for.
//!
//! A call may be cancelled at any time, but a refresh token or a code may be single-use: if the
//! response were dropped with the call, the login would be lost. So a request that uses one runs
//! until its response is stored. A page that is shown to a person stays open as long as any call
//! waits for it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use super::error::AuthError;
use super::oauth::{OAuth, State};
use crate::fetch::Pending;

impl OAuth {
    /// Runs `work` to its end, even if the caller is dropped.
    pub(super) async fn outliving<T, F>(&self, work: impl FnOnce(Self) -> F) -> Result<T, AuthError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, AuthError>> + Send + 'static,
    {
        // Missing parts of the set-up are reported in this order.
        self.store()?;
        let slot = Arc::new(Mutex::new(None));
        let (result, work) = (Arc::clone(&slot), work(self.twin()));
        let working = Working::begin(&self.state);
        let work = async move {
            // Also if it is aborted.
            let _working = working;
            let done = work.await;
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        };
        self.fetcher()?.detach(Box::pin(work)).await;
        let done = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        done.unwrap_or_else(|| {
            Err(AuthError::Unreachable("The login was broken off. Try again.".to_owned()))
        })
    }

    /// Counts the caller among the calls that wait for a login, as long as this lives.
    pub(super) fn waits(&self) -> Waits<'_> {
        self.state().waiting += 1;
        Waits(self)
    }

    /// Whether no call waits for a login any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.state().waiting == 0
    }

    /// The outcome of a page; `None` as soon as no call waits for it.
    pub(super) async fn unless_abandoned<T>(&self, mut visit: Pending<'static, T>) -> Option<T> {
        poll_fn(|context| {
            {
                let mut state = self.state();
                if state.waiting == 0 {
                    return Poll::Ready(None);
                }
                // Logins are serialized: there is no other watcher.
                state.watch = Some(context.waker().clone());
            }
            Pin::new(&mut visit).poll(context).map(Some)
        })
        .await
    }

    pub(super) fn abandoned(&self) -> AuthError {
        let server = crate::url::shown(&self.server);
        AuthError::NeedsLogin(format!(
            "Nobody waits for the login to `{server}` any more. Log in to it and try again."
        ))
    }
}

/// Waits until no work is in flight.
pub(super) fn settled(state: Arc<Mutex<State>>) -> Pending<'static, ()> {
    Box::pin(poll_fn(move |context| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.working == 0 {
            return Poll::Ready(());
        }
        state.settling.push(context.waker().clone());
        Poll::Pending
    }))
}

/// Work that outlives its caller.
struct Working(Arc<Mutex<State>>);

impl Working {
    fn begin(state: &Arc<Mutex<State>>) -> Self {
        state.lock().unwrap_or_else(PoisonError::into_inner).working += 1;
        Self(Arc::clone(state))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.working -= 1;
        let waiting = if state.working == 0 { std::mem::take(&mut state.settling) } else { vec![] };
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// A call that waits for a login.
pub(super) struct Waits<'a>(&'a OAuth);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting -= 1;
        let watch = if state.waiting == 0 { state.watch.take() } else { None };
        drop(state);
        if let Some(watch) = watch {
            watch.wake();
        }
    }
}
