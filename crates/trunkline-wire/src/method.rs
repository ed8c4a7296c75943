//! Every method, who may send it, in which revisions it exists and what it needs.
//!
//! Absence from this table is the version gate: a method that a revision lacks is answered with
//! "method not found", in one place, for every transport.
//!
//! ```
//! use trunkline_wire::method::{Kind, Sender, find};
//! use trunkline_wire::revision::Revision;
//!
//! let row = find("tools/list", Sender::Client, Revision::V2024_11_05).unwrap();
//! assert_eq!(row.kind, Kind::Request);
//! assert_eq!(find("initialize", Sender::Client, Revision::V2026_07_28), None);
//! ```

use crate::revision::Revision::{self, *};

/// Who may send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Sender {
    Client,
    Server,
    Either,
}

/// Whether an answer is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Request,
    Notification,
}

/// The capability without which a method is not served: the receiver's for requests, the
/// sender's for notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Gate {
    None,
    Tools,
    Prompts,
    Resources,
    Subscribe,
    Logging,
    Completions,
    Tasks,
    TaskList,
    TaskCancel,
    TasksExtension,
    Skills,
    Directories,
    Sampling,
    Roots,
    Elicitation,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The method's name on the wire.
    pub name: &'static str,
    /// Request or notification.
    pub kind: Kind,
    /// Who may send it.
    pub sender: Sender,
    /// First revision that has it.
    pub since: Revision,
    /// Last revision that has it.
    pub until: Revision,
    /// What it needs.
    pub gate: Gate,
}

impl Row {
    /// Whether `revision` has this method.
    pub fn exists_in(&self, revision: Revision) -> bool {
        self.since <= revision && revision <= self.until
    }
}

/// The whole vocabulary. `tasks/get` and `tasks/cancel` stand twice: the experimental tasks of
/// 2025-11-25 and the extension of 2026-07-28 share two names and little else. The extension of
/// skills belongs to no revision: where it is declared, it is there.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    request("initialize",                Sender::Client, V2024_11_05, V2025_11_25, Gate::None),
    request("server/discover",           Sender::Client, V2026_07_28, V2026_07_28, Gate::None),
    request("ping",                      Sender::Either, V2024_11_05, V2025_11_25, Gate::None),
    request("tools/call",                Sender::Client, V2024_11_05, V2026_07_28, Gate::Tools),
    request("tools/list",                Sender::Client, V2024_11_05, V2026_07_28, Gate::Tools),
    request("resources/list",            Sender::Client, V2024_11_05, V2026_07_28, Gate::Resources),
    request("resources/templates/list",  Sender::Client, V2024_11_05, V2026_07_28, Gate::Resources),
    request("resources/read",            Sender::Client, V2024_11_05, V2026_07_28, Gate::Resources),
    request("resources/subscribe",       Sender::Client, V2024_11_05, V2025_11_25, Gate::Subscribe),
    request("resources/unsubscribe",     Sender::Client, V2024_11_05, V2025_11_25, Gate::Subscribe),
    request("prompts/list",              Sender::Client, V2024_11_05, V2026_07_28, Gate::Prompts),
    request("prompts/get",               Sender::Client, V2024_11_05, V2026_07_28, Gate::Prompts),
    request("completion/complete",       Sender::Client, V2024_11_05, V2026_07_28, Gate::Completions),
    request("logging/setLevel",          Sender::Client, V2024_11_05, V2025_11_25, Gate::Logging),
    request("subscriptions/listen",      Sender::Client, V2026_07_28, V2026_07_28, Gate::None),
    request("tasks/get",                 Sender::Either, V2025_11_25, V2025_11_25, Gate::Tasks),
    request("tasks/result",              Sender::Either, V2025_11_25, V2025_11_25, Gate::Tasks),
    request("tasks/list",                Sender::Either, V2025_11_25, V2025_11_25, Gate::TaskList),
    request("tasks/cancel",              Sender::Either, V2025_11_25, V2025_11_25, Gate::TaskCancel),
    request("tasks/get",                 Sender::Client, V2026_07_28, V2026_07_28, Gate::TasksExtension),
    request("tasks/update",              Sender::Client, V2026_07_28, V2026_07_28, Gate::TasksExtension),
    request("tasks/cancel",              Sender::Client, V2026_07_28, V2026_07_28, Gate::TasksExtension),
    request("skills/list",               Sender::Client, V2024_11_05, V2026_07_28, Gate::Skills),
    request("skills/get",                Sender::Client, V2024_11_05, V2026_07_28, Gate::Skills),
    request("resources/directory/read",  Sender::Client, V2024_11_05, V2026_07_28, Gate::Directories),
    request("sampling/createMessage",    Sender::Server, V2024_11_05, V2025_11_25, Gate::Sampling),
    request("roots/list",                Sender::Server, V2024_11_05, V2025_11_25, Gate::Roots),
    request("elicitation/create",        Sender::Server, V2025_06_18, V2025_11_25, Gate::Elicitation),
    notification("notifications/initialized",            Sender::Client, V2024_11_05, V2025_11_25, Gate::None),
    notification("notifications/cancelled",              Sender::Either, V2024_11_05, V2026_07_28, Gate::None),
    notification("notifications/progress",               Sender::Either, V2024_11_05, V2025_11_25, Gate::None),
    notification("notifications/progress",               Sender::Server, V2026_07_28, V2026_07_28, Gate::None),
    notification("notifications/message",                Sender::Server, V2024_11_05, V2026_07_28, Gate::Logging),
    notification("notifications/tools/list_changed",     Sender::Server, V2024_11_05, V2026_07_28, Gate::Tools),
    notification("notifications/prompts/list_changed",   Sender::Server, V2024_11_05, V2026_07_28, Gate::Prompts),
    notification("notifications/resources/list_changed", Sender::Server, V2024_11_05, V2026_07_28, Gate::Resources),
    notification("notifications/resources/updated",      Sender::Server, V2024_11_05, V2026_07_28, Gate::Subscribe),
    notification("notifications/roots/list_changed",     Sender::Client, V2024_11_05, V2025_11_25, Gate::Roots),
    notification("notifications/elicitation/complete",   Sender::Server, V2025_11_25, V2025_11_25, Gate::None),
    notification("notifications/tasks/status",           Sender::Either, V2025_11_25, V2025_11_25, Gate::Tasks),
    notification("notifications/tasks",                  Sender::Server, V2026_07_28, V2026_07_28, Gate::TasksExtension),
    notification("notifications/subscriptions/acknowledged", Sender::Server, V2026_07_28, V2026_07_28, Gate::None),
];

/// The requests of the table that 2026-07-28 no longer sends but embeds in `input_required`.
pub const EMBEDDED: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

/// The only requests that 2026-07-28 may answer with `input_required`.
pub const MAY_ASK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Finds a method as `revision` knows it and `sender` may send it.
///
/// ```
/// # use trunkline_wire::{method::*, revision::Revision};
/// assert!(find("roots/list", Sender::Server, Revision::V2025_11_25).is_some());
/// assert!(find("roots/list", Sender::Client, Revision::V2025_11_25).is_none());
/// assert!(find("roots/list", Sender::Server, Revision::V2026_07_28).is_none());
/// ```
pub fn find(name: &str, sender: Sender, revision: Revision) -> Option<&'static Row> {
    TABLE.iter().find(|row| {
        row.name == name
            && (row.sender == sender || row.sender == Sender::Either)
            && row.exists_in(revision)
    })
}

/// The table's own copy of a name.
///
/// ```
/// # use trunkline_wire::{method::*, revision::Revision};
/// let name = String::from("tools/call");
/// assert_eq!(static_name(&name), Some("tools/call"));
/// assert_eq!(static_name("tools/cal"), None);
/// ```
pub fn static_name(name: &str) -> Option<&'static str> {
    TABLE.iter().find(|row| row.name == name).map(|row| row.name)
}

const fn request(
    name: &'static str,
    sender: Sender,
    since: Revision,
    until: Revision,
    gate: Gate,
) -> Row {
    Row { name, kind: Kind::Request, sender, since, until, gate }
}

const fn notification(
    name: &'static str,
    sender: Sender,
    since: Revision,
    until: Revision,
    gate: Gate,
) -> Row {
    Row { name, kind: Kind::Notification, sender, since, until, gate }
}
