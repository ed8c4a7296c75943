//! A command → a running process on a core of its own, and the time and memory it has used.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The core this process stands on, and the one for what is measured; `None` when there is only one.
pub struct Cores(Option<(CpuSet, CpuSet)>);

impl Cores {
    /// The first two that this process may use.
    pub fn two() -> Result<Cores, String> {
        let allowed = sched_getaffinity(None)
            .map_err(|error| format!("the cores cannot be listed: {error}."))?;
        let mut single = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).map(|core| {
            let mut set = CpuSet::new();
            set.set(core);
            set
        });
        Ok(Cores(single.next().zip(single.next())))
    }

    /// Whether there is one for each.
    pub fn are_two(&self) -> bool {
        self.0.is_some()
    }

    /// Takes the first core; what is measured was put on another.
    pub fn stand(&self) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |(ours, _)| pin(ours))
    }

    /// Starts the command away from this process, which takes the other core.
    pub fn spawn(&self, command: &[String], deadline: Duration) -> Result<Process, String> {
        // A child inherits the cores of its parent: stand on its own, start it, then step aside.
        if let Some((_, theirs)) = &self.0 {
            pin(theirs)?;
        }
        let process = Process::spawn(command, deadline)?;
        if let Some((ours, _)) = &self.0 {
            pin(ours)?;
        }
        Ok(process)
    }

    /// The same for a program that prints what nobody reads.
    pub fn spawn_silent(
        &self,
        command: &mut Command,
        deadline: Duration,
    ) -> Result<Process, String> {
        if let Some((_, theirs)) = &self.0 {
            pin(theirs)?;
        }
        let process = Process::start(command.stdin(Stdio::null()), deadline)?;
        if let Some((ours, _)) = &self.0 {
            pin(ours)?;
        }
        Ok(process)
    }

    /// Starts the command beside this process, which should then only wait.
    pub fn spawn_beside(&self, command: &[String], deadline: Duration) -> Result<Process, String> {
        if let Some((ours, _)) = &self.0 {
            pin(ours)?;
        }
        Process::spawn(command, deadline)
    }
}

/// A child that does not outlive the driver's interest in it.
pub struct Process {
    child: Child,
    /// Dropping it calls the watchdog off.
    _watchdog: Sender<()>,
}

impl Process {
    fn spawn(command: &[String], deadline: Duration) -> Result<Process, String> {
        let mut piped = Command::new(&command[0]);
        piped.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Process::start(&mut piped, deadline)
    }

    fn start(command: &mut Command, deadline: Duration) -> Result<Process, String> {
        let child = command.spawn().map_err(|error| {
            format!("`{}` does not start: {error}.", command.get_program().display())
        })?;
        let watchdog = watch(&child, deadline)?;
        Ok(Process { child, _watchdog: watchdog })
    }

    /// Its pipes, which can be taken once.
    pub fn pipes(&mut self) -> (ChildStdin, ChildStdout) {
        let stdin = self.child.stdin.take().expect("stdin is a pipe that nobody has taken");
        (stdin, self.stdout())
    }

    /// The pipe it writes to, which can be taken once.
    pub fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("stdout is a pipe that nobody has taken")
    }

    /// The first line of a server's stdout: the address it listens on.
    pub fn address(&mut self) -> Result<String, String> {
        let mut line = String::new();
        BufReader::new(self.stdout())
            .read_line(&mut line)
            .map_err(|error| format!("its stdout cannot be read: {error}."))?;
        match line.trim_end() {
            "" => Err("it ended before it printed its address.".into()),
            address => Ok(address.to_owned()),
        }
    }

    /// What all its living threads have used. The programs measured keep their threads for longer than a measurement.
    pub fn cpu(&self) -> Result<Duration, String> {
        cpu_of(self.child.id())
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Itself and all that it has started.
    pub fn family(&self) -> Vec<u32> {
        let mut family = vec![self.child.id()];
        let mut next = 0;
        while let Some(parent) = family.get(next) {
            let children = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten();
            let children = children.flatten().map(|task| task.path().join("children"));
            let text: String = children.filter_map(|path| fs::read_to_string(path).ok()).collect();
            family.extend(text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            next += 1;
        }
        family
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// The memory it has resident now.
    pub fn resident_kib(&self) -> Result<u64, String> {
        self.memory_kib("VmRSS:")
    }

    /// The most memory it ever had resident.
    pub fn peak_kib(&self) -> Result<u64, String> {
        self.memory_kib("VmHWM:")
    }

    fn memory_kib(&self, which: &str) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path)
            .map_err(|error| format!("`{path}` cannot be read: {error}."))?;
        status
            .lines()
            .find_map(|line| line.strip_prefix(which)?.trim().strip_suffix(" kB")?.parse().ok())
            .ok_or_else(|| format!("`{path}` says nothing about memory."))
    }

    /// Waits for it to end by itself.
    pub fn wait(mut self) -> Result<ExitStatus, String> {
        self.child.wait().map_err(|error| format!("it cannot be waited for: {error}."))
    }

    /// Asks it to end, so that a profiler around it can write down what it saw.
    pub fn stop(mut self) -> Result<(), String> {
        signal(&self.child, Signal::TERM)?;
        self.child.wait().map(drop).map_err(|error| format!("it cannot be waited for: {error}."))
    }

    /// Asks it to end, and no longer asks after a while.
    pub fn stop_within(mut self, limit: Duration) -> Result<(), String> {
        signal(&self.child, Signal::TERM)?;
        let end = std::time::Instant::now() + limit;
        while !self.has_ended() && std::time::Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        // Dropped, it is killed if it is still there.
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After `wait` or `stop` it is reaped already and neither does anything.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What all living threads of a process have used.
pub fn cpu_of(pid: u32) -> Result<Duration, String> {
    let tasks = format!("/proc/{pid}/task");
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

/// What this process has used.
pub fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Kills the child at the deadline, which ends everything that waits for it.
fn watch(child: &Child, deadline: Duration) -> Result<Sender<()>, String> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .map_err(|error| format!("it cannot be watched: {error}."))?;
    let (watchdog, called_off) = mpsc::channel::<()>();
    thread::spawn(move || {
        if called_off.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout) {
            eprintln!("The server is killed: it took longer than {} s.", deadline.as_secs());
            // It may be gone already, which is as good.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    });
    Ok(watchdog)
}

fn signal(child: &Child, signal: Signal) -> Result<(), String> {
    pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .and_then(|process| pidfd_send_signal(process, signal))
        .map_err(|error| format!("it cannot be signalled: {error}."))
}

fn pin(cores: &CpuSet) -> Result<(), String> {
    sched_setaffinity(None, cores).map_err(|error| format!("the cores cannot be chosen: {error}."))
}
