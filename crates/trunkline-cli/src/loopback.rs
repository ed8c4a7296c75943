//! HTTP for the clients of this machine: where to listen, and whom to let in.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use http::{Request, Response, request};
use tokio::net::TcpListener;
use trunkline_proto::http::Refusal;
use trunkline_proto::http::door::{self, Door};
use trunkline_proto::http::fields::Fields;
use trunkline_transport::Limits;
use trunkline_transport::http::{self as transport, Answers, Envelopes, HttpBody, RequestBody};

use crate::failure::Failure;

/// Answers the requests that were let in.
pub(crate) trait Responder: Send + Sync + 'static {
    fn respond(
        &self,
        head: request::Parts,
        body: RequestBody,
    ) -> impl Future<Output = Result<Response<HttpBody>, Refusal>> + Send;

    /// Shutdown begins: ends what never ends by itself.
    fn hang_up(&self);

    /// Shutdown is over: stops what still runs.
    fn end(&self) {}
}

/// Refuses an address that other machines can reach.
pub(crate) fn check(address: SocketAddr) -> Result<(), Failure> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let why = format!("`{address}` can be reached from other machines.");
    Err(Failure::usage(why).advice("Listen at `127.0.0.1`."))
}

pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener> {
    let bound = transport::bind(address).await;
    bound.with_context(|| format!("Nothing can listen at `{address}`"))
}

/// Serves until `shutdown`.
pub(crate) async fn serve<R: Responder>(
    listener: TcpListener,
    responder: Arc<R>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let guarded = Guarded { door: Door::default(), responder };
    transport::serve(listener, Arc::new(guarded), limits, shutdown).await
}

struct Guarded<R> {
    door: Door,
    responder: Arc<R>,
}

impl<R: Responder> Guarded<R> {
    async fn respond(&self, request: Request<RequestBody>) -> Result<Response<HttpBody>, Refusal> {
        let (head, body) = request.into_parts();
        let fields = Fields::of(&head.headers);
        self.door.check(&head.uri, &fields)?;
        door::check_coding(&fields)?;
        self.responder.respond(head, body).await
    }
}

impl<R: Responder> Answers for Guarded<R> {
    async fn answer(&self, request: Request<RequestBody>, _: &Envelopes) -> Response<HttpBody> {
        self.respond(request).await.unwrap_or_else(transport::refuse)
    }

    fn hang_up(&self) {
        self.responder.hang_up();
    }

    fn end(&self) {
        self.responder.end();
    }
}
