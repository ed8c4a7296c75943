//! Channels of Redis → the listeners of this process: one connection for all of them, made again when it was lost.

#![expect(
    clippy::disallowed_methods,
    reason = "Redis is another machine: one task listens to it, and waits before it connects again."
)]

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{Msg, RedisError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::link::Link;
use crate::{Bounds, Feed, Listener, StoreError};

/// Asks the task below for a listener.
pub(super) struct Subscriber {
    asks: mpsc::Sender<Ask>,
    /// The one task; it is stopped when this is dropped.
    _task: JoinSet<()>,
}

struct Ask {
    channel: String,
    answer: oneshot::Sender<Result<Listener, StoreError>>,
}

impl Subscriber {
    /// Starts the task.
    pub(super) fn start(link: Arc<Link>, bounds: Bounds) -> Self {
        let (asks, asked) = mpsc::channel(64);
        let mut task = JoinSet::new();
        task.spawn(serve(link, bounds, asked));
        Self { asks, _task: task }
    }

    pub(super) async fn listen(&self, channel: String) -> Result<Listener, StoreError> {
        let (answer, answered) = oneshot::channel();
        let gone = || StoreError::Unavailable("The store is being closed.".to_owned());
        self.asks.send(Ask { channel, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

/// Who listens to what.
struct Feeds {
    channels: BTreeMap<String, Vec<Feed>>,
    bounds: Bounds,
}

type Connected = (PubSubSink, PubSubStream);

async fn serve(link: Arc<Link>, bounds: Bounds, mut asked: mpsc::Receiver<Ask>) {
    let mut feeds = Feeds { channels: BTreeMap::new(), bounds };
    let mut connected: Option<Connected> = None;
    let mut pause = FIRST_PAUSE;
    let mut sweep = tokio::time::interval(SWEEP);
    loop {
        if connected.is_none() && !feeds.channels.is_empty() {
            match reconnect(&link, &mut feeds).await {
                Ok(connection) => {
                    connected = Some(connection);
                    pause = FIRST_PAUSE;
                }
                Err(()) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        let message = async {
            match &mut connected {
                Some((_, stream)) => next(stream).await,
                None if feeds.channels.is_empty() => std::future::pending().await,
                // Not connected: try again at once.
                None => None,
            }
        };
        tokio::select! {
            ask = asked.recv() => match ask {
                Some(ask) => admit(&link, &mut connected, &mut feeds, ask).await,
                None => return,
            },
            message = message => match message {
                Some(message) => feeds.push(&message),
                None => connected = None,
            },
            _ = sweep.tick() => {
                for channel in feeds.sweep() {
                    if let Some((sink, _)) = &mut connected
                        && sink.unsubscribe(&channel).await.is_err()
                    {
                        connected = None;
                    }
                }
            }
        }
    }
}

/// Subscribes to everything again. What was said meanwhile is lost, and each listener is told so.
async fn reconnect(link: &Link, feeds: &mut Feeds) -> Result<Connected, ()> {
    let (mut sink, stream) = link.subscriber().await.map_err(drop)?.split();
    feeds.sweep();
    for (channel, listeners) in &feeds.channels {
        sink.subscribe(channel).await.map_err(drop)?;
        listeners.iter().for_each(|feed| feed.lose(1));
    }
    Ok((sink, stream))
}

/// Answers one who wants to listen, after Redis has confirmed it.
async fn admit(link: &Link, connected: &mut Option<Connected>, feeds: &mut Feeds, ask: Ask) {
    let Ask { channel, answer } = ask;
    let listener = subscribe(link, connected, feeds, channel).await;
    let _ = answer.send(listener);
}

async fn subscribe(
    link: &Link,
    connected: &mut Option<Connected>,
    feeds: &mut Feeds,
    channel: String,
) -> Result<Listener, StoreError> {
    feeds.make_room()?;
    if connected.is_none() {
        let connection = link.subscriber().await.map_err(|error| link.unavailable(&error))?;
        *connected = Some(connection.split());
    }
    if let Some(connection) = connected
        && let Err(error) = catch_up(link, connection, feeds, &channel).await
    {
        *connected = None;
        return Err(error);
    }
    let (feed, listener) = Listener::new(feeds.bounds.queue);
    feeds.channels.entry(channel).or_default().push(feed);
    Ok(listener)
}

/// Subscribes, and reads on until a mark of ours comes back. What was said before it is not for the new listener: a node of
/// a cluster hears what others are told a little later.
async fn catch_up(
    link: &Link,
    (sink, stream): &mut Connected,
    feeds: &mut Feeds,
    channel: &str,
) -> Result<(), StoreError> {
    sink.subscribe(channel).await.map_err(|error| link.unavailable(&error))?;
    let mark = framed(MARK, &link.mark());
    link.publish(channel, &mark).await?;
    link.in_time(async {
        loop {
            match next(stream).await {
                Some(message) if message.get_payload_bytes() == mark => return Ok(()),
                Some(message) => feeds.push(&message),
                None => return Err(closed()),
            }
        }
    })
    .await
}

/// What goes over a channel: its kind, then its bytes.
pub(super) fn framed(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind], bytes].concat()
}

impl Feeds {
    fn push(&mut self, message: &Msg) {
        let Some(listeners) = self.channels.get_mut(message.get_channel_name()) else { return };
        let Some((&MESSAGE, bytes)) = message.get_payload_bytes().split_first() else { return };
        let bytes: Arc<[u8]> = bytes.into();
        listeners.retain(|feed| feed.push(bytes.clone()));
    }

    /// Forgets the listeners that left; the channels that nobody listens to any more.
    fn sweep(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        self.channels.retain(|channel, listeners| {
            listeners.retain(|feed| !feed.is_closed());
            if listeners.is_empty() {
                left.push(channel.clone());
            }
            !listeners.is_empty()
        });
        left
    }

    fn make_room(&self) -> Result<(), StoreError> {
        let open =
            |listeners: &Vec<Feed>| listeners.iter().filter(|feed| !feed.is_closed()).count();
        let most = self.bounds.listeners;
        match self.channels.values().map(open).sum::<usize>() {
            many if many < most => Ok(()),
            _ => Err(StoreError::Full { what: "listeners", most }),
        }
    }
}

fn closed() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()
}

async fn next(stream: &mut PubSubStream) -> Option<Msg> {
    std::future::poll_fn(|cx: &mut Context<'_>| -> Poll<Option<Msg>> {
        Pin::new(&mut *stream).poll_next(cx)
    })
    .await
}

/// A message to listeners.
pub(super) const MESSAGE: u8 = 0;
/// How far a new listener has to read; for nobody else.
const MARK: u8 = 1;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often channels without listeners are given up.
const SWEEP: Duration = Duration::from_secs(10);
