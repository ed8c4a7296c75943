//! Resources: content to read, at one URI or at every URI that matches a template.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use trunkline_auth::setters;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{
    Annotations, Icon, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use trunkline_wire::text::{BadTemplate, UriTemplate};

use super::complete::Completions;
use super::compose::Origin;
use super::function::{Function, Input, Rejection, Signature};
use super::job::Work;
use super::proxy::Completer;
use super::texts::Texts;
use crate::ToolError;
use crate::caller::Visible;

/// A resource, ready to be registered.
///
/// ```
/// let menu = trunkline::resource("menu://today", "m", async || "Soup.").mime_type("text/plain");
/// assert!(trunkline::Server::builder("inn", "1.0.0").resource(menu).try_build().is_ok());
/// ```
#[derive(Clone)]
pub struct ResourceEntry {
    pub(crate) resource: Resource,
    pub(crate) signature: Signature,
    pub(crate) visible: Visible,
    /// Set if a mounted server offers it.
    pub(crate) origin: Option<Arc<Origin>>,
    run: Run,
}

/// A template, ready to be registered.
///
/// ```
/// let day = trunkline::template("menu://{day}", "day", async || "Soup.").title("A day");
/// assert!(trunkline::Server::builder("inn", "1.0.0").resource(day).try_build().is_ok());
/// ```
#[derive(Clone)]
pub struct TemplateEntry {
    pub(crate) template: ResourceTemplate,
    pub(crate) parsed: Result<UriTemplate, BadTemplate>,
    pub(crate) completions: Completions,
    pub(crate) signature: Signature,
    pub(crate) visible: Visible,
    /// Set if a mounted server offers it.
    pub(crate) origin: Option<Arc<Origin>>,
    /// Completes its variables at a remote server.
    pub(crate) completer: Option<Completer>,
    texts: Texts,
    run: Run,
}

type Run = Arc<
    dyn Fn(&Input<'_>, &About<'_>) -> Result<Work<ReadResourceResult>, Rejection> + Send + Sync,
>;

/// What is being read.
struct About<'a> {
    uri: &'a str,
    mime_type: Option<&'a str>,
}

/// Makes a resource of an async function that returns its content.
///
/// ```
/// # use trunkline::{Client, Server, model::ResourceData, resource};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let menu = resource("menu://today", "menu", async || "Soup.");
/// let client = Client::in_memory(&Server::builder("inn", "1.0.0").resource(menu).build()).await?;
/// let read = client.read_resource("menu://today").await?;
/// assert_eq!(read.contents[0].data, ResourceData::Text("Soup.".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub fn resource<M, F>(uri: impl Into<String>, name: impl Into<String>, function: F) -> ResourceEntry
where
    F: Function<M>,
    F::Output: IntoContents,
{
    let (signature, run) = run(function);
    let resource = Resource::new(uri, name);
    ResourceEntry { resource, signature, visible: None, origin: None, run }
}

/// Makes a template of an async function: the template's variables are its arguments. An invalid
/// template is a fault when the server is built.
///
/// ```
/// # use trunkline::{Args, Client, Server, data, model::ResourceData, template};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// #[data]
/// struct Day { day: String }
/// let day = template("menu://{day}", "day", async |Args(it): Args<Day>| it.day + ": soup");
/// let client = Client::in_memory(&Server::builder("inn", "1.0.0").resource(day).build()).await?;
/// let read = client.read_resource("menu://friday").await?;
/// assert_eq!(read.contents[0].data, ResourceData::Text("friday: soup".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub fn template<M, F>(
    uri_template: impl Into<String>,
    name: impl Into<String>,
    function: F,
) -> TemplateEntry
where
    F: Function<M>,
    F::Output: IntoContents,
{
    let template = ResourceTemplate::new(uri_template, name);
    let parsed = UriTemplate::parse(&template.uri_template);
    let (signature, run) = run(function);
    let completions = Completions::new();
    TemplateEntry {
        template,
        parsed,
        completions,
        signature,
        visible: None,
        origin: None,
        completer: None,
        texts: Texts::default(),
        run,
    }
}

fn run<M, F>(function: F) -> (Signature, Run)
where
    F: Function<M>,
    F::Output: IntoContents,
{
    let mut signature = Signature::default();
    F::describe(&mut signature);
    let run: Run = Arc::new(move |input, about| {
        let future = function.call(input)?;
        let (uri, mime_type) = (about.uri.to_owned(), about.mime_type.map(str::to_owned));
        Ok(Box::pin(async move { future.await.into_contents(&uri, mime_type.as_deref()) }))
    });
    (signature, run)
}

/// What can be registered as a resource: a [`ResourceEntry`], a [`TemplateEntry`], or a function
/// with `#[resource]`.
///
/// ```
/// use trunkline::server::{IntoResource, ResourceOrTemplate};
///
/// let menu = trunkline::resource("menu://today", "menu", async || "Soup.").into_resource();
/// assert!(matches!(menu, ResourceOrTemplate::Resource(_)));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource",
    note = "write `resource(\"uri\", \"name\", function)` or `template(..)`, or put `#[resource]` on the function"
)]
pub trait IntoResource<Marker = ()> {
    /// The resource or template.
    ///
    /// ```
    /// use trunkline::{resource, server::IntoResource};
    ///
    /// let menu = resource("menu://today", "menu", async || "Soup.").into_resource();
    /// assert!(trunkline::Server::builder("inn", "1.0.0").resource(menu).try_build().is_ok());
    /// ```
    fn into_resource(self) -> ResourceOrTemplate;
}

/// Something to read: at one URI, or at every URI that matches a template.
///
/// ```
/// use trunkline::server::{IntoResource, ResourceOrTemplate};
///
/// let day = trunkline::template("menu://{day}", "day", async || "Soup.").into_resource();
/// assert!(matches!(day, ResourceOrTemplate::Template(_)));
/// ```
#[derive(Clone)]
pub enum ResourceOrTemplate {
    /// At one URI.
    Resource(ResourceEntry),
    /// At every URI that matches.
    Template(TemplateEntry),
}

impl IntoResource for ResourceEntry {
    fn into_resource(self) -> ResourceOrTemplate {
        ResourceOrTemplate::Resource(self)
    }
}

impl IntoResource for TemplateEntry {
    fn into_resource(self) -> ResourceOrTemplate {
        ResourceOrTemplate::Template(self)
    }
}

impl IntoResource for ResourceOrTemplate {
    fn into_resource(self) -> ResourceOrTemplate {
        self
    }
}

impl ResourceEntry {
    setters! {
        /// Sets the MIME type of its content.
        mime_type(mime_type: impl Into<String>) { resource.mime_type = Some(mime_type.into()) }

        /// Sets its audience and priority.
        annotations(annotations: Annotations) { resource.annotations = Some(annotations) }

        /// Adds an icon.
        icon(icon: Icon) { resource.icons.push(icon) }
    }

    pub(crate) fn start(&self, input: Input<'_>) -> Result<Work<ReadResourceResult>, Rejection> {
        let (uri, mime_type) = (&*self.resource.uri, self.resource.mime_type.as_deref());
        (self.run)(&Input { uri: Some(uri), ..input }, &About { uri, mime_type })
    }

    /// Adds its faults.
    pub(crate) fn prepare(&mut self, faults: &mut Vec<String>) {
        let uri = &self.resource.uri;
        if !self.signature.arguments.is_empty() {
            faults.push(format!(
                "The resource `{uri}` has no arguments to read; leave out `Args`, or make it a \
                 template."
            ));
        }
    }
}

impl TemplateEntry {
    /// Sets the MIME type of its content.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.template.mime_type = Some(mime_type.into());
        self
    }

    pub(crate) fn start(&self, input: Input<'_>) -> Result<Work<ReadResourceResult>, Rejection> {
        let (uri, mime_type) = (input.uri.unwrap_or_default(), self.template.mime_type.as_deref());
        self.texts.read(input, |input| (self.run)(input, &About { uri, mime_type }))
    }

    /// Prepares it for reads, and adds its faults.
    pub(crate) fn prepare(&mut self, faults: &mut Vec<String>) {
        let uri = &self.template.uri_template;
        if let Err(why) = &self.parsed {
            faults.push(format!("The template `{uri}` cannot be used: {why}"));
        }
        if self.signature.arguments.len() > 1 {
            faults
                .push(format!("The template `{uri}` reads its variables twice; keep one `Args`."));
        }
        self.texts = Texts::of(&self.signature);
    }
}

/// Content that is not text.
///
/// ```
/// # use trunkline::{Client, Server, model::ResourceData, resource, server::Bytes};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let dot = resource("dot://", "dot", async || Bytes(vec![1, 2, 3])).mime_type("image/x-dot");
/// let client = Client::in_memory(&Server::builder("dots", "1.0.0").resource(dot).build()).await?;
/// let read = client.read_resource("dot://").await?;
/// assert_eq!(read.contents[0].data, ResourceData::Blob("AQID".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// What a resource may return.
///
/// ```
/// use trunkline::server::IntoContents;
///
/// let read = "Soup.".into_contents("menu://today", Some("text/plain")).unwrap();
/// assert_eq!(read.contents[0].uri, "menu://today");
/// assert!(None::<String>.into_contents("menu://never", None).is_err(), "there is no such thing");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the content of a resource",
    note = "return a `String`, `Bytes`, `Vec<ResourceContents>`, an `Option` of one of them (`None`: there is no such resource) or a `Result`"
)]
pub trait IntoContents: Send + 'static {
    /// Converts it into the protocol's result.
    ///
    /// ```
    /// use trunkline::server::IntoContents;
    ///
    /// let read = "Soup.".into_contents("menu://today", Some("text/plain")).unwrap();
    /// assert_eq!(read.contents[0].mime_type.as_deref(), Some("text/plain"));
    /// ```
    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject>;
}

type Contents = Result<ReadResourceResult, ErrorObject>;

impl IntoContents for String {
    fn into_contents(self, uri: &str, mime: Option<&str>) -> Contents {
        vec![with_mime(ResourceContents::text(uri, self), mime)].into_contents(uri, mime)
    }
}

impl IntoContents for &'static str {
    fn into_contents(self, uri: &str, mime: Option<&str>) -> Contents {
        self.to_owned().into_contents(uri, mime)
    }
}

impl IntoContents for Bytes {
    fn into_contents(self, uri: &str, mime: Option<&str>) -> Contents {
        let contents = ResourceContents::blob(uri, STANDARD.encode(self.0));
        vec![with_mime(contents, mime)].into_contents(uri, mime)
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self, _: &str, _: Option<&str>) -> Contents {
        Ok(ReadResourceResult::new(self))
    }
}

impl<T: IntoContents> IntoContents for Option<T> {
    fn into_contents(self, uri: &str, mime: Option<&str>) -> Contents {
        match self {
            Some(contents) => contents.into_contents(uri, mime),
            None => Err(not_found(uri)),
        }
    }
}

impl<T: IntoContents, E: Into<ToolError> + Send + 'static> IntoContents for Result<T, E> {
    fn into_contents(self, uri: &str, mime: Option<&str>) -> Contents {
        self.map_err(|error| error.into().into_rpc())?.into_contents(uri, mime)
    }
}

/// In the form of the older revisions; the router converts it for the call's own.
fn not_found(uri: &str) -> ErrorObject {
    ErrorObject::resource_not_found(uri, trunkline_wire::revision::Revision::LATEST_STATEFUL)
}

fn with_mime(mut contents: ResourceContents, mime_type: Option<&str>) -> ResourceContents {
    contents.mime_type = mime_type.map(str::to_owned);
    contents
}
