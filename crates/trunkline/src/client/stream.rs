//! A call → a stream of its progress and its result.

use std::collections::VecDeque;
use std::fmt;
use std::future::{IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;
use trunkline_wire::model::Progress;

use super::call::{Call, Running};
use super::error::CallError;

/// The events of a call, in order: any number of progress reports, then the result.
///
/// ```
/// # use trunkline::{Client, client::{CallError, Event}};
/// # async fn example(client: &Client) -> Result<(), CallError> {
/// let mut call = client.call::<String>("render", ()).stream();
/// while let Some(event) = call.next().await {
///     match event {
///         Event::Progress(step) => println!("{} of {:?}", step.progress, step.total),
///         Event::Done(result) => println!("{}", result?),
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// The call is sent when the stream is first polled. Dropping the stream before the end cancels the
/// call on the wire.
#[must_use = "a call is made when its stream is looked at"]
pub struct CallStream<T> {
    /// `None` once the call has its outcome.
    running: Option<Running<T>>,
    steps: Arc<Mutex<VecDeque<Progress>>>,
    outcome: Option<Result<T, CallError>>,
}

/// An event of a call.
///
/// ```
/// use trunkline::{Client, Context, Server, client::Event, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let save = async |cx: Context| cx.progress(1.0, 2.0).await;
/// let server = Server::builder("files", "1.0.0").tool(tool("save", save)).build();
/// let client = Client::in_memory(&server).await?;
/// let mut events = client.call_tool("save", ()).stream();
/// assert!(matches!(events.next().await, Some(Event::Progress(step)) if step.progress == 1.0));
/// assert!(matches!(events.next().await, Some(Event::Done(Ok(_)))));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Event<T> {
    /// It is this far.
    Progress(Progress),
    /// It is over.
    Done(Result<T, CallError>),
}

impl<T: 'static> Call<T> {
    /// This call as a stream of its progress and its result. It replaces a closure given to
    /// [`Self::on_progress`].
    pub fn stream(self) -> CallStream<T> {
        let steps = Arc::new(Mutex::new(VecDeque::new()));
        let heard = Arc::clone(&steps);
        let call = self.on_progress(move |step| {
            heard.lock().unwrap_or_else(PoisonError::into_inner).push_back(step);
        });
        CallStream { running: Some(call.into_future()), steps, outcome: None }
    }
}

impl<T> CallStream<T> {
    /// The next event; `None` after the result.
    pub async fn next(&mut self) -> Option<Event<T>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        if let Some(step) = self.step() {
            return Poll::Ready(Some(Event::Progress(step)));
        }
        if let Some(running) = &mut self.running
            && let Poll::Ready(outcome) = running.as_mut().poll(cx)
        {
            self.running = None;
            self.outcome = Some(outcome);
        }
        // Progress that arrived before the outcome comes first.
        if let Some(step) = self.step() {
            return Poll::Ready(Some(Event::Progress(step)));
        }
        match self.outcome.take() {
            Some(outcome) => Poll::Ready(Some(Event::Done(outcome))),
            None if self.running.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    fn step(&self) -> Option<Progress> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl<T> Unpin for CallStream<T> {}

impl<T> Stream for CallStream<T> {
    type Item = Event<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        self.get_mut().poll(cx)
    }
}

impl<T> fmt::Debug for CallStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallStream").field("is_over", &self.running.is_none()).finish()
    }
}
