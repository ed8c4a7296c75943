//! Serves one client over a byte stream: stdin and stdout, or a socket.

use std::future::Future;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use trunkline_transport::drive::Driver;

use super::Gateway;
use crate::selector::Selector;

impl Gateway {
    /// Serves one client over stdin and stdout, until it disconnects or `shutdown`.
    pub async fn serve_stdio(
        &self,
        selector: Selector,
        shutdown: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let (stdin, stdout) =
            (trunkline_transport::stdio::stdin()?, trunkline_transport::stdio::stdout()?);
        self.serve_stream(selector, (stdin, stdout), shutdown).await
    }

    /// The same over any two ends of a stream.
    pub(crate) async fn serve_stream<R, W>(
        &self,
        selector: Selector,
        stream: (R, W),
        shutdown: impl Future<Output = ()>,
    ) -> std::io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let handler = self.handler(selector);
        let core = Arc::new(self.0.core_of(&handler.view));
        let server = trunkline_proto::server::Server::new(core);
        let limits = self.0.settings.limits.clone();
        let driver = Driver::new(server, handler, stream, None, limits);
        let handle = driver.handle();
        let mut driving = std::pin::pin!(driver.run());
        tokio::select! {
            outcome = &mut driving => outcome.map_err(std::io::Error::other),
            () = shutdown => {
                // Calls in flight are answered first.
                handle.close();
                driving.await.map_err(std::io::Error::other)
            }
        }
    }
}
