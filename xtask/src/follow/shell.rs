//! A newcomer's terminal: one shell for a page, in an empty folder, with a home of its own. Commands go in one by one;
//! servers go on in the background until the page ends or starts another of their kind.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::page::MANIFEST;
use super::ports::{Kind, Ports};
use crate::{peers, run};

/// How a command ended, and what it wrote to its two outputs.
pub struct Ended {
    pub code: i32,
    pub said: String,
}

/// The shell; dropping it ends everything that it started.
pub struct Shell {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    /// Commands so far, for the marks between them.
    count: usize,
    folder: PathBuf,
    home: PathBuf,
    ports: Ports,
    /// The process ids of the servers.
    servers: BTreeMap<Kind, String>,
}

impl Shell {
    /// A shell in an empty folder of that name.
    pub fn start(name: &str, with_peers: bool) -> Result<Self, String> {
        let cannot = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| format!("Cannot {what}: {error}.")
        };
        let folder = run::target().join("follow").join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(cannot("make the folder"))?;
        // Sockets lie in the home, and their paths are bounded: so it is a short one.
        let home = std::env::temp_dir().join(format!("follow-{}-{name}", std::process::id()));
        furnish(&home, with_peers).map_err(cannot("make the home"))?;
        configure(&folder).map_err(cannot("configure cargo"))?;
        let ports = Ports::free();

        let mut path = home.join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.args(["-c", "exec 2>&1; exec sh"]).current_dir(&folder).process_group(0);
        command.env_clear().env("HOME", &home).env("PATH", path).env("LANG", "C.UTF-8");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(cannot("start `sh`"))?;
        let input = child.stdin.take();
        let mut pipe = child.stdout.take().expect("it is piped");
        let (tell, output) = channel();
        // It ends with the pipe, which ends with the last process of the group.
        std::thread::spawn(move || {
            let mut piece = [0; 8192];
            while let Ok(read @ 1..) = pipe.read(&mut piece) {
                if tell.send(piece[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        let servers = BTreeMap::new();
        Ok(Self { child, input, output, count: 0, folder, home, ports, servers })
    }

    /// Writes a file into the folder.
    pub fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let text = if path == MANIFEST { self.manifest(text) } else { text.to_owned() };
        let path = self.folder.join(path);
        let parent = path.parent().unwrap_or(&self.folder);
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| format!("Cannot write `{}`: {error}.", path.display()))
    }

    /// What `cargo new` wrote, and what the page adds. The page says that the path is where the clone lies. Each page
    /// has a package name of its own: cargo takes two of one name for the same.
    fn manifest(&self, text: &str) -> String {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let text = text.replace("../trunkline/", &format!("{}/", run::root().display()));
        format!(
            "[package]\nname = \"follow-{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [workspace]\n\n{text}"
        )
    }

    /// Types a command. A server is left running once it says where it is.
    pub fn run(&mut self, command: &str) -> Result<Ended, String> {
        let (command, kind) = self.ports.there(command);
        // A shell that cannot read a line ends.
        let mut look = Command::new("sh");
        let look = look.args(["-n", "-c", &command]).output();
        let look = look.map_err(|error| format!("`sh` does not start: {error}"))?;
        if !look.status.success() {
            let said = String::from_utf8_lossy(&look.stderr).into_owned();
            return Ok(Ended { code: 2, said });
        }
        let ended = match kind {
            Some(kind) => self.serve(kind, &command)?,
            None => self.enter(&format!("{{ {command}\n}} </dev/null"))?,
        };
        Ok(Ended { said: self.ports.here(&ended.said), ..ended })
    }

    fn serve(&mut self, kind: Kind, command: &str) -> Result<Ended, String> {
        if let Some(former) = self.servers.remove(&kind) {
            self.enter(&format!("kill {former} && wait {former}"))?;
        }
        let log = self.home.join(format!("{}.log", self.count));
        let start = format!("{command} </dev/null >{} 2>&1 &\necho $!", log.display());
        let process = self.enter(&start)?.said.trim().to_owned();
        self.servers.insert(kind, process.clone());
        let end = Instant::now() + SOON;
        loop {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            if said.contains("http://") && said.ends_with('\n') {
                return Ok(Ended { code: 0, said });
            }
            if self.enter(&format!("kill -0 {process}"))?.code != 0 {
                self.servers.remove(&kind);
                return Ok(Ended { code: 1, said });
            }
            if Instant::now() > end {
                return Err(format!("it does not say where it listens, but: {said}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Hands lines to the shell and reads up to the mark that it writes after them.
    fn enter(&mut self, lines: &str) -> Result<Ended, String> {
        self.count += 1;
        let mark = format!("\u{1}{} ", self.count);
        let text = format!("{lines}\nprintf '\\001%s %s\\n' {} $?\n", self.count);
        let input = self.input.as_mut().ok_or("the shell has ended")?;
        input
            .write_all(text.as_bytes())
            .map_err(|error| format!("the shell has ended: {error}"))?;
        let mut bytes = Vec::new();
        let end = Instant::now() + if lines.contains("cargo ") { BUILT } else { SOON };
        loop {
            let said = String::from_utf8_lossy(&bytes);
            if let Some((said, code)) = said.split_once(&mark)
                && let Some(code) = code.strip_suffix('\n')
            {
                let code = code.trim().parse().map_err(|_| format!("no exit code: {code}"))?;
                return Ok(Ended { code, said: said.to_owned() });
            }
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(piece) => bytes.extend(piece),
                Err(error) => {
                    // What it is doing now would be taken for the next command's.
                    self.input = None;
                    let why = match error {
                        RecvTimeoutError::Timeout => "it did not end in time",
                        RecvTimeoutError::Disconnected => "the shell cannot read it",
                    };
                    return Err(format!("{why}; it said: {said}"));
                }
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let servers: Vec<String> = self.servers.values().cloned().collect();
        if self.input.is_some() && !servers.is_empty() {
            let servers = servers.join(" ");
            let _ = self.enter(&format!("kill {servers}; wait {servers}"));
        }
        self.input = None;
        let group = format!("-{}", self.child.id());
        let mut kill = Command::new("kill");
        kill.args(["-KILL", "--", &group]).stderr(Stdio::null());
        let _ = kill.status();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// What lies in a newcomer's home: Rust, and programs of ours and others on the path.
fn furnish(home: &Path, with_peers: bool) -> std::io::Result<()> {
    let bin = home.join("bin");
    std::fs::create_dir_all(&bin)?;
    symlink(run::trunkline(), bin.join("trunkline"))?;
    // Rust keeps its folders, so that nothing is fetched or built again.
    let real = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let kept = |variable: &str, folder: &str| {
        let path = std::env::var_os(variable).map_or(real.join(folder), PathBuf::from);
        format!("{variable}='{}'", path.display())
    };
    // The very toolchain that runs this: a `cargo` or `rustc` on the path may be a program that chooses
    // one by itself, and fetches what it has not got.
    let rust = toolchain()?;
    let cargo = format!(
        "{} {} RUSTUP_AUTO_INSTALL=0 RUSTC='{rust}/rustc' RUSTDOC='{rust}/rustdoc' exec '{rust}/cargo' \"$@\"",
        kept("CARGO_HOME", ".cargo"),
        kept("RUSTUP_HOME", ".rustup"),
    );
    let npm = peers::folder().join("node_modules/.bin");
    let python = peers::venv().join("bin");
    // What the page would have fetched is what the lock files name. Without it, any server does.
    let (npx, uvx) = match with_peers {
        true => (
            format!(
                "p={}/mcp-${{2#@modelcontextprotocol/}}\nshift 2\nexec $p \"$@\"",
                npm.display()
            ),
            format!("p={}/$1\nshift\nexec $p \"$@\"", python.display()),
        ),
        false => ("exec trunkline demo".to_owned(), "exec trunkline demo".to_owned()),
    };
    // A copy: a whole run rebuilds this program while it runs, and its own path may be gone then.
    let person = bin.join("person");
    std::fs::copy(own_program()?, &person)?;
    let programs = [
        ("cargo", cargo),
        ("npx", npx),
        ("uvx", uvx),
        ("mcp-server-time", format!("exec {}/mcp-server-time \"$@\"", python.display())),
        ("xdg-open", format!("exec '{}' follow --person \"$1\"", person.display())),
    ];
    for (name, text) in programs {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n"))?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
    }
    Ok(())
}

/// This program, also if something else has its path by now: Linux still has what runs.
fn own_program() -> std::io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    match running.exists() {
        true => Ok(running.to_owned()),
        false => std::env::current_exe(),
    }
}

/// Where the compiler is that this was built with, without whatever stands before it on the path.
fn toolchain() -> std::io::Result<String> {
    let found = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    match found.status.success() && !sysroot.is_empty() {
        true => Ok(format!("{sysroot}/bin")),
        false => Err(std::io::Error::other("`rustc --print sysroot` does not say where Rust is")),
    }
}

/// Has cargo build into our own target folder, in our versions, and fetch nothing.
fn configure(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder.join(".cargo"))?;
    let text = format!(
        "[build]\ntarget-dir = {:?}\n\n[net]\noffline = true\n\n[term]\ncolor = \"never\"\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n",
        run::target()
    );
    std::fs::write(folder.join(".cargo/config.toml"), text)?;
    std::fs::copy(run::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// How long a command may take.
const SOON: Duration = Duration::from_secs(60);

/// How long one may take that builds a program, the first one with everything that it needs.
const BUILT: Duration = Duration::from_secs(900);
