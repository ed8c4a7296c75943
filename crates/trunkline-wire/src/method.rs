//! Every method: its sender, its revisions and the capability it needs.
//!
//! Absence from this table is the version gate: a method that a revision lacks gets "method not found",
//! in one place, for every transport.
//!
//! ```
//! use trunkline_wire::method::{Kind, Sender, find};
//! use trunkline_wire::revision::Revision;
//!
//! let row = find("tools/list", Sender::Client, Revision::V2024_11_05).unwrap();
//! assert_eq!(row.kind, Kind::Request);
//! assert_eq!(find("initialize", Sender::Client, Revision::V2026_07_28), None);
//! ```

use std::fmt;

use crate::revision::Revision::{self, *};

/// Who may send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Sender {
    Client,
    Server,
    Either,
}

/// Whether a response is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Request,
    Notification,
}

/// The capability that a method requires: the receiver's for requests, the sender's for notifications.
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
    /// The method.
    pub method: Method,
    /// Its name on the wire.
    pub name: &'static str,
    /// Request or notification.
    pub kind: Kind,
    /// Who may send it.
    pub sender: Sender,
    /// First revision that has it.
    pub since: Revision,
    /// Last revision that has it.
    pub until: Revision,
    /// The capability it requires.
    pub gate: Gate,
}

impl Row {
    /// Whether `revision` has this method.
    pub fn exists_in(&self, revision: Revision) -> bool {
        self.since <= revision && revision <= self.until
    }
}

macro_rules! table {
    ($(
        $Method:ident $name:literal:
            $($kind:ident $sender:ident $since:ident $until:ident $gate:ident),+;
    )*) => {
        /// A method of the table: its name in camel case, without `notifications/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $Method,)*
        }

        impl Method {
            /// Its name on the wire.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Method => $name,)*
                }
            }

            /// The method of that name. Case-sensitive, as in MCP.
            pub fn of(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$Method),)*
                    _ => None,
                }
            }
        }

        /// All methods. A method that two revisions use differently has a row for each.
        pub const TABLE: &[Row] = &[
            $($(Row {
                method: Method::$Method,
                name: $name,
                kind: Kind::$kind,
                sender: Sender::$sender,
                since: $since,
                until: $until,
                gate: Gate::$gate,
            },)+)*
        ];
    };
}

// `tasks/get` and `tasks/cancel` have two rows: the experimental tasks of 2025-11-25 and the extension
// of 2026-07-28 (SEP-2663) share two names and little else. The skills extension belongs to no
// revision: it applies wherever it is declared.
#[rustfmt::skip]
table! {
    Initialize                "initialize"                              : Request      Client V2024_11_05 V2025_11_25 None;
    ServerDiscover            "server/discover"                         : Request      Client V2026_07_28 V2026_07_28 None;
    Ping                      "ping"                                    : Request      Either V2024_11_05 V2025_11_25 None;
    ToolsCall                 "tools/call"                              : Request      Client V2024_11_05 V2026_07_28 Tools;
    ToolsList                 "tools/list"                              : Request      Client V2024_11_05 V2026_07_28 Tools;
    ResourcesList             "resources/list"                          : Request      Client V2024_11_05 V2026_07_28 Resources;
    ResourcesTemplatesList    "resources/templates/list"                : Request      Client V2024_11_05 V2026_07_28 Resources;
    ResourcesRead             "resources/read"                          : Request      Client V2024_11_05 V2026_07_28 Resources;
    ResourcesSubscribe        "resources/subscribe"                     : Request      Client V2024_11_05 V2025_11_25 Subscribe;
    ResourcesUnsubscribe      "resources/unsubscribe"                   : Request      Client V2024_11_05 V2025_11_25 Subscribe;
    PromptsList               "prompts/list"                            : Request      Client V2024_11_05 V2026_07_28 Prompts;
    PromptsGet                "prompts/get"                             : Request      Client V2024_11_05 V2026_07_28 Prompts;
    CompletionComplete        "completion/complete"                     : Request      Client V2024_11_05 V2026_07_28 Completions;
    LoggingSetLevel           "logging/setLevel"                        : Request      Client V2024_11_05 V2025_11_25 Logging;
    SubscriptionsListen       "subscriptions/listen"                    : Request      Client V2026_07_28 V2026_07_28 None;
    TasksGet                  "tasks/get"                               : Request      Either V2025_11_25 V2025_11_25 Tasks,
                                                                          Request      Client V2026_07_28 V2026_07_28 TasksExtension;
    TasksResult               "tasks/result"                            : Request      Either V2025_11_25 V2025_11_25 Tasks;
    TasksList                 "tasks/list"                              : Request      Either V2025_11_25 V2025_11_25 TaskList;
    TasksCancel               "tasks/cancel"                            : Request      Either V2025_11_25 V2025_11_25 TaskCancel,
                                                                          Request      Client V2026_07_28 V2026_07_28 TasksExtension;
    TasksUpdate               "tasks/update"                            : Request      Client V2026_07_28 V2026_07_28 TasksExtension;
    SkillsList                "skills/list"                             : Request      Client V2024_11_05 V2026_07_28 Skills;
    SkillsGet                 "skills/get"                              : Request      Client V2024_11_05 V2026_07_28 Skills;
    ResourcesDirectoryRead    "resources/directory/read"                : Request      Client V2024_11_05 V2026_07_28 Directories;
    SamplingCreateMessage     "sampling/createMessage"                  : Request      Server V2024_11_05 V2025_11_25 Sampling;
    RootsList                 "roots/list"                              : Request      Server V2024_11_05 V2025_11_25 Roots;
    ElicitationCreate         "elicitation/create"                      : Request      Server V2025_06_18 V2025_11_25 Elicitation;
    Initialized               "notifications/initialized"               : Notification Client V2024_11_05 V2025_11_25 None;
    Cancelled                 "notifications/cancelled"                 : Notification Either V2024_11_05 V2026_07_28 None;
    Progress                  "notifications/progress"                  : Notification Either V2024_11_05 V2025_11_25 None,
                                                                          Notification Server V2026_07_28 V2026_07_28 None;
    Message                   "notifications/message"                   : Notification Server V2024_11_05 V2026_07_28 Logging;
    ToolsListChanged          "notifications/tools/list_changed"        : Notification Server V2024_11_05 V2026_07_28 Tools;
    PromptsListChanged        "notifications/prompts/list_changed"      : Notification Server V2024_11_05 V2026_07_28 Prompts;
    ResourcesListChanged      "notifications/resources/list_changed"    : Notification Server V2024_11_05 V2026_07_28 Resources;
    ResourcesUpdated          "notifications/resources/updated"         : Notification Server V2024_11_05 V2026_07_28 Subscribe;
    RootsListChanged          "notifications/roots/list_changed"        : Notification Client V2024_11_05 V2025_11_25 Roots;
    ElicitationComplete       "notifications/elicitation/complete"      : Notification Server V2025_11_25 V2025_11_25 None;
    TasksStatus               "notifications/tasks/status"              : Notification Either V2025_11_25 V2025_11_25 Tasks;
    Tasks                     "notifications/tasks"                     : Notification Server V2026_07_28 V2026_07_28 TasksExtension;
    SubscriptionsAcknowledged "notifications/subscriptions/acknowledged": Notification Server V2026_07_28 V2026_07_28 None;
}

impl Method {
    /// The row of this method in `revision` for `sender`.
    pub fn row(self, sender: Sender, revision: Revision) -> Option<&'static Row> {
        TABLE.iter().find(|row| {
            row.method == self
                && (row.sender == sender || row.sender == Sender::Either)
                && row.exists_in(revision)
        })
    }

    /// Its row in the oldest revision that has it.
    pub fn oldest_row(self) -> &'static Row {
        let row = TABLE.iter().find(|row| row.method == self);
        row.expect("the table makes the methods, each with its rows")
    }

    /// Whether 2026-07-28 may answer it with `input_required`: the three requests whose result may be
    /// an `InputRequiredResult`.
    pub const fn may_ask(self) -> bool {
        matches!(self, Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A method compares with its name.
macro_rules! compares_with_text {
    ($kind:ident::$name:ident) => {
        impl PartialEq<str> for $kind {
            fn eq(&self, other: &str) -> bool {
                self.$name() == other
            }
        }

        impl PartialEq<&str> for $kind {
            fn eq(&self, other: &&str) -> bool {
                self.$name() == *other
            }
        }
    };
}

pub(crate) use compares_with_text;

compares_with_text!(Method::name);

/// Finds a method by name in `revision` for `sender`.
///
/// ```
/// # use trunkline_wire::{method::*, revision::Revision};
/// assert!(find("roots/list", Sender::Server, Revision::V2025_11_25).is_some());
/// assert!(find("roots/list", Sender::Client, Revision::V2025_11_25).is_none());
/// assert!(find("roots/list", Sender::Server, Revision::V2026_07_28).is_none());
/// ```
pub fn find(name: &str, sender: Sender, revision: Revision) -> Option<&'static Row> {
    Method::of(name)?.row(sender, revision)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    #[test]
    fn a_name_and_its_method_are_one() {
        for row in TABLE {
            assert_eq!((row.method.name(), Method::of(row.name)), (row.name, Some(row.method)));
            assert_eq!(row.method.oldest_row().method, row.method);
            // It is written as it is.
            assert_eq!(Json::string(row.name).get(), format!("\"{}\"", row.name));
        }
        for name in ["", "tools/cal", "Tools/Call", "tools/call ", "example.com/own"] {
            assert_eq!(Method::of(name), None, "{name}");
        }
    }

    #[test]
    fn a_method_has_no_two_rows_in_one_revision_for_one_sender() {
        for (at, one) in TABLE.iter().enumerate() {
            let twins = TABLE[at + 1..].iter().filter(|two| two.method == one.method);
            for two in twins {
                assert!(one.until < two.since, "{} stands twice", one.name);
                assert_eq!(one.kind, two.kind, "{}", one.name);
            }
        }
    }
}
