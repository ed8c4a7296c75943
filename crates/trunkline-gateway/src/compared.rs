//! Which lists of an instance were compared with the pins since it started or last announced a change.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::merge::Kind;

/// One atomic word, so that a call whose list was compared costs one load.
#[derive(Debug, Default)]
pub(crate) struct ComparedLists {
    /// A bit for each kind of list; the bits above count changes.
    state: AtomicU64,
    /// One comparison at a time; concurrent callers wait for it.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// The moment a list was requested: the result does not count if the list changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

impl ComparedLists {
    /// Whether a list was compared.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.state.load(Ordering::Acquire) & bit(kind) != 0
    }

    /// Taken before the list is requested.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.state.load(Ordering::Acquire) / CHANGE)
    }

    /// Records that a list requested at `since` was compared.
    pub(crate) fn add(&self, kind: Kind, since: Epoch) {
        let add = |state: u64| (state / CHANGE == since.0).then_some(state | bit(kind));
        // If the list changed meanwhile, this fails and the next call compares again.
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
    }

    /// The instance announced a changed list.
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
