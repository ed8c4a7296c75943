use super::*;

const LIMIT: usize = 64 << 10;

fn lines(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// What a reader makes of a head, in words.
fn said(
    reader: &mut HeadReader,
    text: &[u8],
) -> Result<Option<(String, Framing, usize)>, WrongHead> {
    // What an earlier request left is gone.
    let mut head = LentHead::default();
    head.headers_mut().insert("left", HeaderValue::from_static("over"));
    head.extensions_mut().insert(1);
    let said = Ok(reader.read(text, LIMIT, &mut head)?.map(|(framing, end)| {
        let fields = head.headers.iter().map(|(name, it)| format!("{name}={it:?}"));
        let fields = fields.collect::<Vec<_>>().join(" ");
        let Parts { method, uri, version, extensions, .. } = &*head;
        assert!(extensions.is_empty());
        (format!("{method} {uri} {version:?} {fields}"), framing, end)
    }));
    reader.forget(&mut head);
    said
}

fn read(text: &str) -> Result<Framing, WrongHead> {
    let text = lines(text);
    let (_, framing, end) =
        said(&mut HeadReader::default(), text.as_bytes())?.expect("it is whole");
    assert_eq!(end, text.len(), "{text}");
    Ok(framing)
}

#[test]
fn the_length_of_a_body_and_the_end_of_a_connection_are_read_from_the_head() {
    use BodyLength::{Bytes, Chunked};
    for (text, length, keeps_connection, is_awaited) in [
        ("POST / HTTP/1.1\n\n", Bytes(0), true, false),
        ("POST / HTTP/1.1\nContent-Length: 12\n\n", Bytes(12), true, false),
        ("POST / HTTP/1.1\ncontent-length:12\nCONTENT-LENGTH: 012\n\n", Bytes(12), true, false),
        ("POST / HTTP/1.1\nTransfer-Encoding: Chunked\n\n", Chunked, true, false),
        // Others refuse it later, and nothing follows it.
        ("POST / HTTP/1.1\nTransfer-Encoding: gzip, chunked\n\n", Chunked, false, false),
        ("POST / HTTP/1.1\nTransfer-Encoding: chunked, chunked\n\n", Chunked, false, false),
        (
            "POST / HTTP/1.1\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n",
            Chunked,
            false,
            false,
        ),
        ("POST / HTTP/1.1\nconnection: x, CLOSE\n\n", Bytes(0), false, false),
        ("POST / HTTP/1.1\nconnection: close\nconnection: keep-alive\n\n", Bytes(0), false, false),
        ("POST / HTTP/1.0\ncontent-length: 1\n\n", Bytes(1), false, false),
        ("POST / HTTP/1.0\nconnection: Keep-Alive\n\n", Bytes(0), true, false),
        ("POST / HTTP/1.1\nexpect: 100-Continue\ncontent-length: 1\n\n", Bytes(1), true, true),
        (
            "POST / HTTP/1.1\nexpect: 100-continue\ntransfer-encoding: chunked\n\n",
            Chunked,
            true,
            true,
        ),
        // Nothing comes after `100 Continue`, or its client does not know it.
        ("POST / HTTP/1.1\nexpect: 100-continue\n\n", Bytes(0), true, false),
        ("POST / HTTP/1.0\nexpect: 100-continue\ncontent-length: 1\n\n", Bytes(1), false, false),
        // Others may read such a body in another way.
        (
            "POST / HTTP/1.1\ncontent-length: 1\ntransfer-encoding: chunked\n\n",
            Chunked,
            false,
            false,
        ),
    ] {
        let is_oldest = text.contains("1.0");
        let framing = Framing { length, keeps_connection, is_awaited, is_oldest };
        assert_eq!(read(text), Ok(framing), "{text}");
    }
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    for text in [
        "GET  / HTTP/1.1\n\n",
        "GET / HTTP/1.1 \n\n",
        "GET / HTTP/1.2\n\n",
        "GET / HTTP/11\n\n",
        "GET /a b HTTP/1.1\n\n",
        "GET /a#b HTTP/1.1\n\n",
        "GET /\u{0} HTTP/1.1\n\n",
        "G(T / HTTP/1.1\n\n",
        "GET / HTTP/1.1\ncontent-length: 1\ncontent-length: 2\n\n",
        "GET / HTTP/1.1\ncontent-length: 1\ncontent-length: x\n\n",
        "GET / HTTP/1.1\ncontent-length: +1\n\n",
        "GET / HTTP/1.1\ntransfer-encoding: chunked\ncontent-length: x\n\n",
        "GET / HTTP/1.1\ncontent-length:\n\n",
        "GET / HTTP/1.1\ntransfer-encoding: chunked, gzip\n\n",
        "GET / HTTP/1.0\ntransfer-encoding: chunked\n\n",
        "GET / HTTP/1.1\nx: a\n folded: b\n\n",
        "GET / HTTP/1.1\nx : a\n\n",
    ] {
        assert_eq!(read(text), Err(MALFORMED), "{text:?}");
    }
    let preface = read("PRI * HTTP/2.0\n\nSM\n\n");
    assert_eq!(preface, Err(WrongHead::OtherVersion));
    let fields = |count| format!("GET / HTTP/1.1\n{}\n", "x: y\n".repeat(count));
    assert!(read(&fields(100)).is_ok());
    assert_eq!(read(&fields(101)), Err(TOO_LONG));
    for long in [
        format!("GET /{} HTTP/1.1\n\n", "x".repeat(LIMIT)),
        format!("GET / HTTP/1.1\n{}: y\n\n", "x".repeat(LIMIT)),
        format!("GET / HTTP/1.1\nx: {}", "y".repeat(LIMIT)),
        "G".repeat(LIMIT + 1),
    ] {
        assert_eq!(read(&long), Err(TOO_LONG), "{}", &long[..30]);
    }
}

#[test]
fn a_head_is_read_in_whatever_pieces_it_comes() {
    for text in [
        "\r\n\nGET /a?b HTTP/1.1\r\nx:  y \r\nz:\r\n\r\nbody",
        "GET /a?b HTTP/1.1\nx:  y \nz:\n\nbody",
    ] {
        let end = text.find("body").expect("it has one");
        for first in 0..=text.len() {
            let said =
                said(&mut HeadReader::default(), &text.as_bytes()[..first]).expect("it is well");
            let said = said.map(|(head, _, end)| (head, end));
            let whole = ("GET /a?b HTTP/1.1 x=\"y\" z=\"\"".to_owned(), end);
            assert_eq!(said, (first >= end).then_some(whole), "{first} of {text:?}");
        }
    }
}

#[test]
fn a_head_that_comes_again_is_read_as_if_it_were_the_first() {
    let with = |length: &str| {
        lines(&format!("POST /mcp HTTP/1.1\na: b\ncontent-length: {length}\nc: d\n\n{{}}"))
    };
    let expects = |length| with(length).replace("c: d", "expect: 100-continue");
    let texts = [
        with("2"),
        with("2"),
        with("10"),
        with("010"),
        with("0"),
        expects("0"),
        expects("2"),
        with(&format!("{}2", "0".repeat(30))),
        // As long as a head may be, and longer.
        with(&format!("{:0>1$}", 2, LIMIT + 3 - with("").len())),
        with(&format!("{:0>1$}", 2, LIMIT + 2 - with("").len())),
        with("2"),
        with(""),
        with("+2"),
        with("2 "),
        with("2, 2"),
        with("18446744073709551616"),
        with("18446744073709551615"),
        with("2\ncontent-length: 2"),
        with("2\ncontent-length: 3"),
        with("2\ntransfer-encoding: chunked"),
        with("2").replace("c: d", "c: e"),
        with("2").replace("c: d", "c: d\r\nc: d"),
        with("2").replace("POST", "PUT"),
        with("2").replace("/mcp", "/sse"),
        with("2").replace("1.1", "1.0"),
        with("2").replace("c: d", "connection: close"),
        with("2").replace("content-length: 2\r\n", ""),
        with("2").replace("\r\n\r\n", "\r\n"),
        with("2")[..30].to_owned(),
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
    ];
    for before in &texts {
        for text in &texts {
            let mut reader = HeadReader::default();
            let _ = said(&mut reader, before.as_bytes());
            let fresh = said(&mut HeadReader::default(), text.as_bytes());
            assert_eq!(said(&mut reader, text.as_bytes()), fresh, "{text:?} after {before:?}");
            assert_eq!(said(&mut reader, text.as_bytes()), fresh, "{text:?} once more");
        }
    }
}

#[test]
fn a_head_that_comes_again_has_its_limit_and_is_kept_within_its_own() {
    let with = |length: &str| lines(&format!("POST /mcp HTTP/1.1\ncontent-length: {length}\n\n"));
    let (short, mut head) = (with("2"), LentHead::default());
    let mut reader = HeadReader::default();
    for _ in 0..2 {
        assert!(reader.read(short.as_bytes(), short.len(), &mut head).is_ok());
        reader.forget(&mut head);
    }
    let long = reader.read(with("20").as_bytes(), short.len(), &mut head);
    assert_eq!(long, Err(TOO_LONG), "one digit more");
    assert!(said(&mut reader, with(&format!("{:0>60000}", 2)).as_bytes()).is_ok());
    assert!(reader.last.is_none());
}

#[test]
fn nothing_of_a_long_head_stays_while_its_connection_waits() {
    let mut head = LentHead::default();
    for (text, is_kept) in [
        ("POST /mcp HTTP/1.1\ncontent-length: 2\na: b\n\n".to_owned(), true),
        (format!("POST /mcp HTTP/1.1\ncontent-length: 2\na: {}\n\n", "b".repeat(60_000)), false),
        (format!("GET /{} HTTP/1.1\n\n", "b".repeat(60_000)), false),
        (format!("{} / HTTP/1.1\n\n", "B".repeat(60_000)), false),
    ] {
        let mut reader = HeadReader::default();
        assert!(reader.read(lines(&text).as_bytes(), LIMIT, &mut head).is_ok());
        head.extensions_mut().insert(1);
        reader.forget(&mut head);
        assert!(head.headers.is_empty() && head.extensions.is_empty());
        let said = format!("{} {}", head.method, head.uri);
        assert_eq!(said, if is_kept { "POST /mcp" } else { "GET /" });
        assert_eq!(reader.last.is_some(), is_kept);
    }
}
