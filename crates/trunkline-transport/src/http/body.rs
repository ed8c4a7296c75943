//! What goes out as the body of a response, and what comes in as that of a request.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;
use trunkline_proto::http::{Refusal, door};

use super::pulse::Beat;

/// The body of a response: nothing, a text, or events as they come.
///
/// ```
/// # use http_body::Body;
/// # use trunkline_transport::http::HttpBody;
/// assert!(HttpBody::default().is_end_stream(), "it is empty");
/// ```
#[derive(Default)]
pub struct HttpBody {
    kind: Kind,
    /// Dropped when the response is out.
    pub(super) on_end: Option<Beat>,
}

#[derive(Default)]
enum Kind {
    #[default]
    Empty,
    Whole(Bytes),
    Events(Pin<Box<dyn Events>>),
}

/// Events as they come: `None` at their end. Dropping it hangs up.
pub(super) trait Events: Send {
    fn poll_events(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>>;
}

impl HttpBody {
    pub(super) fn whole(text: Vec<u8>) -> Self {
        Self { kind: Kind::Whole(Bytes::from(text)), on_end: None }
    }

    pub(super) fn events(events: impl Events + 'static) -> Self {
        Self { kind: Kind::Events(Box::pin(events)), on_end: None }
    }
}

impl HttpBody {
    /// A body whose pieces come as they are sent. It ends when the sender is dropped; when nobody
    /// wants it any more, sending fails.
    ///
    /// ```
    /// # use http_body::Body;
    /// # use trunkline_transport::http::HttpBody;
    /// let (sender, pieces) = tokio::sync::mpsc::channel(8);
    /// let body = HttpBody::pieces(pieces);
    /// sender.try_send(b"one\n".to_vec()).unwrap();
    /// assert!(!body.is_end_stream(), "there may be more");
    /// drop(body);
    /// assert!(sender.is_closed());
    /// ```
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

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
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

/// The whole body of a request: usually the very bytes that were read.
pub(super) async fn read<B: Body>(
    body: B,
    limit: usize,
    within: Duration,
) -> Result<Text<B::Data>, Refusal> {
    let mut body = pin!(body);
    let mut timer = None;
    let mut text = Text::Nothing;
    let next = |body: Pin<&mut B>, cx: &mut Context<'_>, timer: &mut Option<Pin<Box<_>>>| {
        if let Poll::Ready(frame) = body.poll_frame(cx) {
            return Poll::Ready(Ok(frame));
        }
        // A body is mostly there already, and then there is no need for a timer.
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        timer.as_mut().poll(cx).map(|()| {
            let message = "The body did not come in time.";
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, message))
        })
    };
    while let Some(frame) = poll_fn(|cx| next(body.as_mut(), cx, &mut timer)).await? {
        let frame = frame.map_err(|_| {
            Refusal::new(StatusCode::BAD_REQUEST, "The body ended before it was complete.")
        })?;
        if let Ok(data) = frame.into_data() {
            text = text.and(data, limit)?;
        }
    }
    Ok(text)
}

/// Lets a short body arrive that nobody will look at: a connection that is closed while it is on
/// its way takes the answer with it.
#[cfg(feature = "auth")]
pub(super) async fn let_arrive<B: Body>(body: B) {
    if body.size_hint().lower() <= UNREAD as u64 {
        drop(read(body, UNREAD, UNREAD_TIME).await);
    }
}

#[cfg(feature = "auth")]
const UNREAD: usize = 64 << 10;
#[cfg(feature = "auth")]
const UNREAD_TIME: Duration = Duration::from_secs(1);

/// The text of a request: not copied if it came in one piece.
pub(super) enum Text<D> {
    Nothing,
    Piece(D),
    Pieces(Vec<u8>),
}

impl<D: Buf> Text<D> {
    fn and(self, mut data: D, limit: usize) -> Result<Self, Refusal> {
        let had = self.bytes().len();
        if had + data.remaining() > limit {
            return Err(door::too_long(limit));
        }
        let mut pieces = match self {
            Self::Nothing if data.chunk().len() == data.remaining() => {
                return Ok(Self::Piece(data));
            }
            Self::Nothing => Vec::with_capacity(data.remaining()),
            Self::Piece(piece) => {
                // More is to come: room for as much again saves copying it twice.
                let mut pieces = Vec::with_capacity((2 * (had + data.remaining())).min(limit));
                pieces.extend_from_slice(piece.chunk());
                pieces
            }
            Self::Pieces(pieces) => pieces,
        };
        while data.has_remaining() {
            let chunk = data.chunk();
            let length = chunk.len();
            pieces.extend_from_slice(chunk);
            data.advance(length);
        }
        Ok(Self::Pieces(pieces))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Piece(piece) => piece.chunk(),
            Self::Pieces(pieces) => pieces,
        }
    }
}
