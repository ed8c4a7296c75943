//! Enforces pins: compares lists before any client sees them, and instances before their first call.
//!
//! A new instance may run another program than the one that was pinned. So the first call of a tool or prompt
//! at an instance waits until that list of this instance was read and compared, and again after each
//! `list_changed`. Later calls cost one atomic load.

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
    /// The pins, if this server is pinned.
    pub(crate) fn pins_of(&self, plan: &ServerPlan) -> Option<&PinFile> {
        self.pins.as_ref().filter(|_| plan.pin.is_on())
    }

    /// Compares lists with the pins. Returns the kinds that are shown differently as a result.
    pub(crate) async fn apply_pins(&self, plan: &ServerPlan, lists: &Lists) -> Vec<Kind> {
        let Some(pins) = self.pins_of(plan) else { return Vec::new() };
        let before = pins.held(&plan.name);
        let (_, fault) = pins.compare(&plan.name, &Offered::all(lists), plan.pin).await;
        if let Some(fault) = fault {
            self.logs.add(Logged::gateway(&plan.name, &fault.to_string()));
        }
        let now = pins.held(&plan.name);
        let new = now.iter().filter(|it| !before.contains(it));
        self.report_held(plan, new);
        touched(&before, &now)
    }

    /// Compares a list of an instance with the pins, unless that was done since the instance started or last
    /// announced a change. What differs is held back before this returns.
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
            // Known lists were compared when they were taken over.
            let is_known = server.lists().is_some_and(|it| it.etag_of(kind) == lists.etag_of(kind));
            let offered = if is_known { Vec::new() } else { Offered::of(&lists, kind) };
            self.hold_differing(pins, plan, instance, part, &offered);
            self.catch_up(server, instance, kind, &offered);
            instance.compared.add(kind, since);
            Ok::<_, CallError>(())
        };
        let why = match tokio::time::timeout(plan.timeouts.start, compare).await {
            Ok(Ok(())) => return Ok(()),
            // No call was made there: another instance can serve it.
            Ok(Err(CallError::Closed | CallError::Lost(_))) => {
                return Err(Box::pin(instance.gone()).await);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("It took longer than {:?}.", plan.timeouts.start),
        };
        let message = format!(
            "`{}` did not list what it offers now, so that it could not be compared with its pins. {why}",
            plan.name
        );
        let mut failure = Failure::new(Reason::NotCompared, Stage::Policy, message).of(&plan.name);
        failure.instance = Some(instance.id);
        Err(failure.advice(format!(
            "See `trunkline logs {}`. With `pin: off` calls do not wait for this, and nothing is held back.",
            plan.name
        )))
    }

    /// Compares a new instance in the background, whether or not a call comes.
    pub(crate) fn compare_in_background(&self, server: Arc<Server>, instance: u64) {
        let Some(this) = self.this.upgrade() else { return };
        // Drops the lease: an instance that is only compared is not in use.
        let lease = server.lists().and_then(|_| server.pool.lease_on(instance));
        let Some(instance) = lease.map(|it| Arc::clone(it.instance())) else { return };
        tokio::spawn(async move {
            let plan = server.plan();
            if let Some(pins) = this.pins_of(&plan) {
                let said = instance.opened.instructions.as_deref();
                let said: Vec<_> = said.map(Offered::instructions).into_iter().collect();
                this.hold_differing(pins, &plan, &instance, Part::Instructions, &said);
            }
            // If the comparison fails now, the first call repeats it.
            let _ = this.compare(&server, &plan, &instance, Part::Tool).await;
        });
    }

    /// Forgets what an ended instance offered.
    pub(crate) fn forget_instance(&self, server: &Server, instance: u64) {
        let plan = server.plan();
        if let Some(pins) = self.pins_of(&plan).filter(|it| it.holds(&plan.name)) {
            let before = pins.held(&plan.name);
            pins.gone(&plan.name, instance);
            self.lists_changed(&plan, &touched(&before, &pins.held(&plan.name)));
        }
    }

    /// An instance announced a changed list: the next call compares it first.
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
        // The list may match its pin again. Nobody can call what is held back, so compare now.
        if self.pins_of(&server.plan()).is_some_and(|it| it.holds(&server.name)) {
            self.compare_in_background(Arc::clone(server), instance);
        }
    }

    /// Holds back definitions of an instance that differ from their pins.
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
        let new = pins.compare_instance(&plan.name, instance.id, part, offered);
        self.report_held(plan, new.iter());
        self.lists_changed(plan, &touched(&before, &pins.held(&plan.name)));
    }

    /// Fetches all lists if an instance offers a definition that they lack.
    fn catch_up(
        &self,
        server: &Arc<Server>,
        instance: &Arc<Instance>,
        kind: Kind,
        offered: &[Offered],
    ) {
        let unlisted = server.unlisted(kind, offered);
        if unlisted.is_empty() || !server.list_changes().start(now()) {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        let (server, id) = (Arc::clone(server), instance.id);
        tokio::spawn(async move {
            // An older instance may run the previous program.
            if this.refresh(&server, true).await.is_some_and(|from| from > id) {
                let known =
                    server.lists().iter().flat_map(|it| Offered::of(it, kind)).collect::<Vec<_>>();
                let is_known = |it: &String| known.iter().any(|known| known.digest == *it);
                server.add_variants(unlisted.into_iter().filter(|it| !is_known(it)).collect());
            }
        });
    }

    fn report_held<'a>(&self, plan: &ServerPlan, held: impl Iterator<Item = &'a Held>) {
        let audit = self.active_plan().audit.clone();
        for held in held {
            match self.told_held.one_more(&plan.name, Instant::now()) {
                Told::Yes => {
                    if let Some(audit) = &audit {
                        audit.note_held(&plan.name, held);
                    }
                    // What somebody refused is no news.
                    if !held.refused {
                        let text = held.failure(&plan.name).to_string();
                        self.logs.add(Logged::gateway(&plan.name, &text));
                    }
                }
                Told::Last => {
                    let text = format!(
                        "More of `{0}` is held back; for a minute it is not logged here. See \
                         `trunkline approve {0}`.",
                        plan.name
                    );
                    self.logs.add(Logged::gateway(&plan.name, &text));
                }
                Told::No => return,
            }
        }
    }

    /// A server's lists as clients see them: without definitions that wait for approval.
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

    /// A server's instructions, unless they wait for approval.
    pub(crate) fn shown_instructions(&self, server: &Server) -> Option<String> {
        let plan = server.plan();
        let said = server.lists()?.instructions.clone()?;
        let pins = self.pins_of(&plan);
        let is_held = pins.is_some_and(|it| it.find(&plan.name, Part::Instructions, "").is_some());
        (!is_held).then_some(said)
    }

    /// What is held back under a name that clients use, and at which server.
    pub(crate) fn held_back(
        &self,
        active: &ActivePlan,
        view: &View,
        part: Part,
        shown: &str,
    ) -> Option<(Arc<Server>, Held)> {
        for server in active.servers.values() {
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

/// The kinds in which the set of held-back definitions changed.
fn touched(before: &[Held], now: &[Held]) -> Vec<Kind> {
    let names = |all: &[Held], kind| -> BTreeSet<String> {
        let of = all.iter().filter(|it| it.kind.kind() == Some(kind));
        of.map(|it| it.name.clone()).collect()
    };
    Kind::ALL.into_iter().filter(|it| names(before, *it) != names(now, *it)).collect()
}

/// Rate-limits reports of held-back definitions, so that a server that invents tools without end cannot flood
/// the log and the audit.
#[derive(Default)]
pub(super) struct HeldReports(Mutex<BTreeMap<String, (Instant, usize)>>);

#[derive(Debug, PartialEq)]
enum Told {
    Yes,
    /// The last report of this minute, which says that there is more.
    Last,
    No,
}

impl HeldReports {
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
/// Reports per minute and server.
const MOST_TOLD: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_makes_up_tools_for_ever_does_not_fill_the_log() {
        let (told, now) = (HeldReports::default(), Instant::now());
        let count = |now| (0..1_000).filter(|_| told.one_more("bad", now) == Told::Yes).count();
        assert_eq!((count(now), count(now)), (50, 0));
        assert_eq!(told.one_more("good", now), Told::Yes, "others are told of");
        assert_eq!(count(now + MINUTE), 50);
    }
}
