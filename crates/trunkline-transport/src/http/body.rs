//! The body of a response, and the body of a request.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake as _};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::EXPECT;
use http::{HeaderMap, Request, StatusCode, request};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use trunkline_proto::http::{Refusal, door};
use trunkline_wire::jsonrpc;

use super::budgets::Meter;
use super::idle_tracker::{IdleTracker, RequestGuard, holding_back};

/// The body of a response: empty, one text, or a stream of events.
#[derive(Default)]
pub struct HttpBody {
    kind: Kind,
    /// Dropped when the response has been sent.
    pub(super) on_end: Option<RequestGuard>,
}

#[derive(Default)]
enum Kind {
    #[default]
    Empty,
    Whole(Bytes),
    Events(Pin<Box<dyn Events>>),
}

/// A stream of events; `None` at its end. Dropping it closes the stream.
pub(super) trait Events: Send {
    fn poll_events(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>>;
}

impl HttpBody {
    pub(super) fn whole(text: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Whole(text.into()), on_end: None }
    }

    /// Passes the text through `count`, if it is one text.
    pub(super) fn counted(&mut self, count: impl FnOnce(Bytes) -> Bytes) {
        if let Kind::Whole(text) = &mut self.kind {
            *text = count(std::mem::take(text));
        }
    }

    pub(super) fn events(events: impl Events + 'static) -> Self {
        Self::boxed_events(Box::pin(events))
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
}

impl From<Vec<u8>> for HttpBody {
    fn from(text: Vec<u8>) -> Self {
        Self::whole(text)
    }
}

struct Pieces(mpsc::Receiver<Vec<u8>>);

impl Events for Pieces {
    fn poll_events(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.0.poll_recv(cx)
    }
}

/// What a body has for now.
pub(crate) type Polled<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<Infallible> {
        match &mut self.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Whole(text) => {
                let text = std::mem::take(text);
                self.kind = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(text))))
            }
            Kind::Events(events) => events
                .as_mut()
                .poll_events(cx)
                .map(|it| it.map(|text| Ok(Frame::data(Bytes::from(text))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(text) => SizeHint::with_exact(text.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

/// The body of a request as it arrives. If it is dropped before its end, the connection reads and
/// discards a short rest, and closes over a long one.
pub struct RequestBody {
    /// `None` once it was taken.
    body: Option<Incoming>,
    ended: bool,
    broken: bool,
    /// Whether the client sends it only after `100 Continue`, as far as known; and whether it was asked to, which
    /// the first read does.
    is_awaited: bool,
    is_asked: bool,
    /// `None` where another server owns the connection.
    tracker: Option<Arc<IdleTracker>>,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, tracker: Arc<IdleTracker>) -> Self {
        let mut body = Self::from(body);
        body.tracker = Some(tracker);
        body
    }

    /// Nobody reads it from now on. These are the header fields of its request, unless it was read.
    pub(super) fn leave(&mut self, headers: &HeaderMap) {
        // Most bodies were read, and need no look at the fields.
        if !self.is_asked && !self.is_end_stream() {
            self.is_awaited = is_awaited(headers);
        }
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
    pub fn take_whole(&mut self, head: &mut request::Parts) -> Request<Self> {
        let head = std::mem::replace(head, Request::new(()).into_parts().0);
        self.leave(&head.headers);
        let (body, tracker) = (self.body.take(), self.tracker.take());
        let &mut Self { ended, broken, is_awaited, is_asked, .. } = self;
        Request::from_parts(head, Self { body, ended, broken, is_awaited, is_asked, tracker })
    }
}

/// A body on a connection that another server owns and closes.
impl From<Incoming> for RequestBody {
    fn from(body: Incoming) -> Self {
        let (ended, broken, is_awaited, is_asked) = (false, false, false, false);
        Self { body: Some(body), ended, broken, is_awaited, is_asked, tracker: None }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<hyper::Error> {
        self.is_asked = true;
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let polled = match &this.tracker {
            Some(tracker) if !tracker.is_h2 => {
                let (polled, has_woken) = holding_back(|| Pin::new(&mut *body).poll_frame(cx));
                // The connection reads on, unless this was the last piece.
                let is_last = matches!(polled, Poll::Ready(Some(Ok(_)))) && body.is_end_stream();
                if has_woken && !is_last {
                    tracker.wake_by_ref();
                }
                polled
            }
            _ => Pin::new(body).poll_frame(cx),
        };
        match &polled {
            Poll::Ready(None) => this.ended = true,
            Poll::Ready(Some(Err(_))) => this.broken = true,
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take()
            && let Some(tracker) = &self.tracker
            && !self.ended
            && !body.is_end_stream()
        {
            // After a malformed chunk the end of the body is unknown. A client that did not get `100
            // Continue` may send its body all the same. In both cases the next request cannot be found.
            let is_unasked = self.is_awaited && !self.is_asked;
            tracker.leave_unread((!self.broken && !is_unasked).then_some(body));
        }
    }
}

impl std::fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestBody").field("ended", &self.ended).finish_non_exhaustive()
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
    meter.expect(usize::try_from(hint.lower()).unwrap_or(usize::MAX))?;
    let most =
        hint.upper().and_then(|it| usize::try_from(it).ok()).map_or(limit, |it| it.min(limit));
    let mut timer = None;
    let mut text = Text::Nothing;
    loop {
        let kept = text.size();
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
        meter.count(size, is_whole)?;
        text = text.and(data, size);
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

/// Waits for a short body to arrive and discards it, so that the connection can be reused. Returns
/// whether all of it arrived.
pub(super) async fn discard_short_body<B: Body>(body: B) -> bool {
    let mut left = MAX_UNREAD;
    let is_long = body.size_hint().lower() > left as u64;
    let mut body = pin!(body);
    let arriving = async {
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let Ok(frame) = frame else { return false };
            let size = frame.into_data().map_or(0, |it| it.remaining());
            let Some(rest) = left.checked_sub(size) else { return false };
            left = rest;
        }
        true
    };
    !is_long && timeout(UNREAD_TIME, arriving).await.unwrap_or(false)
}

/// Whether the client sends the body only after `100 Continue` (RFC 9110 §10.1.1).
pub(super) fn is_awaited(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The body of a request that is let in. A refusal first lets a short body arrive: where another server
/// owns the connection, unread bytes may cause a reset that destroys the answer. A refusal never asks
/// for a body with `100 Continue`.
#[cfg(feature = "auth")]
pub(super) async fn let_in<B: Body>(
    entered: Result<(), Refusal>,
    headers: &HeaderMap,
    body: B,
) -> Result<B, Refusal> {
    match entered {
        Ok(()) => Ok(body),
        Err(refusal) if is_awaited(headers) => Err(refusal),
        Err(refusal) => {
            Box::pin(discard_short_body(body)).await;
            Err(refusal)
        }
    }
}

const MAX_UNREAD: usize = 64 << 10;
const UNREAD_TIME: Duration = Duration::from_millis(250);

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

    /// Appends one more piece; the result holds `size` bytes.
    pub(super) fn and(self, mut data: D, size: usize) -> Self {
        let mut pieces = match self {
            Self::Nothing if data.chunk().len() == data.remaining() => return Self::Piece(data),
            Self::Nothing => Vec::with_capacity(size),
            Self::Piece(piece) => {
                let mut pieces = Vec::with_capacity(size);
                pieces.extend_from_slice(piece.chunk());
                pieces
            }
            Self::Pieces(mut pieces) => {
                pieces.reserve_exact(size - pieces.len());
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

    /// The text, to be read or taken over.
    pub(super) fn take(&mut self) -> Cow<'_, [u8]> {
        match self {
            Self::Pieces(pieces) => Cow::Owned(std::mem::take(pieces)),
            text => Cow::Borrowed(text.bytes()),
        }
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
