//! Connections that each have one call in flight → how many were answered, how fast, at what cost.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::exchange::Endpoint;
use super::idle::Idle;
use super::response::Response;
use crate::amount::Amount;
use crate::calls::{Calls, ID_DIGITS, Revision, patch};
use crate::measured::Measured;
use crate::process::own_cpu;
use crate::words::number;

/// How the answers came.
pub struct Replies {
    pub are_streams: bool,
    /// The length of the last one.
    pub bytes: usize,
}

/// What is asked of the connections.
#[derive(Clone, Copy)]
pub struct Shape {
    pub connections: usize,
    pub wants_progress: bool,
    /// Whether to print the first request and response.
    pub shows: bool,
    /// Who is there beside those that call.
    pub idle: Idle,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { connections: 1, wants_progress: false, shows: false, idle: Idle::default() }
    }
}

impl Shape {
    /// Takes an option that says who connects; false if it is another.
    pub fn takes(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--connections" => self.connections = number(option, value)?,
            "--show" => self.shows = value == "yes",
            _ => return self.idle.takes(option, value),
        }
        Ok(true)
    }
}

/// The connections, ready to call.
pub struct Load {
    calls: Calls,
    wants_progress: bool,
    connections: Vec<Connection>,
    epoll: OwnedFd,
    _idle: Vec<super::exchange::Connection>,
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    /// Where the digits of the id stand in `request`.
    ids_at: Vec<usize>,
    written: usize,
    id: u64,
    sent: Instant,
    inbox: Vec<u8>,
    received: usize,
    response: Response,
    waits_for_room: bool,
}

impl Load {
    pub fn connect(endpoint: &Endpoint, calls: Calls, shape: Shape) -> Result<Load, String> {
        Load::connect_with(endpoint, None, calls, shape)
    }

    /// The same with sessions that another process opened.
    pub fn connect_with(
        endpoint: &Endpoint,
        opener: Option<&Endpoint>,
        calls: Calls,
        shape: Shape,
    ) -> Result<Load, String> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(no_epoll)?;
        let idle = shape.idle.open(endpoint, &calls)?;
        let mut connections = Vec::new();
        for index in 0..shape.connections {
            let mut connection = endpoint.connect()?;
            let session = match calls.revision {
                Revision::V2025_11_25 => match opener {
                    Some(opener) => opener.connect()?.greet(&calls)?,
                    None => connection.greet(&calls)?,
                },
                // Nothing needs to be said first, but one question shows whom we talk to.
                Revision::V2026_07_28 if index == 0 => connection.greet(&calls)?,
                Revision::V2026_07_28 => None,
            };
            let (body, ids_at) = calls.template();
            let request = connection.post(
                calls.revision,
                "tools/call",
                Some(&calls.tool),
                session.as_deref(),
                body,
            );
            if shape.shows && index == 0 {
                let (_, response) = connection.exchange(&request)?;
                for bytes in [&request, &response] {
                    eprintln!("{}\n", String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]));
                }
            }
            let head = request.len() - body.len();
            let stream = connection.stream;
            stream.set_nonblocking(true).map_err(unreachable)?;
            epoll::add(&epoll, &stream, EventData::new_u64(index as u64), EventFlags::IN)
                .map_err(no_epoll)?;
            connections.push(Connection {
                stream,
                request,
                ids_at: ids_at.iter().map(|at| head + at).collect(),
                written: 0,
                id: 0,
                sent: Instant::now(),
                inbox: vec![0; body.len() + 64 * 1024],
                received: 0,
                response: Response::default(),
                waits_for_room: false,
            });
        }
        let wants_progress = shape.wants_progress;
        Ok(Load { calls, wants_progress, connections, epoll, _idle: idle })
    }

    /// Keeps one call in flight on every connection until there were enough, and waits for the last answers.
    /// `cpu` says what the server has used so far.
    pub fn run(
        &mut self,
        cpu: impl Fn() -> Result<Duration, String>,
        amount: Amount,
    ) -> Result<(Measured, Replies), String> {
        let mut latencies = Vec::with_capacity(1 << 18);
        let (server_before, driver_before, start) = (cpu()?, own_cpu(), Instant::now());
        let (mut begun, mut done) = (0, 0);
        let mut replies = Replies { are_streams: false, bytes: 0 };
        for index in 0..self.connections.len() {
            if amount.wants_more(begun, Duration::ZERO) {
                self.send(index, start)?;
                begun += 1;
            }
        }
        let mut events: Vec<Event> = Vec::with_capacity(256);
        while done < begun {
            self.wait(&mut events)?;
            for event in &events {
                // The fields of a packed structure are copied before they are looked at.
                let (flags, data) = (event.flags, event.data);
                let index = data.u64() as usize;
                if self.connections[index].waits_for_room {
                    self.flush(index)?;
                }
                if flags == EventFlags::OUT || !self.connections[index].receive()? {
                    continue;
                }
                let now = Instant::now();
                self.check(index)?;
                let connection = &self.connections[index];
                latencies.push(now - connection.sent);
                let are_streams = connection.response.is_stream;
                replies = Replies { are_streams, bytes: connection.received };
                done += 1;
                if amount.wants_more(begun, now - start) {
                    self.send(index, now)?;
                    begun += 1;
                }
            }
        }
        let measured = Measured {
            calls: done,
            wall: start.elapsed(),
            server_cpu: cpu()?.saturating_sub(server_before),
            driver_cpu: own_cpu().saturating_sub(driver_before),
            latencies,
        };
        Ok((measured, replies))
    }

    fn wait(&self, events: &mut Vec<Event>) -> Result<(), String> {
        events.clear();
        // A long text under callgrind takes its time.
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        let spare = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, spare, Some(&patience)).map_err(no_epoll)? {
            0 => Err("it was silent for a minute with answers still owed.".into()),
            _ => Ok(()),
        }
    }

    fn send(&mut self, index: usize, now: Instant) -> Result<(), String> {
        let connection = &mut self.connections[index];
        connection.id = self.calls.next_id();
        for at in &connection.ids_at {
            patch(&mut connection.request[*at..][..ID_DIGITS], connection.id);
        }
        connection.written = 0;
        connection.received = 0;
        connection.response.reset();
        connection.sent = now;
        self.flush(index)
    }

    /// Writes what is left of the request, and waits for room when the socket takes no more.
    fn flush(&mut self, index: usize) -> Result<(), String> {
        let connection = &mut self.connections[index];
        let mut is_full = false;
        while connection.written < connection.request.len() && !is_full {
            match connection.stream.write(&connection.request[connection.written..]) {
                Ok(count) => connection.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => is_full = true,
                Err(error) => return Err(unreachable(error)),
            }
        }
        if is_full != connection.waits_for_room {
            connection.waits_for_room = is_full;
            let flags = if is_full { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let data = EventData::new_u64(index as u64);
            epoll::modify(&self.epoll, &connection.stream, data, flags).map_err(no_epoll)?;
        }
        Ok(())
    }

    /// The answer must be to the call of this connection, with its text, after the progress it asked for.
    fn check(&self, index: usize) -> Result<(), String> {
        let Connection { response, inbox, received, id, .. } = &self.connections[index];
        let bytes = &inbox[..*received];
        let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(600)]).into_owned();
        if response.status != 200 {
            return Err(format!("it answered {}", shown()));
        }
        let (mut reports, mut answers) = (0, 0);
        response.messages(bytes, |message| {
            if self.wants_progress && answers == 0 && self.calls.is_progress(message, *id) {
                reports += 1;
                return Ok(());
            }
            match self.calls.answered(message)? {
                Some(answered) if answered == *id => answers += 1,
                Some(answered) => {
                    return Err(format!("it answered {answered} when {id} was asked."));
                }
                None => {}
            }
            Ok(())
        })?;
        if answers == 1 && reports == u32::from(self.wants_progress) {
            return Ok(());
        }
        Err(format!("it sent {reports} reports of progress and {answers} answers: {}", shown()))
    }
}

impl Connection {
    /// One read; true when the response is complete.
    fn receive(&mut self) -> Result<bool, String> {
        if self.received == self.inbox.len() {
            self.inbox.resize(self.inbox.len() * 2, 0);
        }
        match self.stream.read(&mut self.inbox[self.received..]) {
            Ok(0) => Err("it closed a connection with an answer still owed.".into()),
            Ok(count) => {
                self.received += count;
                self.response.advance(&self.inbox[..self.received])
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(unreachable(error)),
        }
    }
}

fn unreachable(error: std::io::Error) -> String {
    format!("a connection failed: {error}.")
}

fn no_epoll(error: rustix::io::Errno) -> String {
    format!("the connections cannot be waited for: {error}.")
}
