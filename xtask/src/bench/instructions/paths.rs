//! The ways a call goes whose instructions are counted, each in a bare program and in ours.

use super::super::counted::Measurement;
use super::super::gateway::cases::{
    EMBEDDED_GATEWAY, GATEWAYS, SESSION, STATELESS, UNRECORDED_EMBEDDED_GATEWAY,
    UNRECORDED_GATEWAY, Upstream, case,
};
use super::super::gateway::measurement;
use super::super::programs::{self, Program, Programs};

/// One way that a call goes.
pub struct Path {
    /// How it is asked for, and found in the table.
    pub name: &'static str,
    pub revision: &'static str,
    pub kind: Kind,
    /// How many times the bare program's instructions it may take, where that is promised.
    pub most: Option<f64>,
    /// How many allocations it may take, where that is promised.
    pub most_allocations: Option<f64>,
    /// Whether the tests count it, in a build that takes half the time of a release.
    pub is_checked: bool,
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// A stdio server, one call at a time or many.
    Stdio(&'static str),
    /// An HTTP server that answers with JSON or with events.
    Http(&'static str),
    Client(&'static str),
    /// `trunkline serve`.
    Gateway(Upstream),
    /// The same with the recorder off.
    UnrecordedGateway(Upstream),
    /// The same without the binary around it.
    Embedded(Upstream),
    /// That with the recorder off.
    Unrecorded(Upstream),
}

impl Path {
    /// What it is, for the page.
    pub fn what(&self) -> String {
        let kind = match self.kind {
            Kind::Stdio("sequential") => "stdio server, one call at a time",
            Kind::Stdio(_) => "stdio server, 64 calls in flight",
            Kind::Http("json") => "HTTP server",
            Kind::Http(_) => "HTTP server, progress and result as events",
            Kind::Client(_) => "HTTP client",
            Kind::Gateway(Upstream::Stdio) => "gateway to a stdio server",
            Kind::Gateway(Upstream::Http) => "gateway to an HTTP server",
            Kind::Embedded(Upstream::Stdio) => "the gateway's library to a stdio server",
            Kind::Embedded(Upstream::Http) => "the gateway's library to an HTTP server",
            Kind::Unrecorded(_) | Kind::UnrecordedGateway(_) => "the same with the recorder off",
        };
        format!("{kind}, {}", self.revision)
    }

    /// The program that is measured, or its bare counterpart.
    pub fn program(&self, side: Side) -> Option<&'static Program> {
        let (bare, ours) = match self.kind {
            Kind::Stdio(_) => (&programs::BARE.stdio, &programs::TRUNKLINE.stdio),
            Kind::Http(_) => (&programs::BARE.http, &programs::TRUNKLINE.http),
            Kind::Client(_) => (&programs::BARE.client, &programs::TRUNKLINE.client),
            Kind::Embedded(_) | Kind::Unrecorded(_) => {
                (&programs::BARE_GATEWAY, &programs::EMBEDDED_GATEWAY)
            }
            Kind::Gateway(_) | Kind::UnrecordedGateway(_) if side == Side::Ours => return None,
            Kind::Gateway(_) | Kind::UnrecordedGateway(_) => {
                (&programs::BARE_GATEWAY, &programs::BARE_GATEWAY)
            }
        };
        Some(if side == Side::Bare { bare } else { ours })
    }

    /// Whether it is counted in a release: all but what is there to stand for the binary.
    pub fn is_released(&self) -> bool {
        !matches!(self.kind, Kind::Embedded(_) | Kind::Unrecorded(_))
    }

    /// Whether it can be counted without a release of the binary.
    pub fn is_quick(&self) -> bool {
        self.program(Side::Ours).is_some()
    }

    /// The load of it, as the driver makes it.
    pub fn measurement(&self, programs: &Programs, side: Side) -> Measurement {
        let command = || self.program(side).map(|it| vec![programs.path(it)]).unwrap_or_default();
        let server = programs.path(&programs::BARE.http);
        let name = format!("{}, {}", self.name, side.name());
        let revision = ["--revision", self.revision];
        match self.kind {
            Kind::Stdio(mode) => {
                let load = [&["stdio", "--mode", mode][..], &revision].concat();
                Measurement::new(&name, &load, command())
            }
            Kind::Http(reply) => {
                let load = [&["http", "--reply", reply][..], &revision].concat();
                Measurement::new(&name, &load, command())
            }
            Kind::Client(mode) => {
                Measurement::new(&name, &["client", "--server", &server, "--mode", mode], command())
            }
            Kind::Gateway(upstream)
            | Kind::UnrecordedGateway(upstream)
            | Kind::Embedded(upstream)
            | Kind::Unrecorded(upstream) => {
                let gateway = match (side, self.kind) {
                    (Side::Bare, _) => &GATEWAYS[0],
                    (Side::Ours, Kind::Embedded(_)) => &EMBEDDED_GATEWAY,
                    (Side::Ours, Kind::Unrecorded(_)) => &UNRECORDED_EMBEDDED_GATEWAY,
                    (Side::Ours, Kind::UnrecordedGateway(_)) => &UNRECORDED_GATEWAY,
                    (Side::Ours, _) => &GATEWAYS[1],
                };
                let measurement = measurement(programs, &case(self.revision, upstream, 1), gateway);
                Measurement { name, ..measurement }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    Bare,
    Ours,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Bare => "bare",
            Side::Ours => "trunkline",
        }
    }
}

const fn path(name: &'static str, revision: &'static str, kind: Kind) -> Path {
    Path { name, revision, kind, most: None, most_allocations: None, is_checked: false }
}

impl Path {
    const fn checked(self) -> Path {
        Path { is_checked: true, ..self }
    }

    const fn at_most(self, most: f64) -> Path {
        Path { most: Some(most), ..self }
    }

    const fn allocating(self, most: f64) -> Path {
        Path { most_allocations: Some(most), ..self }
    }
}

pub const PATHS: [Path; 22] = [
    path("stdio", SESSION, Kind::Stdio("sequential")).checked(),
    path("stdio-26", STATELESS, Kind::Stdio("sequential")),
    path("pipelined", SESSION, Kind::Stdio("pipelined")).checked(),
    path("pipelined-26", STATELESS, Kind::Stdio("pipelined")).checked(),
    path("http", SESSION, Kind::Http("json")).at_most(1.35).allocating(12.0).checked(),
    path("http-26", STATELESS, Kind::Http("json")).at_most(1.35).allocating(12.0).checked(),
    path("sse", SESSION, Kind::Http("sse")).checked(),
    path("sse-26", STATELESS, Kind::Http("sse")).checked(),
    path("client", SESSION, Kind::Client("session")),
    path("client-26", STATELESS, Kind::Client("stateless")).checked(),
    path("gateway", SESSION, Kind::Gateway(Upstream::Stdio)).at_most(1.6),
    path("gateway-26", STATELESS, Kind::Gateway(Upstream::Stdio)).at_most(1.6),
    path("gateway-off", SESSION, Kind::UnrecordedGateway(Upstream::Stdio)),
    path("gateway-off-26", STATELESS, Kind::UnrecordedGateway(Upstream::Stdio)),
    path("gateway-http", SESSION, Kind::Gateway(Upstream::Http)).at_most(1.6),
    path("gateway-http-26", STATELESS, Kind::Gateway(Upstream::Http)).at_most(1.6),
    path("embedded", SESSION, Kind::Embedded(Upstream::Stdio)).checked(),
    path("embedded-26", STATELESS, Kind::Embedded(Upstream::Stdio)).checked(),
    path("embedded-http", SESSION, Kind::Embedded(Upstream::Http)),
    path("embedded-http-26", STATELESS, Kind::Embedded(Upstream::Http)),
    path("unrecorded", SESSION, Kind::Unrecorded(Upstream::Stdio)).checked(),
    path("unrecorded-26", STATELESS, Kind::Unrecorded(Upstream::Stdio)).checked(),
];

/// A path that records its calls and the same path that does not.
pub struct Recording {
    pub on: &'static str,
    pub off: &'static str,
    /// How many times what is not recorded it may take.
    pub most: f64,
}

const fn recording(on: &'static str, off: &'static str, most: f64) -> Recording {
    Recording { on, off, most }
}

pub const RECORDINGS: [Recording; 4] = [
    recording("gateway", "gateway-off", RECORDED),
    recording("gateway-26", "gateway-off-26", RECORDED),
    recording("embedded", "unrecorded", RECORDED),
    recording("embedded-26", "unrecorded-26", RECORDED + BUILDS),
];

/// What is promised.
const RECORDED: f64 = 1.03;
/// What two builds of the same code path differ by at 2026-07-28 in the profile of the tests, which promises nothing.
const BUILDS: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_checked_with_the_tests_needs_no_release_of_the_binary() {
        let checked: Vec<&Path> = PATHS.iter().filter(|path| path.is_checked).collect();
        // Each takes a few seconds on two cores, of programs that are built once for all of them.
        assert!((5..=12).contains(&checked.len()));
        assert!(checked.iter().all(|path| path.is_quick()));
    }

    #[test]
    fn what_records_has_a_path_beside_it_that_does_not() {
        for pair in &RECORDINGS {
            let [on, off] = [pair.on, pair.off].map(|name| PATHS.iter().find(|it| it.name == name));
            let (on, off) = on.zip(off).expect("both are counted");
            assert_eq!((on.revision, on.is_checked), (off.revision, off.is_checked));
        }
    }

    #[test]
    fn no_two_paths_have_one_name() {
        let names: std::collections::BTreeSet<&str> = PATHS.iter().map(|path| path.name).collect();
        assert_eq!(names.len(), PATHS.len());
    }
}
