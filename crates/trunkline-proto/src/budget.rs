//! Shares of a common resource → whether one more piece may be taken.
//!
//! Two bounds: one for all principals together, and one for each, so that no principal starves the
//! others. Anonymous callers are one principal, the empty name.

use std::collections::HashMap;
use std::sync::Arc;

/// Who holds how much. The owner chooses the unit: bytes, calls, sessions.
#[derive(Debug)]
pub struct Ledger {
    total: usize,
    share: usize,
    used: usize,
    // Invariant: holds no zero, so it has at most as many entries as pieces are held.
    held: HashMap<Arc<str>, usize>,
}

/// Which bound a piece would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The bound of one principal: its own fault.
    Share,
    /// The bound of all together: try again later.
    Total,
}

impl Ledger {
    /// An empty ledger: at most `total` in all, at most `share` for each principal.
    pub fn new(total: usize, share: usize) -> Self {
        Self { total, share: share.min(total), used: 0, held: HashMap::new() }
    }

    /// Takes a piece, all or nothing.
    pub fn take(&mut self, who: &Arc<str>, amount: usize) -> Result<(), Over> {
        if amount == 0 {
            return Ok(());
        }
        self.fits(who, amount)?;
        self.owe(who, amount);
        Ok(())
    }

    /// Takes a piece even if it does not fit; the next one will not.
    pub fn owe(&mut self, who: &Arc<str>, amount: usize) {
        if amount == 0 {
            return;
        }
        self.used += amount;
        match self.held.get_mut(who) {
            Some(held) => *held += amount,
            None => drop(self.held.insert(Arc::clone(who), amount)),
        }
    }

    /// Whether a piece would fit now. Takes nothing.
    pub fn fits(&self, who: &str, amount: usize) -> Result<(), Over> {
        if self.held_by(who).saturating_add(amount) > self.share {
            return Err(Over::Share);
        }
        match self.used.saturating_add(amount) > self.total {
            true => Err(Over::Total),
            false => Ok(()),
        }
    }

    /// Returns what was taken.
    pub fn give(&mut self, who: &str, amount: usize) {
        let Some(held) = self.held.get_mut(who) else { return };
        let amount = amount.min(*held);
        *held -= amount;
        self.used -= amount;
        if *held == 0 {
            self.held.remove(who);
            if self.held.len() * 4 < self.held.capacity() {
                self.held.shrink_to(self.held.len() * 2);
            }
        }
    }

    /// What all hold together.
    pub fn used(&self) -> usize {
        self.used
    }

    /// What one principal holds.
    pub fn held_by(&self, who: &str) -> usize {
        self.held.get(who).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_principal_exceeds_its_share_and_all_together_not_the_total() {
        let mut ledger = Ledger::new(10, 6);
        let [a, b, c] = ["a", "b", ""].map(Arc::<str>::from);
        let steps = [
            (&a, 6, Ok(())),
            (&a, 1, Err(Over::Share)),
            (&a, 0, Ok(())),
            (&b, 4, Ok(())),
            (&b, 1, Err(Over::Total)),
            (&c, 1, Err(Over::Total)),
            (&c, usize::MAX, Err(Over::Share)),
        ];
        for (who, amount, expected) in steps {
            assert_eq!(ledger.take(who, amount), expected, "{who} {amount}");
        }
        assert_eq!((ledger.used(), ledger.held_by("a"), ledger.held_by("b")), (10, 6, 4));
    }

    #[test]
    fn returned_pieces_are_removed_and_never_more_than_was_held() {
        let mut ledger = Ledger::new(1000, 10);
        for n in 0..100 {
            ledger.take(&Arc::from(n.to_string()), 10).unwrap();
        }
        for n in 0..100 {
            ledger.give(&n.to_string(), 999);
        }
        ledger.give("nobody", 5);
        assert_eq!((ledger.used(), ledger.held.len()), (0, 0));
        assert!(ledger.held.capacity() < 16, "{}", ledger.held.capacity());
    }
}
