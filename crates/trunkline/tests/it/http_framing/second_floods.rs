//! HTTP/2: what is cheap to send and expensive to answer. Each is bounded, and the server keeps
//! serving.

use trunkline_testkit::http::bad::rows::MODERN;

use super::Counted;
use super::frames::Heard::{End, GoAway, Status};
use super::frames::*;

/// Sends bytes many times, whatever the server answers.
async fn flood(wire: &mut Wire, bytes: &[u8], times: usize) {
    for _ in 0..times {
        wire.send(bytes).await;
    }
}

/// A server, a connection to it, and the headers of a call, packed.
async fn opened() -> (Counted, Wire, Vec<u8>) {
    let counted = Counted::new().await;
    let address = counted.house.address;
    (counted, Wire::open(address).await, packed(&fields(address)))
}

#[tokio::test]
async fn headers_that_never_end_are_given_up() {
    let counted = Counted::new().await;
    let address = counted.house.address;
    // Small, empty and large frames, none of which is the last.
    for (size, times) in [(1, 20_000), (0, 100_000), (16_000, 200)] {
        let mut wire = Wire::open(address).await;
        wire.send(&frame(HEADERS, END_STREAM, 1, &packed(&fields(address)))).await;
        let piece = field("x", &"y".repeat(size));
        let piece = if size == 0 { &[][..] } else { &piece };
        flood(&mut wire, &frame(CONTINUATION, 0, 1, piece), times).await;
        let heard = wire.outcome(1).await;
        assert!(matches!(heard, GoAway(CALM | COMPRESSION) | End), "{size}: {heard:?}");
        counted.goes_on((0, 0), size).await;
    }
}

#[tokio::test]
async fn streams_that_are_opened_and_reset_are_counted() {
    let (counted, mut wire, head) = opened().await;
    for stream in (1..2000).step_by(2) {
        let reset = frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        wire.send(&[frame(HEADERS, END_HEADERS, stream, &head), reset].concat()).await;
    }
    let heard = wire.outcome(0).await;
    assert!(matches!(heard, GoAway(CALM) | End), "{heard:?}");
    wire.over().await;
    // None had a body, so none was a call.
    counted.goes_on((0, 0), "the flood").await;
}

#[tokio::test]
async fn streams_that_have_the_server_reset_them_are_counted() {
    let (counted, mut wire, head) = opened().await;
    for stream in (1..6000).step_by(2) {
        // A window beyond the maximum makes the server reset the stream.
        let much = frame(WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff]);
        wire.send(&[frame(HEADERS, END_HEADERS, stream, &head), much].concat()).await;
    }
    let mut resets = 0;
    let heard = loop {
        match wire.frame().await {
            None => break End,
            Some((GOAWAY, _, payload)) => {
                break GoAway(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
            }
            Some((kind, ..)) => resets += usize::from(kind == RST_STREAM),
        }
    };
    assert!(matches!(heard, GoAway(CALM) | End), "{heard:?} after {resets} resets");
    assert!(resets <= 1100, "{resets}");
    counted.goes_on((0, 0), "the flood").await;
}

#[tokio::test]
async fn more_streams_than_allowed_wait_for_nobody() {
    let (counted, mut wire, head) = opened().await;
    // Calls whose bodies never come, until the limit is reached.
    for stream in (1..2001).step_by(2) {
        wire.send(&frame(HEADERS, END_HEADERS, stream, &head)).await;
    }
    assert_eq!((counted.clean().await, counted.runs()), (200, (1, 0)));
    // The first still has its slot.
    wire.send(&frame(DATA, END_STREAM, 1, MODERN.as_bytes())).await;
    assert_eq!((wire.outcome(1).await, counted.runs()), (Status(200), (1, 0)));
}

#[tokio::test]
async fn settings_pings_and_windows_in_great_number_are_answered_or_given_up() {
    let counted = Counted::new().await;
    let address = counted.house.address;
    for (bytes, times) in [
        (frame(SETTINGS, 0, 0, &[]), 10_000),
        (frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0xff, 0xff]), 10_000),
        (frame(PING, 0, 0, &[7; 8]), 10_000),
        (frame(PING, 1, 0, &[7; 8]), 10_000),
        (frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()), 10_000),
        (frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 7]), 10_000),
        (frame(99, 0, 0, &[]), 10_000),
    ] {
        let mut wire = Wire::open(address).await;
        flood(&mut wire, &bytes, times).await;
        wire.send(&call(address, 1)).await;
        let heard = wire.outcome(1).await;
        let runs = u32::from(heard == Status(200));
        assert!(matches!(heard, Status(200) | GoAway(CALM) | End), "{bytes:?}: {heard:?}");
        counted.goes_on((runs, 0), bytes).await;
    }
}

#[tokio::test]
async fn empty_frames_of_a_body_in_great_number_are_given_up_or_read() {
    let (counted, mut wire, head) = opened().await;
    wire.send(&frame(HEADERS, END_HEADERS, 1, &head)).await;
    flood(&mut wire, &frame(DATA, 0, 1, &[]), 20_000).await;
    wire.send(&frame(DATA, END_STREAM, 1, MODERN.as_bytes())).await;
    let heard = wire.outcome(1).await;
    let runs = u32::from(heard == Status(200));
    assert!(matches!(heard, Status(200) | GoAway(CALM) | End), "{heard:?}");
    counted.goes_on((runs, 0), "the flood").await;
}

#[tokio::test]
async fn headers_that_grow_when_they_are_unpacked_have_the_same_limits() {
    let counted = Counted::new().await;
    let address = counted.house.address;
    // A field for the dynamic table (RFC 7541 §6.2.1), and then one byte per copy of it.
    let remembered = |length: usize| {
        let mut field = field("x", &"y".repeat(length));
        field[0] = 0x40;
        field
    };
    for (length, copies, expected) in [
        // Within every limit.
        (3000, 10, Status(200)),
        // Too many short ones, and too long ones.
        (1, 200, Status(431)),
        (3000, 60, Status(431)),
        // 48 MB from 20 KB: an attack.
        (3000, 16_000, GoAway(CALM)),
    ] {
        let mut wire = Wire::open(address).await;
        let mut head = packed(&fields(address));
        head.extend(remembered(length));
        head.extend(vec![0xbe; copies]);
        let (first, rest) = head.split_at(head.len().min(10_000));
        wire.send(&frame(HEADERS, 0, 1, first)).await;
        wire.send(&frame(CONTINUATION, END_HEADERS, 1, rest)).await;
        wire.send(&frame(DATA, END_STREAM, 1, MODERN.as_bytes())).await;
        let heard = wire.outcome(1).await;
        assert_eq!(heard, expected, "{copies} of {length}");
        assert_eq!(counted.runs(), (u32::from(expected == Status(200)), 0));
        if expected == GoAway(CALM) {
            wire.over().await;
            wire = Wire::open(address).await;
        }
        // The table is intact: the next call on the connection is decoded.
        wire.send(&call(address, 3)).await;
        assert_eq!((wire.outcome(3).await, counted.runs()), (Status(200), (1, 0)));
    }
}

const COMPRESSION: u32 = 9;
const CALM: u32 = 11;
