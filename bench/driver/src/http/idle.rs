//! Numbers → sessions, streams, calls and questions that are there and do nothing while others call.

use std::io::Write;

use super::exchange::{Connection, Endpoint, NO_SESSION};
use crate::calls::{Calls, PARK, QUESTION, Revision};
use crate::words::number;

/// Who is there without calling; all of them have sessions of 2025-11-25 but where it says otherwise.
#[derive(Clone, Copy, Default)]
pub struct Idle {
    /// All on one connection.
    pub sessions: usize,
    /// Sessions with a connection of their own.
    pub connections: usize,
    /// The same, and a GET stream open on it.
    pub streams: usize,
    /// The same, and a call on it that is not answered.
    pub calls: usize,
    /// The same, and a call that has asked something.
    pub questions: usize,
    /// Connections without a session, and a call of 2026-07-28 on each that is not answered.
    pub stateless_calls: usize,
}

impl Idle {
    /// Takes an option that says how many there are of one kind; false if it is another.
    pub fn takes(&mut self, option: &str, value: &str) -> Result<bool, String> {
        let count = match option {
            "--sessions" => &mut self.sessions,
            "--idle" => &mut self.connections,
            "--streams" => &mut self.streams,
            "--parked" => &mut self.calls,
            "--questions" => &mut self.questions,
            "--parked-stateless" => &mut self.stateless_calls,
            _ => return Ok(false),
        };
        *count = number(option, value)?;
        Ok(true)
    }

    /// Opens them; the connections are theirs until they are dropped.
    pub fn open(self, endpoint: &Endpoint, calls: &Calls) -> Result<Vec<Connection>, String> {
        let greeting = Calls::new(Revision::V2025_11_25, &calls.tool, 1);
        let mut held = Vec::new();
        if self.sessions > 0 {
            let mut common = endpoint.connect()?;
            for _ in 0..self.sessions {
                common.greet(&greeting)?.ok_or(NO_SESSION)?;
            }
            held.push(common);
        }
        for _ in 0..self.connections {
            let mut own = endpoint.connect()?;
            own.greet(&greeting)?.ok_or(NO_SESSION)?;
            held.push(own);
        }
        for _ in 0..self.streams {
            held.push(endpoint.stream(&greeting)?);
        }
        for _ in 0..self.calls {
            held.push(begin(endpoint, &greeting, PARK)?.0);
        }
        let stateless = Calls::new(Revision::V2026_07_28, &calls.tool, 1);
        for _ in 0..self.stateless_calls {
            held.push(begin(endpoint, &stateless, PARK)?.0);
        }
        for _ in 0..self.questions {
            let (mut own, request) = begin(endpoint, &greeting, QUESTION)?;
            own.question(&request)?;
            held.push(own);
        }
        Ok(held)
    }
}

/// A connection, with a session if its revision has them, and a call of its own; a call that parks is sent, one that asks
/// is yet to be.
fn begin(
    endpoint: &Endpoint,
    greeting: &Calls,
    tool: &str,
) -> Result<(Connection, Vec<u8>), String> {
    // A gateway has a name for the server before it.
    let calls = Calls::new(greeting.revision, &greeting.tool.replace("echo", tool), 100);
    let mut own = endpoint.connect()?;
    let session = match calls.revision {
        Revision::V2025_11_25 => Some(own.greet(&calls)?.ok_or(NO_SESSION)?),
        Revision::V2026_07_28 => None,
    };
    let (body, _) = calls.template();
    let (revision, name) = (calls.revision, Some(calls.tool.as_str()));
    let request = own.post(revision, "tools/call", name, session.as_deref(), body);
    if tool == PARK {
        own.stream
            .write_all(&request)
            .map_err(|error| format!("the connection cannot be written: {error}."))?;
    }
    Ok((own, request))
}
