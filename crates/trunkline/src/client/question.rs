//! A server's question, as a person or a model sees it → a valid answer.

use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use trunkline_wire::code::USER_REJECTED;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{
    Content, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult,
    FormSchema, PrimitiveSchema,
};

/// A question to the user: a form to fill in or a URL to visit.
///
/// ```
/// use trunkline::client::Client;
///
/// let client = Client::builder("example", "1.0.0").on_ask(|question| async move {
///     match question.message().starts_with("Book") {
///         true => question.accept(true),
///         false => question.decline(),
///     }
/// });
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    params: ElicitParams,
    server: Option<Arc<str>>,
}

impl Question {
    pub(crate) fn new(params: ElicitParams, server: Option<Arc<str>>) -> Self {
        Self { params, server }
    }

    /// The text to show to the user.
    ///
    /// ```
    /// use trunkline::Client;
    ///
    /// let client = Client::builder("example", "1.0.0").on_ask(|question| async move {
    ///     println!("{}: {}", question.server().unwrap_or("The server asks"), question.message());
    ///     question.accept_defaults()
    /// });
    /// ```
    pub fn message(&self) -> &str {
        self.params.message()
    }

    /// The server that asks, if a [`Host`](super::Host) has many of them.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Whether the user is asked to visit a URL rather than to fill in a form.
    pub fn is_url(&self) -> bool {
        matches!(self.params, ElicitParams::Url(_))
    }

    /// The URL to visit.
    ///
    /// ```
    /// use trunkline::Client;
    ///
    /// let client = Client::builder("example", "1.0.0").on_ask_url(|question| async move {
    ///     assert!(question.is_url());
    ///     println!("{} Visit {}", question.message(), question.url().unwrap_or_default());
    ///     question.accept(())
    /// });
    /// ```
    ///
    /// Show it in full, and never open or fetch it without the user's consent.
    pub fn url(&self) -> Option<&str> {
        match &self.params {
            ElicitParams::Url(it) => Some(&it.url),
            ElicitParams::Form(_) => None,
        }
    }

    /// The JSON Schema of the form, as the server wrote it.
    pub fn schema(&self) -> Option<&Json> {
        match &self.params {
            ElicitParams::Form(it) => Some(&it.requested_schema),
            ElicitParams::Url(_) => None,
        }
    }

    /// The fields of the form in order.
    ///
    /// ```
    /// use trunkline::Client;
    ///
    /// let client = Client::builder("example", "1.0.0").on_ask_form(|question| async move {
    ///     for (name, _field) in question.form().unwrap_or_default().properties {
    ///         println!("{name}?");
    ///     }
    ///     question.cancel()
    /// });
    /// ```
    ///
    /// `None` for a URL, or for a form that the protocol does not allow.
    pub fn form(&self) -> Option<FormSchema> {
        self.schema().and_then(|schema| schema.to().ok())
    }

    /// The protocol's own params.
    pub fn params(&self) -> &ElicitParams {
        &self.params
    }

    /// The protocol's own params, owned.
    pub fn into_params(self) -> ElicitParams {
        self.params
    }

    /// The user agrees. An object fills in the form; any other value fills in its only field, so
    /// that `true` answers a yes-or-no question. For a URL only the consent is sent.
    pub fn accept(&self, content: impl Serialize) -> Result<ElicitResult, ErrorObject> {
        if self.is_url() {
            return Ok(ElicitResult::new(ElicitAction::Accept));
        }
        let content = Json::try_of(&content).map_err(|err| {
            ErrorObject::internal("answer", format!("The answer cannot be written: {err}."))
        })?;
        if content.is_object() {
            return Ok(ElicitResult::accept(content));
        }
        match self.form().as_ref().map(|form| form.properties.as_slice()) {
            Some([(name, _)]) => {
                let value = content.to::<Value>().unwrap_or_default();
                let object = Map::from_iter([(name.clone(), value)]);
                Ok(ElicitResult::accept(Json::of(&object)))
            }
            _ => Err(ErrorObject::internal(
                "answer",
                "The answer to a form of several fields must be an object.",
            )),
        }
    }

    /// The user says no.
    pub fn decline(&self) -> Result<ElicitResult, ErrorObject> {
        Ok(ElicitResult::new(ElicitAction::Decline))
    }

    /// The user closed the question without an answer.
    pub fn cancel(&self) -> Result<ElicitResult, ErrorObject> {
        Ok(ElicitResult::new(ElicitAction::Cancel))
    }

    /// Accepts like a user who only presses Enter: every field has its default. A required field
    /// without one gets the first choice, `true`, the least number or the shortest text that the
    /// form allows. For tests and demonstrations; it asks no user.
    pub fn accept_defaults(&self) -> Result<ElicitResult, ErrorObject> {
        if self.is_url() {
            return self.accept(());
        }
        let Some(form) = self.form() else {
            let message = "The form cannot be read, so it cannot be filled in with its defaults.";
            return Err(ErrorObject::invalid_params(message));
        };
        let mut content = Map::new();
        for (name, field) in &form.properties {
            let is_required = form.required.contains(name);
            if let Some(value) = initial(field).or_else(|| is_required.then(|| least(field))) {
                content.insert(name.clone(), value);
            }
        }
        self.accept(content)
    }
}

/// A question to the model. Derefs to the protocol's own params.
///
/// ```
/// use trunkline::client::Client;
///
/// let client = Client::builder("example", "1.0.0")
///     .on_sample(|request| async move { request.reply("my-model", "Four.") });
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    params: CreateMessageParams,
    server: Option<Arc<str>>,
}

impl Sampling {
    pub(crate) fn new(params: CreateMessageParams, server: Option<Arc<str>>) -> Self {
        Self { params, server }
    }

    /// The server that asks, if a [`Host`](super::Host) has many of them.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The texts of the last message, one per line: what the model is asked.
    pub fn text(&self) -> String {
        let blocks = self.params.messages.last().map(|it| it.content.as_slice());
        let texts = blocks.unwrap_or_default().iter().filter_map(Content::as_text);
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Answers with a text of `model`.
    pub fn reply(
        &self,
        model: impl Into<String>,
        text: impl Into<String>,
    ) -> Result<CreateMessageResult, ErrorObject> {
        Ok(CreateMessageResult::new(Content::text(text), model).stop_reason("endTurn"))
    }

    /// The user does not allow the model to be asked.
    pub fn refuse(&self) -> Result<CreateMessageResult, ErrorObject> {
        Err(ErrorObject::new(USER_REJECTED, "The user does not want the model to be asked."))
    }

    /// The protocol's own params.
    pub fn into_params(self) -> CreateMessageParams {
        self.params
    }
}

impl Deref for Sampling {
    type Target = CreateMessageParams;

    fn deref(&self) -> &CreateMessageParams {
        &self.params
    }
}

fn initial(field: &PrimitiveSchema) -> Option<Value> {
    match field {
        PrimitiveSchema::String(it) => it.initial.clone().map(Value::from),
        PrimitiveSchema::Number(it) => it.initial.map(|number| written(number, it.integer)),
        PrimitiveSchema::Boolean(it) => it.initial.map(Value::from),
        PrimitiveSchema::Enum(it) if it.initial.is_empty() => None,
        PrimitiveSchema::Enum(it) if it.many.is_some() => Some(it.initial.clone().into()),
        PrimitiveSchema::Enum(it) => it.initial.first().cloned().map(Value::from),
        _ => None,
    }
}

fn least(field: &PrimitiveSchema) -> Value {
    match field {
        PrimitiveSchema::String(it) => match it.format.as_deref() {
            Some("email") => "user@example.com".into(),
            Some("uri") => "https://example.com/".into(),
            Some("date") => "2026-01-01".into(),
            Some("date-time") => "2026-01-01T00:00:00Z".into(),
            _ => "x".repeat(it.min_length.unwrap_or(0).min(LONGEST) as usize).into(),
        },
        PrimitiveSchema::Number(it) => {
            let most = it.maximum.unwrap_or(f64::INFINITY);
            written(it.minimum.unwrap_or(0.0).min(most), it.integer)
        }
        PrimitiveSchema::Boolean(_) => true.into(),
        PrimitiveSchema::Enum(it) => {
            let values = it.options.iter().map(|option| option.value.clone());
            match it.many {
                Some(many) => values
                    .take(many.min_items.unwrap_or(1).max(1) as usize)
                    .collect::<Vec<_>>()
                    .into(),
                None => values.take(1).next().into(),
            }
        }
        _ => Value::Null,
    }
}

fn written(number: f64, integer: bool) -> Value {
    match integer && number.abs() < 9e15 {
        true => (number.ceil() as i64).into(),
        false => number.into(),
    }
}

/// The longest default text, however long the server wants it.
const LONGEST: u64 = 10_000;
