//! An entrance that takes callers at their word.

use std::sync::Arc;

use http::{Request, Response};
use trunkline_auth::Principal;
use trunkline_transport::handler::Handler;
use trunkline_transport::http::{Answers, Endpoint, Envelopes, HttpBody, RequestBody};

/// Accepts any name in `x-name` as the principal.
pub(crate) struct Trusting<H: Handler>(pub(crate) Arc<Endpoint<H>>);

impl<H: Handler> Answers for Trusting<H> {
    async fn answer(
        &self,
        mut request: Request<RequestBody>,
        envelopes: &Envelopes,
    ) -> Response<HttpBody> {
        if let Some(name) = request.headers().get("x-name") {
            let name = Principal::new(name.to_str().unwrap()).issued_by("https://login.example");
            request.extensions_mut().insert(name);
        }
        self.0.answer(request, envelopes).await
    }

    fn hang_up(&self) {
        self.0.hang_up();
    }

    fn end(&self) {
        self.0.end();
    }
}
