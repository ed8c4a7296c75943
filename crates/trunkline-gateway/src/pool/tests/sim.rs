//! Turns a line of a transcript into an input of the state, and the state's actions into the rest of the line.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use trunkline_wire::revision::Revisions;

use crate::catalog::plan::{
    Activation, Affinity, LoginClient, Outward, Pinning, Probe, Questions, Reach, Retry,
    ServerPlan, Sharing, Strategy, Timeouts,
};
use crate::failure::{Failure, Reason, Stage};
use crate::pool::state::{Action, Asked, State};
use crate::pool::{Cause, Event, Profile, Want};

/// Runs a transcript. Each line is an input, `->`, and every action that follows.
///
/// `call a profile=1 patience=5s` wants an instance for `a`; `a: i1` is its lease on the first one, `a: busy` a
/// refusal; `by=alice` names the principal whose share it counts against. `park a` makes its call wait for the
/// user. `wait 5s` lets time pass. Settings are those of [`plan`].
#[track_caller]
pub(super) fn check(settings: &str, transcript: &str) {
    let mut sim = Sim::new(plan(settings));
    let lines = transcript.lines().map(str::trim).filter(|line| !line.is_empty());
    let (mut said, mut wanted) = (String::new(), String::new());
    for line in lines {
        let (input, expected) = line.split_once("->").unwrap_or((line, ""));
        let input = input.trim();
        sim.input(input);
        let mut did = std::mem::take(&mut sim.did);
        if input.is_empty() {
            // The first line may be the actions before any input.
            did = sim.first.take().unwrap_or_default();
        }
        said += &format!("{input} -> {}\n", did.join(", "));
        wanted += &format!("{input} -> {}\n", expected.trim());
    }
    assert!(said == wanted, "wanted:\n{wanted}\nbut:\n{said}");
}

/// Parses a plan: `stateful max_instances=2 idle=60s`.
pub(super) fn plan(settings: &str) -> Arc<ServerPlan> {
    let mut plan = ServerPlan {
        name: "time".to_owned(),
        reach: Reach::Stdio {
            command: "time".to_owned(),
            args: vec![],
            env: vec![],
            inherit: vec![],
            cwd: None,
        },
        tags: vec![],
        strategy: Strategy::Stateless,
        idle: seconds("300s"),
        max_concurrent: 16,
        max_instances: 4,
        max_total: None,
        max_each: 0,
        sharing: Sharing::Auto,
        questions: Questions::default(),
        min_ready: 0,
        session_ttl: Some(seconds("300s")),
        affinity: Affinity::Session,
        activation: Activation::OnDemand,
        drain: seconds("30s"),
        timeouts: Timeouts {
            start: seconds("30s"),
            acquire: seconds("30s"),
            call: seconds("60s"),
            hard: seconds("600s"),
        },
        probe: Probe { every: Duration::ZERO, timeout: seconds("5s") },
        retry: Retry { base: seconds("1s"), max: seconds("30s"), tries: 5 },
        revisions: Revisions::ALL,
        expose: None,
        rename: Default::default(),
        idempotent: vec![],
        pin: Pinning::FirstUse,
    };
    for word in settings.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse().expect("a number");
        match name {
            "stateless" => plan.strategy = Strategy::Stateless,
            "stateful" => plan.strategy = Strategy::Stateful,
            "persistent" => plan.strategy = Strategy::Persistent,
            "singleton" => plan.strategy = Strategy::Singleton,
            "isolated" => plan.sharing = Sharing::Isolated,
            "per_user" => {
                plan.reach = Reach::Http {
                    url: "https://time.example/mcp".to_owned(),
                    headers: vec![],
                    roots: vec![],
                    auth: Outward::PerUser(LoginClient::default()),
                };
            }
            "always" => plan.activation = Activation::AlwaysOn,
            "max_concurrent" => plan.max_concurrent = number(),
            "max_instances" => plan.max_instances = number(),
            "max_each" => plan.max_each = number(),
            "min_ready" => plan.min_ready = number(),
            "idle" => plan.idle = seconds(value),
            "drain" => plan.drain = seconds(value),
            "ttl" => plan.session_ttl = (value != "never").then(|| seconds(value)),
            "probe" => plan.probe.every = seconds(value),
            "base" => plan.retry.base = seconds(value),
            "tries" => plan.retry.tries = number() as u32,
            "command" => {
                let Reach::Stdio { command, .. } = &mut plan.reach else { unreachable!() };
                *command = value.to_owned();
            }
            _ => panic!("`{word}` is no setting"),
        }
    }
    if plan.max_each == 0 {
        plan.max_each = plan.max_instances;
    }
    Arc::new(plan)
}

/// The state with a simulated clock.
pub(super) struct Sim {
    pub(super) state: State<u64, String>,
    pub(super) now: Duration,
    /// The actions since the last check.
    did: Vec<String>,
    /// The actions before the first input.
    first: Option<Vec<String>>,
    leases: HashMap<String, (u64, Option<Arc<str>>)>,
    /// The names of parked calls by ticket.
    parked: HashMap<u64, String>,
    tickets: HashMap<String, u64>,
}

impl Sim {
    fn new(plan: Arc<ServerPlan>) -> Self {
        let state = State::new(plan, numbers(), Duration::ZERO);
        let mut sim = Self {
            state,
            now: Duration::ZERO,
            did: vec![],
            first: None,
            leases: HashMap::new(),
            parked: HashMap::new(),
            tickets: HashMap::new(),
        };
        sim.look();
        sim.first = Some(std::mem::take(&mut sim.did));
        sim
    }

    fn input(&mut self, line: &str) {
        let now = self.now;
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let name = rest.first().copied().unwrap_or_default();
        let id = || name.trim_start_matches('i').parse::<u64>().expect("an instance, like `i1`");
        match verb {
            "" => {}
            "call" => self.call(name, &rest[1..]),
            "calls" => {
                for n in 1..=name.parse().expect("how many") {
                    self.call(&format!("c{n}"), &rest[1..]);
                }
            }
            "running" => {
                let got = self.state.running();
                self.did.push(match got {
                    Some((id, _)) => format!("{name}: i{id}"),
                    None => format!("{name}: none"),
                });
                got.map(|(id, _)| self.leases.insert(name.to_owned(), (id, None)));
            }
            "leave" => {
                let ticket = self.tickets.remove(name).expect("who leaves has waited");
                self.state.leave(ticket, now);
            }
            "release" => {
                let (id, by) = self.leases.remove(name).expect("who releases has a lease");
                self.unpark(name);
                self.state.release(id, by.as_ref(), now);
            }
            "park" => {
                let (id, by) = self.leases[name].clone();
                let (ticket, by) = (self.state.next_ticket(), by.expect("a use"));
                self.parked.insert(ticket, name.to_owned());
                self.state.park(ticket, id, &by);
            }
            "unpark" => self.unpark(name),
            "started" => self.state.started(id(), Ok(id()), now),
            "failed" => self.state.started(id(), Err(failed(rest.get(1).copied())), now),
            "ended" => {
                let failure = Failure::new(Reason::InstanceEnded, Stage::Call, "It ended.");
                self.state.ended(id(), failure, now);
            }
            "stopped" => self.state.stopped(id(), now),
            "well" => self.state.probed(id(), Ok(()), now),
            "unwell" => self.state.probed(id(), Err("no answer".to_owned()), now),
            "kill" => self.state.kill(id(), now),
            "retire" => self.state.done_with(id(), now),
            "joined" => self.state.client_joined(now),
            "left" => self.state.client_left(now),
            "forget" => self.state.forget(name, now),
            "evict" => {
                let moved = Failure::new(Reason::InstanceMoved, Stage::Acquire, "It moves.");
                self.state.evict(name, &moved, now);
            }
            "has" => {
                let (has, is_busy) =
                    (self.state.has_instance_of(name), self.state.is_busy_with(name));
                self.did.push(format!("{has} {is_busy}"));
            }
            "retry" => self.state.retry(now),
            "plan" => self.state.reconfigure(plan(&rest.join(" ")), now),
            "close" => self.state.close(seconds(name), now),
            "wait" => self.wait(seconds(name)),
            "status" => {
                let status = self.state.status(now);
                self.did.push(status.state.to_owned());
            }
            _ => panic!("`{line}` is no input"),
        }
        self.look();
    }

    fn unpark(&mut self, name: &str) {
        let ticket = self.parked.iter().find(|(_, it)| *it == name).map(|(ticket, _)| *ticket);
        if let Some(ticket) = ticket {
            self.parked.remove(&ticket);
            self.state.unpark(ticket);
        }
    }

    fn call(&mut self, name: &str, words: &[&str]) {
        let mut want = Want {
            key: None,
            owner: None,
            by: Arc::default(),
            profile: Profile(0),
            is_alone: false,
            cause: Cause::Call,
            patience: seconds("30s"),
        };
        for word in words {
            match word.split_once('=').expect("name=value") {
                ("key", key) => want.key = Some(key.into()),
                ("owner", owner) => (want.owner, want.by) = (Some(owner.into()), owner.into()),
                ("by", by) => want.by = by.into(),
                ("profile", bits) => want.profile = Profile(bits.parse().expect("bits")),
                ("patience", time) => want.patience = seconds(time),
                ("alone", "yes") => want.is_alone = true,
                ("cause", "list") => want.cause = Cause::List,
                _ => panic!("`{word}` is nothing of a want"),
            }
        }
        let by = Some(Arc::clone(&want.by));
        let asked = self.state.want(want, self.now, || name.to_owned());
        self.look();
        match asked {
            Asked::Given { id, .. } => {
                self.leases.insert(name.to_owned(), (id, by));
                self.did.push(format!("{name}: i{id}"));
            }
            Asked::Refused(failure) => self.did.push(format!("{name}: {}", told(&failure))),
            Asked::Waits(ticket) => drop(self.tickets.insert(name.to_owned(), ticket)),
        }
    }

    /// Jumps from alarm to alarm.
    fn wait(&mut self, long: Duration) {
        let end = self.now + long;
        while let Some(at) = self.state.alarm().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.state.tick(self.now);
            self.look();
            assert!(
                self.state.alarm().is_none_or(|next| next > self.now),
                "The alarm goes off again and again."
            );
        }
        self.now = end;
    }

    fn look(&mut self) {
        for action in std::mem::take(&mut self.state.actions) {
            self.did.push(match action {
                Action::Start { id, profile: Profile(0), .. } => format!("start i{id}"),
                Action::Start { id, profile, .. } => format!("start i{id} profile={}", profile.0),
                Action::Abort { id } => format!("abort i{id}"),
                Action::Probe { id, .. } => format!("probe i{id}"),
                Action::MakeWay { ticket } => format!("{} makes way", self.parked[&ticket]),
                Action::Give { to, id, by, .. } => {
                    self.leases.insert(to.clone(), (id, Some(by)));
                    format!("{to}: i{id}")
                }
                Action::Refuse { to, failure } => format!("{to}: {}", told(&failure)),
                Action::Gone => "gone".to_owned(),
                Action::Tell(Event::Stopping { id, why, .. }) => {
                    format!("stop i{id} {}", format!("{why:?}").to_lowercase())
                }
                Action::Tell(Event::BackingOff { pause, .. }) => {
                    format!("pause {}s", pause.as_secs_f32())
                }
                Action::Tell(Event::Suspended { .. }) => "suspended".to_owned(),
                Action::Watch { .. } | Action::Stop { .. } | Action::Tell(_) => continue,
            });
        }
    }
}

/// Ids from 1 on.
pub(super) fn numbers() -> &'static AtomicU64 {
    Box::leak(Box::new(AtomicU64::new(1)))
}

pub(super) fn failed(reason: Option<&str>) -> Failure {
    let reason = match reason {
        Some("not_found") => Reason::NotFound,
        Some("total") => Reason::TotalReached,
        Some("login_required") => crate::failure::Reason::LoginRequired,
        _ => Reason::SpawnFailed,
    };
    let mut failure = Failure::new(reason, Stage::Spawn, "It did not start.");
    failure.exit = Some("exited with code 1".to_owned());
    failure
}

fn told(failure: &Failure) -> String {
    match failure.retry_after {
        Some(after) if failure.reason == "backoff" => {
            format!("backoff {}s", after.as_secs_f32())
        }
        _ => failure.reason.to_string(),
    }
}

fn seconds(text: &str) -> Duration {
    let number = text.strip_suffix('s').expect("seconds, like `30s`");
    let number: f64 = number.parse().expect("a number of seconds");
    Duration::from_millis((number * 1000.0).round() as u64)
}
