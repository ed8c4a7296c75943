//! Pins put to work: lists are compared before anybody sees them, instances before their first call.
//!
//! An instance that comes up may be of another program than the one that said what is known. So the
//! first call of a tool or a prompt at it waits until that list of this instance was read and compared,
//! and so does the first one after it said that the list changed. Later calls pay for one load.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{ActivePlan, GatewayState, View};
use trunkline_proto::CallError;
use trunkline_wire::method::Method;

use crate::catalog::plan::ServerPlan;
use crate::failure::{Failure, Reason, Stage};
use crate::logs::Logged;
use crate::merge::{Kind, Lists};
use crate::policy::pins::{Held, Offered, Part, PinFile};
use crate::server::{Server, now};
use crate::upstream::Instance;

impl GatewayState {
    /// The pins, for a server that has some.
    pub(crate) fn pins_of(&self, plan: &ServerPlan) -> Option<&PinFile> {
        self.pins.as_ref().filter(|_| plan.pin.is_on())
    }

    /// Compares what lists say with what is pinned. Says which lists are shown differently for it.
    pub(crate) async fn apply_pins(&self, plan: &ServerPlan, lists: &Lists) -> Vec<Kind> {
        let Some(pins) = self.pins_of(plan) else { return Vec::new() };
        let before = pins.held(&plan.name);
        let (_, fault) = pins.compare(&plan.name, &Offered::all(lists), plan.pin).await;
        if let Some(fault) = fault {
            self.logs.add(Logged::gateway(&plan.name, &fault.to_string()));
        }
        let now = pins.held(&plan.name);
        let new = now.iter().filter(|it| !before.contains(it));
        self.tell_held(plan, new);
        touched(&before, &now)
    }

    /// Compares a list of an instance with the pins, unless that was done since it came up or last said
    /// that the list changed. What differs is held back before this returns.
    pub(crate) async fn compare(
        &self,
        server: &Arc<Server>,
        plan: &ServerPlan,
        instance: &Arc<Instance>,
        part: Part,
    ) -> Result<(), Failure> {
        let (Some(pins), Some(kind)) = (self.pins_of(plan), part.kind()) else { return Ok(()) };
        let compare = async {
            let _turn = instance.compared.turn.lock().await;
            if instance.compared.has(kind) {
                return Ok(());
            }
            let since = instance.compared.epoch();
            let lists = server.list_of(instance, kind).await?;
            // What the lists say was compared when they were taken over.
            let is_known = server.lists().is_some_and(|it| it.etag_of(kind) == lists.etag_of(kind));
            let offered = if is_known { Vec::new() } else { Offered::of(&lists, kind) };
            self.hold_differing(pins, plan, instance, part, &offered);
            self.catch_up(server, instance, kind, &offered);
            instance.compared.add(kind, since);
            Ok::<_, CallError>(())
        };
        let why = match tokio::time::timeout(plan.timeouts.start, compare).await {
            Ok(Ok(())) => return Ok(()),
            // Nothing was called there: another instance may serve as well.
            Ok(Err(CallError::Closed | CallError::Lost(_))) => {
                return Err(Box::pin(instance.gone()).await);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("It took longer than {:?}.", plan.timeouts.start),
        };
        let message = format!(
            "`{}` did not say what it offers now, so that could not be compared with what is pinned. {why}",
            plan.name
        );
        let mut failure = Failure::new(Reason::NotCompared, Stage::Policy, message).of(&plan.name);
        failure.instance = Some(instance.id);
        Err(failure.advice(format!(
            "See `trunkline logs {}`. With `pin: off` calls do not wait for this, and nothing is held back.",
            plan.name
        )))
    }

    /// Has an instance that has come up compared, whether anybody calls or not.
    pub(crate) fn look_at(&self, server: Arc<Server>, instance: u64) {
        let Some(this) = self.this.upgrade() else { return };
        // Without its lease: what is looked at is not in use.
        let lease = server.lists().and_then(|_| server.pool.lease_on(instance));
        let Some(instance) = lease.map(|it| Arc::clone(it.instance())) else { return };
        tokio::spawn(async move {
            let plan = server.plan();
            if let Some(pins) = this.pins_of(&plan) {
                let said = instance.opened.instructions.as_deref();
                let said: Vec<_> = said.map(Offered::instructions).into_iter().collect();
                this.hold_differing(pins, &plan, &instance, Part::Instructions, &said);
            }
            // What cannot be compared now is compared before the first call.
            let _ = this.compare(&server, &plan, &instance, Part::Tool).await;
        });
    }

    /// An instance is gone, and with it what it said.
    pub(crate) fn looked_at_is_gone(&self, server: &Server, instance: u64) {
        let plan = server.plan();
        if let Some(pins) = self.pins_of(&plan).filter(|it| it.holds(&plan.name)) {
            let before = pins.held(&plan.name);
            pins.gone(&plan.name, instance);
            self.lists_changed(&plan, &touched(&before, &pins.held(&plan.name)));
        }
    }

    /// An instance says that a list of it changed: it is compared before the next call.
    pub(crate) fn list_changed_in(&self, server: &Arc<Server>, instance: u64, method: Method) {
        let Some(lease) = server.pool.lease_on(instance) else { return };
        let compared = &lease.instance().compared;
        match method {
            Method::ToolsListChanged => compared.changed(Kind::Tools),
            Method::PromptsListChanged => compared.changed(Kind::Prompts),
            _ => {
                compared.changed(Kind::Resources);
                compared.changed(Kind::Templates);
            }
        }
        // It may be what was pinned again; nobody calls what is held back to find out.
        if self.pins_of(&server.plan()).is_some_and(|it| it.holds(&server.name)) {
            self.look_at(Arc::clone(server), instance);
        }
    }

    /// Holds back what an instance says differently.
    fn hold_differing(
        &self,
        pins: &PinFile,
        plan: &ServerPlan,
        instance: &Instance,
        part: Part,
        offered: &[Offered],
    ) {
        if offered.is_empty() && !pins.holds(&plan.name) {
            return;
        }
        let before = pins.held(&plan.name);
        let new = pins.look(&plan.name, instance.id, part, offered);
        self.tell_held(plan, new.iter());
        self.lists_changed(plan, &touched(&before, &pins.held(&plan.name)));
    }

    /// Has all lists fetched if an instance offers something that they do not say.
    fn catch_up(
        &self,
        server: &Arc<Server>,
        instance: &Arc<Instance>,
        kind: Kind,
        offered: &[Offered],
    ) {
        let unlisted = server.unlisted(kind, offered);
        if unlisted.is_empty() || !server.news().start(now()) {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        let (server, id) = (Arc::clone(server), instance.id);
        tokio::spawn(async move {
            // One that is older may be of the program that was there before.
            if this.refresh(&server, true).await.is_some_and(|from| from > id) {
                let known =
                    server.lists().iter().flat_map(|it| Offered::of(it, kind)).collect::<Vec<_>>();
                let is_known = |it: &String| known.iter().any(|known| known.digest == *it);
                server.knows_variants(unlisted.into_iter().filter(|it| !is_known(it)).collect());
            }
        });
    }

    fn tell_held<'a>(&self, plan: &ServerPlan, held: impl Iterator<Item = &'a Held>) {
        let audit = self.world().audit.clone();
        for held in held {
            match self.told_held.one_more(&plan.name, Instant::now()) {
                Told::Yes => {
                    if let Some(audit) = &audit {
                        audit.note_held(&plan.name, held);
                    }
                    let text = held.failure(&plan.name).to_string();
                    self.logs.add(Logged::gateway(&plan.name, &text));
                }
                Told::Last => {
                    let text = format!(
                        "More of `{0}` is held back; for a minute it is not told here. See \
                         `trunkline approve {0}`.",
                        plan.name
                    );
                    self.logs.add(Logged::gateway(&plan.name, &text));
                }
                Told::No => return,
            }
        }
    }

    /// A server's lists as clients see them: without what waits for approval.
    pub(crate) fn shown(&self, server: &Server, lists: Arc<Lists>) -> Arc<Lists> {
        let plan = server.plan();
        let Some(pins) = self.pins_of(&plan).filter(|it| it.holds(&plan.name)) else {
            return lists;
        };
        let held = pins.held(&plan.name);
        let held: HashSet<_> = held.iter().map(|it| (it.kind, it.name.as_str())).collect();
        let is_shown = |part, name: &str| !held.contains(&(part, name));
        let mut shown = Lists::clone(&lists);
        shown.tools.retain(|it| is_shown(Part::Tool, &it.name));
        shown.prompts.retain(|it| is_shown(Part::Prompt, &it.name));
        shown.resources.retain(|it| is_shown(Part::Resource, &it.uri));
        shown.templates.retain(|it| is_shown(Part::Template, &it.uri_template));
        shown.instructions = shown.instructions.filter(|_| is_shown(Part::Instructions, ""));
        Arc::new(shown)
    }

    /// How a server wants to be used, unless that waits for approval.
    pub(crate) fn shown_instructions(&self, server: &Server) -> Option<String> {
        let plan = server.plan();
        let said = server.lists()?.instructions.clone()?;
        let pins = self.pins_of(&plan);
        let is_held = pins.is_some_and(|it| it.find(&plan.name, Part::Instructions, "").is_some());
        (!is_held).then_some(said)
    }

    /// What is held back under a name that clients would see it by, and of which server.
    pub(crate) fn held_back(
        &self,
        world: &ActivePlan,
        view: &View,
        part: Part,
        shown: &str,
    ) -> Option<(Arc<Server>, Held)> {
        for server in world.servers.values() {
            let plan = server.plan();
            let Some(pins) = self.pins_of(&plan).filter(|it| it.holds(&plan.name)) else {
                continue;
            };
            if !view.selector.chooses(&plan) {
                continue;
            }
            let own = shown.strip_prefix(&*server.name).and_then(|it| it.strip_prefix('.'));
            for name in [Some(shown), own].into_iter().flatten() {
                if let Some(held) = pins.find(&plan.name, part, name) {
                    return Some((Arc::clone(server), held));
                }
            }
        }
        None
    }
}

/// The lists in which something is held back that was not, or is not any more.
fn touched(before: &[Held], now: &[Held]) -> Vec<Kind> {
    let names = |all: &[Held], kind| -> BTreeSet<String> {
        let of = all.iter().filter(|it| it.kind.kind() == Some(kind));
        of.map(|it| it.name.clone()).collect()
    };
    Kind::ALL.into_iter().filter(|it| names(before, *it) != names(now, *it)).collect()
}

/// How much was told lately of what is held back: a server that makes up tools for ever has no right
/// to fill the log and the audit.
#[derive(Default)]
pub(super) struct ToldHeld(Mutex<BTreeMap<String, (Instant, usize)>>);

#[derive(Debug, PartialEq)]
enum Told {
    Yes,
    /// That there is more.
    Last,
    No,
}

impl ToldHeld {
    fn one_more(&self, server: &str, now: Instant) -> Told {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = told.entry(server.to_owned()).or_insert((now, 0));
        if now.duration_since(*since) >= MINUTE {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        match (*count).cmp(&(MOST_TOLD + 1)) {
            Ordering::Less => Told::Yes,
            Ordering::Equal => Told::Last,
            Ordering::Greater => Told::No,
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
/// How many are told in a minute, of one server.
const MOST_TOLD: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_makes_up_tools_for_ever_does_not_fill_the_log() {
        let (told, now) = (ToldHeld::default(), Instant::now());
        let count = |now| (0..1_000).filter(|_| told.one_more("bad", now) == Told::Yes).count();
        assert_eq!((count(now), count(now)), (50, 0));
        assert_eq!(told.one_more("good", now), Told::Yes, "others are told of");
        assert_eq!(count(now + MINUTE), 50);
    }
}
