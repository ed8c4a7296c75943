//! Three processes of a server made with the SDK, the Redis that they share, and a balancer before them.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::net::TcpStream;
use trunkline_testkit::ports::free_port;
use trunkline_testkit::process::kill;
use trunkline_testkit::redis;

use crate::balancer::Balancer;
use crate::stage::{PATIENCE, Stage, replicas, soon};

/// All that runs; it ends with this.
pub(crate) struct Servers {
    pub(crate) balancer: Balancer,
    processes: Vec<Child>,
    _redis: redis::Servers,
}

impl Servers {
    /// Starts a program that takes `--port N --replicas REDIS INTERNAL` and has `/readyz`.
    pub(crate) async fn start(program: &Path) -> Self {
        let folder = Stage::folder_of("servers");
        std::fs::create_dir_all(&folder).expect("a folder for what is temporary");
        let redis = redis::durable();
        let (mut addresses, mut processes) = (Vec::new(), Vec::new());
        for number in 0..replicas() {
            let [public, internal] =
                [(); 2].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
            let log = File::create(folder.join(format!("{number}.log"))).expect("a file");
            let mut command = Command::new(program);
            command.args(["--port", &public.port().to_string()]);
            command.args(["--replicas", &redis.address(), &internal.to_string()]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            processes.push(command.spawn().expect("the program was built"));
            addresses.push(public);
        }
        // A balancer believes in a server until its first check.
        for address in &addresses {
            let listens = async || TcpStream::connect(address).await.is_ok();
            soon("a server listens", PATIENCE, listens).await;
        }
        let balancer = Balancer::start_before_servers(&folder, &addresses);
        let servers = Self { balancer, processes, _redis: redis };
        servers.balancer.whole().await;
        servers
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(kill);
    }
}
