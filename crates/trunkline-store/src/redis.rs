//! Keys ⇄ bytes in a Redis or Valkey, for many processes on many machines.

mod link;
mod scripts;
mod subscriber;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Pipeline, Script};

use link::{Kind, Link, Request};
use scripts::{BUCKETS, Scripts, bucket, global, local};
use subscriber::{MESSAGE, Subscriber, framed};

use crate::bounds::check_ttl;
use crate::decide::Taken;
use crate::{
    Bounds, Bucket, Capabilities, Cursor, Entry, Expect, Item, Lease, Listener, Page, Pending,
    RedisAddress, Store, StoreError, Swap, Ttl, Version,
};

/// A store in a Redis or Valkey (6.2 or newer): one server, sentinels or a cluster.
///
/// Each operation is one script, so it is atomic. Time is the server's own. [`Bounds::entries`] and [`Bounds::bytes`]
/// are not counted: the server's `maxmemory` is the bound, with `maxmemory-policy noeviction`; what it refuses is
/// [`StoreError::Full`].
///
/// A command whose answer was lost is not sent again unless it only reads, so nothing is done twice.
pub struct Redis {
    link: Arc<Link>,
    subscriber: Subscriber,
    scripts: Scripts,
    prefix: String,
    bounds: Bounds,
    address: RedisAddress,
}

/// How to reach a Redis.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisSettings {
    /// Where it is.
    pub address: RedisAddress,
    /// What all its keys and channels begin with, so that several programs can share a database.
    pub prefix: String,
    /// How long an operation may take, connecting included: 2 s.
    pub patience: Duration,
    /// The certificate of the authority to trust, in PEM, instead of the system's.
    pub ca: Option<Vec<u8>>,
    /// Sizes of keys, values, messages and pages.
    pub bounds: Bounds,
}

impl RedisSettings {
    /// The settings for `address`, all others at their defaults.
    pub fn new(address: RedisAddress) -> Self {
        Self {
            address,
            prefix: "trunkline:".to_owned(),
            patience: Duration::from_secs(2),
            ca: None,
            bounds: Bounds::default(),
        }
    }

    /// The same with another `prefix`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The same with another `patience`.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same with another `ca`.
    #[must_use]
    pub fn ca(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca = Some(pem.into());
        self
    }

    /// The same with other `bounds`.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }
}

impl Redis {
    /// A store at `settings`. It connects when it is first used, and again whenever the connection was lost, so a Redis
    /// that is away now is no error here.
    ///
    /// # Errors
    ///
    /// The prefix has other characters than letters, digits and `:._-`, or the address makes no sense.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn open(settings: RedisSettings) -> Result<Self, StoreError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":._-".contains(&byte);
        if !settings.prefix.bytes().all(fits) {
            return Err(StoreError::Unavailable(
                "The prefix of a Redis has letters, digits and `:._-` alone; choose another."
                    .to_owned(),
            ));
        }
        let (prefix, bounds) = (settings.prefix.clone(), settings.bounds.clone());
        let address = settings.address.clone();
        let link = Arc::new(Link::new(settings)?);
        let subscriber = Subscriber::start(link.clone(), bounds.clone());
        Ok(Self { link, subscriber, scripts: Scripts::new(), prefix, bounds, address })
    }

    /// Asks Redis whether it is there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] with the reason.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.read(&redis::cmd("PING")).await
    }

    fn name(&self, bucket: u64, rest: &str) -> String {
        format!("{}{{{bucket}}}{rest}", self.prefix)
    }

    /// Runs `script` on the entry or lease `key` with `args`.
    async fn invoke<T: redis::FromRedisValue>(
        &self,
        script: &Script,
        space: &str,
        key: &str,
        args: &[&[u8]],
    ) -> Result<T, StoreError> {
        self.bounds.check_key(key)?;
        let bucket = bucket(key);
        let mut call = script.prepare_invoke();
        call.key(self.name(bucket, &format!("{space}:{key}")));
        for name in ["n", "i", "x"] {
            call.key(self.name(bucket, name));
        }
        for arg in args {
            call.arg(*arg);
        }
        self.link.run(Kind::Write, Request::Script(&call)).await
    }

    /// The keys of one bucket that a scan wants, in order; at most `limit`.
    async fn keys(
        &self,
        bucket: u64,
        (from, to): &(Vec<u8>, Vec<u8>),
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let mut command = redis::cmd("ZRANGEBYLEX");
        command.arg(self.name(bucket, "i")).arg(&from[..]).arg(&to[..]);
        command.arg("LIMIT").arg(0).arg(limit);
        self.read(&command).await
    }

    async fn read<T: redis::FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        self.link.run(Kind::Read, Request::Command(command)).await
    }

    /// Asks the same of each of `keys`, bucket by bucket, in one go each. The answers are in the order of `keys`.
    async fn each<T: redis::FromRedisValue + Clone>(
        &self,
        keys: &[String],
        ask: impl Fn(&mut Pipeline, String),
    ) -> Result<Vec<Option<T>>, StoreError> {
        let mut answers = vec![None; keys.len()];
        for wanted in 0..BUCKETS {
            let places: Vec<usize> =
                (0..keys.len()).filter(|place| bucket(&keys[*place]) == wanted).collect();
            if places.is_empty() {
                continue;
            }
            let mut pipeline = Pipeline::with_capacity(places.len());
            for place in &places {
                ask(&mut pipeline, self.name(wanted, &format!("e:{}", keys[*place])));
            }
            let found: Vec<T> = self.link.run(Kind::Read, Request::Pipeline(&pipeline)).await?;
            for (place, found) in places.into_iter().zip(found) {
                answers[place] = Some(found);
            }
        }
        Ok(answers)
    }

    /// One page of the keys that [`range`] gives, and whether there may be more after it.
    async fn page(&self, range: &(Vec<u8>, Vec<u8>), limit: usize) -> Result<Page, StoreError> {
        let mut keys = Vec::new();
        for bucket in 0..BUCKETS {
            // One more than fits, to know whether there is more.
            keys.extend(self.keys(bucket, range, limit + 1).await?);
        }
        keys.sort_unstable();
        let is_last = keys.len() <= limit;
        keys.truncate(limit);
        let sizes: Vec<Option<usize>> = self
            .each(&keys, |pipeline, name| {
                pipeline.cmd("HSTRLEN").arg(name).arg("v");
            })
            .await?;
        let mut bytes = 0;
        let fits = sizes.iter().position(|size| {
            let is_full = bytes >= self.bounds.page_bytes;
            bytes += size.unwrap_or(0);
            is_full
        });
        let is_cut = fits.is_some();
        keys.truncate(fits.unwrap_or(keys.len()));
        let last = keys.last().cloned();
        let found: Vec<Option<Fields>> = self
            .each(&keys, |pipeline, name| {
                pipeline.cmd("HMGET").arg(name).arg("n").arg("v");
            })
            .await?;
        let item = |(key, found): (String, Option<Fields>)| {
            // Those without a value have expired since their key was listed.
            let (Some(number), Some(value)) = found? else { return None };
            let version = Version::new(global(number, bucket(&key)));
            Some(Item { key, value: value.into(), version })
        };
        let items = keys.into_iter().zip(found).filter_map(item).collect();
        Ok(Page { items, next: if is_last && !is_cut { None } else { last } })
    }
}

impl Store for Redis {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        Box::pin(async move {
            self.bounds.check_key(key)?;
            let bucket = bucket(key);
            let mut command = redis::cmd("HMGET");
            command.arg(self.name(bucket, &format!("e:{key}"))).arg("n").arg("v");
            let (number, value): Fields = self.read(&command).await?;
            Ok(entry(bucket, number, value))
        })
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a [u8], ttl: Ttl) -> Pending<'a, Version> {
        Box::pin(async move {
            check_ttl(ttl)?;
            self.bounds.check_value(value)?;
            let ttl = millis(ttl);
            let args = [key.as_bytes(), value, ttl.as_bytes()];
            let number: u64 = self.invoke(&self.scripts.put, "e", key, &args).await?;
            Ok(Version::new(global(number, bucket(key))))
        })
    }

    fn swap<'a>(&'a self, key: &'a str, old: Expect, new: &'a [u8], ttl: Ttl) -> Pending<'a, Swap> {
        Box::pin(async move {
            check_ttl(ttl)?;
            self.bounds.check_value(new)?;
            let bucket = bucket(key);
            let old = match old {
                Expect::Absent => String::new(),
                // A version of another bucket is never found.
                Expect::Version(version) => {
                    local(version.number(), bucket).unwrap_or(0).to_string()
                }
            };
            let ttl = millis(ttl);
            let args = [key.as_bytes(), old.as_bytes(), new, ttl.as_bytes()];
            let (is_done, number, there): (bool, Option<u64>, Option<Vec<u8>>) =
                self.invoke(&self.scripts.swap, "e", key, &args).await?;
            Ok(match (is_done, number) {
                (true, Some(number)) => Swap::Done(Version::new(global(number, bucket))),
                _ => Swap::Conflict(entry(bucket, number, there)),
            })
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, bool> {
        Box::pin(
            async move { self.invoke(&self.scripts.delete, "e", key, &[key.as_bytes()]).await },
        )
    }

    fn count<'a>(&'a self, key: &'a str, by: i64, ttl: Ttl) -> Pending<'a, i64> {
        Box::pin(async move {
            check_ttl(ttl)?;
            let (by, ttl) = (by.to_string(), millis(ttl));
            let args = [key.as_bytes(), by.as_bytes(), ttl.as_bytes()];
            self.invoke(&self.scripts.count, "e", key, &args).await.map_err(why_not_counted)
        })
    }

    fn take<'a>(&'a self, key: &'a str, buckets: &'a [Bucket]) -> Pending<'a, Taken> {
        Box::pin(async move {
            let mut args = vec![key.to_owned()];
            for bucket in buckets {
                let (interval, slack) = bucket.micros();
                args.extend([bucket.name.clone(), interval.to_string(), slack.to_string()]);
            }
            let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
            let wait = self.invoke(&self.scripts.take, "e", key, &args).await;
            match wait.map_err(why_not_counted)? {
                0 => Ok(Ok(())),
                wait => Ok(Err(Duration::from_micros(wait))),
            }
        })
    }

    fn lease<'a>(&'a self, name: &'a str, ttl: Duration) -> Pending<'a, Option<Lease>> {
        Box::pin(async move {
            check_ttl(Some(ttl))?;
            let ttl = lease_millis(ttl);
            let args = [name.as_bytes(), ttl.as_bytes()];
            let number: Option<u64> = self.invoke(&self.scripts.lease, "l", name, &args).await?;
            Ok(number.map(|number| Lease::new(name, global(number, bucket(name)))))
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Pending<'a, bool> {
        Box::pin(async move {
            check_ttl(Some(ttl))?;
            let args = [fence(lease), lease_millis(ttl)];
            let args = args.each_ref().map(String::as_bytes);
            self.invoke(&self.scripts.renew, "l", lease.name(), &args).await
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, bool> {
        Box::pin(async move {
            let fence = fence(lease);
            self.invoke(&self.scripts.release, "l", lease.name(), &[fence.as_bytes()]).await
        })
    }

    fn scan<'a>(&'a self, prefix: &'a str, after: Cursor<'a>, limit: usize) -> Pending<'a, Page> {
        Box::pin(async move {
            let limit = self.bounds.page_limit(limit);
            let mut after = after.map(str::to_owned);
            loop {
                let page = self.page(&range(prefix, after.as_deref()), limit).await?;
                // A page of entries that have all expired is no answer; the next one may be.
                match page.next {
                    Some(next) if page.items.is_empty() => after = Some(next),
                    _ => return Ok(page),
                }
            }
        })
    }

    fn publish<'a>(&'a self, channel: &'a str, message: &'a [u8]) -> Pending<'a, ()> {
        Box::pin(async move {
            self.bounds.check_key(channel)?;
            self.bounds.check_message(message)?;
            let message = framed(MESSAGE, message);
            self.link.publish(&format!("{}c:{channel}", self.prefix), &message).await
        })
    }

    fn listen<'a>(&'a self, channel: &'a str) -> Pending<'a, Listener> {
        Box::pin(async move {
            self.bounds.check_key(channel)?;
            self.subscriber.listen(format!("{}c:{channel}", self.prefix)).await
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default().durable(true).shared(true).shared_channels(true)
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The number and the value of an entry, where there is one.
type Fields = (Option<u64>, Option<Vec<u8>>);

fn entry(bucket: u64, number: Option<u64>, value: Option<Vec<u8>>) -> Option<Entry> {
    Some(Entry { value: value?.into(), version: Version::new(global(number?, bucket)) })
}

/// The keys that a scan wants, as `ZRANGEBYLEX` says it.
fn range(prefix: &str, after: Option<&str>) -> (Vec<u8>, Vec<u8>) {
    let from = match after {
        Some(after) if after >= prefix => [b"(", after.as_bytes()].concat(),
        _ => [b"[", prefix.as_bytes()].concat(),
    };
    // The first text beyond all that begin with the prefix. No byte of UTF-8 is 0xff, so one more never overflows.
    let to = match prefix.as_bytes().split_last() {
        None => b"+".to_vec(),
        Some((last, before)) => [b"(", before, &[last + 1]].concat(),
    };
    (from, to)
}

/// A time to live in milliseconds, at least one; empty for ever.
fn millis(ttl: Ttl) -> String {
    ttl.filter(|ttl| *ttl < LONGEST).map_or_else(String::new, lease_millis)
}

fn lease_millis(ttl: Duration) -> String {
    ttl.min(LONGEST).as_micros().div_ceil(1_000).max(1).to_string()
}

fn fence(lease: &Lease) -> String {
    local(lease.fence(), bucket(lease.name())).unwrap_or(0).to_string()
}

fn why_not_counted(error: StoreError) -> StoreError {
    match &error {
        StoreError::Unavailable(why) if why.contains("not an integer") => StoreError::NotANumber,
        StoreError::Unavailable(why) if why.contains("overflow") => StoreError::OutOfRange,
        _ => error,
    }
}

/// A time longer than this, a hundred years, is for ever.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
