//! Routes the questions and notifications of one server to the caller they belong to.

mod roots;
mod task;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;
use trunkline_proto::{Attached, Call, Change, HandlerEvent, PeerNotification};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::{Answer, Handler};
use trunkline_transport::witness::Witness;
use trunkline_wire::jsonrpc::{Id, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::LogMessage;

use crate::caller::Caller;
use crate::catalog::plan::Questions;
use crate::question;
use crate::traffic::Link;
use crate::upstream_call::{UpstreamCallContext, nobody};
use crate::watcher::Watcher;
use roots::Roots;

/// Routes the questions and notifications of one connection.
pub(crate) struct QuestionRouter {
    this: Weak<Self>,
    id: u64,
    server: Arc<str>,
    /// What the server may ask.
    questions: Questions,
    watcher: Weak<dyn Watcher>,
    calls: Mutex<OpenCalls>,
    /// Notified when a call ends, or when one more question is ambiguous.
    ended: Arc<Notify>,
    /// Who is notified when a URL elicitation completes, by its id.
    visits: Mutex<VecDeque<(String, ConversationHandle)>>,
}

/// The candidates for a message that names no call.
#[derive(Default)]
struct OpenCalls {
    open: VecDeque<Arc<UpstreamCallContext>>,
    /// Callers that cancelled a call, and until when the server may still work on it.
    left: Vec<(Arc<Caller>, Instant)>,
    served: Served,
    roots: Roots,
    /// How many ambiguous questions wait to be routed.
    ambiguous: usize,
}

/// The addressee of a message that names no call.
enum Addressee {
    Call(Arc<UpstreamCallContext>),
    /// One of several callers with calls in flight.
    OneOf,
    Nobody(&'static str),
}

/// Whose calls an instance has served. The server may still refer to calls that were answered.
#[derive(Default)]
enum Served {
    #[default]
    Nobody,
    One(Arc<Caller>),
    // Invariant: this is final.
    Several,
}

impl Served {
    fn note(&mut self, caller: &Arc<Caller>) {
        match self {
            Self::Nobody => *self = Self::One(Arc::clone(caller)),
            Self::One(it) if !it.shares_past(caller) => *self = Self::Several,
            Self::One(_) | Self::Several => {}
        }
    }
}

impl OpenCalls {
    /// The call that a message without an address belongs to: the newest open call whose caller can hear it.
    /// Only if every call that this instance ever served is one caller's, and no other caller has one open or
    /// cancelled one just now.
    fn only_call(&mut self) -> Option<Arc<UpstreamCallContext>> {
        if matches!(self.served, Served::Several) {
            return None;
        }
        let heard = self.open.iter().rfind(|it| !it.is_parked());
        let last = heard.or(self.open.back()).cloned()?;
        self.are_all_of(&last.caller).then_some(last)
    }

    /// The addressee of a question.
    fn addressee(&mut self) -> Addressee {
        match self.only_call() {
            Some(context) => Addressee::Call(context),
            None if self.open.is_empty() => {
                Addressee::Nobody("No call is open that the question could belong to.")
            }
            None if matches!(self.served, Served::Several) => Addressee::Nobody(SHARED),
            None => Addressee::OneOf,
        }
    }

    /// Whether only this caller can be meant.
    fn are_all_of(&mut self, caller: &Caller) -> bool {
        let now = Instant::now();
        self.left.retain(|(_, until)| *until > now);
        self.open.iter().all(|it| it.caller.is(caller))
            && self.left.iter().all(|(it, _)| it.is(caller))
    }

    fn leave(&mut self, caller: &Arc<Caller>) {
        let now = Instant::now();
        self.left.retain(|(it, until)| *until > now && !it.is(caller));
        self.left.push((Arc::clone(caller), now + AFTERMATH));
    }
}

impl QuestionRouter {
    pub(crate) fn new(
        id: u64,
        server: Arc<str>,
        questions: Questions,
        watcher: Weak<dyn Watcher>,
    ) -> Arc<Self> {
        let (calls, visits) = (Mutex::default(), Mutex::default());
        Arc::new_cyclic(|this| {
            let this = Weak::clone(this);
            Self { this, id, server, questions, watcher, calls, ended: Arc::default(), visits }
        })
    }

    /// Registers a call as open for as long as the guard lives.
    pub(crate) fn open_call(self: &Arc<Self>, context: Arc<UpstreamCallContext>) -> OpenCall {
        let mut calls = self.lock();
        calls.served.note(&context.caller);
        calls.open.push_back(Arc::clone(&context));
        calls.roots.opened(&context);
        drop(calls);
        OpenCall { router: Arc::clone(self), context, is_over: false }
    }

    /// Remembers whom to notify when a URL elicitation completes. The oldest are evicted.
    pub(crate) fn will_complete(&self, id: String, handle: &ConversationHandle) {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        if visits.len() >= VISITS {
            visits.pop_front();
        }
        visits.push_back((id, handle.clone()));
    }

    fn completed(&self, id: &str) {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the conversations that were given this id are notified.
        visits.retain(|(it, handle)| {
            if it == id {
                // A full queue drops it: that client has more urgent messages to read.
                let _ = handle.try_changed(Change::ElicitationComplete(it.clone()));
            }
            it != id
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addressee of a question, if it is certain: the stream it came on names the call, or this instance
    /// has served only one caller.
    fn addressee_of(&self, call: &Call) -> Addressee {
        match call.attached.get_shared() {
            Some(context) => Addressee::Call(context),
            None => self.lock().addressee(),
        }
    }

    /// From now on callers do not share instances, where the catalog leaves that open.
    fn unroutable_question(&self) {
        if let Some(watcher) = self.watcher.upgrade() {
            watcher.unroutable_question(&self.server);
        }
    }

    /// Waits until a question's addressee is certain: a call that ends meanwhile has not asked it. Gives up if
    /// every open call may have asked, because then none of them ends.
    async fn await_addressee(&self) -> Result<Arc<UpstreamCallContext>, &'static str> {
        let _ambiguous = Ambiguous::new(self);
        let began = Instant::now();
        loop {
            let ended = Arc::clone(&self.ended).notified_owned();
            {
                let mut calls = self.lock();
                match calls.addressee() {
                    Addressee::Call(context) => return Ok(context),
                    Addressee::Nobody(why) => return Err(why),
                    Addressee::OneOf if calls.ambiguous >= calls.open.len() => return Err(SHARED),
                    Addressee::OneOf => {}
                }
            }
            if began.elapsed() > CLEAR {
                return Err(SHARED);
            }
            // A cancelled call stops being a candidate after a while.
            let _ = timeout(AGAIN, ended).await;
        }
    }

    async fn ask(
        &self,
        context: Arc<UpstreamCallContext>,
        asked: (Id, ConversationHandle),
        method: Method,
        params: Object,
    ) -> Outcome {
        let (id, handle) = asked;
        if let (Some(recording), Some(link)) = (context.recording(), handle.witness::<Link>()) {
            link.claim_question(&id, recording);
        }
        if let Some(id) = params.get("elicitationId").and_then(|it| it.to::<String>().ok()) {
            self.will_complete(id, &context.handle);
        }
        context.ask(method, params).await
    }

    /// A log message that belongs to no listening call. It goes to the caller if only one can be meant, and
    /// otherwise to the operator's log.
    fn logged(&self, message: LogMessage) {
        let only = {
            let mut calls = self.lock();
            // With several open calls, it could be reported in the wrong one.
            if calls.open.len() == 1 { calls.only_call() } else { None }
        };
        match (only, self.watcher.upgrade()) {
            (Some(context), _) => context.say(HandlerEvent::Log(message)),
            (None, Some(watcher)) => watcher.logged(&self.server, self.id, &message),
            (None, None) => {}
        }
    }
}

impl Handler for QuestionRouter {
    fn call(&self, mut call: Call, handle: &ConversationHandle) -> Answer {
        let method = call.method.method;
        if let Err(refused) =
            question::admit(&self.server, self.questions, method, &mut call.params)
        {
            return Answer::Now(Err(refused));
        }
        let call = match task::route(call, self.id, &self.watcher) {
            Ok(answer) => return answer,
            Err(call) => call,
        };
        if method == Method::RootsList && call.attached.get::<UpstreamCallContext>().is_none() {
            return self.roots();
        }
        let addressee = self.addressee_of(&call);
        if matches!(addressee, Addressee::OneOf | Addressee::Nobody(SHARED)) {
            self.unroutable_question();
        }
        let asked = (call.id, handle.clone());
        let mut params = call.params;
        if let Some(meta) = call.meta {
            params.set("_meta", meta);
        }
        let this = self.this.upgrade();
        Answer::later(async move {
            let Some(this) = this else { return nobody("The server is being stopped.") };
            let context = match addressee {
                Addressee::Call(context) => Ok(context),
                Addressee::OneOf => this.await_addressee().await,
                Addressee::Nobody(why) => Err(why),
            };
            match context {
                Ok(context) => this.ask(context, asked, method, params).await,
                Err(why) => nobody(why),
            }
        })
    }

    fn witness(&self, _: Option<&ConversationHandle>, _: &Attached) -> Option<Arc<dyn Witness>> {
        self.watcher.upgrade()?.witness(&self.server, self.id)
    }

    fn heard(&self, heard: PeerNotification, _: &ConversationHandle) {
        if heard.method == Method::Message {
            // A message on a request's stream belongs to that request, which does not listen.
            if heard.ticket.is_none() {
                heard.params.to().into_iter().for_each(|it| self.logged(it));
            }
            return;
        }
        if heard.method == Method::ElicitationComplete {
            let id = heard.params.get("elicitationId").and_then(|it| it.to::<String>().ok());
            return id.iter().for_each(|it| self.completed(it));
        }
        if let Some(watcher) = self.watcher.upgrade() {
            watcher.changed(&self.server, self.id, heard);
        }
    }
}

/// Guard of an open call.
pub(crate) struct OpenCall {
    router: Arc<QuestionRouter>,
    context: Arc<UpstreamCallContext>,
    is_over: bool,
}

impl OpenCall {
    pub(crate) fn context(&self) -> &Arc<UpstreamCallContext> {
        &self.context
    }

    /// The call was answered: the server does nothing more for it.
    pub(crate) fn over(&mut self) {
        self.is_over = true;
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut calls = self.router.lock();
        if let Some(at) = calls.open.iter().position(|it| Arc::ptr_eq(it, &self.context)) {
            calls.open.remove(at);
        }
        if !self.is_over {
            calls.leave(&self.context.caller);
        }
        let is_waited_for = calls.ambiguous > 0;
        drop(calls);
        if is_waited_for {
            self.router.ended.notify_waiters();
        }
    }
}

/// Guard of an ambiguous question.
struct Ambiguous<'a>(&'a QuestionRouter);

impl<'a> Ambiguous<'a> {
    fn new(router: &'a QuestionRouter) -> Self {
        router.lock().ambiguous += 1;
        router.ended.notify_waiters();
        Self(router)
    }
}

impl Drop for Ambiguous<'_> {
    fn drop(&mut self) {
        self.0.lock().ambiguous -= 1;
    }
}

/// Why an ambiguous question reaches nobody.
const SHARED: &str = "Several callers have used this instance, and the question does not say which of \
                      them it is for. Write `sharing: isolated` for this server to have an instance for each.";
/// How long a server may still ask on behalf of a cancelled call.
const AFTERMATH: Duration = Duration::from_secs(10);
/// How long an ambiguous question waits, and how often it is checked.
const CLEAR: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(1);
/// The number of URL elicitations one instance can track.
const VISITS: usize = 256;

#[cfg(test)]
mod tests {
    use crate::upstream_call::Origin;
    use trunkline_wire::jsonrpc::Object;
    use trunkline_wire::revision::Revision;

    use super::*;

    #[test]
    fn messages_of_a_cancelled_call_reach_no_other_caller() {
        let (alice, bob) = (Arc::new(Caller::named("alice")), Caller::named("bob"));
        let mut calls = OpenCalls::default();
        assert!(calls.are_all_of(&bob));
        calls.leave(&alice);
        calls.leave(&alice);
        assert_eq!(calls.left.len(), 1, "one caller is noted once");
        assert!(!calls.are_all_of(&bob), "it may be about the work of alice");
        assert!(calls.are_all_of(&alice));
        calls.left[0].1 = Instant::now();
        assert!(calls.are_all_of(&bob), "it is long ago");
        assert!(calls.left.is_empty());
    }

    /// An anonymous caller, with or without a session.
    fn anonymous(conversation: u64, has_session: bool) -> Arc<Caller> {
        let (name, id, peer) = (None, Arc::default(), Arc::default());
        let bearer = Default::default();
        Arc::new(Caller { name, bearer, id, issuer: None, conversation, has_session, peer })
    }

    fn context(caller: &Arc<Caller>) -> Arc<UpstreamCallContext> {
        let key = trunkline_proto::CallKey(1);
        let (caller, handle) = (Arc::clone(caller), ConversationHandle::unheard());
        let origin = Origin { caller, handle, key, revision: Revision::LATEST };
        UpstreamCallContext::new(origin, false, Arc::default(), None, None)
    }

    /// Whether the last of these callers is the addressee after the others were answered.
    fn is_meant(callers: &[&Arc<Caller>]) -> bool {
        let router =
            QuestionRouter::new(1, Arc::from("time"), Questions::default(), Weak::<Nothing>::new());
        let mut last = None;
        for caller in callers {
            let mut open = router.open_call(context(caller));
            open.over();
            last = Some(open);
        }
        let addressee = router.lock().only_call().is_some();
        drop(last);
        assert!(router.lock().only_call().is_none(), "nobody is meant when no call is open");
        addressee
    }

    #[test]
    fn a_call_that_was_answered_is_not_forgotten() {
        let (alice, bob) = (Arc::new(Caller::named("alice")), Arc::new(Caller::named("bob")));
        assert!(is_meant(&[&alice, &alice]));
        assert!(!is_meant(&[&alice, &bob]), "it may be about the work of alice");
        assert!(!is_meant(&[&alice, &bob, &alice]), "it stays in doubt for ever");
        let (one, other) = (anonymous(1, true), anonymous(2, true));
        assert!(is_meant(&[&one, &one]) && is_meant(&[&one, &other]), "they are one principal");
        let (three, four) = (anonymous(3, false), anonymous(4, false));
        assert!(
            is_meant(&[&three, &four]) && is_meant(&[&one, &three]),
            "with or without sessions"
        );
        assert!(!is_meant(&[&alice, &three]));
    }

    #[test]
    fn of_the_calls_of_one_caller_the_last_awaited_is_meant() {
        let alice = Arc::new(Caller::named("alice"));
        let router =
            QuestionRouter::new(1, Arc::from("time"), Questions::default(), Weak::<Nothing>::new());
        let calls: Vec<_> = (0..4).map(|_| context(&alice)).collect();
        let mut open: Vec<_> = calls.iter().cloned().map(|it| router.open_call(it)).collect();
        let is_meant = |at: usize| {
            let addressee = router.lock().only_call();
            addressee.is_some_and(|it| Arc::ptr_eq(&it, &calls[at]))
        };
        assert!(is_meant(3));
        drop(open.remove(0));
        assert!(is_meant(3), "they stay in order");
        calls[3].park(true);
        assert!(is_meant(2), "she has left the last one to find answers");
        calls[1..3].iter().for_each(|it| it.park(true));
        assert!(is_meant(3), "she has left them all");
        calls[1].park(false);
        assert!(is_meant(1));
    }

    struct Nothing;

    impl Watcher for Nothing {
        fn changed(&self, _: &str, _: u64, _: PeerNotification) {}

        fn question(&self, _: u64, _: String, _: Method, _: Object) -> Answer {
            Answer::Now(nobody("There is nobody."))
        }

        fn unroutable_question(&self, _: &str) {}

        fn asks_for_roots(&self, _: &str) {}

        fn logged(&self, _: &str, _: u64, _: &LogMessage) {}

        fn stderr_line(&self, _: &str, _: u64, _: &str) {}

        fn known_era(&self, _: &str) -> Option<trunkline_wire::revision::Era> {
            None
        }

        fn login(&self, _: &str) -> Option<crate::watcher::Found> {
            None
        }

        fn account(
            &self,
            _: &crate::catalog::plan::ServerPlan,
            _: Option<&str>,
        ) -> Option<Arc<crate::accounts::Account>> {
            None
        }
    }
}
