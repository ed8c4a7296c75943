//! Plays a transcript against a conversation. This is the only place that knows the crate's API;
//! `trunkline_testkit::transcript` defines the lines. Every message we send is validated against the
//! schema of its revision.

use std::sync::Arc;
use std::time::Instant;

use trunkline_proto::client::{self, Client, OpenError};
use trunkline_proto::server::{self, Server};
use trunkline_proto::{
    Ask, Attached, CallError, CallKey, Change, Conversation, HandlerEvent, Input, Outgoing, Output,
    Ticket, Timing,
};
use trunkline_testkit::oracle::Side;
use trunkline_testkit::transcript::{Saying, Step, Words, parse};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Incoming, Object};
use trunkline_wire::method::Method;
use trunkline_wire::model::{
    ClientCapabilities, ElicitationCapability, Implementation, ListChanged, ResourcesCapability,
    RootsCapability, SamplingCapability, ServerCapabilities, ServerTasks, TASKS_EXTENSION,
};
use trunkline_wire::revision::{Era, Revision, Revisions};

use crate::audit::Audit;

/// A server that speaks everything and offers everything.
pub(crate) fn server() -> ServerScript {
    let mut config = server::Config::new(Implementation::new("srv", "1"));
    config.capabilities = every_server_capability();
    ServerScript { config, opening: None, shares_one_stream: false }
}

/// A client that speaks everything and answers every kind of question.
pub(crate) fn client() -> ClientScript {
    let mut config = client::Config::new(Implementation::new("cli", "1"));
    config.capabilities = every_client_capability();
    ClientScript { config, opening: None, shares_one_stream: false }
}

/// A server or a client, and the messages before the script.
pub(crate) struct Script<C> {
    config: C,
    opening: Option<String>,
    shares_one_stream: bool,
}

pub(crate) type ServerScript = Script<server::Config>;
pub(crate) type ClientScript = Script<client::Config>;

impl<C> Script<C> {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut C)) -> Self {
        change(&mut self.config);
        self
    }
}

macro_rules! both {
    ($($Script:ident)*) => {$(
        impl $Script {
            pub(crate) fn only(self, revision: Revision) -> Self {
                self.with(|config| config.revisions = Revisions::only(revision))
            }

            /// Plays the script and compares. A client's first output precedes any event.
            #[track_caller]
            pub(crate) fn check(self, script: &str) {
                let steps = parse(&fill(script));
                let played = self.play(&steps);
                compare(&steps, &played);
            }

            /// The same in every revision, after its handshake.
            #[track_caller]
            pub(crate) fn check_in_all(self, script: &str) {
                for revision in Revision::ALL {
                    let config = self.config.clone();
                    Self { config, opening: None, ..self }.opened(revision).check(script);
                }
            }
        }
    )*};
}

both! { ServerScript ClientScript }

impl ServerScript {
    /// Whose client reads several messages at once.
    pub(crate) fn on_one_stream(self) -> Self {
        Self { shares_one_stream: true, ..self }
    }

    /// After a handshake in which the client declared every capability.
    pub(crate) fn opened(self, revision: Revision) -> Self {
        self.opened_by(
            revision,
            r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}"#,
        )
    }

    /// After a handshake in which the client declared `capabilities`.
    pub(crate) fn opened_by(mut self, revision: Revision, capabilities: &str) -> Self {
        if revision.era() == Era::Stateful {
            self.opening = Some(format!(
                r#"
                > {{"jsonrpc":"2.0","id":"open","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"cli","version":"1"}}}}}}
                > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
                "#
            ));
        }
        self
    }

    /// Plays the inputs among `steps`.
    pub(crate) fn play(self, steps: &[Step]) -> Vec<Step> {
        let audit = Audit::new(Side::Server, self.config.revisions);
        let mut core = Server::new(Arc::new(self.config));
        if self.shares_one_stream {
            core.shares_one_stream();
        }
        let in_force = |core: &Server| core.session_revision();
        let mut player = Player { core, audit, now: start(), in_force };
        if let Some(opening) = &self.opening {
            player.play(&parse(opening));
        }
        player.play(steps)
    }
}

impl ClientScript {
    pub(crate) fn prefers_old(self) -> Self {
        self.with(|config| config.prefers = Era::Stateful)
    }

    /// After a handshake with a server that offers everything; the next id of ours is 2.
    pub(crate) fn opened(self, revision: Revision) -> Self {
        self.opened_to(revision, every_server_capability())
    }

    /// After a handshake with a server that offers `capabilities`.
    pub(crate) fn opened_to(
        self,
        revision: Revision,
        mut capabilities: ServerCapabilities,
    ) -> Self {
        if revision.era() == Era::Stateless {
            capabilities.tasks = None;
        }
        let capabilities = Json::of(&capabilities);
        let mut script = self.only(revision);
        script.opening = Some(match revision.era() {
            Era::Stateful => format!(
                r#"> {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{revision}","capabilities":{capabilities},"serverInfo":{{"name":"srv","version":"1"}}}}}}"#
            ),
            Era::Stateless => format!(
                r#"> {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","supportedVersions":["{revision}"],"capabilities":{capabilities},"ttlMs":0,"cacheScope":"private"}}}}"#
            ),
        });
        script
    }

    /// Plays the inputs among `steps`.
    pub(crate) fn play(self, steps: &[Step]) -> Vec<Step> {
        let audit = Audit::new(Side::Client, self.config.revisions);
        let now = start();
        let core = Client::new(Arc::new(self.config), now);
        let in_force = |core: &Client| core.opened().map(|it| it.revision);
        let mut player = Player { core, audit, now, in_force };
        let mut played = player.drain(None);
        if let Some(opening) = &self.opening {
            player.play(&parse(opening));
            played.clear();
        }
        played.extend(player.play(steps));
        played
    }
}

/// `$META` is the minimal `_meta` of a stateless request, `$ENV` its members without the brackets, and
/// `$SELF` the members of the `_meta` that our own client sends.
pub(crate) fn fill(script: &str) -> String {
    const ENV: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    const SELF: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cli","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;
    script.replace("$META", &format!("{{{ENV}}}")).replace("$ENV", ENV).replace("$SELF", SELF)
}

pub(crate) fn every_server_capability() -> ServerCapabilities {
    ServerCapabilities::new()
        .logging(true)
        .completions(true)
        .prompts(ListChanged::new(true))
        .resources(ResourcesCapability::new().subscribe(true).list_changed(true))
        .tools(ListChanged::new(true))
        .tasks(ServerTasks::ALL)
        .extensions([(TASKS_EXTENSION.to_owned(), Json::empty_object())])
}

fn every_client_capability() -> ClientCapabilities {
    ClientCapabilities::new()
        .roots(RootsCapability::new(true))
        .sampling(SamplingCapability::new())
        .elicitation(ElicitationCapability::BOTH)
}

#[allow(clippy::disallowed_methods)] // An arbitrary origin; only differences matter.
pub(crate) fn start() -> Instant {
    Instant::now()
}

/// One conversation being played.
struct Player<C> {
    core: C,
    audit: Audit,
    now: Instant,
    in_force: fn(&C) -> Option<Revision>,
}

impl<C: Conversation> Player<C> {
    fn play(&mut self, steps: &[Step]) -> Vec<Step> {
        let mut played = Vec::new();
        for step in steps.iter().filter(|step| step.is_input()) {
            played.push(step.clone());
            let mut speaker = None;
            let input = match step {
                Step::Wait(time) => {
                    let until = self.now + *time;
                    played.extend(self.wait(until));
                    continue;
                }
                Step::Peer(text) => {
                    self.audit.received(text);
                    Input::received(Incoming::parse(text.as_bytes()))
                }
                Step::Say { key, .. } => {
                    speaker = Some(*key);
                    to_input(step)
                }
                _ => to_input(step),
            };
            self.core.handle(input, self.now);
            played.extend(self.drain(speaker));
        }
        played
    }

    /// Advances time as the driver does: a tick at each deadline, and at no other time.
    fn wait(&mut self, until: Instant) -> Vec<Step> {
        let mut played = Vec::new();
        for _ in 0..100 {
            let Some(next) = self.core.next_timeout().filter(|it| *it <= until) else {
                self.now = until;
                return played;
            };
            self.now = self.now.max(next);
            self.core.handle(Input::Tick, self.now);
            played.extend(self.drain(None));
        }
        panic!("A deadline that has passed is still announced: the driver would spin.\n{played:?}");
    }

    fn drain(&mut self, speaker: Option<u64>) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(output) = self.core.poll() {
            let in_force = (self.in_force)(&self.core);
            match &output {
                // A transcript shows neither.
                Output::NoReply(_) | Output::Pause { .. } => continue,
                Output::Send(Outgoing::One(message), _) => {
                    self.audit.sent(&message.to_text(), in_force, speaker);
                }
                Output::Send(Outgoing::Batch(messages), _) => {
                    let texts: Vec<_> = messages.iter().map(|it| it.to_text()).collect();
                    self.audit.sent_batch(&texts, in_force);
                }
                Output::Call(call) => self.audit.called(call.key.0, call.revision),
                _ => {}
            }
            steps.push(to_step(output));
        }
        steps
    }
}

fn to_input(step: &Step) -> Input {
    let json = |text: &str| Json::parse(text).expect("the script was parsed");
    let object = |text: &Option<String>| {
        text.as_deref().map_or(Object::default(), |it| Object::parse(it).expect("an object"))
    };
    match step {
        Step::Done { key, result } => {
            Input::Finished { call: CallKey(*key), outcome: Ok(json(result)) }
        }
        Step::Fail { key, code, message } => Input::Finished {
            call: CallKey(*key),
            outcome: Err(ErrorObject::new(*code, message.clone())),
        },
        Step::Say { key, what, json: text } => {
            let what = match what {
                Saying::Progress => HandlerEvent::Progress(json(text).to().expect("progress")),
                Saying::Log => HandlerEvent::Log(json(text).to().expect("a log message")),
            };
            Input::Said { call: CallKey(*key), what }
        }
        Step::Ask(ask) => Input::Ask(Ask {
            ticket: Ticket(ask.ticket),
            during: ask.during.map(CallKey),
            method: ask.method.clone().into(),
            params: object(&ask.params),
            wants_progress: ask.loudly,
            timing: ask.within.map(|time| Timing { idle: time, hard: time }),
            attached: Attached::default(),
            relays: ask.relaying,
        }),
        Step::Drop(ticket) => Input::Cancel(Ticket(*ticket)),
        Step::Changed(what) => Input::Changed(to_change(what)),
        Step::Notify { method, params } => Input::Notify {
            method: Method::of(method).expect("a method of the table"),
            params: object(params),
        },
        Step::Close => Input::Close,
        _ => unreachable!("{step} is handled elsewhere"),
    }
}

fn to_change(what: &str) -> Change {
    let (first, rest) = what.split_once(' ').unwrap_or((what, ""));
    match first {
        "tools" => Change::Tools,
        "prompts" => Change::Prompts,
        "resources" => Change::Resources,
        "elicitation" => Change::ElicitationComplete(rest.to_owned()),
        "task" => {
            let json = Json::parse(rest).expect("a task");
            Change::Task(Box::new(json.to().expect("a task")), json)
        }
        uri => Change::Resource(uri.to_owned()),
    }
}

fn to_step(output: Output) -> Step {
    let value = |json: &Json| serde_json::from_str(json.get()).expect("JSON");
    let members = |object: &Object| {
        let json = object.to_json();
        Some(serde_json::from_str(json.get()).expect("JSON"))
    };
    match output {
        Output::NoReply(_) | Output::Pause { .. } => unreachable!("`drain` skips it"),
        Output::Send(sent, _) => {
            let mut text = Vec::new();
            sent.write(&mut text);
            Step::We(serde_json::from_slice(&text).expect("we send JSON"))
        }
        Output::Call(call) => Step::Call {
            key: call.key.0,
            method: call.method.name.to_owned(),
            params: members(&call.params),
        },
        Output::Abandon(key) => Step::Abandon(key.0),
        Output::Settled { ticket, outcome } => {
            let outcome = match outcome {
                Ok(result) => Words::Json(value(&result)),
                Err(error) => Words::Plain(why_settled(&error)),
            };
            Step::Settled { ticket: ticket.0, outcome }
        }
        Output::Heard(heard) => Step::Heard {
            method: heard.method.name().to_owned(),
            ticket: heard.ticket.map(|it| it.0),
            params: members(&heard.params),
        },
        Output::Opened(facts) => Step::Opened(facts.revision.to_string()),
        Output::Failed(error) => Step::Failed(why_failed(&error)),
    }
}

fn why_settled(error: &CallError) -> String {
    match error {
        CallError::Peer(error) => format!("error {} {}", error.code, error.message),
        CallError::Refused(error) => format!("refused {} {}", error.code, error.message),
        CallError::Invalid(why) => format!("invalid {why}"),
        CallError::TimedOut => "timed out".to_owned(),
        CallError::Cancelled => "cancelled".to_owned(),
        CallError::Closed => "closed".to_owned(),
        other => format!("{other:?}"),
    }
}

pub(crate) fn why_failed(error: &OpenError) -> String {
    match error {
        OpenError::Refused(error) => format!("refused {} {}", error.code, error.message),
        OpenError::NoCommonRevision { theirs, .. } if theirs.is_empty() => {
            "no common revision".to_owned()
        }
        OpenError::NoCommonRevision { theirs, .. } => {
            format!("no common revision: it speaks {}", theirs.join(", "))
        }
        OpenError::TimedOut => "timed out".to_owned(),
        OpenError::Invalid(why) => format!("invalid {why}"),
        OpenError::Closed { probing: true } => "closed while probing".to_owned(),
        OpenError::Closed { probing: false } => "closed".to_owned(),
        other => panic!("the script has no word for {other:?}"),
    }
}

/// Line by line, in exactly this order.
#[track_caller]
pub(crate) fn compare(expected: &[Step], played: &[Step]) {
    let same = expected.iter().zip(played).take_while(|(it, done)| it.matches(done)).count();
    if same == expected.len() && same == played.len() {
        return;
    }
    let lines = |steps: &[Step]| {
        steps.iter().map(|step| format!("    {step}")).collect::<Vec<_>>().join("\n")
    };
    panic!(
        "The conversation went another way.\n  both:\n{}\n  expected:\n{}\n  played:\n{}",
        lines(&played[..same]),
        lines(&expected[same..]),
        lines(&played[same..]),
    );
}
