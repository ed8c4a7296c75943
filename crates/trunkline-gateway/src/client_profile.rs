//! What a caller can be asked ⇄ the profile by which instances are told apart.
//!
//! A server of the old era learns once what its client can do. So a session that was opened for one
//! kind of caller is not lent to one who can do less. Where a server speaks both eras, a caller has a
//! connection of its own era: a server that asks in the middle of a call can do so in the old era only.

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
/// The connection is of the old era though the server speaks the new one, or it is of whichever the
/// server speaks. Exactly one of them, so that neither serves for the other.
const OLD: u8 = 32;
const ANY: u8 = 64;
/// Its host shows the user interfaces of tools (MCP Apps).
const INTERFACES: u8 = 128;
/// All kinds of one question.
pub(crate) const ELICITATION: u8 = FORM | URL;
pub(crate) const ANY_SAMPLING: u8 = SAMPLING | SAMPLING_TOOLS;

/// Everything that can be asked through us.
pub(crate) const ALL: Profile =
    Profile(FORM | URL | SAMPLING | SAMPLING_TOOLS | ROOTS | INTERFACES);

/// What a caller can be asked, and in which era.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientProfile {
    pub(crate) profile: Profile,
    pub(crate) era: Era,
}

impl ClientProfile {
    /// Somebody who can be asked everything, with an answer.
    pub(crate) const ALL: Self = Self { profile: ALL, era: Era::Stateless };

    pub(crate) fn of(peer: &Peer, era: Era) -> Self {
        Self { profile: profile(&peer.client), era }
    }
}

/// The profile of a connection that is opened in the old era, if the server speaks it, or else in
/// whichever it speaks.
pub(crate) fn connected(profile: Profile, is_old: bool) -> Profile {
    Profile(profile.0 & ALL.0 | if is_old { OLD } else { ANY })
}

/// Whether a connection is opened in the old era, if the server speaks it. One that serves everybody is
/// not.
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

/// What is declared to a server for callers of a profile.
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

/// The extension by which hosts say that they show user interfaces of tools.
const APPS: &str = "io.modelcontextprotocol/ui";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_says_the_same_there_and_back() {
        for bits in 0..=ALL.0 {
            // Tools for a model that cannot be asked mean nothing.
            if bits & !ALL.0 != 0 || bits & SAMPLING_TOOLS != 0 && bits & SAMPLING == 0 {
                continue;
            }
            assert_eq!(profile(&capabilities(Profile(bits))), Profile(bits), "{bits:#b}");
        }
    }
}
