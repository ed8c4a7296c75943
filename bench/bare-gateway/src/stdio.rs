//! Requests of many clients → the lines of one child, and its lines → their answers.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use bytes::BytesMut;
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{Method, Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::Notify;

use crate::envelope::{Envelope, LONG, Parts, digits, with_id};
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
    output: Output,
    /// Whoever waits for an answer, by the id that the child knows the call by.
    slots: Vec<Slot>,
    free: VecDeque<usize>,
}

/// What the child has yet to be written.
#[derive(Default)]
struct Output {
    /// Many short calls go out in one write.
    short: Vec<u8>,
    /// The parts of the long ones, line by line.
    long: Vec<Bytes>,
}

#[derive(Default)]
enum Slot {
    #[default]
    Free,
    /// With the id that the client knows the call by.
    Waiting(Bytes, Option<Waker>),
    Answered(Parts),
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
pub async fn forward(request: Request<Incoming>, child: &Child) -> Response<Parts> {
    if request.method() != Method::POST {
        return status(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Ok(body) = whole(request.into_body()).await else {
        return status(StatusCode::BAD_REQUEST);
    };
    let Some(envelope) = Envelope::read(&body) else { return status(StatusCode::BAD_REQUEST) };
    let Some(id) = envelope.id() else {
        let mut state = child.shared.state();
        state.output.short.extend_from_slice(&body);
        state.output.short.push(b'\n');
        drop(state);
        child.shared.has_output.notify_one();
        return status(StatusCode::ACCEPTED);
    };
    let is_initialize = envelope.is_initialize();
    let number = child.shared.call(&body, id);
    drop(body);
    let answer = std::future::poll_fn(|cx| {
        let mut state = child.shared.state();
        match &mut state.slots[number] {
            Slot::Waiting(_, waker) => *waker = Some(cx.waker().clone()),
            slot => {
                let Slot::Answered(answer) = std::mem::take(slot) else {
                    return Poll::Ready(Parts::default());
                };
                state.free.push_back(number);
                return Poll::Ready(answer);
            }
        }
        Poll::Pending
    });
    let mut response = json(answer.await);
    if is_initialize {
        response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("1"));
    }
    response
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }

    /// Takes a number for the call and puts it among what is to be written.
    fn call(&self, message: &Bytes, id: &str) -> usize {
        let is_long = message.len() >= LONG;
        // A part of a long message would keep all of it.
        let own = match is_long {
            true => Bytes::copy_from_slice(id.as_bytes()),
            false => message.slice_ref(id.as_bytes()),
        };
        let mut state = self.state();
        let number = state.free.pop_front().unwrap_or_else(|| {
            state.slots.push(Slot::Free);
            state.slots.len() - 1
        });
        state.slots[number] = Slot::Waiting(own, None);
        let mut buffer = [0; 20];
        let digits = digits(number as u64, &mut buffer);
        if is_long {
            state.output.long.extend(Parts::with_id(message, id, digits).ended(b"\n"));
        } else {
            with_id(&mut state.output.short, message, id, digits);
            state.output.short.push(b'\n');
        }
        drop(state);
        self.has_output.notify_one();
        number
    }

    fn answer(&self, line: &Bytes) {
        let Some(theirs) = Envelope::read(line).and_then(|answer| answer.id()) else { return };
        let mut state = self.state();
        let number = theirs.parse::<usize>().ok();
        let Some(slot) = number.and_then(|number| state.slots.get_mut(number)) else { return };
        let Slot::Waiting(ours, waker) = slot else { return };
        let (answer, waker) = (Parts::with_id(line, theirs, ours), waker.take());
        *slot = Slot::Answered(answer);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

async fn write(mut stdin: pipe::Sender, shared: Arc<Shared>) {
    let mut batch = Output::default();
    loop {
        shared.has_output.notified().await;
        std::mem::swap(&mut batch, &mut shared.state().output);
        if stdin.write_all(&batch.short).await.is_err() {
            return;
        }
        batch.short.clear();
        for part in batch.long.drain(..) {
            if stdin.write_all(&part).await.is_err() {
                return;
            }
        }
    }
}

async fn read(mut stdout: pipe::Receiver, shared: Arc<Shared>) {
    let mut buffer = BytesMut::with_capacity(BUFFER);
    // Up to here there is no end of a line.
    let mut searched = 0;
    while stdout.read_buf(&mut buffer).await.is_ok_and(|count| count > 0) {
        while let Some(end) = memchr::memchr(b'\n', &buffer[searched..]) {
            // Without its end, which a client needs not be sent.
            let line = buffer.split_to(searched + end + 1).freeze();
            shared.answer(&line.slice(..line.len() - 1));
            searched = 0;
        }
        searched = buffer.len();
        if buffer.capacity() - buffer.len() < BUFFER / 2 {
            buffer.reserve(BUFFER);
        }
    }
}

const BUFFER: usize = 64 * 1024;
