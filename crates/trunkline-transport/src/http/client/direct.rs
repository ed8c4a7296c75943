//! Requests in somebody else's words → responses, piece by piece: for taps and replays, which have no conversation of
//! their own.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use trunkline_proto::CallError;

use super::pool::{Lease, Once, Pool};
use super::target::{Address, HttpTarget};
use crate::limits::Limits;

/// Sends requests to the origin of one server as they are. Credentials of the target are not used; its headers are.
pub struct Direct {
    pool: Arc<Pool>,
    address: Address,
    given: HeaderMap,
}

impl Direct {
    /// Sends to the server at this target.
    ///
    /// # Errors
    ///
    /// A sentence about a URL, a header or a certificate that makes no sense.
    pub fn new(target: &HttpTarget, limits: &Limits) -> Result<Self, String> {
        let address = Address::parse(&target.url)?;
        let pool = Arc::new(Pool::new(target, limits)?);
        Ok(Self { pool, address, given: target.header_map()? })
    }

    /// The path and query of the target.
    pub fn path(&self) -> String {
        self.address.path.to_string()
    }

    /// Sends a request to the path that it names, and waits for the head of its response. The `Host` and the headers
    /// of the target replace those of the request.
    ///
    /// # Errors
    ///
    /// That the server cannot be reached, or hung up.
    pub async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Flow>, CallError> {
        let headers = request.headers_mut();
        for (name, value) in &self.given {
            headers.insert(name, value.clone());
        }
        headers.insert(HOST, self.address.origin.name.clone());
        let sent = self.pool.send(&self.address.origin, request.map(Once::new)).await;
        let (response, lease) = sent?;
        let pool = Arc::clone(&self.pool);
        Ok(response.map(|body| Flow { body, lease: Some(lease), pool }))
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direct").field("origin", &self.address.origin).finish_non_exhaustive()
    }
}

/// The body of a response. At its end the connection is used again; dropping it before closes the connection.
pub struct Flow {
    body: Incoming,
    lease: Option<Lease>,
    pool: Arc<Pool>,
}

impl Flow {
    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            let Some(frame) = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await else {
                if let Some(lease) = self.lease.take() {
                    self.pool.put(lease);
                }
                return None;
            };
            // Trailers are of no use to anybody here.
            if let Some(piece) = frame.map(|it| it.into_data().ok()).transpose() {
                return Some(piece);
            }
        }
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").finish_non_exhaustive()
    }
}
