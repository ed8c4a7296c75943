//! What a client says, line by line: every request gets one answer and no more, and what we say can
//! be read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use trunkline_proto::server::{Config, Server};
use trunkline_proto::{CallKey, Change, Conversation, Input, Outgoing, Output};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Incoming, Message};
use trunkline_wire::model::{Implementation, ListChanged};

/// Lines of messages. A line that begins with `!` is something that happens here: `!f` a handler
/// finishes, `!t` time passes, `!c` a list changes.
pub(crate) fn check(data: &[u8]) {
    let mut it = Talk {
        server: Server::new(Arc::clone(&CONFIG)),
        now: *BEGIN,
        calls: VecDeque::new(),
        owed: BTreeMap::new(),
        answered: BTreeMap::new(),
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
            line => {
                let incoming = Incoming::parse(line);
                match &incoming {
                    Incoming::One(Message::Request { id, .. }) => it.owe(id),
                    Incoming::One(Message::Notification { method, .. }) => {
                        is_plain &= method != "notifications/cancelled";
                    }
                    Incoming::One(Message::Response { .. }) => {}
                    Incoming::Bad(bad) => bad.id.iter().for_each(|id| it.owe(id)),
                    Incoming::Batch(items) => {
                        is_plain = false;
                        for item in items {
                            match item {
                                Ok(Message::Request { id, .. }) => it.owe(id),
                                Err(bad) => bad.id.iter().for_each(|id| it.owe(id)),
                                Ok(_) => {}
                            }
                        }
                    }
                }
                if let Incoming::One(Message::Request { id, method, .. }) = &incoming {
                    // A subscription is answered when it ends.
                    is_plain &= method != "subscriptions/listen" && *id != Id::Null;
                }
                // A malformed response or notification is answered by nobody.
                is_plain &= !matches!(incoming, Incoming::Bad(_));
                it.handle(Input::received(incoming));
            }
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
}

impl Talk {
    fn owe(&mut self, id: &Id) {
        *self.owed.entry(id.to_string()).or_default() += 1;
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
                // An answer to nobody in particular has no id when it is read.
                if let Message::Response { id, .. } = &mut read
                    && *id == Some(Id::Null)
                {
                    *id = None;
                }
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
            // An error about what nobody could read is owed to no request.
            if let Message::Response { id: Some(id), .. } = message
                && *id != Id::Null
            {
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
