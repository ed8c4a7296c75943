//! The right to answer: heartbeats in the store, or the word of every peer while the store is away.

use std::collections::BTreeMap;
use std::time::Duration;

use trunkline_store::{Expect, Version};

use super::message::{Answer, Ask, Member, Name, Output, Owner};
use super::{Purpose, State};

/// The lease of this replica, and how it is being renewed.
#[derive(Debug, Default)]
pub(super) struct Lease {
    /// Until when the last heartbeat that settled lets it answer.
    by_store: Duration,
    /// Until when the word of the roster lets it answer.
    by_peers: Duration,
    pub(super) generation: u64,
    beat: Beat,
    /// Whether the last attempt to reach the store failed.
    pub(super) away: bool,
    roster: RosterState,
    round: Option<Round>,
    rounds: u64,
    next_round: Duration,
}

/// One heartbeat: written, and read again with those of the others.
#[derive(Clone, Copy, Debug)]
enum Beat {
    Waiting { until: Duration },
    Writing { sent: Duration },
    Settling { sent: Duration, version: Version, until: Duration },
    Reading { sent: Duration, version: Version },
}

impl Default for Beat {
    fn default() -> Self {
        Beat::Waiting { until: Duration::ZERO }
    }
}

type Peers = BTreeMap<Name, Owner>;

/// Who must vouch.
#[derive(Debug, Default)]
struct RosterState {
    /// The roster that settled in the store.
    settled: Option<Settled>,
    /// All who are in rosters that were sent since then: any of these may be what others read.
    attempted: Peers,
    /// Whether one of these is empty: whoever reads that concludes that nobody vouches.
    may_be_empty: bool,
    /// The version that the next one replaces. A write that comes late replaces nothing.
    replaces: Option<Version>,
    step: RosterStep,
}

#[derive(Debug)]
struct Settled {
    peers: Peers,
    sent: Duration,
    version: Version,
}

#[derive(Debug, Default)]
enum RosterStep {
    #[default]
    Idle,
    Writing {
        roster: Peers,
        sent: Duration,
    },
    Settling {
        roster: Peers,
        sent: Duration,
        version: Version,
        until: Duration,
    },
    Reading {
        roster: Peers,
        sent: Duration,
        version: Version,
    },
}

/// One round of pings.
#[derive(Debug)]
struct Round {
    number: u64,
    sent: Duration,
    waiting: Peers,
}

impl State {
    /// Whether this replica may answer now.
    pub(crate) fn is_leased(&self) -> bool {
        self.now < self.lease_until()
    }

    fn lease_until(&self) -> Duration {
        self.lease.by_store.max(self.lease.by_peers)
    }

    /// Changes the lease. One that comes back after it lapsed starts a generation.
    fn set_lease(&mut self, by_store: Duration, by_peers: Duration) {
        let before = (self.lease.by_store, self.lease.by_peers);
        if before == (by_store, by_peers) {
            return;
        }
        let had = self.is_leased();
        (self.lease.by_store, self.lease.by_peers) = (by_store, by_peers);
        if self.is_leased() && !had {
            self.lease.generation += 1;
        }
        let (until, generation) = (self.lease_until(), self.lease.generation);
        self.out.push_back(Output::Lease { until, generation });
    }

    /// Gives the lease up.
    pub(super) fn end_lease(&mut self) {
        self.lease.round = None;
        self.set_lease(Duration::ZERO, Duration::ZERO);
    }

    pub(super) fn beat_deadline(&self) -> Option<Duration> {
        let beat = match self.lease.beat {
            _ if self.departure.is_over() => return None,
            Beat::Waiting { until } | Beat::Settling { until, .. } => Some(until),
            Beat::Writing { .. } | Beat::Reading { .. } => None,
        };
        let roster = match &self.lease.roster.step {
            RosterStep::Settling { until, .. } => Some(*until),
            _ => None,
        };
        let round = self.wants_round().then_some(self.lease.next_round);
        [beat, roster, round].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(super) fn beat(&mut self) {
        let now = self.now;
        match self.lease.beat {
            Beat::Waiting { until } if until <= now => {
                let op = self.op(Purpose::Heartbeat);
                self.lease.beat = Beat::Writing { sent: now };
                let member = self.describe();
                self.out.push_back(Output::WriteHeartbeat { op, member });
            }
            Beat::Settling { sent, version, until } if until <= now => {
                let op = self.op(Purpose::Members);
                self.lease.beat = Beat::Reading { sent, version };
                self.out.push_back(Output::ReadMembers { op });
            }
            _ => {}
        }
        self.check_roster();
        if self.wants_round() && self.lease.next_round <= now {
            self.start_round();
        }
    }

    pub(super) fn heartbeat_written(&mut self, answer: &Answer) {
        let Beat::Writing { sent } = self.lease.beat else { return };
        match answer {
            Answer::Written(version) => {
                let until = self.now + self.timing.settle;
                self.lease.beat = Beat::Settling { sent, version: *version, until };
            }
            _ => self.beat_failed(),
        }
    }

    pub(super) fn members_read(&mut self, answer: Answer) {
        let Beat::Reading { sent, version } = self.lease.beat else { return };
        let Answer::Members(list) = answer else { return self.beat_failed() };
        if self.departure.is_over() {
            return;
        }
        let has_settled = list.iter().any(|(it, at)| it.owner.id == self.me.id && *at == version);
        self.see(list.into_iter().map(|(it, _)| it));
        if !has_settled {
            // A failover lost it, or an older heartbeat was late.
            self.lease.beat = Beat::Waiting { until: self.now + self.timing.settle };
            return;
        }
        let was_away = std::mem::take(&mut self.lease.away);
        self.lease.round = None;
        self.lease.beat = Beat::Waiting { until: sent + self.timing.heartbeat };
        let by_store = self.lease.by_store.max(sent + self.timing.lease);
        self.set_lease(by_store, self.lease.by_peers);
        if was_away && self.lease.roster.settled.is_some() {
            let op = self.op(Purpose::RosterProbe);
            self.out.push_back(Output::ReadRoster { op, replica: self.me.id.clone() });
        } else {
            self.renew_roster();
        }
    }

    /// Takes in who is alive, and remembers for a while who was.
    fn see(&mut self, list: impl Iterator<Item = Member>) {
        let now = self.now;
        let others = list.filter(|it| it.owner.id != self.me.id);
        let members = others.map(|it| (it.owner.id.clone(), it)).collect();
        let before = std::mem::replace(&mut self.members, members);
        for (id, member) in before {
            self.missing.entry(id).or_insert((member.owner, now));
        }
        let (members, keep) = (&self.members, self.timing.refusal);
        self.missing.retain(|id, (_, since)| !members.contains_key(id) && now < *since + keep);
        self.scanned = Some(now);
    }

    fn beat_failed(&mut self) {
        self.lease.away = true;
        self.lease.beat = Beat::Waiting { until: self.now + self.timing.retry };
    }

    /// Writes the roster if the members are others now, or it grows old.
    ///
    /// A lease that rests on the roster before ends here: its members need not be those whom others read now. So this
    /// happens only under a lease from the store.
    fn renew_roster(&mut self) {
        let (roster, now) = (&self.lease.roster, self.now);
        let peers: Peers =
            self.members.iter().map(|(id, it)| (id.clone(), it.owner.clone())).collect();
        let is_current = roster.settled.as_ref().is_some_and(|it| {
            it.peers.keys().eq(peers.keys()) && now < it.sent + self.timing.roster_refresh
        });
        let is_idle = matches!(roster.step, RosterStep::Idle);
        if is_current || !is_idle || now >= self.lease.by_store || self.departure.is_over() {
            return;
        }
        self.lease.round = None;
        self.set_lease(self.lease.by_store, Duration::ZERO);
        let op = self.op(Purpose::RosterWrite);
        let names = peers.keys().cloned().collect();
        self.lease.roster.may_be_empty |= peers.is_empty();
        self.lease.roster.attempted.extend(peers.clone());
        self.lease.roster.step = RosterStep::Writing { roster: peers, sent: now };
        let expect = self.lease.roster.replaces.map_or(Expect::Absent, Expect::Version);
        self.out.push_back(Output::SwapRoster { op, expect, roster: names });
    }

    pub(super) fn roster_written(&mut self, answer: &Answer) {
        let until = self.now + self.timing.settle;
        self.lease.roster.step = match (std::mem::take(&mut self.lease.roster.step), answer) {
            (RosterStep::Writing { roster, sent }, Answer::Swapped(version)) => {
                self.lease.roster.replaces = Some(*version);
                RosterStep::Settling { roster, sent, version: *version, until }
            }
            (_, Answer::Roster(found)) => {
                self.lease.roster.replaces = found.as_ref().map(|(_, version)| *version);
                RosterStep::Idle
            }
            _ => RosterStep::Idle,
        };
    }

    fn check_roster(&mut self) {
        self.lease.roster.step = match std::mem::take(&mut self.lease.roster.step) {
            RosterStep::Settling { roster, sent, version, until } if until <= self.now => {
                let op = self.op(Purpose::RosterCheck);
                let replica = self.me.id.clone();
                self.out.push_back(Output::ReadRoster { op, replica });
                RosterStep::Reading { roster, sent, version }
            }
            step => step,
        };
    }

    pub(super) fn roster_checked(&mut self, answer: &Answer) {
        let step = std::mem::take(&mut self.lease.roster.step);
        let RosterStep::Reading { roster, sent, version } = step else { return };
        if matches!(answer, Answer::Roster(Some((_, at))) if *at == version) {
            self.lease.roster.may_be_empty = roster.is_empty();
            self.lease.roster.settled = Some(Settled { peers: roster, sent, version });
            self.lease.roster.attempted.clear();
        } else if let Answer::Roster(found) = answer {
            self.lease.roster.replaces = found.as_ref().map(|(_, version)| *version);
        }
    }

    /// The store was away and is back. If our roster is not what it was, the store has lost writes that had settled.
    pub(super) fn roster_probed(&mut self, answer: &Answer) {
        let roster = &self.lease.roster;
        let is_idle = matches!(roster.step, RosterStep::Idle) && roster.attempted.is_empty();
        let expected = roster.settled.as_ref().map(|it| it.version);
        if let Answer::Roster(found) = answer
            && is_idle
            && found.as_ref().map(|(_, version)| *version) != expected
        {
            self.lease.roster.settled = None;
            self.lease.roster.replaces = found.as_ref().map(|(_, version)| *version);
            self.rewrite_all();
        }
        self.renew_roster();
    }

    /// While the store is away the roster is asked, again and again.
    fn wants_round(&self) -> bool {
        let settled = self.lease.roster.settled.as_ref();
        let can = settled.is_some_and(|it| {
            !self.lease.roster.may_be_empty && self.now < it.sent + self.timing.vouch_limit
        });
        can && self.lease.away && self.lease.round.is_none() && !self.departure.is_over()
    }

    fn start_round(&mut self) {
        let Some(settled) = &self.lease.roster.settled else { return };
        let mut waiting = settled.peers.clone();
        waiting.extend(self.lease.roster.attempted.clone());
        self.lease.rounds += 1;
        let number = self.lease.rounds;
        for (by, peer) in &waiting {
            self.ping(Purpose::Vouch { round: number, by: by.clone() }, peer.clone(), Ask::Vouch);
        }
        self.lease.round = Some(Round { number, sent: self.now, waiting });
    }

    pub(super) fn vouched(&mut self, number: u64, by: &Name, answer: &Answer) {
        let Some(round) = self.lease.round.as_mut().filter(|it| it.number == number) else {
            return;
        };
        // Another replica at that address: the one that was there has ended and takes nothing over.
        let is_sure = matches!(answer, Answer::Reply(reply) if reply.yes || reply.from != *by);
        if !is_sure {
            self.lease.round = None;
            self.lease.next_round = self.now + self.timing.retry;
            return;
        }
        round.waiting.remove(by);
        if !round.waiting.is_empty() {
            return;
        }
        let sent = round.sent;
        self.lease.round = None;
        self.lease.next_round = sent + self.timing.heartbeat;
        let Some(settled) = &self.lease.roster.settled else { return };
        let until = (sent + self.timing.lease).min(settled.sent + self.timing.vouch_limit);
        self.set_lease(self.lease.by_store, self.lease.by_peers.max(until));
    }
}
