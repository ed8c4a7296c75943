//! A recorded conversation → what the client said, said again to another server.
//!
//! A message waits for the answers that stood before it in the recording, and over HTTP, where other streams may be slower,
//! for a while also for the news. What the server asks is answered as it was recorded. What the server makes up (states,
//! tasks, cursors) is replaced by what the other server makes up.

use std::collections::{HashMap, VecDeque};

use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Message, Object, Outcome, Params};

use crate::calls::{Answer, answer_tree, params_tree};
use crate::line::Party;
use crate::mapping::Mapping;
use crate::normal::{Zone, same};
use crate::recording::{Conversation, Left, Said};
use crate::redact::MASK;
use crate::tree::Tree;

/// Plays the client of one conversation.
#[derive(Debug)]
pub struct ClientPlayer {
    turns: Vec<Turn>,
    next: usize,
    /// The streams that the client is to close.
    leaves: VecDeque<Leave>,
    /// The turn of each request in flight.
    owed: HashMap<Id, usize>,
    questions: Vec<Question>,
    mapping: Mapping,
    /// Whether each request has a stream of its own.
    has_streams: bool,
    live: Conversation,
    /// How many notifications and questions the recorded server sent.
    news: News,
    /// And this one so far.
    told: News,
    /// Whether this server sends less.
    is_missing_some: bool,
    /// How many ids were made up here.
    fresh: u64,
    again: Vec<usize>,
    /// Whether the client has yet to close its side.
    closes: bool,
}

/// A request or notification of the client.
#[derive(Debug)]
struct Turn {
    message: Message,
    stream: Option<u32>,
    after: After,
    answer: Option<Answer>,
    is_answered: bool,
    /// Whether it was answered when the client had closed its side.
    is_late: bool,
}

/// A response that the client closes before its end.
#[derive(Debug)]
struct Leave {
    /// The turn that it belongs to.
    of: usize,
    /// How many turns come before.
    before: usize,
    after: After,
}

/// What the server had said when the client did something.
#[derive(Debug, Default)]
struct After {
    /// The turns whose answers stood between what the client did before and this.
    answers: Vec<usize>,
    /// How much news stood before it.
    news: usize,
}

/// How many notifications and questions a server sent.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    all: usize,
    /// How many of them are no progress: how much of that a call makes until it is cancelled is chance.
    steady: usize,
}

impl News {
    fn note(&mut self, by: Party, message: &Message) {
        let is_progress = match message {
            Message::Notification { method, .. } => *method == "notifications/progress",
            Message::Request { .. } => false,
            Message::Response { .. } => return,
        };
        if by == Party::Server {
            self.all += 1;
            self.steady += usize::from(!is_progress);
        }
    }
}

#[derive(Debug)]
struct Question {
    id: Id,
    method: String,
    params: Tree,
    answer: Option<Outcome>,
    is_used: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Send this. Answers to it come on the stream of that number.
    Send(Message, u32),
    /// Send this after a pause: a task was done when the recording asked, and is not yet.
    SendLater(Message, u32),
    /// Close the response to the request of that stream, unread.
    Leave(u32),
    /// Close the stream to the server: the client did so before the answers that are missing.
    Close,
    /// Wait for the server.
    Wait,
    /// Wait for its news, but not for long: it may have none. Then [it is missing](ClientPlayer::misses_news).
    Listen,
    /// Everything was said and answered.
    Done,
}

impl ClientPlayer {
    /// Plays the client of `conversation`; over HTTP, each request has a stream of its own.
    pub fn new(conversation: &Conversation, has_streams: bool) -> Self {
        let (mut turns, mut questions) = (Vec::<Turn>::new(), Vec::<Question>::new());
        let (mut answered, mut news) = (Vec::new(), News::default());
        let (mut leaves, mut left) = (VecDeque::new(), conversation.left.iter().peekable());
        for (number, said) in conversation.said.iter().enumerate() {
            while let Some(it) = left.next_if(|it| has_streams && it.after <= number) {
                let of = turns.iter().rposition(|turn| turn.stream == Some(it.stream));
                let after = After { answers: answered.clone(), news: news.steady };
                leaves.extend(of.map(|of| Leave { of, before: turns.len(), after }));
            }
            news.note(said.by, &said.message);
            match (said.by, &said.message) {
                (Party::Client, Message::Response { id, outcome }) => {
                    let asked = questions.iter_mut().rev().find(|it| Some(&it.id) == id.as_ref());
                    if let Some(question) = asked {
                        question.answer = Some(outcome.clone());
                    }
                }
                (Party::Client, message) => turns.push(Turn {
                    message: message.clone(),
                    stream: said.stream,
                    after: After { answers: std::mem::take(&mut answered), news: news.steady },
                    answer: None,
                    is_answered: false,
                    is_late: false,
                }),
                (Party::Server, Message::Response { id: Some(id), outcome }) => {
                    let asked = |it: &Turn| id_of(&it.message) == Some(id) && it.answer.is_none();
                    let is_on = |it: &Turn| it.stream.is_none() || it.stream == said.stream;
                    let at = turns.iter().rposition(|it| asked(it) && is_on(it));
                    if let Some(at) = at.or_else(|| turns.iter().rposition(asked)) {
                        turns[at].answer = Some(answer_tree(outcome));
                        turns[at].is_late = conversation.ended.is_some_and(|it| number >= it);
                        answered.push(at);
                    }
                }
                (Party::Server, Message::Request { id, method, params }) => {
                    questions.push(Question {
                        id: id.clone(),
                        method: method.to_string(),
                        params: params_tree(params),
                        answer: None,
                        is_used: false,
                    });
                }
                (Party::Server, _) => {}
            }
        }
        // A stream that broke, and whose rest came on another, is not broken again.
        leaves.retain(|it: &Leave| turns[it.of].answer.is_none());
        for turn in &mut turns {
            // How often a client asked for a task that was not done yet is chance.
            turn.is_answered = is_waiting(turn);
        }
        Self {
            turns,
            next: 0,
            leaves,
            owed: HashMap::new(),
            questions,
            mapping: Mapping::default(),
            has_streams,
            live: Conversation::default(),
            news,
            told: News::default(),
            is_missing_some: false,
            fresh: 0,
            again: Vec::new(),
            closes: conversation.ended.is_some(),
        }
    }

    /// How many messages hold a masked secret, which the server gets as `***`.
    pub fn masked(&self) -> usize {
        self.turns.iter().filter(|it| it.message.to_text().contains(MASK)).count()
    }

    /// What to do next. Call it until it says to wait.
    pub fn next(&mut self, now: u64) -> Next {
        if let Some(turn) = self.again.pop() {
            let id = self.fresh_id();
            let message = self.prepared(turn, Some(id));
            return Next::SendLater(message.clone(), self.send(turn, message, now));
        }
        while self.turns.get(self.next).is_some_and(is_waiting) {
            self.next += 1;
        }
        if let Some(leave) = self.leaves.front().filter(|it| it.before <= self.next) {
            if let Some(wait) = self.waits(&leave.after) {
                return wait;
            }
            return self.leave();
        }
        let Some(turn) = self.turns.get(self.next) else {
            let mut open = self.turns.iter().filter(|it| it.answer.is_some() && !it.is_answered);
            let Some(first) = open.next() else { return Next::Done };
            if self.closes && first.is_late && open.all(|it| it.is_late) {
                self.closes = false;
                return Next::Close;
            }
            return Next::Wait;
        };
        // An answer that stood before a turn that was left out was awaited by the turn before it.
        if let Some(wait) = self.waits(&turn.after) {
            return wait;
        }
        // Clients of 2026-07-28 may have used the same id at once, each on a stream of its own.
        let is_taken = id_of(&turn.message).is_some_and(|it| self.owed.contains_key(it));
        let new_id = is_taken.then(|| self.fresh_id());
        let message = self.prepared(self.next, new_id);
        self.next += 1;
        let turn = self.next - 1;
        Next::Send(message.clone(), self.send(turn, message, now))
    }

    /// What there is to wait for before the client goes on.
    fn waits(&self, after: &After) -> Option<Next> {
        if !after.answers.iter().all(|it| self.turns[*it].is_answered) {
            return Some(Next::Wait);
        }
        let is_early = self.has_streams && self.told.steady < after.news;
        (is_early && !self.is_missing_some).then_some(Next::Listen)
    }

    fn leave(&mut self) -> Next {
        let Some(leave) = self.leaves.pop_front() else { return Next::Wait };
        let stream = stream_of(leave.of);
        self.live.left.push(Left { stream, after: self.live.said.len() });
        Next::Leave(stream)
    }

    /// The server was listened to for a while: it does not tell all that the recorded one told.
    pub fn misses_news(&mut self) {
        self.is_missing_some = true;
    }

    fn fresh_id(&mut self) -> Id {
        self.fresh += 1;
        Id::Text(format!("replay-{}", self.fresh).into())
    }

    /// A message of the server; over HTTP with the number of its stream. Returns the answer to a question.
    pub fn receive(&mut self, message: Message, stream: Option<u32>, now: u64) -> Option<Message> {
        let reply = match &message {
            Message::Response { id: Some(id), outcome } => {
                if !self.take_answer(id, outcome) {
                    return None;
                }
                None
            }
            Message::Request { id, method, params } => {
                Some(self.answer(id.clone(), method, &params_tree(params)))
            }
            _ => None,
        };
        self.note(Party::Server, message, stream, now);
        if let Some(reply) = &reply {
            self.note(Party::Client, reply.clone(), None, now);
        }
        reply
    }

    /// What still has no answer, for people.
    pub fn unanswered(&self) -> Vec<&Message> {
        let open = self.turns.iter().filter(|it| it.answer.is_some() && !it.is_answered);
        open.map(|it| &it.message).collect()
    }

    /// Whether the recorded server told and asked more than this one has so far.
    pub fn is_missing_news(&self) -> bool {
        self.told.all < self.news.all || self.told.steady < self.news.steady
    }

    /// What was said this time.
    pub fn into_live(self) -> Conversation {
        self.live
    }

    /// Notes the answer to a request; false if the request is made again.
    fn take_answer(&mut self, id: &Id, outcome: &Outcome) -> bool {
        let Some(at) = self.owed.remove(id) else { return true };
        let live = answer_tree(outcome);
        let turn = &mut self.turns[at];
        if is_task_request(&turn.message)
            && matches!(&live, Ok(result) if !is_settled(result))
            && matches!(&turn.answer, Some(Ok(result)) if is_settled(result))
        {
            self.again.push(at);
            // As if it had not been asked.
            let is_it = |it: &Said| it.by == Party::Client && id_of(&it.message) == Some(id);
            self.live.said.retain(|it| !is_it(it));
            return false;
        }
        turn.is_answered = true;
        if let (Some(Ok(recorded)), Ok(live)) = (&turn.answer, &live) {
            self.mapping.learn(recorded, live);
        }
        true
    }

    /// Answers a question as it was recorded: the one that is the same, else the next of that method.
    fn answer(&mut self, id: Id, method: &str, params: &Tree) -> Message {
        let fits = |it: &Question| !it.is_used && it.method == method;
        let exact = |it: &Question| fits(it) && same(&it.params, params, Zone::Protocol);
        let at = self.questions.iter().position(exact);
        let at = at.or_else(|| self.questions.iter().position(fits));
        let answer = at.and_then(|at| {
            self.questions[at].is_used = true;
            self.questions[at].answer.clone()
        });
        match answer {
            Some(outcome) => Message::Response { id: Some(id), outcome },
            None if method == "ping" => Message::result(id, Json::empty_object()),
            None => {
                let why = format!("The recording has no answer to this `{method}`.");
                Message::error(id, ErrorObject::new(code::INTERNAL_ERROR, why))
            }
        }
    }

    /// The message of a turn with the values of this run.
    fn prepared(&self, turn: usize, new_id: Option<Id>) -> Message {
        let mapped = |params: &Params| match params {
            Params::Object(_) => {
                let mut tree = params_tree(params);
                self.mapping.apply(&mut tree);
                let object = Object::parse(&tree.to_text());
                object.map_or_else(|_| params.clone(), Params::Object)
            }
            other => other.clone(),
        };
        match &self.turns[turn].message {
            Message::Request { id, method, params } => Message::Request {
                id: new_id.unwrap_or_else(|| id.clone()),
                method: method.clone(),
                params: mapped(params),
            },
            Message::Notification { method, params } => {
                Message::Notification { method: method.clone(), params: mapped(params) }
            }
            other => other.clone(),
        }
    }

    fn send(&mut self, turn: usize, message: Message, now: u64) -> u32 {
        if let Some(id) = id_of(&message) {
            self.owed.insert(id.clone(), turn);
        }
        let stream = stream_of(turn);
        self.note(Party::Client, message, Some(stream), now);
        stream
    }

    fn note(&mut self, by: Party, message: Message, stream: Option<u32>, t: u64) {
        self.told.note(by, &message);
        let stream = stream.filter(|_| self.has_streams);
        self.live.said.push(Said { by, t, stream, status: None, message });
    }
}

/// The number of the stream of a turn.
fn stream_of(turn: usize) -> u32 {
    u32::try_from(turn + 1).unwrap_or(u32::MAX)
}

fn id_of(message: &Message) -> Option<&Id> {
    match message {
        Message::Request { id, .. } => Some(id),
        _ => None,
    }
}

fn is_task_request(message: &Message) -> bool {
    matches!(message, Message::Request { method, .. } if *method == "tasks/get")
}

/// Whether it asked for a task, and the task was not done.
fn is_waiting(turn: &Turn) -> bool {
    is_task_request(&turn.message)
        && matches!(&turn.answer, Some(Ok(result)) if !is_settled(result))
}

/// Whether a task needs no more time: it is done, or waits for an answer.
fn is_settled(task: &Tree) -> bool {
    !matches!(task.get("status").and_then(Tree::as_text), Some("working" | "submitted"))
}
