//! Requests of many clients → the lines of one child, and its lines → their answers.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{Method, Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::Notify;

use crate::envelope::{Envelope, digits, with_id};
use crate::{json, status, whole};

/// The child and the calls it has not answered.
pub struct Child {
    shared: Arc<Shared>,
    _process: tokio::process::Child,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    has_output: Notify,
}

#[derive(Default)]
struct State {
    /// What the child has yet to be written: many calls go out in one write.
    output: Vec<u8>,
    /// Whoever waits for an answer, by the id that the child knows the call by.
    slots: Vec<Slot>,
    free: VecDeque<usize>,
}

#[derive(Default)]
enum Slot {
    #[default]
    Free,
    Waiting(Option<std::task::Waker>),
    Answered(Vec<u8>),
}

impl Child {
    pub fn start(program: &str, args: &[String]) -> io::Result<Child> {
        let mut process = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let missing = || io::Error::other("the child has no pipes");
        let stdin = stdin.ok_or_else(missing)?.into_owned_fd()?;
        let stdout = stdout.ok_or_else(missing)?.into_owned_fd()?;
        let shared = Arc::new(Shared::default());
        tokio::spawn(write(pipe::Sender::from_owned_fd(stdin)?, shared.clone()));
        tokio::spawn(read(pipe::Receiver::from_owned_fd(stdout)?, shared.clone()));
        Ok(Child { shared, _process: process })
    }
}

/// Answers one request of a client.
pub async fn forward(request: Request<Incoming>, child: &Child) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        return status(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Ok(body) = whole(request.into_body()).await else {
        return status(StatusCode::BAD_REQUEST);
    };
    let Some(envelope) = Envelope::read(&body) else { return status(StatusCode::BAD_REQUEST) };
    let Some(id) = envelope.id() else {
        let mut state = child.shared.state();
        state.output.extend_from_slice(&body);
        state.output.push(b'\n');
        drop(state);
        child.shared.has_output.notify_one();
        return status(StatusCode::ACCEPTED);
    };
    let number = child.shared.call(&body, id);
    let line = std::future::poll_fn(|cx| {
        let mut state = child.shared.state();
        let slot = &mut state.slots[number];
        if let Slot::Answered(line) = slot {
            let line = std::mem::take(line);
            *slot = Slot::Free;
            state.free.push_back(number);
            return Poll::Ready(line);
        }
        *slot = Slot::Waiting(Some(cx.waker().clone()));
        Poll::Pending
    })
    .await;
    let Some(theirs) = Envelope::read(&line).and_then(|answer| answer.id()) else {
        return status(StatusCode::BAD_GATEWAY);
    };
    let mut answer = Vec::new();
    with_id(&mut answer, &line, theirs, id.as_bytes());
    let mut response = json(answer);
    if envelope.is_initialize() {
        response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("1"));
    }
    response
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }

    /// Takes a number for the call and puts it among what is to be written.
    fn call(&self, message: &[u8], id: &str) -> usize {
        let mut state = self.state();
        let number = state.free.pop_front().unwrap_or_else(|| {
            state.slots.push(Slot::Free);
            state.slots.len() - 1
        });
        state.slots[number] = Slot::Waiting(None);
        with_id(&mut state.output, message, id, digits(number as u64, &mut [0; 20]));
        state.output.push(b'\n');
        drop(state);
        self.has_output.notify_one();
        number
    }

    fn answer(&self, line: &[u8]) {
        let number = Envelope::read(line).and_then(|answer| answer.id()?.parse::<usize>().ok());
        let mut state = self.state();
        let Some(slot) = number.and_then(|number| state.slots.get_mut(number)) else { return };
        if let Slot::Waiting(waker) = std::mem::replace(slot, Slot::Answered(line.to_vec())) {
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

async fn write(mut stdin: pipe::Sender, shared: Arc<Shared>) {
    let mut batch = Vec::new();
    loop {
        shared.has_output.notified().await;
        std::mem::swap(&mut batch, &mut shared.state().output);
        if stdin.write_all(&batch).await.is_err() {
            return;
        }
        batch.clear();
    }
}

async fn read(mut stdout: pipe::Receiver, shared: Arc<Shared>) {
    let mut buffer = Vec::with_capacity(BUFFER);
    // Up to here there is no end of a line.
    let mut searched = 0;
    while stdout.read_buf(&mut buffer).await.is_ok_and(|count| count > 0) {
        let mut done = 0;
        while let Some(end) = memchr::memchr(b'\n', &buffer[searched..]) {
            shared.answer(&buffer[done..searched + end]);
            done = searched + end + 1;
            searched = done;
        }
        buffer.drain(..done);
        searched = buffer.len();
        if buffer.capacity() - buffer.len() < BUFFER / 2 {
            buffer.reserve(BUFFER);
        }
    }
}

const BUFFER: usize = 64 * 1024;
