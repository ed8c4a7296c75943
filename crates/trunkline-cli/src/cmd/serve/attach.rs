//! A host that shares a gateway: finds it, or starts it in the background, and forwards the host's
//! messages both ways.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use trunkline_auth::digest::sha256;
use trunkline_gateway::{Selector, attach};
use trunkline_transport::stdio;

/// Where the hosts of one user find the gateway of a catalog.
pub(super) struct HostSockets {
    state: PathBuf,
    catalog: PathBuf,
    name: String,
}

impl HostSockets {
    /// The gateway of a catalog, whatever path names the catalog.
    pub(super) fn to(catalog: &Path, state: &Path) -> Result<Self> {
        let catalog = catalog.canonicalize();
        let catalog = catalog.context("The path of the catalog cannot be followed")?;
        let digest = sha256(catalog.as_os_str().as_encoded_bytes());
        let name = digest["sha256:".len()..][..DIGITS].to_owned();
        Ok(Self { state: state.to_owned(), catalog, name })
    }

    /// Its socket for hosts.
    pub(super) fn socket(&self) -> PathBuf {
        self.state.join(format!("hosts-{}.sock", self.name))
    }

    /// Its admin socket, if no other gateway serves this catalog.
    pub(super) fn admin(&self) -> PathBuf {
        self.state.join(format!("admin-{}.sock", self.name))
    }

    fn log(&self) -> PathBuf {
        self.state.join(format!("hosts-{}.log", self.name))
    }

    /// Connects, if a gateway answers.
    pub(super) async fn join(&self, selector: &Selector) -> Option<UnixStream> {
        let mut stream = UnixStream::connect(self.socket()).await.ok()?;
        let mut said = [0; attach::WELCOME.len()];
        let welcome = async {
            stream.write_all(attach::hello(selector).as_bytes()).await.ok()?;
            stream.read_exact(&mut said).await.ok()
        };
        timeout(PATIENCE, welcome).await.ok()??;
        (said == attach::WELCOME.as_bytes()).then_some(stream)
    }

    /// Starts a gateway that outlives this host, and connects. If several hosts do so at once, one
    /// of the gateways serves them all.
    pub(super) async fn start(&self, selector: &Selector) -> Result<UnixStream> {
        let log = std::fs::File::create(self.log())?;
        let program = std::env::current_exe().context("This program's own file cannot be found")?;
        let mut command = Command::new(program);
        command.args(["serve", "--attached", "--config"]).arg(&self.catalog);
        command.arg("--state").arg(&self.state);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // Signals for the host, such as Ctrl-C in its terminal, must not reach it.
        let mut gateway = command.process_group(0).spawn()?;
        let until = Instant::now() + START;
        loop {
            if let Some(stream) = self.join(selector).await {
                // If another gateway won, ours exits at once, and is reaped here.
                std::thread::spawn(move || gateway.wait());
                return Ok(stream);
            }
            let is_over = gateway.try_wait()?.is_some_and(|it| !it.success());
            if is_over || Instant::now() >= until {
                let said = std::fs::read_to_string(self.log()).unwrap_or_default();
                bail!("The gateway in the background did not start. {}", said.trim());
            }
            sleep(PACE).await;
        }
    }
}

/// Forwards messages until either side disconnects or the host is told to stop.
pub(super) async fn carry(stream: UnixStream, mut stopped: watch::Receiver<bool>) -> Result<()> {
    let (mut stdin, mut stdout) = (stdio::stdin()?, stdio::stdout()?);
    let (mut from, mut to) = stream.into_split();
    let mut down = std::pin::pin!(copy(&mut from, &mut stdout));
    let is_done = tokio::select! {
        _ = copy(&mut stdin, &mut to) => true,
        _ = stopped.wait_for(|it| *it) => true,
        _ = &mut down => false,
    };
    if !is_done {
        bail!("The gateway that this host shares has ended; start the host's server again.");
    }
    // Calls in flight are answered first.
    let _ = to.shutdown().await;
    let _ = timeout(LAST, down).await;
    Ok(())
}

/// The admin socket of a gateway for one host. It removes the stale sockets of killed hosts.
pub(super) async fn own_admin(state: &Path) -> PathBuf {
    for entry in std::fs::read_dir(state).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with("admin-")
            && name.ends_with(".sock")
            && UnixStream::connect(&path).await.is_err()
        {
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_file(path.with_extension("sock.lock"));
        }
    }
    state.join(format!("admin-{}.sock", std::process::id()))
}

/// How many digits of a digest distinguish the catalogs of one user.
const DIGITS: usize = 12;
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a gateway may take to start.
const START: Duration = Duration::from_secs(20);
const PACE: Duration = Duration::from_millis(50);
/// How long the answers for a host that disconnected are waited for.
const LAST: Duration = Duration::from_secs(60);
