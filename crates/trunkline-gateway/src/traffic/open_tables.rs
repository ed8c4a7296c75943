//! The open requests of all conversations, where one lock guards them together with the calls that they belong to.

use std::sync::atomic::{AtomicU32, Ordering};

use super::open_requests::OpenRequests;

/// A table for each conversation in which something is open or may be; those that are given back are used again.
#[derive(Default)]
pub(super) struct OpenTables {
    tables: Vec<OpenRequests>,
    free: Vec<u32>,
}

/// Where the table of a conversation is, if it has one. Changes under the lock of the tables.
#[derive(Debug, Default)]
pub(super) struct TablePlace(AtomicU32);

impl OpenTables {
    /// The table of a conversation.
    #[inline]
    pub(super) fn at(&mut self, place: &TablePlace) -> &mut OpenRequests {
        let place = match place.0.load(Ordering::Relaxed) {
            0 => self.take(place),
            known => known,
        };
        &mut self.tables[place as usize - 1]
    }

    #[inline]
    fn take(&mut self, place: &TablePlace) -> u32 {
        let taken = self.free.pop().unwrap_or_else(|| {
            self.tables.push(OpenRequests::default());
            self.tables.len() as u32
        });
        place.0.store(taken, Ordering::Relaxed);
        taken
    }

    /// Nothing more is open in a conversation.
    #[inline]
    pub(super) fn give_back(&mut self, place: &TablePlace) {
        let known = place.0.load(Ordering::Relaxed);
        if known > 0 {
            place.0.store(0, Ordering::Relaxed);
            self.tables[known as usize - 1].clear();
            self.free.push(known);
        }
    }
}

impl TablePlace {
    pub(super) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use trunkline_wire::jsonrpc::Id;

    use super::super::open_requests::Whose;
    use super::*;

    #[test]
    fn a_table_is_used_again_and_nothing_of_it_is_left() {
        let mut all = OpenTables::default();
        let (one, other) = (TablePlace::default(), TablePlace::default());
        all.at(&one).add_call(1, 7, |_| true);
        all.at(&other).add_call(1, 8, |_| true);
        assert_eq!((all.at(&one).len(), all.at(&other).len()), (1, 1));
        all.give_back(&one);
        assert!(!one.is_taken() && other.is_taken());
        all.give_back(&one);
        let third = TablePlace::default();
        assert!(all.at(&third).is_empty());
        assert_eq!((all.tables.len(), all.free.len()), (2, 0));
        assert!(matches!(all.at(&other).take_ours(&Id::Number(1)), Some(Whose::Call(8))));
    }
}
