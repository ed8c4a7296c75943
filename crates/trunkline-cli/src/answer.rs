//! A server's question → the answer: from the command line, from the user at the terminal, or a
//! refusal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use trunkline::client::Roots;
use trunkline::model::{
    ClientCapabilities, Content, CreateMessageParams, CreateMessageResult, ElicitAction,
    ElicitForm, ElicitParams, ElicitResult, ElicitUrl, ElicitationCapability, EnumSchema,
    FormSchema, LogMessage, PrimitiveSchema, Root, RootsCapability, SamplingCapability,
};
use trunkline::{ErrorObject, RawJson};

use crate::failure::Failure;
use crate::output::{Screen, Tone, indented, one_line};

/// How to answer what a server asks.
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Answers to the server's questions")]
pub(crate) struct Answering {
    /// Fill in a field of a form; `sample=TEXT` answers for the model.
    #[arg(long, value_name = "K=V", value_parser = crate::words::pair)]
    answer: Vec<(String, String)>,
    /// Say yes without asking; fields without an answer keep their defaults.
    #[arg(long, conflicts_with = "decline")]
    accept: bool,
    /// Say no without asking.
    #[arg(long)]
    decline: bool,
    /// Tell the server about a folder, and when it goes or comes back.
    #[arg(long, value_name = "PATH")]
    root: Vec<PathBuf>,
}

/// Answers for the user of the command line.
pub(crate) struct Host {
    answers: BTreeMap<String, String>,
    mood: Mood,
    roots: Roots,
    screen: Screen,
    shows_log: bool,
    /// One question at a time.
    turn: Mutex<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Accept,
    Decline,
    Ask,
    /// Without a terminal: accepts only what the command line answers.
    Alone,
}

impl Host {
    pub(crate) fn new(
        answering: &Answering,
        screen: &Screen,
        shows_log: bool,
    ) -> Result<Self, Failure> {
        let mood = match (answering.accept, answering.decline, screen.is_interactive()) {
            (true, _, _) => Mood::Accept,
            (_, true, _) => Mood::Decline,
            (_, _, true) => Mood::Ask,
            _ => Mood::Alone,
        };
        let roots = answering.root.iter().map(|path| root(path)).collect::<Result<Vec<_>, _>>()?;
        let roots = Roots::new(roots);
        let answers = answering.answer.iter().cloned().collect();
        let screen = screen.clone();
        Ok(Self { answers, mood, roots, screen, shows_log, turn: Mutex::new(()) })
    }

    /// The roots, if the command line named any.
    pub(crate) fn roots(&self) -> Option<Roots> {
        (!self.roots.get().is_empty()).then(|| self.roots.clone())
    }

    async fn form(&self, form: ElicitForm) -> ElicitResult {
        let mut schema: FormSchema = form.requested_schema.to().unwrap_or_default();
        // Required fields are asked first; otherwise the server's order is kept.
        schema.properties.sort_by_key(|(name, _)| !schema.required.contains(name));
        let raw: Value = form.requested_schema.to().unwrap_or_default();
        let answered = schema.properties.iter().any(|(name, _)| self.answers.contains_key(name));
        if self.mood == Mood::Decline || (self.mood == Mood::Alone && !answered) {
            return self.declined(&form.message, "answer with `--answer NAME=VALUE` or `--accept`");
        }
        if self.mood == Mood::Ask {
            self.ask_line(&form.message);
        }
        let mut content = Map::new();
        for (name, field) in &schema.properties {
            let is_required = schema.required.contains(name);
            match self.field(name, field, is_required, &raw).await {
                Ok(Some(value)) => drop(content.insert(name.clone(), value)),
                Ok(None) if is_required => {
                    let hint = format!("`{name}` must be filled in; use `--answer {name}=VALUE`");
                    return self.declined(&form.message, &hint);
                }
                Ok(None) => {}
                Err(Stopped) => return ElicitResult::new(ElicitAction::Cancel),
            }
        }
        ElicitResult::accept(RawJson::of(&content))
    }

    /// One field: from the command line, from the terminal, or its default.
    async fn field(
        &self,
        name: &str,
        field: &PrimitiveSchema,
        is_required: bool,
        schema: &Value,
    ) -> Result<Option<Value>, Stopped> {
        let property = &schema["properties"][name];
        let initial = property.get("default").cloned();
        if let Some(text) = self.answers.get(name) {
            match read(name, text, field, property) {
                Ok(value) => return Ok(Some(value)),
                Err(why) => self.screen.aside("answer", &why),
            }
        }
        if self.mood != Mood::Ask {
            return Ok(initial);
        }
        loop {
            self.screen.say(&format!("  {} ", label(name, field, is_required, &initial)));
            let text = read_line().await.ok_or(Stopped)?;
            if text.is_empty() && (initial.is_some() || !is_required) {
                return Ok(initial);
            }
            match read(name, &text, field, property) {
                Ok(value) => return Ok(Some(value)),
                Err(why) => self.screen.aside("again", &why),
            }
        }
    }

    async fn url(&self, question: ElicitUrl) -> ElicitResult {
        // The whole URL is shown, and never opened from here.
        let url = one_line(&question.url);
        match self.mood {
            Mood::Accept => {
                self.screen.aside("accepted", &format!("{} {url}", question.message));
                ElicitResult::new(ElicitAction::Accept)
            }
            Mood::Decline | Mood::Alone => {
                self.declined(&format!("{} {url}", question.message), "say yes with `--accept`")
            }
            Mood::Ask => {
                self.ask_line(&question.message);
                let url = self.screen.err_tone(Tone::Bold, &url);
                self.screen.say(&format!("  {url}\n  Open it yourself. Agree? [y/N] "));
                match read_line().await.as_deref() {
                    Some("y" | "Y" | "yes") => ElicitResult::new(ElicitAction::Accept),
                    Some(_) => ElicitResult::new(ElicitAction::Decline),
                    None => ElicitResult::new(ElicitAction::Cancel),
                }
            }
        }
    }

    fn ask_line(&self, message: &str) {
        let who = self.screen.err_tone(Tone::Name, "The server asks:");
        self.screen.say(&format!("{who} {}\n", indented(message)));
    }

    fn declined(&self, message: &str, hint: &str) -> ElicitResult {
        self.screen.aside("declined", &format!("{message} ({hint})"));
        ElicitResult::new(ElicitAction::Decline)
    }
}

impl trunkline::client::Responder for Host {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::new()
            .elicitation(ElicitationCapability::BOTH)
            .sampling(SamplingCapability::new())
            .roots(RootsCapability::new(!self.roots.get().is_empty()))
    }

    async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        let _turn = self.turn.lock().await;
        let _asking = self.screen.asking();
        Ok(match params {
            ElicitParams::Form(form) => self.form(form).await,
            ElicitParams::Url(url) => self.url(url).await,
        })
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        let _turn = self.turn.lock().await;
        let _asking = self.screen.asking();
        let text = match self.answers.get("sample") {
            Some(text) => Some(text.clone()),
            None if self.mood == Mood::Ask => {
                self.ask_line("What would the model say to this?");
                for message in &params.messages {
                    let texts = message.content.as_slice().iter().filter_map(Content::as_text);
                    let texts = indented(&texts.collect::<Vec<_>>().join("\n"));
                    self.screen.say(&format!("  {:?}: {texts}\n", message.role));
                }
                self.screen.say("  (empty to refuse) ");
                read_line().await.filter(|it| !it.is_empty())
            }
            None => {
                self.screen.aside(
                    "declined",
                    "The server asks for a model (answer with `--answer sample=TEXT`)",
                );
                None
            }
        };
        match text {
            Some(text) => {
                Ok(CreateMessageResult::new(Content::text(text), "the person at the keyboard")
                    .stop_reason("endTurn"))
            }
            None => Err(ErrorObject::new(USER_REJECTED, "The user refused.")),
        }
    }

    async fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
        Ok(self.roots.get())
    }

    fn on_log(&self, message: LogMessage) {
        if self.shows_log {
            let logger = message.logger.map(|it| format!(" {it}")).unwrap_or_default();
            let text: String = message.data.to().unwrap_or_else(|_| message.data.get().to_owned());
            self.screen.aside(&format!("{}{logger}", message.level), &text);
        }
    }
}

/// The terminal is at its end.
struct Stopped;

fn label(
    name: &str,
    field: &PrimitiveSchema,
    is_required: bool,
    initial: &Option<Value>,
) -> String {
    let (title, kind) = match field {
        PrimitiveSchema::String(it) => {
            (&it.title, it.format.clone().unwrap_or_else(|| "text".to_owned()))
        }
        PrimitiveSchema::Number(it) => {
            (&it.title, if it.integer { "whole number" } else { "number" }.to_owned())
        }
        PrimitiveSchema::Boolean(it) => (&it.title, "yes/no".to_owned()),
        PrimitiveSchema::Enum(it) => (&it.title, choices(it)),
        _ => (&None, "JSON".to_owned()),
    };
    let title = title.as_deref().unwrap_or(name);
    let more = match (initial, is_required) {
        (Some(value), _) => format!(", default {value}"),
        (None, false) => ", may stay empty".to_owned(),
        (None, true) => String::new(),
    };
    one_line(&format!("{title} ({kind}{more}):"))
}

fn choices(choice: &EnumSchema) -> String {
    let options = choice.options.iter().map(|it| match &it.title {
        Some(title) => format!("{} = {title}", it.value),
        None => it.value.clone(),
    });
    let options = options.collect::<Vec<_>>().join(" | ");
    if choice.many.is_some() { format!("several of {options}, with commas") } else { options }
}

/// The typed text as a value of the field.
fn read(name: &str, text: &str, field: &PrimitiveSchema, schema: &Value) -> Result<Value, String> {
    let known = |choice: &EnumSchema, text: &str| {
        let found =
            choice.options.iter().find(|it| it.value == text || it.title.as_deref() == Some(text));
        found
            .map(|it| Value::from(it.value.clone()))
            .ok_or_else(|| format!("`{name}` is one of {}", choices(choice)))
    };
    match field {
        PrimitiveSchema::Boolean(_) => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err(format!("`{name}` is yes or no")),
        },
        PrimitiveSchema::Enum(choice) if choice.many.is_some() => {
            let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
            parts.map(|it| known(choice, it)).collect::<Result<Vec<_>, _>>().map(Value::from)
        }
        PrimitiveSchema::Enum(choice) => known(choice, text),
        PrimitiveSchema::String(it) => {
            let length = text.chars().count() as u64;
            match (it.min_length, it.max_length) {
                (Some(min), _) if length < min => {
                    Err(format!("`{name}` has at least {min} characters"))
                }
                (_, Some(max)) if length > max => {
                    Err(format!("`{name}` has at most {max} characters"))
                }
                _ => Ok(text.into()),
            }
        }
        PrimitiveSchema::Number(it) => {
            let value =
                crate::arguments::typed(name, text, schema, schema).map_err(|it| it.cause)?;
            let number = value.as_f64().unwrap_or_default();
            match (it.minimum, it.maximum) {
                (Some(min), _) if number < min => Err(format!("`{name}` is at least {min}")),
                (_, Some(max)) if number > max => Err(format!("`{name}` is at most {max}")),
                _ => Ok(value),
            }
        }
        _ => crate::arguments::typed(name, text, schema, schema).map_err(|it| it.cause),
    }
}

/// One line from the terminal; `None` at its end.
async fn read_line() -> Option<String> {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        matches!(std::io::stdin().read_line(&mut line), Ok(1..)).then_some(line)
    });
    Some(line.await.ok()??.trim().to_owned())
}

fn root(path: &Path) -> Result<Root, Failure> {
    let full = path.canonicalize().map_err(|err| {
        Failure::usage(format!("The root `{}` cannot be used: {err}.", path.display()))
            .advice("Name a folder that exists.")
    })?;
    let mut uri = "file://".to_owned();
    for byte in full.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte))
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    let root = Root::new(uri);
    Ok(match full.file_name() {
        Some(name) => root.name(name.to_string_lossy()),
        None => root,
    })
}

/// The error code for a sampling request that the user refused.
const USER_REJECTED: i64 = -1;
