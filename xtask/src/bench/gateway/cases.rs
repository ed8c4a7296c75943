//! What is measured of gateways: which, in front of what, and how each is told.

use std::fmt;

/// A gateway that is measured.
pub struct Gateway {
    pub label: &'static str,
    /// What it is, for the page.
    pub what: &'static str,
    /// Where it takes calls.
    pub path: &'static str,
    /// What it calls the upstream's `echo`.
    pub tool: &'static str,
    /// Its configuration in front of either upstream; empty where words suffice.
    pub stdio_config: &'static str,
    pub http_config: &'static str,
    speaks_http_upstream: bool,
    speaks_stateless: bool,
}

impl Gateway {
    /// Whether it can be measured so.
    pub fn takes(&self, case: &Case) -> bool {
        (case.upstream == Upstream::Stdio || self.speaks_http_upstream)
            && (case.revision == SESSION || self.speaks_stateless)
    }

    /// Whether what it takes there is counted: what compiles while it runs takes another amount each time.
    pub fn is_counted(&self, case: &Case) -> bool {
        self.takes(case) && ![NPM, PYPI].contains(&self.label)
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Upstream {
    Stdio,
    Http,
}

/// One thing that is measured of every gateway that can do it.
#[derive(Clone, Copy, PartialEq)]
pub struct Case {
    pub revision: &'static str,
    pub upstream: Upstream,
    pub connections: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upstream = match self.upstream {
            Upstream::Stdio => "stdio",
            Upstream::Http => "HTTP",
        };
        write!(f, "{}, {upstream}, {}", self.revision, self.connections)
    }
}

pub const fn case(revision: &'static str, upstream: Upstream, connections: u32) -> Case {
    Case { revision, upstream, connections }
}

pub const CASES: [Case; 8] = [
    case(SESSION, Upstream::Stdio, 1),
    case(SESSION, Upstream::Stdio, 16),
    case(SESSION, Upstream::Http, 1),
    case(SESSION, Upstream::Http, 16),
    case(STATELESS, Upstream::Stdio, 1),
    case(STATELESS, Upstream::Stdio, 16),
    case(STATELESS, Upstream::Http, 1),
    case(STATELESS, Upstream::Http, 16),
];

/// The gateway's library without the rest of the binary: built in a fifth of the time, and measured where that counts.
pub static EMBEDDED_GATEWAY: Gateway = Gateway {
    label: EMBEDDED,
    what: "the library of `trunkline serve` (`bench/embedded-gateway`)",
    ..OUR_GATEWAY
};

/// The same with the recorder off.
pub static UNRECORDED_EMBEDDED_GATEWAY: Gateway = Gateway {
    label: EMBEDDED,
    what: "the library of `trunkline serve`, which records nothing",
    ..UNRECORDED_GATEWAY
};

/// The binary with the recorder off.
pub const UNRECORDED_GATEWAY: Gateway = Gateway {
    what: "`trunkline serve`, which records nothing",
    stdio_config: "gateway: { recording: off }\nmcpServers:\n  e:\n    command: {child}\n    maxConcurrent: 1024\n    maxInstances: 1\n",
    http_config: "gateway: { recording: off }\nmcpServers:\n  e:\n    url: http://{upstream}/mcp\n    maxConcurrent: 1024\n    maxInstances: 1\n",
    ..OUR_GATEWAY
};

const OUR_GATEWAY: Gateway = Gateway {
    label: OURS,
    what: "`trunkline serve`, one server in its catalog, one instance",
    path: "/mcp",
    tool: "e.echo",
    stdio_config: "mcpServers:\n  e:\n    command: {child}\n    maxConcurrent: 1024\n    maxInstances: 1\n",
    http_config: "mcpServers:\n  e:\n    url: http://{upstream}/mcp\n    maxConcurrent: 1024\n    maxInstances: 1\n",
    speaks_http_upstream: true,
    speaks_stateless: true,
};

/// A gateway that needs no configuration and speaks the least.
const PLAIN: Gateway = Gateway {
    label: "",
    what: "",
    path: "/mcp",
    tool: "echo",
    stdio_config: "",
    http_config: "",
    speaks_http_upstream: false,
    speaks_stateless: false,
};

pub static GATEWAYS: [Gateway; 5] = [
    Gateway {
        label: BARE,
        what: "hyper in, a pipe or hyper out, ids rewritten and nothing else (`bench/bare-gateway`)",
        speaks_http_upstream: true,
        speaks_stateless: true,
        ..PLAIN
    },
    OUR_GATEWAY,
    Gateway {
        label: RUST_PROXY,
        what: "the crate mcp-proxy 0.6.0, as `cargo install` builds it, one backend",
        path: "/",
        tool: "e_echo",
        stdio_config: "[proxy]\nname = \"bench\"\nseparator = \"_\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n[observability]\nlog_level = \"error\"\n[[backends]]\nname = \"e\"\ntransport = \"stdio\"\ncommand = \"{child}\"\n",
        http_config: "[proxy]\nname = \"bench\"\nseparator = \"_\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n[observability]\nlog_level = \"error\"\n[[backends]]\nname = \"e\"\ntransport = \"http\"\nurl = \"http://{upstream}/mcp\"\n",
        speaks_http_upstream: true,
        speaks_stateless: false,
    },
    Gateway {
        label: NPM,
        what: "the npm package supergateway 4.0.0, `--stateful`: a child for each session",
        ..PLAIN
    },
    Gateway { label: PYPI, what: "the PyPI package mcp-proxy 0.13.0, one child", ..PLAIN },
];

pub const BARE: &str = "bare";
pub const OURS: &str = "trunkline";
pub const EMBEDDED: &str = "embedded";
pub const RUST_PROXY: &str = "mcp-proxy";
pub const NPM: &str = "supergateway";
pub const PYPI: &str = "mcp-proxy-py";

/// All of them speak it.
pub const SESSION: &str = "2025-11-25";
pub const STATELESS: &str = "2026-07-28";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_measured_in_what_it_can_do() {
        let takes = |label: &str| {
            let gateway = GATEWAYS.iter().find(|it| it.label == label).expect("it is measured");
            CASES.iter().filter(|case| gateway.takes(case)).count()
        };
        assert_eq!([BARE, OURS, RUST_PROXY, NPM, PYPI].map(takes), [8, 8, 4, 2, 2]);
        assert!(GATEWAYS[2].is_counted(&CASES[0]) && !GATEWAYS[3].is_counted(&CASES[0]));
        assert_eq!(CASES[3].to_string(), "2025-11-25, HTTP, 16");
    }
}
