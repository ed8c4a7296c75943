//! Suggestions for an argument that is being typed.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{CompleteParams, Completion};

use super::proxy::Completing;
use super::{PromptEntry, TemplateEntry};
use crate::ToolError;

/// The text typed so far for an argument, and the values of the other arguments.
///
/// ```
/// use trunkline::server::Typed;
///
/// async fn cities(typed: Typed) -> Vec<String> {
///     let all: &[&str] = match typed.argument("country") {
///         Some("Norway") => &["Bergen", "Oslo"],
///         _ => &["Bergen", "Berlin", "Oslo"],
///     };
///     typed.starts(all.iter().copied())
/// }
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # use trunkline::{Client, Server, model::{CompleteParams, Reference}, prompt};
/// # let plan = prompt("plan", async || "Plan.".to_owned()).complete_with("city", cities);
/// # let client = Client::in_memory(&Server::builder("days", "1").prompt(plan).build()).await.unwrap();
/// # let mut params = CompleteParams::new(Reference::prompt("plan"), "city", "Ber");
/// # params.context.insert("country".to_owned(), "Norway".to_owned());
/// # assert_eq!(client.complete(params).await.unwrap().values, ["Bergen"]);
/// # });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Typed {
    /// The text typed so far.
    pub text: String,
    /// The other arguments, as far as they are known.
    pub others: BTreeMap<String, String>,
}

impl Typed {
    pub(crate) fn new(params: CompleteParams) -> Self {
        Self { text: params.argument.value, others: params.context }
    }

    /// The value of another argument, if it is known.
    ///
    /// ```
    /// async fn cities(typed: trunkline::server::Typed) -> Vec<String> {
    ///     match typed.argument("country") {
    ///         Some("Norway") => vec!["Oslo".to_owned()],
    ///         _ => Vec::new(),
    ///     }
    /// }
    /// # let _ = trunkline::prompt("plan", async || String::new()).complete_with("city", cities);
    /// ```
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.others.get(name).map(String::as_str)
    }

    /// The candidates that start with the typed text, ignoring case.
    ///
    /// ```
    /// async fn languages(typed: trunkline::server::Typed) -> Vec<String> {
    ///     typed.starts(["go", "ruby", "rust"])
    /// }
    /// # let _ = trunkline::prompt("review", async || String::new()).complete_with("language", languages);
    /// ```
    pub fn starts<T: Into<String>>(&self, all: impl IntoIterator<Item = T>) -> Vec<String> {
        let text = self.text.to_lowercase();
        all.into_iter().map(Into::into).filter(|it| it.to_lowercase().starts_with(&text)).collect()
    }
}

/// A function that completes an argument: an async function of [`Typed`].
///
/// ```
/// use trunkline::server::{Completes, Typed};
///
/// fn is_one<F: Completes<M>, M>(_: F) {}
/// is_one(async |typed: Typed| vec![format!("{}!", typed.text)]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot complete an argument",
    label = "not an async function of what is typed",
    note = "write `async fn name(typed: Typed) -> Vec<String>`, with `trunkline::server::Typed`; it may return a `Result` of that"
)]
pub trait Completes<Marker>: Send + Sync + 'static {
    /// The suggestions.
    #[doc(hidden)]
    fn complete(&self, typed: Typed) -> Completing;
}

#[diagnostic::do_not_recommend]
impl<F, W> Completes<W> for F
where
    F: Fn(Typed) -> W + Send + Sync + 'static,
    W: Future<Output: IntoCompletion> + Send + 'static,
{
    fn complete(&self, typed: Typed) -> Completing {
        let work = self(typed);
        Box::pin(async move { work.await.into_completion() })
    }
}

macro_rules! completed {
    ($($Entry:ident)*) => {$(
        impl $Entry {
            /// Suggests values for an argument of a prompt, or a variable of a template.
            ///
            /// ```
            /// # use trunkline::{Client, Server, model::{CompleteParams, Reference}, prompt, template};
            /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
            /// let plan = prompt("plan", async || "Plan my day.".to_owned())
            ///     .complete("city", |typed, _| vec![format!("{typed}lo")]);
            /// let menu = template("menu://{day}", "day", async || "Soup.")
            ///     .complete("day", |typed, _| vec![format!("{typed}day")]);
            /// # let server = Server::builder("days", "1").prompt(plan).resource(menu).build();
            /// # let client = Client::in_memory(&server).await?;
            /// let params = CompleteParams::new(Reference::prompt("plan"), "city", "Os");
            /// assert_eq!(client.complete(params).await?.values, ["Oslo"]);
            /// let params = CompleteParams::new(Reference::resource("menu://{day}"), "day", "fri");
            /// assert_eq!(client.complete(params).await?.values, ["friday"]);
            /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
            /// ```
            #[must_use]
            pub fn complete(
                mut self,
                name: impl Into<String>,
                complete: impl Fn(&str, &BTreeMap<String, String>) -> Vec<String> + Send + Sync + 'static,
            ) -> Self {
                self.completions.insert(name.into(), at_once(complete));
                self
            }

            /// Suggests values with an async function, for example from a database or another
            /// service. With macros it is `#[complete(cities)]` before the parameter.
            ///
            /// ```
            /// # use trunkline::{Client, Server, model::{CompleteParams, Reference}, prompt, server::Typed, template};
            /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
            /// async fn cities(typed: Typed) -> Vec<String> {
            ///     typed.starts(["Bergen", "Oslo"])
            /// }
            /// let plan = prompt("plan", async || "Plan my day.".to_owned()).complete_with("city", cities);
            /// let map = template("map://{city}", "map", async || "A map.").complete_with("city", cities);
            /// # let server = Server::builder("days", "1").prompt(plan).resource(map).build();
            /// # let client = Client::in_memory(&server).await?;
            /// for reference in [Reference::prompt("plan"), Reference::resource("map://{city}")] {
            ///     let params = CompleteParams::new(reference, "city", "o");
            ///     assert_eq!(client.complete(params).await?.values, ["Oslo"]);
            /// }
            /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
            /// ```
            #[must_use]
            pub fn complete_with<M>(
                mut self,
                name: impl Into<String>,
                complete: impl Completes<M>,
            ) -> Self {
                self.completions.insert(name.into(), in_time(complete));
                self
            }
        }
    )*};
}

completed! { PromptEntry TemplateEntry }

/// What a completing function may return.
///
/// ```
/// use trunkline::{ToolError, server::IntoCompletion};
///
/// assert_eq!(vec!["Oslo".to_owned()].into_completion().unwrap().values, ["Oslo"]);
/// let failed: Result<Vec<String>, ToolError> = Err(ToolError::new("The map is gone."));
/// assert_eq!(failed.into_completion().unwrap_err().message, "The map is gone.");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of suggestions",
    note = "return a `Vec<String>`, a `Completion` or a `Result` of one of them"
)]
pub trait IntoCompletion {
    /// Converts it into the protocol's result.
    ///
    /// ```
    /// use trunkline::server::IntoCompletion;
    ///
    /// let many: Vec<String> = (0..200).map(|it| it.to_string()).collect();
    /// assert_eq!(many.into_completion().unwrap().values.len(), 100);
    /// ```
    fn into_completion(self) -> Result<Completion, ErrorObject>;
}

impl IntoCompletion for Vec<String> {
    fn into_completion(self) -> Result<Completion, ErrorObject> {
        Ok(Completion::new(self))
    }
}

impl IntoCompletion for Completion {
    fn into_completion(self) -> Result<Completion, ErrorObject> {
        Ok(self)
    }
}

impl<T: IntoCompletion, E: Into<ToolError>> IntoCompletion for Result<T, E> {
    fn into_completion(self) -> Result<Completion, ErrorObject> {
        self.map_err(|error| error.into().into_rpc())?.into_completion()
    }
}

/// Completing functions by argument name.
pub(crate) type Completions = BTreeMap<String, Complete>;
pub(crate) type Complete = Arc<dyn Fn(Typed) -> Completing + Send + Sync>;

/// A completion that is ready at once.
pub(crate) fn at_once(
    complete: impl Fn(&str, &BTreeMap<String, String>) -> Vec<String> + Send + Sync + 'static,
) -> Complete {
    Arc::new(move |typed| {
        let values = complete(&typed.text, &typed.others);
        Box::pin(std::future::ready(values.into_completion()))
    })
}

/// A completion that may wait.
pub(crate) fn in_time<M>(complete: impl Completes<M>) -> Complete {
    Arc::new(move |typed| complete.complete(typed))
}
