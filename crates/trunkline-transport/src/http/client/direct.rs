//! Requests in somebody else's words → responses, piece by piece: for taps and replays, which have no conversation of
//! their own.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Request, Response};
use trunkline_proto::CallError;

use super::connection::ResponseBody;
use super::pool::Pool;
use super::target::{Address, HttpTarget, Origin};
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
        let origin = Arc::clone(&self.address.origin);
        let (head, body) = self.pool.send(&origin, &request.into()).await?;
        Ok(head.with(Flow { body: Some(body), origin, pool: Arc::clone(&self.pool) }))
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direct").field("origin", &self.address.origin).finish_non_exhaustive()
    }
}

/// The body of a response. At its end the connection is used again; dropping it before closes the connection.
pub struct Flow {
    /// `None` after its end.
    body: Option<ResponseBody>,
    origin: Arc<Origin>,
    pool: Arc<Pool>,
}

impl Flow {
    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        match self.body.as_mut()?.piece().await {
            Ok(Some(piece)) => Some(Ok(Bytes::copy_from_slice(piece))),
            Ok(None) => {
                self.pool.put(&self.origin, self.body.take()?).await;
                None
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").finish_non_exhaustive()
    }
}
