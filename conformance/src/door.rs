//! A listener → the server over HTTP, with a page beside it that says how many calls it executed.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use trunkline::server::{HttpBody, HttpService};
use trunkline::{Limits, Server};

/// Serves connections until the listener fails or the future is dropped.
pub async fn serve(listener: TcpListener, server: &Server) -> io::Result<()> {
    // The suite looks closer at streams than at plain answers.
    let service = server.http().always_stream().service();
    let limits = Limits::default();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header_read);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (service, builder) = (service.clone(), builder.clone());
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(service.clone(), request));
            // A peer that breaks off is not our trouble.
            let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(
    service: HttpService,
    request: Request<Incoming>,
) -> Result<Response<Page>, Infallible> {
    if request.method() == Method::GET && request.uri().path() == "/calls" {
        let count = Bytes::from(crate::calls().to_string());
        let mut response = Response::new(Page::Count(Some(count)));
        let text = http::HeaderValue::from_static("text/plain");
        response.headers_mut().insert(http::header::CONTENT_TYPE, text);
        return Ok(response);
    }
    Ok(service.answer(request).await.map(Page::Server))
}

/// What goes out: the server's answer, or the count.
enum Page {
    Server(HttpBody),
    Count(Option<Bytes>),
}

impl Body for Page {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Server(body) => Pin::new(body).poll_frame(cx),
            Self::Count(count) => Poll::Ready(count.take().map(|it| Ok(Frame::data(it)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Server(body) => body.is_end_stream(),
            Self::Count(count) => count.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Server(body) => body.size_hint(),
            Self::Count(count) => SizeHint::with_exact(count.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
