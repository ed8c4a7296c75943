//! A ledger that many tasks share: a piece returns when its holder is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline_proto::budget::{Ledger, Over};

/// What may be held at once, in all and by each principal. Clones share the budget.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Mutex<Ledger>>);

impl Budget {
    /// At most `total` in all, at most `share` for each principal.
    pub fn new(total: usize, share: usize) -> Self {
        Self(Arc::new(Mutex::new(Ledger::new(total, share))))
    }

    /// Takes a piece for as long as the returned guard lives.
    pub fn take(&self, who: &Arc<str>, amount: usize) -> Result<Held, Over> {
        self.lock().take(who, amount)?;
        Ok(Held { budget: self.clone(), who: Arc::clone(who), amount })
    }

    /// Takes a piece even if it does not fit, for as long as the returned guard lives.
    pub fn owe(&self, who: &Arc<str>, amount: usize) -> Held {
        self.lock().owe(who, amount);
        Held { budget: self.clone(), who: Arc::clone(who), amount }
    }

    /// Whether a piece would fit now. Takes nothing.
    pub fn fits(&self, who: &str, amount: usize) -> Result<(), Over> {
        self.lock().fits(who, amount)
    }

    /// What all hold together.
    pub fn used(&self) -> usize {
        self.lock().used()
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece of a budget. Dropping it returns it.
#[derive(Debug)]
#[must_use = "dropping it gives back what was taken"]
pub struct Held {
    budget: Budget,
    who: Arc<str>,
    amount: usize,
}

impl Held {
    /// Takes more of the same budget for the same principal.
    pub fn grow(&mut self, more: usize) -> Result<(), Over> {
        self.budget.lock().take(&self.who, more)?;
        self.amount += more;
        Ok(())
    }
}

impl Held {
    /// Its size.
    pub fn amount(&self) -> usize {
        self.amount
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.lock().give(&self.who, self.amount);
    }
}
