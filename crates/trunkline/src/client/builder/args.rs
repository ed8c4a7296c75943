//! The arguments of a command line → the server that they name.

use super::ClientBuilder;
use crate::client::error::ConnectError;
use crate::client::{Client, Command, Responder};

impl<R: Responder> ClientBuilder<R> {
    /// Connects to the server that a command line names: a command and its arguments, or (with the
    /// feature `http`) a single URL.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use trunkline::Client;
    ///
    /// let client =
    ///     Client::builder("example", "1.0.0").connect_args(["travel-server", "--quiet"]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_args(
        self,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Client, ConnectError> {
        let mut args = args.into_iter().map(Into::into);
        let first = args.next().unwrap_or_default();
        #[cfg(feature = "http")]
        if is_url(&first) {
            return self.connect_http(first).await;
        }
        self.connect(Command::new(first).args(args)).await
    }
}

/// No program has such a name.
#[cfg(feature = "http")]
fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}
