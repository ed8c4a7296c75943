//! Where a body ends: `Content-Length` and `Transfer-Encoding`, alone, together and misspelled.

use super::Then::{Closed, Open};
use super::{Counted, Row};

#[tokio::test]
async fn a_body_has_one_length_or_none_is_read() {
    Counted::new().await.check(LENGTHS).await;
}

#[tokio::test]
async fn a_body_comes_in_chunks_or_in_no_coding_at_all() {
    Counted::new().await.check(CODINGS).await;
}

const LENGTHS: &[Row<'_>] = &[
    // Two that differ.
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\
         Content-Length: 0\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nContent-Length: 0\r\n\
         Content-Length: $COVER\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    // A repeated equal value is one (RFC 9110 §8.6); a list of equal values may be refused.
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\
         Content-Length: $LENGTH\r\n\r\n$BODY",
        &[200],
        Open,
        (1, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH, $LENGTH\r\n\r\n\
         $BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH, 0\r\n\r\n\
         $BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    // Not a number.
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: -5\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: -0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: +$LENGTH\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: 0x$SIZE\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: 1e2\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH.0\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: 1 5\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: \"5\"\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length:\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: \x0b$LENGTH\r\n\r\n$BODY",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length:\r\n $LENGTH\r\n\r\n$BODY",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length : $LENGTH\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    // Surrounding spaces are not part of it (RFC 9112 §5), and leading zeros change nothing.
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: \t $LENGTH \t\r\n\r\n$BODY",
        &[200],
        Open,
        (1, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: 000$LENGTH\r\n\r\n$BODY",
        &[200],
        Open,
        (1, 0),
    ),
    // Longer than the limit, and longer than can be represented.
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: 9223372036854775807\r\n\r\n\
         $BODY$HIDDEN",
        &[413],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: 18446744073709551616\r\n\r\n\
         $BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: 18446744073709551615\r\n\r\n\
         $BODY$HIDDEN",
        // hyper uses the largest number as a sentinel, so it refuses the head.
        &[431],
        Closed,
        (0, 0),
    ),
    // Without a length there is no body (RFC 9112 §6.3): what follows is the next request, or
    // invalid.
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELS\r\n$BODY\r\n\r\n$HIDDEN",
        &[400, 400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent_Length: $LENGTH\r\n\r\n$BODY\r\n\r\n",
        &[400, 400],
        Closed,
        (0, 0),
    ),
    // A method that has no use for a body may still have one.
    (
        "GET /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN",
        &[400],
        Open,
        (0, 0),
    ),
    (
        "DELETE /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN",
        &[400],
        Open,
        (0, 0),
    ),
    (
        "OPTIONS /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN",
        &[405],
        Open,
        (0, 0),
    ),
    (
        "PUT /mcp HTTP/1.1\r\nHost: $HOST\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nGET /\r\n0\r\n\r\n",
        &[405],
        Open,
        (0, 0),
    ),
];

const CODINGS: &[Row<'_>] = &[
    // A length and chunks: the chunks count, and the connection ends (RFC 9112 §6.3).
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: 5\r\n\
         Transfer-Encoding: chunked\r\n\r\n$SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[200],
        Closed,
        (1, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked\r\n\
         Content-Length: 5\r\n\r\n$SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[200],
        Closed,
        (1, 0),
    ),
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nContent-Length: 4\r\n\
         Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n$HIDDEN",
        &[404],
        Closed,
        (0, 0),
    ),
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nTransfer-Encoding: chunked\r\n\
         Content-Length: x\r\n\r\n0\r\n\r\n$HIDDEN",
        &[404],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\
         Transfer-Encoding: xchunked\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\
         Transfer-Encoding:\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    // `chunked` is not the last coding.
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked, identity\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked\r\n\
         Transfer-Encoding: identity\r\n\r\n$SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: identity\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: xchunked\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked;x=1\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: \"chunked\"\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked,\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    // Chunks of another coding, which is unsupported, and chunks in chunks (RFC 9112 §6.1, §7.1).
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: gzip, chunked\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[501],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: identity\r\n\
         Transfer-Encoding: chunked\r\n\r\n$SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[501],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked, chunked\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[501],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked\r\n\
         Transfer-Encoding: chunked\r\n\r\n$SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[501],
        Closed,
        (0, 0),
    ),
    // Spellings.
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: \t CHUNKED \r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n",
        &[200],
        Open,
        (1, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: \x0bchunked\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked\0\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding:\r\n chunked\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: \r\n\tchunked\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding : chunked\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSX: y\rTransfer-Encoding: chunked\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    // HTTP/1.0 has no chunks (RFC 9112 §6.1).
    (
        "POST /mcp HTTP/1.0\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\n\r\n$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
    (
        "POST /mcp HTTP/1.0\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\
         Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n$BODY$HIDDEN",
        &[400],
        Closed,
        (0, 0),
    ),
];
