//! Requests and responses over a connection in memory.

use tokio::io::{AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

use super::*;

fn post(body: &str) -> RequestText {
    let request = Request::post("/mcp?a=b").header("host", "a").header("content-length", "99");
    request.body(Bytes::copy_from_slice(body.as_bytes())).expect("it is a request").into()
}

const POSTED: &str = "POST /mcp?a=b HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";

/// Both ends of a connection that carries so many bytes at once.
fn connected(bytes: usize) -> (Box<Connection>, DuplexStream) {
    let (ours, theirs) = duplex(bytes);
    (Connection::new(ours), theirs)
}

/// Reads the request that [`POSTED`] is.
async fn read_request(theirs: &mut DuplexStream) {
    let mut seen = vec![0; POSTED.len()];
    theirs.read_exact(&mut seen).await.expect("it comes");
    assert_eq!(String::from_utf8(seen).expect("it is ASCII"), POSTED);
}

/// What a server answers that says `response` in pieces of `size`, and what becomes of the connection.
async fn answered(response: &str, size: usize) -> (String, Option<Box<Connection>>) {
    let (connection, mut theirs) = connected(1 << 16);
    let response = response.as_bytes().to_vec();
    let serving = tokio::spawn(async move {
        read_request(&mut theirs).await;
        for piece in response.chunks(size) {
            theirs.write_all(piece).await.expect("it is read");
            yield_now().await;
        }
    });
    let (head, mut body) = connection.send(&post("{}")).await.expect("it is answered");
    let text = body.text(1000).await;
    let text = text.map(|it| it.map(|it| String::from_utf8(it.into_owned()).expect("it is ASCII")));
    let said = match text {
        Ok(Some(text)) => format!("{} {text}", head.status),
        Ok(None) => "too long".to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    };
    serving.await.expect("it does not panic");
    (said, body.into_connection())
}

#[tokio::test]
async fn a_body_ends_where_its_head_says_in_whatever_pieces_it_comes() {
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n{}", "x".repeat(1001));
    let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for (response, expected, is_kept) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "200 hello", true),
        ("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", "202 ", true),
        ("HTTP/1.1 204 No Content\r\n\r\n", "204 ", true),
        (&format!("{chunks}3\r\nhel\r\n2;x\r\nlo\r\n0\r\n\r\n"), "200 hello", true),
        (&format!("HTTP/1.1 103 Early\r\nlink: x\r\n\r\n{chunks}0\r\n\r\n"), "200 ", true),
        ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx", "200 x", false),
        ("HTTP/1.1 200 OK\r\n\r\nhello", "200 hello", false),
        // What nobody asked for may be meant as the next answer.
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello, you", "200 hello", false),
        ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello", "UnexpectedEof", false),
        (&format!("{chunks}6\r\nhello"), "UnexpectedEof", false),
        (&format!("{chunks}5\r\nhello\r\n0\r\n"), "UnexpectedEof", false),
        (&format!("{chunks}x\r\n"), "InvalidData", false),
        (&long, "too long", false),
    ] {
        for size in [1, 3, 50, response.len()] {
            let (said, connection) = answered(response, size).await;
            assert_eq!(said, expected, "{response:?} by {size}");
            // What came with the answer is seen if it came in one piece.
            if size == response.len() {
                assert_eq!(connection.is_some(), is_kept, "{response:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_lost() {
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(2 * MAX_HEAD));
    for response in ["", "HTTP/1.1 200", "hello\r\n\r\n", "HTTP/1.1 101 Switch\r\n\r\n", &endless] {
        let (connection, mut theirs) = connected(1 << 20);
        theirs.write_all(response.as_bytes()).await.expect("it is open");
        theirs.shutdown().await.expect("it is open");
        let sent = connection.send(&post("{}")).await.map(|_| ());
        assert!(matches!(sent, Err(SendError::Lost(_))), "{sent:?}");
    }
}

#[tokio::test]
async fn one_connection_carries_many_requests_and_tells_what_was_not_sent() {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    for last_words in [&b""[..], b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n"] {
        let (mut connection, mut theirs) = connected(1 << 16);
        for _ in 0..3 {
            let request = post("{}");
            let serving = async {
                read_request(&mut theirs).await;
                theirs.write_all(ANSWER).await.expect("it is read");
            };
            let (sent, ()) = tokio::join!(connection.send(&request), serving);
            let (_, mut body) = sent.expect("it is answered");
            assert_eq!(body.text(9).await.expect("it comes").as_deref(), Some(&b"ok"[..]));
            connection = body.into_connection().expect("the next request follows");
        }
        theirs.write_all(last_words).await.expect("it is open");
        theirs.shutdown().await.expect("it is open");
        let sent = connection.send(&post("{}")).await.map(|_| ());
        assert!(matches!(sent, Err(SendError::Unsent(_))), "{sent:?}");
        let mut seen = Vec::new();
        theirs.read_to_end(&mut seen).await.expect("it is closed");
        assert!(seen.is_empty(), "nothing was written");
    }
}

#[tokio::test]
async fn a_task_without_budget_sends_nothing_on_a_connection_that_was_closed() {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    for last_words in [&b""[..], b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n"] {
        let (connection, mut theirs) = connected(1 << 16);
        let request = post("{}");
        let serving = async {
            read_request(&mut theirs).await;
            theirs.write_all(ANSWER).await.expect("it is read");
        };
        let (sent, ()) = tokio::join!(connection.send(&request), serving);
        let (_, mut body) = sent.expect("it is answered");
        assert_eq!(body.text(9).await.expect("it comes").as_deref(), Some(&b"ok"[..]));
        let connection = body.into_connection().expect("the next request follows");
        theirs.write_all(last_words).await.expect("it is open");
        theirs.shutdown().await.expect("it is open");
        let (mut sending, mut is_first) = (pin!(connection.send(&request)), true);
        let sent = poll_fn(|cx| {
            // Other work of the task uses up its budget.
            while is_first && has_budget_remaining() {
                let _ = pin!(consume_budget()).poll(cx);
            }
            is_first = false;
            sending.as_mut().poll(cx)
        });
        let sent = sent.await.map(|(head, _)| head.status);
        assert!(matches!(sent, Err(SendError::Unsent(_))), "{sent:?}");
        let mut seen = Vec::new();
        theirs.read_to_end(&mut seen).await.expect("it is closed");
        assert!(seen.is_empty(), "nothing was written");
    }
}

/// A server that stops reading in the middle of a request, and answers as if it had read it.
struct Deaf {
    read: usize,
    answer: &'static [u8],
}

impl AsyncRead for Deaf {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.answer.is_empty() {
            return Poll::Pending;
        }
        out.put_slice(std::mem::take(&mut self.answer));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Deaf {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let read = self.read.min(bytes.len());
        self.read -= read;
        Poll::Ready(if read > 0 { Ok(read) } else { Err(ErrorKind::BrokenPipe.into()) })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn no_request_follows_one_that_was_not_written_to_its_end() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    for (read, is_kept) in [(1, false), (50, false), (1 << 10, true)] {
        let connection = Connection::new(Deaf { read, answer });
        let (_, mut body) = connection.send(&post("{}")).await.expect("it is answered");
        assert_eq!(body.text(9).await.expect("it comes").as_deref(), Some(&b"ok"[..]));
        assert_eq!(body.into_connection().is_some(), is_kept, "{read} bytes were read");
    }
}

#[tokio::test]
async fn an_answer_is_read_while_its_request_is_still_written() {
    let request = post(&"x".repeat(100_000));
    // A server that refuses after the first bytes, and hangs up.
    let (connection, mut theirs) = connected(100);
    let refusing = async move {
        theirs.read_exact(&mut [0; 50]).await.expect("it comes");
        let refusal = b"HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\nno";
        theirs.write_all(refusal).await.expect("it is read");
    };
    let (sent, ()) = tokio::join!(connection.send(&request), refusing);
    let (head, mut body) = sent.expect("it is answered");
    assert_eq!(head.status, 413);
    assert_eq!(body.text(9).await.expect("it comes").as_deref(), Some(&b"no"[..]));

    // A server that answers with what it reads, as it reads.
    for head in ["content-length: 100000", "transfer-encoding: chunked"] {
        let (connection, mut theirs) = connected(100);
        let echoing = tokio::spawn(async move {
            let mut seen = Vec::new();
            while !seen.ends_with(b"\r\n\r\n") {
                theirs.read_buf(&mut (&mut seen).limit(1)).await.expect("it comes");
            }
            let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            theirs.write_all(head.as_bytes()).await.expect("it is read");
            let (mut piece, mut left) = ([0; 50], 100_000);
            while left > 0 {
                let n = theirs.read(&mut piece).await.expect("it comes");
                left -= n;
                let text = match head.contains("chunked") {
                    true => [format!("{n:x}\r\n").as_bytes(), &piece[..n], b"\r\n"].concat(),
                    false => piece[..n].to_vec(),
                };
                theirs.write_all(&text).await.expect("it is read");
            }
            if head.contains("chunked") {
                theirs.write_all(b"0\r\n\r\n").await.expect("it is read");
            }
            theirs
        });
        let (_, mut body) = connection.send(&request).await.expect("it is answered");
        let text = body.text(100_000).await.expect("it comes").expect("it is not too long");
        assert!(text.len() == 100_000 && text.iter().all(|it| *it == b'x'));
        body.into_connection().expect("the next request follows");
        drop(echoing);
    }
}

#[test]
fn the_length_of_a_body_is_written_in_digits() {
    for number in [0, 7, 10, 99, 100, 4096, 1_000_000] {
        let mut out = Vec::new();
        write_number(number, &mut out);
        assert_eq!(out, number.to_string().as_bytes());
    }
}

#[test]
fn a_request_without_a_body_names_no_length_unless_one_is_expected() {
    for (method, has_length) in [("GET", false), ("DELETE", false), ("HEAD", false), ("POST", true)]
    {
        let request = Request::builder().method(method).uri("/").body(Bytes::new());
        let text = RequestText::from(request.expect("it is a request"));
        assert_eq!((text.has_length, text.is_head), (has_length, method == "HEAD"), "{method}");
    }
}
