//! What is measured over HTTP: each case as words for the driver.

use std::fmt;

use super::super::programs::{self, Program};

/// Whom the figures are of.
pub const LABELS: [&str; 3] = ["bare", OURS, "rmcp"];
pub const OURS: &str = "trunkline";

/// One thing that is measured of every program.
pub struct Case {
    pub name: String,
    pub kind: Kind,
}

#[derive(Clone, Copy)]
pub enum Kind {
    Server {
        revision: &'static str,
        reply: &'static str,
        connections: u32,
        payload: u32,
    },
    /// How much more a call costs when there are this many more tools.
    Tools(u32),
    Client {
        mode: &'static str,
        tasks: u32,
    },
}

/// The case of a server under load.
pub fn server(revision: &'static str, reply: &'static str, payload: u32, connections: u32) -> Case {
    let shown = if payload == SHORT { "100 B" } else { "64 KB" };
    let name = format!("{revision}, {}, {shown}, {connections}", reply.to_uppercase());
    Case { name, kind: Kind::Server { revision, reply, connections, payload } }
}

/// The case of a server with more tools than the two.
pub fn tools(extra: u32) -> Case {
    Case { name: format!("{} tools", extra + 2), kind: Kind::Tools(extra) }
}

/// The case of a client.
pub fn client(mode: &'static str, tasks: u32) -> Case {
    let shown = match mode {
        "session" => "2025-11-25",
        "shared" => "2026-07-28, one client",
        _ => "2026-07-28",
    };
    Case { name: format!("client, {shown}, {tasks}"), kind: Kind::Client { mode, tasks } }
}

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for revision in REVISIONS {
        for (reply, payload, connections) in [
            ("json", SHORT, &[1, 16, 64][..]),
            ("json", LONG, &[1, 16, 64]),
            ("sse", SHORT, &[1, 16, 64]),
            ("sse", LONG, &[16]),
        ] {
            cases.extend(connections.iter().map(|n| server(revision, reply, payload, *n)));
        }
    }
    cases.extend([tools(0), tools(100)]);
    cases.extend([client("stateless", 1), client("stateless", 16)]);
    cases.extend([client("shared", 16), client("session", 16)]);
    cases
}

/// One of each kind, for a minute.
pub fn quick() -> Vec<Case> {
    let mut cases = Vec::new();
    for revision in REVISIONS {
        cases.push(server(revision, "json", SHORT, 1));
        cases.push(server(revision, "json", SHORT, 16));
        cases.push(server(revision, "sse", SHORT, 16));
        cases.push(server(revision, "json", LONG, 16));
    }
    cases.extend([tools(0), tools(100)]);
    cases.extend([client("stateless", 1), client("stateless", 16)]);
    cases
}

/// The cases whose instructions and system calls are counted.
pub fn counted() -> Vec<Case> {
    let of = |revision| ["json", "sse"].map(|reply| server(revision, reply, SHORT, 16));
    REVISIONS.into_iter().flat_map(of).collect()
}

/// Every program of a label.
pub fn programs(label: &str) -> [&'static Program; 2] {
    match label {
        "bare" => [&programs::BARE.http, &programs::BARE.client],
        OURS => [&programs::TRUNKLINE.http, &programs::TRUNKLINE.client],
        _ => [&programs::RMCP.http, &programs::RMCP.client],
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Case {
    pub fn program(&self, label: &str) -> &'static Program {
        let [server, client] = programs(label);
        if matches!(self.kind, Kind::Client { .. }) { client } else { server }
    }

    /// The bare programs have neither a router nor a client to share.
    pub fn is_for(&self, label: &str) -> bool {
        label != "bare"
            || !matches!(self.kind, Kind::Tools(_) | Kind::Client { mode: "shared", .. })
    }

    /// The driver's words up to the amount; clients call `server`.
    pub fn words(&self, server: &str) -> Vec<String> {
        let words: Vec<(&str, String)> = match self.kind {
            Kind::Server { revision, reply, connections, payload } => vec![
                ("--revision", revision.into()),
                ("--reply", reply.into()),
                ("--connections", connections.to_string()),
                ("--payload", payload.to_string()),
            ],
            Kind::Tools(_) => vec![("--connections", "16".into())],
            Kind::Client { mode, tasks } => vec![
                ("--server", server.into()),
                ("--mode", mode.into()),
                ("--tasks", tasks.to_string()),
            ],
        };
        let what = if matches!(self.kind, Kind::Client { .. }) { "client" } else { "http" };
        let pairs = words.into_iter().flat_map(|(option, value)| [option.to_owned(), value]);
        [what.to_owned()].into_iter().chain(pairs).collect()
    }

    /// What the program is started with.
    pub fn arguments(&self) -> Vec<String> {
        match self.kind {
            Kind::Tools(extra) => vec![extra.to_string()],
            _ => Vec::new(),
        }
    }
}

pub const REVISIONS: [&str; 2] = [MODERN, SESSION];
pub const MODERN: &str = "2026-07-28";
pub const SESSION: &str = "2025-11-25";
pub const SHORT: u32 = 100;
pub const LONG: u32 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_becomes_words_for_the_driver() {
        let case = server(MODERN, "sse", SHORT, 16);
        assert_eq!(case.name, "2026-07-28, SSE, 100 B, 16");
        let words = "http --revision 2026-07-28 --reply sse --connections 16 --payload 100";
        assert_eq!(case.words("bare-http").join(" "), words);
        let words = "client --server bare-http --mode shared --tasks 16";
        assert_eq!(client("shared", 16).words("bare-http").join(" "), words);
        assert_eq!(tools(100).arguments(), ["100"]);
    }
}
