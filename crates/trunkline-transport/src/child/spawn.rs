//! fork, exec, signal, wait, and two allocator calls: the only unsafe code of the project.
//!
//! One thread that never ends forks all children. The kernel sends the parent-death signal when the
//! *thread* that forked dies, so a runtime's worker must not be that thread.

#![allow(unsafe_code)]

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::command::Parts;
use super::orphan_reaper::{self, WatchedGroup};
use super::{Exit, SpawnError, Stage};

/// Makes the allocator map large blocks separately for good, so that each is returned when freed. By
/// default it stops doing so once a large block was freed.
pub(crate) fn keep_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: may be called at any time from any thread; it changes one number.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
    }
}

/// Makes the allocator return all free memory.
pub(crate) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: may be called at any time from any thread; it touches nothing in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// A process group whose leader is our child.
#[derive(Debug)]
pub(super) struct Group {
    leader: libc::pid_t,
    /// Once the leader is reaped, its number may belong to another process.
    is_reaped: Mutex<bool>,
}

/// A started child, and how it will end.
pub(super) type Started = (Arc<Group>, watch::Receiver<Option<Exit>>);

struct Job {
    command: Parts,
    ends: [OwnedFd; 3],
    reply: oneshot::Sender<Result<Started, SpawnError>>,
    /// Dropped when the job has ended, in either way.
    done: mpsc::Sender<()>,
}

/// Starts `command` with `ends` as its stdin, stdout and stderr.
pub(super) async fn spawn(command: Parts, ends: [OwnedFd; 3]) -> Result<Started, SpawnError> {
    let gone = |_| io::Error::other("the spawner thread is gone");
    let program = command.program().to_owned();
    let (reply, answer) = oneshot::channel();
    let (done, is_done) = mpsc::channel();
    let job = Job { command, ends, reply, done };
    let sent = spawner().and_then(|jobs| jobs.send(job).map_err(|_| gone(())));
    sent.map_err(|cause| SpawnError::new(Stage::Program, &program, cause))?;
    let answer = Starting { answer, is_done, is_answered: false }.await;
    answer.unwrap_or_else(|_| Err(SpawnError::new(Stage::Program, &program, gone(()))))
}

/// A child that is being started. A caller that stops waiting blocks until the child is gone: it may
/// run already, and this process may be about to exit.
struct Starting {
    answer: oneshot::Receiver<Result<Started, SpawnError>>,
    is_done: mpsc::Receiver<()>,
    is_answered: bool,
}

impl Future for Starting {
    type Output = Result<Result<Started, SpawnError>, oneshot::error::RecvError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        self.is_answered = true;
        Poll::Ready(answer)
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        // From here on the spawner finds no receiver and kills the child it has started.
        self.answer.close();
        let _ = self.is_done.recv_timeout(START);
        if let Ok(Ok((group, _))) = self.answer.try_recv() {
            group.kill();
        }
    }
}

/// The thread that forks; it starts with the first child and ends with the process.
fn spawner() -> io::Result<&'static mpsc::Sender<Job>> {
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(jobs) = SPAWNER.get() {
        return Ok(jobs);
    }
    let (jobs, inbox) = mpsc::channel::<Job>();
    let run = move || {
        for Job { command, ends, reply, done } in inbox {
            // The caller may have stopped waiting; then the group has no owner and is killed.
            if let Err(Ok((group, _))) = reply.send(start(&command, ends)) {
                group.kill();
            }
            drop(done);
        }
    };
    thread::Builder::new().name("trunkline-spawn".into()).spawn(run)?;
    Ok(SPAWNER.get_or_init(|| jobs))
}

fn start(command: &Parts, ends: [OwnedFd; 3]) -> Result<Started, SpawnError> {
    let [stdin, stdout, stderr] = ends;
    let mut prepared = command.to_std();
    prepared.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    let parent = std::process::id();
    // SAFETY: the closure runs in the forked child before exec. It allocates nothing, takes no
    // lock and makes system calls only, all of which are async-signal-safe.
    unsafe { prepared.pre_exec(move || in_child(parent)) };
    let mut watched = command.is_watched().then(orphan_reaper::prepare);
    let child = prepared.spawn().map_err(|cause| SpawnError::explain(command, cause))?;
    if let Some(watched) = &mut watched {
        watched.watch(child.id());
    }

    let leader = child.id() as libc::pid_t;
    let group = Arc::new(Group { leader, is_reaped: Mutex::new(false) });
    let (sender, exit) = watch::channel(None);
    let waiter = {
        let group = Arc::clone(&group);
        move || {
            if let Some(exit) = group.wait(watched) {
                sender.send_replace(Some(exit));
            }
        }
    };
    let thread = thread::Builder::new().name("trunkline-wait".into()).stack_size(64 << 10);
    if let Err(cause) = thread.spawn(waiter) {
        group.kill();
        group.wait(None);
        return Err(SpawnError::new(Stage::Program, command.program(), cause));
    }
    Ok((group, exit))
}

/// What the child does to itself between fork and exec.
fn in_child(parent: u32) -> io::Result<()> {
    // SAFETY: plain system calls without pointers, allowed between fork and exec.
    unsafe {
        check(libc::setsid())?;
        for signal in 1..32 {
            // The child need not inherit our ignored signals; SIGKILL and SIGSTOP refuse, which is
            // fine.
            libc::signal(signal, libc::SIG_DFL);
        }
        #[cfg(target_os = "linux")]
        {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            // If the parent died before that call, no signal will ever come.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = parent;
    }
    close_on_exec()
}

/// Marks every descriptor but 0, 1, 2 as close-on-exec, including those that our own parent left open.
fn close_on_exec() -> io::Result<()> {
    // SAFETY: plain system calls without pointers, allowed between fork and exec.
    unsafe {
        #[cfg(target_os = "linux")]
        if libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 {
            return Ok(());
        }
        // An old kernel: one by one.
        let open_max = libc::sysconf(libc::_SC_OPEN_MAX);
        for descriptor in 3..open_max.clamp(256, 1 << 16) as libc::c_int {
            let flags = libc::fcntl(descriptor, libc::F_GETFD);
            if flags >= 0 {
                check(libc::fcntl(descriptor, libc::F_SETFD, flags | libc::FD_CLOEXEC))?;
            }
        }
    }
    Ok(())
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

impl Group {
    pub(super) fn id(&self) -> u32 {
        self.leader as u32
    }

    /// Sends SIGTERM to the process group.
    pub(super) fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    /// Sends SIGKILL to the process group.
    pub(super) fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    /// Sends a signal to the process group.
    pub(super) fn signal(&self, signal: libc::c_int) {
        let is_reaped = self.is_reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_reaped {
            // SAFETY: a system call without pointers. The leader is not reaped, so the number is
            // still its group's. A group that is gone already is no error.
            unsafe { libc::kill(-self.leader, signal) };
        }
    }

    /// Blocks until the leader has ended, kills the rest of its group, and reaps the leader.
    fn wait(&self, watched: Option<WatchedGroup>) -> Option<Exit> {
        let ended = retry(|| {
            // SAFETY: zeroed bytes are a valid `siginfo_t`, and the kernel writes only there.
            let mut info = unsafe { std::mem::zeroed::<libc::siginfo_t>() };
            // Leaves the leader a zombie, which reserves its number until the group is killed.
            unsafe {
                libc::waitid(
                    libc::P_PID,
                    self.leader as libc::id_t,
                    &mut info,
                    libc::WEXITED | libc::WNOWAIT,
                )
            }
        });
        if ended.is_some() {
            self.kill();
        }
        // The orphan reaper forgets the group while its number is still reserved.
        drop(watched);
        let mut is_reaped = self.is_reaped.lock().unwrap_or_else(PoisonError::into_inner);
        // From here on the number may belong to another process, whatever the outcome: a process that
        // ignores SIGCHLD has its children reaped automatically.
        *is_reaped = true;
        ended?;
        let mut status = 0;
        // SAFETY: `status` is valid for writing during the call.
        retry(|| unsafe { libc::waitpid(self.leader, &mut status, 0) })?;
        let status = ExitStatus::from_raw(status);
        status.code().map(Exit::Code).or(status.signal().map(Exit::Signal))
    }
}

/// Retries a call that a signal interrupted (EINTR); `None` if it failed.
fn retry(mut call: impl FnMut() -> libc::c_int) -> Option<libc::c_int> {
    loop {
        match check(call()) {
            Ok(result) => return Some(result),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// How long to wait for an abandoned start; it takes milliseconds.
const START: Duration = Duration::from_secs(1);
