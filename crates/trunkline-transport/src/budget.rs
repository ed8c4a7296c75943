//! A ledger that many tasks share: what is taken comes back when its holder is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline_proto::budget::{Ledger, Over};

/// What may be held at once, in all and by each principal. Clones are the same budget.
///
/// ```
/// use std::sync::Arc;
/// use trunkline_transport::budget::Budget;
///
/// let budget = Budget::new(100, 60);
/// let held = budget.take(&Arc::from("alice"), 60).unwrap();
/// assert!(budget.take(&Arc::from("bob"), 60).is_err());
/// drop(held);
/// assert!(budget.take(&Arc::from("bob"), 60).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Budget(Arc<Mutex<Ledger>>);

impl Budget {
    /// At most `total` in all, at most `share` of it for each principal.
    ///
    /// ```
    /// # use trunkline_transport::budget::Budget;
    /// assert_eq!(Budget::new(100, 60).used(), 0);
    /// ```
    pub fn new(total: usize, share: usize) -> Self {
        Self(Arc::new(Mutex::new(Ledger::new(total, share))))
    }

    /// Takes a piece for as long as what is returned lives.
    ///
    /// ```
    /// # use std::sync::Arc; use trunkline_transport::budget::Budget;
    /// let budget = Budget::new(100, 60);
    /// assert!(budget.take(&Arc::from("alice"), 61).is_err());
    /// ```
    pub fn take(&self, who: &Arc<str>, amount: usize) -> Result<Held, Over> {
        self.lock().take(who, amount)?;
        Ok(Held { budget: self.clone(), who: Arc::clone(who), amount })
    }

    /// Takes a piece whether it fits or not, for as long as what is returned lives.
    ///
    /// ```
    /// # use std::sync::Arc; use trunkline_transport::budget::Budget;
    /// let budget = Budget::new(100, 60);
    /// let held = budget.owe(&Arc::from("alice"), 61);
    /// assert!(budget.fits("alice", 1).is_err());
    /// ```
    pub fn owe(&self, who: &Arc<str>, amount: usize) -> Held {
        self.lock().owe(who, amount);
        Held { budget: self.clone(), who: Arc::clone(who), amount }
    }

    /// Whether a piece could be taken now. Nothing is.
    ///
    /// ```
    /// # use trunkline_transport::budget::Budget;
    /// let budget = Budget::new(100, 60);
    /// assert!(budget.fits("alice", 60).is_ok() && budget.fits("alice", 61).is_err());
    /// ```
    pub fn fits(&self, who: &str, amount: usize) -> Result<(), Over> {
        self.lock().fits(who, amount)
    }

    /// What all hold together.
    ///
    /// ```
    /// # use trunkline_transport::budget::Budget;
    /// assert_eq!(Budget::new(100, 60).used(), 0);
    /// ```
    pub fn used(&self) -> usize {
        self.lock().used()
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece of a budget. Dropping it gives it back.
///
/// ```
/// # use std::sync::Arc; use trunkline_transport::budget::Budget;
/// let budget = Budget::new(100, 60);
/// let mut held = budget.take(&Arc::from("alice"), 10).unwrap();
/// held.grow(50).unwrap();
/// assert!(held.grow(1).is_err());
/// drop(held);
/// assert_eq!(budget.used(), 0);
/// ```
#[derive(Debug)]
#[must_use = "dropping it gives back what was taken"]
pub struct Held {
    budget: Budget,
    who: Arc<str>,
    amount: usize,
}

impl Held {
    /// Takes more of the same budget for the same principal.
    ///
    /// ```
    /// # use std::sync::Arc; use trunkline_transport::budget::Budget;
    /// let mut held = Budget::new(100, 60).take(&Arc::from("alice"), 10).unwrap();
    /// assert!(held.grow(60).is_err() && held.grow(50).is_ok());
    /// ```
    pub fn grow(&mut self, more: usize) -> Result<(), Over> {
        self.budget.lock().take(&self.who, more)?;
        self.amount += more;
        Ok(())
    }
}

impl Held {
    /// How much it is.
    ///
    /// ```
    /// # use std::sync::Arc; use trunkline_transport::budget::Budget;
    /// assert_eq!(Budget::new(100, 60).take(&Arc::from("alice"), 10).unwrap().amount(), 10);
    /// ```
    pub fn amount(&self) -> usize {
        self.amount
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.lock().give(&self.who, self.amount);
    }
}
