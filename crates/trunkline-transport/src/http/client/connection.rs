//! A request → its response, over one HTTP/1.1 connection (RFC 9112).
//!
//! A connection has no task: who waits for a response also writes the request and reads. One that is dropped is closed.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, Method, Request, Uri};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::coop::has_budget_remaining;
use trunkline_wire::spares;

use super::head::ResponseHead;
use crate::http::h1::fields::is_whole;
use crate::http::h1::inlet::{BodyLength, Inlet, Left, cut_off};
use crate::http::h1::outlet::{Outlet, write_number};
use crate::http::message_text::MessageText;

/// A request as it is written.
#[derive(Debug)]
pub(crate) struct RequestText {
    /// Its head, up to the length of the body.
    head: Bytes,
    body: MessageText,
    has_length: bool,
    /// Whether its response has a head alone.
    is_head: bool,
}

impl RequestText {
    /// A request with this head, which [`write_head`] wrote.
    pub(super) fn new(method: &Method, head: Bytes, body: MessageText) -> Self {
        let is_expected = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        let has_length = is_expected || !body.is_empty();
        Self { head, body, has_length, is_head: *method == Method::HEAD }
    }
}

impl From<Request<Bytes>> for RequestText {
    fn from(request: Request<Bytes>) -> Self {
        let (head, body) = request.into_parts();
        Self::new(&head.method, write_head(&head.method, &head.uri, &head.headers), body.into())
    }
}

/// The head of a request, up to the length of its body.
pub(super) fn write_head(method: &Method, uri: &Uri, headers: &HeaderMap) -> Bytes {
    let mut head = Vec::with_capacity(512);
    head.extend_from_slice(method.as_str().as_bytes());
    head.push(b' ');
    head.extend_from_slice(uri.path_and_query().map_or("/", |it| it.as_str()).as_bytes());
    head.extend_from_slice(b" HTTP/1.1\r\n");
    // The body is written whole, whatever its sender did.
    let is_framing = |it: &HeaderName| *it == CONTENT_LENGTH || *it == TRANSFER_ENCODING;
    for (name, value) in headers.iter().filter(|(name, _)| !is_framing(name)) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.into()
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum SendError {
    /// Nothing of the request was written.
    Unsent(io::Error),
    /// The server may have got the request.
    Lost(io::Error),
}

/// A connection that is used for one request at a time.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    inlet: Inlet,
    outlet: Outlet,
    /// Whether a response came before.
    was_used: bool,
    /// Whether the rest of a request was given up, so that no other may follow.
    is_cut_off: bool,
    /// For how long its server says that it keeps the connection.
    kept: Option<Duration>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Connection {
    pub(super) fn new(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Box<Self> {
        Box::new(Self {
            stream: Box::new(stream),
            inlet: Inlet::new(ROOM),
            outlet: Outlet::default(),
            was_used: false,
            is_cut_off: false,
            kept: None,
        })
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(
        mut self: Box<Self>,
        request: &RequestText,
    ) -> Result<(ResponseHead, ResponseBody), SendError> {
        self.begin(request);
        // What comes on a kept connection before a request is written is no answer: mostly that the server hung up.
        let mut is_quiet = !self.was_used;
        let head = poll_fn(|cx| {
            if !is_quiet {
                is_quiet = match self.poll_fill(cx) {
                    // A task that has used up its budget is not told what has come, and is polled again.
                    Poll::Pending if !has_budget_remaining() => return Poll::Pending,
                    Poll::Pending => true,
                    Poll::Ready(read) => {
                        return Poll::Ready(Err(SendError::Unsent(
                            read.err().unwrap_or_else(closed),
                        )));
                    }
                };
                // Reading waits already.
                return match self.poll_write(cx) {
                    Poll::Ready(Err(error)) => self.on_unwritten(error).map(Err),
                    _ => Poll::Pending,
                };
            }
            self.poll_head(cx)
        });
        let mut head = head.await?;
        (self.was_used, self.kept) = (true, head.kept);
        if request.is_head {
            head.length = BodyLength::Bytes(0);
        }
        let keeps_connection = head.keeps_connection && head.length != BodyLength::UntilClose;
        let left = head.length.into();
        Ok((head, ResponseBody { connection: self, left, keeps_connection }))
    }

    /// Whether the server has hung up, or said something without being asked. If not, it wakes the task when it does.
    pub(super) fn is_closed(&mut self, cx: &mut Context<'_>) -> bool {
        self.poll_fill(cx).is_ready()
    }

    /// How long it may wait for another request, by what its server said: a second less, so that no request meets the end
    /// of the connection.
    pub(super) fn kept(&self) -> Option<Duration> {
        self.kept.map(|it| it.saturating_sub(Duration::from_secs(1)))
    }

    fn begin(&mut self, request: &RequestText) {
        let head = self.outlet.begin();
        head.extend_from_slice(&request.head);
        if request.has_length {
            head.extend_from_slice(b"content-length: ");
            write_number(request.body.len() as u64, head);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        let MessageText { before, long, after } = &request.body;
        if long.is_empty() {
            return self.outlet.follow(before.clone());
        }
        head.extend_from_slice(before);
        self.outlet.follow(long.clone());
        self.outlet.end_with(after.clone());
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHead, SendError>> {
        loop {
            if let Poll::Ready(Err(error)) = self.poll_write(cx)
                && let Poll::Ready(error) = self.on_unwritten(error)
            {
                return Poll::Ready(Err(error));
            }
            let searched = self.inlet.unread().len();
            let failed = match ready!(self.poll_fill(cx)) {
                Ok(0) if !self.outlet.is_begun() => SendError::Unsent(closed()),
                Ok(0) => SendError::Lost(closed()),
                Ok(_) => match self.take_head(searched) {
                    Ok(Some(head)) => return Poll::Ready(Ok(head)),
                    Ok(None) => continue,
                    Err(why) => SendError::Lost(io::Error::new(ErrorKind::InvalidData, why)),
                },
                Err(error) if !self.outlet.is_begun() => SendError::Unsent(error),
                Err(error) => SendError::Lost(error),
            };
            return Poll::Ready(Err(failed));
        }
    }

    /// A server may refuse a request and hang up before it has read all of it: its answer is still read.
    fn on_unwritten(&mut self, error: io::Error) -> Poll<SendError> {
        if !self.outlet.is_begun() {
            return Poll::Ready(SendError::Unsent(error));
        }
        self.outlet.give_up();
        self.is_cut_off = true;
        Poll::Pending
    }

    /// Takes the head out of what was read, if all of it is there. Interim responses are skipped.
    fn take_head(&mut self, mut searched: usize) -> Result<Option<ResponseHead>, &'static str> {
        loop {
            let unread = self.inlet.unread();
            // Most heads come in one piece. One that does not is read again when all of it has come.
            let is_worth_it = searched == 0 || is_whole(unread, searched);
            let parsed = if is_worth_it { ResponseHead::parse(unread)? } else { None };
            let Some((head, end)) = parsed else {
                let is_long = unread.len() > MAX_HEAD;
                return if is_long { Err("its head is too long") } else { Ok(None) };
            };
            let _ = self.inlet.take(end);
            match head.status {
                101 => return Err("it switches to another protocol"),
                100..200 => searched = 0,
                _ => return Ok(Some(head)),
            }
        }
    }

    /// Writes what is left of the request.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outlet.poll_write(&mut self.stream, cx)
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.inlet.poll_fill(&mut self.stream, cx)
    }

    /// Writes on, for as long as the server still reads.
    fn write_rest(&mut self, cx: &mut Context<'_>) {
        if let Poll::Ready(Err(error)) = self.poll_write(cx) {
            let _ = self.on_unwritten(error);
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("was_used", &self.was_used).finish_non_exhaustive()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Over TLS the server learns that nothing was cut off.
        let _ = Pin::new(&mut self.stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    }
}

/// The body of a response, and the connection on which it comes.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    connection: Box<Connection>,
    left: Left,
    keeps_connection: bool,
}

impl ResponseBody {
    /// Its length, if that is known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.left.length()
    }

    /// The next piece; `None` at the end.
    pub(crate) async fn piece(&mut self) -> io::Result<Option<&[u8]>> {
        let piece = poll_fn(|cx| self.poll_range(cx)).await?;
        Ok(piece.map(|it| self.connection.inlet.at(it)))
    }

    /// The same, for who polls.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<&[u8]>>> {
        let piece = ready!(self.poll_range(cx))?;
        Poll::Ready(Ok(piece.map(|it| self.connection.inlet.at(it))))
    }

    /// All of it; `None` if it is longer than `limit`. A short text is not copied.
    pub(crate) async fn text(&mut self, limit: usize) -> io::Result<Option<Cow<'_, [u8]>>> {
        if let Left::Bytes(length) = self.left {
            let Some(length) = usize::try_from(length).ok().filter(|it| *it <= limit) else {
                return Ok(None);
            };
            return self.bytes(length).await.map(Some);
        }
        let mut text = Vec::new();
        while let Some(piece) = self.piece().await? {
            if text.len() + piece.len() > limit {
                return Ok(None);
            }
            text.extend_from_slice(piece);
        }
        Ok(Some(Cow::Owned(text)))
    }

    /// So many bytes, which are all that is left.
    async fn bytes(&mut self, length: usize) -> io::Result<Cow<'_, [u8]>> {
        let connection = &mut *self.connection;
        if connection.inlet.unread().len() >= length {
            self.left = Left::Nothing;
            let text = connection.inlet.take(length);
            return Ok(Cow::Borrowed(connection.inlet.at(text)));
        }
        // Room for all of it: a system gives memory when it is written to.
        let kept = spares::take(length, length + length / 4);
        let mut text = kept.unwrap_or_else(|| Vec::with_capacity(length));
        let here = connection.inlet.take(connection.inlet.unread().len());
        text.extend_from_slice(connection.inlet.at(here));
        while text.len() < length {
            let left = length - text.len();
            let more = poll_fn(|cx| {
                connection.write_rest(cx);
                pin!(connection.stream.read_buf(&mut (&mut text).limit(left))).poll(cx)
            });
            if more.await? == 0 {
                return Err(cut_off());
            }
        }
        self.left = Left::Nothing;
        Ok(Cow::Owned(text))
    }

    /// The connection, if the next request can follow on it.
    pub(super) fn into_connection(self) -> Option<Box<Connection>> {
        let Self { mut connection, left, keeps_connection } = self;
        let is_over = left.is_nothing() && connection.inlet.unread().is_empty();
        let is_sent = connection.outlet.is_written() && !connection.is_cut_off;
        if !is_over || !keeps_connection || !is_sent {
            return None;
        }
        connection.inlet.shrink();
        Some(connection)
    }

    fn poll_range(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Range<usize>>>> {
        let connection = &mut *self.connection;
        if !connection.outlet.is_written() {
            connection.write_rest(cx);
        }
        connection.inlet.poll_piece(&mut self.left, &mut connection.stream, cx)
    }
}

fn closed() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed before the answer came")
}

/// What a connection reads at first: more than most responses have.
const ROOM: usize = 8 << 10;
/// The longest head of a response.
const MAX_HEAD: usize = 64 << 10;

#[cfg(test)]
mod tests;
