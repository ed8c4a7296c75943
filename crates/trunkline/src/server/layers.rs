//! Layers around a server and around a tool; see [`layer`](crate::layer).

use super::{ServerBuilder, ToolEntry};
use crate::layer::{BoxError, Calls, Layer, ServerRequest, ServerResponse, Service};

/// The method `layer` of a type that has `layers`, with its documentation.
macro_rules! takes_layers {
    ($kind:ident: $(#[$meta:meta])*) => {
        impl $kind {
            $(#[$meta])*
            pub fn layer<L>(mut self, layer: L) -> Self
            where
                L: Layer<Calls>,
                L::Service: Service<ServerRequest, Response = ServerResponse> + Send + 'static,
                <L::Service as Service<ServerRequest>>::Error: Into<BoxError>,
                <L::Service as Service<ServerRequest>>::Future: Send + 'static,
            {
                self.layers.wrap(layer);
                self
            }
        }
    };
}

takes_layers! { ServerBuilder:
    /// Puts a layer around every call of the server. The layer added last is the outermost.
    ///
    /// ```
    /// use trunkline::layer::{Calls, Layer, ServerRequest, Service};
    /// use trunkline::{Extension, Server, tool};
    /// use std::task::{Context, Poll};
    ///
    /// /// Gives each call a number that its handler can take.
    /// #[derive(Clone)]
    /// struct Numbered;
    ///
    /// struct Numbering(Calls, u64);
    ///
    /// impl Layer<Calls> for Numbered {
    ///     type Service = Numbering;
    ///
    ///     fn layer(&self, inner: Calls) -> Numbering {
    ///         Numbering(inner, 0)
    ///     }
    /// }
    ///
    /// impl Service<ServerRequest> for Numbering {
    ///     type Response = <Calls as Service<ServerRequest>>::Response;
    ///     type Error = <Calls as Service<ServerRequest>>::Error;
    ///     type Future = <Calls as Service<ServerRequest>>::Future;
    ///
    ///     fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
    ///         self.0.poll_ready(cx)
    ///     }
    ///
    ///     fn call(&mut self, mut request: ServerRequest) -> Self::Future {
    ///         self.1 += 1;
    ///         request.insert(self.1);
    ///         self.0.call(request)
    ///     }
    /// }
    ///
    /// async fn which(Extension(number): Extension<u64>) -> String {
    ///     format!("Call {number}.")
    /// }
    ///
    /// let server = Server::builder("calls", "1.0.0").tool(tool("which", which)).layer(Numbered);
    /// assert!(server.try_build().is_ok());
    /// ```
}

takes_layers! { ToolEntry:
    /// Puts a layer around the calls of this tool. The layer added last is the outermost; the
    /// layers of the server are around all of them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower::timeout::TimeoutLayer;
    /// use trunkline::{Server, tool};
    ///
    /// let slow = tool("slow", async || "At last.").layer(TimeoutLayer::new(Duration::from_secs(5)));
    /// let server = Server::builder("example", "1.0.0").tool(slow).build();
    /// ```
    #[must_use]
}
