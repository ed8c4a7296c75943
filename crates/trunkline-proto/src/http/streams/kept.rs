//! What another process needs to go on with a stream: its events, and the answers it owes.

use std::sync::Arc;
use std::time::Instant;

use trunkline_wire::jsonrpc::Id;

use super::{Debts, Stream, Streams};
use crate::RequestStream;

/// An event that another process may have to send again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The stream.
    pub stream: u64,
    /// Its position there. Position 0 is the empty first event.
    pub place: u64,
    /// The message; empty if the event only says what the stream owes.
    pub text: Vec<u8>,
    /// The ids of the requests, as JSON, whose answers the stream owes after this event.
    pub owes: Vec<String>,
}

/// The ids of the requests in one POST. Few POSTs are answered with events, so they are not written as JSON before
/// one is.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestIds {
    first: Id,
    more: Vec<Id>,
}

impl RequestIds {
    /// These ids; `None` if there are none.
    pub fn of(ids: impl IntoIterator<Item = Id>) -> Option<Arc<Self>> {
        let mut ids = ids.into_iter();
        let first = ids.next()?;
        Some(Arc::new(Self { first, more: ids.collect() }))
    }

    /// The ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Id> {
        [&self.first].into_iter().chain(&self.more)
    }
}

/// Events that nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct KeptEvents(Vec<Kept>);

impl Streams {
    /// From now on, [`Self::take_kept`] has every event that a client can resume after.
    pub fn keep_events(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// The events since the last call, in order.
    pub fn take_kept(&mut self) -> Vec<Kept> {
        self.kept.as_mut().map(|it| std::mem::take(&mut it.0)).unwrap_or_default()
    }

    /// Sets the requests whose answers a POST's stream owes.
    pub fn owes(&mut self, via: RequestStream, requests: Arc<RequestIds>) {
        if let Some(stream) = self.open.iter_mut().find(|it| it.id == via.0) {
            stream.requests = Some(requests);
        }
    }

    /// Goes on after another process: POSTs are numbered after `posts`, and the general stream begins at
    /// `general`. No id of the other process is issued again.
    pub fn go_on_after(&mut self, posts: u64, general: u64) {
        self.next = posts;
        self.general.oldest = general;
        self.general.taken = general;
    }

    /// The number of the newest POST.
    pub fn newest_via(&self) -> RequestStream {
        RequestStream(self.next)
    }

    /// Takes over the events of a stream that ended with its process. Does nothing and returns false if the
    /// stream is known.
    pub fn adopt(&mut self, id: u64, events: Vec<Kept>, now: Instant) -> bool {
        if id == 0 || self.open.iter().chain(&self.over).any(|it| it.id == id) {
            return false;
        }
        let mut stream = Stream { id, oldest: 1, is_events: true, ..Stream::default() };
        stream.owes_as(&events);
        for event in events.into_iter().filter(|it| !it.text.is_empty()) {
            // What is missing in between was evicted, and so is what came before.
            if event.place != stream.end() {
                (stream.oldest, stream.bytes) = (event.place, 0);
                stream.events.clear();
            }
            stream.bytes += event.text.len();
            stream.events.push_back(event.text);
        }
        stream.over = Some(now);
        self.open.push(stream);
        self.retire(RequestStream(id), now);
        true
    }

    /// Keeps all events of a stream that turns out to be one.
    pub(super) fn keep_whole(&mut self, via: RequestStream) {
        let Some(stream) = self.live(via) else { return };
        if let Some(requests) = stream.requests.take() {
            let ids = requests.iter().map(|it| it.to_json().get().to_owned()).collect();
            stream.debts = Some(Box::new(Debts { ids, ..Debts::default() }));
        }
        let owes = stream.debts.as_ref().map(|it| it.ids.clone()).unwrap_or_default();
        let first = Kept { stream: stream.id, place: 0, text: Vec::new(), owes };
        let events = stream.events.iter().zip(stream.oldest..);
        let events = events.map(|(text, place)| stream.kept(place, text.clone()));
        let all: Vec<_> = [first].into_iter().chain(events).collect();
        self.kept.get_or_insert_default().0.extend(all);
    }

    /// Keeps the newest event of a stream, if it is known to be one.
    pub(super) fn keep_last(&mut self, via: RequestStream) {
        let Some(stream) = self.live(via).filter(|it| it.is_events) else { return };
        let Some(text) = stream.events.back() else { return };
        let kept = stream.kept(stream.end() - 1, text.clone());
        self.kept.get_or_insert_default().0.push(kept);
    }

    /// Keeps the end of a stream that ends without an answer.
    pub(super) fn keep_end(&mut self, via: RequestStream) {
        let Some(stream) = self.live(via).filter(|it| it.is_events) else { return };
        let kept = stream.kept(stream.end(), Vec::new());
        self.kept.get_or_insert_default().0.push(kept);
    }
}

impl Stream {
    /// The event at `place`.
    fn kept(&self, place: u64, text: Vec<u8>) -> Kept {
        Kept { stream: self.id, place, text, owes: self.owed_after(place).to_vec() }
    }

    /// Owes what the events say, so that they keep their ids.
    fn owes_as(&mut self, events: &[Kept]) {
        let Some(first) = events.first() else { return };
        let mut debts = Debts { ids: first.owes.clone(), ..Debts::default() };
        for event in &events[1..] {
            let left = debts.fewer.last().map_or(debts.ids.len(), |(_, left)| *left);
            if event.owes.len() < left {
                debts.fewer.push((event.place, event.owes.len()));
            }
        }
        self.debts = Some(Box::new(debts));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::super::{Beginning, Bounds, EventId, Read, Reader, RequestStream, Style};
    use super::*;

    const BOUNDS: Bounds =
        Bounds { events: 8, bytes: 1000, keep: Duration::from_secs(60), unread: 1000 };

    #[allow(clippy::disallowed_methods)] // A test has to begin somewhere.
    fn start() -> (Streams, Instant) {
        let mut streams = Streams::new(Style::Resumable { primed: false }, BOUNDS);
        streams.keep_events();
        (streams, Instant::now())
    }

    /// The same with the stream of a request, whose answer is owed.
    fn start_stream() -> (Streams, Instant, RequestStream, Reader) {
        let (mut streams, now) = start();
        let via = streams.next_via();
        let reader = streams.open(via);
        streams.owes(via, RequestIds::of([Id::Number(7)]).unwrap());
        (streams, now, via, reader)
    }

    /// Each event as "stream-place text owes".
    fn shown(kept: &[Kept]) -> Vec<String> {
        let text = |it: &[u8]| String::from_utf8(it.to_vec()).unwrap();
        let one = |it: &Kept| {
            format!("{}-{} [{}] owes [{}]", it.stream, it.place, text(&it.text), it.owes.join(","))
        };
        kept.iter().map(one).collect()
    }

    #[test]
    fn an_answer_in_one_text_is_not_kept() {
        let (mut streams, now, via, reader) = start_stream();
        streams.say(Some(via), b"answer".to_vec(), Some(StatusCode::OK), now);
        assert!(matches!(streams.beginning(reader), Beginning::Whole(..)));
        assert_eq!(streams.take_kept(), []);
    }

    #[test]
    fn a_stream_is_kept_from_its_first_event_to_its_answer() {
        let (mut streams, now, via, reader) = start_stream();
        streams.say(Some(via), b"half".to_vec(), None, now);
        assert_eq!(streams.take_kept(), [], "nobody knows yet that it is a stream");
        assert_eq!(streams.beginning(reader), Beginning::Events);
        let kept = streams.take_kept();
        assert_eq!(shown(&kept), ["1-0 [] owes [7]", "1-1 [half] owes [7]"]);
        streams.say(Some(via), b"answer".to_vec(), Some(StatusCode::OK), now);
        assert_eq!(shown(&streams.take_kept()), ["1-2 [answer] owes []"]);
    }

    #[test]
    fn the_end_of_a_cancelled_request_is_kept() {
        let (mut streams, now, via, _) = start_stream();
        streams.pause(via, Duration::from_secs(1));
        streams.no_reply(via, now);
        let kept = streams.take_kept();
        assert_eq!(shown(&kept), ["1-0 [] owes [7]", "1-1 [] owes []"]);
    }

    #[test]
    fn an_adopted_stream_is_resumed_where_it_was() {
        let (mut streams, now) = start();
        streams.go_on_after(1 << 20, 100);
        let event = |place, text: &str| {
            let text = text.as_bytes().to_vec();
            Kept { stream: 3, place, text, owes: Vec::new() }
        };
        streams.adopt(3, vec![event(0, ""), event(1, "a"), event(2, "b"), event(3, "c")], now);
        let reader = streams.resume(EventId { stream: 3, place: 1, tag: 0 }).unwrap();
        let mut out = Vec::new();
        assert_eq!(streams.read(reader, now, |_| 0, &mut out), Read::End);
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains("data: a") && out.contains("data: b") && out.contains("data: c"));
        assert_eq!(streams.resume(EventId { stream: 3, place: 3, tag: 0 }), None, "all was read");
        streams.say(None, b"news".to_vec(), None, now);
        assert_eq!(shown(&streams.take_kept()), ["0-100 [news] owes []"]);
        assert_eq!(streams.next_via().0, (1 << 20) + 1);
    }

    /// The ids of all events that a reader gets after `place`.
    fn ids(streams: &mut Streams, place: u64, now: Instant) -> Vec<String> {
        let reader = streams.resume(EventId { stream: 1, place, tag: 0 }).unwrap();
        let mut out = Vec::new();
        streams.read(reader, now, |it| it.len() as u64, &mut out);
        let out = String::from_utf8(out).unwrap();
        out.lines().filter_map(|it| it.strip_prefix("id: ")).map(str::to_owned).collect()
    }

    #[test]
    fn an_id_names_what_is_owed_and_keeps_it_in_another_process() {
        let (mut streams, now) = start();
        let via = streams.next_via();
        let reader = streams.open(via);
        streams.owes(via, RequestIds::of([7, 8].map(Id::Number)).unwrap());
        streams.say(Some(via), b"half".to_vec(), None, now);
        streams.beginning(reader);
        let mut kept = streams.take_kept();
        streams.say(Some(via), b"answers".to_vec(), Some(StatusCode::OK), now);
        streams.detach(reader, now);
        let issued = ids(&mut streams, 0, now);
        assert_eq!(issued, ["1-1-0000000000000013-7,8", "1-2-0000000000000010"]);
        // Another process has the answers of a batch.
        let (mut other, now) = start();
        other.adopt(1, kept.iter().cloned().chain(streams.take_kept()).collect(), now);
        assert_eq!(ids(&mut other, 0, now), issued);
        // Or it tells of each that it is lost.
        let lost = |place, owes| Kept { stream: 1, place, text: vec![b'x'], owes };
        kept.extend([lost(2, vec!["8".to_owned()]), lost(3, vec![])]);
        let (mut other, now) = start();
        other.adopt(1, kept.clone(), now);
        let told = ids(&mut other, 0, now);
        let expected =
            ["1-1-0000000000000013-7,8", "1-2-0000000000000011-8", "1-3-0000000000000010"];
        assert_eq!(told, expected);
        let (mut third, now) = start();
        third.adopt(1, kept.split_off(2), now);
        assert_eq!(ids(&mut third, 1, now), expected[1..]);
    }

    #[test]
    fn what_is_missing_in_a_kept_stream_is_skipped() {
        let (mut streams, now) = start();
        let event = |place| Kept { stream: 3, place, text: vec![b'x'], owes: Vec::new() };
        streams.adopt(3, vec![event(4), event(5), event(8)], now);
        assert!(streams.resume(EventId { stream: 3, place: 5, tag: 0 }).is_some());
        assert_eq!((streams.open[0].oldest, streams.open[0].bytes), (8, 1));
    }
}
