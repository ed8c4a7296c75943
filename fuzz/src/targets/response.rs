//! What an HTTP server answers, read by our client: a response does not depend on where the chunks end, and is as long as
//! it says.

use std::io::Cursor;

use http::Request;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use tokio::io::{AsyncRead, AsyncReadExt, empty, join, sink};
use trunkline_transport::http::client::send_single;

use crate::input::{Input, chunks};

/// What was read of a response.
#[derive(Debug, PartialEq)]
struct Answered {
    status: u16,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    is_whole: bool,
}

/// A byte for the chunks, then the bytes of a connection.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let seed = input.byte();
    let bytes = input.rest();

    let whole = read([bytes].into_iter());
    let parts = read(chunks(bytes, seed));
    assert_eq!(whole, parts, "it matters where the chunks end");

    let Some(answered) = whole else { return };
    assert!((200..1000).contains(&answered.status), "{}", answered.status);
    assert!(answered.body.len() <= bytes.len(), "more than was said");
    let field = |name: &str| answered.fields.iter().find(|(it, _)| it == name);
    if let (Some((_, length)), None) =
        (field(CONTENT_LENGTH.as_str()), field(TRANSFER_ENCODING.as_str()))
        && answered.is_whole
        && !matches!(answered.status, 204 | 304)
    {
        let length = std::str::from_utf8(length).ok().and_then(|it| it.trim().parse().ok());
        assert_eq!(Some(answered.body.len()), length, "its length");
    }
}

/// The answer to a request on a connection on which these chunks come; `None` if it is refused.
fn read<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Option<Answered> {
    let nothing: Box<dyn AsyncRead + Send + Unpin> = Box::new(empty());
    let reader = chunks
        .filter(|it| !it.is_empty())
        .fold(nothing, |before, chunk| Box::new(before.chain(Cursor::new(chunk.to_vec()))));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without IO can always be made");
    runtime.block_on(async {
        let request = Request::post("/mcp").body("{}".into()).expect("it is a request");
        let (head, mut pieces) =
            send_single(join(reader, sink()), request).await.ok()?.into_parts();
        let (mut body, mut is_whole) = (Vec::new(), true);
        while let Some(piece) = pieces.next().await {
            let Ok(piece) = piece else {
                is_whole = false;
                break;
            };
            body.extend_from_slice(&piece);
        }
        let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), value.as_bytes().to_owned())
        };
        let fields = head.headers.iter().map(field).collect();
        Some(Answered { status: head.status.as_u16(), fields, body, is_whole })
    })
}

pub(crate) const WORDS: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 200\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n",
    "content-length: ",
    "Content-Length: 5\r\n",
    "transfer-encoding: chunked\r\n",
    "connection: close\r\n",
    "content-type: text/event-stream\r\n",
    "\r\n",
    "\r\n\r\n",
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "5;a=b\r\nhello\r\n",
    "ffffffffffffffff",
    "data: {}\n\n",
    " ",
    "\t",
];
