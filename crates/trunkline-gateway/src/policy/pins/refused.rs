//! Definitions that an operator has seen and does not want: they stay held back, and nobody is asked about them again.

use serde::{Deserialize, Serialize};

use super::{Held, Pins, key};

/// What was refused of one definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Refused {
    /// The digests, the latest last.
    digests: Vec<String>,
    /// The day the definition was last seen.
    pub(super) seen: u32,
}

impl Pins {
    /// Notes that an operator refuses a definition as it was seen. The longest unseen make way.
    pub fn refuse(&mut self, server: &str, held: &Held, today: u32) {
        let key = key(held.kind, &held.name);
        let all = &mut self.known(server).refused;
        if !all.contains_key(&key) && all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, it)| it.seen).map(|it| it.0.clone());
            oldest.and_then(|it| all.remove(&it));
        }
        let refused = all.entry(key).or_default();
        refused.seen = today;
        refused.digests.retain(|it| *it != held.seen);
        refused.digests.push(held.seen.clone());
        if refused.digests.len() > DIGESTS {
            refused.digests.remove(0);
        }
    }

    /// Whether an operator refused exactly this.
    pub fn is_refused(&self, server: &str, held: &Held) -> bool {
        self.refusal(server, held).is_some()
    }

    pub(super) fn refusal(&self, server: &str, held: &Held) -> Option<&Refused> {
        let refused = self.servers.get(server)?.refused.get(&key(held.kind, &held.name))?;
        refused.digests.contains(&held.seen).then_some(refused)
    }

    /// The operator approves it after all.
    pub(super) fn forget_refusal(&mut self, server: &str, held: &Held) {
        let (all, key) = (&mut self.known(server).refused, key(held.kind, &held.name));
        if let Some(refused) = all.get_mut(&key) {
            refused.digests.retain(|it| *it != held.seen);
            if refused.digests.is_empty() {
                all.remove(&key);
            }
        }
    }
}

/// The definitions of one server that are remembered, and the digests of each.
const MOST: usize = 1_000;
const DIGESTS: usize = 8;
