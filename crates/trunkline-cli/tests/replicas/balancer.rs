//! Debian's `haproxy` with the configuration that is shipped, at ports of this machine.

use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use trunkline_testkit::ports::free_port;
use trunkline_testkit::process::{kill, until};

use crate::stage::{PATIENCE, soon};

/// A balancer that runs; it ends with this.
pub(crate) struct Balancer {
    pub(crate) address: SocketAddr,
    socket: PathBuf,
    process: Child,
}

impl Balancer {
    pub(crate) fn start(folder: &Path, replicas: &[SocketAddr]) -> Self {
        Self::start_with(folder, replicas, "")
    }

    /// The same before servers of the SDK, which want to be called by a name they know in checks, too.
    pub(crate) fn start_before_servers(folder: &Path, replicas: &[SocketAddr]) -> Self {
        Self::start_with(folder, replicas, "    http-check send hdr Host localhost\n")
    }

    fn start_with(folder: &Path, replicas: &[SocketAddr], check: &str) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let socket = folder.join("haproxy.sock");
        let config = folder.join("haproxy.cfg");
        let mut text = configuration(address, &socket, replicas);
        let at = text.find(CHECK).expect("the shipped file has a check") + CHECK.len();
        text.insert_str(at, check);
        std::fs::write(&config, text).expect("a file");
        let log = File::create(folder.join("haproxy.log")).expect("a file");
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&config).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a second handle")).stderr(log);
        let process = command.spawn().expect("haproxy is a Debian package");
        let balancer = Self { address, socket, process };
        until("the balancer answers", || balancer.asked("show info").is_some());
        balancer
    }

    /// Waits until every replica is in rotation.
    pub(crate) async fn whole(&self) {
        let in_rotation = async || self.servers().iter().all(|(_, is_up)| *is_up);
        soon("every replica is in rotation", PATIENCE, in_rotation).await;
    }

    /// How many requests each replica got, and whether it is in rotation.
    pub(crate) fn servers(&self) -> Vec<(u64, bool)> {
        let table = self.asked("show stat").expect("the balancer answers");
        let mut lines = table.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |name: &str| head.iter().position(|it| it.trim_start_matches("# ") == name);
        let [service, status, requests] =
            ["svname", "status", "req_tot"].map(|name| column(name).expect("a column"));
        let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
        let rows = rows.filter(|row| row.get(service).is_some_and(|it| it.starts_with("replica-")));
        rows.map(|row| (row[requests].parse().unwrap_or_default(), row[status].starts_with("UP")))
            .collect()
    }

    fn asked(&self, question: &str) -> Option<String> {
        let mut stream = UnixStream::connect(&self.socket).ok()?;
        stream.write_all(format!("{question}\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        kill(&mut self.process);
    }
}

/// The shipped file with its addresses replaced.
fn configuration(address: SocketAddr, socket: &Path, replicas: &[SocketAddr]) -> String {
    let servers: Vec<String> = (0..)
        .zip(replicas)
        .map(|(number, replica)| format!("    server replica-{number} {replica}"))
        .collect();
    let (shipped, _) = SHIPPED.split_once("\nresolvers ").expect("the resolvers come last");
    let mut text = String::new();
    let mut replaced = 0;
    for line in shipped.lines() {
        let other = match line.trim() {
            "global" => format!("global\n    stats socket {} level admin", socket.display()),
            "bind :7373" => format!("    bind {address}"),
            it if it.starts_with("server-template ") => servers.join("\n"),
            _ => {
                text.push_str(&format!("{line}\n"));
                continue;
            }
        };
        replaced += 1;
        text.push_str(&format!("{other}\n"));
    }
    assert_eq!(replaced, 3, "the shipped file has one of each: {text}");
    text
}

const SHIPPED: &str = include_str!("../../../../packaging/replicas/haproxy.cfg");
const CHECK: &str = "option httpchk GET /readyz\n";
