//! A running server and an amount of calls → how many it answered, how fast, at what cost.

use std::io::{ErrorKind, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::options::Mode;
use super::server::Server;
use crate::amount::Amount;
use crate::calls::Calls;
use crate::measured::Measured;
use crate::process::own_cpu;

pub fn run(
    server: &mut Server,
    calls: &mut Calls,
    mode: Mode,
    depth: usize,
    amount: Amount,
) -> Result<Measured, String> {
    let mut latencies = Vec::with_capacity(if mode == Mode::Sequential { 1 << 16 } else { 0 });
    let (server_before, driver_before, start) = (server.process.cpu()?, own_cpu(), Instant::now());
    let answered = match mode {
        Mode::Sequential => sequential(server, calls, start, amount, &mut latencies)?,
        Mode::Pipelined => {
            // The driver must read while the server is not reading, or both wait for ever.
            set_nonblocking(server, true)?;
            let answered = pipelined(server, calls, start, amount, depth)?;
            set_nonblocking(server, false)?;
            answered
        }
    };
    let wall = start.elapsed();
    Ok(Measured {
        calls: answered,
        wall,
        server_cpu: server.process.cpu()?.saturating_sub(server_before),
        driver_cpu: own_cpu().saturating_sub(driver_before),
        latencies,
    })
}

fn sequential(
    server: &mut Server,
    calls: &mut Calls,
    start: Instant,
    amount: Amount,
    latencies: &mut Vec<Duration>,
) -> Result<u64, String> {
    let mut done = 0;
    let mut now = start;
    while amount.wants_more(done, now - start) {
        let sent = Instant::now();
        let (id, line) = calls.next();
        server.stdin.write_all(line).map_err(unwritable)?;
        let answered = loop {
            let line = server.lines.next()?;
            now = Instant::now();
            if let Some(answered) = calls.answered(line)? {
                break answered;
            }
        };
        if answered != id {
            return Err(format!("it answered {answered} when only {id} was asked."));
        }
        latencies.push(now - sent);
        done += 1;
    }
    Ok(done)
}

/// Keeps `depth` calls in flight. Answers may come in any order, but each exactly once.
fn pipelined(
    server: &mut Server,
    calls: &mut Calls,
    start: Instant,
    amount: Amount,
    depth: usize,
) -> Result<u64, String> {
    let (mut sent, mut done) = (0, 0);
    let mut first_id = None;
    let mut is_answered: Vec<bool> = Vec::new();
    let mut unsent: Vec<u8> = Vec::new();
    let mut written = 0;
    loop {
        // A short batch at a time: 64 long calls are more than the pipe and the caches hold.
        loop {
            if unsent.is_empty() {
                while unsent.len() < BATCH
                    && sent - done < depth as u64
                    && amount.wants_more(sent, start.elapsed())
                {
                    let (id, line) = calls.next();
                    first_id.get_or_insert(id);
                    unsent.extend_from_slice(line);
                    is_answered.push(false);
                    sent += 1;
                }
            }
            written += write_some(server, &unsent[written..])?;
            if written < unsent.len() {
                break;
            }
            written = 0;
            if unsent.is_empty() {
                break;
            }
            unsent.clear();
        }
        if sent == done {
            return Ok(done);
        }
        if !wait(server, !unsent.is_empty())? {
            continue;
        }
        server.lines.fill()?;
        while let Some(line) = server.lines.buffered() {
            let Some(id) = calls.answered(line)? else { continue };
            let index = id.wrapping_sub(first_id.unwrap_or(id)) as usize;
            match is_answered.get_mut(index) {
                Some(seen @ false) => *seen = true,
                Some(true) => return Err(format!("it answered {id} twice.")),
                None => return Err(format!("it answered {id}, which was never asked.")),
            }
            done += 1;
        }
    }
}

fn write_some(server: &mut Server, bytes: &[u8]) -> Result<usize, String> {
    if bytes.is_empty() {
        return Ok(0);
    }
    match server.stdin.write(bytes) {
        Ok(written) => Ok(written),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(unwritable(error)),
    }
}

/// Waits until the server has written, or has room when there is more to send; true when it has written.
fn wait(server: &Server, has_more: bool) -> Result<bool, String> {
    let mut fds = [
        PollFd::new(&server.lines.pipe, PollFlags::IN),
        PollFd::new(&server.stdin, PollFlags::OUT),
    ];
    let watched = if has_more { &mut fds[..] } else { &mut fds[..1] };
    poll(watched, None).map_err(|error| format!("its pipes cannot be waited for: {error}."))?;
    Ok(!fds[0].revents().is_empty())
}

fn set_nonblocking(server: &Server, nonblocking: bool) -> Result<(), String> {
    let set = || {
        let mut flags = fcntl_getfl(&server.stdin)?;
        flags.set(OFlags::NONBLOCK, nonblocking);
        fcntl_setfl(&server.stdin, flags)
    };
    set().map_err(|error| format!("its stdin cannot be switched: {error}."))
}

fn unwritable(error: std::io::Error) -> String {
    format!("its stdin cannot be written: {error}.")
}

const BATCH: usize = 128 * 1024;
