//! Options → an upstream and a gateway that answers, away from the driver's core.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::options::{Options, Upstream};
use crate::amount::Amount;
use crate::calls::Calls;
use crate::folder::{Folder, unwritable};
use crate::http::Endpoint;
use crate::process::{Cores, Process, cpu_of};

/// All that runs during a measurement.
pub struct Scene {
    pub endpoint: Endpoint,
    pub is_pinned: bool,
    gateway: Process,
    upstream: Option<Process>,
    /// The program of the stdio server, whose processes are not the gateway.
    child: Option<PathBuf>,
    _folder: Folder,
}

impl Scene {
    pub fn set(options: &Options, command: &[String]) -> Result<Scene, String> {
        let cores = Cores::two()?;
        let folder = Folder::make()?;
        let mut places = vec![("{folder}", folder.path().display().to_string())];
        let (mut upstream, mut child) = (None, None);
        match &options.upstream {
            Upstream::Nothing => {}
            Upstream::Http(words) => {
                let mut server = cores.spawn(&steady(words), options.volume.deadline)?;
                places.push(("{upstream}", server.address()?));
                upstream = Some(server);
            }
            Upstream::Child(program) => {
                places.push(("{child}", program.clone()));
                child = Some(fs::canonicalize(program).unwrap_or_default());
            }
        }
        let told = command.iter().chain(&options.config);
        let port = told.into_iter().any(|word| word.contains("{port}"));
        let port = port.then(free_port).transpose()?;
        places.extend(port.map(|port| ("{port}", port.to_string())));
        if let Some(text) = &options.config {
            let path = folder.path().join("config");
            fs::write(&path, filled(text, &places)).map_err(|error| unwritable(&path, error))?;
            places.push(("{config}", path.display().to_string()));
        }
        let words: Vec<String> = command.iter().map(|word| filled(word, &places)).collect();
        let (gateway, address) = match port {
            Some(port) => (silent(&cores, &words, options)?, format!("127.0.0.1:{port}")),
            None => {
                let mut gateway = cores.spawn(&words, options.volume.deadline)?;
                let address = gateway.address()?;
                (gateway, address)
            }
        };
        let endpoint = Endpoint::new(address).at(&options.path);
        let is_pinned = cores.are_two();
        let mut scene = Scene { endpoint, is_pinned, gateway, upstream, child, _folder: folder };
        scene.wait(options)?;
        if matches!(options.volume.amount, Amount::Calls(_)) {
            scene.settle(options.volume.deadline)?;
        }
        Ok(scene)
    }

    /// Waits until nothing more is begun: a gateway asks every server of its catalog what it has, and a call that is
    /// counted meanwhile would pay for that.
    fn settle(&self, limit: Duration) -> Result<(), String> {
        let end = Instant::now() + limit;
        let mut before = (self.gateway_cpu()?, self.upstream_cpu());
        while Instant::now() < end {
            thread::sleep(STILL);
            let now = (self.gateway_cpu()?, self.upstream_cpu());
            // What a server has used is gone with it.
            let used = now.0.saturating_sub(before.0).max(now.1.abs_diff(before.1));
            if used < STILL / 50 {
                return Ok(());
            }
            before = now;
        }
        Err(format!("it was still busy with itself after {} s.", limit.as_secs()))
    }

    pub fn gateway(&self) -> &Process {
        &self.gateway
    }

    /// What the gateway has used, with what it has started except for the stdio server.
    pub fn gateway_cpu(&self) -> Result<Duration, String> {
        let (ours, _) = self.family();
        // A helper of the gateway's may end between the listing and the reading.
        Ok(ours.into_iter().filter_map(|pid| cpu_of(pid).ok()).sum())
    }

    /// The memory that the gateway itself has resident now.
    pub fn resident_kib(&self) -> Result<u64, String> {
        self.gateway.resident_kib()
    }

    /// The most that it ever had.
    pub fn peak_kib(&self) -> Result<u64, String> {
        self.gateway.peak_kib()
    }

    /// What the upstream has used.
    pub fn upstream_cpu(&self) -> Duration {
        let (_, children) = self.family();
        let children: Duration = children.into_iter().filter_map(|pid| cpu_of(pid).ok()).sum();
        children + self.upstream.as_ref().and_then(|it| it.cpu().ok()).unwrap_or_default()
    }

    /// Ends all of it. A gateway that does not end when it is told to is killed after a while.
    pub fn end(self, limit: Duration) -> Result<(), String> {
        self.gateway.stop_within(limit)?;
        self.upstream.map_or(Ok(()), Process::stop)
    }

    /// The processes of the gateway, and those of the stdio server.
    fn family(&self) -> (Vec<u32>, Vec<u32>) {
        let is_gateway = |pid: &u32| match &self.child {
            Some(child) => fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe != *child),
            None => true,
        };
        self.gateway.family().into_iter().partition(is_gateway)
    }

    /// Waits until a call is answered: a gateway may listen before its upstream does.
    fn wait(&mut self, options: &Options) -> Result<(), String> {
        let end = Instant::now() + READY;
        loop {
            let Err(sentence) = self.try_call(options) else { return Ok(()) };
            if self.gateway.has_ended() {
                return Err("it ended before it answered a call.".into());
            }
            if Instant::now() > end {
                return Err(format!(
                    "it answered no call within {} s; {sentence}",
                    READY.as_secs()
                ));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn try_call(&self, options: &Options) -> Result<(), String> {
        let calls = Calls::new(options.revision, &options.tool, options.volume.payload);
        let mut connection = self.endpoint.connect()?;
        let session = connection.greet(&calls)?;
        let (body, _) = calls.template();
        let tool = Some(options.tool.as_str());
        let request =
            connection.post(options.revision, "tools/call", tool, session.as_deref(), body);
        let (response, bytes) = connection.exchange(&request)?;
        let mut is_answered = false;
        response.messages(&bytes, |message| {
            is_answered |= calls.answered(message)?.is_some();
            Ok(())
        })?;
        let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(600)]).into_owned();
        is_answered.then_some(()).ok_or_else(|| format!("it answered {}", shown()))
    }
}

fn silent(cores: &Cores, words: &[String], options: &Options) -> Result<Process, String> {
    let out = || if options.shape.shows { Stdio::inherit() } else { Stdio::null() };
    let program = Path::new(&words[0]);
    let mut command = Command::new(program);
    command.args(&words[1..]).stdout(Stdio::null()).stderr(out());
    cores.spawn_silent(&mut command, options.volume.deadline)
}

fn filled(text: &str, places: &[(&str, String)]) -> String {
    places.iter().fold(text.to_owned(), |text, (place, value)| text.replace(place, value))
}

/// A port that nobody listens on now.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("there is no port: {error}."))
}

/// Python takes seconds to start.
const READY: Duration = Duration::from_secs(30);
/// What uses next to nothing for so long has nothing to do.
const STILL: Duration = Duration::from_millis(250);

/// The command of an upstream whose allocator keeps what it has. Otherwise it depends on how its heap happens to lie
/// whether the upstream maps every long text anew, which takes it as long as all the rest and is charged to the gateway
/// in front of it.
fn steady(command: &[String]) -> Vec<String> {
    let words = [
        "env",
        "GLIBC_TUNABLES=glibc.malloc.trim_threshold=1073741824:glibc.malloc.mmap_threshold=1073741824",
    ];
    words.map(str::to_owned).iter().chain(command).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_wherever_they_stand() {
        let places = [("{port}", "8080".to_owned()), ("{child}", "bare".to_owned())];
        assert_eq!(filled("--port={port} -- {child} {child}", &places), "--port=8080 -- bare bare");
    }
}
