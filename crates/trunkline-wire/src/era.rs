//! How each revision spells the model: one const [`Profile`] per revision, one codec per era.
//!
//! Only this module and [`crate::method`] compare revisions.
//!
//! ```
//! use trunkline_wire::era::{Structured, stateful};
//! use trunkline_wire::{json::Json, model::Tool, revision::Revision};
//!
//! let old = Revision::V2024_11_05.profile();
//! assert_eq!(old.structured, Structured::None);
//! // A revision never gets a member that it lacks.
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

/// What a revision has, and how it spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The revision itself.
    pub revision: Revision,
    /// Its era.
    pub era: Era,
    /// How it treats batches.
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
    /// Its generation of tasks.
    pub tasks: Tasks,
    /// Whether invalid tool arguments are a tool result that the model sees, not a JSON-RPC error.
    pub argument_error_is_result: bool,
    /// The code for "no such resource".
    pub resource_missing: i64,
    /// Whether a client may disconnect from a stream and resume it (SEP-1699); a first event with only
    /// an id tells it so.
    pub polling: bool,
    /// Whether an error for an unreadable request id has `"id":null` instead of no id.
    pub unreadable_id_is_null: bool,
}

/// Whether batches may be received.
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
    /// The experimental tasks in the core of 2025-11-25: the requestor asks for a task.
    Core,
    /// The extension of 2026-07-28: the server decides.
    Extension,
}

impl Revision {
    /// The profile of this revision.
    pub const fn profile(self) -> &'static Profile {
        &PROFILES[self as usize]
    }
}

impl ErrorObject {
    /// The resource does not exist, as `revision` spells that.
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
