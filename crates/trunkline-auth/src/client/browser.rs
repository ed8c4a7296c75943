//! How a person is asked to log in.

use crate::fetch::Pending;

/// Shows a page to a person and hears where it led.
pub trait Browser: Send + Sync + 'static {
    /// Gets ready to hear. If `redirect_uris` has any, one of them must be used: they were
    /// registered before; if none of them can be, the error says so and another registration is
    /// tried without.
    fn prepare<'a>(
        &'a self,
        redirect_uris: &'a [String],
    ) -> Pending<'a, Result<Box<dyn Visit>, String>>;
}

/// One visit.
pub trait Visit: Send {
    /// Where the page will lead.
    fn redirect_uri(&self) -> &str;

    /// Shows the page at `url` and waits for the redirect: its query, without `?`.
    fn go(self: Box<Self>, url: String) -> Pending<'static, Result<String, String>>;
}
