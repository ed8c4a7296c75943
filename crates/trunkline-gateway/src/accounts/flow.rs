//! A login across several requests of a browser: an [`OAuth`] that runs in a task, with channels for redirects
//! and returning queries.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use trunkline_auth::client::browser::{Browser, Prepared, Visit};
use trunkline_auth::client::{AuthError, OAuth};
use trunkline_auth::fetch::Pending;

/// A login in progress. Dropping it ends the login.
pub(super) struct Flow {
    pub(super) oauth: Arc<OAuth>,
    queries: mpsc::Sender<String>,
    steps: mpsc::Receiver<FlowStep>,
    task: JoinHandle<()>,
}

/// What a login needs next.
pub(super) enum FlowStep {
    /// Redirect the browser there.
    Redirect(String),
    /// The login has ended.
    Done(Result<(), AuthError>),
}

impl Flow {
    /// Begins a login that returns to `redirect_uri`.
    pub(super) fn begin(oauth: OAuth, redirect_uri: String) -> Self {
        let (queries, heard) = mpsc::channel(1);
        let (tell, steps) = mpsc::channel(1);
        let heard = Arc::new(Mutex::new(heard));
        let browser = Away { redirect_uri, tell: tell.clone(), heard };
        let oauth = Arc::new(oauth.browser(Arc::new(browser)));
        let login = Arc::clone(&oauth);
        let task = tokio::spawn(async move {
            let outcome = login.login().await.map(drop);
            let _ = tell.send(FlowStep::Done(outcome)).await;
        });
        Self { oauth, queries, steps, task }
    }

    /// What it needs next.
    pub(super) async fn next(&mut self) -> FlowStep {
        let ended = || AuthError::Unreachable("The login ended before it was complete.".to_owned());
        self.steps.recv().await.unwrap_or_else(|| FlowStep::Done(Err(ended())))
    }

    /// The browser returned with this query.
    pub(super) async fn returned(&mut self, query: String) -> FlowStep {
        // If the login has ended meanwhile, `next` says so.
        let _ = self.queries.send(query).await;
        self.next().await
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A browser that other requests belong to.
struct Away {
    redirect_uri: String,
    tell: mpsc::Sender<FlowStep>,
    heard: Arc<Mutex<mpsc::Receiver<String>>>,
}

impl Browser for Away {
    fn prepare<'a>(&'a self, uris: &'a [String]) -> Prepared<'a> {
        Box::pin(async move {
            if !uris.is_empty() && !uris.contains(&self.redirect_uri) {
                return Err("The client was registered for another address.".to_owned());
            }
            let (tell, heard) = (self.tell.clone(), Arc::clone(&self.heard));
            let uri = self.redirect_uri.clone();
            Ok(Box::new(Trip { uri, tell, heard }) as Box<dyn Visit>)
        })
    }
}

struct Trip {
    uri: String,
    tell: mpsc::Sender<FlowStep>,
    heard: Arc<Mutex<mpsc::Receiver<String>>>,
}

impl Visit for Trip {
    fn redirect_uri(&self) -> &str {
        &self.uri
    }

    fn go(self: Box<Self>, url: String) -> Pending<'static, Result<String, String>> {
        Box::pin(async move {
            let gone = || "The browser did not come back.".to_owned();
            self.tell.send(FlowStep::Redirect(url)).await.map_err(|_| gone())?;
            self.heard.lock().await.recv().await.ok_or_else(gone)
        })
    }
}
