//! The headers of the HTTP request that a call came with, as a parameter.

use std::fmt;

use crate::server::{FromCall, Input, Rejection, Signature};

/// The headers of the HTTP request that carried the call. On other transports, such as stdio, there
/// are none.
///
/// Headers with credentials (such as `authorization` and `cookie`) are found by name only; lists
/// and debug output omit them. A server that checks tokens itself removes `authorization` before
/// the call: take a [`Principal`](crate::Principal).
///
/// Headers are kept only if some handler takes them: an extractor of yours that needs them calls
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
    /// The first header of this name, ignoring case, if its value is text.
    ///
    /// ```
    /// assert_eq!(trunkline::Headers::default().get("X-Request-Id"), None);
    /// ```
    pub fn get(&self, name: &str) -> Option<&str> {
        self.named(name)
    }

    /// All headers with text values, in the order of their names' first use, without those that
    /// carry credentials.
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

/// Headers that carry credentials.
const SECRET: [&str; 4] = ["authorization", "cookie", "dpop", "proxy-authorization"];
