//! One call through an instance: who made it, and what the server asks or says meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, oneshot};
use trunkline_auth::tag::random_name;
use trunkline_proto::input_required::missing_capability;
use trunkline_proto::{CallKey, Utterance};
use trunkline_transport::voice::{Request, Voice};
use trunkline_wire::era::carry;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::model::{ElicitParams, InputRequest};
use trunkline_wire::revision::{Era, Revision};

use crate::caller::Caller;

/// A call that is open at a server. It is attached to the request, so that what the server asks
/// while it works on it comes back here.
pub(crate) struct Line {
    pub(crate) caller: Arc<Caller>,
    /// The conversation with the caller, and the call in it.
    pub(crate) voice: Voice,
    pub(crate) key: CallKey,
    pub(crate) revision: Revision,
    /// Whether what is said about the call itself is heard by whoever follows it.
    pub(crate) listens: bool,
    /// What waits to be passed on.
    waiting: Mutex<Waiting>,
    pub(crate) news: Notify,
}

#[derive(Default)]
struct Waiting {
    questions: VecDeque<Question>,
    said: VecDeque<Utterance>,
}

/// A question of a server that its caller has to answer with the next request.
pub(crate) struct Question {
    pub(crate) request: InputRequest,
    pub(crate) tell: oneshot::Sender<Outcome>,
}

impl Line {
    pub(crate) fn new(
        caller: Arc<Caller>,
        voice: Voice,
        key: CallKey,
        revision: Revision,
        listens: bool,
    ) -> Arc<Self> {
        let (waiting, news) = (Mutex::default(), Notify::new());
        Arc::new(Self { caller, voice, key, revision, listens, waiting, news })
    }

    /// Has the caller asked. In the old era that is a request; in the new one the call ends with the
    /// question, and the answer comes with the next.
    pub(crate) async fn ask(self: Arc<Self>, method: &'static str, params: Object) -> Outcome {
        let question = InputRequest::read(method, Some(&params.to_json())).map_err(|error| {
            ErrorObject::invalid_params(format!("The question cannot be read: {error}."))
        })?;
        let mut question = question;
        if let (InputRequest::Elicit(ElicitParams::Url(url)), Era::Stateful) =
            (&mut question, self.revision.era())
        {
            // The new era has no names for these; the old one wants one.
            url.elicitation_id.get_or_insert_with(random_name);
        }
        let question = carry::question(question, self.revision).map_err(|unfit| {
            ErrorObject::invalid_params(format!("The caller cannot be asked this. {unfit}"))
        })?;
        match self.revision.era() {
            Era::Stateful => {
                let asked = question.params().and_then(|it| Object::parse(it.get()).ok());
                let mut request = Request::new(question.method(), asked.unwrap_or_default());
                request.during = Some(self.key);
                request.timing = Some(crate::park::THINKING);
                self.voice.ask(request).await.map_err(refused)
            }
            Era::Stateless => {
                // An instance that many share was told that everything can be asked.
                if let Some(missing) = missing_capability(&question, self.caller.able()) {
                    return Err(missing);
                }
                let (tell, told) = oneshot::channel();
                {
                    let mut waiting = self.lock();
                    if waiting.questions.len() >= QUESTIONS {
                        let message = format!("A call may ask {QUESTIONS} questions at once.");
                        return Err(ErrorObject::internal("too_many_questions", message));
                    }
                    waiting.questions.push_back(Question { request: question, tell });
                }
                self.news.notify_one();
                told.await.unwrap_or_else(|_| {
                    Err(ErrorObject::internal("no_answer", "The caller did not come back."))
                })
            }
        }
    }

    /// Has something said to the caller, unless too much waits already.
    pub(crate) fn say(&self, what: Utterance) {
        let mut waiting = self.lock();
        if waiting.said.len() < SAYINGS {
            waiting.said.push_back(what);
            drop(waiting);
            self.news.notify_one();
        }
    }

    pub(crate) fn next_said(&self) -> Option<Utterance> {
        self.lock().said.pop_front()
    }

    pub(crate) fn take_questions(&self) -> Vec<Question> {
        self.lock().questions.drain(..).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a server is told when its question was not answered.
fn refused(error: trunkline_proto::CallError) -> ErrorObject {
    use trunkline_proto::CallError;
    match error {
        CallError::Peer(error) | CallError::Refused(error) => error,
        error => ErrorObject::internal("no_answer", error.to_string()),
    }
}

/// What is attached to a request at a server: the line it is made for.
pub(crate) struct OnLine(pub(crate) Arc<Line>);

/// An answer that stands for none, where nobody can be asked.
pub(crate) fn nobody(why: &str) -> Outcome {
    Err(ErrorObject::internal("nobody_to_ask", why))
}

/// The roots of whoever has none.
pub(crate) fn no_roots() -> Json {
    Json::parse(r#"{"roots":[]}"#).expect("this is JSON")
}

const QUESTIONS: usize = 64;
const SAYINGS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_is_asked_what_they_did_not_say_they_answer() {
        let caller = Arc::new(Caller::named("bob"));
        let line = Line::new(caller, Voice::unheard(), CallKey(1), Revision::LATEST, false);
        let told = Arc::clone(&line).ask("roots/list", Object::default()).await;
        assert_eq!(told.unwrap_err().code, trunkline_wire::code::MISSING_CLIENT_CAPABILITY);
        assert!(line.take_questions().is_empty());
    }
}
