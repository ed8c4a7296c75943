//! The body of a response, and the body of a request.

use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use trunkline_proto::http::{Refusal, door};
use trunkline_wire::{jsonrpc, spares};

use super::budgets::Meter;
use super::idle_tracker::{IdleTracker, RequestGuard};
use super::lent_head::LentHead;
use super::message_text::MessageText;
use super::serve::feed::Feed;

/// The body of a response: empty, one text, or a stream of events.
#[derive(Default)]
pub struct HttpBody {
    pub(super) kind: Kind,
    /// Dropped when the response has been sent. Only HTTP/2 needs it.
    pub(super) on_end: Option<RequestGuard>,
}

#[derive(Default)]
pub(super) enum Kind {
    #[default]
    Empty,
    Whole(Bytes),
    /// A message that is in several parts.
    Parts(MessageText),
    /// Events that are all there, in a short text.
    AllEvents(Vec<u8>),
    Events(Pin<Box<dyn Events>>),
}

/// A stream of events; `None` at its end, and an error if it ends before that. Dropping it closes the stream.
pub(super) trait Events: Send {
    fn poll_events(self: Pin<&mut Self>, cx: &mut Context<'_>)
    -> Poll<Option<io::Result<Vec<u8>>>>;
}

impl HttpBody {
    pub(super) fn whole(text: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Whole(text.into()), on_end: None }
    }

    pub(super) fn message(text: MessageText) -> Self {
        match text.whole().is_some() {
            true => Self::whole(text.before),
            false => Self { kind: Kind::Parts(text), on_end: None },
        }
    }

    /// Passes the text through `count`, or what is long of it, if it is one text.
    pub(super) fn counted(&mut self, count: impl FnOnce(Bytes) -> Bytes) {
        if let Kind::Whole(text) | Kind::Parts(MessageText { long: text, .. }) = &mut self.kind {
            *text = count(std::mem::take(text));
        }
    }

    pub(super) fn events(events: impl Events + 'static) -> Self {
        Self::boxed_events(Box::pin(events))
    }

    /// Events, all of which are in this text.
    pub(super) fn all_events(text: Vec<u8>) -> Self {
        match text.len() > SHORT {
            true => Self::whole(text),
            false => Self { kind: Kind::AllEvents(text), on_end: None },
        }
    }

    pub(super) fn boxed_events(events: Pin<Box<dyn Events>>) -> Self {
        Self { kind: Kind::Events(events), on_end: None }
    }
}

impl HttpBody {
    /// A body of the pieces that a channel delivers. It ends when the sender is dropped. Sending fails
    /// once the client is gone.
    pub fn pieces(pieces: mpsc::Receiver<Vec<u8>>) -> Self {
        Self::events(Pieces(pieces))
    }

    /// The same of pieces that come from elsewhere. After an error the connection ends (over HTTP/2 the stream), so that
    /// nobody takes for complete what was cut off.
    pub fn relayed(pieces: mpsc::Receiver<io::Result<Vec<u8>>>) -> Self {
        Self::events(Relayed(pieces))
    }
}

impl From<Vec<u8>> for HttpBody {
    fn from(text: Vec<u8>) -> Self {
        Self::whole(text)
    }
}

struct Pieces(mpsc::Receiver<Vec<u8>>);

impl Events for Pieces {
    fn poll_events(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Vec<u8>>>> {
        self.0.poll_recv(cx).map(|it| it.map(Ok))
    }
}

struct Relayed(mpsc::Receiver<io::Result<Vec<u8>>>);

impl Events for Relayed {
    fn poll_events(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Vec<u8>>>> {
        self.0.poll_recv(cx)
    }
}

/// What a body has for now.
pub(crate) type Polled<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

impl Body for HttpBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<io::Error> {
        match &mut self.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Whole(text) => {
                let text = std::mem::take(text);
                self.kind = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(text))))
            }
            Kind::Parts(text) => {
                let part = text.take_part();
                if text.is_empty() {
                    self.kind = Kind::Empty;
                }
                Poll::Ready(part.map(|it| Ok(Frame::data(it))))
            }
            Kind::AllEvents(text) => {
                let text = Bytes::from(std::mem::take(text));
                self.kind = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(text))))
            }
            Kind::Events(events) => events
                .as_mut()
                .poll_events(cx)
                .map(|it| it.map(|text| text.map(|it| Frame::data(Bytes::from(it))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(text) => SizeHint::with_exact(text.len() as u64),
            Kind::Parts(text) => SizeHint::with_exact(text.len() as u64),
            Kind::AllEvents(text) => SizeHint::with_exact(text.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

/// A body that is complete.
#[derive(Debug)]
pub(super) struct Once(Option<Bytes>);

impl Once {
    pub(super) fn new(body: Bytes) -> Self {
        Self(Some(body).filter(|it| !it.is_empty()))
    }
}

impl Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled<Infallible> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// The body of a request as it arrives. If it is dropped before its end, the connection reads and
/// discards a short rest, and closes over a long one.
pub struct RequestBody {
    source: Source,
    /// Set if it belongs to a connection of HTTP/2 that we serve.
    tracker: Option<Arc<IdleTracker>>,
}

/// Where a body comes from.
enum Source {
    Nothing,
    /// It has come with its head.
    Whole(Bytes),
    /// It comes as the connection reads it.
    Fed(Arc<Feed>),
    /// hyper reads it: HTTP/2, or a connection that another server owns and closes.
    Incoming(Incoming),
}

impl RequestBody {
    pub(super) fn whole(text: Bytes) -> Self {
        let source = if text.is_empty() { Source::Nothing } else { Source::Whole(text) };
        Self { source, tracker: None }
    }

    pub(super) fn fed(feed: Arc<Feed>) -> Self {
        Self { source: Source::Fed(feed), tracker: None }
    }

    /// The body of a stream of HTTP/2.
    pub(super) fn of_stream(body: Incoming, tracker: Arc<IdleTracker>) -> Self {
        Self { source: Source::Incoming(body), tracker: Some(tracker) }
    }

    /// Reads all of it.
    ///
    /// # Errors
    ///
    /// That it is longer than `limit`, does not come in time, or ends too soon.
    pub async fn read_all(self, limit: usize, within: Duration) -> Result<Vec<u8>, Refusal> {
        let mut body = pin!(self);
        let reading = async {
            let mut text = Vec::new();
            while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                let frame = frame.map_err(|_| cut_off())?;
                let Ok(data) = frame.into_data() else { continue };
                if text.len() + data.len() > limit {
                    return Err(door::too_long(limit));
                }
                text.extend_from_slice(&data);
            }
            Ok(text)
        };
        timeout(within, reading).await.unwrap_or_else(|_| Err(late()))
    }

    /// The request with this head, out of the connection that it stayed with.
    pub fn take_whole(&mut self, head: &mut LentHead) -> Request<Self> {
        let head = head.take();
        let source = std::mem::replace(&mut self.source, Source::Nothing);
        Request::from_parts(head, Self { source, tracker: self.tracker.take() })
    }
}

/// A body on a connection that another server owns and closes.
impl From<Incoming> for RequestBody {
    fn from(body: Incoming) -> Self {
        Self { source: Source::Incoming(body), tracker: None }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<io::Error> {
        match &mut self.source {
            Source::Nothing => Poll::Ready(None),
            Source::Whole(text) => {
                let text = std::mem::take(text);
                self.source = Source::Nothing;
                Poll::Ready(Some(Ok(Frame::data(text))))
            }
            Source::Fed(feed) => feed.poll(cx).map(|it| it.map(|it| it.map(Frame::data))),
            Source::Incoming(body) => {
                let polled = ready!(Pin::new(body).poll_frame(cx));
                if polled.is_none() {
                    self.source = Source::Nothing;
                }
                Poll::Ready(polled.map(|it| it.map_err(io::Error::other)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Nothing => true,
            Source::Whole(_) => false,
            Source::Fed(feed) => feed.is_over(),
            Source::Incoming(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Nothing => SizeHint::with_exact(0),
            Source::Whole(text) => SizeHint::with_exact(text.len() as u64),
            Source::Fed(feed) => feed.left().map(SizeHint::with_exact).unwrap_or_default(),
            Source::Incoming(body) => body.size_hint(),
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(tracker) = &self.tracker
            && !self.is_end_stream()
        {
            tracker.leave_unread();
        }
    }
}

impl std::fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestBody")
            .field("is_over", &self.is_end_stream())
            .finish_non_exhaustive()
    }
}

/// Reads the whole body of a request, usually without copying it.
pub(super) async fn read<B: Body>(
    body: B,
    limit: usize,
    within: Duration,
    meter: &mut Meter<'_>,
) -> Result<Text<B::Data>, Refusal> {
    let mut body = pin!(body);
    let hint = body.size_hint();
    let expected = usize::try_from(hint.lower()).unwrap_or(usize::MAX);
    meter.expect(expected)?;
    let most =
        hint.upper().and_then(|it| usize::try_from(it).ok()).map_or(limit, |it| it.min(limit));
    let mut timer = None;
    let mut text = Text::Nothing;
    loop {
        let kept = text.size().min(most);
        let next = poll_fn(|cx| {
            if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                return Poll::Ready(Ok(frame));
            }
            // The body has usually arrived already; then no timer is needed.
            if timer.is_none() {
                meter.count(kept, false)?;
            }
            let timer = timer.get_or_insert_with(|| Box::pin(sleep(within)));
            timer.as_mut().poll(cx).map(|()| Err(late()))
        });
        let Some(frame) = next.await? else { return Ok(text) };
        let frame = frame.map_err(|_| cut_off())?;
        let Ok(data) = frame.into_data() else { continue };
        let is_whole = body.is_end_stream();
        let size = text.size_with(&data, limit, most)?;
        meter.count(size.min(most), is_whole)?;
        text = text.and(data, size, expected);
        if is_whole {
            return Ok(text);
        }
    }
}

fn late() -> Refusal {
    Refusal::new(StatusCode::REQUEST_TIMEOUT, "The body did not come in time.")
}

fn cut_off() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "The body ended before it was complete.")
}

/// A body that nobody wants: what is read of it, and for how long.
pub(super) const MAX_UNREAD: usize = 64 << 10;
pub(super) const UNREAD_TIME: Duration = Duration::from_millis(250);

/// A text of this length is not worth sharing.
const SHORT: usize = 4 << 10;

/// The text of a request: not copied if it arrived in one piece.
pub(super) enum Text<D> {
    Nothing,
    Piece(D),
    Pieces(Vec<u8>),
}

impl<D: Buf> Text<D> {
    /// The bytes held for it.
    fn size(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Piece(piece) => piece.remaining(),
            Self::Pieces(pieces) => pieces.capacity(),
        }
    }

    /// The bytes that it would hold with one more piece, if at most `most` can come.
    pub(super) fn size_with(&self, data: &D, limit: usize, most: usize) -> Result<usize, Refusal> {
        let needed = self.bytes().len() + data.remaining();
        if needed > limit {
            return Err(door::too_long(limit));
        }
        Ok(match self {
            Self::Nothing => needed,
            _ if needed <= self.size() => self.size(),
            // More will come: doubling avoids a second copy.
            _ => (2 * needed).min(most).max(needed),
        })
    }

    /// Appends one more piece; the result holds `size` bytes. If memory was kept for all that is `expected`, it is used.
    pub(super) fn and(self, mut data: D, size: usize, expected: usize) -> Self {
        let mut pieces = match self {
            Self::Nothing if data.chunk().len() == data.remaining() => return Self::Piece(data),
            Self::Nothing => Vec::with_capacity(size),
            Self::Piece(piece) => {
                let mut pieces = Vec::with_capacity(size);
                pieces.extend_from_slice(piece.chunk());
                pieces
            }
            Self::Pieces(mut pieces) => {
                let all = size.max(expected);
                spares::grow(&mut pieces, size, all..=all.saturating_add(all / 4));
                pieces
            }
        };
        while data.has_remaining() {
            let chunk = data.chunk();
            let length = chunk.len();
            pieces.extend_from_slice(chunk);
            data.advance(length);
        }
        Self::Pieces(pieces)
    }

    /// The text, to be kept.
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::Piece(mut piece) => piece.copy_to_bytes(piece.remaining()),
            Self::Pieces(pieces) => pieces.into(),
        }
    }

    /// The message that it is.
    pub(super) fn into_incoming(self) -> jsonrpc::Incoming {
        match self {
            Self::Pieces(pieces) => jsonrpc::Incoming::take(pieces),
            text => jsonrpc::Incoming::parse(text.bytes()),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Piece(piece) => piece.chunk(),
            Self::Pieces(pieces) => pieces,
        }
    }
}
