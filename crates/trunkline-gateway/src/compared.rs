//! Which lists of an instance were compared with the pins, since it came up or last said that they
//! changed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::merge::Kind;

/// One word, so that a call that finds its list compared pays for one load.
#[derive(Debug, Default)]
pub(crate) struct ComparedLists {
    /// A bit for each kind of list; above them, how often something changed.
    state: AtomicU64,
    /// One comparison at a time; whoever comes meanwhile waits for it.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// When a list was asked for: what was found then does not count if the list changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

impl ComparedLists {
    /// Whether a list was compared.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.state.load(Ordering::Acquire) & bit(kind) != 0
    }

    /// To be asked for before the list is.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.state.load(Ordering::Acquire) / CHANGE)
    }

    /// A list that was asked for at `since` was compared.
    pub(crate) fn add(&self, kind: Kind, since: Epoch) {
        let add = |state: u64| (state / CHANGE == since.0).then_some(state | bit(kind));
        // Nothing is lost if it changed meanwhile: the next call compares anew.
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
    }

    /// The instance says that a list changed.
    pub(crate) fn changed(&self, kind: Kind) {
        let change = |state: u64| Some((state & !bit(kind)).wrapping_add(CHANGE));
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    }
}

fn bit(kind: Kind) -> u64 {
    1 << kind as u64
}

const CHANGE: u64 = 1 << 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_changes_while_it_is_compared_is_compared_again() {
        let lists = ComparedLists::default();
        assert!(!lists.has(Kind::Tools));
        lists.add(Kind::Tools, lists.epoch());
        assert!(lists.has(Kind::Tools) && !lists.has(Kind::Prompts));
        let since = lists.epoch();
        lists.changed(Kind::Tools);
        lists.add(Kind::Tools, since);
        assert!(!lists.has(Kind::Tools), "what was read is of before");
        lists.add(Kind::Tools, lists.epoch());
        lists.changed(Kind::Prompts);
        assert!(lists.has(Kind::Tools), "another list changed");
    }
}
