//! One replica, told what happens step by step.

mod claims;
mod leases;
mod sessions;
mod suspicions;

use std::time::Duration;

use trunkline_store::Version;

use super::State;
use super::message::{
    Answer, Ask, Input, Member, Name, Output, Owner, Ownership, Question, Record, Reply, Roster,
    Verdict,
};
use crate::timing::Timing;

/// A replica `me`, and what it wants done.
struct Desk {
    state: State,
    now: Duration,
    /// What it wants done and nobody has looked at.
    out: Vec<Output>,
    version: u64,
    requests: u64,
}

impl Desk {
    /// A replica that was just started.
    fn new() -> Self {
        let mut desk = Self {
            state: State::new(owner("me"), 1, Timing::default()),
            now: Duration::ZERO,
            out: Vec::new(),
            version: 0,
            requests: 0,
        };
        desk.tell(Input::Tick);
        desk
    }

    /// One that has a lease, and whose roster has settled.
    fn leased(others: &[&str]) -> Self {
        let mut desk = Self::new();
        desk.beat(others);
        desk.settle_roster(others);
        desk.out.clear();
        desk
    }

    /// One whose session `s` is in the store, and the version of its record.
    fn serving(others: &[&str]) -> (Self, Version) {
        let mut desk = Self::leased(others);
        let opened = desk.open("s");
        desk.pass(200);
        let found = Some((record_of("me", 1), opened));
        desk.answer("to check it", is_read, Answer::Record(found));
        (desk, opened)
    }

    fn tell(&mut self, input: Input) {
        self.state.handle(input, self.now);
        self.out.extend(std::iter::from_fn(|| self.state.poll()));
    }

    fn pass(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.tell(Input::Tick);
    }

    /// Takes the first thing it wants done of this kind.
    fn take(&mut self, what: &str, is_it: impl Fn(&Output) -> bool) -> Output {
        let at = self.out.iter().position(is_it);
        let at = at.unwrap_or_else(|| panic!("it does not want {what}: {:#?}", self.out));
        self.out.remove(at)
    }

    /// Answers the first operation of this kind.
    fn answer(&mut self, what: &str, is_it: impl Fn(&Output) -> bool, answer: Answer) -> Output {
        let output = self.take(what, is_it);
        let op = output.op().expect("it is an operation");
        self.tell(Input::Done { op, answer });
        output
    }

    fn next_version(&mut self) -> Version {
        self.version += 1;
        Version::new(self.version)
    }

    /// A heartbeat that settles, with these others.
    fn beat(&mut self, others: &[&str]) {
        let version = self.next_version();
        self.answer("a heartbeat", is_heartbeat, Answer::Written(version));
        self.pass(200);
        let others = others.iter().map(|id| (member(id), Version::new(0)));
        let list = others.chain([(member("me"), version)]).collect();
        self.answer("the members", is_members, Answer::Members(list));
    }

    /// A heartbeat that nobody answers.
    fn beat_in_vain(&mut self) {
        self.answer("a heartbeat", is_heartbeat, Answer::Away);
    }

    fn settle_roster(&mut self, roster: &[&str]) {
        let version = self.next_version();
        self.answer("to write a roster", is_roster_swap, Answer::Swapped(version));
        self.pass(200);
        let found = Some((names(roster), version));
        self.answer("to check the roster", is_roster_read, Answer::Roster(found));
    }

    /// Asks for something, and returns the number of the request.
    fn request(&mut self, input: impl Fn(u64) -> Input) -> u64 {
        self.requests += 1;
        self.tell(input(self.requests));
        self.requests
    }

    fn locate(&mut self, session: &str, hint: &str) -> u64 {
        let (session, hint) = (Name::from(session), Name::from(hint));
        self.request(|request| Input::Locate {
            request,
            session: session.clone(),
            hint: hint.clone(),
        })
    }

    fn open(&mut self, session: &str) -> Version {
        let name = Name::from(session);
        let request = self.request(|request| Input::Open {
            request,
            session: name.clone(),
            body: "hello".into(),
        });
        let version = self.next_version();
        self.answer("to write a record", is_swap, Answer::Swapped(version));
        assert_eq!(self.verdict(request), Some(Verdict::Done));
        version
    }

    /// The verdict of a request, if it has been told.
    fn verdict(&mut self, request: u64) -> Option<Verdict> {
        let is_it = |it: &Output| matches!(it, Output::Tell { request: of, .. } if *of == request);
        let at = self.out.iter().position(is_it)?;
        match self.out.remove(at) {
            Output::Tell { verdict, .. } => Some(verdict),
            _ => None,
        }
    }

    /// The request is told who the owner is, and this replica does not become it.
    #[track_caller]
    fn assert_is_left_to(&mut self, name: &str, request: u64) {
        assert_eq!(self.verdict(request), Some(Verdict::At(owner(name))));
        assert!(!self.out.iter().any(is_own));
    }

    fn asked(&mut self, from: &str, ask: Ask) -> bool {
        self.state.asked(&Question { from: from.into(), ask }, self.now).yes
    }
}

fn owner(id: &str) -> Owner {
    Owner { id: id.into(), url: format!("http://{id}").into() }
}

fn member(id: &str) -> Member {
    Member { owner: owner(id), protocol: 1, sessions: 0, age: 0 }
}

fn names(ids: &[&str]) -> Roster {
    ids.iter().map(|id| Name::from(*id)).collect()
}

fn record_of(id: &str, epoch: u64) -> Record {
    Record { protocol: 1, ownership: Ownership::Owned(owner(id)), epoch, body: "hello".into() }
}

fn reply(from: &str, yes: bool) -> Answer {
    Answer::Reply(Reply { from: from.into(), yes })
}

/// Functions that know one kind of output each.
macro_rules! kinds {
    ($($name:ident: $kind:ident,)*) => {
        $(fn $name(it: &Output) -> bool {
            matches!(it, Output::$kind { .. })
        })*
    };
}

kinds! {
    is_heartbeat: WriteHeartbeat,
    is_members: ReadMembers,
    is_heartbeat_read: ReadHeartbeat,
    is_roster_swap: SwapRoster,
    is_roster_read: ReadRoster,
    is_read: Read,
    is_swap: Swap,
    is_own: Own,
    is_disown: Disown,
    is_ping: Ping,
}

fn is_ping_to(id: &'static str) -> impl Fn(&Output) -> bool {
    move |it| matches!(it, Output::Ping { to, .. } if &*to.id == id)
}
