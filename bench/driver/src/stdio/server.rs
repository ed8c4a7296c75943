//! A command → a running stdio server with large pipes.

use std::io::Write;
use std::process::ChildStdin;
use std::time::Duration;

use rustix::pipe::fcntl_setpipe_size;

use super::lines::Lines;
use crate::process::{Cores, Process};

pub struct Server {
    pub stdin: ChildStdin,
    pub lines: Lines,
    pub pipe_bytes: usize,
    /// Whether driver and server each have a core to themselves.
    pub pinned: bool,
    pub process: Process,
}

impl Server {
    pub fn spawn(command: &[String], deadline: Duration) -> Result<Server, String> {
        let cores = Cores::two()?;
        let mut process = cores.spawn(command, deadline)?;
        let (stdin, stdout) = process.pipes();
        // The same for every server, so that the pipe is not what is measured.
        let resize = |error| format!("the pipes cannot be made {PIPE_BYTES} bytes large: {error}.");
        fcntl_setpipe_size(&stdin, PIPE_BYTES).map_err(resize)?;
        let pipe_bytes = fcntl_setpipe_size(&stdout, PIPE_BYTES).map_err(resize)?;
        let lines = Lines::new(stdout);
        Ok(Server { stdin, lines, pipe_bytes, pinned: cores.are_two(), process })
    }

    pub fn send(&mut self, message: &str) -> Result<(), String> {
        self.stdin
            .write_all(format!("{message}\n").as_bytes())
            .map_err(|error| format!("its stdin cannot be written: {error}."))
    }

    /// Ends the conversation as a client does, by closing stdin, and waits for a clean exit.
    pub fn finish(self) -> Result<(), String> {
        let Server { stdin, lines, process, .. } = self;
        drop(stdin);
        let status = process.wait()?;
        drop(lines);
        if status.success() {
            Ok(())
        } else {
            Err(format!("it ended with {status} after its stdin was closed."))
        }
    }
}

const PIPE_BYTES: usize = 1 << 20;
