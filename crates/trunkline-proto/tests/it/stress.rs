//! Random sequences of inputs: nothing panics, every opened call is answered or abandoned exactly once,
//! and every request gets at most one answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trunkline_proto::client::{self, Client};
use trunkline_proto::server::{self, Server};
use trunkline_proto::{
    Ask, Attached, CallKey, Change, Conversation, HandlerEvent, Input, Outgoing, Output, Ticket,
};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Incoming, Message, Object};
use trunkline_wire::model::{
    ClientCapabilities, ElicitationCapability, Implementation, LogLevel, LogMessage, Progress,
    RootsCapability, SamplingCapability,
};
use trunkline_wire::revision::{Revision, Revisions};

use trunkline_testkit::{Dice, repeats};

use crate::transcript::{every_server_capability, fill, start};

/// What was opened and how it ended.
#[derive(Default)]
struct Book {
    open: BTreeSet<u64>,
    opened: Vec<u64>,
    /// Answers seen, by id.
    answers: BTreeMap<String, usize>,
    /// Our calls in flight.
    waiting: BTreeSet<u64>,
}

impl Book {
    fn note(&mut self, output: Output) {
        match output {
            Output::Call(call) => {
                assert!(self.open.insert(call.key.0), "{:?} is opened twice", call.key);
                self.opened.push(call.key.0);
            }
            Output::Abandon(key) => assert!(self.open.remove(&key.0), "{key:?} was not open"),
            Output::Settled { ticket, .. } => {
                assert!(self.waiting.remove(&ticket.0), "{ticket:?} is settled twice");
            }
            Output::Send(Outgoing::One(message), _) => self.sent(&message),
            Output::Send(Outgoing::Batch(messages), _) => {
                messages.iter().for_each(|it| self.sent(it))
            }
            Output::NoReply(_) | Output::Pause { .. } => {}
            Output::Heard(_) | Output::Opened(_) | Output::Failed(_) => {}
        }
    }

    fn sent(&mut self, message: &Message) {
        if let Message::Response { id: Some(id), .. } = message
            && *id != Id::Null
        {
            *self.answers.entry(id.to_string()).or_default() += 1;
        }
    }

    /// An open call, or now and then one that is over or never existed.
    fn some_call(&self, dice: &mut Dice) -> CallKey {
        let open: Vec<u64> = self.open.iter().copied().collect();
        let from = if dice.roll(8) == 0 { &self.opened } else { &open };
        CallKey(if from.is_empty() { u64::MAX } else { from[dice.roll(from.len())] })
    }
}

const REQUESTS: &[&str] = &[
    "ping",
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/subscribe",
    "logging/setLevel",
    "prompts/get",
    "completion/complete",
    "subscriptions/listen",
    "server/discover",
    "tasks/get",
    "initialize",
    "no/such",
];
const METAS: &[&str] = &[
    "{}",
    "$META",
    r#"{$ENV,"progressToken":"t"}"#,
    r#"{$ENV,"io.modelcontextprotocol/logLevel":"debug"}"#,
    r#"{"progressToken":7}"#,
    r#"{"io.modelcontextprotocol/protocolVersion":"1999-01-01"}"#,
    "7",
];
const NOISE: &[&str] = &[
    "",
    "garbage",
    "[]",
    "{}",
    "[1,2]",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#,
];

fn request(dice: &mut Dice, id: usize) -> String {
    let (method, meta) = (dice.pick(REQUESTS), fill(dice.pick(METAS)));
    let revision = Revision::ALL[dice.roll(5)];
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{meta},"protocolVersion":"{revision}","capabilities":{{"roots":{{}},"elicitation":{{}}}},"clientInfo":{{"name":"c","version":"1"}},"name":"n","uri":"a:1","level":"info","notifications":{{"toolsListChanged":true}}}}}}"#
    )
}

fn outcome(dice: &mut Dice) -> Result<Json, ErrorObject> {
    match dice.roll(3) {
        0 => Err(ErrorObject::new(-32000, "no")),
        _ => Ok(Json::parse(r#"{"content":[]}"#).expect("JSON")),
    }
}

fn utterance(dice: &mut Dice) -> HandlerEvent {
    match dice.roll(2) {
        0 => HandlerEvent::Progress(Progress::new(dice.roll(100) as f64 - 50.0)),
        _ => HandlerEvent::Log(LogMessage::text(LogLevel::ALL[dice.roll(8)], "x")),
    }
}

fn ask(method: &'static str, ticket: u64, during: Option<CallKey>, dice: &mut Dice) -> Ask {
    Ask {
        ticket: Ticket(ticket),
        during,
        method: method.into(),
        params: Object::default(),
        wants_progress: dice.roll(2) == 0,
        timing: None,
        attached: Attached::default(),
        relays: false,
    }
}

fn drain(core: &mut impl Conversation, book: &mut Book) {
    while let Some(output) = core.poll() {
        book.note(output);
    }
}

#[test]
fn a_server_survives_any_story_and_answers_every_request_once() {
    let (mut opened, mut answered) = (0, 0);
    for seed in 0..repeats(300, 30_000) as u64 {
        let (more, done) = server_story(seed);
        opened += more;
        answered += done;
    }
    assert!(opened > 2_000 && answered > 10_000, "{opened} calls, {answered} answers: too tame");
}

fn server_story(seed: u64) -> (usize, usize) {
    let mut dice = Dice(seed + 1);
    let mut config = server::Config::new(Implementation::new("srv", "1"));
    config.capabilities = every_server_capability();
    config.dialect = false;
    config.bounds.in_flight = 6;
    if dice.roll(4) == 0 {
        config.revisions = Revisions::only(Revision::ALL[dice.roll(5)]);
    }
    let mut core = Server::new(Arc::new(config));
    let mut now: Instant = start();
    let mut book = Book::default();
    // Requests that expect an answer; a cancelled one, or a subscription, may end without.
    let (mut asked, mut excused) = (BTreeSet::new(), BTreeSet::new());
    for step in 0..150 {
        let input = match dice.roll(12) {
            0..=2 => {
                let text = request(&mut dice, step);
                asked.insert(step);
                if text.contains("subscriptions/listen") {
                    excused.insert(step);
                }
                Input::received(Incoming::parse(text.as_bytes()))
            }
            3 => {
                let texts = [request(&mut dice, step), request(&mut dice, step + 1000)];
                let text = format!("[{}]", texts.join(","));
                // A batch that is refused as a whole answers for its elements.
                excused.extend([step, step + 1000]);
                asked.extend([step, step + 1000]);
                Input::received(Incoming::parse(text.as_bytes()))
            }
            4 => Input::received(Incoming::parse(dice.pick(NOISE).as_bytes())),
            5 => {
                let id = dice.roll(step + 1);
                excused.insert(id);
                let text = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                );
                Input::received(Incoming::parse(text.as_bytes()))
            }
            6 | 7 => {
                let call = book.some_call(&mut dice);
                book.open.remove(&call.0);
                Input::Finished { call, outcome: outcome(&mut dice) }
            }
            8 => Input::Said { call: book.some_call(&mut dice), what: utterance(&mut dice) },
            9 => {
                let method = dice.pick(&["ping", "roots/list", "elicitation/create", "no/such"]);
                let during = (dice.roll(3) > 0).then(|| book.some_call(&mut dice));
                book.waiting.insert(step as u64);
                Input::Ask(ask(method, step as u64, during, &mut dice))
            }
            10 => match dice.roll(3) {
                0 => {
                    let ticket = dice.roll(step + 1) as u64;
                    book.waiting.remove(&ticket);
                    Input::Cancel(Ticket(ticket))
                }
                1 => {
                    let text =
                        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, dice.roll(20));
                    Input::received(Incoming::parse(text.as_bytes()))
                }
                _ => Input::Changed(match dice.roll(3) {
                    0 => Change::Tools,
                    1 => Change::Resource("a:1".to_owned()),
                    _ => Change::Prompts,
                }),
            },
            _ => {
                now += Duration::from_secs(dice.roll(40) as u64);
                Input::Tick
            }
        };
        core.handle(input, now);
        drain(&mut core, &mut book);
    }
    // Finally every handler finishes.
    for call in book.open.clone() {
        book.open.remove(&call);
        core.handle(Input::Finished { call: CallKey(call), outcome: outcome(&mut dice) }, now);
        drain(&mut core, &mut book);
    }
    core.handle(Input::Close, now);
    now += Duration::from_secs(10_000);
    core.handle(Input::Tick, now);
    drain(&mut core, &mut book);
    assert_eq!((core.open_calls(), book.waiting.len()), (0, 0), "seed {seed}");
    let answered = book.answers.len();
    for id in asked {
        let answers = book.answers.remove(&id.to_string()).unwrap_or(0);
        let expected = if excused.contains(&id) { 0..=1 } else { 1..=1 };
        assert!(expected.contains(&answers), "seed {seed}: {answers} answers to {id}");
    }
    let invented: Vec<_> = book.answers.iter().filter(|(id, _)| *id != "1").collect();
    assert!(invented.is_empty(), "seed {seed}: answers to nothing: {invented:?}");
    (book.opened.len(), answered)
}

#[test]
fn a_client_survives_any_story_and_settles_every_call_once() {
    let mut opened = 0;
    for seed in 0..repeats(300, 30_000) as u64 {
        opened += client_story(seed);
    }
    assert!(opened > 500, "{opened} questions: too tame");
}

fn client_story(seed: u64) -> usize {
    const RESULTS: &[&str] = &[
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#,
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#,
        r#"{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}}}"#,
        r#"{"resultType":"input_required","requestState":"s"}"#,
        r#"{"resultType":"complete","content":[]}"#,
        "7",
    ];
    let mut dice = Dice(seed + 1);
    let mut now: Instant = start();
    let mut config = client::Config::new(Implementation::new("cli", "1"));
    config.capabilities = ClientCapabilities::new()
        .roots(RootsCapability::new(true))
        .sampling(SamplingCapability::new())
        .elicitation(ElicitationCapability::BOTH);
    config.bounds.in_flight = 6;
    let mut core = Client::new(Arc::new(config), now);
    let mut book = Book::default();
    drain(&mut core, &mut book);
    // Open it in either era, so that most of the run is past the handshake.
    let stateless = seed.is_multiple_of(2);
    let (id, first) = if stateless { (1, RESULTS[0]) } else { (2, RESULTS[1]) };
    if !stateless {
        now += Duration::from_secs(5);
        core.handle(Input::Tick, now);
    }
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{first}}}"#);
    core.handle(Input::received(Incoming::parse(text.as_bytes())), now);
    drain(&mut core, &mut book);
    assert!(core.opened().is_some(), "seed {seed}");
    for step in 10..160 {
        let input = match dice.roll(10) {
            0 | 1 => {
                let method = dice.pick(&[
                    "tools/call",
                    "tools/list",
                    "ping",
                    "subscriptions/listen",
                    "no/such",
                ]);
                book.waiting.insert(step as u64);
                Input::Ask(ask(method, step as u64, None, &mut dice))
            }
            2 | 3 => {
                let (id, result) = (dice.roll(40), dice.pick(RESULTS));
                let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                Input::received(Incoming::parse(text.as_bytes()))
            }
            4 => {
                let method = dice.pick(&["roots/list", "ping", "tasks/get", "no/such"]);
                let text = format!(r#"{{"jsonrpc":"2.0","id":{step},"method":"{method}"}}"#);
                Input::received(Incoming::parse(text.as_bytes()))
            }
            5 => {
                let text = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#,
                    dice.roll(160)
                );
                Input::received(Incoming::parse(text.as_bytes()))
            }
            6 => Input::received(Incoming::parse(dice.pick(NOISE).as_bytes())),
            7 => {
                let call = book.some_call(&mut dice);
                book.open.remove(&call.0);
                Input::Finished { call, outcome: outcome(&mut dice) }
            }
            8 => {
                let ticket = dice.roll(160) as u64;
                book.waiting.remove(&ticket);
                Input::Cancel(Ticket(ticket))
            }
            _ => {
                now += Duration::from_secs(dice.roll(30) as u64);
                Input::Tick
            }
        };
        core.handle(input, now);
        drain(&mut core, &mut book);
    }
    core.handle(Input::Close, now);
    drain(&mut core, &mut book);
    let left = (core.open_calls(), book.open.len(), book.waiting.len());
    assert_eq!(left, (0, 0, 0), "seed {seed}");
    assert!(book.answers.values().all(|count| *count == 1), "seed {seed}: {:?}", book.answers);
    book.opened.len()
}
