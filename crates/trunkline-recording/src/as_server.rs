//! A recorded server → the same answers for another client.
//!
//! A request is matched with a recorded one by its method and parameters. Then the client gets what the server said
//! because of it: notifications, questions and the answer, in the recorded order.

use std::collections::HashMap;
use std::sync::Arc;

use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Message, MethodName, Object, Params};
use trunkline_wire::model::meta;

use crate::calls::{self, Act, Answer, Saying, Step, answer_tree, params_tree};
use crate::compare::first_difference;
use crate::normal::{Zone, asked, asked_by, same};
use crate::recording::Recording;
use crate::tree::Tree;

/// Plays the server for one client.
#[derive(Clone, Debug)]
pub struct ServerPlayer {
    acts: Arc<[Act]>,
    /// What each act asks for: with what its client could be asked, and without.
    asks: Arc<[(Tree, Tree)]>,
    is_used: Vec<bool>,
    /// The conversation that this client seems to have.
    conversation: Option<usize>,
    running: Vec<Running>,
    asked: u64,
    remarks: Vec<String>,
    /// Whether the client has closed its side.
    has_ended: bool,
}

/// An act that is being played.
#[derive(Clone, Debug)]
struct Running {
    act: usize,
    step: usize,
    /// The id of the client's request.
    request: Option<Id>,
    token: Option<Tree>,
    /// The questions by their number among the steps, each with its id and whether it was answered.
    questions: HashMap<usize, (Id, bool)>,
}

/// A message for the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The message.
    pub message: Message,
    /// The request whose stream it belongs on; none for the general stream of a session.
    pub request: Option<Id>,
    /// Whether that stream ends with it.
    pub is_last: bool,
    /// The HTTP status that the answer had, if it was recorded.
    pub status: Option<u16>,
}

impl ServerPlayer {
    /// Plays the server of a recording.
    pub fn new(recording: &Recording) -> Self {
        let acts: Arc<[Act]> = calls::all(recording).into();
        let asks = acts.iter().map(|it| (asked_by(&it.params), asked(&it.params))).collect();
        let (is_used, running) = (vec![false; acts.len()], Vec::new());
        let remarks = Vec::new();
        let has_ended = false;
        Self { acts, asks, is_used, conversation: None, running, asked: 0, remarks, has_ended }
    }

    /// The client has closed its side: how the server ends its subscriptions.
    pub fn ended(&mut self) -> Vec<Output> {
        let mut out = Vec::new();
        self.has_ended = true;
        self.go_on(&mut out);
        out
    }

    /// What is worth telling the user since the last call: requests that were never recorded, other answers.
    pub fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// A message of the client → what the server says now.
    pub fn receive(&mut self, message: &Message) -> Vec<Output> {
        let mut out = Vec::new();
        match message {
            Message::Request { id, method, params } => {
                // A client that begins anew gets everything once more.
                if *method == "server/discover" {
                    self.is_used.fill(false);
                    self.conversation = None;
                }
                self.request(id, method, &params_tree(params), &mut out);
            }
            Message::Notification { method, params } => {
                let params = params_tree(params);
                if *method == "notifications/cancelled" {
                    self.cancel(&params);
                }
                if let Some(act) = self.find(false, method, &params) {
                    self.start(act, None, None, &mut out);
                }
            }
            Message::Response { id, outcome } => {
                if let Some(id) = id {
                    self.answered(id, &answer_tree(outcome), &mut out);
                }
            }
        }
        self.go_on(&mut out);
        out
    }

    /// Plays on what has waited for something that the client has now done.
    fn go_on(&mut self, out: &mut Vec<Output>) {
        let acts = Arc::clone(&self.acts);
        while let Some(at) = self
            .running
            .iter()
            .position(|it| it.step < acts[it.act].steps.len() && self.may_go_on(it, &acts[it.act]))
        {
            let running = self.running.remove(at);
            self.play(running, out);
        }
    }

    /// Whether the next step of an act may be played. How a subscription ended waits for the client's end.
    fn may_go_on(&self, running: &Running, act: &Act) -> bool {
        let is_late = act.steps.get(running.step).is_some_and(|it| it.is_late);
        let is_held = is_late && !self.has_ended && act.method == LISTEN;
        !is_held && running.may_go_on(act, &self.is_used)
    }

    fn request(&mut self, id: &Id, method: &str, params: &Tree, out: &mut Vec<Output>) {
        if let Some(act) = self.find(true, method, params) {
            let token = params.at(&["_meta", meta::PROGRESS_TOKEN]).cloned();
            return self.start(act, Some(id.clone()), token, out);
        }
        let message = match method {
            "ping" => Message::result(id.clone(), Json::empty_object()),
            _ => {
                let error = self.explain(method, params);
                self.remarks.push(error.message.clone());
                Message::error(id.clone(), error)
            }
        };
        out.push(Output { message, request: Some(id.clone()), is_last: true, status: None });
    }

    /// The recorded act that this is: exactly, for any client, or but for what differs in every run; of the conversation
    /// that this client seems to have, else of any; the next that was not played yet, else the last.
    fn find(&self, is_request: bool, method: &str, params: &Tree) -> Option<usize> {
        let is_it = |it: &Act| it.method == method && it.id.is_some() == is_request;
        let (by, ask) = (asked_by(params), asked(params));
        let fits = |at: usize, rank: usize| match rank {
            0 => same(&self.asks[at].0, &by, Zone::Data),
            1 => same(&self.asks[at].1, &ask, Zone::Data),
            _ => same(&self.asks[at].1, &ask, Zone::Protocol),
        };
        for (is_own, rank) in [(true, 0), (true, 1), (true, 2), (false, 0), (false, 1), (false, 2)]
        {
            let is_here = |it: &Act| !is_own || Some(it.conversation) == self.conversation;
            let all = || {
                let all = self.acts.iter().enumerate().filter(|(_, it)| is_it(it) && is_here(it));
                all.map(|(at, _)| at).filter(|at| fits(*at, rank))
            };
            let found = all().find(|at| !self.is_used[*at]).or_else(|| all().next_back());
            if found.is_some() {
                return found;
            }
        }
        // The handshake tells who the client is; whoever it is, there is but one recording. A server offers its own
        // revision to a client that asks for another (2025-11-25 §Lifecycle).
        let revision = |params: &Tree| params.get("protocolVersion").cloned();
        let is_handshake = matches!(method, "initialize" | "server/discover");
        let all = || (0..self.acts.len()).filter(|at| is_handshake && is_it(&self.acts[*at]));
        let is_same = |at: &usize| revision(&self.acts[*at].params) == revision(params);
        all().find(is_same).or_else(|| all().next())
    }

    fn start(
        &mut self,
        act: usize,
        request: Option<Id>,
        token: Option<Tree>,
        out: &mut Vec<Output>,
    ) {
        self.is_used[act] = true;
        if request.is_some() {
            self.conversation = Some(self.acts[act].conversation);
        }
        let running = Running { act, step: 0, request, token, questions: HashMap::new() };
        self.play(running, out);
    }

    /// Plays an act until it ends or waits for the client.
    fn play(&mut self, mut running: Running, out: &mut Vec<Output>) {
        let acts = Arc::clone(&self.acts);
        let act = &acts[running.act];
        while let Some(step) = act.steps.get(running.step) {
            if !self.may_go_on(&running, act) {
                self.running.push(running);
                return;
            }
            let message = self.say(step, act, &mut running);
            running.step += 1;
            let Some(message) = message else { continue };
            let (is_last, status) = match &step.saying {
                Saying::Answer { status, .. } => (true, *status),
                _ => (false, None),
            };
            let request = running.request.clone().filter(|_| !step.is_aside);
            out.push(Output { message, request, is_last, status });
        }
        // The answer to a question may still come, and is compared then.
        if running.questions.values().any(|(_, is_answered)| !is_answered) {
            self.running.push(running);
        }
    }

    /// The message of a step with the ids and tokens of this client; none if the client did not ask for it.
    fn say(&mut self, step: &Step, act: &Act, running: &mut Running) -> Option<Message> {
        match &step.saying {
            Saying::Answer { answer, .. } => {
                let id = running.request.clone()?;
                Some(match answer {
                    Ok(result) => Message::result(id, result.to_json()),
                    Err(error) => Message::error(id, error.to_json().to().ok()?),
                })
            }
            Saying::Tell { method, params } => {
                let mut params = params.clone();
                running.localize(act, &mut params)?;
                let (method, params) = (MethodName::from(method.as_str()), object(&params));
                Some(Message::Notification { method, params })
            }
            Saying::Ask { id, method, params, .. } => {
                let id = self.question_id(id);
                running.questions.insert(running.step, (id.clone(), false));
                let (method, params) = (MethodName::from(method.as_str()), object(params));
                Some(Message::Request { id, method, params })
            }
        }
    }

    /// The recorded id, unless a question with it is open.
    fn question_id(&mut self, recorded: &Id) -> Id {
        let mut open = self.running.iter().flat_map(|it| it.questions.values());
        if !open.any(|(id, is_answered)| id == recorded && !is_answered) {
            return recorded.clone();
        }
        self.asked += 1;
        Id::Text(format!("replay-{}", self.asked).into())
    }

    /// The client has answered a question.
    fn answered(&mut self, answered: &Id, answer: &Answer, out: &mut Vec<Output>) {
        let asked = |it: &Running| it.questions.values().any(|(id, done)| id == answered && !done);
        let Some(at) = self.running.iter().position(asked) else { return };
        let mut running = self.running.remove(at);
        let acts = Arc::clone(&self.acts);
        let act = &acts[running.act];
        for (step, (id, done)) in &mut running.questions {
            if id != answered {
                continue;
            }
            *done = true;
            if let Some(Saying::Ask { method, answer: Some(recorded), .. }) =
                act.steps.get(*step).map(|it| &it.saying)
                && let Some((path, recorded, now)) = answers_differ(recorded, answer)
            {
                self.remarks.push(format!(
                    "The client answers `{method}` otherwise: `{path}` was {recorded} and is {now}."
                ));
            }
        }
        self.play(running, out);
    }

    fn cancel(&mut self, params: &Tree) {
        let id = params.get("requestId").and_then(|it| Id::from_json(&it.to_text()));
        self.running.retain(|it| it.request.is_none() || it.request != id);
    }

    /// Why a request has no answer.
    fn explain(&self, method: &str, params: &Tree) -> ErrorObject {
        let subject = Act::subject_of(params).map(|it| format!(" {it}")).unwrap_or_default();
        let all = || self.acts.iter().filter(|it| it.method == method && it.id.is_some());
        if all().next().is_none() {
            let why = format!("The recording has no `{method}`.");
            return ErrorObject::new(code::METHOD_NOT_FOUND, why);
        }
        let why = format!("The recording has no `{method}{subject}` with these parameters");
        let asks = asked(params);
        let near = all().filter(|it| it.subject() == Act::subject_of(params));
        let near = near.filter_map(|it| first_difference(&asked(&it.params), &asks)).next();
        let why = match near {
            Some((path, recorded, now)) => format!("{why}: `{path}` was {recorded} and is {now}."),
            None => format!("{why}."),
        };
        ErrorObject::new(code::INVALID_PARAMS, why)
    }
}

impl Running {
    /// Whether the client has answered every question that was answered before the next step. What a subscription
    /// tells also waits for what the client did before: it is the client's doing, or a coincidence.
    fn may_go_on(&self, act: &Act, is_used: &[bool]) -> bool {
        let next = act.steps.get(self.step);
        let is_due = next.is_none_or(|it| it.after == self.act || is_used[it.after]);
        (is_due || act.method != LISTEN)
            && act.steps.iter().enumerate().take(self.step).all(|(at, step)| match &step.saying {
                Saying::Ask { settled: Some(settled), .. } if *settled <= self.step => {
                    self.questions.get(&at).is_none_or(|(_, is_answered)| *is_answered)
                }
                _ => true,
            })
    }

    /// Puts the client's own ids and tokens into a notification; `None` if the client wants no progress.
    fn localize(&self, act: &Act, params: &mut Tree) -> Option<()> {
        let recorded = act.params.at(&["_meta", meta::PROGRESS_TOKEN]);
        if let Some(token) = params.get_mut("progressToken")
            && Some(&*token) == recorded
        {
            *token = self.token.clone()?;
        }
        if let Some(id) = params.get_mut("requestId")
            && act.id.as_ref().is_some_and(|own| own.to_json().get() == id.to_text())
            && let Some(request) = &self.request
        {
            *id = Tree::of(&request.to_json());
        }
        if let Some(id) = params.get_mut("_meta").and_then(|it| it.get_mut(meta::SUBSCRIPTION_ID))
            && let Some(request) = &self.request
        {
            *id = Tree::of(&request.to_json());
        }
        Some(())
    }
}

fn answers_differ(recorded: &Answer, now: &Answer) -> Option<(String, String, String)> {
    match (recorded, now) {
        (Ok(recorded), Ok(now)) | (Err(recorded), Err(now)) => first_difference(recorded, now),
        (Ok(recorded), Err(now)) | (Err(recorded), Ok(now)) => {
            Some(("".to_owned(), recorded.to_text(), now.to_text()))
        }
    }
}

fn object(params: &Tree) -> Params {
    match params {
        Tree::Object(members) if members.is_empty() => Params::Absent,
        _ => Object::parse(&params.to_text()).map_or(Params::Absent, Params::Object),
    }
}

const LISTEN: &str = "subscriptions/listen";
