//! The options of a handler, checked before and while it runs: what it will ask of the client, its
//! time limit, and the scopes that its callers need.

use std::sync::Arc;
use std::time::Duration;

use trunkline_proto::Call;
use trunkline_proto::input_required::{QuestionKind, missing_capabilities};
use trunkline_wire::code;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::model::CallToolResult;
use trunkline_wire::revision::Era;

use super::job::{Job, Target};
use super::lists::Entry;
use super::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
use crate::caller::Caller;

macro_rules! handler_options {
    ($($Entry:ident.$model:ident.$key:ident)*) => {$(
        impl Entry for $Entry {
            fn key(&self) -> &str {
                &self.$model.$key
            }

            fn is_hidden_from_some(&self) -> bool {
                self.visible.is_some()
            }
        }

        impl $Entry {
            /// Sets the description.
            ///
            /// ```
            /// # use trunkline::{Client, Server, prompt, tool};
            /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
            /// let now = tool("now", async || "noon").about("Tells the time.");
            /// let plan = prompt("plan", async || "Plan my day.".to_owned()).about("Plans a day.");
            /// let server = Server::builder("days", "1").tool(now).prompt(plan).build();
            /// let client = Client::in_memory(&server).await?;
            /// assert_eq!(client.list_tools().await?[0].description.as_deref(), Some("Tells the time."));
            /// assert_eq!(client.list_prompts().await?[0].description.as_deref(), Some("Plans a day."));
            /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
            /// ```
            #[must_use]
            pub fn about(mut self, description: impl Into<String>) -> Self {
                self.$model.description = Some(description.into());
                self
            }

            /// Sets the name for people.
            ///
            /// ```
            /// # use trunkline::{Client, Server, prompt, tool};
            /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
            /// let now = tool("now", async || "noon").title("The time");
            /// let plan = prompt("plan", async || "Plan my day.".to_owned()).title("Plan a day");
            /// let server = Server::builder("days", "1").tool(now).prompt(plan).build();
            /// let client = Client::in_memory(&server).await?;
            /// assert_eq!(client.list_tools().await?[0].title.as_deref(), Some("The time"));
            /// assert_eq!(client.list_prompts().await?[0].title.as_deref(), Some("Plan a day"));
            /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
            /// ```
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.$model.title = Some(title.into());
                self
            }

            /// Shows it to some callers only. For the others it does not exist.
            ///
            /// ```
            /// # use trunkline::{Client, Server, prompt, tool};
            /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
            /// let reset = tool("reset", async || "Done.")
            ///     .visible(|caller| caller.principal().is_some_and(|it| it.may("admin")));
            /// let plan = prompt("plan", async || "Plan my day.".to_owned())
            ///     .visible(|caller| caller.principal().is_some());
            /// let server = Server::builder("days", "1").tool(reset).prompt(plan).build();
            /// let client = Client::in_memory(&server).await?;
            /// assert!(client.list_tools().await?.is_empty(), "nobody was let in by name");
            /// assert!(client.list_prompts().await?.is_empty());
            /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
            /// ```
            #[must_use]
            pub fn visible(
                mut self,
                decide: impl Fn(&Caller<'_>) -> bool + Send + Sync + 'static,
            ) -> Self {
                self.visible = Some(Arc::new(decide));
                self
            }

            /// Declares a kind of question that the function will ask. A client that lacks the
            /// capability gets an error before the function starts, so nothing is left half done.
            ///
            /// ```
            /// use trunkline::server::QuestionKind;
            /// use trunkline::{Answer, Context, Server, ToolError, tool};
            ///
            /// async fn delete(cx: Context) -> Result<String, ToolError> {
            ///     match cx.ask::<bool>("Delete everything?").await? {
            ///         Answer::Accept(true) => Ok("It is gone.".to_owned()),
            ///         _ => Ok("Nothing happened.".to_owned()),
            ///     }
            /// }
            ///
            /// let delete = tool("delete", delete).asks(QuestionKind::Form);
            /// let server = Server::builder("example", "1.0.0").tool(delete).build();
            /// ```
            #[must_use]
            pub fn asks(mut self, kind: QuestionKind) -> Self {
                self.signature.asks.push(kind);
                self
            }

            /// Stops the function after this much working time and tells the caller so. The clock
            /// stops while a question is in flight. Progress does not extend this limit; it extends
            /// the server's [own limits](crate::Limits).
            ///
            /// ```
            /// use std::time::Duration;
            /// use trunkline::{prompt, resource, template, tool};
            ///
            /// let limit = Duration::from_secs(5);
            /// let render = tool("render", async || "A film.").timeout(limit);
            /// let menu = resource("menu://today", "menu", async || "Soup.").timeout(limit);
            /// let day = template("menu://{day}", "day", async || "Soup.").timeout(limit);
            /// let plan = prompt("plan", async || "Plan my day.".to_owned()).timeout(limit);
            /// let server = trunkline::Server::builder("inn", "1.0.0").tool(render).prompt(plan);
            /// assert!(server.resource(menu).resource(day).try_build().is_ok());
            /// ```
            #[must_use]
            pub fn timeout(mut self, limit: Duration) -> Self {
                self.signature.timeout = Some(limit);
                self
            }

            /// Allows only callers that have all of these scopes. The others still see it in lists.
            /// Over HTTP they get one challenge (403) that names the missing scopes, if something
            /// protects the server, as `Http::protect` does.
            ///
            /// Only a [`Principal`](crate::Principal) has scopes. Without one, as over a pipe or in
            /// memory, nothing is checked: the user who starts a server may use all of it.
            ///
            /// ```
            /// use trunkline::{prompt, resource, template, tool};
            ///
            /// let delete = tool("delete", async || "It is gone.").scopes(["files:write"]);
            /// let list = resource("files://", "files", async || "a.txt").scopes(["files:read"]);
            /// let file = template("files://{name}", "file", async || "a").scopes(["files:read"]);
            /// let tidy = prompt("tidy", async || "Tidy up.".to_owned()).scopes(["files"]);
            /// let server = trunkline::Server::builder("files", "1.0.0").tool(delete).prompt(tidy);
            /// assert!(server.resource(list).resource(file).try_build().is_ok());
            /// ```
            #[must_use]
            pub fn scopes(
                mut self,
                scopes: impl IntoIterator<Item = impl Into<String>>,
            ) -> Self {
                self.signature.scopes.extend(scopes.into_iter().map(Into::into));
                self
            }
        }
    )*};
}

handler_options! {
    ToolEntry.tool.name
    PromptEntry.prompt.name
    ResourceEntry.resource.uri
    TemplateEntry.template.uri_template
}

impl Job {
    /// The error for a caller that lacks scopes, and for a client that cannot be asked what the
    /// function will ask.
    pub(super) fn refuse(&self, call: &Call) -> Option<Outcome> {
        if let Some(error) = self.target.signature().lacks_scopes(self.target.name(), call) {
            return Some(Err(error));
        }
        let asks = self.target.signature().asks.iter().copied();
        let missing: Vec<_> =
            asks.filter(|it| !it.suits(&call.peer.client, call.revision)).collect();
        if missing.is_empty() {
            return None;
        }
        let error = missing_capabilities(&missing);
        if call.revision.era() == Era::Stateless {
            return Some(Err(error));
        }
        // The older revisions have no error code for it, so the text names what is missing.
        let missing: Vec<_> = missing.iter().map(|it| it.name()).collect();
        let why = format!(
            "This client cannot be asked: it lacks {}. `{}` was not started.",
            missing.join(" and "),
            self.target.name()
        );
        Some(match self.target {
            Target::Tool(_) => Ok(self.encode_tool(CallToolResult::error(why), call.revision)),
            _ => Err(ErrorObject { code: code::INVALID_PARAMS, message: why, ..error }),
        })
    }
}
