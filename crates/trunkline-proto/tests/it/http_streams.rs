//! The streams of a session against a naive model: within the bounds nothing is lost, duplicated or
//! reordered, and the bounds hold.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::StatusCode;
use trunkline_proto::RequestStream;
use trunkline_proto::http::event::{EventId, Owed};
use trunkline_proto::http::streams::{Beginning, Bounds, Read, Reader, Streams, Style};
use trunkline_testkit::{Dice, repeats};
use trunkline_wire::frame::sse::{Decoder, Received};

use crate::transcript::start;

const WIDE: Bounds =
    Bounds { events: 1 << 20, bytes: 1 << 30, keep: Duration::from_secs(1 << 20), unread: 1 << 30 };
const OLD: Style = Style::Resumable { primed: false };
const PRIMED: Style = Style::Resumable { primed: true };

/// A tag that only this server can compute.
fn mac(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes.iter().fold(1, add) | 1
}

fn id(stream: u64, place: u64) -> EventId {
    EventId::issue(stream, place, &Owed::default(), mac)
}

/// One event as it was sent.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    id: Option<EventId>,
    event: Option<String>,
    retry: Option<u64>,
    text: String,
}

fn take(streams: &mut Streams, reader: Reader, now: Instant) -> (Vec<Seen>, Read) {
    let mut out = Vec::new();
    let read = streams.read(reader, now, mac, &mut out);
    (parse(&out), read)
}

fn parse(bytes: &[u8]) -> Vec<Seen> {
    let mut decoder = Decoder::new(1 << 20);
    decoder.push(bytes);
    let mut seen = Vec::new();
    while let Some(received) = decoder.next() {
        let Received::Event(event) = received else { panic!("an event is too long") };
        let parsed = event.id.map(|it| EventId::parse(it).expect("ids can be read"));
        assert!(parsed.is_none_or(|it| it == id(it.stream, it.place)));
        seen.push(Seen {
            id: parsed,
            event: event.event.map(str::to_owned),
            retry: event.retry,
            text: String::from_utf8(event.data.to_vec()).unwrap(),
        });
    }
    seen
}

fn texts(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|it| &*it.text).filter(|it| !it.is_empty()).collect()
}

#[test]
fn an_answer_alone_is_one_text() {
    let (mut streams, now) = (Streams::new(PRIMED, WIDE), start());
    let via = streams.next_via();
    let reader = streams.open(via);
    assert_eq!(streams.beginning(reader), Beginning::Unknown);
    assert_eq!(streams.say(Some(via), b"x".to_vec(), Some(StatusCode::NOT_FOUND), now), Some(via));
    let whole = Beginning::Whole(StatusCode::NOT_FOUND, b"x".to_vec());
    assert_eq!(streams.beginning(reader), whole);
    // It was sent as one text, so there is nothing to resume.
    assert_eq!(streams.resume(id(via.0, 0)), None);
    assert!(!streams.is_read());
}

#[test]
fn news_makes_it_a_stream_that_ends_with_the_answer() {
    for (style, primed) in [(OLD, false), (PRIMED, true)] {
        let (mut streams, now) = (Streams::new(style, WIDE), start());
        let via = streams.next_via();
        let reader = streams.open(via);
        streams.say(Some(via), b"news".to_vec(), None, now);
        assert_eq!(streams.beginning(reader), Beginning::Events);
        let (seen, read) = take(&mut streams, reader, now);
        assert_eq!((seen.len(), read), (1 + usize::from(primed), Read::Open));
        assert_eq!(texts(&seen), ["news"]);
        assert_eq!(seen[0].id, Some(id(via.0, u64::from(!primed))));
        assert_eq!(take(&mut streams, reader, now), (vec![], Read::Open));
        streams.say(Some(via), b"answer".to_vec(), Some(StatusCode::OK), now);
        let (seen, read) = take(&mut streams, reader, now);
        assert_eq!((texts(&seen), read), (vec!["answer"], Read::End));
        assert!(!streams.is_read());
    }
}

#[test]
fn nothing_to_answer_is_silence() {
    let (mut streams, now) = (Streams::new(PRIMED, WIDE), start());
    let via = streams.next_via();
    let reader = streams.open(via);
    assert_eq!(streams.no_reply(via, now), Some(via));
    assert_eq!(streams.beginning(reader), Beginning::Silence);
}

#[test]
fn news_without_an_answer_is_a_stream_and_no_answer() {
    // The call was cancelled, or its session ended, before the first read.
    for ends in [
        |it: &mut Streams, via, now| _ = it.no_reply(via, now),
        |it: &mut Streams, _, now| it.end(now),
    ] {
        let (mut streams, now) = (Streams::new(PRIMED, WIDE), start());
        let via = streams.next_via();
        let reader = streams.open(via);
        streams.say(Some(via), b"news".to_vec(), None, now);
        ends(&mut streams, via, now);
        assert_eq!(streams.beginning(reader), Beginning::Events);
        let (seen, read) = take(&mut streams, reader, now);
        assert_eq!((texts(&seen), read), (vec!["news"], Read::End));
    }
}

#[test]
fn an_id_that_is_wrong_does_not_keep_a_stream_for_ever() {
    let bounds = Bounds { keep: Duration::from_secs(60), ..WIDE };
    let (mut streams, now) = (Streams::new(OLD, bounds), start());
    let via = streams.next_via();
    let reader = streams.open(via);
    streams.say(Some(via), b"news".to_vec(), None, now);
    streams.beginning(reader);
    streams.say(Some(via), b"answer".to_vec(), Some(StatusCode::OK), now);
    take(&mut streams, reader, now);
    assert_eq!(streams.resume(id(via.0, 99)), None);
    streams.sweep(now + Duration::from_secs(61));
    assert_eq!(streams.resume(id(via.0, 1)), None);
}

#[test]
fn a_pause_says_when_to_come_back_and_ends_the_stream() {
    let (mut streams, now) = (Streams::new(PRIMED, WIDE), start());
    let via = streams.next_via();
    let reader = streams.open(via);
    assert_eq!(streams.pause(via, Duration::from_millis(1500)), Some(via));
    assert_eq!(streams.beginning(reader), Beginning::Events);
    let (seen, read) = take(&mut streams, reader, now);
    assert_eq!(read, Read::End);
    let prime =
        Seen { id: Some(id(via.0, 0)), event: None, retry: Some(1500), text: String::new() };
    assert_eq!(seen, [prime]);
    // Messages sent meanwhile wait.
    streams.say(Some(via), b"a".to_vec(), None, now);
    let reader = streams.resume(id(via.0, 0)).expect("it can be asked for");
    streams.say(Some(via), b"b".to_vec(), None, now);
    let (seen, read) = take(&mut streams, reader, now);
    assert_eq!((texts(&seen), read), (vec!["a", "b"], Read::Open));
    // In the middle it carries the last id.
    streams.pause(via, Duration::from_millis(7));
    let (seen, read) = take(&mut streams, reader, now);
    assert_eq!(read, Read::End);
    assert_eq!((seen[0].id, seen[0].retry), (Some(id(via.0, 2)), Some(7)));
    streams.say(Some(via), b"c".to_vec(), Some(StatusCode::OK), now);
    let reader = streams.resume(id(via.0, 2)).expect("it can be asked for");
    let (seen, read) = take(&mut streams, reader, now);
    assert_eq!((texts(&seen), read), (vec!["c"], Read::End));
    assert_eq!(streams.pause(RequestStream(99), Duration::ZERO), None);
    assert_eq!(streams.pause(RequestStream(0), Duration::ZERO), None);
}

#[test]
fn one_reader_takes_the_place_of_another() {
    let (mut streams, now) = (Streams::new(OLD, WIDE), start());
    let first = streams.attach();
    streams.say(None, b"a".to_vec(), None, now);
    assert_eq!(texts(&take(&mut streams, first, now).0), ["a"]);
    let second = streams.attach();
    streams.say(None, b"b".to_vec(), None, now);
    assert_eq!(take(&mut streams, first, now), (vec![], Read::End));
    streams.detach(first, now);
    assert!(streams.is_read(), "the one that left was not the one that reads");
    assert_eq!(texts(&take(&mut streams, second, now).0), ["b"]);
    let third = streams.resume(id(0, 1)).unwrap();
    assert_eq!(take(&mut streams, second, now).1, Read::End);
    assert_eq!(texts(&take(&mut streams, third, now).0), ["b"]);
}

#[test]
fn a_duplicate_notification_without_a_reader_is_dropped() {
    let (mut streams, now) = (Streams::new(OLD, WIDE), start());
    for text in ["a", "b", "a", "a", "b", "c"] {
        streams.say(None, text.into(), None, now);
    }
    let reader = streams.attach();
    assert_eq!(texts(&take(&mut streams, reader, now).0), ["a", "b", "c"]);
    // A reader that is attached gets it again.
    streams.say(None, b"a".to_vec(), None, now);
    streams.say(None, b"a".to_vec(), None, now);
    assert_eq!(texts(&take(&mut streams, reader, now).0), ["a", "a"]);
    // Nor does an event that was read suppress the next.
    streams.detach(reader, now);
    streams.say(None, b"a".to_vec(), None, now);
    let reader = streams.attach();
    assert_eq!(texts(&take(&mut streams, reader, now).0), ["a"]);
}

#[test]
fn the_old_transport_has_one_stream_without_ids() {
    let (mut streams, now) = (Streams::new(Style::Single, WIDE), start());
    let reader = streams.attach();
    for (via, last) in [
        (None, None),
        (Some(RequestStream(1)), None),
        (Some(RequestStream(2)), Some(StatusCode::OK)),
    ] {
        assert_eq!(streams.say(via, b"x".to_vec(), last, now), Some(RequestStream(0)));
    }
    let (seen, read) = take(&mut streams, reader, now);
    assert_eq!(read, Read::Open, "an answer does not end it");
    let message =
        Seen { id: None, event: Some("message".to_owned()), retry: None, text: "x".to_owned() };
    assert_eq!(seen, [message.clone(), message.clone(), message]);
    streams.end(now);
    assert_eq!(take(&mut streams, reader, now).1, Read::End);
}

#[test]
fn a_stream_that_is_over_is_kept_for_a_while() {
    let bounds = Bounds { keep: Duration::from_secs(60), ..WIDE };
    let (mut streams, now) = (Streams::new(OLD, bounds), start());
    let finish = |streams: &mut Streams, now| {
        let via = streams.next_via();
        let reader = streams.open(via);
        streams.say(Some(via), b"news".to_vec(), None, now);
        streams.beginning(reader);
        streams.say(Some(via), b"answer".to_vec(), Some(StatusCode::OK), now);
        assert_eq!(take(streams, reader, now).1, Read::End);
        via
    };
    let via = finish(&mut streams, now);
    let almost = now + Duration::from_secs(59);
    streams.sweep(almost);
    // Resuming does not extend its life.
    let reader = streams.resume(id(via.0, 1)).expect("it is kept");
    let (seen, read) = take(&mut streams, reader, almost);
    assert_eq!((texts(&seen), read), (vec!["answer"], Read::End));
    streams.sweep(now + Duration::from_secs(60));
    assert_eq!(streams.resume(id(via.0, 1)), None);
    // Only so many are kept, the newest.
    let vias: Vec<_> = (0..200).map(|_| finish(&mut streams, now)).collect();
    let kept: Vec<_> = vias.iter().filter(|it| streams.resume(id(it.0, 1)).is_some()).collect();
    assert!(kept.len() <= 64, "{} are kept", kept.len());
    assert_eq!(kept.last(), Some(&&vias[199]));
}

#[test]
fn finished_streams_are_kept_within_the_byte_bound() {
    let bounds = Bounds { bytes: 1000, ..WIDE };
    let (mut streams, now) = (Streams::new(OLD, bounds), start());
    let mut vias = Vec::new();
    for _ in 0..20 {
        let via = streams.next_via();
        let reader = streams.open(via);
        streams.say(Some(via), vec![b'a'; 150], None, now);
        streams.beginning(reader);
        streams.say(Some(via), vec![b'b'; 150], Some(StatusCode::OK), now);
        take(&mut streams, reader, now);
        vias.push(via);
    }
    let kept = vias.iter().filter(|it| streams.resume(id(it.0, 1)).is_some()).count();
    assert_eq!(kept, 3, "of 300 bytes each in 1000");
    // Repeated resumption costs nothing.
    for _ in 0..100 {
        let reader = streams.resume(id(vias[19].0, 1)).expect("it is kept");
        assert_eq!(take(&mut streams, reader, now).1, Read::End);
    }
}

#[test]
fn a_reader_that_is_far_behind_is_noticed() {
    let bounds = Bounds { unread: 100, ..WIDE };
    let (mut streams, now) = (Streams::new(OLD, bounds), start());
    streams.say(None, vec![b'x'; 200], None, now);
    assert!(!streams.is_congested(), "nobody reads, so nobody is behind");
    let reader = streams.attach();
    assert!(streams.is_congested());
    take(&mut streams, reader, now);
    assert!(!streams.is_congested());
    let via = streams.next_via();
    let reader = streams.open(via);
    streams.say(Some(via), vec![b'x'; 101], None, now);
    assert!(streams.is_congested());
    streams.detach(reader, now);
    assert!(!streams.is_congested());
}

#[test]
fn without_a_reader_only_the_newest_events_are_kept() {
    for bounds in [Bounds { events: 5, ..WIDE }, Bounds { bytes: 5, ..WIDE }] {
        let (mut streams, now) = (Streams::new(OLD, bounds), start());
        for letter in b'a'..=b'z' {
            streams.say(None, vec![letter], None, now);
        }
        let reader = streams.attach();
        assert_eq!(texts(&take(&mut streams, reader, now).0), ["v", "w", "x", "y", "z"]);
        // With a reader attached, no unread event is evicted.
        for letter in b'A'..=b'Z' {
            streams.say(None, vec![letter], None, now);
        }
        assert_eq!(take(&mut streams, reader, now).0.len(), 26);
        streams.detach(reader, now);
        let reader = streams.resume(id(0, 26)).unwrap();
        assert_eq!(texts(&take(&mut streams, reader, now).0), ["V", "W", "X", "Y", "Z"]);
    }
}

#[test]
fn an_id_of_nothing_yields_nothing() {
    let (mut streams, now) = (Streams::new(OLD, WIDE), start());
    let via = streams.next_via();
    let reader = streams.open(via);
    // No client can know an id before the first event.
    assert_eq!(streams.resume(id(via.0, 0)), None);
    streams.say(Some(via), b"a".to_vec(), None, now);
    streams.beginning(reader);
    for (stream, place) in [(via.0, 2), (via.0, u64::MAX), (via.0 + 1, 0), (u64::MAX, 1), (0, 1)] {
        assert_eq!(streams.resume(id(stream, place)), None, "{stream}-{place}");
    }
    // None of that replaced the reader.
    assert_eq!(texts(&take(&mut streams, reader, now).0), ["a"]);
}

/// The model of one stream.
#[derive(Default)]
struct Model {
    /// Every message in order; the first has position 1.
    said: Vec<String>,
    over: bool,
    /// Whether an event of it was sent, so that the client has an id to resume with.
    known: bool,
    reader: Option<Reader>,
    /// The position after the last event that the client has.
    next: u64,
    /// It was sent as one text, or cannot be resumed.
    gone: bool,
}

impl Model {
    /// The events that a read must return.
    fn check(&mut self, stream: u64, seen: &[Seen], bounds: Bounds) {
        for event in seen {
            let at = event.id.expect("every event has an id");
            assert_eq!(at.stream, stream, "an event of another stream");
            if event.text.is_empty() {
                assert_eq!(
                    at.place,
                    self.next - 1,
                    "an event that says nothing stands where it is"
                );
                continue;
            }
            let kept = self.said.len() as u64 - (bounds.events as u64).min(self.said.len() as u64);
            assert!(
                at.place == self.next || (at.place > self.next && self.next <= kept),
                "place {} came where {} was to come; the oldest that must be kept is {}",
                at.place,
                self.next,
                kept + 1
            );
            assert_eq!(event.text, self.said[at.place as usize - 1], "at {}", at.place);
            self.next = at.place + 1;
        }
        assert_eq!(self.next, self.said.len() as u64 + 1, "everything was read");
        self.known |= !seen.is_empty();
    }
}

#[test]
fn random_readers_get_everything_once_and_in_order_under_stress() {
    for seed in 0..repeats(400, 20_000) as u64 {
        let mut dice = Dice(seed ^ 0x5eed);
        let narrow = Bounds { events: 1 + dice.roll(6), ..WIDE };
        let bounds = if seed % 2 == 0 { WIDE } else { narrow };
        let style = if dice.roll(2) == 0 { OLD } else { PRIMED };
        story(&mut dice, style, bounds);
    }
}

fn story(dice: &mut Dice, style: Style, bounds: Bounds) {
    let mut now = start();
    let mut streams = Streams::new(style, bounds);
    let mut models: BTreeMap<u64, Model> = BTreeMap::new();
    models.insert(0, Model { next: 1, ..Model::default() });
    let mut texts = 0;
    for _ in 0..200 {
        now += Duration::from_millis(dice.below(1000));
        let count = models.len();
        let keys: Vec<u64> = models.iter().filter(|it| !it.1.gone).map(|it| *it.0).collect();
        let stream = keys[dice.roll(keys.len())];
        let model = models.get_mut(&stream).unwrap();
        match dice.roll(12) {
            // Beyond this number, finished streams would be evicted.
            0 if count < 50 => {
                let via = streams.next_via();
                let reader = Some(streams.open(via));
                models.insert(via.0, Model { reader, next: 1, ..Model::default() });
            }
            1..=4 if !model.over => {
                texts += 1;
                let text = format!("{stream}:{texts}");
                let last = (stream != 0 && dice.roll(6) == 0).then_some(StatusCode::OK);
                let via = (stream != 0 || dice.roll(2) == 0).then_some(RequestStream(stream));
                assert_eq!(
                    streams.say(via, text.clone().into(), last, now),
                    Some(RequestStream(stream))
                );
                model.said.push(text);
                model.over = last.is_some();
            }
            5..=7 => {
                let Some(reader) = model.reader else { continue };
                if stream != 0 && !model.known {
                    match streams.beginning(reader) {
                        Beginning::Events => {}
                        Beginning::Unknown => {
                            assert!(!model.over && model.said.is_empty());
                            continue;
                        }
                        Beginning::Whole(status, text) => {
                            assert!(model.over && model.said.len() == 1);
                            assert_eq!(status, StatusCode::OK);
                            assert_eq!(text, model.said[0].as_bytes());
                            model.gone = true;
                            continue;
                        }
                        Beginning::Silence => panic!("something was said"),
                    }
                }
                let (seen, read) = take(&mut streams, reader, now);
                model.check(stream, &seen, bounds);
                // A pause ends a read, and so does the answer.
                if read == Read::End {
                    model.reader = None;
                } else {
                    assert!(!model.over, "after the answer a stream ends");
                }
            }
            8 => {
                let Some(reader) = model.reader.take() else { continue };
                streams.detach(reader, now);
                // A response that was no stream cannot be resumed.
                model.gone = stream != 0 && !model.known;
            }
            9 | 10 if model.known => {
                // From any position the client has had that is still kept.
                let oldest = match bounds.events >= model.said.len() {
                    true => 0,
                    false => (model.said.len() - bounds.events) as u64,
                };
                let had = model.next - 1;
                let place = had.min(oldest + dice.below(had.saturating_sub(oldest) + 1));
                let reader = streams.resume(id(stream, place));
                if model.over && place as usize == model.said.len() {
                    assert_eq!(reader, None, "after the answer there is nothing to come back for");
                    continue;
                }
                assert!(reader.is_some(), "place {place} of {stream} is kept");
                if let Some(former) = std::mem::replace(&mut model.reader, reader) {
                    assert_eq!(take(&mut streams, former, now), (vec![], Read::End));
                }
                model.next = place + 1;
            }
            11 => match stream {
                0 if model.reader.is_none() => {
                    model.reader = Some(streams.attach());
                }
                0 => streams.sweep(now),
                _ if model.known && !model.over && model.reader.is_some() => {
                    let retry = Duration::from_millis(dice.below(100));
                    assert_eq!(
                        streams.pause(RequestStream(stream), retry),
                        Some(RequestStream(stream))
                    );
                }
                _ => {}
            },
            _ => {}
        }
    }
    // Finally every reader resumes to the end.
    for (stream, model) in models.iter_mut().filter(|it| !it.1.gone && it.1.known) {
        model.reader = streams.resume(id(*stream, model.next - 1));
        if model.over && model.next as usize > model.said.len() {
            assert_eq!(model.reader, None, "after the answer there is nothing to come back for");
            continue;
        }
        let reader = model.reader.expect("it is kept");
        let (seen, read) = take(&mut streams, reader, now);
        model.check(*stream, &seen, bounds);
        assert_eq!(read == Read::End, model.over);
    }
}
