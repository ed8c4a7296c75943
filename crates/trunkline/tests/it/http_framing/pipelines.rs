//! Pipelined requests: the second is answered as what it is, or the connection is closed.

use super::Then::{Closed, CutOff, Open};
use super::{Counted, MALFORMED, RUNS, Row, server};
use crate::http::House;
use trunkline::server::protect::Protect;

checks! {
    what_follows_a_refused_request_is_a_request_of_its_own_or_nothing = REFUSED;
    what_follows_a_whole_request_is_another_or_the_end = FOLLOWED;
    an_expectation_is_met_or_not_and_an_upgrade_never_is = ASKED_FIRST;
}

#[tokio::test]
async fn a_request_behind_one_without_a_token_needs_its_own() {
    let (server, open, hidden) = server();
    let key = "pQ7-lVhCgW2kXr9bTz4n";
    let protect = Protect::new("http://localhost/mcp").api_key("a", key, ["b"]);
    let house = House::with(server.http().protect(protect).unwrap()).await;
    let counted = Counted { house, open, hidden };
    let with_key = |text: String| {
        text.replacen("\r\n\r\n", &format!("\r\nAuthorization: Bearer {key}\r\n\r\n"), 1)
    };
    let (plain, secret) = (counted.call("sum"), with_key(counted.call("sum")));
    let (hidden, secret_hidden) = (counted.call("sleep"), with_key(counted.call("sleep")));
    let covered = format!(
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Length: {}\r\n\r\n{secret_hidden}",
        secret_hidden.len()
    );
    let trailers = format!(
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSTransfer-Encoding: chunked\r\n\r\n\
         $SIZE\r\n$BODY\r\n0\r\nAuthorization: Bearer {key}\r\n\r\n"
    );
    let rows: [(String, &[u16], (u32, u32)); 5] = [
        (plain.clone() + &secret_hidden, &[401, 200], (0, 1)),
        (secret.clone() + &hidden, &[200, 401], (1, 0)),
        (plain.clone() + &hidden + &plain, &[401, 401, 401], (0, 0)),
        // A request in the body of a refused one, and a token behind a body.
        (covered, &[401], (0, 0)),
        (trailers, &[401], (0, 0)),
    ];
    // A client without a token is not asked for a body.
    let expecting = "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELSContent-Length: $LENGTH\r\n\
                     Expect: 100-continue\r\n\r\n";
    let mut heard = Vec::new();
    counted.send(expecting, 1, Closed, &mut heard).await;
    assert_eq!((&*heard, counted.runs()), (&[401][..], (0, 0)));
    for (text, statuses, runs) in rows {
        let mut heard = Vec::new();
        counted.send(&text, statuses.len(), Open, &mut heard).await;
        assert_eq!((&*heard, counted.runs()), (statuses, runs), "{text}");
    }
}

const REFUSED: &[Row<'_>] = &[
    // A short body is read to its end, so the next request is found.
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\r\n$HIDDEN$CALL",
        (&[404, 200], Open, (1, 0)),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: $COVER\r\n\r\n$HIDDEN$CALL",
        (&[403, 200], Open, (1, 0)),
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: $HOST\r\nContent-Type: text/plain\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: $COVER\r\n\r\n$HIDDEN$CALL",
        (&[415, 200], Open, (1, 0)),
    ),
    ("$POSTContent-Length: $COVER\r\n\r\n$HIDDEN$CALL", (&[400, 200], Open, (1, 0))),
    // A long one is not: the bytes that follow are part of it.
    ("$POSTContent-Length: 99999999\r\n\r\n$HIDDEN", (&[413], Closed, (0, 0))),
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nContent-Length: 99999999\r\n\r\n$HIDDEN",
        (&[404], Closed, (0, 0)),
    ),
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nContent-Length: 70000\r\n\r\n$LONG$HIDDEN",
        (&[404], Closed, (0, 0)),
    ),
    // The end of a body that cannot be parsed is unknown.
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n\
         $HIDDEN",
        (&[404], Closed, (0, 0)),
    ),
];

const FOLLOWED: &[Row<'_>] = &[
    ("$CALL$HIDDEN$CALL", (&[200, 200, 200], Open, (2, 1))),
    // Garbage.
    ("$CALLx\r\n\r\n", (&[200, 400], Closed, (1, 0))),
    ("$CALL}\r\n$HIDDEN", (&[200, 400], Closed, (1, 0))),
    ("$CALL\0$HIDDEN", (&[200, 400], Closed, (1, 0))),
    ("$CALL $HIDDEN", (&[200, 400], Closed, (1, 0))),
    ("$CALL$BODY\r\n\r\n$HIDDEN", (&[200, 400], Closed, (1, 0))),
    // A body that is longer than its length.
    ("$POSTContent-Length: 10\r\n\r\n$BODY\r\n\r\n$HIDDEN", (&[400, 400], Closed, (0, 0))),
    // A body that is shorter than its length, behind a complete call.
    ("$CALL$POSTContent-Length: 1000\r\n\r\n$BODY", (&[200, 400], CutOff, (1, 0))),
];

const ASKED_FIRST: &[Row<'_>] = &[
    (
        "$POSTContent-Length: $LENGTH\r\nExpect: 100-continue\r\n\r\n$BODY",
        (&[100, 200], Open, (1, 0)),
    ),
    (
        "$POSTContent-Length: $LENGTH\r\nExpect: 100-Continue\r\n\r\n$BODY$HIDDEN",
        (&[100, 200, 200], Open, (1, 1)),
    ),
    // A request refused for its head is not asked for its body (RFC 9110 §10.1.1). The bytes that
    // follow are not parsed: they could be either.
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\
         Expect: 100-continue\r\n\r\n",
        (&[404], Closed, (0, 0)),
    ),
    (
        "POST /nowhere HTTP/1.1\r\nHost: $HOST\r\nContent-Length: $COVER\r\n\
         Expect: 100-continue\r\n\r\n$HIDDEN",
        (&[404], Closed, (0, 0)),
    ),
    (
        "$POSTContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n$HIDDEN",
        (&[413], Closed, (0, 0)),
    ),
    (
        "GET /nowhere HTTP/1.1\r\nHost: $HOST\r\nExpect: 100-continue\r\n\r\n",
        (&[404], Open, (0, 0)),
    ),
    // An unknown expectation may be ignored (RFC 9110 §10.1.1).
    ("$POSTContent-Length: $LENGTH\r\nExpect: 200-ok\r\n\r\n$BODY", RUNS),
    // No upgrade: a server may ignore the request for one (RFC 9110 §7.8).
    (
        "$POSTContent-Length: $LENGTH\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n$BODY",
        RUNS,
    ),
    // The preface of HTTP/2 is not a request, and its sender cannot read HTTP/1.
    (
        "GET /mcp HTTP/1.1\r\nHost: $HOST\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        MALFORMED,
    ),
    (
        "GET /mcp HTTP/1.1\r\nHost: $HOST\r\nConnection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n\
         $HIDDEN",
        (&[400, 200], Open, (0, 1)),
    ),
];
