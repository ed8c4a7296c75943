//! Raw bytes → what an HTTP/1.1 server answers, in memory and on a clock that nobody waits for.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use trunkline_transport::http::HttpBody;

use crate::input::chunks;

/// Sends `bytes` in chunks, and returns all that comes back until nothing does.
pub(crate) fn exchange<A, F>(bytes: &[u8], seed: u8, make: impl FnOnce() -> A) -> Vec<u8>
where
    A: Fn(Request<Incoming>) -> F + 'static,
    F: Future<Output = Response<HttpBody>> + 'static,
{
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without IO can always be made");
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let answer = make();
        let (mut ours, theirs) = tokio::io::duplex(ROOM);
        let service = service_fn(move |request| {
            let answered = answer(request);
            async move { Ok::<_, Infallible>(answered.await) }
        });
        let mut builder = http1::Builder::new();
        builder.header_read_timeout(None).max_header_size(HEADER_BYTES);
        let serving = builder.serve_connection(TokioIo::new(theirs), service);
        let serving = tokio::task::spawn_local(serving);
        for chunk in chunks(bytes, seed) {
            if ours.write_all(chunk).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let mut out = Vec::new();
        while let Ok(Ok(1..)) = timeout(QUIET, ours.read_buf(&mut out)).await {
            if out.len() > MOST {
                break;
            }
        }
        let _ = ours.shutdown().await;
        let _ = timeout(QUIET, ours.read_to_end(&mut out)).await;
        serving.abort();
        if let Err(why) = serving.await {
            assert!(!why.is_panic(), "the server panicked: {why}");
        }
        out
    })
}

/// The statuses of the answers, and that there is nothing else.
pub(crate) fn first_status(out: &[u8]) -> Option<u16> {
    if out.is_empty() {
        return None;
    }
    let head = out.strip_prefix(b"HTTP/1.1 ").or(out.strip_prefix(b"HTTP/1.0 "));
    let digits = head.and_then(|it| it.get(..3)).and_then(|it| std::str::from_utf8(it).ok());
    let status = digits.and_then(|it| it.parse().ok());
    Some(status.unwrap_or_else(|| panic!("no HTTP came back: {}", out.escape_ascii())))
}

/// Whether `text` stands in `bytes`, in any case.
pub(crate) fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|it| it.eq_ignore_ascii_case(text.as_bytes()))
}

const ROOM: usize = 1 << 20;
const HEADER_BYTES: usize = 64 << 10;
/// Nothing for so long, on the clock of the runtime, means that nothing comes.
const QUIET: Duration = Duration::from_secs(3);
/// Events that go on for ever are cut here.
const MOST: usize = 1 << 20;
