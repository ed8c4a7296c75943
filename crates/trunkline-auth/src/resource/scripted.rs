//! A scripted network: answers by URL, a test clock, and a record of requests.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::fetch::{Answer, Ask, Fetch, FetchError, Pending};

/// The scripted network.
pub(super) struct Script(Mutex<Network>);

struct Network {
    now: SystemTime,
    answers: HashMap<String, Answer>,
    asked: Vec<Ask>,
    is_held: bool,
}

impl Script {
    pub(super) fn new() -> Arc<Self> {
        let now = UNIX_EPOCH + Duration::from_secs(START);
        let (answers, asked) = (HashMap::new(), Vec::new());
        Arc::new(Self(Mutex::new(Network { now, answers, asked, is_held: false })))
    }

    /// From now on `url` answers with this.
    pub(super) fn at(&self, url: &str, status: u16, body: impl ToString) {
        let answer = Answer::new(status, body.to_string());
        self.0.lock().unwrap().answers.insert(url.to_owned(), answer);
    }

    /// From now on `url` does not answer.
    pub(super) fn down(&self, url: &str) {
        self.0.lock().unwrap().answers.remove(url);
    }

    /// Advances the clock.
    pub(super) fn wait(&self, seconds: u64) {
        self.0.lock().unwrap().now += Duration::from_secs(seconds);
    }

    /// Sets the clock back.
    pub(super) fn turn_back(&self, seconds: u64) {
        self.0.lock().unwrap().now -= Duration::from_secs(seconds);
    }

    /// While held, no answer arrives.
    pub(super) fn hold(&self, is_held: bool) {
        self.0.lock().unwrap().is_held = is_held;
    }

    /// The requests since the last call, in short.
    pub(super) fn asked(&self) -> Vec<String> {
        self.requests().iter().map(|it| format!("{} {}", it.method, it.url)).collect()
    }

    /// The requests since the last call.
    pub(super) fn requests(&self) -> Vec<Ask> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }
}

impl Fetch for Script {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        let url = ask.url.clone();
        self.0.lock().unwrap().asked.push(ask);
        Box::pin(poll_fn(move |_| {
            let world = self.0.lock().unwrap();
            if world.is_held {
                return Poll::Pending;
            }
            let nobody = || FetchError::Failed("Nobody is there.".to_owned());
            Poll::Ready(world.answers.get(&url).cloned().ok_or_else(nobody))
        }))
    }

    fn now(&self) -> SystemTime {
        self.0.lock().unwrap().now
    }
}

/// The time at which every script begins, in seconds since 1970.
pub(super) const START: u64 = 1_000_000;

/// The result of a future that waits for nothing but the script.
pub(super) fn block_on<T>(task: impl Future<Output = T>) -> T {
    let mut task = pin!(task);
    for _ in 0..100 {
        if let Poll::Ready(out) = task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return out;
        }
    }
    panic!("it waits for something that never happens");
}
