//! Misbehaving children: what they inherit, how they end, what they leave behind.

use std::future::Future;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trunkline_testkit::fault;
use trunkline_transport::Limits;
use trunkline_transport::child::{Child, Command, Exit, SpawnError, Stage};

/// Set in a process that a test started to be observed from outside.
const ROLE: &str = "TRUNKLINE_TEST_ROLE";

fn faulty(mode: &str) -> Command {
    Command::new(fault::child()).arg(mode)
}

fn hasty() -> Limits {
    let moment = Duration::from_millis(100);
    Limits::default().stop_after_eof(moment).stop_after_term(moment)
}

async fn spawn(command: Command) -> Child {
    Child::spawn(command, &Limits::default()).await.expect("the child starts")
}

async fn refusal(command: Command) -> SpawnError {
    Child::spawn(command, &Limits::default()).await.expect_err("the child does not start")
}

/// A time-out: a test that would hang fails instead.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("it is over within 60 s")
}

/// Everything on the child's stdout until every holder of it is gone.
async fn output(child: &mut Child) -> String {
    let mut text = String::new();
    let mut stdout = child.take_stdout().expect("nobody took stdout");
    soon(stdout.read_to_string(&mut text)).await.expect("stdout is text");
    text
}

/// The first line, while the child keeps running.
async fn first_line(stdout: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut line = Vec::new();
    loop {
        match soon(stdout.read_u8()).await.expect("there is a line") {
            b'\n' => return String::from_utf8(line).expect("the line is text"),
            byte => line.push(byte),
        }
    }
}

/// Waits until a process is gone. It closes its pipes a moment before that.
async fn gone(pid: &str) {
    soon(async {
        while !is_gone(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Whether a process is gone; a zombie counts as gone.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

fn is_reaped(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// This test again in its own process, started by a shell that runs `before` first.
fn myself(test: &str, before: &str) -> std::process::Command {
    // Built here, where the compiler finds its home.
    fault::child();
    let mut command = std::process::Command::new("/bin/sh");
    command.arg("-c").arg(format!("{before}\nexec \"$0\" \"$@\""));
    command.arg(std::env::current_exe().expect("a test knows where it is"));
    command.args([test, "--exact", "--nocapture"]).env(ROLE, "inner");
    command
}

fn is_inner() -> bool {
    std::env::var_os(ROLE).is_some()
}

#[tokio::test]
async fn a_child_gets_six_variables_and_what_it_was_given() {
    if !is_inner() {
        let mut outer = myself("child::a_child_gets_six_variables_and_what_it_was_given", "");
        outer.envs((0..20).map(|n| (format!("SECRET_{n}"), "hunter2")));
        outer.env("LANG", "C").env("LOGNAME", "() { evil; }").env("HOME", "/h").env("USER", "u");
        outer.env("SHELL", "/bin/sh").env("TERM", "dumb");
        return assert!(outer.status().expect("the shell starts").success());
    }
    let mut child =
        spawn(faulty("env").env("TOKEN", "mine").env("USER", "other").inherit("LANG")).await;
    let path = format!("PATH={}", std::env::var("PATH").expect("there is a PATH"));
    let expected =
        ["HOME=/h", "LANG=C", &path, "SHELL=/bin/sh", "TERM=dumb", "TOKEN=mine", "USER=other"];
    assert_eq!(output(&mut child).await.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_child_has_three_descriptors_even_if_we_inherited_more() {
    if !is_inner() {
        let name = "child::a_child_has_three_descriptors_even_if_we_inherited_more";
        let mut outer = myself(name, "exec 9</dev/null");
        return assert!(outer.status().expect("the shell starts").success());
    }
    assert!(Path::new("/proc/self/fd/9").exists(), "the shell left us a descriptor");
    let mut other = spawn(faulty("mute")).await;
    let mut child = spawn(faulty("descriptors")).await;
    assert_eq!(output(&mut child).await, "0\n1\n2\n");
    assert_eq!(other.take_stdin().map(drop), Some(()));
    assert_eq!(soon(other.exited()).await, Exit::Code(0));
}

#[tokio::test]
async fn a_child_leads_its_own_session_in_the_given_directory() {
    let mut child = spawn(faulty("session")).await;
    let id = child.id();
    assert_eq!(output(&mut child).await, format!("{id} {id} {id}\n"));
    let mut child = spawn(faulty("directory").current_dir("/")).await;
    assert_eq!(output(&mut child).await, "/\n");
}

#[tokio::test]
async fn the_stderr_of_a_child_that_ends_at_once_is_kept() {
    let mut child = spawn(faulty("fail").arg("7")).await;
    let exit = soon(child.exited()).await;
    assert_eq!(exit, Exit::Code(7));
    assert_eq!(exit.to_string(), "exited with code 7");
    let expected = [r"cannot read the \u{1b}[31mconfiguration\u{1b}[0m", "leaving"];
    assert_eq!(child.stderr().lines(), expected);
    assert!(is_reaped(child.id()));
}

#[tokio::test]
async fn a_start_that_fails_says_what_to_do() {
    let error = refusal(Command::new("trunkline-no-such-program")).await;
    assert_eq!(error.stage, Stage::Program);
    assert_eq!(
        error.to_string(),
        "`trunkline-no-such-program` was not found on PATH. Install it, or give its full path."
    );
    let error = refusal(Command::new("")).await;
    assert!(error.to_string().starts_with("The command is empty."), "{error}");
    let error = refusal(Command::new("/no/such/program")).await;
    assert!(error.to_string().starts_with("`/no/such/program` does not exist."), "{error}");
    let error = refusal(Command::new("/dev/null")).await;
    assert!(error.to_string().starts_with("`/dev/null` may not be executed."), "{error}");
    let error = refusal(Command::new("cat").current_dir("/no/such/place")).await;
    assert_eq!(error.stage, Stage::Directory);
    assert!(error.to_string().contains("its directory `/no/such/place` does not exist"), "{error}");

    let folder = Folder::new("script");
    let script = folder.program("script", "#!/no/such/interpreter\n");
    let error = refusal(Command::new(script)).await;
    assert!(error.to_string().contains("the interpreter it names does not"), "{error}");
}

#[tokio::test]
async fn both_pipes_carry_bytes() {
    let mut child = spawn(Command::new("cat")).await;
    let (mut stdin, mut stdout) = (child.take_stdin().unwrap(), child.take_stdout().unwrap());
    let sent = vec![b'x'; 1 << 20];
    let write = async {
        stdin.write_all(&sent).await.expect("cat reads");
        drop(stdin);
    };
    let mut received = Vec::new();
    let (_, read) = soon(async { tokio::join!(write, stdout.read_to_end(&mut received)) }).await;
    assert_eq!(read.expect("cat writes"), sent.len());
    assert_eq!(soon(child.stop()).await, Exit::Code(0));
}

#[tokio::test]
async fn a_polite_child_ends_with_its_input() {
    let child = spawn(faulty("mute")).await;
    let (id, started) = (child.id(), Instant::now());
    assert_eq!(soon(child.stop()).await, Exit::Code(0));
    assert!(started.elapsed() < Limits::default().stop_after_eof, "closing stdin was enough");
    assert!(is_reaped(id));
}

#[tokio::test]
async fn a_child_that_is_busy_writing_is_drained_and_ends() {
    // It reads the end of its input only after it has filled the pipe.
    let command = Command::new("/bin/sh").args(["-c", "head -c 1000000 /dev/zero; cat"]);
    assert_eq!(soon(spawn(command).await.stop()).await, Exit::Code(0));
}

#[tokio::test]
async fn a_grandchild_that_ignores_term_is_gone_within_five_seconds() {
    let mut child = spawn(faulty("stubborn")).await;
    let id = child.id();
    let mut stdout = child.take_stdout().expect("nobody took stdout");
    let grandchild = first_line(&mut stdout).await;
    assert!(!is_gone(&grandchild));
    let started = Instant::now();
    assert_eq!(soon(child.stop()).await, Exit::Signal(9));
    // Both processes held stdout: it ends when the last one is gone.
    assert_eq!(soon(stdout.read(&mut [0])).await.expect("stdout can be read"), 0);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    gone(&grandchild).await;
    assert!(is_reaped(id));
}

#[tokio::test]
async fn a_grandchild_does_not_outlive_a_leader_that_left() {
    let mut child = spawn(faulty("leave-grandchild")).await;
    let grandchild = output(&mut child).await;
    gone(grandchild.trim()).await;
    assert_eq!(soon(child.exited()).await, Exit::Code(0));
}

#[tokio::test]
async fn term_is_enough_for_a_child_that_listens_to_it() {
    let command = Command::new("/bin/sh").args(["-c", "exec sleep 1000"]);
    let child = Child::spawn(command, &hasty()).await.expect("the shell starts");
    let exit = soon(child.stop()).await;
    assert_eq!(exit, Exit::Signal(15));
    assert_eq!(exit.to_string(), "was ended by signal 15");
}

#[tokio::test]
async fn dropping_a_child_kills_its_group() {
    let mut child = spawn(faulty("stubborn")).await;
    let mut stdout = child.take_stdout().expect("nobody took stdout");
    let grandchild = first_line(&mut stdout).await;
    drop(child);
    assert_eq!(soon(stdout.read(&mut [0])).await.expect("stdout can be read"), 0);
    gone(&grandchild).await;
}

#[tokio::test]
async fn an_abandoned_start_leaves_nothing() {
    for round in 0..50 {
        // Every process with this in its command line is ours.
        let mark = format!("abandoned-start-{}-{round}", std::process::id());
        let script = format!("sh -c 'sleep 1000; : {mark}' & wait");
        let limits = Limits::default();
        let mut starting =
            Box::pin(Child::spawn(Command::new("sh").arg("-c").arg(script), &limits));
        // After one poll the start is in progress; how far it gets before the drop is left open.
        let polled =
            std::future::poll_fn(|cx| std::task::Poll::Ready(starting.as_mut().poll(cx))).await;
        for _ in 0..round {
            std::thread::yield_now();
        }
        drop((polled, starting));
        for pid in pids_with(&mark) {
            gone(&pid).await;
        }
    }
}

/// The processes whose command line contains `mark`.
fn pids_with(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("there is a /proc").flatten();
    processes
        .filter(|it| {
            let line = std::fs::read(it.path().join("cmdline")).unwrap_or_default();
            line.windows(mark.len()).any(|part| part == mark.as_bytes())
        })
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .filter(|pid| *pid != std::process::id().to_string())
        .collect()
}

#[tokio::test]
async fn a_child_dies_with_a_parent_that_is_killed() {
    if is_inner() {
        let mut child = spawn(faulty("hold").arg(fifo())).await;
        child.exited().await;
        panic!("the child ended before its parent");
    }
    dies_with_host("child::a_child_dies_with_a_parent_that_is_killed").await;
}

#[tokio::test]
async fn descendants_of_a_child_die_with_a_killed_parent() {
    if is_inner() {
        let mut child = spawn(Command::new("/bin/sh").args(["-c", BACKGROUND]).arg(fifo())).await;
        // From here on the child is watched.
        child.take_stdin().expect("nobody took stdin").write_all(b"go\n").await.unwrap();
        child.exited().await;
        panic!("the child ended before its parent");
    }
    dies_with_host("child::descendants_of_a_child_die_with_a_killed_parent").await;
}

#[tokio::test]
async fn a_child_without_the_orphan_reaper_costs_no_process() {
    if !is_inner() {
        // Other tests of this process have children, and so a reaper.
        let mut outer = myself("child::a_child_without_the_orphan_reaper_costs_no_process", "");
        return assert!(outer.status().expect("the shell starts").success());
    }
    let ours = || {
        let children = std::fs::read_dir("/proc/self/task").expect("there is a /proc").flatten();
        let children =
            children.map(|it| std::fs::read_to_string(it.path().join("children")).unwrap());
        children.map(|it| it.split_whitespace().count()).sum::<usize>()
    };
    let alone = spawn(Command::new("cat").without_orphan_reaper()).await;
    assert_eq!(ours(), 1, "the child");
    let watched = spawn(Command::new("cat")).await;
    assert_eq!(ours(), 3, "two children and the reaper");
    for child in [alone, watched] {
        soon(child.stop()).await;
    }
    tokio::task::spawn_blocking(trunkline_transport::child::orphan_reaper::wait_until_gone)
        .await
        .expect("it does not panic");
    assert_eq!(ours(), 0, "nobody is left to be watched");
}

/// On command, starts a background process that holds a pipe.
const BACKGROUND: &str = r#"read -r go; exec 3>"$0"; sleep 1000 & echo $! >&3; wait"#;

fn fifo() -> std::ffi::OsString {
    std::env::var_os("FIFO").expect("the outer test made a pipe")
}

/// Runs a test again as a host, kills that host with SIGKILL, and waits until no process holds the pipe
/// of its child.
async fn dies_with_host(name: &str) {
    let folder = Folder::new(&name.replace("::", "-"));
    let fifo = folder.0.join("held");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("there is mkfifo")
            .success()
    );
    let mut host =
        myself(name, "").env("FIFO", &fifo).stdout(Stdio::null()).spawn().expect("the host starts");
    let (tell, told) = tokio::sync::oneshot::channel();
    // A thread of its own: if the child survives, only this test waits for it.
    std::thread::spawn(move || {
        let mut held = BufReader::new(std::fs::File::open(fifo).expect("the child opens its end"));
        let mut pid = String::new();
        held.read_line(&mut pid).expect("the child says who it is");
        assert!(!is_gone(pid.trim()));
        host.kill().expect("the host can be killed");
        host.wait().expect("the host is ours to wait for");
        // Ends when the child is gone.
        held.read_to_end(&mut Vec::new()).expect("the pipe can be read");
        tell.send(pid).expect("the test waits");
    });
    let pid = soon(told).await.expect("nothing panicked");
    gone(pid.trim()).await;
}

#[tokio::test]
async fn a_child_outlives_the_thread_that_asked_for_it() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let runtime = tokio::runtime::Handle::current();
    let asker = std::thread::spawn(move || {
        let _ = sender.send(runtime.block_on(spawn(Command::new("cat"))));
    });
    tokio::task::spawn_blocking(|| asker.join())
        .await
        .expect("it runs")
        .expect("it does not panic");
    let mut child = receiver.recv().expect("there is a child");
    let (mut stdin, mut stdout) = (child.take_stdin().unwrap(), child.take_stdout().unwrap());
    stdin.write_all(b"still here\n").await.expect("the child reads");
    assert_eq!(first_line(&mut stdout).await, "still here");
}

#[tokio::test]
async fn a_flood_on_stderr_is_read_and_forgotten() {
    if !is_inner() {
        // Memory is counted per process, and other tests run in this one.
        let mut outer = myself("child::a_flood_on_stderr_is_read_and_forgotten", "");
        return assert!(outer.status().expect("the shell starts").success());
    }
    for (mode, last) in [("flood-stderr", "the last line"), ("flood-stderr-line", "eeee")] {
        let before = peak_memory();
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let command = faulty(mode).on_stderr(move |_| _ = count.fetch_add(1, Relaxed));
        let mut child = spawn(command).await;
        assert_eq!(soon(child.exited()).await, Exit::Code(0));
        let lines = child.stderr().lines();
        assert!(lines.len() <= 50 && lines.iter().map(String::len).sum::<usize>() <= (8 << 10) + 3);
        assert!(lines.last().is_some_and(|line| line.starts_with(last)));
        assert!(told.load(Relaxed) >= lines.len());
        let more = peak_memory() - before;
        assert!(more < 8 << 10, "100 MB of stderr took {more} KiB");
    }
}

#[tokio::test]
async fn a_hundred_children_leave_nothing() {
    let mut ids = Vec::new();
    for _ in 0..100 {
        let mut child = spawn(Command::new("true")).await;
        assert_eq!(soon(child.exited()).await, Exit::Code(0));
        ids.push(child.id());
    }
    assert!(ids.into_iter().all(is_reaped));
}

/// The peak memory of this process, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel counts");
    line.trim().trim_end_matches(" kB").parse().expect("it is a number")
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        Self(folder)
    }

    /// An executable file. A shell writes it: if it were open here while another test forks, it could
    /// not be executed for a moment (ETXTBSY).
    fn program(&self, name: &str, text: &str) -> PathBuf {
        let file = self.0.join(name);
        let script = r#"printf '%s' "$1" > "$0" && chmod 755 "$0""#;
        let mut shell = std::process::Command::new("/bin/sh");
        let status = shell.args(["-c", script]).arg(&file).arg(text).status();
        assert!(status.expect("the shell starts").success());
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
