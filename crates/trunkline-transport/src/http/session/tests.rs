//! What a session does when its participants disconnect.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use trunkline_auth::tag::Tagger;
use trunkline_proto::HandlerEvent;
use trunkline_proto::http::streams::Read;
use trunkline_wire::json::Json;
use trunkline_wire::model::{Implementation, Progress};

use super::*;
use crate::conversation_handle::Request;
use crate::handler::Answer;

/// Reports progress `steps` times, then waits for a permit.
struct Gate {
    steps: u32,
    open: Arc<Semaphore>,
    done: Arc<Semaphore>,
}

impl Handler for Gate {
    fn call(&self, call: Call, handle: &ConversationHandle) -> Answer {
        let (handle, key, steps) = (handle.clone(), call.key, self.steps);
        let (open, done) = (Arc::clone(&self.open), Arc::clone(&self.done));
        Answer::later(async move {
            for step in 0..steps {
                handle.say(key, HandlerEvent::Progress(Progress::new(f64::from(step)))).await;
            }
            open.acquire().await.expect("nobody closes it").forget();
            done.add_permits(1);
            Ok(Json::empty_object())
        })
    }
}

struct Setting {
    session: Arc<Session<Gate>>,
    open: Arc<Semaphore>,
    done: Arc<Semaphore>,
    busy: Arc<AtomicUsize>,
}

impl Setting {
    async fn new(revision: &str, steps: u32, limits: &Limits) -> Self {
        let style = Style::Resumable { primed: false };
        let setting = Self::not_open(style, steps, limits);
        setting.post(&hello(revision)).await;
        assert!(setting.session.is_open());
        setting.session.begin();
        setting
    }

    /// A session over the two paths of 2024-11-05, and the reader of its one stream.
    async fn old(steps: u32) -> (Self, Reader) {
        let setting = Self::not_open(Style::Single, steps, &Limits::default());
        let reader = setting.session.attach();
        assert!(matches!(setting.post_old(&hello("2024-11-05")).await, Posted::Accepted));
        setting.session.begin();
        assert_eq!(setting.read(reader).matches("\"result\"").count(), 1);
        (setting, reader)
    }

    fn not_open(style: Style, steps: u32, limits: &Limits) -> Self {
        let (open, done) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let handler = Gate { steps, open: Arc::clone(&open), done: Arc::clone(&done) };
        let mut config = Config::new(Implementation::new("srv", "1"));
        config.capabilities.tools = Some(Default::default());
        let tags = Tagger::random().scope("x");
        let (config, handler) = (Arc::new(config), Arc::new(handler));
        let owner = Attached::default();
        let session = Session::new("x".into(), config, handler, style, tags, limits, owner);
        Self { session, open, done, busy: Arc::default() }
    }

    async fn post(&self, text: &str) -> Posted {
        let admitted = Admitted::new(&self.busy, None).0;
        self.session.post(Incoming::parse(text.as_bytes()), None, true, admitted, None).await
    }

    async fn post_old(&self, text: &str) -> Posted {
        let admitted = Admitted::new(&self.busy, None).0;
        self.session.post(Incoming::parse(text.as_bytes()), None, false, admitted, None).await
    }

    /// The events that the reader has not had.
    fn read(&self, reader: Reader) -> String {
        let mut out = Vec::new();
        self.session.read(reader, &mut Context::from_waker(Waker::noop()), &mut out);
        String::from_utf8(out).expect("events are text")
    }

    /// Waits for the next events.
    async fn next(&self, reader: Reader) -> String {
        let next = poll_fn(|cx| {
            let mut out = Vec::new();
            self.session.read(reader, cx, &mut out);
            if out.is_empty() { Poll::Pending } else { Poll::Ready(out) }
        });
        let next = timeout(Duration::from_secs(10), next).await.expect("something comes in time");
        String::from_utf8(next).expect("events are text")
    }

    async fn finished(&self, calls: u32) {
        self.open.add_permits(calls as usize);
        let done = timeout(Duration::from_secs(10), self.done.acquire_many(calls)).await;
        done.expect("every handler is done in time").expect("nobody closes it").forget();
    }
}

fn hello(revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"cli","version":"1"}}}}}}"#
    )
}

fn call(id: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"gate","_meta":{{"progressToken":{id}}}}}}}"#
    )
}

#[tokio::test]
async fn a_post_whose_client_disconnected_leaves_nothing() {
    let setting = Setting::new("2025-06-18", 0, &Limits::default()).await;
    for id in 1..=50 {
        let hung_up = timeout(Duration::ZERO, setting.post(&call(id))).await;
        assert!(hung_up.is_err(), "the gate is shut");
    }
    assert_eq!(setting.busy.load(Ordering::SeqCst), 50, "handlers count while they work");
    setting.finished(50).await;
    let state = setting.session.lock();
    assert_eq!((state.core.handlers.is_empty(), state.readers.len()), (true, 0));
    drop(state);
    assert_eq!(setting.busy.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_reader_that_disconnects_unblocks_waiting_senders() {
    let limits = Limits::default().unsent_bytes(300).queue(4);
    let setting = Setting::new("2025-06-18", 50, &limits).await;
    let Posted::Events(reader) = setting.post(&call(1)).await else {
        panic!("progress makes it a stream")
    };
    assert!(setting.session.is_congested());
    setting.session.detach(reader);
    setting.finished(1).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_events_of_its_own_does_not_wait_for_its_progress() {
    let setting = Setting::new("2025-06-18", 1, &Limits::default()).await;
    setting.open.add_permits(1);
    let began = now();
    let Posted::AllEvents(events) = setting.post(&call(1)).await else {
        panic!("progress makes it a stream, and the answer is there")
    };
    let events = String::from_utf8(events).expect("events are text");
    assert!(events.contains("notifications/progress") && events.contains("\"result\""), "{events}");
    assert_eq!(now(), began);
    // What was sent as one text can be resumed all the same.
    let first = events.lines().find_map(|it| it.strip_prefix("id: ")).expect("events have ids");
    let reader = setting.session.resume(first).expect("the answer comes after it");
    let again = setting.read(reader);
    assert!(again.contains("\"result\"") && events.ends_with(&again), "{again}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_on_the_one_stream_of_2024_waits_until_its_progress_has_arrived() {
    let (setting, reader) = Setting::old(1).await;
    setting.open.add_permits(1);
    let began = now();
    assert!(matches!(setting.post_old(&call(1)).await, Posted::Accepted));
    let progress = setting.next(reader).await;
    assert!(progress.contains("notifications/progress") && !progress.contains("\"result\""));
    // A server that shuts down still sends the answer, then ends the stream.
    setting.session.hang_up();
    let answer = setting.next(reader).await;
    assert!(answer.contains("\"result\""), "{answer}");
    assert!(now() - began >= Duration::from_millis(5));
    let mut out = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(setting.session.read(reader, &mut cx, &mut out), Read::End);
}

#[tokio::test]
async fn a_session_that_is_over_takes_nothing_in() {
    let setting = Setting::new("2025-06-18", 0, &Limits::default()).await;
    let waiting = timeout(Duration::ZERO, setting.post(&call(1))).await;
    assert!(waiting.is_err(), "the gate is shut");
    let now = Instant::now();
    assert!(!setting.session.sweep(Some(now), now), "a handler is at work");
    setting.finished(1).await;
    assert!(setting.session.sweep(Some(Instant::now()), now), "nothing is left to be done");
    assert!(matches!(setting.post(&call(2)).await, Posted::Gone));
}

#[tokio::test]
async fn a_question_that_was_given_up_leaves_nothing() {
    let setting = Setting::new("2025-06-18", 0, &Limits::default()).await;
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        let request = Request::new("roots/list", Default::default());
        let mut asking = Box::pin(setting.session.handle.ask(request));
        assert!(asking.as_mut().poll(&mut cx).is_pending(), "nobody has answered");
        assert_eq!(setting.session.lock().core.open_requests(), 1);
        drop(asking);
        assert_eq!(setting.session.lock().core.open_requests(), 0);
    }
}
