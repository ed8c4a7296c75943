//! Our own stdin and stdout, whatever the host connects them to.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trunkline_transport::stdio;

/// Set in the child process: the kind of stdio it should find.
const EXPECTED: &str = "TRUNKLINE_TEST_STDIO";

/// The inner half: copies stdin to stdout, and checks their kinds.
async fn copy(expected: &str) {
    let (mut stdin, mut stdout) = (stdio::stdin().unwrap(), stdio::stdout().unwrap());
    let (source, sink) = expected.split_once(' ').expect("two words");
    assert!(format!("{stdin:?}").contains(source), "{stdin:?}");
    assert!(format!("{stdout:?}").contains(sink), "{stdout:?}");
    let mut buffer = vec![0; 10_000];
    loop {
        let count = stdin.read(&mut buffer).await.expect("stdin can be read");
        if count == 0 {
            break;
        }
        stdout.write_all(&buffer[..count]).await.expect("stdout can be written");
    }
    stdout.flush().await.expect("stdout can be written");
}

/// Runs `test` again in its own process.
fn myself(
    test: &str,
    expected: &str,
    stdin: impl Into<Stdio>,
    stdout: impl Into<Stdio>,
) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().expect("a test knows where it is"));
    command.args([test, "--exact", "--nocapture"]).env(EXPECTED, expected);
    command.stdin(stdin).stdout(stdout).spawn().expect("the test starts")
}

/// More than any pipe or socket buffers.
fn payload() -> Vec<u8> {
    (0..1_000_000_u32).map(|n| b'a' + (n % 7) as u8).collect()
}

fn assert_carried(output: &[u8]) {
    let payload = payload();
    let found = output.windows(payload.len()).any(|window| window == payload);
    assert!(found, "{} bytes came out, the payload is not among them", output.len());
}

#[tokio::test]
async fn pipes_are_carried() {
    if let Ok(expected) = std::env::var(EXPECTED) {
        copy(&expected).await;
        let flags = std::fs::read_to_string("/proc/self/fdinfo/1").expect("there is /proc");
        let flags =
            flags.lines().find_map(|line| line.strip_prefix("flags:")).expect("it has flags");
        let flags = u32::from_str_radix(flags.trim(), 8).expect("they are octal");
        assert_eq!(flags & 0o4000, 0, "others who share our stdout still find it blocking");
        return;
    }
    let mut child = myself("stdio::pipes_are_carried", "Pipe Pipe", Stdio::piped(), Stdio::piped());
    let mut stdin = child.stdin.take().expect("it is piped");
    let writer = std::thread::spawn(move || stdin.write_all(&payload()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("nothing panicked").expect("it reads");
    assert!(output.status.success());
    assert_carried(&output.stdout);
}

#[tokio::test]
async fn sockets_are_carried() {
    if let Ok(expected) = std::env::var(EXPECTED) {
        copy(&expected).await;
        // A non-blocking socket stays so, and the harness, which prints its result there, would fail if
        // it is full.
        std::process::exit(0);
    }
    let (mut input, stdin) = UnixStream::pair().expect("sockets come in pairs");
    let (mut output, stdout) = UnixStream::pair().expect("sockets come in pairs");
    let (stdin, stdout) = (OwnedFd::from(stdin), OwnedFd::from(stdout));
    let mut child = myself("stdio::sockets_are_carried", "Socket Socket", stdin, stdout);
    let writer = std::thread::spawn(move || input.write_all(&payload()));
    let mut received = Vec::new();
    output.read_to_end(&mut received).expect("it closes its end");
    writer.join().expect("nothing panicked").expect("it reads");
    assert!(child.wait().expect("it ends").success());
    assert_carried(&received);
}

#[tokio::test]
async fn files_are_carried() {
    if let Ok(expected) = std::env::var(EXPECTED) {
        return copy(&expected).await;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (from, to) = (folder.join("stdio-from"), folder.join("stdio-to"));
    std::fs::write(&from, payload()).expect("the file can be written");
    let (stdin, stdout) =
        (File::open(&from).expect("it is there"), File::create(&to).expect("it can be made"));
    let mut child = myself("stdio::files_are_carried", "Thread File", stdin, stdout);
    assert!(child.wait().expect("it ends").success());
    assert_carried(&std::fs::read(&to).expect("it was written"));
}

#[tokio::test]
async fn nothing_is_an_end_of_input() {
    if let Ok(expected) = std::env::var(EXPECTED) {
        return copy(&expected).await;
    }
    let mut child =
        myself("stdio::nothing_is_an_end_of_input", "Thread File", Stdio::null(), Stdio::null());
    assert!(child.wait().expect("it ends").success());
}
