//! One HTTP/1.1 connection: requests → their responses, one after the other (RFC 9112).
//!
//! The task of a connection does all of it: it reads, answers and writes. A body that has come along with its head is
//! handed over whole; of another one, the connection reads what somebody wants.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::feed::Feed;
use super::request_head::{Framing, HeadReader, WrongHead, empty_lines};
use super::response_head::{
    CONTINUE, Follow, LAST_CHUNK, Sent, declared_length, has_no_body, write_chunk, write_head,
};
use super::{Answers, Envelopes};
use crate::clock::now;
use crate::http::body::{Events, HttpBody, Kind, MAX_UNREAD, RequestBody, UNREAD_TIME};
use crate::http::h1::fields::is_whole;
use crate::http::h1::inlet::{BodyLength, Inlet, Left, cut_off};
use crate::http::h1::outlet::{LONG, Outlet};
use crate::http::idle_tracker::IdleTracker;
use crate::http::lent_head::LentHead;
use crate::limits::Limits;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer has closed its side or is gone.
    ByPeer,
    /// All that the peer has announced was read.
    Complete,
    /// The peer may still be sending what nobody reads.
    Unread,
}

/// Answers the requests of a connection until it ends.
pub(super) async fn serve_h1<A: Answers>(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin + Send),
    answers: &A,
    tracker: &IdleTracker,
    limits: &Limits,
) -> End {
    let envelopes = Envelopes::default();
    let (mut heads, mut head) = (HeadReader::default(), LentHead::default());
    let mut connection = Connection::new(stream, tracker, limits);
    loop {
        let framing = match poll_fn(|cx| connection.poll_head(&mut heads, &mut head, cx)).await {
            Ok(framing) => framing,
            Err(Next::End(end)) => return end,
            Err(Next::Refuse(status)) => return connection.refuse(status).await,
        };
        tracker.begin();
        let mut body = connection.body(&framing);
        let is_head = head.method == Method::HEAD;
        let response = {
            let mut answering = pin!(answers.answer_in_place(&mut head, &mut body, &envelopes));
            poll_fn(|cx| connection.poll_answer(answering.as_mut(), cx)).await
        };
        let Some(response) = response else { return End::ByPeer };
        // Boxed: it is rare, and every connection would carry its size.
        let is_read = connection.left.is_nothing() || Box::pin(connection.rest_arrives()).await;
        let follow = match framing.keeps_connection && is_read && !tracker.is_closing() {
            false => Follow::No,
            true if framing.is_oldest => Follow::IfTold,
            true => Follow::Yes,
        };
        let now = now();
        let mut sending =
            connection.begin_response(response, is_head, framing.is_oldest, follow, now);
        if sending.events.is_some() {
            // They may last, and need nothing of the request.
            heads.forget(&mut head);
            connection.shrink();
        }
        let mut has_waited = false;
        let sent = poll_fn(|cx| {
            let polled = connection.poll_response(&mut sending, cx);
            has_waited |= polled.is_pending();
            polled
        });
        let sent = sent.await;
        tracker.end(if has_waited { self::now() } else { now });
        match sent {
            Err(_) => return End::ByPeer,
            Ok(()) if connection.is_over => return End::ByPeer,
            Ok(()) if !is_read => return End::Unread,
            Ok(()) if !sending.keeps_connection => return End::Complete,
            Ok(()) => connection.shrink(),
        }
        heads.forget(&mut head);
    }
}

/// Why no request follows.
enum Next {
    End(End),
    /// What came is no request.
    Refuse(StatusCode),
}

struct Connection<'a, S> {
    stream: &'a mut S,
    tracker: &'a IdleTracker,
    limits: &'a Limits,
    inlet: Inlet,
    outlet: Outlet,
    /// What is left of the body of the request.
    left: Left,
    /// Where its pieces go, unless it has come whole.
    feed: Option<Arc<Feed>>,
    /// Whether the peer sends the body only after `100 Continue`, which was not sent.
    is_awaited: bool,
    /// Whether the end of the body is unknown.
    is_broken: bool,
    /// Whether the peer has closed its side or is gone.
    is_over: bool,
    /// How much of a head was searched for its end.
    searched: usize,
}

/// A response that is being sent.
struct Sending {
    events: Option<Pin<Box<dyn Events>>>,
    /// What is left of them.
    left: Sent,
    keeps_connection: bool,
    /// Whether they have ended before they were complete.
    is_cut_off: bool,
}

impl Sending {
    /// Appends what has come. Fails if it is not as long as it was said to be.
    fn write(&mut self, text: Option<Vec<u8>>, out: &mut Outlet) -> io::Result<()> {
        let Some(text) = text else {
            match self.left {
                Sent::Bytes(1..) => return Err(ErrorKind::UnexpectedEof.into()),
                Sent::Chunks => out.more().extend_from_slice(LAST_CHUNK),
                Sent::Bytes(0) | Sent::UntilClose => {}
            }
            self.events = None;
            return Ok(());
        };
        match &mut self.left {
            _ if text.is_empty() => {}
            Sent::Chunks => write_chunk(text, out),
            Sent::UntilClose => out.append(text),
            Sent::Bytes(left) => {
                let rest = left.checked_sub(text.len() as u64);
                *left = rest.ok_or(ErrorKind::InvalidData)?;
                out.append(text);
            }
        }
        Ok(())
    }
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Connection<'a, S> {
    fn new(stream: &'a mut S, tracker: &'a IdleTracker, limits: &'a Limits) -> Self {
        let (inlet, outlet, left) = (Inlet::new(ROOM), Outlet::default(), Left::Nothing);
        let (is_awaited, is_broken, is_over) = (false, false, false);
        Self {
            stream,
            tracker,
            limits,
            inlet,
            outlet,
            left,
            feed: None,
            is_awaited,
            is_broken,
            is_over,
            searched: 0,
        }
    }

    /// The head of the next request.
    fn poll_head(
        &mut self,
        heads: &mut HeadReader,
        head: &mut LentHead,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Framing, Next>> {
        loop {
            let unread = self.inlet.unread();
            // Half of an empty line begins no head either.
            if !matches!(unread, [] | [b'\r']) {
                let limit = self.limits.header_bytes;
                // Most heads come in one piece. One that does not is read again when all of it has come.
                let is_worth_it =
                    self.searched == 0 || unread.len() > limit || is_whole(unread, self.searched);
                match if is_worth_it { heads.read(unread, limit, head) } else { Ok(None) } {
                    Ok(Some((framing, end))) => {
                        self.inlet.take(end);
                        self.searched = 0;
                        return Poll::Ready(Ok(framing));
                    }
                    Ok(None) if self.skips_empty_lines() => continue,
                    Ok(None) => {}
                    Err(WrongHead::Refused(status)) => {
                        return Poll::Ready(Err(Next::Refuse(status)));
                    }
                    Err(WrongHead::OtherVersion) => {
                        return Poll::Ready(Err(Next::End(End::Unread)));
                    }
                }
                self.searched = self.inlet.unread().len();
                self.tracker.heard();
                if self.tracker.is_expired() {
                    return Poll::Ready(Err(Next::Refuse(StatusCode::REQUEST_TIMEOUT)));
                }
            } else if self.tracker.is_closing() {
                return Poll::Ready(Err(Next::End(End::Complete)));
            }
            match ready!(self.inlet.poll_fill(self.stream, cx)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(Next::End(End::ByPeer))),
                Ok(_) => {}
            }
        }
    }

    /// Skips empty lines before a request, which are no part of it, and says whether there were any.
    fn skips_empty_lines(&mut self) -> bool {
        let length = empty_lines(self.inlet.unread());
        if length > 0 {
            self.inlet.take(length);
            self.searched = 0;
        }
        length > 0
    }

    /// The body of the request whose head was just read.
    fn body(&mut self, framing: &Framing) -> RequestBody {
        (self.is_awaited, self.is_broken, self.feed) = (framing.is_awaited, false, None);
        if let BodyLength::Bytes(length) = framing.length
            && let Ok(length) = usize::try_from(length)
            && length <= self.inlet.unread().len()
            && !framing.is_awaited
        {
            let whole = self.inlet.take(length);
            return RequestBody::whole(match length {
                0 => Bytes::new(),
                _ => Bytes::copy_from_slice(self.inlet.at(whole)),
            });
        }
        self.left = framing.length.into();
        let feed = Arc::new(Feed::new(self.left.length()));
        self.feed = Some(Arc::clone(&feed));
        RequestBody::fed(feed)
    }

    /// The answer to the request; `None` if the peer does not wait for it.
    fn poll_answer(
        &mut self,
        mut answering: Pin<&mut impl Future<Output = Response<HttpBody>>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Response<HttpBody>>> {
        loop {
            if let Poll::Ready(response) = answering.as_mut().poll(cx) {
                return Poll::Ready(Some(response));
            }
            match &self.feed {
                Some(feed) if !self.left.is_nothing() && !self.is_broken => {
                    if !feed.is_wanted(cx.waker()) {
                        return Poll::Pending;
                    }
                    let feed = Arc::clone(feed);
                    ready!(self.poll_feed(&feed, cx));
                }
                _ => {
                    ready!(self.poll_hang_up(cx));
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Reads more of the body for who wants it.
    fn poll_feed(&mut self, feed: &Feed, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_awaited {
            self.is_awaited = false;
            self.outlet.more().extend_from_slice(CONTINUE);
        }
        if !self.outlet.is_written() {
            // Who does not read this does not read the answer either.
            let _ = ready!(self.poll_write(cx));
        }
        match ready!(self.inlet.poll_piece(&mut self.left, self.stream, cx)) {
            Ok(Some(piece)) => feed.put(self.inlet.keep(piece), self.left.is_nothing()),
            Ok(None) => feed.end(Ok(())),
            Err(error) => {
                self.is_broken = true;
                // Malformed chunks come from a peer that is still there.
                self.is_over = error.kind() != ErrorKind::InvalidData;
                feed.end(Err(error.kind()));
            }
        }
        Poll::Ready(())
    }

    /// Waits until the peer closes its side while it is owed something.
    fn poll_hang_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.skips_empty_lines();
            // What comes is the next request. It waits, and so does the end behind it.
            if self.is_over || !matches!(self.inlet.unread(), [] | [b'\r']) {
                return Poll::Pending;
            }
            if let Ok(0) | Err(_) = ready!(self.inlet.poll_fill(self.stream, cx)) {
                self.is_over = true;
                return Poll::Ready(());
            }
        }
    }

    /// Nobody reads the rest of the body any more. Returns whether a short one arrives all the same, so that the next
    /// request can be found.
    async fn rest_arrives(&mut self) -> bool {
        if let Some(feed) = self.feed.take() {
            feed.end(Err(ErrorKind::BrokenPipe));
        }
        let mut room = MAX_UNREAD;
        let is_long = self.left.length().is_some_and(|it| it > room as u64);
        // A client that did not get `100 Continue` may send its body or not. After a malformed chunk its end is unknown.
        if is_long || self.is_awaited || self.is_broken {
            return false;
        }
        let arriving = poll_fn(|cx| {
            loop {
                match ready!(self.inlet.poll_piece(&mut self.left, self.stream, cx)) {
                    Ok(None) => return Poll::Ready(true),
                    Ok(Some(piece)) if piece.len() <= room => room -= piece.len(),
                    Ok(Some(_)) => return Poll::Ready(false),
                    Err(error) => {
                        self.is_over = error.kind() != ErrorKind::InvalidData;
                        return Poll::Ready(false);
                    }
                }
            }
        });
        timeout(UNREAD_TIME, arriving).await.unwrap_or(false)
    }

    fn begin_response(
        &mut self,
        mut response: Response<HttpBody>,
        is_head: bool,
        is_oldest: bool,
        follow: Follow,
        now: Instant,
    ) -> Sending {
        self.left = Left::Nothing;
        let body = std::mem::take(&mut response.body_mut().kind);
        let (status, headers) = (response.status(), response.headers());
        let (mut all, mut text, mut end) = (Vec::new(), Bytes::new(), Bytes::new());
        let (sent, events) = match body {
            Kind::Empty => (Sent::Bytes(0), None),
            Kind::Whole(whole) => {
                text = whole;
                (Sent::Bytes(text.len() as u64), None)
            }
            Kind::Parts(parts) => {
                let sent = Sent::Bytes(parts.len() as u64);
                all.extend_from_slice(&parts.before);
                (text, end) = (parts.long, parts.after);
                (sent, None)
            }
            Kind::AllEvents(whole) => {
                all = whole;
                (Sent::Bytes(all.len() as u64), None)
            }
            Kind::Events(events) => {
                let sent = match declared_length(headers) {
                    Some(length) => Sent::Bytes(length),
                    None if is_oldest => Sent::UntilClose,
                    None => Sent::Chunks,
                };
                (sent, Some(events))
            }
        };
        let is_copied = text.len() < LONG;
        let out = self.outlet.more();
        out.reserve(HEAD_ROOM + all.len() + if is_copied { text.len() } else { 0 });
        let keeps_connection = write_head(status, headers, sent, follow, now, out);
        if is_head || has_no_body(status) {
            return Sending { events: None, left: sent, keeps_connection, is_cut_off: false };
        }
        out.extend_from_slice(&all);
        match is_copied {
            true => out.extend_from_slice(&text),
            false => self.outlet.follow(text),
        }
        self.outlet.end_with(end);
        Sending { events, left: sent, keeps_connection, is_cut_off: false }
    }

    /// Sends a response to its end.
    fn poll_response(
        &mut self,
        sending: &mut Sending,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            while let Some(events) = &mut sending.events
                && self.outlet.has_room(ENOUGH)
            {
                match events.as_mut().poll_events(cx) {
                    Poll::Ready(text) => {
                        let text = text.transpose();
                        if text.and_then(|it| sending.write(it, &mut self.outlet)).is_err() {
                            // The client gets what has come, and no end of it.
                            (sending.events, sending.is_cut_off) = (None, true);
                        }
                    }
                    Poll::Pending => break,
                }
            }
            let is_waiting = self.outlet.has_room(ENOUGH);
            ready!(self.poll_write(cx))?;
            if sending.events.is_none() {
                return Poll::Ready(if sending.is_cut_off { Err(cut_off()) } else { Ok(()) });
            }
            if is_waiting {
                ready!(self.poll_hang_up(cx));
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Ends the connection with a status.
    async fn refuse(mut self, status: StatusCode) -> End {
        // From now on it is the peer who keeps us waiting.
        self.tracker.begin();
        let (sent, out) = (Sent::Bytes(0), self.outlet.more());
        write_head(status, &HeaderMap::new(), sent, Follow::No, now(), out);
        match poll_fn(|cx| self.poll_write(cx)).await {
            Ok(()) => End::Unread,
            Err(_) => End::ByPeer,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let before = self.outlet.left();
        let polled = self.outlet.poll_write(self.stream, cx);
        self.tracker.wrote(polled.is_ready(), self.outlet.left() < before);
        polled
    }

    /// Gives back the memory that a connection does not need while it waits for a request.
    fn shrink(&mut self) {
        self.inlet.shrink();
        self.outlet.release();
    }
}

/// What a connection reads at first: more than most requests have.
const ROOM: usize = 2 << 10;
/// More than most heads of responses have.
const HEAD_ROOM: usize = 256;
/// Events that are written at once. More of them are made when these are written.
const ENOUGH: usize = 16 << 10;

#[cfg(test)]
mod tests;
