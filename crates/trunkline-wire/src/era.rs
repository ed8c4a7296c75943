//! How the model looks in each revision: one const [`Profile`] a revision, one codec an era.
//!
//! Revisions are compared here and in [`crate::method`] and nowhere else.
//!
//! ```
//! use trunkline_wire::era::{Structured, stateful};
//! use trunkline_wire::{json::Json, model::Tool, revision::Revision};
//!
//! let old = Revision::V2024_11_05.profile();
//! assert_eq!(old.structured, Structured::None);
//! // What a revision does not have, it is not told.
//! let tool = Tool::new("add", Json::empty_object()).title("Add numbers");
//! assert_eq!(stateful::encode_params(tool, old).get("title"), None);
//! ```

pub mod carry;
pub mod stateful;
pub mod stateless;

use crate::code;
use crate::json::Json;
use crate::jsonrpc::{ErrorObject, clip};
use crate::revision::{Era, Revision};

/// What a revision has and how it words things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The revision itself.
    pub revision: Revision,
    /// Which conversation it holds.
    pub era: Era,
    /// What to do with an array of messages.
    pub batch: Batch,
    /// Audio content, tool annotations, the `completions` capability.
    pub audio: bool,
    /// Titles, `_meta` on objects, completion context, resource links, structured output,
    /// elicitation.
    pub titles: bool,
    /// Icons, URL elicitation, sampling with tools, all five enum forms, defaults everywhere.
    pub icons: bool,
    /// What a tool's structured result may be.
    pub structured: Structured,
    /// Which generation of tasks.
    pub tasks: Tasks,
    /// Wrong tool arguments are a tool result that the model sees, not a JSON-RPC error.
    pub argument_error_is_result: bool,
    /// The code for "no such resource".
    pub resource_missing: i64,
    /// A client may hang up on a stream and come back for the rest of it, and is told so by a first
    /// event that has an id and nothing else.
    pub polling: bool,
    /// An error whose request id could not be read says `"id":null` instead of leaving it out.
    pub unreadable_id_is_null: bool,
}

/// Whether arrays of messages may be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// JSON-RPC has them and this revision is silent: accept, never send.
    Lenient,
    /// They must be accepted.
    Yes,
    /// They are refused.
    No,
}

/// What a structured result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structured {
    /// There is none.
    None,
    /// An object.
    Object,
    /// Any JSON.
    Any,
}

/// The generations of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tasks {
    /// There are none.
    None,
    /// The experimental ones in the core of 2025-11-25: the requestor asks for a task.
    Core,
    /// The extension of 2026-07-28: the server decides.
    Extension,
}

impl Revision {
    /// What this revision has.
    pub const fn profile(self) -> &'static Profile {
        &PROFILES[self as usize]
    }
}

impl ErrorObject {
    /// The resource does not exist, in the words of `revision`.
    pub fn resource_not_found(uri: &str, revision: Revision) -> Self {
        #[derive(serde::Serialize)]
        struct Data<'a> {
            uri: &'a str,
        }
        let code = revision.profile().resource_missing;
        Self::new(code, format!("There is no resource `{}`.", clip(uri)))
            .with_data(Json::of(&Data { uri }))
    }
}

const PROFILES: [Profile; 5] = {
    let r1 = Profile {
        revision: Revision::V2024_11_05,
        era: Era::Stateful,
        batch: Batch::Lenient,
        audio: false,
        titles: false,
        icons: false,
        structured: Structured::None,
        tasks: Tasks::None,
        argument_error_is_result: false,
        resource_missing: code::RESOURCE_NOT_FOUND,
        polling: false,
        unreadable_id_is_null: true,
    };
    let r2 = Profile { revision: Revision::V2025_03_26, batch: Batch::Yes, audio: true, ..r1 };
    let r3 = Profile {
        revision: Revision::V2025_06_18,
        batch: Batch::No,
        titles: true,
        structured: Structured::Object,
        ..r2
    };
    let r4 = Profile {
        revision: Revision::V2025_11_25,
        icons: true,
        tasks: Tasks::Core,
        argument_error_is_result: true,
        polling: true,
        unreadable_id_is_null: false,
        ..r3
    };
    let r5 = Profile {
        revision: Revision::V2026_07_28,
        era: Era::Stateless,
        structured: Structured::Any,
        tasks: Tasks::Extension,
        resource_missing: code::INVALID_PARAMS,
        polling: false,
        ..r4
    };
    [r1, r2, r3, r4, r5]
};
