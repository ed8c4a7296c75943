//! A login at any URL, one request at a time: what the client asks, what it is told, and what it makes of it.
//!
//! The client is the one that the gateway and the binary log in with. Its requests wait here until the operator lets
//! each of them go. Tokens stay in memory, are never shown, and are forgotten at the end.

mod shown;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use trunkline_auth::client::{OAuth, Step};
use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};
use trunkline_auth::tag::random_name;
use trunkline_transport::auth::{HttpFetch, Loopback, MemoryVault};

use shown::{Progress, challenges};

/// The logins that operators step through.
#[derive(Default)]
pub(crate) struct LoginSteps(Mutex<Vec<(String, Arc<Stepper>)>>);

/// One login.
struct Stepper {
    progress: Mutex<Progress>,
    changed: Notify,
    /// How many requests may go.
    permits: Semaphore,
    task: Mutex<Option<AbortHandle>>,
}

impl LoginSteps {
    /// Begins a login, and shows its first request, which waits.
    pub(crate) async fn begin(&self, url: &str) -> Value {
        let (id, stepper) = (random_name(), Arc::new(Stepper::new()));
        let task = tokio::spawn(log_in(Arc::clone(&stepper), url.to_owned())).abort_handle();
        *stepper.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        {
            let mut all = self.lock();
            if all.len() >= MOST {
                // Dropped outside of its own task: the oldest ends.
                all.remove(0).1.end();
            }
            all.push((id.clone(), Arc::clone(&stepper)));
        }
        stepper.rest().await;
        stepper.show(&id)
    }

    /// Lets the next request go, and shows what came of it; `None` if there is no such login.
    pub(crate) async fn step(&self, id: &str) -> Option<Value> {
        let found = self.lock().iter().find(|(it, _)| it == id).map(|it| Arc::clone(&it.1));
        let stepper = found?;
        if stepper.progress().go() {
            stepper.permits.add_permits(1);
        }
        stepper.rest().await;
        Some(stepper.show(id))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Arc<Stepper>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LoginSteps {
    fn drop(&mut self) {
        self.lock().iter().for_each(|(_, it)| it.end());
    }
}

impl Stepper {
    fn new() -> Self {
        let progress = Mutex::new(Progress::default());
        let (changed, permits) = (Notify::new(), Semaphore::new(0));
        Self { progress, changed, permits, task: Mutex::default() }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, with: impl FnOnce(&mut Progress)) {
        with(&mut self.progress());
        self.changed.notify_waiters();
    }

    /// Waits until the operator is needed, but no longer than a browser waits for an answer.
    async fn rest(&self) {
        let resting = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                // Enabled before the check, so that no change is lost in between.
                changed.as_mut().enable();
                if self.progress().is_at_rest() {
                    return;
                }
                changed.await;
            }
        };
        let _ = timeout(PATIENCE, resting).await;
    }

    fn show(&self, id: &str) -> Value {
        let mut told = self.progress().show();
        told["id"] = json!(id);
        told
    }

    fn end(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        task.into_iter().for_each(|it| it.abort());
    }
}

async fn log_in(stepper: Arc<Stepper>, url: String) {
    let fetch = Arc::new(SteppingFetch {
        stepper: Arc::clone(&stepper),
        inner: HttpFetch::for_server(&url),
    });
    let steps = timeout(LONGEST, async {
        // What the server says to a client without a token is where a real login begins.
        let refused = fetch.fetch(Ask::json(&url, HELLO)).await;
        let challenges = match refused {
            Ok(answer) if answer.is_ok() => {
                return Ok("The server lets everybody in: no login is needed.".to_owned());
            }
            Ok(answer) => challenges(&answer),
            Err(error) => return Err(error.to_string()),
        };
        let (pages, decisions) = (Arc::clone(&stepper), Arc::clone(&stepper));
        let browser =
            Loopback::new().without_opening().tell(move |page| pages.change(|it| it.page(page)));
        let oauth = OAuth::new(&url)
            .fetch(Arc::clone(&fetch) as Arc<dyn Fetch>)
            .vault(Arc::new(MemoryVault::new()))
            .browser(Arc::new(browser))
            .progress(move |step: Step| decisions.change(|it| it.decided(&step)));
        match oauth.login_after(&challenges).await {
            Ok(login) => {
                let who = login.subject.unwrap_or_else(|| "somebody".to_owned());
                let scopes = login.scopes.join(" ");
                Ok(format!(
                    "Logged in as `{who}` at `{}` with the scopes `{scopes}`.",
                    login.issuer
                ))
            }
            Err(error) => Err(error.to_string()),
        }
    });
    let end = steps.await.unwrap_or_else(|_| Err("Nobody went on with it.".to_owned()));
    stepper.change(|it| it.end(end));
}

/// Makes each request when the operator lets it go.
struct SteppingFetch {
    stepper: Arc<Stepper>,
    inner: HttpFetch,
}

impl Fetch for SteppingFetch {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        Box::pin(async move {
            self.stepper.change(|it| it.asks(&ask));
            if let Ok(permit) = self.stepper.permits.acquire().await {
                permit.forget();
            }
            let answer = self.inner.fetch(ask).await;
            self.stepper.change(|it| it.answered(&answer));
            answer
        })
    }

    fn now(&self) -> SystemTime {
        self.inner.now()
    }
}

/// What a client says first.
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"trunkline","version":"1"}}}"#;
/// How long an operator waits for a step, and a login for its operator.
const PATIENCE: Duration = Duration::from_secs(25);
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// The logins at once.
const MOST: usize = 4;
