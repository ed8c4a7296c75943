//! How a person is asked to log in.

use crate::fetch::Pending;

/// Shows a page to a person and receives its redirect.
pub trait Browser: Send + Sync + 'static {
    /// Gets ready for the redirect. If `redirect_uris` has any, one of them must be used, because
    /// they are registered; if none can be, return an error, and another registration is tried
    /// without them.
    fn prepare<'a>(&'a self, redirect_uris: &'a [String]) -> Prepared<'a>;
}

/// A browser that is getting ready: the visit, or why there can be none.
pub type Prepared<'a> = Pending<'a, Result<Box<dyn Visit>, String>>;

/// One visit.
pub trait Visit: Send {
    /// The redirect URI of this visit.
    fn redirect_uri(&self) -> &str;

    /// Shows the page at `url` and waits for the redirect: its query, without `?`.
    fn go(self: Box<Self>, url: String) -> Pending<'static, Result<String, String>>;
}
