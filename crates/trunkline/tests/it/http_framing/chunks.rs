//! Bodies in chunks: sizes, extensions, line ends and trailers.

use super::Then::Closed;
use super::{CUT_OFF, Counted, MALFORMED, RUNS, rows};

#[tokio::test]
async fn a_chunk_that_is_none_ends_the_connection_and_nothing_runs() {
    let counted = Counted::new().await;
    counted.check(&rows(&texts(BAD), MALFORMED)).await;
    // Makes a body too long before it has arrived.
    let pieces = "10000\r\n$PIECE\r\n".repeat(65).replace("$PIECE", &" ".repeat(0x10000));
    let long = format!("{CHUNKED}{pieces}0\r\n\r\n$HIDDEN");
    counted.check(&[(&long, (&[413], Closed, (0, 0)))]).await;
}

#[tokio::test]
async fn a_body_in_odd_chunks_is_one_body_and_its_trailers_say_nothing() {
    let counted = Counted::new().await;
    counted.check(&rows(&texts(GOOD), RUNS)).await;
}

#[tokio::test]
async fn a_body_whose_last_chunk_never_comes_is_no_call() {
    let counted = Counted::new().await;
    counted.check(&rows(&texts(CUT), CUT_OFF)).await;
}

/// Calls with these bodies.
fn texts(bodies: &[&str]) -> Vec<String> {
    bodies.iter().map(|body| format!("{CHUNKED}{body}")).collect()
}

const CHUNKED: &str = "$POSTTransfer-Encoding: chunked\r\n\r\n";

/// Each ends the connection: after an invalid chunk the boundary is unknown.
const BAD: &[&str] = &[
    // Sizes.
    "-1\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "-$SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "+$SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "0x$SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "0X$SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    " $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZE 0\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZEh\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZE.0\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    ";x=y\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "g\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "\u{ff11}\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "fffffffffffffffff\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "10000000000000000\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    // Sizes that are wrong.
    "1\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZE\r\n$BODY$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZE0\r\n$BODY\r\n0\r\n\r\n$HIDDEN$LONG",
    // Line endings.
    "$SIZE\r\n$BODY0\r\n\r\n$HIDDEN",
    "$SIZE\r\n$BODY\n0\r\n\r\n$HIDDEN",
    "$SIZE\r\n$BODY\rX0\r\n\r\n$HIDDEN",
    "$SIZE\r\n$BODYXX0\r\n\r\n$HIDDEN",
    "$SIZE\n$BODY\n0\n\n$HIDDEN",
    "$SIZE\r$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZE\n\r$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZE\r\n$BODY\r\n0\n\n$HIDDEN",
    // Extensions: too long, and with a line ending that only some parsers see.
    "$SIZE;$LONG\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZE;x\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZE;x=\"\n\"\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    "$SIZE;x\rx\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
    // Invalid trailers, the hidden call among them. A lone LF does not end them.
    "$SIZE\r\n$BODY\r\n0\r\n\n$HIDDEN",
    "$SIZE\r\n$BODY\r\n0\r\n$HIDDEN",
    "$SIZE\r\n$BODY\r\n0\r\nX : y\r\n\r\n$HIDDEN",
    "$SIZE\r\n$BODY\r\n0\r\nX\0: y\r\n\r\n$HIDDEN",
    "$SIZE\r\n$BODY\r\n0\r\n: y\r\n\r\n$HIDDEN",
    "$SIZE\r\n$BODY\r\n0\r\nX: $LONG\r\n\r\n$HIDDEN",
];

const GOOD: &[&str] = &[
    "$SIZE\r\n$BODY\r\n0\r\n\r\n",
    "0000000$SIZE\r\n$BODY\r\n000\r\n\r\n",
    "1\r\n \r\n$SIZE\r\n$BODY\r\n2\r\n\r\n\r\n0\r\n\r\n",
    // An extension is ignored (RFC 9112 §7.1.1), and so are spaces after a size.
    "$SIZE;x=y\r\n$BODY\r\n0;last\r\n\r\n",
    "$SIZE;x=\"a;b\"\r\n$BODY\r\n0\r\n\r\n",
    "$SIZE \t\r\n$BODY\r\n0\r\n\r\n",
    // A trailer is never merged into the head (RFC 9110 §6.5.1).
    "$SIZE\r\n$BODY\r\n0\r\nX-Sum: 1\r\n\r\n",
    "$SIZE\r\n$BODY\r\n0\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n",
    "$SIZE\r\n$BODY\r\n0\r\nAuthorization: Bearer x\r\nMcp-Session-Id: 0\r\n\r\n",
    "$SIZE\r\n$BODY\r\n0\r\nMcp-Name: sleep\r\nMcp-Method: ping\r\n\r\n",
    "$SIZE\r\n$BODY\r\n0\r\nContent-Length: 9999\r\nTransfer-Encoding: chunked\r\n\r\n",
    "$SIZE\r\n$BODY\r\n0\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n",
];

const CUT: &[&str] = &[
    "",
    "$SIZE",
    "$SIZE\r\n",
    "$SIZE\r\n$BODY",
    "$SIZE\r\n$BODY\r\n",
    "$SIZE\r\n$BODY\r\n0",
    "$SIZE\r\n$BODY\r\n0\r\n",
    "$SIZE\r\n$BODY\r\n0\r\nX: y\r\n",
    // The largest size, so that everything after it belongs to the chunk.
    "ffffffffffffffff\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
];
