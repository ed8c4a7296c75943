//! Redis, a gateway that does not know of it, and two that share it, on another core than the driver's.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::super::counted::cores;
use super::{ALONE, Commands, FORWARDED};
use crate::free_ports::free_port;
use crate::run;

/// All that runs; it ends with this.
pub struct Stage {
    folder: PathBuf,
    /// The stdio server behind each gateway.
    child: String,
    redis: Running,
    alone: Running,
    /// The one that has the sessions, and the one that forwards to it.
    shared: [Running; 2],
}

struct Running {
    port: u16,
    process: Child,
}

impl Stage {
    pub fn set(trunkline: &Path, child: &str) -> Result<Stage, String> {
        let folder = run::target().join("bench").join("replicas");
        let unwritable = |error| format!("`{}` cannot be written: {error}.", folder.display());
        // What an earlier run left.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(unwritable)?;
        fs::write(folder.join("key"), KEY).map_err(unwritable)?;
        let port = free_port();
        let mut redis = beside(Path::new("redis-server"));
        redis.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        let redis = Running::start(&mut redis, port)?;
        let serve = |name: &str, config: String| {
            let (file, port) = (folder.join(format!("{name}.yaml")), free_port());
            fs::write(&file, config).map_err(unwritable)?;
            let mut gateway = beside(trunkline);
            gateway.arg("serve").arg("--config").arg(file);
            gateway.args(["--listen", &format!("127.0.0.1:{port}")]);
            gateway.arg("--state").arg(folder.join(name));
            Running::start(&mut gateway, port)
        };
        let shared = |internal| config(child, Some((redis.port, internal, folder.as_path())));
        let alone = serve("alone", config(child, None))?;
        let owner = serve("owner", shared(free_port()))?;
        let other = serve("other", shared(free_port()))?;
        for gateway in [&alone, &owner, &other] {
            gateway.until_ready()?;
        }
        let (child, shared) = (child.to_owned(), [owner, other]);
        Ok(Stage { folder, child, redis, alone, shared })
    }

    /// A catalog, of one that shares the store if it has a port for the others.
    pub fn config(&self, internal: Option<u16>) -> String {
        let shared = internal.map(|internal| (self.redis.port, internal, &*self.folder));
        config(&self.child, shared)
    }

    /// What the driver is told of a way to call.
    pub fn party(&self, label: &str) -> [String; 4] {
        let [owner, other] = &self.shared;
        let (at, opener) = match label {
            ALONE => (&self.alone, &self.alone),
            FORWARDED => (other, owner),
            _ => (owner, owner),
        };
        let pids = match at.port == opener.port {
            true => at.process.id().to_string(),
            false => format!("{},{}", at.process.id(), opener.process.id()),
        };
        [label.to_owned(), at.address(), opener.address(), pids]
    }

    /// What Redis is told meanwhile.
    pub fn commands_of(
        &self,
        work: impl FnOnce() -> Result<(), String>,
    ) -> Result<Commands, String> {
        self.ask(&["CONFIG", "RESETSTAT"])?;
        let since = Instant::now();
        work()?;
        let seconds = since.elapsed().as_secs_f64();
        Ok(Commands { seconds, by_name: commands(&self.ask(&["INFO", "commandstats"])?) })
    }

    fn ask(&self, words: &[&str]) -> Result<String, String> {
        run::read(Command::new("redis-cli").args(["-p", &self.redis.port.to_string()]).args(words))
    }
}

impl Running {
    fn start(command: &mut Command, port: u16) -> Result<Running, String> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| {
            format!("`{}` does not start: {error}.", command.get_program().display())
        })?;
        let running = Running { port, process };
        running.until(|| TcpStream::connect(running.address()).is_ok())?;
        Ok(running)
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn until_ready(&self) -> Result<(), String> {
        self.until(|| self.page("/readyz").is_some_and(|it| it.starts_with("HTTP/1.1 200")))
    }

    fn page(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address()).ok()?;
        let host = self.address();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn until(&self, is_so: impl Fn() -> bool) -> Result<(), String> {
        let end = Instant::now() + START;
        while !is_so() {
            if Instant::now() > end {
                return Err(format!("Nobody serves at {} in time.", self.address()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program on the core that the driver leaves to it.
fn beside(program: &Path) -> Command {
    match cores().get(1) {
        Some(core) => {
            let mut taskset = Command::new("taskset");
            taskset.args(["--cpu-list", &core.to_string()]).arg(program);
            taskset
        }
        None => Command::new(program),
    }
}

/// One server, in one instance; and where the store, the listener for other replicas and the key are, if it has any.
fn config(child: &str, shared: Option<(u16, u16, &Path)>) -> String {
    let mut text = format!(
        "mcpServers:\n  e:\n    command: {child}\n    maxConcurrent: 1024\n    maxInstances: 1\n"
    );
    if let Some((redis, internal, folder)) = shared {
        let key = folder.join("key");
        text += &format!(
            "gateway:\n  store: redis://127.0.0.1:{redis}\n  replicas:\n    \
             listen: 127.0.0.1:{internal}\n    key: ${{file:{}}}\n",
            key.display()
        );
    }
    text
}

/// `cmdstat_get:calls=3,usec=…` → its name and count, without what we asked ourselves.
fn commands(stats: &str) -> Vec<(String, u64)> {
    let row = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let count = rest.split(',').next()?.parse().ok()?;
        let is_ours = ["info", "config|resetstat"].contains(&name);
        (!is_ours).then(|| (name.to_owned(), count))
    };
    let mut all: Vec<_> = stats.lines().filter_map(row).collect();
    all.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), name.clone()));
    all
}

/// A machine that builds something else takes its time.
const START: Duration = Duration::from_secs(30);
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_counted_by_name() {
        let stats = "# Commandstats\r\ncmdstat_get:calls=3,usec=9\r\ncmdstat_set:calls=12,usec=1\r\n\
                     cmdstat_config|resetstat:calls=1,usec=1\r\n";
        assert_eq!(commands(stats), [("set".to_owned(), 12), ("get".to_owned(), 3)]);
    }

    #[test]
    fn one_that_is_alone_has_no_store() {
        assert!(!config("bare", None).contains("gateway:"));
        let shared = config("bare", Some((1, 2, Path::new("/there"))));
        assert!(shared.contains("listen: 127.0.0.1:2\n    key: ${file:/there/key}"), "{shared}");
    }
}
