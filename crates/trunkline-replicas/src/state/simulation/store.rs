//! A store whose failover loses the last writes.

use std::collections::{BTreeSet, HashMap, VecDeque};

use trunkline_store::{Expect, Version};

use crate::state::message::{Answer, Member, Name, Output, Ownership, Record, Roster};
use crate::timing::Timing;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Heartbeat(Name),
    Roster(Name),
    Session(Name),
}

#[derive(Clone, Debug)]
enum Value {
    Heartbeat(Member),
    Roster(Roster),
    Session(Record),
}

#[derive(Clone, Debug)]
struct Entry {
    value: Value,
    version: Version,
    /// In microseconds of true time.
    expires: u64,
}

/// The simulated store.
#[derive(Debug)]
pub(super) struct SimStore {
    entries: HashMap<Key, Entry>,
    /// All who ever had a heartbeat.
    replicas: BTreeSet<Name>,
    /// What each write of late has replaced.
    log: VecDeque<(u64, Key, Option<Entry>)>,
    last_version: u64,
    /// How fast its clock runs.
    rate: f64,
    timing: Timing,
    /// Until when it answers nothing; what arrives is lost.
    pub(super) down_until: u64,
    /// Until when it does nothing; what arrives waits.
    pub(super) paused_until: u64,
}

impl SimStore {
    pub(super) fn new(rate: f64, timing: Timing) -> Self {
        Self {
            entries: HashMap::new(),
            replicas: BTreeSet::new(),
            log: VecDeque::new(),
            last_version: 0,
            rate,
            timing,
            down_until: 0,
            paused_until: 0,
        }
    }

    /// Loses the writes since `since`.
    pub(super) fn fail_over(&mut self, since: u64) {
        while let Some((at, key, before)) = self.log.pop_back() {
            if at < since {
                self.log.push_back((at, key, before));
                return;
            }
            match before {
                Some(entry) => self.entries.insert(key, entry),
                None => self.entries.remove(&key),
            };
        }
    }

    /// Does what a replica wants done.
    pub(super) fn apply(&mut self, me: &Name, wanted: &Output, now: u64) -> Answer {
        match wanted {
            Output::WriteHeartbeat { member, .. } => {
                let value = Value::Heartbeat(member.clone());
                self.replicas.insert(me.clone());
                Answer::Written(self.write(Key::Heartbeat(me.clone()), value, now))
            }
            Output::ReadMembers { .. } => {
                let keys = self.replicas.iter().map(|id| Key::Heartbeat(id.clone()));
                let live = keys.filter_map(|key| self.get(&key, now));
                Answer::Members(
                    live.filter_map(|it| match &it.value {
                        Value::Heartbeat(member) => Some((member.clone(), it.version)),
                        _ => None,
                    })
                    .collect(),
                )
            }
            Output::ReadHeartbeat { replica, .. } => {
                Answer::Heartbeat(self.get(&Key::Heartbeat(replica.clone()), now).and_then(|it| {
                    match &it.value {
                        Value::Heartbeat(member) => Some(member.clone()),
                        _ => None,
                    }
                }))
            }
            Output::SwapRoster { expect, roster, .. } => {
                let key = Key::Roster(me.clone());
                if !self.is_expected(&key, *expect, now) {
                    return self.roster(&key, now);
                }
                Answer::Swapped(self.write(key, Value::Roster(roster.clone()), now))
            }
            Output::ReadRoster { replica, .. } => self.roster(&Key::Roster(replica.clone()), now),
            Output::Read { session, .. } => {
                Answer::Record(self.record(&Key::Session(session.clone()), now))
            }
            Output::Swap { session, expect, record, .. } => {
                let key = Key::Session(session.clone());
                if !self.is_expected(&key, *expect, now) {
                    return Answer::Conflict(self.record(&key, now));
                }
                Answer::Swapped(self.write(key, Value::Session(record.clone()), now))
            }
            Output::Withdraw { .. } => {
                for key in [Key::Roster(me.clone()), Key::Heartbeat(me.clone())] {
                    if let Some(before) = self.entries.remove(&key) {
                        self.log.push_back((now, key, Some(before)));
                    }
                }
                Answer::Away
            }
            _ => unreachable!("nothing else is for the store"),
        }
    }

    fn write(&mut self, key: Key, value: Value, now: u64) -> Version {
        self.last_version += 1;
        let ttl = match &value {
            Value::Heartbeat(_) => self.timing.heartbeat_ttl.as_micros() as f64,
            Value::Roster(_) => self.timing.roster_ttl.as_micros() as f64,
            Value::Session(record) if record.ownership == Ownership::Closed => 60e6,
            Value::Session(_) => 1e12,
        };
        let version = Version::new(self.last_version);
        let expires = now + (ttl / self.rate) as u64;
        let before = self.entries.insert(key.clone(), Entry { value, version, expires });
        self.log.push_back((now, key, before));
        while self.log.front().is_some_and(|(at, ..)| at + KEPT < now) {
            self.log.pop_front();
        }
        version
    }

    fn get(&self, key: &Key, now: u64) -> Option<&Entry> {
        self.entries.get(key).filter(|it| it.expires > now)
    }

    fn is_expected(&self, key: &Key, expect: Expect, now: u64) -> bool {
        let version = self.get(key, now).map(|it| it.version);
        match expect {
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(expected),
        }
    }

    fn roster(&self, key: &Key, now: u64) -> Answer {
        Answer::Roster(self.get(key, now).and_then(|it| match &it.value {
            Value::Roster(roster) => Some((roster.clone(), it.version)),
            _ => None,
        }))
    }

    fn record(&self, key: &Key, now: u64) -> Option<(Record, Version)> {
        self.get(key, now).and_then(|it| match &it.value {
            Value::Session(record) => Some((record.clone(), it.version)),
            _ => None,
        })
    }
}

/// How long the log reaches back, in microseconds.
const KEPT: u64 = 1_000_000;
