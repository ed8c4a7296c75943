//! How a person is asked to log in.

use crate::fetch::Pending;

/// Shows a page to a person and hears where it led.
///
/// ```
/// use trunkline_auth::client::browser::{Browser, Visit};
/// use trunkline_auth::fetch::Pending;
///
/// /// Nobody is there.
/// struct Nobody;
///
/// impl Browser for Nobody {
///     fn prepare<'a>(&'a self, _: &'a [String]) -> Pending<'a, Result<Box<dyn Visit>, String>> {
///         Box::pin(async { Err("There is no screen here.".to_owned()) })
///     }
/// }
/// # let _: &dyn Browser = &Nobody;
/// ```
pub trait Browser: Send + Sync + 'static {
    /// Gets ready to hear. If `redirect_uris` has any, one of them must be used: they were
    /// registered before; if none of them can be, the error says so and another registration is
    /// tried without.
    ///
    /// ```
    /// # use trunkline_auth::client::browser::{Browser, Visit};
    /// async fn anywhere(browser: &dyn Browser) -> Result<Box<dyn Visit>, String> {
    ///     browser.prepare(&[]).await
    /// }
    /// ```
    fn prepare<'a>(
        &'a self,
        redirect_uris: &'a [String],
    ) -> Pending<'a, Result<Box<dyn Visit>, String>>;
}

/// One visit.
///
/// ```
/// use trunkline_auth::client::browser::Visit;
/// use trunkline_auth::fetch::Pending;
///
/// /// A person who says no to everything.
/// struct No;
///
/// impl Visit for No {
///     fn redirect_uri(&self) -> &str {
///         "http://127.0.0.1:8765/callback"
///     }
///     fn go(self: Box<Self>, _url: String) -> Pending<'static, Result<String, String>> {
///         Box::pin(async { Ok("error=access_denied".to_owned()) })
///     }
/// }
/// assert_eq!(No.redirect_uri(), "http://127.0.0.1:8765/callback");
/// ```
pub trait Visit: Send {
    /// Where the page will lead.
    ///
    /// ```
    /// # use trunkline_auth::client::browser::Visit;
    /// fn is_local(visit: &dyn Visit) -> bool {
    ///     visit.redirect_uri().starts_with("http://127.0.0.1:")
    /// }
    /// ```
    fn redirect_uri(&self) -> &str;

    /// Shows the page at `url` and waits for the redirect: its query, without `?`.
    ///
    /// ```
    /// # use trunkline_auth::client::browser::Visit;
    /// async fn shows(visit: Box<dyn Visit>) -> Result<String, String> {
    ///     visit.go("https://id.example/authorize?response_type=code".to_owned()).await
    /// }
    /// ```
    fn go(self: Box<Self>, url: String) -> Pending<'static, Result<String, String>>;
}
