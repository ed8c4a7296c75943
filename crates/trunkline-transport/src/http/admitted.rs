//! A request that was let in → a counted place until it is answered.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Extensions, HeaderMap, request};
use trunkline_proto::Attached;
use trunkline_proto::http::Refusal;

use super::endpoint::{Endpoint, attached};
use super::post::overloaded;
use crate::budget::Held;
use crate::handler::Handler;

impl<H: Handler> Endpoint<H> {
    /// Counts a request that is being answered, unless there are too many. Below half of the limit
    /// nobody delays others, so the share of each caller is not checked.
    pub(super) fn admit(&self, caller: &Extensions) -> Result<Admitted, Refusal> {
        let (mut admitted, before) = Admitted::new(&self.busy, None);
        let calls = self.settings.limits.calls;
        if before >= calls {
            return Err(overloaded());
        }
        self.budgets.reads(caller)?;
        if before >= calls / 2 {
            admitted._held[0] = Some(self.budgets.call(caller)?);
        }
        Ok(admitted)
    }
}

/// The headers of the request, attached to its call.
#[derive(Clone)]
pub struct RequestHeaders(pub Arc<HeaderMap>);

impl fmt::Debug for RequestHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestHeaders").field(&self.0.len()).finish()
    }
}

/// Counts as a request in progress until it is dropped.
pub(super) struct Admitted {
    counter: Arc<AtomicUsize>,
    /// What layers in front of the endpoint know about the request.
    pub(super) attached: Attached,
    /// The place of a subscription or call, and the bytes of the request.
    _held: [Option<Held>; 2],
    /// The bytes of the subscribed URIs.
    pub(super) subscribed: Option<Box<Held>>,
}

impl Admitted {
    /// Counts one more; also returns how many there were before.
    pub(super) fn new(counter: &Arc<AtomicUsize>, place: Option<Held>) -> (Self, usize) {
        let before = counter.fetch_add(1, Ordering::Relaxed);
        let attached = Attached::default();
        (
            Self { counter: Arc::clone(counter), attached, _held: [place, None], subscribed: None },
            before,
        )
    }

    /// Adds what the handler learns about the request, and what the request holds.
    pub(super) fn with(
        mut self,
        head: &request::Parts,
        body: Option<Held>,
        takes_headers: bool,
    ) -> Self {
        self.attached = match takes_headers {
            true => {
                let mut extensions = head.extensions.clone();
                extensions.insert(RequestHeaders(Arc::new(head.headers.clone())));
                Attached::new(extensions)
            }
            false => attached(&head.extensions),
        };
        self._held[1] = body;
        self
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use trunkline_auth::Principal;
    use trunkline_proto::server::Config;
    use trunkline_wire::model::Implementation;

    use super::*;
    use crate::handler::Nobody;
    use crate::http::{Budgets, Settings};
    use crate::limits::Limits;

    #[test]
    fn no_caller_has_all_the_calls_that_can_be_made() {
        let limits = Limits::default().calls(8).calls_share(2);
        let core = Arc::new(Config::new(Implementation::new("travel", "1.0")));
        let mut settings = Settings::new(limits.clone());
        let budgets = Budgets::new(&limits, true);
        settings.budgets = Some(budgets);
        let endpoint = Endpoint::new(core, Arc::new(Nobody), settings);
        let status = |name: &str, open: &mut Vec<Admitted>| {
            let mut caller = Extensions::new();
            caller.insert(Principal::new(name));
            match endpoint.admit(&caller) {
                Ok(admitted) => {
                    open.push(admitted);
                    200
                }
                Err(refusal) => refusal.status.as_u16(),
            }
        };
        let mut open = Vec::new();
        let alice: Vec<_> = (0..8).map(|_| status("alice", &mut open)).collect();
        assert_eq!(alice, [200, 200, 200, 200, 200, 200, 429, 429], "half, and her share");
        let bob: Vec<_> = (0..3).map(|_| status("bob", &mut open)).collect();
        assert_eq!(bob, [200, 200, 429], "the rest is for others");
        open.clear();
        assert_eq!(status("alice", &mut open), 200, "what is over does not count");
    }
}
