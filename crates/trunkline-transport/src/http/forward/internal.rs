//! The internal listener of a replica: what other replicas forward, and their pings.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::HeaderValue;
use http::{Extensions, Method, Request, Response, StatusCode};
use trunkline_auth::Principal;
use trunkline_proto::http::Refusal;
use trunkline_proto::server::EnvelopeCache;

use super::MOVED;
use super::caller_seal::FORWARDED;
use super::replay::Replays;
use crate::handler::Handler;
use crate::http::body::{HttpBody, RequestBody, read};
use crate::http::budgets::Budgets;
use crate::http::endpoint::Endpoint;
use crate::http::entry::{By, LetIn};
use crate::http::response::refuse;
use crate::http::serve::Answers;
use crate::http::shared_sessions::SharedSessions;
use crate::limits::Limits;

/// Answers requests that another replica has let in and forwarded: an [`Endpoint`], or whatever chooses
/// among several.
pub trait AnswersForwarded: Send + Sync + 'static {
    /// Answers a request whose caller the other replica has checked.
    fn answer_forwarded(
        &self,
        request: LetIn<RequestBody>,
        envelopes: &Mutex<EnvelopeCache>,
    ) -> impl Future<Output = Response<HttpBody>> + Send;
}

impl<H: Handler> AnswersForwarded for Endpoint<H> {
    fn answer_forwarded(
        &self,
        request: LetIn<RequestBody>,
        envelopes: &Mutex<EnvelopeCache>,
    ) -> impl Future<Output = Response<HttpBody>> + Send {
        self.answer_let_in(request, envelopes)
    }
}

/// Answers a ping of another replica: the sealed question → the sealed answer; none if the question is not
/// in order.
pub type Ping = Arc<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// Serves the internal listener of a replica. Nothing here is for clients: a request without a valid header
/// of another replica is refused.
pub struct Internal<A> {
    answers: Arc<A>,
    shared: Arc<SharedSessions>,
    ping: Ping,
    replays: Mutex<Replays>,
    /// The bodies of pings. Those of forwarded requests count where they are answered.
    budgets: Budgets,
}

impl<A: AnswersForwarded> Internal<A> {
    /// Hands forwarded requests to `answers` and pings to `ping`.
    pub fn new(answers: Arc<A>, shared: Arc<SharedSessions>, ping: Ping) -> Arc<Self> {
        let budgets = Budgets::new(&Limits::default(), false);
        Arc::new(Self { answers, shared, ping, replays: Mutex::default(), budgets })
    }

    /// The request with its caller, if another replica sent it, for the first time.
    fn let_in(&self, request: Request<RequestBody>) -> Result<LetIn<RequestBody>, Stranger> {
        let (mut head, body) = request.into_parts();
        let opened = self.shared.forward().seal.open(self.shared.replicas.me(), &head);
        let caller = opened.ok_or(Stranger::NotForUs)?;
        let mut replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        if !replays.is_new(&caller.from, caller.number) {
            return Err(Stranger::Again);
        }
        drop(replays);
        head.headers.remove(&FORWARDED);
        // Whatever a layer of this process has recorded is about the other replica, not about the caller.
        head.extensions.remove::<Principal>();
        if let Some(principal) = caller.principal {
            head.extensions.insert(principal);
        }
        Ok(LetIn { request: Request::from_parts(head, body), by: By::Replica })
    }

    async fn pinged(&self, request: Request<RequestBody>) -> Response<HttpBody> {
        let nobody = Extensions::new();
        let mut meter = self.budgets.body(&nobody);
        let question = read(request.into_body(), MAX_PING, PING_TIME, &mut meter).await;
        let answer = match question {
            Ok(question) => (self.ping)(question.bytes()),
            Err(refusal) => return refuse(refusal),
        };
        match answer {
            Some(answer) => Response::new(HttpBody::from(answer)),
            None => Stranger::Again.refuse(),
        }
    }
}

impl<A: AnswersForwarded> Answers for Internal<A> {
    async fn answer(
        &self,
        request: Request<RequestBody>,
        envelopes: &Mutex<EnvelopeCache>,
    ) -> Response<HttpBody> {
        if request.uri().path() == PING {
            return match *request.method() {
                Method::POST => Box::pin(self.pinged(request)).await,
                _ => refuse(Refusal::method("POST")),
            };
        }
        match self.let_in(request) {
            Ok(request) => self.answers.answer_forwarded(request, envelopes).await,
            Err(why) => why.refuse(),
        }
    }

    fn hang_up(&self) {
        // The public listener ends the streams of both.
    }

    fn end(&self) {}
}

/// Why a request is not let in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stranger {
    /// Its header is of none with our key, or for another replica: maybe the process that was here before.
    NotForUs,
    /// It has come before, or is no question of a replica.
    Again,
}

impl Stranger {
    fn refuse(self) -> Response<HttpBody> {
        let message = "This is the listener of replicas. The request comes from none with our key, is for \
                       another, or has come before.";
        let mut response = refuse(Refusal::new(StatusCode::UNAUTHORIZED, message));
        if self == Stranger::NotForUs {
            // The sender can tell that nothing was done.
            response.headers_mut().insert(MOVED, HeaderValue::from_static("unknown"));
        }
        response
    }
}

/// The path of pings.
pub(super) const PING: &str = "/ping";
/// The longest question of a ping.
const MAX_PING: usize = 8 << 10;
/// How long it may take to arrive.
const PING_TIME: Duration = Duration::from_secs(1);
