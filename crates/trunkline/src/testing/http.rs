//! Serves a server on a local port and records every message.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{Request, Response, header::CONTENT_TYPE};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use trunkline_transport::Limits;
use trunkline_transport::http::linger;
use trunkline_wire::frame::sse::{Decoder, Received};

use super::transcript::Recorder;
use crate::Server;

/// Serves until the runtime ends. Returns the address.
pub(super) async fn serve(server: &Server, recorder: &Recorder) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let (service, recorder) = (server.http().service(), recorder.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (service, recorder) = (service.clone(), recorder.clone());
            let answer = service_fn(move |request: Request<Incoming>| {
                let (service, recorder) = (service.clone(), recorder.clone());
                async move {
                    let request = request.map(|body| Tapped::new(body, true, false, &recorder));
                    let response = service.answer(request).await;
                    Ok::<_, Infallible>(tap(response, &recorder))
                }
            });
            tokio::spawn(async move {
                let mut stream = stream;
                let served = TokioIo::new(&mut stream);
                // Many tests disconnect in the middle of a request.
                let _ = http1::Builder::new().serve_connection(served, answer).await;
                linger(&mut stream, false, &Limits::default()).await;
            });
        }
    });
    Ok(address)
}

fn tap<B>(response: Response<B>, recorder: &Recorder) -> Response<Tapped<B>> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let is_events = kind.is_some_and(|it| it.starts_with("text/event-stream"));
    response.map(|body| Tapped::new(body, false, is_events, recorder))
}

/// A body whose messages are recorded.
struct Tapped<B> {
    body: B,
    by_client: bool,
    heard: Heard,
    recorder: Recorder,
}

enum Heard {
    /// One message, as far as it has arrived.
    Whole(Vec<u8>),
    /// Messages as events.
    Events(Box<Decoder>),
}

impl<B> Tapped<B> {
    fn new(body: B, by_client: bool, is_events: bool, recorder: &Recorder) -> Self {
        let heard = match is_events {
            true => Heard::Events(Box::new(Decoder::new(usize::MAX / 2))),
            false => Heard::Whole(Vec::new()),
        };
        Self { body, by_client, heard, recorder: recorder.clone() }
    }

    fn hear(&mut self, bytes: &[u8], is_end: bool) {
        match &mut self.heard {
            Heard::Whole(text) => {
                text.extend_from_slice(bytes);
                if is_end {
                    self.recorder.take(self.by_client, &std::mem::take(text));
                }
            }
            Heard::Events(decoder) => {
                decoder.push(bytes);
                while let Some(received) = decoder.next() {
                    if let Received::Event(event) = received {
                        self.recorder.take(self.by_client, event.data);
                    }
                }
            }
        }
    }
}

impl<B: Body<Data: Buf> + Unpin> Body for Tapped<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx)).transpose()?;
        let Some(frame) = frame else {
            this.hear(&[], true);
            return Poll::Ready(None);
        };
        let frame = frame.map_data(|mut data| data.copy_to_bytes(data.remaining()));
        if let Some(data) = frame.data_ref() {
            let data = data.clone();
            this.hear(&data, this.body.is_end_stream());
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
