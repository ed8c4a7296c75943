//! Where a body ends: `Content-Length` and `Transfer-Encoding`, alone, together and misspelled.

use super::Then::{Closed, Open};
use super::{Counted, MALFORMED, RUNS, RUNS_LAST, Row};

checks! {
    a_body_has_one_length_or_none_is_read = LENGTHS;
    a_body_comes_in_chunks_or_in_no_coding_at_all = CODINGS;
}

const LENGTHS: &[Row<'_>] = &[
    // Two that differ.
    ("$POSTContent-Length: $LENGTH\r\nContent-Length: 0\r\n\r\n$BODY$HIDDEN", MALFORMED),
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nContent-Length: 0\r\n\
         Content-Length: $COVER\r\n\r\n$HIDDEN",
        MALFORMED,
    ),
    // A repeated equal value is one (RFC 9110 §8.6); a list of equal values may be refused.
    ("$POSTContent-Length: $LENGTH\r\nContent-Length: $LENGTH\r\n\r\n$BODY", RUNS),
    ("$POSTContent-Length: $LENGTH, $LENGTH\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length: $LENGTH, 0\r\n\r\n$BODY$HIDDEN", MALFORMED),
    // Not a number.
    ("$POSTContent-Length: -5\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length: -0\r\n\r\n$HIDDEN", MALFORMED),
    ("$POSTContent-Length: +$LENGTH\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length: 0x$SIZE\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length: 1e2\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length: $LENGTH.0\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length: 1 5\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length: \"5\"\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length:\r\n\r\n$HIDDEN", MALFORMED),
    ("$POSTContent-Length: \x0b$LENGTH\r\n\r\n$BODY", MALFORMED),
    ("$POSTContent-Length:\r\n $LENGTH\r\n\r\n$BODY", MALFORMED),
    ("$POSTContent-Length : $LENGTH\r\n\r\n$BODY$HIDDEN", MALFORMED),
    // Surrounding spaces are not part of it (RFC 9112 §5), and leading zeros change nothing.
    ("$POSTContent-Length: \t $LENGTH \t\r\n\r\n$BODY", RUNS),
    ("$POSTContent-Length: 000$LENGTH\r\n\r\n$BODY", RUNS),
    // Longer than the limit, and longer than can be represented.
    ("$POSTContent-Length: 9223372036854775807\r\n\r\n$BODY$HIDDEN", (&[413], Closed, (0, 0))),
    ("$POSTContent-Length: 18446744073709551616\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length: 18446744073709551615\r\n\r\n$BODY$HIDDEN", (&[413], Closed, (0, 0))),
    // Without a length there is no body (RFC 9112 §6.3): what follows is the next request, or
    // invalid.
    ("$POST\r\n$BODY\r\n\r\n$HIDDEN", (&[400, 400], Closed, (0, 0))),
    ("$POSTContent_Length: $LENGTH\r\n\r\n$BODY\r\n\r\n", (&[400, 400], Closed, (0, 0))),
    // A method that has no use for a body may still have one.
    (
        "GET /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN",
        (&[400], Open, (0, 0)),
    ),
    (
        "DELETE /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN",
        (&[400], Open, (0, 0)),
    ),
    (
        "OPTIONS /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN",
        (&[405], Open, (0, 0)),
    ),
    (
        "PUT /mcp HTTP/1.1\r\nHost: $HOST\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n\
         0\r\n\r\n",
        (&[405], Open, (0, 0)),
    ),
];

const CODINGS: &[Row<'_>] = &[
    // A length and chunks: the chunks count, and the connection ends (RFC 9112 §6.3).
    ("$POSTContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n$CHUNKS$HIDDEN", RUNS_LAST),
    ("$POSTTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n$CHUNKS$HIDDEN", RUNS_LAST),
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nContent-Length: 4\r\n\
         Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n$HIDDEN",
        (&[404], Closed, (0, 0)),
    ),
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nTransfer-Encoding: chunked\r\n\
         Content-Length: x\r\n\r\n0\r\n\r\n$HIDDEN",
        MALFORMED,
    ),
    ("$POSTContent-Length: $LENGTH\r\nTransfer-Encoding: xchunked\r\n\r\n$BODY$HIDDEN", MALFORMED),
    ("$POSTContent-Length: $LENGTH\r\nTransfer-Encoding:\r\n\r\n$BODY$HIDDEN", MALFORMED),
    // `chunked` is not the last coding.
    ("$POSTTransfer-Encoding: chunked, identity\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    (
        "$POSTTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n$CHUNKS$HIDDEN",
        MALFORMED,
    ),
    ("$POSTTransfer-Encoding: identity\r\n\r\n$HIDDEN", MALFORMED),
    ("$POSTTransfer-Encoding: xchunked\r\n\r\n$HIDDEN", MALFORMED),
    ("$POSTTransfer-Encoding: chunked;x=1\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    ("$POSTTransfer-Encoding: \"chunked\"\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    ("$POSTTransfer-Encoding: chunked,\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    // Chunks of another coding, which is unsupported, and chunks in chunks (RFC 9112 §6.1, §7.1).
    ("$POSTTransfer-Encoding: gzip, chunked\r\n\r\n$CHUNKS$HIDDEN", (&[501], Closed, (0, 0))),
    (
        "$POSTTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n$CHUNKS$HIDDEN",
        (&[501], Closed, (0, 0)),
    ),
    ("$POSTTransfer-Encoding: chunked, chunked\r\n\r\n$CHUNKS$HIDDEN", (&[501], Closed, (0, 0))),
    (
        "$POSTTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n$CHUNKS$HIDDEN",
        (&[501], Closed, (0, 0)),
    ),
    // Spellings.
    ("$POSTTransfer-Encoding: \t CHUNKED \r\n\r\n$CHUNKS", RUNS),
    ("$POSTTransfer-Encoding: \x0bchunked\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    ("$POSTTransfer-Encoding: chunked\0\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    ("$POSTTransfer-Encoding:\r\n chunked\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    ("$POSTTransfer-Encoding: \r\n\tchunked\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    ("$POSTTransfer-Encoding : chunked\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    ("$POSTX: y\rTransfer-Encoding: chunked\r\n\r\n$CHUNKS$HIDDEN", MALFORMED),
    // HTTP/1.0 has no chunks (RFC 9112 §6.1).
    (
        "POST /mcp HTTP/1.0\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked\r\n\r\n\
         $CHUNKS$HIDDEN",
        MALFORMED,
    ),
    (
        "POST /mcp HTTP/1.0\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\
         Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n$BODY$HIDDEN",
        MALFORMED,
    ),
];
