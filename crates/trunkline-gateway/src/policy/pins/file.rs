//! Stores pins in a file that several processes may share, or in the store that replicas share.
//!
//! Every change locks the file and reads it again if another process wrote it: two gateways that see a server
//! at the same time agree on what they saw first, and an approval in one is known to the other. A comparison
//! that finds no difference touches no file.
//!
//! A damaged or overlong file neither stops the gateway nor makes a server trusted: it is moved aside, and a
//! new file says that pins were lost. Then no server counts as new: every definition is held back until it is
//! approved. To trust on first use again, the operator removes the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::task::spawn_blocking;
use trunkline_store::Expect;

use super::comparing::Comparing;
use super::disk::{Stamp, Unread, broken, made_folder, read, replace, stamp_of, write};
use super::shared::SharedPins;
use super::{Approval, Held, Offered, Part, Pins, key};
use crate::catalog::plan::Pinning;
use crate::fleet::Fleet;
use crate::merge::Kind;

/// Pins with the place where they are kept. Clones share it.
#[derive(Clone, Debug)]
pub struct PinFile {
    place: Place,
    known: Arc<Mutex<Known>>,
    /// Whether anything is held back, so that calls can check without a lock.
    any: Arc<AtomicBool>,
    /// One change at a time in this process; the lock on the file is for other processes.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    pub(super) comparing: Comparing,
}

/// Where pins are kept.
#[derive(Clone, Debug)]
enum Place {
    File(Arc<Path>),
    /// In the store that replicas share.
    Shared(SharedPins),
}

/// The right to replace what was read.
pub(super) enum Lock {
    File(File),
    /// What is in the store must still be what was read.
    Shared(Expect),
}

/// Why pins were not stored.
pub(super) enum Unstored {
    /// Another replica was faster.
    Conflict,
    Fault(PinFault),
}

#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) pins: Arc<Pins>,
    /// The file's stamp when it was last read or written.
    stamp: Option<Stamp>,
    /// The servers of the catalog, whose pins are kept.
    catalog: BTreeSet<String>,
    /// What is held back, by server and by source: the lists, or one instance. Not stored: the next comparison
    /// finds it again.
    held: BTreeMap<String, BTreeMap<u64, Vec<Held>>>,
}

/// Why the file cannot be used, in a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinFault(pub(super) String);

/// Why an approval failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unapproved {
    /// It is not held back, or not with that digest any more.
    Other(Approval),
    /// The file cannot be used.
    Fault(PinFault),
}

impl PinFile {
    /// Reads the file, if there is one. If it cannot be used, nothing is trusted, and the fault says what
    /// happened to it.
    pub fn open(path: impl Into<PathBuf>) -> (Self, Option<PinFault>) {
        let path: Arc<Path> = path.into().into();
        let (pins, stamp, fault) = match read(&path) {
            Ok((pins, stamp)) => (pins, stamp, None),
            Err(Unread::Fault(fault)) => (Pins::lost(), None, Some(fault)),
            Err(Unread::Damaged(why)) => {
                let pins = Pins::lost();
                let (fault, stamp) = replace(&path, &pins, &why);
                (pins, stamp, Some(fault))
            }
        };
        let known = Known { pins: Arc::new(pins), stamp, ..Known::default() };
        let place = Place::File(path);
        (Self::at(place, known), fault)
    }

    /// The pins that replicas share, which begin with those of the file, if this gateway was alone before. If
    /// they cannot be read, nothing is trusted.
    pub async fn shared(fleet: &Fleet, before: &Path) -> (Self, Option<PinFault>) {
        let pins = SharedPins::new(fleet.clone());
        let (mut read, mut fault) = match pins.read(None).await {
            Ok((read, Expect::Absent)) => (read, pins.begin_with(before).await),
            Ok((read, _)) => (read, None),
            Err(fault) => (Arc::new(Pins::lost()), Some(fault)),
        };
        match pins.read(Some(Arc::clone(&read))).await {
            Ok((latest, _)) => read = latest,
            Err(later) => drop(fault.get_or_insert(later)),
        }
        let known = Known { pins: read, ..Known::default() };
        let place = Place::Shared(pins);
        (Self::at(place, known), fault)
    }

    fn at(place: Place, known: Known) -> Self {
        let known = Arc::new(Mutex::new(known));
        Self {
            place,
            known,
            any: Arc::default(),
            turn: Arc::default(),
            comparing: Comparing::default(),
        }
    }

    /// Reads again what replicas share. Returns why that was not possible.
    pub(crate) async fn reload(&self) -> Option<PinFault> {
        let _turn = self.turn.lock().await;
        let ((pins, _), fault) = self.latest().await;
        self.lock().pins = pins;
        fault
    }

    /// Holds back no longer what matches its pin by now, because another replica approved it. Returns the
    /// kinds of lists that it was in.
    pub(crate) fn release(&self, server: &str) -> Vec<Kind> {
        let mut known = self.lock();
        let (pins, mut released) = (Arc::clone(&known.pins), Vec::new());
        let Some(all) = known.held.get_mut(server) else { return released };
        for held in all.values_mut() {
            held.retain(|it| {
                let pinned = pins.pinned(server, it.kind, &it.name);
                let is_good = pinned.is_some_and(|(digest, _)| digest == it.seen);
                released.extend(it.kind.kind().filter(|_| is_good));
                !is_good
            });
        }
        all.retain(|_, held| !held.is_empty());
        if all.is_empty() {
            known.held.remove(server);
        }
        self.noted(&known);
        released
    }

    /// Sets the servers of the catalog, and forgets what is held back of others.
    pub fn serves(&self, servers: BTreeSet<String>) {
        let mut known = self.lock();
        known.held.retain(|name, _| servers.contains(name));
        known.catalog = servers;
        self.noted(&known);
    }

    /// Compares all definitions of a server: pins new ones as far as they are trusted, and returns what to hold
    /// back. If the file cannot be written, pins last as long as this process.
    pub async fn compare(
        &self,
        server: &str,
        offered: &[Offered],
        pinning: Pinning,
    ) -> (Vec<Held>, Option<PinFault>) {
        let found = self.pins().compare(server, offered, pinning, today());
        if found.held.is_empty() && !found.is_news {
            self.hold(server, LISTS, Vec::new());
            return (Vec::new(), None);
        }
        self.compare_in_turn(server, offered, pinning).await
    }

    /// Compares one list of one instance with the pins, and holds back what differs until the instance ends or
    /// changes its list. Returns what was not held back before.
    pub(crate) fn compare_instance(
        &self,
        server: &str,
        instance: u64,
        part: Part,
        offered: &[Offered],
    ) -> Vec<Held> {
        let mut differing = self.pins().differing(server, offered);
        let before = self.held(server);
        {
            let mut known = self.lock();
            let now = known.held.get_mut(server).and_then(|it| it.remove(&instance));
            differing.extend(now.into_iter().flatten().filter(|it| it.kind != part));
        }
        self.hold(server, instance, differing.clone());
        let is_new =
            |it: &Held| before.iter().all(|old| (old.kind, &old.seen) != (it.kind, &it.seen));
        differing.into_iter().filter(is_new).collect()
    }

    /// Forgets what an ended instance offered. Returns whether something is no longer held back.
    pub(crate) fn gone(&self, server: &str, instance: u64) -> bool {
        let mut known = self.lock();
        let Some(held) = known.held.get_mut(server) else { return false };
        let was_any = held.remove(&instance).is_some();
        if held.is_empty() {
            known.held.remove(server);
        }
        self.noted(&known);
        was_any
    }

    /// Approves held-back definitions by the digests that the operator saw: all of them or none. `offered` is
    /// what the server's lists say now.
    pub async fn approve(
        &self,
        server: &str,
        approvals: &[Approval],
        offered: &[Offered],
    ) -> Result<Vec<Held>, Unapproved> {
        let _turn = self.turn.lock().await;
        let held = self.held(server);
        let meant = meant(&held, approvals)?;
        if meant.is_empty() {
            return Ok(meant);
        }
        let today = today();
        let keys = offered.iter().map(|it| key(it.part, &it.name)).collect();
        self.change(|to| {
            for it in &meant {
                let also = offered.iter().find(|now| (now.part, &now.name) == (it.kind, &it.name));
                to.approve(server, it, also.map(|it| it.digest.as_str()), &keys, today);
            }
            if held.iter().all(|it| meant.contains(it)) {
                to.is_whole(server);
            }
        })
        .await
        .map_err(Unapproved::Fault)?;
        let mut known = self.lock();
        for held in known.held.get_mut(server).into_iter().flat_map(BTreeMap::values_mut) {
            held.retain(|it| {
                meant
                    .iter()
                    .all(|ok| (ok.kind, &ok.name, &ok.seen) != (it.kind, &it.name, &it.seen))
            });
        }
        if let Some(all) = known.held.get_mut(server) {
            all.retain(|_, held| !held.is_empty());
            if all.is_empty() {
                known.held.remove(server);
            }
        }
        self.noted(&known);
        Ok(meant)
    }

    /// Remembers that an operator refuses held-back definitions with the digests that were seen: all of them or none.
    /// They stay held back, and are marked as refused.
    pub async fn refuse(
        &self,
        server: &str,
        refusals: &[Approval],
    ) -> Result<Vec<Held>, Unapproved> {
        let _turn = self.turn.lock().await;
        let mut meant = meant(&self.held(server), refusals)?;
        let today = today();
        let refuse = |to: &mut Pins| meant.iter().for_each(|it| to.refuse(server, it, today));
        self.change(refuse).await.map_err(Unapproved::Fault)?;
        meant.iter_mut().for_each(|it| it.refused = true);
        Ok(meant)
    }

    /// What is held back of a server: an entry for each distinct definition.
    pub fn held(&self, server: &str) -> Vec<Held> {
        let known = self.lock();
        let Some(of) = known.held.get(server) else { return Vec::new() };
        let mut all: Vec<Held> = Vec::new();
        let mut there = BTreeSet::new();
        for it in of.values().flatten() {
            if there.insert((it.kind, it.name.as_str(), it.seen.as_str())) {
                all.push(known.marked(server, it));
            }
        }
        all
    }

    /// Whether anything of a server is held back.
    pub fn holds(&self, server: &str) -> bool {
        self.any.load(Ordering::Acquire) && self.lock().held.contains_key(server)
    }

    /// What is held back of a server under a name.
    pub fn find(&self, server: &str, part: Part, name: &str) -> Option<Held> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let known = self.lock();
        let mut all = known.held.get(server)?.values().flatten();
        all.find(|it| it.kind == part && it.name == name).map(|it| known.marked(server, it))
    }

    /// The definition that was pinned, if it was kept.
    pub fn before(&self, server: &str, held: &Held) -> Option<String> {
        self.pins().pinned(server, held.kind, &held.name)?.1.map(str::to_owned)
    }

    pub(super) fn pins(&self) -> Arc<Pins> {
        Arc::clone(&self.lock().pins)
    }

    pub(super) fn hold(&self, server: &str, by: u64, held: Vec<Held>) {
        let mut known = self.lock();
        match held.is_empty() {
            false => drop(known.held.entry(server.to_owned()).or_default().insert(by, held)),
            true => {
                if let Some(all) = known.held.get_mut(server) {
                    all.remove(&by);
                    if all.is_empty() {
                        known.held.remove(server);
                    }
                }
            }
        }
        self.noted(&known);
    }

    fn noted(&self, known: &Known) {
        self.any.store(!known.held.is_empty(), Ordering::Release);
    }

    /// Changes the pins in their place, also if another process or replica does at the same time.
    async fn change(&self, with: impl Fn(&mut Pins)) -> Result<(), PinFault> {
        loop {
            let ((mut pins, lock), fault) = self.latest().await;
            if let Some(fault) = fault.filter(|_| lock.is_none()) {
                return Err(fault);
            }
            with(Arc::make_mut(&mut pins));
            match self.store(pins, lock).await {
                Ok(()) => return Ok(()),
                Err(Unstored::Conflict) => {}
                Err(Unstored::Fault(fault)) => return Err(fault),
            }
        }
    }

    /// The current pins of the place, and the right to replace them; our own pins without that right, if they
    /// cannot be locked or read.
    pub(super) async fn latest(&self) -> ((Arc<Pins>, Option<Lock>), Option<PinFault>) {
        let path = match &self.place {
            Place::File(path) => Arc::clone(path),
            Place::Shared(pins) => {
                return match pins.read(Some(self.pins())).await {
                    Ok((read, expect)) => ((read, Some(Lock::Shared(expect))), None),
                    Err(fault) => ((self.pins(), None), Some(fault)),
                };
            }
        };
        let lock = match take_lock(&path).await {
            Ok(lock) => lock,
            Err(fault) => return ((self.pins(), None), Some(fault)),
        };
        let (stamp, ours) = {
            let known = self.lock();
            (known.stamp, Arc::clone(&known.pins))
        };
        let read = spawn_blocking(move || {
            if stamp.is_some() && stamp_of(&path) == stamp {
                return Ok((ours, stamp, None));
            }
            match read(&path) {
                Ok((pins, stamp)) => Ok((Arc::new(pins), stamp, None)),
                Err(Unread::Fault(fault)) => Err(fault),
                // Our own pins stay in force, and are written again.
                Err(Unread::Damaged(why)) => {
                    let (fault, stamp) = replace(&path, &ours, &why);
                    Ok((ours, stamp, Some(fault)))
                }
            }
        });
        match read.await.unwrap_or_else(|_| Err(PinFault("The program is ending.".to_owned()))) {
            Ok((pins, stamp, fault)) => {
                self.lock().stamp = stamp;
                ((pins, Some(Lock::File(lock))), fault)
            }
            Err(fault) => ((self.pins(), None), Some(fault)),
        }
    }

    /// Stores pins; in their place only if we may replace what is there.
    pub(super) async fn store(
        &self,
        mut pins: Arc<Pins>,
        lock: Option<Lock>,
    ) -> Result<(), Unstored> {
        let catalog = self.lock().catalog.clone();
        Arc::make_mut(&mut pins).prune(&catalog, today());
        match (lock, &self.place) {
            (Some(Lock::Shared(expect)), Place::Shared(place)) => {
                if !place.write(&pins, expect).await.map_err(Unstored::Fault)? {
                    return Err(Unstored::Conflict);
                }
                self.lock().pins = pins;
            }
            (Some(Lock::File(lock)), Place::File(path)) => {
                self.lock().pins = Arc::clone(&pins);
                let path = Arc::clone(path);
                let written = spawn_blocking(move || {
                    let _lock = lock;
                    write(&path, &pins).map_err(|error| broken("written", &path, &error))?;
                    Ok(stamp_of(&path))
                });
                let written = written.await;
                let ending = || Err(PinFault("The program is ending.".to_owned()));
                self.lock().stamp =
                    written.unwrap_or_else(|_| ending()).map_err(Unstored::Fault)?;
            }
            _ => self.lock().pins = pins,
        }
        Ok(())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// A held-back definition, and whether it is refused by now.
    fn marked(&self, server: &str, held: &Held) -> Held {
        Held { refused: self.pins.is_refused(server, held), ..held.clone() }
    }
}

/// The held-back definitions that an operator names, or the first name that fits none.
fn meant(held: &[Held], named: &[Approval]) -> Result<Vec<Held>, Unapproved> {
    let find = |it: &Approval| {
        let found = held.iter().find(|held| it.is_of(held));
        found.cloned().ok_or_else(|| Unapproved::Other(it.clone()))
    };
    named.iter().map(find).collect()
}

async fn take_lock(path: &Path) -> Result<File, PinFault> {
    let path = path.with_extension("lock");
    let open = {
        let path = path.clone();
        move || {
            made_folder(&path)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600);
            options.open(&path)
        }
    };
    let file = spawn_blocking(open).await.unwrap_or_else(|_| Err(io::Error::other("ending")));
    let file = file.map_err(|it| broken("locked", &path, &it))?;
    let mut patience = PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(broken("locked", &path, &error)),
            Err(TryLockError::WouldBlock) if patience.is_zero() => {
                return Err(PinFault(format!(
                    "Another program has held the lock `{}` for too long. See what holds it, \
                     and end that.",
                    path.display()
                )));
            }
            Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
        }
        patience = patience.saturating_sub(PAUSE);
    }
}

impl fmt::Display for PinFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PinFault {}

/// Days since 1970.
pub(super) fn today() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs() / 86_400).unwrap_or(u32::MAX)
}

/// The source "lists": the numbers of instances begin with 1.
pub(super) const LISTS: u64 = 0;
/// How long another process may hold the lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before the next attempt.
const PAUSE: Duration = Duration::from_millis(20);
