//! Sessions in which nothing is in flight → sessions that another replica can go on with.

use std::sync::atomic::Ordering;

use crate::handler::Handler;
use crate::http::endpoint::Endpoint;

impl<H: Handler> Endpoint<H> {
    /// Releases the sessions in which nothing is in flight, of those that are `owned`: the caller hands each
    /// over to another replica, or takes it back. Requests that arrive meanwhile wait for the next owner.
    /// Sessions of 2024-11-05 are not released: they end with their stream.
    pub fn release_quiet_sessions(&self, owned: impl Fn(&str) -> bool) -> Vec<String> {
        let all = self.sessions.all().into_iter();
        let quiet = all.filter(|it| owned(&it.id) && it.release());
        quiet.map(|it| it.id.as_ref().to_owned()).collect()
    }

    /// Serves a released session again: it could not be handed over.
    pub fn take_back(&self, id: &str) {
        if let Some(session) = self.sessions.get(id) {
            session.take_back();
        }
    }

    /// Whether a request is in flight, at whichever listener it came in. Subscriptions and the general
    /// streams of sessions are none.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::SeqCst) > 0 || self.sessions.all().iter().any(|it| it.is_busy())
    }
}
