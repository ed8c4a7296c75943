//! A protected server with its authorization server, a folder for logins, and the binary.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use trunkline::server::protect::{Dpop, JwtIssuer, Protect};
use trunkline::{Principal, Server, tool};
use trunkline_authority::{Authority, Serving, Settings};
use trunkline_testkit::peer::PATIENCE;

use crate::run::{Run, TRUNKLINE};

/// A server that tells people who they are.
pub(crate) struct Place {
    pub(crate) authority: Serving,
    pub(crate) url: String,
    pub(crate) folder: PathBuf,
    serving: JoinHandle<()>,
}

impl Place {
    pub(crate) async fn open(name: &str, settings: Settings) -> Self {
        Self::open_with(name, settings, Dpop::Accept).await
    }

    /// One that takes tokens bound to a key, or not.
    pub(crate) async fn open_with(name: &str, settings: Settings, dpop: Dpop) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let at = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let settings = settings.scopes(["mcp"]).resource(&*url);
        let authority = Authority::serve(at, settings).unwrap();
        let keys = format!("{}/jwks", authority.issuer());
        let protect = Protect::new(&*url)
            .jwt(JwtIssuer::new(authority.issuer()).jwks_url(keys))
            .api_key("build-robot", "pQ7-lVhCgW2kXr9bTz4n", ["mcp"])
            .dpop(dpop)
            .scopes_required(["mcp"]);
        let whoami = tool("whoami", async |who: Principal| who.subject);
        let server = Server::builder("place", "1.0.0").tool(whoami).build();
        let http = server.http().protect(protect).unwrap();
        let serving = tokio::spawn(async move {
            let _ = http.serve(listener, std::future::pending()).await;
        });
        Self { authority, url, folder: folder(name), serving }
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Run {
        self.start(args).end().await
    }

    /// Runs a login, with somebody at the browser.
    pub(crate) async fn login(&self, args: &[&str]) -> Run {
        let mut login = self.start(args);
        pages(&login.page().await).await;
        login.end().await
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::start(&self.folder, args, &[])
    }

    pub(crate) fn start_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Running {
        Running::start(&self.folder, args, variables)
    }

    /// The files that hold logins.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let paths = entries.map(|it| it.unwrap().path());
        paths.filter(|it| it.extension().is_some_and(|it| it == "login")).collect()
    }

    /// What is kept.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.files().iter().map(|it| fs::read_to_string(it).unwrap()).collect()
    }

    /// Changes the kept tokens behind the binary's back.
    pub(crate) fn change_token(&self, change: impl FnOnce(&mut Value)) {
        self.change("token ", change);
    }

    /// Changes what is kept under a name that begins like this.
    pub(crate) fn change(&self, start: &str, change: impl FnOnce(&mut Value)) {
        let all = self.files();
        let file = all.iter().find(|it| fs::read_to_string(it).unwrap().starts_with(start));
        let file = file.expect("it is kept");
        let text = fs::read_to_string(file).unwrap();
        let (name, it) = text.split_once('\n').unwrap();
        let mut it = serde_json::from_str(it).unwrap();
        change(&mut it);
        fs::write(file, format!("{name}\n{it}")).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.serving.abort();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// `trunkline demo --auth`, where alice approves of everything.
pub(crate) struct Demo {
    pub(crate) url: String,
    folder: PathBuf,
    _process: Child,
}

impl Demo {
    pub(crate) async fn start(name: &str) -> Self {
        let mut command = Command::new(TRUNKLINE);
        command.args(["demo", "--http", "127.0.0.1:0", "--auth", "--auth-approve", "alice"]);
        // The next port may be taken.
        command.args(["--auth-address", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().expect("the binary was built");
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = loop {
            let line = timeout(PATIENCE, lines.next_line()).await.expect("it says where it is");
            let line = line.unwrap().expect("it serves");
            let url = line.strip_prefix("Serving MCP at ").and_then(|it| it.split(' ').next());
            if let Some(url) = url {
                break url.to_owned();
            }
        };
        // Whoever does not read what it says later would block it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { url, folder: folder(name), _process: process }
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Run {
        Running::start(&self.folder, args, &[]).end().await
    }

    pub(crate) async fn login(&self, args: &[&str]) -> Run {
        let mut login = Running::start(&self.folder, args, &[]);
        pages(&login.page().await).await;
        login.end().await
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The binary while it runs.
pub(crate) struct Running {
    child: Child,
    stdin: ChildStdin,
    stderr: Lines<BufReader<ChildStderr>>,
    seen: String,
}

impl Running {
    fn start(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        // A shell that runs the tests in the background has them ignore SIGINT, and the binary obeys that.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", TRUNKLINE]);
        command.args(args).env("TRUNKLINE_LOGINS", folder).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("the binary was built");
        let stdin = child.stdin.take().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, stdin, stderr, seen: String::new() }
    }

    /// The address of the page that it wants somebody to open.
    pub(crate) async fn page(&mut self) -> String {
        loop {
            let line = timeout(PATIENCE, self.stderr.next_line()).await.expect("it goes on");
            let Some(line) = line.unwrap() else { panic!("It ended: {}", self.seen) };
            self.seen.push_str(&line);
            self.seen.push('\n');
            if let Some(url) = line.strip_prefix("  http") {
                return format!("http{url}");
            }
        }
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Asks it to end. Not by SIGINT, which a shell may have it ignore.
    pub(crate) fn terminate(&self) {
        let id = self.id().to_string();
        let sent = std::process::Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.expect("it is installed").success());
    }

    pub(crate) async fn type_line(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn end(self) -> Run {
        let Self { mut child, stdin, mut stderr, mut seen } = self;
        let mut out = child.stdout.take().unwrap();
        let mut stdout = String::new();
        let reading = async {
            while let Some(line) = stderr.next_line().await.unwrap() {
                seen.push_str(&line);
                seen.push('\n');
            }
        };
        let all = async { tokio::join!(out.read_to_string(&mut stdout), reading) };
        timeout(PATIENCE, all).await.expect("it ends").0.unwrap();
        let status = timeout(PATIENCE, child.wait()).await.expect("it ends").unwrap();
        drop(stdin);
        Run { code: status.code().expect("no signal"), stdout, stderr: seen }
    }
}

/// What a browser gets.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
}

/// Asks for a page, as a browser does.
pub(crate) async fn get(url: &str) -> Page {
    let rest = url.strip_prefix("http://").expect("it is on this machine");
    let (host, path) = rest.split_at(rest.find('/').expect("it has a path"));
    let mut stream = TcpStream::connect(host).await.unwrap();
    let ask = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it answers").unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
    let location = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location").then(|| value.to_owned())
    });
    Page { status: status.unwrap_or_else(|| panic!("{answer}")), location }
}

/// Goes from page to page, to the end.
pub(crate) async fn pages(url: &str) {
    let mut page = get(url).await;
    while let Some(next) = page.location {
        page = get(&next).await;
    }
    assert_eq!(page.status, 200);
}

/// A folder that is not there yet.
fn folder(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = place.join(format!("logins-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// The mode of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
