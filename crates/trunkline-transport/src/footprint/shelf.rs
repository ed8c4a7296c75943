//! The memory of long texts, kept for a moment: the next long text takes it, or it is given back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline_wire::spares::{self, Keeper};

/// For as long as one of these is there, memory is kept.
pub(super) struct Keeping(());

impl Keeping {
    pub(super) fn begin() -> Self {
        lock().keepers += 1;
        spares::keep_with(Keeper { take, leave });
        Self(())
    }

    /// Gives back all that nobody has taken.
    pub(super) fn forget(&self) {
        let all = std::mem::take(&mut lock().texts);
        drop(all);
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        lock().keepers -= 1;
        self.forget();
    }
}

fn take(least: usize, most: usize) -> Option<Vec<u8>> {
    // What makes way is given back when the lock is.
    let (taken, _makes_way) = lock().take(least, most);
    taken
}

fn leave(text: Vec<u8>) {
    let _has_no_place = lock().leave(text);
}

/// What is kept, in no order: it is little.
struct Shelf {
    texts: Vec<Vec<u8>>,
    keepers: usize,
}

impl Shelf {
    /// The smallest allocation that fits. If none does, a new one will be made, and as much makes way for it: keeping
    /// some never takes more memory than keeping none.
    fn take(&mut self, least: usize, most: usize) -> (Option<Vec<u8>>, Vec<Vec<u8>>) {
        let fitting = self.texts.iter().enumerate();
        let fitting = fitting.filter(|(_, it)| (least..=most).contains(&it.capacity()));
        if let Some((at, _)) = fitting.min_by_key(|(_, it)| it.capacity()) {
            return (Some(self.texts.swap_remove(at)), Vec::new());
        }
        let (mut makes_way, mut bytes) = (Vec::new(), 0);
        while bytes < least
            && let Some(text) = self.texts.pop()
        {
            bytes += text.capacity();
            makes_way.push(text);
        }
        (None, makes_way)
    }

    /// Keeps the allocation, or returns it if there is enough.
    fn leave(&mut self, mut text: Vec<u8>) -> Option<Vec<u8>> {
        text.clear();
        let kept: usize = self.texts.iter().map(Vec::capacity).sum();
        let is_enough = self.texts.len() >= MOST || kept + text.capacity() > MOST_BYTES;
        if self.keepers == 0 || is_enough {
            return Some(text);
        }
        self.texts.push(text);
        None
    }
}

fn lock() -> MutexGuard<'static, Shelf> {
    SHELF.lock().unwrap_or_else(PoisonError::into_inner)
}

static SHELF: Mutex<Shelf> = Mutex::new(Shelf { texts: Vec::new(), keepers: 0 });

/// The most that is kept: a request and an answer, both as long as they may be.
const MOST_BYTES: usize = 40 << 20;
/// In how many pieces.
const MOST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(keepers: usize, sizes: &[usize]) -> Shelf {
        let mut shelf = Shelf { texts: Vec::new(), keepers };
        for size in sizes {
            shelf.leave(Vec::with_capacity(*size));
        }
        shelf
    }

    #[test]
    fn the_smallest_that_fits_is_taken_empty() {
        let mut shelf = shelf(1, &[3000, 1000, 2000]);
        shelf.leave(vec![b'x'; 1500]);
        let mut take = |least, most| shelf.take(least, most).0.map(|it| (it.len(), it.capacity()));
        assert_eq!(take(1001, 1999), Some((0, 1500)));
        assert_eq!(take(1001, 9999), Some((0, 2000)));
        assert_eq!(take(3000, 3000), Some((0, 3000)));
        assert_eq!(take(1000, 1000), Some((0, 1000)));
        assert_eq!(take(0, 9999), None);
    }

    #[test]
    fn what_does_not_fit_makes_way_for_as_much() {
        let mut shelf = shelf(1, &[300, 100, 200]);
        let (taken, makes_way) = shelf.take(250, 260);
        let sizes = |it: &[Vec<u8>]| it.iter().map(Vec::capacity).collect::<Vec<_>>();
        assert!(taken.is_none());
        assert_eq!((sizes(&makes_way), sizes(&shelf.texts)), (vec![200, 100], vec![300]));
    }

    #[test]
    fn what_is_kept_has_a_bound_in_bytes_and_in_pieces() {
        let mut much = shelf(1, &[MOST_BYTES - 1000]);
        assert!(much.leave(Vec::with_capacity(1001)).is_some());
        assert!(much.leave(Vec::with_capacity(1000)).is_none());
        let mut many = shelf(1, &[10; MOST]);
        assert!(many.leave(Vec::with_capacity(10)).is_some());
    }

    #[test]
    fn nothing_is_kept_where_nobody_gives_it_back() {
        assert!(shelf(0, &[1000]).texts.is_empty());
        let text = || Vec::with_capacity(777 << 10);
        let taken = || spares::take(777 << 10, 777 << 10).is_some();
        let [one, other] = [Keeping::begin(), Keeping::begin()];
        spares::leave(text());
        assert!(taken() && !taken());
        drop(one);
        spares::leave(text());
        other.forget();
        assert!(!taken());
        drop(other);
        spares::leave(text());
        assert!(!taken());
    }
}
