//! A request that a replica makes on its own behalf → the header that the other's internal listener asks for.

use std::sync::Arc;

use http::Request;
use trunkline_auth::credentials::{Asked, Credentials, Denied, Headers, Refused, Retry, Target};
use trunkline_auth::fetch::Pending;

use super::caller_seal::FORWARDED_NAME;
use crate::http::shared_sessions::SharedSessions;

/// The credentials of this replica's own requests to one other.
pub(in crate::http) struct OwnRequests {
    shared: Arc<SharedSessions>,
    /// The id of the other.
    to: String,
}

impl OwnRequests {
    pub(in crate::http) fn new(shared: Arc<SharedSessions>, to: &str) -> Self {
        Self { shared, to: to.to_owned() }
    }
}

impl Credentials for OwnRequests {
    fn headers<'a>(&'a self, to: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        let head = Request::builder().method(to.method).uri(to.url).body(());
        let sealed = head.map(|head| {
            let (head, ()) = head.into_parts();
            self.shared.forward().seal.seal(self.shared.replicas.me(), &self.to, &head)
        });
        let headers = match sealed.as_ref().map(|it| it.to_str()) {
            Ok(Ok(sealed)) => Ok(vec![(FORWARDED_NAME, sealed.to_owned())]),
            _ => Err(Denied::new("The address of the other replica cannot be used.")),
        };
        Box::pin(async { headers })
    }

    fn refused<'a>(&'a self, _: Target<'a>, _: Refused<'a>, _: Asked<'a>) -> Retry<'a> {
        let why = "The other replica is another process by now, or has another key.";
        Box::pin(async move { Err(Denied::new(why)) })
    }

    fn nonce(&self, _: Target<'_>, _: &str) {}
}
