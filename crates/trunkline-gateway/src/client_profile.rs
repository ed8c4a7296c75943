//! Turns a client's capabilities into the profile by which instances are lent, and back.
//!
//! A server of the stateful era learns its client's capabilities once. So a session opened for one kind of
//! caller is not lent to a less capable one. If a server speaks both eras, a caller gets a connection of its
//! own era: only in the stateful era can a server ask in the middle of a call.

use trunkline_proto::Peer;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability, TASKS_EXTENSION,
};
use trunkline_wire::revision::Era;

use crate::pool::Profile;

const FORM: u8 = 1;
const URL: u8 = 2;
const SAMPLING: u8 = 4;
const SAMPLING_TOOLS: u8 = 8;
pub(crate) const ROOTS: u8 = 16;
/// The connection is stateful though the server also speaks the stateless era, or it is of the only era the
/// server speaks. Exactly one of the two bits is set, so that neither serves for the other.
const OLD: u8 = 32;
const ANY: u8 = 64;
/// The client shows the user interfaces of tools (MCP Apps, SEP-1865).
const INTERFACES: u8 = 128;
/// Both kinds of elicitation.
pub(crate) const ELICITATION: u8 = FORM | URL;
pub(crate) const ANY_SAMPLING: u8 = SAMPLING | SAMPLING_TOOLS;

/// Everything that can be asked through the gateway.
pub(crate) const ALL: Profile =
    Profile(FORM | URL | SAMPLING | SAMPLING_TOOLS | ROOTS | INTERFACES);

/// What a caller can be asked, and in which era.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientProfile {
    pub(crate) profile: Profile,
    pub(crate) era: Era,
}

impl ClientProfile {
    /// A caller with every capability.
    pub(crate) const ALL: Self = Self { profile: ALL, era: Era::Stateless };

    pub(crate) fn of(peer: &Peer, era: Era) -> Self {
        Self { profile: profile(&peer.client), era }
    }
}

/// The profile of a connection in the stateful era, if the server speaks it, or else in the server's era.
pub(crate) fn connected(profile: Profile, is_old: bool) -> Profile {
    Profile(profile.0 & ALL.0 | if is_old { OLD } else { ANY })
}

/// Whether a connection prefers the stateful era. One that serves every caller does not.
pub(crate) fn is_old(profile: Profile) -> bool {
    profile.0 & (OLD | ANY) == OLD
}

/// The profile of a caller.
fn profile(caller: &ClientCapabilities) -> Profile {
    let mut bits = 0;
    if let Some(elicitation) = caller.elicitation {
        bits |= if elicitation.form { FORM } else { 0 };
        bits |= if elicitation.url { URL } else { 0 };
    }
    if let Some(sampling) = caller.sampling {
        bits |= SAMPLING;
        bits |= if sampling.tools { SAMPLING_TOOLS } else { 0 };
    }
    bits |= if caller.roots.is_some() { ROOTS } else { 0 };
    bits |= if caller.extensions.contains_key(APPS) { INTERFACES } else { 0 };
    Profile(bits)
}

/// Whether callers of a profile can be asked anything but their roots.
pub(crate) fn can_be_asked(profile: Profile) -> bool {
    profile.0 & (ELICITATION | ANY_SAMPLING) != 0
}

/// Whether callers of a profile have roots.
pub(crate) fn has_roots(profile: Profile) -> bool {
    profile.0 & ROOTS != 0
}

/// The capabilities declared to a server for callers of a profile.
pub(crate) fn capabilities(profile: Profile) -> ClientCapabilities {
    let has = |bit| profile.0 & bit != 0;
    let mut caps = ClientCapabilities::default();
    caps.elicitation = match (has(FORM), has(URL)) {
        (true, true) => Some(ElicitationCapability::BOTH),
        (true, false) => Some(ElicitationCapability::FORM),
        (false, true) => Some(ElicitationCapability::URL),
        (false, false) => None,
    };
    caps.sampling = has(SAMPLING).then(|| SamplingCapability::new().tools(has(SAMPLING_TOOLS)));
    caps.roots = has(ROOTS).then(|| RootsCapability::new(true));
    caps.extensions.insert(TASKS_EXTENSION.to_owned(), Json::empty_object());
    if has(INTERFACES) {
        let settings = Json::parse(r#"{"mimeTypes":["text/html;profile=mcp-app"]}"#);
        caps.extensions.insert(APPS.to_owned(), settings.expect("this is JSON"));
    }
    caps
}

/// The extension with which clients declare that they show user interfaces of tools.
const APPS: &str = "io.modelcontextprotocol/ui";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_says_the_same_there_and_back() {
        for bits in 0..=ALL.0 {
            // Sampling with tools means nothing without sampling.
            if bits & !ALL.0 != 0 || bits & SAMPLING_TOOLS != 0 && bits & SAMPLING == 0 {
                continue;
            }
            assert_eq!(profile(&capabilities(Profile(bits))), Profile(bits), "{bits:#b}");
        }
    }
}
