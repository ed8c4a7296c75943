//! Clients of every kind that call while something happens to the replicas.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use trunkline::{Client, Revision};

use crate::client::{Caller, Ended, answered, judge, pause};
use crate::figures::{Figures, Ledger, Told};
use crate::stage::{Diary, PRINCIPALS, Stage};

/// Clients that call until they are told to stop.
pub(crate) struct Load {
    phase: Arc<Mutex<Phase>>,
    clients: JoinSet<Worked>,
}

/// What a client has to tell at its end.
struct Worked {
    figures: Figures,
    ledger: Ledger,
    has_session: bool,
}

/// What the clients count their calls under.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Under a name; without one, as they are.
    Named(&'static str),
    Over,
}

/// What a client does over and over.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// Short calls, over HTTP as it comes.
    Calls,
    /// Calls that tell their progress, in streams that are resumed.
    Streams,
    /// Calls that ask.
    Asks,
    /// Short calls by the SDK's own client.
    Sdk,
}

impl Load {
    /// Opens all clients, and lets them begin.
    pub(crate) async fn start(stage: &Stage, clients: usize) -> Self {
        let phase = Arc::new(Mutex::new(Phase::Named("")));
        let balancer = stage.balancer.address;
        let mut load = Self { phase: Arc::clone(&phase), clients: JoinSet::new() };
        let mut opened = JoinSet::new();
        for number in 0..clients {
            let diary = stage.diary.clone();
            opened.spawn(Worker::open(number, balancer, Arc::clone(&phase), diary));
        }
        for worker in opened.join_all().await {
            load.clients.spawn(worker.work());
        }
        load
    }

    /// Counts what follows under a name.
    pub(crate) fn phase(&self, name: &'static str) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = Phase::Named(name);
    }

    /// Ends the load once every client has had one more answer, and compares what they were told with what was
    /// done.
    pub(crate) async fn stop(self, stage: &mut Stage) -> Figures {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = Phase::Over;
        let (mut figures, mut ledger) = (Figures::default(), Ledger::default());
        let clients = self.clients.join_all().await;
        let carried_out = stage.carried_out();
        for worked in clients {
            if worked.has_session {
                figures.count("moves of sessions", worked.ledger.moves(&carried_out));
            }
            figures.merge(&worked.figures);
            ledger.merge(worked.ledger);
        }
        ledger.compare(&stage.executed(), &mut figures);
        stage.tell(&mut figures).await;
        figures
    }
}

struct Worker {
    caller: Caller,
    sdk: Option<Client>,
    habit: Habit,
    phase: Arc<Mutex<Phase>>,
    diary: Diary,
    ledger: Ledger,
}

impl Worker {
    async fn open(
        number: usize,
        balancer: SocketAddr,
        phase: Arc<Mutex<Phase>>,
        diary: Diary,
    ) -> Self {
        let habit = HABITS[number % HABITS.len()];
        let revisions = match habit {
            // Streams of 2024-11-05 and of 2026-07-28 cannot be resumed.
            Habit::Streams => &REVISIONS[1..4],
            _ => &REVISIONS[..],
        };
        let revision = revisions[number / HABITS.len() % revisions.len()];
        let (_, token) = PRINCIPALS[number % PRINCIPALS.len()];
        let caller = Caller::new(format!("client-{number}"), token, revision, &[balancer]);
        let (caller, sdk) = match habit {
            Habit::Sdk => {
                let builder = Client::builder("load", "1.0.0").protocol(revision);
                let builder = builder.header("Authorization", format!("Bearer {token}"));
                let client = builder.connect_http(format!("http://{balancer}/mcp")).await;
                (caller, Some(client.expect("the gateway lets the client in")))
            }
            _ => (caller.open().await, None),
        };
        Self { caller, sdk, habit, phase, diary, ledger: Ledger::default() }
    }

    async fn work(mut self) -> Worked {
        let mut answered = Instant::now();
        loop {
            let phase = *self.phase.lock().unwrap_or_else(PoisonError::into_inner);
            let Phase::Named(phase) = phase else { break };
            let text = self.caller.unique();
            let since = Instant::now();
            let (told, wrong) = match self.habit {
                Habit::Sdk => self.call_by_sdk(&text).await,
                _ => self.call(&text).await,
            };
            let mut count = |what: &str| match phase {
                "" => self.caller.figures.add(what),
                phase => self.caller.figures.add(format!("{what}, {phase}")),
            };
            match &wrong {
                Some(wrong) if FINAL.contains(&&**wrong) => self.caller.figures.add(wrong),
                Some(wrong) => count(wrong),
                None => {
                    count("answers");
                    let gap = answered.elapsed().as_millis() as u64;
                    self.caller.figures.count("ms of the longest wait for an answer", gap);
                    answered = Instant::now();
                }
            }
            if let Some(wrong) = &wrong {
                let (habit, revision) = (self.habit, self.caller.guest.revision);
                let took = since.elapsed().as_millis();
                self.diary.note(&format!("{text} ({habit:?}, {revision}, {took} ms): {wrong}"));
            }
            self.ledger.note(text, told);
            if wrong.as_deref() == Some("lost sessions") {
                return self.worked();
            }
            pause_between(wrong.is_some()).await;
        }
        self.say_goodbye().await;
        self.worked()
    }

    fn worked(self) -> Worked {
        let has_session = !self.caller.is_stateless();
        Worked { figures: self.caller.figures, ledger: self.ledger, has_session }
    }

    async fn call(&mut self, text: &str) -> (Told, Option<String>) {
        let (tool, arguments) = match self.habit {
            Habit::Calls | Habit::Sdk => ("old.echo", json!({ "text": text })),
            Habit::Streams => ("new.progress", json!({ "steps": 5, "ms": 30, "text": text })),
            Habit::Asks => ("asks.sample", json!({ "text": text })),
        };
        let ended = self.caller.call(tool, arguments, text).await;
        let (told, wrong) = judge(&ended, text);
        if let (Habit::Streams, Told::Done) = (self.habit, told)
            && !self.caller.progress.is_empty()
            && !self.caller.progress.is_sorted()
        {
            self.caller.figures.add("doubled events");
        }
        if let Ended::Status(status, why) = &ended {
            let why: String = why.chars().take(60).collect();
            self.caller.figures.add(format!("(HTTP {status}: {why})"));
        }
        (told, wrong)
    }

    async fn call_by_sdk(&mut self, text: &str) -> (Told, Option<String>) {
        self.caller.figures.add("calls");
        let client = self.sdk.as_ref().expect("this habit has a client");
        match client.call_tool("old.echo", json!({ "text": text })).await {
            Ok(result) if result.as_text() == text => (Told::Done, None),
            Ok(_) => (Told::Unknown, Some("crossed answers".to_owned())),
            Err(error) => {
                let shown: String = error.to_string().chars().take(80).collect();
                (Told::Unknown, Some(format!("error of the SDK: {shown}")))
            }
        }
    }

    /// The session is still there at the end: one more call is answered.
    async fn say_goodbye(&mut self) {
        let since = Instant::now();
        let is_served = match &self.sdk {
            None => answered(&mut self.caller, "old.echo", GOODBYE).await.is_some(),
            Some(client) => loop {
                match client.call_tool("old.echo", json!({})).await {
                    Ok(_) => break true,
                    Err(_) if since.elapsed() > GOODBYE => break false,
                    Err(_) => pause().await,
                }
            },
        };
        if !is_served {
            self.caller.figures.add("sessions not served at the end");
        }
    }
}

async fn pause_between(is_refused: bool) {
    match is_refused {
        true => pause().await,
        // the sleep is the subject: a client that thinks between its calls
        false => tokio::time::sleep(Duration::from_millis(20)).await,
    }
}

/// What counts the same in every phase.
const FINAL: &[&str] = &["crossed answers", "lost sessions", "unanswered calls"];
const HABITS: [Habit; 4] = [Habit::Calls, Habit::Streams, Habit::Asks, Habit::Sdk];
/// Every revision, the oldest first.
pub(crate) const REVISIONS: [Revision; 5] = [
    Revision::V2024_11_05,
    Revision::V2025_03_26,
    Revision::V2025_06_18,
    Revision::V2025_11_25,
    Revision::V2026_07_28,
];
/// Within this time after the last trouble every session is served again.
const GOODBYE: Duration = Duration::from_secs(15);
