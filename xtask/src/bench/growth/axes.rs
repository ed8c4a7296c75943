//! What may grow beside a call, and the load that shows whether the call's cost grows with it.

use super::super::counted::Measurement;
use super::super::gateway::cases::{
    BARE, EMBEDDED_GATEWAY, GATEWAYS, Gateway, SESSION, STATELESS, Upstream, case,
};
use super::super::gateway::measurement;
use super::super::programs::{self, Program, Programs};

/// One thing that grows.
pub struct Axis {
    pub name: &'static str,
    pub title: &'static str,
    /// The sizes that are tried.
    pub sizes: &'static [u64],
    /// How the cost may follow.
    pub growth: Growth,
    /// Why it does.
    pub why: &'static str,
    pub lines: &'static [Line],
}

#[derive(Clone, Copy, PartialEq)]
pub enum Growth {
    Flat,
    Linear,
}

/// The load of one program when there is so much of what grows.
pub type Load = fn(&Programs, u64) -> Measurement;

/// Who is measured, and how.
pub struct Line {
    pub label: &'static str,
    pub measurement: Load,
}

pub const fn line(label: &'static str, measurement: Load) -> Line {
    Line { label, measurement }
}

pub const SERVER: &str = "trunkline";
pub const GATEWAY: &str = "gateway";
pub const BARE_GATEWAY: &str = "bare gateway";

/// What does nothing, as the driver's option names it, at each program, beside calls of sessions; at the gateway, beside
/// those of another revision where they would want another instance than what is idle.
macro_rules! idle_lines {
    ($option:literal) => {
        idle_lines!($option, SESSION)
    };
    ($option:literal, $revision:expr) => {
        [
            line(BARE, |programs, size| idle(programs, &programs::BARE.http, $option, size)),
            line(SERVER, |programs, size| idle(programs, &programs::TRUNKLINE.http, $option, size)),
            line(GATEWAY, |programs, size| told(gateway(programs, $revision), $option, size)),
        ]
    };
}
pub(in super::super) use idle_lines;

pub const TOOLS: [Line; 2] = [line(SERVER, server_tools), line(GATEWAY, upstream_tools)];

pub static AXES: [Axis; 8] = [
    Axis {
        name: "servers",
        title: "Servers in the catalog",
        sizes: &[1, 10, 100, 1000],
        growth: Growth::Flat,
        why: "A name is looked up in an index. At its start the gateway asks each server what it has, which is not counted: \
            two starts of many servers differ by more than all these calls take.",
        lines: &[line(GATEWAY, servers)],
    },
    Axis {
        name: "tools",
        title: "Tools of the server",
        sizes: &[1, 10, 100, 1000, 9000],
        growth: Growth::Flat,
        why: "A tool is found by its name in a map, here and in the gateway's index of its upstreams.",
        lines: &TOOLS,
    },
    Axis {
        name: "sessions",
        title: "Sessions that do nothing",
        sizes: &[1, 10, 100, 1000, 9990],
        growth: Growth::Flat,
        why: "A session is found by its id in a map, and none is looked at for the call of another.",
        lines: &idle_lines!("--sessions"),
    },
    Axis {
        name: "subscribers",
        title: "Clients that listen on a stream of their own",
        sizes: &[1, 10, 100, 1000],
        growth: Growth::Flat,
        why: "A stream costs when something is said on it, and a call says nothing to the others. What happens by the clock is \
            kept out: each connection is looked at every 10 s and each quiet stream gets a comment every 15 s, however many \
            calls there are, and that would be counted if it fell into the longer run alone. Here both are told to wait for \
            an hour.",
        lines: &idle_lines!("--streams"),
    },
    Axis {
        name: "rules",
        title: "Rules that do not fit the call",
        sizes: &[1, 10, 100, 1000],
        growth: Growth::Linear,
        why: "The first rule that fits decides, so each is looked at until then.",
        lines: &[line(GATEWAY, rules)],
    },
    Axis {
        name: "payload",
        title: "Bytes of the text that is echoed",
        sizes: &[100, 1000, 10_000, 100_000, 1_000_000, 16_000_000],
        growth: Growth::Linear,
        why: "A text is read and written a fixed number of times. A server reads no longer message than 16 MiB over stdio and \
            4 MiB over HTTP unless told, as those over HTTP are here.",
        lines: &[
            line("bare stdio", |programs, size| {
                stdio(programs, &programs::BARE.stdio, "--payload", size)
            }),
            line("trunkline stdio", |programs, size| {
                stdio(programs, &programs::TRUNKLINE.stdio, "--payload", size)
            }),
            line(BARE, |programs, size| heavy(http(programs, &programs::BARE.http, &[]), size)),
            line(SERVER, |programs, size| {
                heavy(http(programs, &programs::TRUNKLINE.http, &[]), size)
            }),
            line(BARE_GATEWAY, |programs, size| {
                heavy(hop(programs, STATELESS, &GATEWAYS[0]), size)
            }),
            line(GATEWAY, |programs, size| heavy(gateway(programs, STATELESS), size)),
        ],
    },
    Axis {
        name: "depth",
        title: "Calls in flight over stdio",
        sizes: &[1, 4, 16, 64],
        growth: Growth::Flat,
        why: "Calls are found by their ids. What is read and written together costs each of them less.",
        lines: &[
            line("bare, 2025-11-25", |programs, size| {
                pipelined(programs, &programs::BARE.stdio, SESSION, size)
            }),
            line("trunkline, 2025-11-25", |programs, size| {
                pipelined(programs, &programs::TRUNKLINE.stdio, SESSION, size)
            }),
            line("bare, 2026-07-28", |programs, size| {
                pipelined(programs, &programs::BARE.stdio, STATELESS, size)
            }),
            line("trunkline, 2026-07-28", |programs, size| {
                pipelined(programs, &programs::TRUNKLINE.stdio, STATELESS, size)
            }),
        ],
    },
    Axis {
        name: "connections",
        title: "Connections with a call in flight on each",
        sizes: &[1, 16, 256, 4096],
        growth: Growth::Flat,
        why: "A connection is a task that is woken when its bytes come. Calls at a server are found by their ids, at once if they \
            are answered in their order.",
        lines: &[
            line(BARE, |programs, size| wide(http(programs, &programs::BARE.http, &[]), size)),
            line(SERVER, |programs, size| {
                wide(http(programs, &programs::TRUNKLINE.http, &[]), size)
            }),
            line(GATEWAY, |programs, size| wide(roomy(gateway(programs, STATELESS)), size)),
        ],
    },
];

/// Every program that a line measures or that one of those calls.
pub static PROGRAMS: [&Program; 7] = [
    &programs::DRIVER,
    &programs::BARE.stdio,
    &programs::BARE.http,
    &programs::BARE_GATEWAY,
    &programs::TRUNKLINE.stdio,
    &programs::TRUNKLINE.http,
    &programs::EMBEDDED_GATEWAY,
];

fn http(programs: &Programs, program: &Program, load: &[&str]) -> Measurement {
    let load = [&["http"][..], load].concat();
    few(Measurement::new("http", &load, vec![programs.path(program)]))
}

pub fn idle(programs: &Programs, program: &Program, option: &str, size: u64) -> Measurement {
    told(http(programs, program, &["--revision", SESSION]), option, size)
}

fn stdio(programs: &Programs, program: &Program, option: &str, size: u64) -> Measurement {
    let command = vec![programs.path(program)];
    let it = Measurement::new("stdio", &["stdio", "--mode", "sequential"], command);
    if option == "--payload" { heavy(it, size) } else { few(told(it, option, size)) }
}

fn pipelined(programs: &Programs, program: &Program, revision: &str, depth: u64) -> Measurement {
    let command = vec![programs.path(program)];
    let load = ["stdio", "--mode", "pipelined", "--revision", revision];
    told(Measurement::new("stdio", &load, command), "--depth", depth)
}

pub fn hop(programs: &Programs, revision: &'static str, gateway: &Gateway) -> Measurement {
    few(measurement(programs, &case(revision, Upstream::Stdio, 1), gateway))
}

pub fn gateway(programs: &Programs, revision: &'static str) -> Measurement {
    hop(programs, revision, &EMBEDDED_GATEWAY)
}

/// A gateway with this catalog instead of its own.
fn with_catalog(mut it: Measurement, catalog: &str) -> Measurement {
    if let Some(at) = it.load.iter().position(|word| word == "--config") {
        it.load[at + 1] = catalog.to_owned();
    }
    it
}

/// A gateway that lets all calls of this benchmark into its server at once, and has the patience that callgrind needs.
fn roomy(it: Measurement) -> Measurement {
    let room = "maxConcurrent: 8192\n    timeouts: { callSeconds: 600 }";
    let catalog = EMBEDDED_GATEWAY.stdio_config.replace("maxConcurrent: 1024", room);
    with_catalog(it, &catalog)
}

pub fn servers(programs: &Programs, size: u64) -> Measurement {
    let others: String =
        (1..size).map(|number| format!("  other{number}: {{ command: '{{child}}' }}\n")).collect();
    let catalog = EMBEDDED_GATEWAY.stdio_config.to_owned() + &others;
    with_catalog(gateway(programs, STATELESS), &catalog)
}

fn rules(programs: &Programs, size: u64) -> Measurement {
    let rules: String = (0..size)
        .map(|number| format!("    - {{ tools: [\"other{number}.*\"], effect: deny }}\n"))
        .collect();
    let catalog = format!("gateway:\n  rules:\n{rules}{}", EMBEDDED_GATEWAY.stdio_config);
    with_catalog(gateway(programs, STATELESS), &catalog)
}

fn server_tools(programs: &Programs, size: u64) -> Measurement {
    let mut it = http(programs, &programs::TRUNKLINE.http, &[]);
    it.command.push(size.to_string());
    it
}

fn upstream_tools(programs: &Programs, size: u64) -> Measurement {
    let case = case(STATELESS, Upstream::Http, 1);
    let it = few(measurement(programs, &case, &EMBEDDED_GATEWAY));
    told(with_upstream_of_ours(programs, it), "--upstream", size)
}

/// A gateway whose callers wait for answers of their users. A server admits 64 calls of one session, so that many callers
/// need several of its sessions.
pub fn questions(programs: &Programs, size: u64) -> Measurement {
    let it = with_upstream_of_ours(
        programs,
        few(measurement(programs, &case(SESSION, Upstream::Http, 1), &EMBEDDED_GATEWAY)),
    );
    let room = "maxConcurrent: 50\n    maxInstances: 64";
    let catalog =
        EMBEDDED_GATEWAY.http_config.replace("maxConcurrent: 1024\n    maxInstances: 1", room);
    told(with_catalog(it, &catalog), "--questions", size)
}

/// A gateway in front of a server that has more than the bare one.
fn with_upstream_of_ours(programs: &Programs, mut it: Measurement) -> Measurement {
    if let Some(at) = it.load.iter().position(|word| word == "--upstream") {
        it.load[at + 1] = programs.path(&programs::TRUNKLINE.http);
    }
    it
}

pub fn told(mut it: Measurement, option: &str, value: u64) -> Measurement {
    it.load.extend([option.to_owned(), value.to_string()]);
    it
}

fn few(it: Measurement) -> Measurement {
    Measurement { calls: (200, 400), ..it }
}

/// Long texts take long under callgrind, and few of them are enough.
fn heavy(it: Measurement, payload: u64) -> Measurement {
    let more = (4_000_000 / payload).clamp(2, 400);
    Measurement { calls: (more / 2, more), ..told(it, "--payload", payload) }
}

/// A call or more on each connection.
fn wide(it: Measurement, connections: u64) -> Measurement {
    let calls = (connections.max(200), connections.max(400));
    // Said last, it counts.
    Measurement { calls, ..told(it, "--connections", connections) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_an_axis_once() {
        let names: std::collections::BTreeSet<&str> = AXES.iter().map(|axis| axis.name).collect();
        assert_eq!(names.len(), AXES.len());
        assert!(AXES.iter().all(|axis| axis.sizes.is_sorted() && !axis.lines.is_empty()));
    }
}
