//! Questions and log messages that name no call, and the call that each belongs to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trunkline_proto::client::{Client, Config, Start};
use trunkline_proto::{
    Ask, Attached, CallError, Conversation, Input, Output, RequestStream, Ticket,
};
use trunkline_wire::jsonrpc::{Incoming, Object};
use trunkline_wire::model::{ClientCapabilities, Implementation, RootsCapability};
use trunkline_wire::revision::{Revision, Revisions};

use crate::transcript::{client, start};

const PIPE: RequestStream = RequestStream(0);

/// A client of 2025-11-25 whose calls carry their callers' names; its first call has the id 2.
struct Play {
    core: Client,
    now: Instant,
}

impl Play {
    fn new() -> Self {
        Self::with(Client::new)
    }

    fn over_http() -> Self {
        Self::with(|config, now| Client::over_http(config, Start::Initialize, now))
    }

    fn with(client: impl FnOnce(Arc<Config>, Instant) -> Client) -> Self {
        let mut config = Config::new(Implementation::new("cli", "1"));
        config.revisions = Revisions::only(Revision::V2025_11_25);
        config.capabilities = ClientCapabilities::new().roots(RootsCapability::new(false));
        let now = start();
        let mut play = Self { core: client(Arc::new(config), now), now };
        let offers = r#"{"tools":{},"logging":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#;
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{offers},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
        );
        play.hear(&hello, PIPE);
        assert!(play.core.opened().is_some());
        play
    }

    fn ask(&mut self, ticket: u64, caller: &'static str, method: &'static str, params: &str) {
        let ask = Ask {
            ticket: Ticket(ticket),
            during: None,
            method: method.into(),
            params: Object::parse(params).expect("an object"),
            wants_progress: false,
            timing: None,
            attached: Attached::new(caller),
            relays: false,
        };
        self.core.handle(Input::Ask(ask), self.now);
        let sent = std::iter::from_fn(|| self.core.poll()).count();
        assert_eq!(sent, 1, "`{method}` goes out");
    }

    fn call_tool(&mut self, ticket: u64, caller: &'static str) {
        self.ask(ticket, caller, "tools/call", r#"{"name":"t"}"#);
    }

    fn hear(&mut self, text: &str, via: RequestStream) -> Vec<Output> {
        self.core.handle(Input::Received(Incoming::parse(text.as_bytes()), via), self.now);
        std::iter::from_fn(|| self.core.poll()).collect()
    }

    /// Which caller a `roots/list` on this stream is attributed to; it is answered at once.
    fn whose(&mut self, via: RequestStream, params: &str) -> Option<&'static str> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":"q","method":"roots/list"{params}}}"#);
        let outputs = self.hear(&text, via);
        let [Output::Call(call)] = &outputs[..] else { panic!("{outputs:?}") };
        let outcome = Ok(trunkline_wire::json::Json::parse(r#"{"roots":[]}"#).expect("JSON"));
        self.core.handle(Input::Finished { call: call.key, outcome }, self.now);
        while self.core.poll().is_some() {}
        call.attached.get::<&str>().copied()
    }

    fn log_for(&mut self, via: RequestStream) -> Option<Ticket> {
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
        let outputs = self.hear(log, via);
        let [Output::Heard(heard)] = &outputs[..] else { panic!("{outputs:?}") };
        heard.ticket
    }

    fn cancel(&mut self, ticket: u64) {
        self.core.handle(Input::Cancel(Ticket(ticket)), self.now);
        while self.core.poll().is_some() {}
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.core.handle(Input::Tick, self.now);
    }
}

#[test]
fn with_one_call_open_there_is_no_doubt_with_two_there_is() {
    let mut play = Play::new();
    assert_eq!(play.whose(PIPE, ""), None, "nobody has called");
    play.call_tool(7, "alice");
    assert_eq!((play.whose(PIPE, ""), play.log_for(PIPE)), (Some("alice"), Some(Ticket(7))));
    play.call_tool(8, "bob");
    assert_eq!((play.whose(PIPE, ""), play.log_for(PIPE)), (None, None));
    play.hear(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#, PIPE);
    assert_eq!((play.whose(PIPE, ""), play.log_for(PIPE)), (Some("bob"), Some(Ticket(8))));
}

#[test]
fn messages_on_the_stream_of_a_post_belong_to_that_call() {
    let mut play = Play::over_http();
    play.call_tool(7, "alice");
    play.call_tool(8, "bob");
    assert_eq!(
        (play.whose(RequestStream(2), ""), play.log_for(RequestStream(2))),
        (Some("alice"), Some(Ticket(7)))
    );
    assert_eq!(
        (play.whose(RequestStream(3), ""), play.log_for(RequestStream(3))),
        (Some("bob"), Some(Ticket(8)))
    );
    assert_eq!((play.whose(PIPE, ""), play.log_for(PIPE)), (None, None), "on the stream of a GET");
    // A stream that stays open after its answer belongs to no other call.
    play.hear(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#, RequestStream(2));
    assert_eq!((play.whose(RequestStream(2), ""), play.log_for(RequestStream(2))), (None, None));
}

#[test]
fn a_call_that_was_given_up_may_still_ask_for_a_while() {
    type GiveUp = fn(&mut Play);
    let ways: [(GiveUp, &str); 2] = [
        (|play| play.cancel(7), "cancelled"),
        (|play| play.core.undelivered(2, CallError::Lost("x".to_owned()), play.now), "lost"),
    ];
    for (give_up, how) in ways {
        let mut play = Play::over_http();
        play.call_tool(7, "alice");
        give_up(&mut play);
        while play.core.poll().is_some() {}
        play.call_tool(8, "bob");
        assert_eq!(play.whose(PIPE, ""), None, "{how}: it may be alice's");
        assert_eq!(play.whose(RequestStream(3), ""), Some("bob"), "{how}: it came on bob's stream");
        play.wait(Duration::from_secs(11));
        assert_eq!(play.whose(PIPE, ""), Some("bob"), "{how}");
    }
}

#[test]
fn a_question_of_a_task_belongs_to_the_call_that_waits_for_the_task() {
    let of = |task: &str| {
        format!(
            r#","params":{{"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"{task}"}}}}}}"#
        )
    };
    let mut play = Play::new();
    play.call_tool(7, "alice");
    assert_eq!(play.whose(PIPE, &of("t")), None, "the task's call was answered long ago");
    play.ask(8, "bob", "tasks/result", r#"{"taskId":"t"}"#);
    assert_eq!(play.whose(PIPE, &of("t")), Some("bob"));
    assert_eq!(play.whose(PIPE, &of("u")), None);
    assert_eq!(play.whose(PIPE, ""), None);
}

#[test]
fn a_log_message_of_2026_07_28_is_about_the_call_and_not_the_subscription() {
    client().opened(Revision::V2026_07_28).check(
        r#"
        ask 1 subscriptions/listen {"notifications":{"toolsListChanged":true}}
        < {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":"*"}
        > {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"early"}}
        heard notifications/message {"level":"info","data":"early"}
        ask 5 tools/call {"name":"add"}
        < {"jsonrpc":"2.0","id":3,"method":"tools/call","params":"*"}
        > {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}
        heard notifications/message for 5 {"level":"info","data":"x"}
        "#,
    );
}
