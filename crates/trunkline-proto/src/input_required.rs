//! The rounds that replaced requests of the server in 2026-07-28: the client's open [`Round`], and
//! the [`Journal`] that lets a server's handler run again and find the answers it was given.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method::Method;
use trunkline_wire::model::{ClientCapabilities, ElicitParams, InputRequest, InputRequired};
use trunkline_wire::revision::Revision;

/// Questions that a call came back with, while they are being answered.
#[derive(Debug)]
pub struct Round {
    state: Option<String>,
    missing: Vec<String>,
    answers: Object,
}

impl Round {
    /// A round, and the questions to answer.
    pub fn open(required: InputRequired) -> (Self, Vec<(String, InputRequest)>) {
        let questions: Vec<_> = required.requests.into_iter().collect();
        let missing = questions.iter().map(|(name, _)| name.clone()).collect();
        (Self { state: required.state, missing, answers: Object::default() }, questions)
    }

    /// Notes an answer. Returns whether it was the last one missing.
    #[must_use]
    pub fn answer(&mut self, name: &str, answer: Json) -> bool {
        let before = self.missing.len();
        self.missing.retain(|it| it != name);
        if self.missing.len() < before {
            self.answers.set(name.to_owned(), answer);
        }
        before > 0 && self.missing.is_empty()
    }

    /// The parameters of the retry: the original ones, the answers, and the state byte for byte.
    pub fn into_params(self, mut params: Object) -> Object {
        if !self.answers.is_empty() {
            params.set("inputResponses", self.answers.to_json());
        }
        if let Some(state) = self.state {
            params.set("requestState", Json::string(&state));
        }
        params
    }
}

/// What a handler has done and learnt so far in one logical call. It travels with the client,
/// sealed, between the rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// Questions that are out, by key: the rendered question.
    asked: BTreeMap<String, Json>,
    /// Answers that came, by key, each with the rendered question it was given to.
    answers: BTreeMap<String, (Json, Json)>,
    /// Results of effects that must happen once.
    once: BTreeMap<String, Json>,
    /// How far progress has been reported.
    progress: Option<f64>,
    /// How many log messages have been sent.
    logs: u64,
    /// How many rounds there have been.
    rounds: u32,
    /// Answers that came without any state, by key.
    #[serde(skip)]
    offered: BTreeMap<String, Json>,
}

impl Journal {
    /// Takes in what the client sent along with its retry. Answers to questions that were not
    /// asked are ignored, as the specification wants.
    pub fn take_answers(&mut self, responses: Object) {
        for (key, answer) in responses.iter() {
            if let Some(question) = self.asked.remove(key) {
                self.answers.insert(key.to_owned(), (question, answer.clone()));
            }
        }
    }

    /// Takes in answers of a client that sent no state along: it says that it knows what will be
    /// asked. Nothing was promised to it, so there is no question to hold them against.
    pub fn offer(&mut self, responses: Object) {
        let offers = responses.iter().map(|(key, answer)| (key.to_owned(), answer.clone()));
        self.offered.extend(offers);
    }

    /// Lets an answer that was offered count as one to `question`. Only for a key that a client
    /// can know: one that the handler's author chose.
    pub fn take_offer(&mut self, key: &str, question: &Json) {
        if let Some(offered) = self.offered.remove(key) {
            self.answers.insert(key.to_owned(), (question.clone(), offered));
        }
    }

    /// The answer to `question`, if it was given to exactly that question.
    pub fn answer(&self, key: &str, question: &Json) -> Option<&Json> {
        self.answers.get(key).filter(|(asked, _)| asked == question).map(|(_, answer)| answer)
    }

    /// Notes that a question goes out.
    pub fn ask(&mut self, key: &str, question: Json) {
        self.answers.remove(key);
        self.asked.insert(key.to_owned(), question);
    }

    /// The result of an effect that already happened.
    pub fn done(&self, key: &str) -> Option<&Json> {
        self.once.get(key)
    }

    /// Notes the result of an effect.
    pub fn note(&mut self, key: &str, result: Json) {
        self.once.insert(key.to_owned(), result);
    }

    /// Whether `progress` has not been reported in an earlier round. Notes it.
    #[must_use]
    pub fn is_new_progress(&mut self, progress: f64) -> bool {
        let new = self.progress.is_none_or(|reached| progress > reached);
        if new {
            self.progress = Some(progress);
        }
        new
    }

    /// How many log messages earlier rounds have sent.
    pub fn logs(&self) -> u64 {
        self.logs
    }

    /// Notes how many log messages have been sent in all.
    pub fn set_logs(&mut self, logs: u64) {
        self.logs = logs;
    }

    /// Counts one more round. Returns how many there have been.
    pub fn next_round(&mut self) -> u32 {
        self.rounds += 1;
        self.rounds
    }
}

/// A kind of question, as far as clients say whether they can be asked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum QuestionKind {
    /// A form for the user.
    Form,
    /// A URL for the user to visit.
    Url,
    /// Something for the client's model.
    Sampling,
    /// Something for the client's model, which may use tools to answer.
    SamplingWithTools,
    /// The folders that the user works in.
    Roots,
}

impl QuestionKind {
    /// What kind of question this is.
    pub fn of(request: &InputRequest) -> Self {
        match request {
            InputRequest::Elicit(ElicitParams::Form(_)) => Self::Form,
            InputRequest::Elicit(ElicitParams::Url(_)) => Self::Url,
            InputRequest::Sample(it) if !it.tools.is_empty() || it.tool_choice.is_some() => {
                Self::SamplingWithTools
            }
            InputRequest::Sample(_) => Self::Sampling,
            InputRequest::Roots => Self::Roots,
        }
    }

    /// What a client lacks that cannot be asked it, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Form => "form elicitation",
            Self::Url => "URL elicitation",
            Self::Sampling => "sampling",
            Self::SamplingWithTools => "sampling with tools",
            Self::Roots => "roots",
        }
    }

    /// Whether a client that speaks `revision` and says this of itself can be asked it.
    pub fn suits(self, client: &ClientCapabilities, revision: Revision) -> bool {
        let profile = revision.profile();
        self.is_declared(client)
            && match self {
                Self::Form => profile.titles,
                Self::Url | Self::SamplingWithTools => profile.icons,
                Self::Sampling | Self::Roots => true,
            }
    }

    fn is_declared(self, client: &ClientCapabilities) -> bool {
        let elicitation = client.elicitation.as_ref();
        let sampling = client.sampling.as_ref();
        match self {
            Self::Form => elicitation.is_some_and(|it| it.form),
            Self::Url => elicitation.is_some_and(|it| it.url),
            Self::Sampling => sampling.is_some(),
            Self::SamplingWithTools => sampling.is_some_and(|it| it.tools),
            Self::Roots => client.roots.is_some(),
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Form | Self::Url => Method::ElicitationCreate,
            Self::Sampling | Self::SamplingWithTools => Method::SamplingCreateMessage,
            Self::Roots => Method::RootsList,
        }
    }

    /// Where a client says it, and how.
    fn capability(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Form => ("elicitation", Some("form")),
            Self::Url => ("elicitation", Some("url")),
            Self::Sampling => ("sampling", None),
            Self::SamplingWithTools => ("sampling", Some("tools")),
            Self::Roots => ("roots", None),
        }
    }
}

/// What the newest revision answers when a client cannot be asked `request`; `None` if it can.
pub fn missing_capability(
    request: &InputRequest,
    client: &ClientCapabilities,
) -> Option<ErrorObject> {
    let kind = QuestionKind::of(request);
    (!kind.is_declared(client)).then(|| missing_capabilities(&[kind]))
}

/// What the newest revision answers when a client cannot be asked any of `kinds`.
pub fn missing_capabilities(kinds: &[QuestionKind]) -> ErrorObject {
    let mut methods: Vec<_> = kinds.iter().map(|it| format!("`{}`", it.method())).collect();
    methods.dedup();
    let mut required = json!({});
    for kind in kinds {
        let (name, part) = kind.capability();
        if required[name].is_null() {
            required[name] = json!({});
        }
        if let Some(part) = part {
            required[name][part] = json!({});
        }
    }
    let message =
        format!("This call needs to ask {}, which the request does not offer.", methods.join(", "));
    ErrorObject::new(code::MISSING_CLIENT_CAPABILITY, message)
        .with_data(Json::of(&json!({ "requiredCapabilities": required })))
}
