//! A call → its caller, what layers added to it, and what that caller may see.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use trunkline_auth::Principal;
use trunkline_proto::{Attached, Call, CallKey, Peer, RequestStream};
use trunkline_wire::era::stateless::Envelope;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Object};
use trunkline_wire::method;
use trunkline_wire::model::{ClientCapabilities, Implementation};
use trunkline_wire::revision::Revision;

/// The caller of a list or call, on which [`visible`](crate::server::ToolEntry::visible) decides.
///
/// ```
/// # use trunkline::{Caller, Client, Server, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// fn is_known(caller: &Caller<'_>) -> bool {
///     caller.principal().is_some()
/// }
///
/// let reset = tool("reset", async || "Done.").visible(is_known);
/// let client = Client::in_memory(&Server::builder("a", "1.0.0").tool(reset).build()).await?;
/// assert!(client.list_tools().await?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Caller<'a>(pub(crate) &'a Call);

impl Caller<'_> {
    /// The authenticated caller.
    ///
    /// ```
    /// let reset = trunkline::tool("reset", async || "Done.")
    ///     .visible(|caller| caller.principal().is_some_and(|it| it.may("admin")));
    /// assert!(trunkline::Server::builder("a", "1.0.0").tool(reset).try_build().is_ok());
    /// ```
    pub fn principal(&self) -> Option<&Principal> {
        principal(&self.0.attached)
    }

    /// A value that a [layer](crate::layer) of the server, or of the HTTP stack in front of it, put
    /// into the extensions of the call.
    ///
    /// ```
    /// struct Plan(&'static str);
    ///
    /// let render = trunkline::tool("render", async || "A film.")
    ///     .visible(|caller| caller.extension::<Plan>().is_some_and(|plan| plan.0 == "gold"));
    /// assert!(trunkline::Server::builder("a", "1.0.0").tool(render).try_build().is_ok());
    /// ```
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        extension(&self.0.attached)
    }

    /// The client's name and version. Self-reported: never a reason to grant access.
    ///
    /// ```
    /// # use trunkline::{Client, Server, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let hint = tool("hint", async || "Press F1.")
    ///     .visible(|caller| caller.client().is_some_and(|it| it.name == "example"));
    /// let server = Server::builder("a", "1.0.0").tool(hint).build();
    /// let client = Client::builder("example", "1.0.0").connect_memory(&server).await?;
    /// assert_eq!(client.list_tools().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn client(&self) -> Option<&Implementation> {
        self.0.peer.info.as_ref()
    }

    /// The client's capabilities: what it can be asked.
    ///
    /// ```
    /// # use trunkline::{Client, Server, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let sum = tool("sum", async || "Four.")
    ///     .visible(|caller| caller.capabilities().sampling.is_some());
    /// let client = Client::in_memory(&Server::builder("a", "1.0.0").tool(sum).build()).await?;
    /// assert!(client.list_tools().await?.is_empty(), "its model cannot be asked");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.0.peer.client
    }

    /// The `_meta` of the request.
    ///
    /// ```
    /// # use trunkline::{Client, Server, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let blue = tool("blue", async || "Blue.")
    ///     .visible(|caller| caller.meta().is_some_and(|it| it.get().contains("blue")));
    /// let client = Client::in_memory(&Server::builder("a", "1.0.0").tool(blue).build()).await?;
    /// assert!(client.call_tool("blue", ()).await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn meta(&self) -> Option<&Json> {
        self.0.meta.as_ref()
    }

    /// The revision of the call.
    ///
    /// ```
    /// # use trunkline::{Client, Era, Server, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let modern = tool("modern", async || "New.")
    ///     .visible(|caller| caller.revision().era() == Era::Stateless);
    /// let client = Client::in_memory(&Server::builder("a", "1.0.0").tool(modern).build()).await?;
    /// assert_eq!(client.list_tools().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn revision(&self) -> Revision {
        self.0.revision
    }
}

impl fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("principal", &self.principal()).finish_non_exhaustive()
    }
}

/// The principal of a call.
pub(crate) fn principal(attached: &Attached) -> Option<&Principal> {
    if let Some(added) = attached.get::<Added>() {
        return added.get().or_else(|| principal(added.before()));
    }
    #[cfg(feature = "http")]
    if let Some(extensions) = attached.get::<http::Extensions>() {
        return extensions.get();
    }
    attached.get()
}

/// A value that layers added to a call, or that came with its HTTP request.
pub(crate) fn extension<T: Send + Sync + 'static>(attached: &Attached) -> Option<&T> {
    if let Some(added) = attached.get::<Added>() {
        return added.get().or_else(|| extension(added.before()));
    }
    #[cfg(feature = "http")]
    if let Some(extensions) = attached.get::<http::Extensions>() {
        return extensions.get();
    }
    None
}

/// Decides who sees an entry.
pub(crate) type Visible = Option<Arc<dyn Fn(&Caller<'_>) -> bool + Send + Sync>>;

/// Whether the caller sees an entry. If `visible` panics, the entry is hidden.
pub(crate) fn may_see(visible: &Visible, call: &Call) -> bool {
    visible.as_ref().is_none_or(|it| {
        catch_unwind(AssertUnwindSafe(|| it(&Caller(call)))).unwrap_or_else(|_| {
            tracing::error!("`visible` panicked; what it decides on is hidden");
            false
        })
    })
}

/// A synthetic call that stands for a caller outside a call: for a listener, or for a request that
/// is not parsed yet.
pub(crate) fn call_by(attached: &Attached, meta: Option<&Json>) -> Call {
    /// One for all of whom nothing is known: each listener would keep one.
    static UNKNOWN: LazyLock<Arc<Peer>> = LazyLock::new(Arc::default);
    let envelope = meta.and_then(|it| Envelope::read(Some(it)).ok());
    let peer = envelope.map_or_else(
        || Arc::clone(&UNKNOWN),
        |it| {
            let (info, client) = (it.client_info, it.capabilities);
            Arc::new(Peer { info, client, ..Peer::default() })
        },
    );
    Call {
        key: CallKey(0),
        id: Id::Null,
        method: &method::TABLE[0],
        params: Object::default(),
        meta: meta.cloned(),
        revision: Revision::LATEST,
        peer,
        via: RequestStream::default(),
        is_unseen: false,
        wants_progress: false,
        log_level: None,
        attached: attached.clone(),
    }
}

/// The values that layers added to a call, by type, and what was attached to it before.
#[derive(Clone, Default)]
pub(crate) struct Added {
    things: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    before: Attached,
}

impl Added {
    /// The value of this type, added by this layer or an outer one.
    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.things.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// What was attached `before`, and one value more.
    #[cfg(feature = "testing")]
    pub(crate) fn with<T: Send + Sync + 'static>(it: T, before: Attached) -> Attached {
        let mut added = Self::default();
        added.put(it);
        added.attach(before)
    }

    /// What was attached before the layers ran.
    pub(crate) fn before(&self) -> &Attached {
        &self.before
    }

    /// The form in which handlers find it.
    pub(crate) fn attach(self, before: Attached) -> Attached {
        match self.things.is_empty() {
            true => before,
            false => Attached::new(Self { before, ..self }),
        }
    }

    /// Adds a value.
    pub(crate) fn put<T: Send + Sync + 'static>(&mut self, it: T) {
        self.things.insert(TypeId::of::<T>(), Arc::new(it));
    }
}
