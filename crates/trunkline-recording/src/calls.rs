//! A conversation → what the client did, each with what the server said because of it.

use trunkline_wire::jsonrpc::{Id, Message, Outcome, Params};
use trunkline_wire::model::meta;

use crate::line::Party;
use crate::recording::{Conversation, Recording, Said};
use crate::tree::Tree;

/// A request or a notification of the client, and everything that the server said because of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// Its id, if it is a request.
    pub id: Option<Id>,
    /// Its method.
    pub method: String,
    /// Its parameters; an empty object if there are none.
    pub params: Tree,
    /// What the server said because of it, in order.
    pub steps: Vec<Step>,
    /// Whether the client cancelled it.
    pub is_cancelled: bool,
    /// Which conversation it belongs to.
    pub conversation: usize,
    /// The HTTP request that it came with.
    stream: Option<u32>,
}

/// Something that the server said.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it is.
    pub saying: Saying,
    /// Whether it did not come with the answer: after it, or on the general stream of a session.
    pub is_aside: bool,
    /// The number of the last act before it: its own, or a later one.
    pub after: usize,
    /// Whether the client had closed its side by then.
    pub is_late: bool,
}

/// What a server says.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Saying {
    /// A notification.
    Tell { method: String, params: Tree },
    /// A question, and what the client answered. `settled` is how many steps stood before the answer.
    Ask { id: Id, method: String, params: Tree, answer: Option<Answer>, settled: Option<usize> },
    /// The answer, and the HTTP status that it had.
    Answer { answer: Answer, status: Option<u16> },
}

/// A result or an error.
pub type Answer = Result<Tree, Tree>;

impl Step {
    /// Whether it is no part of the act it came after: which act that is may be chance.
    pub fn is_unasked(&self) -> bool {
        match &self.saying {
            Saying::Tell { .. } => self.is_aside || is_about_everybody(&self.saying),
            Saying::Ask { method, .. } => {
                self.is_aside || matches!(method.as_str(), "roots/list" | "ping")
            }
            Saying::Answer { .. } => false,
        }
    }
}

impl Act {
    fn new(id: Option<Id>, method: &str, params: &Params, stream: Option<u32>) -> Self {
        let (method, params) = (method.to_owned(), params_tree(params));
        let (steps, is_cancelled) = (Vec::new(), false);
        Self { id, method, params, steps, is_cancelled, conversation: 0, stream }
    }

    /// The answer, if there was one.
    pub fn answer(&self) -> Option<&Answer> {
        self.steps.iter().find_map(|it| match &it.saying {
            Saying::Answer { answer, .. } => Some(answer),
            _ => None,
        })
    }

    /// What it is about: the tool, prompt, resource or task.
    pub fn subject(&self) -> Option<&str> {
        Self::subject_of(&self.params)
    }

    /// What a request with these parameters is about.
    pub fn subject_of(params: &Tree) -> Option<&str> {
        let names = ["name", "uri", "taskId"];
        names.iter().find_map(|it| params.get(it)?.as_text())
    }

    /// Its method and subject, for people.
    pub fn title(&self) -> String {
        match self.subject() {
            Some(subject) => format!("{} {subject}", self.method),
            None => self.method.clone(),
        }
    }

    /// Whether it is the request of this id, and its answer has not come yet.
    fn owes(&self, id: Option<&Id>) -> bool {
        self.id.is_some() && self.id.as_ref() == id && self.answer().is_none()
    }

    fn is_open(&self) -> bool {
        self.id.is_some() && self.answer().is_none() && !self.is_cancelled
    }

    fn push(&mut self, saying: Saying, is_aside: bool, after: usize, is_late: bool) {
        let is_aside = is_aside || self.id.is_none() || self.answer().is_some();
        self.steps.push(Step { saying, is_aside, after, is_late });
    }
}

/// The acts of all conversations, in order.
pub fn all(recording: &Recording) -> Vec<Act> {
    let mut all = Vec::new();
    for (number, conversation) in recording.conversations.iter().enumerate() {
        let before = all.len();
        all.extend(acts(conversation).into_iter().map(|mut act| {
            act.conversation = number;
            act.steps.iter_mut().for_each(|it| it.after += before);
            act
        }));
    }
    all
}

/// The acts of one conversation, in order.
pub fn acts(conversation: &Conversation) -> Vec<Act> {
    let mut acts: Vec<Act> = Vec::new();
    for (at, said) in conversation.said.iter().enumerate() {
        let is_late = conversation.ended.is_some_and(|ended| at >= ended);
        match (said.by, &said.message) {
            (Party::Client, Message::Request { id, method, params }) => {
                acts.push(Act::new(Some(id.clone()), method, params, said.stream));
            }
            (Party::Client, Message::Notification { method, params }) => {
                if *method == "notifications/cancelled" {
                    cancel(&mut acts, params);
                }
                acts.push(Act::new(None, method, params, said.stream));
            }
            (Party::Client, Message::Response { id, outcome }) => {
                answer_question(&mut acts, id.as_ref(), outcome);
            }
            (Party::Server, Message::Response { id, outcome }) => {
                // Clients of 2026-07-28 may use the same id at once, each on a stream of its own.
                let is_on = |it: &Act| it.stream.is_none() || it.stream == said.stream;
                let all = || acts.iter().enumerate().rev().filter(|(_, it)| it.owes(id.as_ref()));
                let at = all().find(|(_, it)| is_on(it)).or_else(|| all().next());
                let at = at.map(|(at, _)| at);
                let last = acts.len().saturating_sub(1);
                if let Some(act) = at.map(|at| &mut acts[at]) {
                    let answer = answer_tree(outcome);
                    act.push(Saying::Answer { answer, status: said.status }, false, last, is_late);
                }
            }
            (Party::Server, _) => hear(&mut acts, said, is_late),
        }
    }
    for act in acts.iter_mut().filter(|it| it.id.is_some() && it.answer().is_none()) {
        act.is_cancelled |= conversation.left.iter().any(|it| Some(it.stream) == act.stream);
    }
    acts
}

/// The parameters as a tree.
pub fn params_tree(params: &Params) -> Tree {
    match params {
        Params::Absent => Tree::empty(),
        Params::Object(object) => Tree::of(&object.to_json()),
        Params::Array(items) => Tree::List(items.iter().map(Tree::of).collect()),
    }
}

/// An outcome as a tree.
pub fn answer_tree(outcome: &Outcome) -> Answer {
    match outcome {
        Ok(result) => Ok(Tree::of(result)),
        Err(error) => Err(Tree::of(&trunkline_wire::json::Json::of(error))),
    }
}

fn cancel(acts: &mut [Act], params: &Params) {
    let id = params.get("requestId").and_then(|it| Id::from_json(it.get()));
    let act = acts.iter_mut().rev().find(|it| it.id.is_some() && it.id == id);
    if let Some(act) = act.filter(|it| it.answer().is_none()) {
        act.is_cancelled = true;
    }
}

fn answer_question(acts: &mut [Act], answered: Option<&Id>, outcome: &Outcome) {
    for act in acts.iter_mut().rev() {
        let count = act.steps.len();
        for step in act.steps.iter_mut().rev() {
            if let Saying::Ask { id, answer, settled, .. } = &mut step.saying
                && Some(&*id) == answered
                && answer.is_none()
            {
                *answer = Some(answer_tree(outcome));
                *settled = Some(count);
                return;
            }
        }
    }
}

/// Finds the act that a notification or question belongs to.
fn hear(acts: &mut [Act], said: &Said, is_late: bool) {
    let (saying, params) = match &said.message {
        Message::Request { id, method, params } => {
            let (method, params) = (method.to_string(), params_tree(params));
            let (id, asked) = (id.clone(), params.clone());
            let saying = Saying::Ask { id, method, params: asked, answer: None, settled: None };
            (saying, params)
        }
        Message::Notification { method, params } => {
            let (method, params) = (method.to_string(), params_tree(params));
            (Saying::Tell { method, params: params.clone() }, params)
        }
        Message::Response { .. } => return,
    };
    // Before the client has said anything there is nobody to play it to.
    let Some((at, is_aside)) = owner(acts, said, &saying, &params) else { return };
    let last = acts.len() - 1;
    acts[at].push(saying, is_aside, last, is_late);
}

/// The act that it belongs to, and whether it came beside that act's answer.
fn owner(acts: &[Act], said: &Said, saying: &Saying, params: &Tree) -> Option<(usize, bool)> {
    let last = acts.len().checked_sub(1)?;
    if let Some(token) = params.get("progressToken") {
        let has_it = |it: &Act| it.params.at(&["_meta", meta::PROGRESS_TOKEN]) == Some(token);
        if let Some(at) = acts.iter().rposition(has_it) {
            return Some((at, false));
        }
    }
    if let Some(id) = params.at(&["_meta", meta::SUBSCRIPTION_ID]) {
        let has_it = |it: &Act| {
            it.id.as_ref().is_some_and(|own| {
                id.to_text() == own.to_json().get() || id.as_text() == Some(own.to_json().get())
            })
        };
        if let Some(at) = acts.iter().rposition(has_it) {
            return Some((at, false));
        }
    }
    // The server ends a subscription (2026-07-28 §Subscriptions).
    if let Some(id) = params.get("requestId") {
        let has_it =
            |it: &Act| it.id.as_ref().is_some_and(|own| own.to_json().get() == id.to_text());
        if let Some(at) = acts.iter().rposition(has_it) {
            return Some((at, false));
        }
    }
    if let Some(stream) = said.stream {
        let has_it = |it: &Act| it.stream == Some(stream) && it.id.is_some();
        return Some(acts.iter().rposition(has_it).map_or((last, true), |at| (at, false)));
    }
    let open = acts.iter().rposition(|it| it.is_open() && it.method != "subscriptions/listen");
    Some(match open {
        Some(at) => (at, is_about_everybody(saying)),
        None => (last, true),
    })
}

/// Whether it is no part of a call, whenever it comes.
fn is_about_everybody(saying: &Saying) -> bool {
    let Saying::Tell { method, .. } = saying else { return false };
    method.ends_with("/list_changed")
        || method == "notifications/resources/updated"
        || method == "notifications/tasks/status"
}
