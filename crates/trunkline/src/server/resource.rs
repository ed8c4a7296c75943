//! Resources: things to read, each at its URI or at any URI that fits a template.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{
    Annotations, Icon, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use trunkline_wire::text::{BadTemplate, UriTemplate};

use super::Context;
use super::function::{Function, Input};
use super::job::Work;
use super::lists::Entry;
use super::prompt::{Completions, into_rpc};
use crate::ToolError;

/// A resource, ready to be registered.
#[derive(Clone)]
pub struct ResourceEntry {
    pub(crate) resource: Resource,
    run: Run,
}

/// A template, ready to be registered.
#[derive(Clone)]
pub struct TemplateEntry {
    pub(crate) template: ResourceTemplate,
    pub(crate) parsed: UriTemplate,
    pub(crate) completions: Completions,
    run: Run,
}

type Run = Arc<
    dyn Fn(&Context, &About<'_>, Option<&Json>) -> Result<Work<ReadResourceResult>, String>
        + Send
        + Sync,
>;

/// What is being read.
struct About<'a> {
    uri: &'a str,
    mime_type: Option<&'a str>,
}

/// Makes a resource of an async function that returns its content.
pub fn resource<M, F>(uri: impl Into<String>, name: impl Into<String>, function: F) -> ResourceEntry
where
    F: Function<M>,
    F::Output: IntoContents,
{
    ResourceEntry { resource: Resource::new(uri, name), run: run(function) }
}

/// Makes a template of an async function: the template's variables are its arguments.
pub fn template<M, F>(
    uri_template: impl Into<String>,
    name: impl Into<String>,
    function: F,
) -> Result<TemplateEntry, BadTemplate>
where
    F: Function<M>,
    F::Output: IntoContents,
{
    let template = ResourceTemplate::new(uri_template, name);
    let parsed = UriTemplate::parse(&template.uri_template)?;
    Ok(TemplateEntry { template, parsed, completions: Completions::new(), run: run(function) })
}

fn run<M, F>(function: F) -> Run
where
    F: Function<M>,
    F::Output: IntoContents,
{
    Arc::new(move |context, about, arguments| {
        let future = function.call(&Input { context, arguments })?;
        let (uri, mime_type) = (about.uri.to_owned(), about.mime_type.map(str::to_owned));
        Ok(Box::pin(async move { future.await.into_contents(&uri, mime_type.as_deref()) }))
    })
}

impl ResourceEntry {
    /// Says what it is.
    #[must_use]
    pub fn about(mut self, description: impl Into<String>) -> Self {
        self.resource.description = Some(description.into());
        self
    }

    /// Names it for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.resource.title = Some(title.into());
        self
    }

    /// Says what kind of content it has.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.resource.mime_type = Some(mime_type.into());
        self
    }

    /// Says for whom it is, and how much it matters.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.resource.annotations = Some(annotations);
        self
    }

    /// Gives it a picture.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.resource.icons.push(icon);
        self
    }

    pub(crate) fn start(
        &self,
        context: &Context,
        arguments: Option<&Json>,
    ) -> Result<Work<ReadResourceResult>, String> {
        let mime_type = self.resource.mime_type.as_deref();
        (self.run)(context, &About { uri: &self.resource.uri, mime_type }, arguments)
    }
}

impl TemplateEntry {
    /// Says what it is.
    #[must_use]
    pub fn about(mut self, description: impl Into<String>) -> Self {
        self.template.description = Some(description.into());
        self
    }

    /// Names it for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.template.title = Some(title.into());
        self
    }

    /// Says what kind of content it has.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.template.mime_type = Some(mime_type.into());
        self
    }

    /// Suggests values for a variable.
    #[must_use]
    pub fn complete(
        mut self,
        variable: impl Into<String>,
        complete: impl Fn(&str, &BTreeMap<String, String>) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.completions.insert(variable.into(), Arc::new(complete));
        self
    }

    pub(crate) fn start(
        &self,
        context: &Context,
        uri: &str,
        arguments: Option<&Json>,
    ) -> Result<Work<ReadResourceResult>, String> {
        let mime_type = self.template.mime_type.as_deref();
        (self.run)(context, &About { uri, mime_type }, arguments)
    }
}

impl Entry for ResourceEntry {
    fn key(&self) -> &str {
        &self.resource.uri
    }
}

/// Content that is not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// What a resource may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the content of a resource",
    note = "return a `String`, `Bytes`, `Vec<ResourceContents>`, an `Option` of one of them (`None`: there is no such resource) or a `Result`"
)]
pub trait IntoContents: Send + 'static {
    /// Turns it into the protocol's result.
    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject>;
}

impl IntoContents for String {
    fn into_contents(
        self,
        uri: &str,
        mime: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        vec![with_mime(ResourceContents::text(uri, self), mime)].into_contents(uri, mime)
    }
}

impl IntoContents for &'static str {
    fn into_contents(
        self,
        uri: &str,
        mime: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        self.to_owned().into_contents(uri, mime)
    }
}

impl IntoContents for Bytes {
    fn into_contents(
        self,
        uri: &str,
        mime: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        let contents = ResourceContents::blob(uri, STANDARD.encode(self.0));
        vec![with_mime(contents, mime)].into_contents(uri, mime)
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self, _: &str, _: Option<&str>) -> Result<ReadResourceResult, ErrorObject> {
        Ok(ReadResourceResult::new(self))
    }
}

impl<T: IntoContents> IntoContents for Option<T> {
    fn into_contents(
        self,
        uri: &str,
        mime: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        match self {
            Some(contents) => contents.into_contents(uri, mime),
            None => Err(not_found(uri)),
        }
    }
}

impl<T: IntoContents, E: Into<ToolError> + Send + 'static> IntoContents for Result<T, E> {
    fn into_contents(
        self,
        uri: &str,
        mime: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        self.map_err(|error| into_rpc(error.into()))?.into_contents(uri, mime)
    }
}

/// Said in the words of the older revisions; the router finds those of the call's own.
fn not_found(uri: &str) -> ErrorObject {
    ErrorObject::resource_not_found(uri, trunkline_wire::revision::Revision::LATEST_STATEFUL)
}

fn with_mime(mut contents: ResourceContents, mime_type: Option<&str>) -> ResourceContents {
    contents.mime_type = mime_type.map(str::to_owned);
    contents
}
