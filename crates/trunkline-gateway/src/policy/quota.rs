//! Rate limits: token buckets per principal. Decides whether a call may be made now, or when to retry.
//!
//! Each rate limit has a bucket for each principal: no caller's calls count against another. A call takes one
//! token from every bucket that concerns it, or from none.
//!
//! A bucket is one point in time: when it will be full again. Then it holds `burst` tokens, and one less for
//! each `60 s / per_minute` that this time lies ahead.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use trunkline_auth::digest::sha256;
use trunkline_store::Bucket;

use super::rules::Globs;
use super::subject::{Patterns, Subject};
use crate::catalog::plan::Rate;

/// The buckets of all rate limits.
#[derive(Debug, Default)]
pub struct Quota {
    rates: Vec<Ready>,
    buckets: HashMap<Key, Instant>,
}

/// The index of a rate limit, and the principal.
type Key = (usize, Box<str>);

#[derive(Debug)]
struct Ready {
    rate: Rate,
    principals: Globs,
    tools: Patterns,
    /// The time in which one token returns; `None` for never.
    interval: Option<Duration>,
    /// How far ahead the time of a full bucket may lie while it still holds a token.
    slack: Duration,
}

impl Quota {
    /// All buckets are full.
    pub fn new(rates: &[Rate]) -> Self {
        Self { rates: rates.iter().map(Ready::new).collect(), buckets: HashMap::new() }
    }

    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.rates.is_empty()
    }

    /// Replaces the rate limits. Unchanged ones keep their buckets.
    pub fn replace(&mut self, rates: &[Rate]) {
        let old = std::mem::replace(self, Self::new(rates));
        for ((index, who), full_at) in old.buckets {
            let rate = &old.rates[index].rate;
            // Equal rate limits are interchangeable.
            if let Some(index) = rates.iter().position(|it| it == rate) {
                self.buckets.insert((index, who), full_at);
            }
        }
    }

    /// Takes a token for a call of `subject` by a caller with these names, its own first; otherwise returns how
    /// long to wait. Anonymous callers share a bucket.
    pub fn take(
        &mut self,
        principal: &[impl AsRef<str>],
        subject: &Subject<'_>,
        now: Instant,
    ) -> Result<(), Duration> {
        let who = principal.first().map_or("", AsRef::as_ref);
        let concerned =
            |rate: &Ready| rate.principals.fit_one_of(principal) && rate.tools.fits_any(subject);
        let mut taken: Vec<(Key, Instant)> = Vec::new();
        let mut wait = None;
        for (index, rate) in self.rates.iter().enumerate().filter(|(_, it)| concerned(it)) {
            let key = (index, Box::from(who));
            let full_at = self.buckets.get(&key).map_or(now, |it| (*it).max(now));
            match rate.take(full_at, now) {
                Ok(full_at) => taken.push((key, full_at)),
                Err(more) => wait = wait.max(Some(more)),
            }
        }
        if let Some(wait) = wait {
            return Err(wait);
        }
        self.buckets.extend(taken);
        if self.buckets.len() > MOST {
            self.make_room(now);
        }
        Ok(())
    }

    /// The token buckets that a call of `subject` takes of where replicas count together; or how long to wait
    /// if one never holds any.
    pub(crate) fn buckets(
        &self,
        principal: &[impl AsRef<str>],
        subject: &Subject<'_>,
    ) -> Result<Vec<Bucket>, Duration> {
        let concerned = self
            .rates
            .iter()
            .filter(|rate| rate.principals.fit_one_of(principal) && rate.tools.fits_any(subject));
        let mut buckets: Vec<Bucket> = Vec::new();
        for rate in concerned {
            let interval = rate.interval.ok_or(NEVER)?;
            let bucket = Bucket::new(rate.name(), interval, rate.rate.burst);
            // Equal rates are one.
            if !buckets.contains(&bucket) {
                buckets.push(bucket);
            }
        }
        Ok(buckets)
    }

    /// Evicts full buckets, which mean the same as none. If that is not enough, those that will be full
    /// soonest, a tenth at a time so that this is rare.
    fn make_room(&mut self, now: Instant) {
        self.buckets.retain(|_, full_at| *full_at > now);
        let room = MOST - MOST / 10;
        if self.buckets.len() > room {
            let mut times: Vec<_> = self.buckets.values().copied().collect();
            let surplus = times.len() - room;
            let (_, last_to_go, _) = times.select_nth_unstable(surplus - 1);
            let last_to_go = *last_to_go;
            self.buckets.retain(|_, full_at| *full_at > last_to_go);
        }
    }
}

impl Ready {
    fn new(rate: &Rate) -> Self {
        let minute = Duration::from_secs(60);
        let interval = minute.checked_div(rate.per_minute);
        Self {
            principals: Globs::new(&rate.principals),
            tools: Patterns::new(&rate.tools),
            interval,
            slack: interval.unwrap_or_default().saturating_mul(rate.burst.saturating_sub(1)),
            rate: rate.clone(),
        }
    }

    /// A name that replicas with the same rate agree on.
    fn name(&self) -> String {
        let Rate { principals, tools, per_minute, burst } = &self.rate;
        let whole = serde_json::json!([principals, tools, per_minute, burst]).to_string();
        sha256(whole.as_bytes())["sha256:".len()..][..16].to_owned()
    }

    /// When the bucket will be full after one more token is taken, or how long to wait for one.
    fn take(&self, full_at: Instant, now: Instant) -> Result<Instant, Duration> {
        let interval = self.interval.ok_or(NEVER)?;
        let ahead = full_at.saturating_duration_since(now);
        match ahead.checked_sub(self.slack) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => Ok(full_at + interval),
        }
    }
}

/// The bound on buckets.
const MOST: usize = 10_000;
/// The wait if nothing is ever allowed.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::subject::tool;

    const NOBODY: &[&str] = &[];

    fn rate(principals: &str, tools: &str, per_minute: u32, burst: u32) -> Rate {
        let texts = |words: &str| words.split_whitespace().map(str::to_owned).collect();
        Rate { principals: texts(principals), tools: texts(tools), per_minute, burst }
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_burst_is_let_through_and_then_the_rate() {
        let (mut quota, start) = (Quota::new(&[rate("", "", 60, 3)]), Instant::now());
        let mut take = |at: f64| quota.take(&["a"], &tool("x.y"), start + seconds(at));
        assert_eq!([take(0.0), take(0.0), take(0.0)], [Ok(()); 3]);
        assert_eq!(take(0.0), Err(seconds(1.0)));
        assert_eq!(take(0.25), Err(seconds(0.75)));
        assert_eq!(take(1.0), Ok(()));
        assert_eq!(take(1.0), Err(seconds(1.0)), "a refusal costs nothing");
        assert_eq!([take(9.0), take(9.0), take(9.0)], [Ok(()); 3], "full again, and not fuller");
        assert!(take(9.0).is_err());
    }

    #[test]
    fn in_the_long_run_the_rate_holds() {
        let (mut quota, start) = (Quota::new(&[rate("", "", 600, 50)]), Instant::now());
        let taken = (0..60_000).filter(|it| {
            quota.take(NOBODY, &tool("x.y"), start + Duration::from_millis(*it)).is_ok()
        });
        assert_eq!(taken.count(), 50 + 599, "a minute of it, and the burst");
    }

    #[test]
    fn each_principal_has_its_own_bucket() {
        let (mut quota, now) = (Quota::new(&[rate("", "", 60, 1)]), Instant::now());
        assert_eq!(quota.take(&["a"], &tool("x.y"), now), Ok(()));
        assert!(quota.take(&["a"], &tool("x.z"), now).is_err());
        assert_eq!(quota.take(&["b"], &tool("x.y"), now), Ok(()));
        assert_eq!(quota.take(NOBODY, &tool("x.y"), now), Ok(()));
        assert!(quota.take(NOBODY, &tool("x.y"), now).is_err());
    }

    #[test]
    fn a_rate_is_about_its_principals_and_tools() {
        let rates = [rate("a*", "x.*", 60, 1)];
        let (mut quota, now) = (Quota::new(&rates), Instant::now());
        assert_eq!(quota.take(&["al"], &tool("x.y"), now), Ok(()));
        assert!(quota.take(&["al"], &tool("x.y"), now).is_err());
        for (who, what) in [(Some("bob"), "x.y"), (Some("al"), "z.y"), (None, "x.y")] {
            assert_eq!(
                [
                    quota.take(who.as_slice(), &tool(what), now),
                    quota.take(who.as_slice(), &tool(what), now)
                ],
                [Ok(()); 2]
            );
        }
    }

    #[test]
    fn of_several_rates_all_or_none_are_used() {
        let rates = [rate("", "", 60, 2), rate("", "x.*", 6, 1)];
        let (mut quota, now) = (Quota::new(&rates), Instant::now());
        assert_eq!(quota.take(NOBODY, &tool("x.y"), now), Ok(()));
        assert_eq!(
            quota.take(NOBODY, &tool("x.y"), now),
            Err(seconds(10.0)),
            "the slower one says when"
        );
        assert_eq!(
            quota.take(NOBODY, &tool("z.y"), now),
            Ok(()),
            "the other was not used by the refusal"
        );
        assert_eq!(quota.take(NOBODY, &tool("z.y"), now), Err(seconds(1.0)));
    }

    #[test]
    fn nothing_a_minute_is_nothing() {
        let (mut quota, now) = (Quota::new(&[rate("", "x.*", 0, 5)]), Instant::now());
        assert_eq!(quota.take(NOBODY, &tool("x.y"), now), Err(NEVER));
        assert_eq!(quota.take(NOBODY, &tool("z.y"), now), Ok(()));
    }

    #[test]
    fn without_a_burst_one_call_is_possible() {
        let (mut quota, now) = (Quota::new(&[rate("", "", 60, 0)]), Instant::now());
        assert_eq!(quota.take(NOBODY, &tool("x.y"), now), Ok(()));
        assert_eq!(quota.take(NOBODY, &tool("x.y"), now), Err(seconds(1.0)));
    }

    #[test]
    fn the_number_of_buckets_is_bounded_and_the_busy_ones_stay() {
        let (mut quota, start) = (Quota::new(&[rate("", "", 1, 3)]), Instant::now());
        let take = |quota: &mut Quota, who: &str, at| quota.take(&[who], &tool("x.y"), at);
        for _ in 0..3 {
            take(&mut quota, "busy", start).unwrap();
        }
        for number in 0..3 * MOST {
            take(&mut quota, &number.to_string(), start).unwrap();
            assert!(quota.buckets.len() <= MOST);
        }
        assert!(take(&mut quota, "busy", start).is_err(), "it is not let off");
        let later = start + Duration::from_secs(600);
        for number in 0..=MOST {
            take(&mut quota, &format!("later {number}"), later).unwrap();
        }
        assert!(quota.buckets.keys().all(|(_, who)| who.starts_with("later")), "full ones went");
    }

    #[test]
    fn new_rates_keep_used_buckets() {
        let (old, kept) = (rate("", "x.*", 6, 1), rate("", "y.*", 6, 1));
        let (mut quota, now) = (Quota::new(&[old, kept.clone()]), Instant::now());
        assert!(!quota.is_empty());
        quota.take(&["a"], &tool("x.y"), now).unwrap();
        quota.take(&["a"], &tool("y.y"), now).unwrap();
        quota.replace(&[kept]);
        assert!(quota.take(&["a"], &tool("y.y"), now).is_err());
        assert_eq!(quota.take(&["a"], &tool("x.y"), now), Ok(()), "there is no such rate any more");
        quota.replace(&[]);
        assert!(quota.is_empty() && quota.buckets.is_empty());
    }
}
