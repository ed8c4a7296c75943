//! An event stream: its events do not depend on where the chunks end, and are written and read again
//! as the same events.

use trunkline_wire::frame::sse::{Decoder, Event, Received};
use trunkline_wire::jsonrpc::Malformed;

use crate::input::{Input, chunks};

#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Event { event: Option<String>, id: Option<String>, retry: Option<u64>, data: Vec<u8> },
    TooLong(Malformed),
}

/// A byte for the limit, one for the chunks, then the stream.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (mode, seed) = (input.byte(), input.byte());
    let stream = input.rest();
    let limit = LIMITS[usize::from(mode) % LIMITS.len()];

    let whole = read(limit, [stream].into_iter());
    let parts = read(limit, chunks(stream, seed));
    assert_eq!(whole, parts, "it matters where the chunks end");

    let mut again = Vec::new();
    let mut events = Vec::new();
    for received in whole {
        let Owned::Event { event, id, retry, data } = &received else { continue };
        assert!(data.len() <= limit.saturating_add(SLACK), "an event over the limit");
        Event { event: event.as_deref(), id: id.as_deref(), retry: *retry, data }.write(&mut again);
        events.push(received);
    }
    assert_eq!(read(1 << 20, chunks(&again, seed)), events, "{}", again.escape_ascii());
}

fn read<'a>(limit: usize, chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Owned> {
    let mut decoder = Decoder::new(limit);
    let mut found = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(received) = decoder.next() {
            found.push(match received {
                Received::Event(it) => Owned::Event {
                    event: it.event.map(str::to_owned),
                    id: it.id.map(str::to_owned),
                    retry: it.retry,
                    data: it.data.to_vec(),
                },
                Received::TooLong(malformed) => Owned::TooLong(malformed),
            });
        }
    }
    found
}

/// The name of a field is not counted.
const SLACK: usize = 6;
const LIMITS: &[usize] = &[1 << 20, 0, 1, 8, 32, 200, usize::MAX];
pub(crate) const WORDS: &[&str] = &[
    "data: ",
    "data:",
    "data",
    "event: ",
    "event: message",
    "id: ",
    "id:",
    "retry: ",
    "retry: 500",
    "\n\n",
    "\r\n\r\n",
    "\r\r",
    ": comment",
    "\u{feff}",
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}",
    "\0",
    "18446744073709551615",
];
