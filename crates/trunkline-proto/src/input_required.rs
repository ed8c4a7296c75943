//! The rounds of 2026-07-28 that replaced the server's requests: the client's open [`Round`], and the
//! [`Journal`] with which a server's handler runs again and finds its answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method::Method;
use trunkline_wire::model::{ClientCapabilities, ElicitParams, InputRequest, InputRequired};
use trunkline_wire::revision::Revision;

/// The questions of an `input_required` result while they are being answered.
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

    /// Records an answer. Returns whether it was the last one missing.
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

/// What a handler has done and learnt so far in one logical call. Between rounds the client carries it,
/// sealed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// Open questions by key: the rendered question.
    asked: BTreeMap<String, Json>,
    /// Answers by key, each with the rendered question it answers.
    answers: BTreeMap<String, (Json, Json)>,
    /// Results of effects that must happen once.
    once: BTreeMap<String, Json>,
    /// The progress reported so far.
    progress: Option<f64>,
    /// How many log messages have been sent.
    logs: u64,
    /// How many rounds there have been.
    rounds: u32,
    /// Answers that came without state, by key.
    #[serde(skip)]
    offered: BTreeMap<String, Json>,
}

impl Journal {
    /// Records the answers of a retry. Answers to questions that were not asked are ignored, as the
    /// specification requires.
    pub fn take_answers(&mut self, responses: Object) {
        for (key, answer) in responses.iter() {
            if let Some(question) = self.asked.remove(key) {
                self.answers.insert(key.to_owned(), (question, answer.clone()));
            }
        }
    }

    /// Records the answers of a client that sent no state: it anticipates the questions. They are not
    /// bound to any question yet.
    pub fn offer(&mut self, responses: Object) {
        let offers = responses.iter().map(|(key, answer)| (key.to_owned(), answer.clone()));
        self.offered.extend(offers);
    }

    /// Accepts an offered answer as the answer to `question`. Only for a key that a client can know:
    /// one that the handler's author chose.
    pub fn take_offer(&mut self, key: &str, question: &Json) {
        if let Some(offered) = self.offered.remove(key) {
            self.answers.insert(key.to_owned(), (question.clone(), offered));
        }
    }

    /// The answer to `question`, if it was given to exactly that question.
    pub fn answer(&self, key: &str, question: &Json) -> Option<&Json> {
        self.answers.get(key).filter(|(asked, _)| asked == question).map(|(_, answer)| answer)
    }

    /// Records an open question.
    pub fn ask(&mut self, key: &str, question: Json) {
        self.answers.remove(key);
        self.asked.insert(key.to_owned(), question);
    }

    /// The result of an effect that has already happened.
    pub fn done(&self, key: &str) -> Option<&Json> {
        self.once.get(key)
    }

    /// Records the result of an effect.
    pub fn note(&mut self, key: &str, result: Json) {
        self.once.insert(key.to_owned(), result);
    }

    /// Whether `progress` exceeds what earlier rounds reported. Records it.
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

    /// Records how many log messages have been sent in all.
    pub fn set_logs(&mut self, logs: u64) {
        self.logs = logs;
    }

    /// Counts one more round. Returns how many there have been.
    pub fn next_round(&mut self) -> u32 {
        self.rounds += 1;
        self.rounds
    }
}

/// A kind of question, as far as client capabilities distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum QuestionKind {
    /// A form for the user.
    Form,
    /// A URL for the user to visit.
    Url,
    /// A request to the client's model.
    Sampling,
    /// A request to the client's model, which may use tools.
    SamplingWithTools,
    /// The folders that the user works in.
    Roots,
}

impl QuestionKind {
    /// The kind of this question.
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

    /// The missing capability, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Form => "form elicitation",
            Self::Url => "URL elicitation",
            Self::Sampling => "sampling",
            Self::SamplingWithTools => "sampling with tools",
            Self::Roots => "roots",
        }
    }

    /// Whether a client of `revision` with these capabilities supports it.
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

    /// The capability, and its member.
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

/// The 2026-07-28 error for a client that does not support `request`; `None` if it does.
pub fn missing_capability(
    request: &InputRequest,
    client: &ClientCapabilities,
) -> Option<ErrorObject> {
    let kind = QuestionKind::of(request);
    (!kind.is_declared(client)).then(|| missing_capabilities(&[kind]))
}

/// The 2026-07-28 error for a client that supports none of `kinds`.
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
