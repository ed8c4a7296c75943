//! What a client says, line by line: every request gets one answer and no more, what cannot be read
//! gets one without an id (JSON-RPC 2.0 §5), and what we say can be read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use trunkline_proto::server::{Config, Server};
use trunkline_proto::{CallKey, Change, Conversation, Input, Outgoing, Output};
use trunkline_wire::era::Batch;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Incoming, Malformed, Message};
use trunkline_wire::model::{Implementation, ListChanged};
use trunkline_wire::revision::Revision;

/// Lines of messages. A line that begins with `!` is something that happens here: `!f` a handler
/// finishes, `!t` time passes, `!c` a list changes.
pub(crate) fn check(data: &[u8]) {
    let mut it = Talk {
        server: Server::new(Arc::clone(&CONFIG)),
        now: *BEGIN,
        calls: VecDeque::new(),
        owed: BTreeMap::new(),
        answered: BTreeMap::new(),
        nameless: 0,
    };
    let mut is_plain = true;
    for line in data.split(|byte| *byte == b'\n').take(MOST_LINES) {
        match line {
            [b'!', b'f', ..] => it.finish(),
            [b'!', b't', ..] => {
                it.now += Duration::from_secs(20);
                it.handle(Input::Tick);
            }
            [b'!', b'c', ..] => it.handle(Input::Changed(Change::Tools)),
            line => is_plain &= it.hear(Incoming::parse(line)),
        }
    }
    while !it.calls.is_empty() {
        it.finish();
    }
    for (id, answers) in &it.answered {
        let owed = it.owed.get(id).copied().unwrap_or_default();
        assert!(*answers <= owed, "{answers} answers to {owed} requests with the id {id}");
    }
    if is_plain {
        assert_eq!(it.answered, it.owed, "not every request got its answer");
        assert_eq!(it.server.open_calls(), 0, "a call is open that nobody answers");
    }
}

struct Talk {
    server: Server,
    now: Instant,
    calls: VecDeque<CallKey>,
    owed: BTreeMap<String, usize>,
    answered: BTreeMap<String, usize>,
    /// Answers without an id that were sent alone.
    nameless: usize,
}

impl Talk {
    /// Notes what an input is owed, and hands it over. Whether every answer comes in the end.
    fn hear(&mut self, incoming: Incoming) -> bool {
        let before = self.nameless;
        let profile = self.server.session_revision().map(Revision::profile);
        let has_batches = profile.is_some_and(|it| it.batch != Batch::No);
        let is_taken =
            |items: &Vec<_>| has_batches && (1..=CONFIG.bounds.batch).contains(&items.len());
        // How many answers without an id are sent at once, where that is certain.
        let (is_plain, nameless) = match &incoming {
            Incoming::One(message) => {
                let is_null = matches!(message, Message::Request { id: Id::Null, .. });
                let is_plain = self.owe_message(message);
                (is_plain, (is_plain && !is_null).then_some(0))
            }
            Incoming::Bad(bad) => (true, Some(self.owe_malformed(bad))),
            Incoming::Batch(items) if is_taken(items) => {
                let each = items.iter().map(|it| match it {
                    Ok(message) => self.owe_message(message),
                    Err(bad) => {
                        self.owe_malformed(bad);
                        true
                    }
                });
                (each.fold(true, |all, it| all & it), None)
            }
            Incoming::Batch(_) => {
                self.owe(None);
                (true, Some(1))
            }
        };
        self.handle(Input::received(incoming));
        if let Some(nameless) = nameless {
            assert_eq!(self.nameless - before, nameless, "answers without an id to one line");
        }
        is_plain
    }

    /// Whether nothing in it keeps an answer back.
    fn owe_message(&mut self, message: &Message) -> bool {
        match message {
            Message::Request { id, method, .. } => {
                self.owe(Some(id));
                // A subscription is answered when it ends.
                method != "subscriptions/listen"
            }
            Message::Notification { method, .. } => method != "notifications/cancelled",
            Message::Response { .. } => true,
        }
    }

    /// A malformed response or notification is answered by nobody. How many answers have no id.
    fn owe_malformed(&mut self, bad: &Malformed) -> usize {
        if bad.is_response || bad.is_notification {
            return 0;
        }
        self.owe(bad.id.as_ref());
        usize::from(bad.id.as_ref().is_none_or(|it| *it == Id::Null))
    }

    fn owe(&mut self, id: Option<&Id>) {
        *self.owed.entry(id.unwrap_or(&Id::Null).to_string()).or_default() += 1;
    }

    fn finish(&mut self) {
        if let Some(call) = self.calls.pop_front() {
            self.handle(Input::Finished { call, outcome: Ok(Json::empty_object()) });
        }
    }

    fn handle(&mut self, input: Input) {
        self.server.handle(input, self.now);
        while let Some(output) = self.server.poll() {
            match output {
                Output::Call(call) => self.calls.push_back(call.key),
                Output::Abandon(key) => self.calls.retain(|it| *it != key),
                Output::Send(outgoing, _) => self.sent(&outgoing),
                _ => {}
            }
        }
    }

    fn sent(&mut self, outgoing: &Outgoing) {
        let mut text = Vec::new();
        outgoing.write(&mut text);
        let messages = match outgoing {
            Outgoing::One(message) => {
                let mut read = message.clone();
                // An error about nothing in particular has no id when it is read.
                if let Message::Response { id: id @ Some(Id::Null), outcome: Err(_) } = &mut read {
                    *id = None;
                }
                let is_nameless = matches!(read, Message::Response { id: None, .. });
                self.nameless += usize::from(is_nameless);
                assert_eq!(Incoming::parse(&text), Incoming::One(read));
                std::slice::from_ref(message)
            }
            Outgoing::Batch(messages) => {
                assert!(!messages.is_empty(), "an empty batch is no answer");
                assert!(matches!(Incoming::parse(&text), Incoming::Batch(_)));
                messages
            }
        };
        for message in messages {
            if let Message::Response { id, .. } = message {
                let id = id.as_ref().unwrap_or(&Id::Null);
                *self.answered.entry(id.to_string()).or_default() += 1;
            }
        }
    }
}

const MOST_LINES: usize = 200;
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
static CONFIG: LazyLock<Arc<Config>> = LazyLock::new(|| {
    let mut config = Config::new(Implementation::new("fuzz", "1.0"));
    config.capabilities.tools = Some(ListChanged::new(true));
    config.capabilities.prompts = Some(ListChanged::new(true));
    config.capabilities.logging = true;
    config.bounds.in_flight = 4;
    Arc::new(config)
});
