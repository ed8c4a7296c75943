//! What is told of a call: at its beginning, and as it goes on.

use std::time::Instant;

use trunkline_recording::line::Side;
use trunkline_wire::jsonrpc::MethodName;
use trunkline_wire::revision::Revision;

use crate::trace::Trace;
use crate::traffic::Who;
use crate::traffic::call_log::{CallTarget, Ended, Stage};

/// What happens to a call beside its messages.
#[derive(Debug)]
pub(crate) enum What {
    /// Its caller comes back to it.
    Returns,
    /// It is about to reach an instance.
    Sends(Sends),
    /// From now on the time belongs to this stage.
    Enters(Stage),
    /// Somebody is asked; so many questions reach the caller.
    Asks(u32),
    /// So many more questions reach the caller.
    Parks(u32),
    /// What it is about, if nothing else has said so.
    IsAbout(CallTarget),
    /// It is what is said to this instance beside calls.
    IsWith { server: CallTarget, instance: u64, revision: Revision },
    /// A handshake agreed on this revision.
    Speaks(Revision),
    /// It ends, or its round does.
    Ends(Ended),
}

/// A call reaches an instance.
#[derive(Debug)]
pub(crate) struct Sends {
    pub(crate) to: CallTarget,
    pub(crate) instance: u64,
    pub(crate) revision: Revision,
    /// Whether the instance started for it.
    pub(crate) is_new: bool,
    /// Since when it has waited, if at all.
    pub(crate) waits: Option<Instant>,
}

/// What is known of a call at its beginning.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) id: Trace,
    pub(crate) began: Instant,
    pub(crate) method: MethodName,
    pub(crate) revision: Revision,
    pub(crate) who: Who,
    /// Whether it is a call, and not what a conversation says beside its calls.
    pub(crate) is_call: bool,
    /// The side whose bytes are counted.
    pub(crate) counts: Side,
}
