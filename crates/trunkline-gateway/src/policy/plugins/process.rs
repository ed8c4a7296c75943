//! Keeps a plugin's process running behind a socket, and sends it questions.
//!
//! The socket lies in a private folder and accepts one connection. A plugin that ends, or that leaves too many
//! questions in a row unanswered, is restarted with exponential backoff. During the pauses questions fail at
//! once.

mod session;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::PluginStatus;
use super::message::{Answer, Phase};
use crate::catalog::plan::PluginPlan;
pub(super) use session::LAST_WORDS;
use session::Session;

/// A plugin. Dropping it tells the plugin to end; its task makes sure of that.
#[derive(Debug)]
pub(super) struct Plugin {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    end: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Whether a plugin runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum State {
    /// It is starting.
    Starting,
    /// It answers.
    Running,
    /// It does not run.
    #[serde(rename_all = "camelCase")]
    Down {
        /// What happened.
        last_error: String,
    },
}

/// What the plugin's task shares with its callers.
#[derive(Debug)]
struct Shared {
    plan: Arc<PluginPlan>,
    state: watch::Sender<State>,
    starts: AtomicU64,
    missed: AtomicU64,
    next: AtomicU64,
    /// The directions that it does not want to be asked about.
    skips: [AtomicBool; 3],
}

/// A command to the task.
enum Order {
    /// Send a line, and return the answer with this id.
    Ask { id: u64, line: Vec<u8>, reply: Reply },
    /// Send a line.
    Tell(Vec<u8>),
    /// A caller timed out.
    Late,
}

type Reply = oneshot::Sender<Result<Answer, String>>;

impl Plugin {
    pub(super) fn start(plan: Arc<PluginPlan>) -> Self {
        let shared = Arc::new(Shared {
            plan,
            state: watch::Sender::new(State::Starting),
            starts: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            next: AtomicU64::new(1),
            // Answers are only for plugins that ask for them.
            skips: [false, false, true].map(AtomicBool::new),
        });
        let (orders, queue) = mpsc::channel(QUEUE);
        let (end, ending) = watch::channel(false);
        let keeper = Keeper { shared: Arc::clone(&shared), orders: queue, ending };
        Self { shared, orders, end, task: Mutex::new(Some(tokio::spawn(keeper.run()))) }
    }

    pub(super) fn plan(&self) -> &PluginPlan {
        &self.shared.plan
    }

    pub(super) fn wants(&self, phase: Phase) -> bool {
        !self.shared.skips[phase as usize].load(Ordering::Relaxed)
    }

    /// Asks, and waits for the answer until the plan's time-out.
    pub(super) async fn ask(&self, line: impl FnOnce(u64) -> Vec<u8>) -> Result<Answer, String> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let line = line(id);
        if line.len() > LONGEST {
            return Err(format!("{} bytes are too many to ask it about", line.len()));
        }
        let (reply, answer) = oneshot::channel();
        let asking = async {
            let order = Order::Ask { id, line, reply };
            self.orders.send(order).await.map_err(|_| "it has ended".to_owned())?;
            answer.await.unwrap_or_else(|_| Err("it ended before it answered".to_owned()))
        };
        let patience = self.plan().timeout;
        match timeout(patience, asking).await {
            Ok(answer) => answer,
            Err(_) => {
                // A full queue has enough of these already.
                let _ = self.orders.try_send(Order::Late);
                Err(format!("it did not answer within {} ms", patience.as_millis()))
            }
        }
    }

    /// Sends without waiting. A plugin that does not keep up misses messages.
    pub(super) fn tell(&self, line: impl FnOnce(u64) -> Vec<u8>) {
        let line = line(self.shared.next.fetch_add(1, Ordering::Relaxed));
        if line.len() > LONGEST || self.orders.try_send(Order::Tell(line)).is_err() {
            self.shared.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn status(&self) -> PluginStatus {
        PluginStatus {
            name: self.plan().name.clone(),
            required: self.plan().required,
            state: self.shared.state.borrow().clone(),
            starts: self.shared.starts.load(Ordering::Relaxed),
            missed: self.shared.missed.load(Ordering::Relaxed),
        }
    }

    /// Tells it to end.
    pub(super) fn tell_to_end(&self) {
        self.end.send_replace(true);
    }

    /// Waits until it is gone.
    pub(super) async fn ended(&self) {
        if let Some(task) = self.take_task() {
            let _ = task.await;
        }
    }

    pub(super) fn take_task(&self) -> Option<JoinHandle<()>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until it runs, or is known not to.
    pub(super) async fn settled(&self) -> State {
        self.until(|state| *state != State::Starting).await
    }

    /// Waits for a state.
    pub(super) async fn until(&self, is_so: impl FnMut(&State) -> bool) -> State {
        let mut state = self.shared.state.subscribe();
        let reached = state.wait_for(is_so).await.map(|it| it.clone());
        reached.expect("the sender is with us")
    }
}

/// The task that keeps one plugin running.
struct Keeper {
    shared: Arc<Shared>,
    orders: mpsc::Receiver<Order>,
    ending: watch::Receiver<bool>,
}

impl Keeper {
    async fn run(mut self) {
        let mut failures = 0;
        loop {
            self.shared.starts.fetch_add(1, Ordering::Relaxed);
            let opened = tokio::select! {
                opened = Session::open(&self.shared.plan) => opened,
                () = told(&mut self.ending) => return,
            };
            let why = match opened {
                Ok((session, hello)) => {
                    for phase in [Phase::Request, Phase::Response, Phase::Answer] {
                        let wants = match &hello.flows {
                            Some(flows) => flows.contains(&phase),
                            None => phase != Phase::Answer,
                        };
                        let skips = !wants;
                        self.shared.skips[phase as usize].store(skips, Ordering::Relaxed);
                    }
                    tracing::debug!(target: "trunkline::plugin", plugin = self.shared.plan.name,
                        version = hello.version, "`{}` is running.", self.shared.plan.name);
                    self.shared.state.send_replace(State::Running);
                    let began = Instant::now();
                    let Some(why) = self.serve(session).await else { return };
                    if began.elapsed() >= STEADY {
                        failures = 0;
                    }
                    why
                }
                Err(why) => why,
            };
            failures += 1;
            if !self.pause(pause(failures), &why).await {
                return;
            }
        }
    }

    /// Relays questions and answers. Returns why it ended; `None` if it was told to.
    async fn serve(&mut self, mut session: Session) -> Option<String> {
        let mut pending: HashMap<u64, Reply> = HashMap::new();
        let (mut unanswered, mut sweep_at) = (0, QUEUE);
        loop {
            let event = tokio::select! {
                event = session.next() => event,
                order = self.orders.recv(), if session.unsent() < MOST_UNSENT => {
                    let Some(order) = order else {
                        session.end().await;
                        return None;
                    };
                    match order {
                        Order::Tell(line) => session.send(&line),
                        Order::Ask { reply, .. } if reply.is_closed() => {}
                        Order::Ask { id, line, reply } => {
                            session.send(&line);
                            // Replies whose callers are gone are dropped.
                            if pending.len() >= sweep_at {
                                pending.retain(|_, reply| !reply.is_closed());
                                sweep_at = QUEUE.max(2 * pending.len());
                            }
                            pending.insert(id, reply);
                        }
                        Order::Late => unanswered += 1,
                    }
                    if unanswered >= TOO_MANY_UNANSWERED {
                        return Some(format!("it let {unanswered} questions in a row go by"));
                    }
                    continue;
                }
                () = told(&mut self.ending) => {
                    // Pending messages to observers are sent first.
                    while let Ok(order) = self.orders.try_recv() {
                        if let Order::Tell(line) = order {
                            session.send(&line);
                        }
                    }
                    session.end().await;
                    return None;
                }
            };
            match event {
                session::Event::Answer(id, answer) => {
                    unanswered = 0;
                    if let Some(reply) = pending.remove(&id) {
                        let _ = reply.send(answer);
                    }
                }
                session::Event::Nonsense(why) => {
                    let name = &self.shared.plan.name;
                    tracing::warn!(target: "trunkline::plugin", plugin = name,
                        "`{name}` sent a line that is no answer: {why}.");
                }
                session::Event::Over => {
                    drop(pending);
                    return Some(session.last_words().await);
                }
            }
        }
    }

    /// Waits, failing all questions meanwhile. Returns whether to continue.
    async fn pause(&mut self, pause: Duration, why: &str) -> bool {
        let name = &self.shared.plan.name;
        tracing::warn!(target: "trunkline::plugin", plugin = name,
            "`{name}` is not running: {why}. It is started again in {} ms.", pause.as_millis());
        self.shared.state.send_replace(State::Down { last_error: why.to_owned() });
        let over = sleep(pause);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => break,
                order = self.orders.recv() => match order {
                    None => return false,
                    Some(Order::Ask { reply, .. }) => {
                        let _ = reply.send(Err(format!("it is not running: {why}")));
                    }
                    Some(Order::Tell(_)) => {
                        self.shared.missed.fetch_add(1, Ordering::Relaxed);
                    }
                    Some(Order::Late) => {}
                },
                () = told(&mut self.ending) => return false,
            }
        }
        self.shared.state.send_replace(State::Starting);
        true
    }
}

/// Completes when the plugin has to end, or its owner is gone.
async fn told(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|it| *it).await;
}

/// The backoff after so many failures in a row.
fn pause(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << (failures.saturating_sub(1)).min(16)).min(LONGEST_PAUSE)
}

/// The bound on questions waiting to be sent.
const QUEUE: usize = 1_024;
/// The longest message, in either direction.
const LONGEST: usize = trunkline_wire::frame::DEFAULT_LIMIT;
/// High-water mark: with more unsent bytes, no question is taken from the queue.
const MOST_UNSENT: usize = 1 << 20;
/// After so many missing answers in a row a plugin counts as hung.
const TOO_MANY_UNANSWERED: u32 = 5;
/// The first pause; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A plugin that ran this long resets the backoff.
const STEADY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let pauses: Vec<_> = [1, 2, 3, 9, 10, 1_000].map(|it| pause(it).as_millis()).into();
        assert_eq!(pauses, [100, 200, 400, 25_600, 30_000, 30_000]);
    }
}
