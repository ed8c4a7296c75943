//! A command → a running server on a core of its own, with large pipes, and the CPU time it has used.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::lines::Lines;

pub struct Server {
    pub stdin: ChildStdin,
    pub lines: Lines,
    pub pipe_bytes: usize,
    /// Whether driver and server each have a core to themselves.
    pub pinned: bool,
    child: Running,
    /// Dropping it calls the watchdog off.
    watchdog: Sender<()>,
}

impl Server {
    pub fn spawn(command: &[String], deadline: Duration) -> Result<Server, String> {
        let cores = two_cores()?;
        // A child inherits the cores of its parent: stand on the server's, start it, then step aside.
        if let Some((_, servers)) = &cores {
            pin(servers)?;
        }
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`{}` does not start: {error}.", command[0]))?;
        if let Some((ours, _)) = &cores {
            pin(ours)?;
        }
        let stdin = child.stdin.take().expect("stdin was asked to be a pipe");
        let stdout = child.stdout.take().expect("stdout was asked to be a pipe");
        // The same for every server, so that the pipe is not what is measured.
        let resize = |error| format!("the pipes cannot be made {PIPE_BYTES} bytes large: {error}.");
        fcntl_setpipe_size(&stdin, PIPE_BYTES).map_err(resize)?;
        let pipe_bytes = fcntl_setpipe_size(&stdout, PIPE_BYTES).map_err(resize)?;
        let watchdog = watch(&child, deadline)?;
        Ok(Server {
            stdin,
            lines: Lines::new(stdout),
            pipe_bytes,
            pinned: cores.is_some(),
            child: Running(child),
            watchdog,
        })
    }

    pub fn send(&mut self, message: &str) -> Result<(), String> {
        self.stdin
            .write_all(format!("{message}\n").as_bytes())
            .map_err(|error| format!("its stdin cannot be written: {error}."))
    }

    /// What all its living threads have used. The servers measured keep their threads for longer than a measurement.
    pub fn cpu(&self) -> Result<Duration, String> {
        let tasks = format!("/proc/{}/task", self.child.0.id());
        let unreadable = |error| format!("`{tasks}` cannot be read: {error}.");
        let mut nanoseconds = 0;
        for task in fs::read_dir(&tasks).map_err(unreadable)? {
            let stat = fs::read_to_string(task.map_err(unreadable)?.path().join("schedstat"));
            // A thread may end between the listing and the reading.
            nanoseconds +=
                stat.ok().and_then(|s| s.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Ends the conversation as a client does, by closing stdin, and waits for a clean exit.
    pub fn finish(self) -> Result<(), String> {
        let Server { stdin, lines, mut child, watchdog, .. } = self;
        drop(stdin);
        let status =
            child.0.wait().map_err(|error| format!("it cannot be waited for: {error}."))?;
        drop((watchdog, lines));
        if status.success() {
            Ok(())
        } else {
            Err(format!("it ended with {status} after its stdin was closed."))
        }
    }
}

/// A child that does not outlive the driver's interest in it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // After `finish` it is reaped already and neither does anything.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills the server at the deadline, which ends every read that waits for it. When the driver goes first, the server's
/// stdin closes.
fn watch(child: &Child, deadline: Duration) -> Result<Sender<()>, String> {
    let pid = Pid::from_child(child);
    let server = pidfd_open(pid, PidfdFlags::empty())
        .map_err(|error| format!("it cannot be watched: {error}."))?;
    let (watchdog, called_off) = mpsc::channel::<()>();
    thread::spawn(move || {
        if called_off.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout) {
            eprintln!("The server is killed: it took longer than {} s.", deadline.as_secs());
            // It may be gone already, which is as good.
            let _ = pidfd_send_signal(server, Signal::KILL);
        }
    });
    Ok(watchdog)
}

/// The first two cores this process may use, for driver and server; `None` when there is only one.
fn two_cores() -> Result<Option<(CpuSet, CpuSet)>, String> {
    let allowed =
        sched_getaffinity(None).map_err(|error| format!("the cores cannot be listed: {error}."))?;
    let mut single = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).map(|core| {
        let mut set = CpuSet::new();
        set.set(core);
        set
    });
    Ok(single.next().zip(single.next()))
}

fn pin(cores: &CpuSet) -> Result<(), String> {
    sched_setaffinity(None, cores).map_err(|error| format!("the cores cannot be chosen: {error}."))
}

const PIPE_BYTES: usize = 1 << 20;
