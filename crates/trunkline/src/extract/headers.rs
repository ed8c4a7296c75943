//! The headers of the HTTP request that a call came with, as a parameter.

use std::fmt;

use crate::server::{FromCall, Input, Rejection, Signature};

/// The headers of the HTTP request that brought the call. Elsewhere, such as on stdio, there are
/// none.
///
/// A header that lets somebody in (`authorization`, `cookie` and their kin) is there for who asks
/// for it by name, and not in the list or the log of all. A server that checks tokens itself takes
/// `authorization` away before the call: take a [`Principal`](crate::Principal).
///
/// Headers are kept only where something takes them: an extractor of yours that does calls
/// `Headers::describe` in its own `describe`.
///
/// ```
/// # use trunkline::{Client, Headers, Server, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tongue = async |headers: Headers| headers.get("accept-language").unwrap_or("en").to_owned();
/// let server = Server::builder("a", "1.0.0").tool(tool("tongue", tongue)).build();
/// let client = Client::in_memory(&server).await?;
/// assert_eq!(client.call_tool("tongue", ()).await?.content[0].as_text(), Some("en"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct Headers {
    #[cfg(feature = "http")]
    all: std::sync::Arc<http::HeaderMap>,
}

impl Headers {
    /// The header of this name, in any case, if it is there and is a text. Of several, the first.
    ///
    /// ```
    /// assert_eq!(trunkline::Headers::default().get("X-Request-Id"), None);
    /// ```
    pub fn get(&self, name: &str) -> Option<&str> {
        self.named(name)
    }

    /// All headers that are texts, in the order of their names' first use, without those that let
    /// somebody in.
    ///
    /// ```
    /// assert_eq!(trunkline::Headers::default().iter().count(), 0);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list().filter(|(name, _)| !SECRET.contains(name))
    }

    #[cfg(feature = "http")]
    fn named(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.to_str().ok()
    }

    #[cfg(not(feature = "http"))]
    fn named(&self, _: &str) -> Option<&str> {
        None
    }

    #[cfg(feature = "http")]
    fn list(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    #[cfg(not(feature = "http"))]
    fn list(&self) -> impl Iterator<Item = (&str, &str)> {
        std::iter::empty()
    }
}

impl FromCall for Headers {
    #[cfg(feature = "http")]
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        use trunkline_transport::http::RequestHeaders;
        let headers = input.context().extension::<RequestHeaders>();
        Ok(headers.map(|it| Self { all: std::sync::Arc::clone(&it.0) }).unwrap_or_default())
    }

    #[cfg(not(feature = "http"))]
    fn from_call(_: &Input<'_>) -> Result<Self, Rejection> {
        Ok(Self::default())
    }

    fn describe(signature: &mut Signature) {
        signature.headers();
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// What lets somebody in.
const SECRET: [&str; 4] = ["authorization", "cookie", "dpop", "proxy-authorization"];
