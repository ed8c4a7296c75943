//! Debian's `redis-server`: one, a primary with sentinels, a cluster.

use std::fs::File;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::Folder;
use crate::ports::free_port;
use crate::process::{kill, signal, until};

/// Some `redis-server`s that belong together. They end with it.
pub struct Servers {
    folder: Folder,
    form: Form,
    nodes: Vec<Node>,
    sentinels: Vec<Node>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Single,
    Durable,
    Sentinel,
    Cluster,
}

struct Node {
    port: u16,
    child: Child,
}

/// One server.
pub fn single() -> Servers {
    let mut servers = Servers::new(Form::Single);
    servers.start();
    servers
}

/// One server whose data survives its end: what it confirmed is in its append-only file.
pub fn durable() -> Servers {
    let mut servers = Servers::new(Form::Durable);
    servers.start();
    servers
}

/// One server that also speaks TLS, with a certificate and its key in PEM, and the port for that.
pub fn encrypted(certificate: &str, key: &str) -> (Servers, u16) {
    let mut servers = Servers::new(Form::Single);
    let [certificate, key] = [("c.pem", certificate), ("k.pem", key)].map(|(name, text)| {
        let path = servers.folder.join(name);
        std::fs::write(&path, text).expect("the folder is ours");
        path.display().to_string()
    });
    let port = free_port();
    let mut more = vec!["--tls-port".to_owned(), port.to_string()];
    more.extend(["--tls-cert-file".to_owned(), certificate.clone()]);
    more.extend(["--tls-key-file".to_owned(), key]);
    more.extend(["--tls-ca-cert-file".to_owned(), certificate]);
    more.extend(["--tls-auth-clients".to_owned(), "no".to_owned()]);
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let node = servers.spawn(free_port(), &more);
    servers.nodes.push(node);
    (servers, port)
}

/// A primary with two replicas, and three sentinels that watch it.
pub fn sentinels() -> Servers {
    let mut servers = Servers::new(Form::Sentinel);
    let primary = servers.spawn(free_port(), &[]);
    let follow = format!("127.0.0.1 {}", primary.port);
    let replicas = [0, 1].map(|_| servers.spawn(free_port(), &["--replicaof", &follow]));
    servers.nodes.push(primary);
    servers.nodes.extend(replicas);
    servers.wait_for_replicas();
    for _ in 0..3 {
        let sentinel = servers.spawn_sentinel(free_port());
        servers.sentinels.push(sentinel);
    }
    for sentinel in &servers.sentinels {
        until("the sentinels know each other and the replicas", || {
            let told = ask(sentinel.port, &["SENTINEL", "MASTER", "main"]);
            let field = |name: &str| {
                told.lines().skip_while(|line| *line != name).nth(1).map(str::to_owned)
            };
            field("num-slaves").as_deref() == Some("2")
                && field("num-other-sentinels").as_deref() == Some("2")
        });
    }
    servers
}

/// A cluster of three nodes.
pub fn cluster() -> Servers {
    let mut servers = Servers::new(Form::Cluster);
    for _ in 0..3 {
        let node = servers.spawn(free_port(), &["--cluster-enabled", "yes"]);
        servers.nodes.push(node);
    }
    let addresses: Vec<String> =
        servers.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
    let mut create = Command::new("redis-cli");
    create.args(["--cluster", "create"]).args(&addresses).arg("--cluster-yes");
    let made = create.output().expect("redis-cli is Debian's redis-tools");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    for node in &servers.nodes {
        until("every node knows the whole cluster", || {
            let told = ask(node.port, &["CLUSTER", "INFO"]);
            told.contains("cluster_state:ok") && told.contains("cluster_known_nodes:3")
        });
    }
    servers
}

impl Servers {
    fn new(form: Form) -> Self {
        let (nodes, sentinels) = Default::default();
        Self { folder: Folder::new(), form, nodes, sentinels }
    }

    /// What a store is told.
    pub fn address(&self) -> String {
        let list = |nodes: &[Node]| {
            let nodes: Vec<String> =
                nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
            nodes.join(",")
        };
        match self.form {
            Form::Single | Form::Durable => format!("redis://{}", list(&self.nodes)),
            Form::Sentinel => format!("redis+sentinel://{}/main", list(&self.sentinels)),
            Form::Cluster => format!("redis+cluster://{}", list(&self.nodes)),
        }
    }

    /// Starts the one server, again on its port if it was stopped.
    pub fn start(&mut self) {
        let port = self.nodes.pop().map_or_else(free_port, |node| node.port);
        let more: &[&str] = match self.form {
            Form::Durable => &["--appendonly", "yes"],
            _ => &[],
        };
        let node = self.spawn(port, more);
        self.nodes.push(node);
    }

    /// Ends the one server, and keeps its port in mind.
    pub fn stop(&mut self) {
        kill(&mut self.nodes[0].child);
    }

    /// Lets the one server save and end as it likes (SIGTERM), and keeps its port in mind.
    pub fn shut_down(&mut self) {
        signal("TERM", self.nodes[0].child.id());
        let _ = self.nodes[0].child.wait();
    }

    /// Stops the one server where it is (SIGSTOP): its connections stay open, and nobody answers.
    pub fn freeze(&self) {
        signal("STOP", self.nodes[0].child.id());
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        signal("CONT", self.nodes[0].child.id());
    }

    /// The port of the primary, as the sentinels have it.
    pub fn primary(&self) -> u16 {
        let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"];
        let told = ask(self.sentinels[0].port, &words);
        let port = told.lines().nth(1).and_then(|line| line.trim().parse().ok());
        port.unwrap_or_else(|| panic!("the sentinels know the primary: {told}"))
    }

    /// Ends the primary without a word.
    pub fn kill_primary(&self) {
        let port = self.primary();
        let primary = self.nodes.iter().find(|node| node.port == port);
        signal("KILL", primary.expect("it is one of these").child.id());
    }

    /// Has the sentinels make another server the primary, while all of them run.
    pub fn hand_over(&self) {
        let told = ask(self.sentinels[0].port, &["SENTINEL", "FAILOVER", "main"]);
        assert_eq!(told.trim(), "OK", "the sentinels do it");
    }

    /// Waits until the replicas have all that the primary has.
    pub fn wait_for_replicas(&self) {
        until("two replicas follow", || {
            ask(self.nodes[0].port, &["WAIT", "2", "1000"]).trim() == "2"
        });
    }

    /// Asks the first data server.
    pub fn command(&self, words: &[&str]) -> String {
        ask(self.nodes[0].port, words)
    }

    fn folder(&self, port: u16) -> PathBuf {
        let folder = self.folder.join(port.to_string());
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn spawn(&self, port: u16, more: &[&str]) -> Node {
        let mut server = Command::new("redis-server");
        server.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        server.args(["--enable-debug-command", "local"]).args(more);
        self.run(server, port)
    }

    fn spawn_sentinel(&self, port: u16) -> Node {
        let settings = self.folder(port).join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\n\
             sentinel monitor main 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds main 2000\n\
             sentinel failover-timeout main 5000\n",
            self.nodes[0].port
        );
        std::fs::write(&settings, text).expect("a file");
        let mut server = Command::new("redis-server");
        server.arg(&settings).arg("--sentinel");
        self.run(server, port)
    }

    fn run(&self, mut server: Command, port: u16) -> Node {
        let folder = self.folder(port);
        let log = File::create(folder.join("log")).expect("a file");
        server.current_dir(&folder).stdin(Stdio::null());
        server.stdout(log.try_clone().expect("a second handle")).stderr(log);
        let child = server.spawn().expect("redis-server is a Debian package");
        until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        until("it answers", || ask(port, &["PING"]).trim() == "PONG");
        Node { port, child }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for node in self.nodes.iter_mut().chain(&mut self.sentinels) {
            kill(&mut node.child);
        }
    }
}

fn ask(port: u16, words: &[&str]) -> String {
    let asked = Command::new("redis-cli").args(["-p", &port.to_string()]).args(words).output();
    String::from_utf8_lossy(&asked.expect("redis-cli is Debian's redis-tools").stdout).into_owned()
}
