//! Heads: request lines, header lines, and the host of the request.

use super::Then::{Closed, Open};
use super::{CUT_OFF, Counted, MALFORMED, RUNS, RUNS_LAST, Row, rows};

#[tokio::test]
async fn a_request_line_is_read_as_it_stands_or_not_at_all() {
    let counted = Counted::new().await;
    let call = |line: &&str| {
        format!("{line}Host: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\r\n$BODY$HIDDEN")
    };
    let bad: Vec<_> = BAD_LINES.iter().map(call).collect();
    counted.check(&rows(&bad, MALFORMED)).await;
    counted.check(LINES).await;
}

#[tokio::test]
async fn a_header_line_that_is_none_ends_the_connection() {
    let counted = Counted::new().await;
    let call = |line: &&str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n{line}$LABELSContent-Length: $LENGTH\r\n\r\n\
             $BODY$HIDDEN"
        )
    };
    let bad: Vec<_> = BAD_FIELDS.iter().map(call).collect();
    counted.check(&rows(&bad, MALFORMED)).await;
    counted.check(FIELDS).await;
}

checks! {
    a_request_is_for_one_host_that_is_ours = HOSTS;
    a_head_that_never_ends_is_no_call = CUT;
}

const BAD_LINES: &[&str] = &[
    // Versions.
    "POST /mcp\r\n",
    "POST /mcp \r\n",
    "POST /mcp HTTP/0.9\r\n",
    "POST /mcp HTTP/1.2\r\n",
    "POST /mcp HTTP/2.0\r\n",
    "POST /mcp HTTP/3\r\n",
    "POST /mcp HTTP/1.10\r\n",
    "POST /mcp HTTP/01.1\r\n",
    "POST /mcp HTTP/1,1\r\n",
    "POST /mcp http/1.1\r\n",
    "POST /mcp HTTPS/1.1\r\n",
    "POST /mcp ICY\r\n",
    "POST /mcp HTTP/1.1 x\r\n",
    "POST /mcp HTTP/1.1\rx\r\n",
    // Spaces.
    " POST /mcp HTTP/1.1\r\n",
    "POST  /mcp HTTP/1.1\r\n",
    "POST /mcp  HTTP/1.1\r\n",
    "POST\t/mcp\tHTTP/1.1\r\n",
    "POST\x0b/mcp HTTP/1.1\r\n",
    "POST /m cp HTTP/1.1\r\n",
    // Invalid methods and targets.
    "/mcp HTTP/1.1\r\n",
    "P(ST /mcp HTTP/1.1\r\n",
    "POST\0 /mcp HTTP/1.1\r\n",
    "PÖST /mcp HTTP/1.1\r\n",
    "POST /mcp\0 HTTP/1.1\r\n",
    "POST /mcp#x HTTP/1.1\r\n",
    "POST http://$HOST/mcp# HTTP/1.1\r\n",
    "POST /mcp\x7f HTTP/1.1\r\n",
    // Other protocols.
    "\x16\x03\x01\x02\0\x01\0\x01\x7c\x03\x03 /mcp HTTP/1.1\r\n",
    "HTTP/1.1 200 OK\r\n",
    "PROXY TCP4 127.0.0.1 127.0.0.1 1 1\r\nPOST /mcp HTTP/1.1\r\n",
    "{\"jsonrpc\":\"2.0\"}\r\n",
];

const LINES: &[Row<'_>] = &[
    // An unknown method is still a method, and its body is a body.
    (
        "post /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN",
        (&[405], Open, (0, 0)),
    ),
    (
        "GPOST /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN",
        (&[405], Open, (0, 0)),
    ),
    // No tunnel opens, and the connection continues as HTTP (RFC 9110 §9.3.6).
    ("CONNECT $HOST HTTP/1.1\r\nHost: $HOST\r\n\r\n$HIDDEN", (&[404, 200], Open, (0, 1))),
    // A target that is not a path is an authority, where nothing is served.
    (
        "POST mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN",
        (&[404], Open, (0, 0)),
    ),
    ("OPTIONS * HTTP/1.1\r\nHost: $HOST\r\n\r\n", (&[404], Open, (0, 0))),
    // Empty lines before a request are skipped (RFC 9112 §2.2).
    ("\r\n\r\n$CALL", RUNS),
    ("$CALL\r\n$HIDDEN", (&[200, 200], Open, (1, 1))),
    // The whole head has a limit; the target has no other.
    (
        "POST /mcp?$LONG HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\r\n\
         $BODY$HIDDEN",
        (&[431], Closed, (0, 0)),
    ),
    ("$LONG /mcp HTTP/1.1\r\nHost: $HOST\r\n\r\n$HIDDEN", (&[431], Closed, (0, 0))),
    // HTTP/1.0 has one request per connection.
    (
        "POST /mcp HTTP/1.0\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\r\n$BODY$HIDDEN",
        RUNS_LAST,
    ),
    ("GET /mcp HTTP/1.0\r\n\r\n$HIDDEN", MALFORMED),
    // HTTP/0.9 has no versions and no headers, and is not supported.
    ("GET /mcp\r\n$HIDDEN", MALFORMED),
    ("GET /mcp\n", MALFORMED),
    // HTTP/2 begins with the first byte or not at all.
    ("$CALLPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", RUNS_LAST),
    ("PRI * HTTP/1.1\r\nHost: $HOST\r\n\r\n", (&[404], Open, (0, 0))),
];

const BAD_FIELDS: &[&str] = &[
    // Names.
    "X : y\r\n",
    "X\t: y\r\n",
    " X: y\r\n",
    "\tX: y\r\n",
    "X Y: z\r\n",
    "X\0: y\r\n",
    "X\x0b: y\r\n",
    "X\r: y\r\n",
    "X(: y\r\n",
    "Ä: y\r\n",
    ": y\r\n",
    ":\r\n",
    "X\r\n",
    "{}\r\n",
    // Values.
    "X: a\0b\r\n",
    "X: a\x08b\r\n",
    "X: a\x7fb\r\n",
    "X: a\rb\r\n",
    "X: a\r\rb\r\n",
    "X: a\r\r\n",
    // One value on two lines (RFC 9112 §5.2).
    "X: a\r\n b\r\n",
    "X: a\r\n\tb\r\n",
    "X:\r\n b\r\n",
    "X: a\n b\r\n",
];

const FIELDS: &[Row<'_>] = &[
    // A lone LF ends a line (RFC 9112 §2.2 allows it), in every line alike: this `Content-Length`
    // counts.
    ("POST /mcp HTTP/1.1\nHost: $HOST\n$LABELSContent-Length: $LENGTH\n\n$BODY", RUNS),
    ("$POSTX: y\nContent-Length: $LENGTH\r\n\n$BODY", RUNS),
    // A length inside another header's value is not a length.
    ("$POSTX: Content-Length: 0\r\nContent-Length: $LENGTH\r\n\r\n$BODY", RUNS),
    // Values outside ASCII are ignored.
    ("$POSTX: é\r\nContent-Length: $LENGTH\r\n\r\n$BODY", RUNS),
    // Listing a header in `Connection` does not remove it: we are the end of the hop.
    ("$POSTContent-Length: $LENGTH\r\nConnection: content-length, host\r\n\r\n$BODY", RUNS),
    // After `Connection: close` no further request is read.
    ("$POSTContent-Length: $LENGTH\r\nConnection: close\r\n\r\n$BODY$HIDDEN", RUNS_LAST),
    (
        "$POSTContent-Length: $LENGTH\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n\
         $BODY$HIDDEN",
        RUNS_LAST,
    ),
    ("GET / HTTP/1.1\r\nHost: $HOST\r\nX: $LONG\r\n\r\n$HIDDEN", (&[431], Closed, (0, 0))),
    ("GET / HTTP/1.1\r\nHost: $HOST\r\n$LONG: x\r\n\r\n$HIDDEN", (&[431], Closed, (0, 0))),
];

const HOSTS: &[Row<'_>] = &[
    ("POST /mcp HTTP/1.1\r\n$LABELSContent-Length: $LENGTH\r\n\r\n$BODY", (&[400], Open, (0, 0))),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\nHost: $HOST\r\n\
         $LABELSContent-Length: $LENGTH\r\n\r\n$BODY",
        (&[400], Open, (0, 0)),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\nhost: evil.example\r\n\
         $LABELSContent-Length: $LENGTH\r\n\r\n$BODY",
        (&[400], Open, (0, 0)),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost:\r\n$LABELSContent-Length: $LENGTH\r\n\r\n$BODY",
        (&[403], Open, (0, 0)),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST evil.example\r\n$LABELSContent-Length: $LENGTH\r\n\r\n\
         $BODY",
        (&[403], Open, (0, 0)),
    ),
    // The target may name the host too; then both must be ours.
    (
        "POST http://evil.example/mcp HTTP/1.1\r\nHost: $HOST\r\n\
         $LABELSContent-Length: $LENGTH\r\n\r\n$BODY",
        (&[403], Open, (0, 0)),
    ),
    (
        "POST http://$HOST/mcp HTTP/1.1\r\nHost: evil.example\r\n\
         $LABELSContent-Length: $LENGTH\r\n\r\n$BODY",
        (&[403], Open, (0, 0)),
    ),
    (
        "POST http://$HOST@evil.example/mcp HTTP/1.1\r\nHost: $HOST\r\n\
         $LABELSContent-Length: $LENGTH\r\n\r\n$BODY",
        (&[403], Open, (0, 0)),
    ),
    (
        "POST http://evil.example@$HOST/mcp HTTP/1.1\r\nHost: $HOST\r\n\
         $LABELSContent-Length: $LENGTH\r\n\r\n$BODY",
        (&[403], Open, (0, 0)),
    ),
    (
        "POST http://$HOST/mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\r\n\
         $BODY",
        RUNS,
    ),
    // Without a scheme it is still the host.
    (
        "POST ://evil.example/mcp HTTP/1.1\r\nHost: $HOST\r\n\
         $LABELSContent-Length: $LENGTH\r\n\r\n$BODY",
        (&[403], Open, (0, 0)),
    ),
    // The server is not a forward proxy.
    ("GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", (&[404], Open, (0, 0))),
    ("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", (&[404], Open, (0, 0))),
];

const CUT: &[Row<'_>] = &[
    ("P", CUT_OFF),
    ("POST /mcp HTTP/1.1", CUT_OFF),
    ("$POST", CUT_OFF),
    ("$POSTContent-Length: $LENGTH\r\n", CUT_OFF),
    ("$POSTContent-Length: $LENGTH\r\n\r\n", CUT_OFF),
    // One byte is missing, and the server does not wait for it once the client has closed its side.
    ("$POSTContent-Length: 1000\r\n\r\n$BODY", CUT_OFF),
];
