//! What cannot be mapped, why, and what a client is told instead.

use std::fmt;

use trunkline::Revision::{self, V2025_06_18, V2025_11_25, V2026_07_28};

use super::cells::Part;

/// An entry of the list.
pub(super) struct Unmapped {
    pub(super) letter: char,
    /// What does not work.
    parts: &'static [Part],
    /// Between which revisions: client, server.
    between: fn(Revision, Revision) -> bool,
    pub(super) why: &'static str,
    pub(super) told: Told<&'static str>,
}

/// What a client is told where something does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told<T = String> {
    /// The tool says that it failed, in these words.
    Tool(T),
    /// An error of the protocol: its code, and what its `data` holds of this.
    Error(i64, T),
    /// None of both: what happened.
    Wrong(T),
}

impl Told<&'static str> {
    /// Whether that is what was told.
    pub(super) fn is(&self, told: &Told) -> bool {
        match (self, told) {
            (Self::Tool(one), Told::Tool(other)) => one == other,
            (Self::Error(code, one), Told::Error(other, data)) => code == other && one == data,
            _ => false,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Told<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(words) => write!(f, "isError: {words}"),
            Self::Error(code, data) => write!(f, "error {code}, data {data}"),
            Self::Wrong(what) => write!(f, "{what}"),
        }
    }
}

/// The entry for something between two revisions.
pub(super) fn entry(part: Part, client: Revision, server: Revision) -> Option<&'static Unmapped> {
    UNMAPPED.iter().find(|it| it.parts.contains(&part) && (it.between)(client, server))
}

/// Everything that cannot be mapped; the numbers are those of the protocol map's section 2.6.
pub(super) const UNMAPPED: &[Unmapped] = &[
    Unmapped {
        letter: 'a',
        parts: &[Part::Form, Part::Rounds],
        between: |client, server| client < V2025_06_18 && server < V2026_07_28,
        why: "Clients before 2025-06-18 cannot be asked; the server is told so and answers itself.",
        told: Told::Tool("This client cannot be asked: it lacks form elicitation."),
    },
    Unmapped {
        letter: 'b',
        parts: &[Part::Form, Part::Rounds],
        between: |client, server| client < V2025_06_18 && server == V2026_07_28,
        why: "Clients before 2025-06-18 cannot be asked; the server names what it needs.",
        told: Told::Error(-32602, r#"requiredCapabilities {"elicitation":{"form":{}}}"#),
    },
    Unmapped {
        letter: 'c',
        parts: &[Part::Form, Part::Rounds],
        between: |client, server| client >= V2025_06_18 && server < V2025_06_18,
        why: "Servers before 2025-06-18 have no words to ask with, whoever is there.",
        told: Told::Tool("This client cannot be asked: it lacks form elicitation."),
    },
    Unmapped {
        letter: 'd',
        parts: &[Part::Url],
        between: |client, server| client < V2025_11_25 && server < V2026_07_28,
        why: "2.6 no. 12: clients before 2025-11-25 cannot be sent to a page.",
        told: Told::Tool("This client cannot be asked: it lacks URL elicitation."),
    },
    Unmapped {
        letter: 'e',
        parts: &[Part::Url],
        between: |client, server| client < V2025_11_25 && server == V2026_07_28,
        why: "2.6 no. 12: clients before 2025-11-25 cannot be sent to a page.",
        told: Told::Error(-32602, r#"requiredCapabilities {"elicitation":{"url":{}}}"#),
    },
    Unmapped {
        letter: 'f',
        parts: &[Part::Url],
        between: |client, server| client >= V2025_11_25 && server < V2025_11_25,
        why: "Servers before 2025-11-25 have no words to send anybody to a page with.",
        told: Told::Tool("This client cannot be asked: it lacks URL elicitation."),
    },
];
