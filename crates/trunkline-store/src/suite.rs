//! The conformance suite of [`Store`]. Every backend must pass.
//!
//! Each case gets an empty store of its own, and a way to advance its clock. Nothing here sleeps.
//!
//! ```
//! use trunkline_store::suite::{self, Subject};
//! use trunkline_store::{Bounds, Manual, Memory};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//!
//! suite::run(|| async {
//!     let (bounds, clock) = (Bounds::default().value(1 << 16), Manual::default());
//!     let store = Memory::new(bounds.clone(), clock.clone());
//!     Subject::new(store, bounds, move |by| {
//!         clock.advance(by);
//!         async {}
//!     })
//! })
//! .await;
//! # }
//! ```

mod channels;
mod counts;
mod keys;
mod leases;
mod scans;
mod swaps;
mod switched;
mod takes;
mod values;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

pub use self::switched::Switched;
use crate::{Bounds, Store, StoreError};

/// An empty store, and how to advance its clock.
pub struct Subject {
    store: Arc<dyn Store>,
    bounds: Bounds,
    unit: Duration,
    advance: Box<dyn Fn(Duration) -> Later<()> + Send + Sync>,
}

impl Subject {
    /// A subject: an empty store, its bounds, and a function that advances its clock. A small
    /// [`Bounds::value`] makes the suite fast. `advance` lives as long as the subject, so it can own a
    /// temporary folder.
    pub fn new<F, L>(store: impl Store, bounds: Bounds, advance: F) -> Self
    where
        F: Fn(Duration) -> L + Send + Sync + 'static,
        L: Future<Output = ()> + Send + 'static,
    {
        let advance = Box::new(move |by| Box::pin(advance(by)) as Later<()>);
        Self { store: Arc::new(store), bounds, unit: Duration::from_secs(1), advance }
    }

    /// Sets the unit of time; 1 s by default. All TTLs and delays are multiples of it, so a store whose
    /// clock cannot be moved uses a short one and an `advance` that waits.
    #[must_use]
    pub fn unit(mut self, unit: Duration) -> Self {
        self.unit = unit;
        self
    }

    fn units(&self, units: u32) -> Duration {
        self.unit * units
    }

    async fn pass(&self, units: u32) {
        (self.advance)(self.units(units)).await;
    }

    /// Runs `work` many times concurrently, and returns the outcomes.
    async fn at_once<T, F, L>(&self, many: usize, work: F) -> Result<Vec<T>, Wrong>
    where
        T: Send + 'static,
        F: Fn(Arc<dyn Store>, usize) -> L,
        L: Future<Output = Result<T, Wrong>> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for number in 0..many {
            tasks.spawn(work(self.store.clone(), number));
        }
        let mut outcomes = Vec::new();
        while let Some(done) = tasks.join_next().await {
            outcomes.push(done.map_err(|error| Wrong(format!("A task failed: {error}.")))??);
        }
        Ok(outcomes)
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("unit", &self.unit).finish_non_exhaustive()
    }
}

/// One promise of [`Store`], and its check.
#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    check: fn(Subject) -> Later<Result<(), Wrong>>,
}

impl Case {
    /// The name of the promise.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Checks `subject`; on failure a sentence says what happened instead. A case that takes longer
    /// than a minute fails.
    pub async fn check(&self, subject: Subject) -> Result<(), String> {
        match tokio::time::timeout(LONGEST, (self.check)(subject)).await {
            Ok(checked) => checked.map_err(|wrong| wrong.0),
            Err(_) => Err("It did not end.".to_owned()),
        }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

/// Checks every case, each with a subject of its own.
///
/// # Panics
///
/// If a promise is not kept; the message names each.
pub async fn run<F, L>(make: F)
where
    F: Fn() -> L,
    L: Future<Output = Subject>,
{
    let mut failed = Vec::new();
    for case in cases() {
        if let Err(why) = case.check(make().await).await {
            failed.push(format!("{}: {why}", case.name()));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} promises are not kept:\n{}",
        failed.len(),
        cases().len(),
        failed.join("\n")
    );
}

macro_rules! cases {
    ($($topic:ident: $($name:ident)*;)*) => {
        /// Every case.
        pub fn cases() -> &'static [Case] {
            &[$($(
                Case { name: stringify!($name), check: |subject| Box::pin($topic::$name(subject)) },
            )*)*]
        }
    };
}

cases! {
    values:
        an_absent_key_is_none
        what_was_put_comes_back
        a_put_replaces_value_and_time
        every_write_has_a_new_version
        an_entry_lives_until_its_time_is_over
        a_time_of_zero_is_refused
        a_time_beyond_reckoning_is_for_ever
        values_up_to_the_bound_are_kept_and_larger_refused
        a_delete_is_true_once
        one_of_many_deleters_wins;
    keys:
        empty_and_too_long_keys_are_refused_everywhere
        the_longest_key_works
        keys_that_look_alike_are_apart
        entries_and_leases_are_apart;
    swaps:
        a_creation_happens_only_where_nothing_is
        a_swap_needs_the_version_it_expects
        a_version_never_comes_back
        a_swap_sets_the_time
        one_of_many_creators_wins
        racing_swaps_lose_nothing;
    counts:
        counting_starts_at_zero_and_is_an_entry
        many_counts_at_once_are_all_counted
        a_count_keeps_the_time_of_the_first
        what_is_no_number_is_not_counted
        a_sum_that_does_not_fit_changes_nothing;
    takes:
        a_bucket_gives_its_burst_and_then_its_rate
        of_several_buckets_all_or_none_give
        many_takers_get_what_one_would_get
        what_is_no_bucket_gives_nothing;
    leases:
        a_lease_is_held_by_one
        a_lease_ends_by_itself
        a_renewed_lease_lives_on
        an_old_holder_can_neither_renew_nor_release
        fences_grow
        one_of_many_takers_wins;
    scans:
        a_scan_is_in_the_order_of_bytes
        pages_of_every_size_are_complete
        a_prefix_has_no_special_characters
        a_scan_begins_after_any_text
        a_scan_leaves_out_what_expired
        a_scan_sees_what_stays_exactly_once;
    channels:
        a_listener_hears_its_channel_from_now_on
        every_listener_hears_everything
        each_publisher_is_heard_in_order
        a_slow_listener_learns_how_many_it_lost
        a_message_beyond_the_bound_is_refused
        a_listener_that_left_disturbs_nobody;
}

/// What a store did instead, as a sentence.
#[derive(Debug)]
struct Wrong(String);

impl From<StoreError> for Wrong {
    fn from(error: StoreError) -> Self {
        Self(format!("The store failed: {error}"))
    }
}

/// The result of a case.
type Kept = Result<(), Wrong>;

type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn same<T, U>(what: &str, found: T, expected: U) -> Kept
where
    T: PartialEq<U> + fmt::Debug,
    U: fmt::Debug,
{
    if found == expected {
        return Ok(());
    }
    Err(Wrong(format!("{what}: expected {expected:?}, but found {found:?}.")))
}

fn holds(what: &str, condition: bool) -> Kept {
    same(what, condition, true)
}

/// The bytes under `key`.
async fn value(store: &dyn Store, key: &str) -> Result<Option<Vec<u8>>, Wrong> {
    Ok(store.get(key).await?.map(|entry| entry.value.to_vec()))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    Some(text.as_bytes().to_vec())
}

const LONGEST: Duration = Duration::from_secs(60);
