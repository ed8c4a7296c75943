//! A stream of stdio: its texts do not depend on where the chunks end, are what was framed, and cost
//! no more memory than the limit allows.

use trunkline_wire::frame::{Decoder, Frame, Framing, encode};
use trunkline_wire::jsonrpc::Malformed;

use crate::input::{Input, chunks};

#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Text(Vec<u8>),
    TooLong(Malformed),
    Broken(&'static str),
}

/// A byte for the framing and the limit, one for the chunks, then the stream.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (mode, seed) = (input.byte(), input.byte());
    let stream = input.rest();
    let limit = LIMITS[usize::from(mode >> 4) % LIMITS.len()];
    let decoder = || match mode % 3 {
        0 => Decoder::detect(limit),
        1 => Decoder::ndjson(limit),
        _ => Decoder::content_length(limit),
    };

    let whole = read(decoder(), [stream].into_iter(), limit);
    let parts = read(decoder(), chunks(stream, seed), limit);
    assert_eq!(whole, parts, "it matters where the chunks end");

    let broken = whole.iter().position(|it| matches!(it, Owned::Broken(_)));
    assert!(broken.is_none_or(|at| at + 1 == whole.len()), "something follows the end: {whole:?}");

    let is_json = |it: &&Vec<u8>| serde_json::from_slice::<serde_json::Value>(it).is_ok();
    let texts = whole.iter().filter_map(|it| match it {
        Owned::Text(text) => {
            assert!(text.len() <= limit, "a text over the limit");
            Some(text)
        }
        _ => None,
    });
    let texts: Vec<Vec<u8>> = texts.filter(is_json).cloned().collect();
    for framing in [Framing::Newline, Framing::ContentLength] {
        again(framing, &texts, seed);
    }
}

/// What is framed is what is read.
fn again(framing: Framing, texts: &[Vec<u8>], seed: u8) {
    let mut stream = Vec::new();
    for text in texts {
        encode(framing, |out| out.extend_from_slice(text), &mut stream);
    }
    let found = read(Decoder::detect(1 << 20), chunks(&stream, seed), 1 << 20);
    let expected: Vec<Owned> = texts
        .iter()
        .map(|text| {
            let mut text = text.clone();
            if framing == Framing::Newline {
                trunkline_wire::frame::flatten(&mut text);
            }
            Owned::Text(text)
        })
        .collect();
    // Blanks before the first line are nobody's, and stay with the text after them otherwise.
    let bare = |all: &[Owned]| -> Vec<Vec<u8>> {
        let text = |it: &Owned| match it {
            Owned::Text(text) => text.trim_ascii().to_vec(),
            other => panic!("our own stream was not read: {other:?}"),
        };
        all.iter().map(text).collect()
    };
    assert_eq!(bare(&found), bare(&expected), "{framing:?} does not come back");
}

fn read<'a>(
    mut decoder: Decoder,
    chunks: impl Iterator<Item = &'a [u8]>,
    limit: usize,
) -> Vec<Owned> {
    let mut frames = Vec::new();
    let owned = |frame: Frame<'_>| match frame {
        Frame::Text(text) => Owned::Text(text.to_vec()),
        Frame::TooLong(malformed) => Owned::TooLong(malformed),
        Frame::Broken(why) => Owned::Broken(why),
    };
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(frame) = decoder.next() {
            frames.push(owned(frame));
        }
        let kept = decoder.space(0).len();
        let most = limit.saturating_add(HEADER + chunk.len()).saturating_mul(2);
        assert!(kept <= most, "{kept} bytes are kept with a limit of {limit}");
    }
    while let Some(frame) = decoder.finish() {
        frames.push(owned(frame));
        assert!(frames.len() < 100_000, "the end has no end");
    }
    frames
}

/// A header block may be this long beside the text.
const HEADER: usize = 4 << 10;
const LIMITS: &[usize] = &[32, 0, 1, 7, 100, 1000, 1 << 20, usize::MAX];
pub(crate) const WORDS: &[&str] = &[
    "Content-Length: ",
    "content-length:",
    "Content-Type: application/json",
    "\r\n\r\n",
    "\n\n",
    "{}",
    "[]",
    "{\"id\":1}",
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}",
    "\"result\":",
    "\"error\":",
    "\"method\":",
    "\u{feff}",
    "\\\"",
    "1073741824",
    "1073741825",
    "18446744073709551615",
];
