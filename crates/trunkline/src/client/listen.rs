//! Listening for changes: `subscriptions/listen` in 2026-07-28, subscriptions and notifications
//! before; one [`Listener`] for both.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use trunkline_proto::subscribe::{self, wants};
use trunkline_proto::{Change, PeerNotification};
use trunkline_transport::conversation_handle::Request;
use trunkline_wire::method::Method;
use trunkline_wire::model::{
    AcknowledgedParams, ElicitationCompleteParams, ListenParams, ResourceUpdatedParams,
    ServerCapabilities, SubscribeParams, SubscriptionFilter, Task,
};
use trunkline_wire::revision::Era;

use super::call::Caller;
use super::error::CallError;

/// Changes, in the order of the server's notifications. Dropping it ends the subscription.
///
/// ```
/// # use trunkline::{Change, Client, Server, model::SubscriptionFilter, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = Server::builder("clock", "1.0.0").tools_later().build();
/// # let client = Client::in_memory(&server).await?;
/// let mut listener = client.listen(SubscriptionFilter::new().tools_list_changed(true)).await?;
/// server.put_tool(tool("now", async || "noon"))?;
/// server.remove_tool("now");
/// assert_eq!(listener.next().await, Some(Change::Tools));
/// assert_eq!(listener.next().await, Some(Change::Tools));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Listener {
    inbox: Arc<Inbox>,
    honoured: SubscriptionFilter,
    held: Held,
}

/// What keeps a subscription open.
enum Held {
    /// A `subscriptions/listen` request.
    Request(JoinHandle<()>),
    /// `resources/subscribe` requests: one per resource, however many listeners.
    Session(Option<Caller>),
}

impl Listener {
    pub(super) async fn open(
        caller: &Caller,
        filter: SubscriptionFilter,
    ) -> Result<Self, CallError> {
        match caller.revision().era() {
            Era::Stateful => Self::open_session(caller, filter).await,
            Era::Stateless => Self::open_request(caller, filter).await,
        }
    }

    /// The part of the filter that the server accepted.
    ///
    /// ```
    /// # use trunkline::{Client, Server, model::SubscriptionFilter};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let client = Client::in_memory(&Server::builder("empty", "1.0.0").tools_later().build()).await?;
    /// let filter = SubscriptionFilter::new().tools_list_changed(true).prompts_list_changed(true);
    /// let listener = client.listen(filter).await?;
    /// let honoured = listener.honoured();
    /// assert!(honoured.tools_list_changed && !honoured.prompts_list_changed, "it has no prompts");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn honoured(&self) -> &SubscriptionFilter {
        &self.honoured
    }

    /// The next change; `None` once the server or the connection has ended.
    ///
    /// ```
    /// # use trunkline::{Change, Client, Server, model::SubscriptionFilter};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tools_later().build();
    /// # let client = Client::in_memory(&server).await?;
    /// let mut listener = client.listen(SubscriptionFilter::new().tools_list_changed(true)).await?;
    /// server.changed(Change::Tools).await;
    /// assert_eq!(listener.next().await, Some(Change::Tools));
    /// client.close().await;
    /// assert_eq!(listener.next().await, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn next(&mut self) -> Option<Change> {
        self.inbox.next().await
    }

    /// Ends the subscription and waits until the server has been told so.
    pub async fn close(mut self) {
        if let Held::Session(caller) = &mut self.held
            && let Some(caller) = caller.take()
        {
            unsubscribe(caller, self.honoured.resource_subscriptions.clone()).await;
        }
    }

    /// Discards changes from here on: only the responder receives them.
    pub(super) fn mute(&self) {
        self.inbox.lock().is_muted = true;
    }

    async fn open_session(caller: &Caller, filter: SubscriptionFilter) -> Result<Self, CallError> {
        let mut honoured = honoured(filter, &caller.opened.capabilities);
        let inbox = Arc::new(Inbox::default());
        let hub = &caller.shared.hub;
        hub.add(&inbox, &honoured);
        let uris = std::mem::take(&mut honoured.resource_subscriptions);
        // However this ends, dropping the listener unsubscribes what was subscribed by then.
        let mut listener = Self { inbox, honoured, held: Held::Session(Some(caller.clone())) };
        for uri in uris {
            let is_first = hub.retain(&uri);
            listener.honoured.resource_subscriptions.push(uri.clone());
            if !is_first {
                continue;
            }
            let mut ask = caller.ask(Method::ResourcesSubscribe, SubscribeParams::new(&uri));
            if let Err(error) = ask.send().await {
                hub.release(&uri);
                listener.honoured.resource_subscriptions.pop();
                return Err(error);
            }
        }
        Ok(listener)
    }

    async fn open_request(caller: &Caller, filter: SubscriptionFilter) -> Result<Self, CallError> {
        let inbox = Arc::new(Inbox::default());
        let (agree, agreed) = oneshot::channel();
        let pump = pump(caller.clone(), filter, Arc::clone(&inbox), agree);
        let held = Held::Request(tokio::spawn(pump));
        let mut listener = Self { inbox, honoured: SubscriptionFilter::default(), held };
        // The subscription may be silent for days; its acknowledgement has a deadline.
        let agreed = timeout(caller.shared.timing.idle, agreed).await;
        let agreed = agreed.map_err(|_| CallError::TimedOut)?;
        listener.honoured = agreed.unwrap_or(Err(CallError::Closed))?;
        Ok(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        match &mut self.held {
            // Dropping the request cancels it on the wire.
            Held::Request(pump) => pump.abort(),
            Held::Session(caller) => {
                let uris = std::mem::take(&mut self.honoured.resource_subscriptions);
                if let (Some(caller), Ok(runtime)) = (caller.take(), Handle::try_current()) {
                    runtime.spawn(unsubscribe(caller, uris));
                }
            }
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("honoured", &self.honoured).finish_non_exhaustive()
    }
}

/// Keeps a `subscriptions/listen` request open and puts its changes into the inbox.
async fn pump(
    caller: Caller,
    filter: SubscriptionFilter,
    inbox: Arc<Inbox>,
    agree: oneshot::Sender<Result<SubscriptionFilter, CallError>>,
) {
    let mut agree = Some(agree);
    let params = caller.ask(Method::SubscriptionsListen, ListenParams::new(filter)).params;
    let (heard, mut hears) = mpsc::channel(QUEUE);
    let mut request = Request::new(Method::SubscriptionsListen, params.unwrap_or_default());
    request.heard = Some(heard);
    let mut take = |heard: PeerNotification| {
        if heard.method == Method::SubscriptionsAcknowledged {
            let honoured = heard.params.to::<AcknowledgedParams>().unwrap_or_default();
            if let Some(agree) = agree.take() {
                let _ = agree.send(Ok(honoured.notifications));
            }
        } else if let Some(change) = change_of(&heard) {
            // Before the listener hears of it, so that its next request bypasses the stale result.
            caller.shared.cache.forget(&change);
            caller.shared.asked.changed(&change);
            inbox.push(change);
        }
    };
    let outcome = {
        let mut answer = pin!(caller.handle.ask(request));
        poll_fn(|cx| {
            while let Poll::Ready(Some(heard)) = hears.poll_recv(cx) {
                take(heard);
            }
            let outcome = answer.as_mut().poll(cx);
            if outcome.is_ready() {
                while let Ok(heard) = hears.try_recv() {
                    take(heard);
                }
            }
            outcome
        })
        .await
    };
    inbox.close();
    if let Some(agree) = agree {
        let error = outcome.err().map_or_else(
            || CallError::Invalid("a subscription that was never acknowledged.".to_owned()),
            CallError::from,
        );
        let _ = agree.send(Err(error));
    }
}

async fn unsubscribe(caller: Caller, uris: Vec<String>) {
    for uri in uris {
        if caller.shared.hub.release(&uri) {
            let mut ask = caller.ask(Method::ResourcesUnsubscribe, SubscribeParams::new(uri));
            // The server may have forgotten the subscription already.
            let _ = ask.send().await;
        }
    }
}

/// The part of a filter that a stateful server can serve.
fn honoured(filter: SubscriptionFilter, caps: &ServerCapabilities) -> SubscriptionFilter {
    // 2025-11-25 declares tasks by a capability of its own.
    let tasks = caps.tasks.is_some().then(|| filter.task_ids.clone());
    let mut honoured = subscribe::honoured(filter, caps);
    if let Some(tasks) = tasks {
        honoured.task_ids = tasks;
    }
    honoured
}

/// The change that a notification announces, if any.
pub(super) fn change_of(heard: &PeerNotification) -> Option<Change> {
    Some(match heard.method {
        Method::ToolsListChanged => Change::Tools,
        Method::PromptsListChanged => Change::Prompts,
        Method::ResourcesListChanged => Change::Resources,
        Method::ResourcesUpdated => {
            Change::Resource(heard.params.to::<ResourceUpdatedParams>().ok()?.uri)
        }
        Method::TasksStatus | Method::Tasks => {
            let raw = heard.params.to_json();
            Change::Task(Box::new(Task::read(&raw).ok()?), raw)
        }
        Method::ElicitationComplete => {
            let params = heard.params.to::<ElicitationCompleteParams>().ok()?;
            Change::ElicitationComplete(params.elicitation_id)
        }
        _ => return None,
    })
}

/// The listeners of a stateful connection, and a reference count per resource.
#[derive(Default)]
pub(super) struct Hub(Mutex<HubState>);

#[derive(Default)]
struct HubState {
    listeners: Vec<(Weak<Inbox>, SubscriptionFilter)>,
    wanted: BTreeMap<String, usize>,
    is_closed: bool,
}

impl Hub {
    pub(super) fn tell(&self, change: &Change) {
        for (inbox, filter) in &self.lock().listeners {
            if wants(filter, change)
                && let Some(inbox) = inbox.upgrade()
            {
                inbox.push(change.clone());
            }
        }
    }

    /// The connection has ended.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state
            .listeners
            .drain(..)
            .filter_map(|(inbox, _)| inbox.upgrade())
            .for_each(|it| it.close());
    }

    fn add(&self, inbox: &Arc<Inbox>, filter: &SubscriptionFilter) {
        let mut state = self.lock();
        if state.is_closed {
            return inbox.close();
        }
        state.listeners.retain(|(inbox, _)| inbox.strong_count() > 0);
        state.listeners.push((Arc::downgrade(inbox), filter.clone()));
    }

    /// Adds a reference to `uri`. Returns whether it is the first.
    fn retain(&self, uri: &str) -> bool {
        let mut state = self.lock();
        let count = state.wanted.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Removes a reference to `uri`. Returns whether it was the last.
    fn release(&self, uri: &str) -> bool {
        let mut state = self.lock();
        let Some(count) = state.wanted.get_mut(uri) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            state.wanted.remove(uri);
        }
        is_last
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue of changes for one listener.
#[derive(Default)]
struct Inbox {
    state: Mutex<InboxState>,
    news: Notify,
}

#[derive(Default)]
struct InboxState {
    queue: VecDeque<Change>,
    is_closed: bool,
    is_muted: bool,
}

impl Inbox {
    /// Queues a change. If the queue is full, a change is merged with an equal one that waits; only
    /// if there is none, the oldest is dropped.
    fn push(&self, change: Change) {
        let mut state = self.lock();
        if state.is_muted || state.is_closed {
            return;
        }
        if state.queue.len() >= QUEUE {
            if state.queue.contains(&change) {
                return;
            }
            state.queue.pop_front();
        }
        state.queue.push_back(change);
        drop(state);
        self.news.notify_one();
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.news.notify_one();
    }

    async fn next(&self) -> Option<Change> {
        loop {
            {
                let mut state = self.lock();
                if let Some(change) = state.queue.pop_front() {
                    return Some(change);
                }
                if state.is_closed {
                    return None;
                }
            }
            self.news.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The capacity of a listener's queue.
const QUEUE: usize = 1024;
