//! One server mounted in another: the inner server's offers → entries of the outer server, which
//! follow every change.
//!
//! A server is built before it is mounted, so servers never mount each other in a cycle. An outer
//! server keeps the inner one alive; the inner one only knows whom to notify.

use std::sync::{Arc, Mutex, Weak};

use trunkline_auth::setters;
use trunkline_proto::{Call, Change};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::Answer;
use trunkline_wire::era::stateful;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::{SKILLS_EXTENSION, ServerCapabilities, TASKS_EXTENSION};
use trunkline_wire::revision::Revision;
use trunkline_wire::text::is_tool_name;

use super::builder::{BuildError, ServerBuilder};
use super::context::lock;
use super::job::Target;
use super::lists::{Entry, List, Registry};
use super::skills::Skills;
use super::{Inner, PromptEntry, ResourceEntry, Server, TemplateEntry, ToolEntry};
use crate::layer::{self, BoxError, Inside, Layers};

impl ServerBuilder {
    setters! {
        /// Offers everything that another server offers. Its tools and prompts are called
        /// `prefix.name`. Its resources, templates and skills keep their URIs, because its other texts
        /// refer to them. A duplicate name or URI is a fault of [`try_build`](Self::try_build).
        ///
        /// Its handlers keep its states and layers. Later changes to its lists appear here too, and
        /// clients are notified. A new entry whose name is taken here stays hidden until the name is
        /// free. Settings of the server itself are not taken over: instructions, limits, cache hints,
        /// page sizes, keys, and where its tasks are kept.
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// use trunkline::{Client, Server, tool};
        ///
        /// let rates = Server::builder("rates", "1.0.0").tool(tool("list", async || "EUR, NOK")).build();
        /// let server = Server::builder("bank", "1.0.0").mount("fx", rates.clone()).build();
        ///
        /// rates.put_tool(tool("latest", async || "11.6"))?;
        /// let client = Client::in_memory(&server).await?;
        /// let names: Vec<_> = client.list_tools().await?.into_iter().map(|it| it.name).collect();
        /// assert_eq!(names, ["fx.list", "fx.latest"]);
        /// # Ok(())
        /// # }
        /// ```
        mount(prefix: impl Into<String>, server: impl IntoServer) {
            mounts.push((Some(prefix.into()), server.into_server()))
        }

        /// Offers everything that another server offers, under the same names; otherwise like
        /// [`Self::mount`].
        ///
        /// ```
        /// use trunkline::{Server, tool};
        ///
        /// let ping = || tool("ping", async || "pong");
        /// let health = Server::builder("health", "1.0.0").tool(ping());
        /// let server = Server::builder("shop", "1.0.0").merge(health);
        /// assert!(server.try_build().is_ok());
        ///
        /// let health = Server::builder("health", "1.0.0").tool(ping());
        /// let twice = Server::builder("shop", "1.0.0").tool(ping()).merge(health).try_build();
        /// let why = twice.unwrap_err().to_string();
        /// assert!(why.contains("`ping`") && why.contains("`health`"), "{why}");
        /// ```
        merge(server: impl IntoServer) { mounts.push((None, server.into_server())) }
    }
}

/// What can be mounted: a [`Server`], or a builder.
///
/// ```
/// use trunkline::server::{BuildError, IntoServer};
/// use trunkline::{Server, tool};
///
/// /// Builds itself when it is mounted.
/// struct Shop;
///
/// impl IntoServer for Shop {
///     fn into_server(self) -> Result<Server, BuildError> {
///         Server::builder("shop", "1.0.0").tool(tool("buy", async || "Sold.")).try_build()
///     }
/// }
///
/// assert!(Server::builder("street", "1.0.0").mount("shop", Shop).try_build().is_ok());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a server",
    note = "mount a `Server`, a `ServerBuilder`, or what `proxy(client).await?` makes of a remote one"
)]
pub trait IntoServer {
    /// The server, or its faults.
    ///
    /// ```
    /// use trunkline::{Server, server::IntoServer};
    ///
    /// assert!(Server::builder("shop", "1.0.0").into_server().is_ok());
    /// ```
    fn into_server(self) -> Result<Server, BuildError>;
}

impl IntoServer for Server {
    fn into_server(self) -> Result<Server, BuildError> {
        Ok(self)
    }
}

impl IntoServer for &Server {
    fn into_server(self) -> Result<Server, BuildError> {
        Ok(self.clone())
    }
}

impl IntoServer for ServerBuilder {
    fn into_server(self) -> Result<Server, BuildError> {
        self.try_build()
    }
}

/// The prefix and the server of a requested mount.
pub(super) type Wanted = (Option<String>, Result<Server, BuildError>);

/// A mounted server.
pub(crate) struct Mount {
    prefix: Option<String>,
    /// Kept alive for as long as its entries are offered.
    server: Server,
}

/// The origin of an entry that is not the server's own.
pub(crate) struct Origin {
    /// The server it was registered with, whose states its handler gets.
    pub(super) home: Arc<Inner>,
    /// The index of the mount that it came through.
    mount: usize,
    /// The layers of all servers it came through, innermost first.
    layers: Layers,
}

impl Mount {
    pub(super) fn capabilities(&self) -> &ServerCapabilities {
        &self.server.inner().core.capabilities
    }

    /// The name of the mount in messages.
    fn title(&self) -> String {
        match &self.prefix {
            Some(prefix) => format!("what is mounted as `{prefix}`"),
            None => format!("the merged server `{}`", self.server.inner().core.info.name),
        }
    }

    fn name_of<T: Offered>(&self, key: &str) -> String {
        match &self.prefix {
            Some(prefix) if T::HAS_NAME => format!("{prefix}.{key}"),
            _ => key.to_owned(),
        }
    }

    /// The inner name of the outer `name`, if this mount can have it.
    fn key_of<'a, T: Offered>(&self, name: &'a str) -> Option<&'a str> {
        match &self.prefix {
            Some(prefix) if T::HAS_NAME => name.strip_prefix(&**prefix)?.strip_prefix('.'),
            _ => Some(name),
        }
    }
}

/// The servers that can be mounted; adds the faults of the others.
pub(super) fn mounts(wanted: Vec<Wanted>, faults: &mut Vec<String>) -> Vec<Mount> {
    let mut mounts = Vec::with_capacity(wanted.len());
    for (prefix, server) in wanted {
        if let Some(prefix) = prefix.as_ref().filter(|it| !is_tool_name(it)) {
            faults.push(format!(
                "Nothing can be mounted as `{prefix}`; use letters, digits, `_`, `.` or `-`."
            ));
        }
        match (server, &prefix) {
            (Ok(server), _) => mounts.push(Mount { prefix, server }),
            (Err(error), Some(prefix)) => faults.extend(
                error.faults().iter().map(|it| format!("In what is mounted as `{prefix}`: {it}")),
            ),
            (Err(error), None) => {
                faults.extend(error.faults().iter().map(|it| format!("In what is merged: {it}")));
            }
        }
    }
    mounts
}

/// Adds the capabilities of a mounted server.
pub(super) fn declare(caps: &mut ServerCapabilities, inner: &ServerCapabilities) {
    caps.tools = caps.tools.or(inner.tools);
    caps.prompts = caps.prompts.or(inner.prompts);
    caps.resources = caps.resources.or(inner.resources);
    caps.completions |= inner.completions;
    caps.tasks = caps.tasks.or(inner.tasks);
    for extension in [SKILLS_EXTENSION, TASKS_EXTENSION] {
        if let Some(settings) = inner.extensions.get(extension) {
            caps.extensions.entry(extension.to_owned()).or_insert_with(|| settings.clone());
        }
    }
}

/// Adds a fault for each entry of a mounted server that is invalid or duplicate here.
pub(super) fn check<T: Offered>(own: &List<T>, mounts: &[Mount], faults: &mut Vec<String>) {
    let kind = T::KIND;
    let mut seen: Vec<(String, &Mount)> = Vec::new();
    for mount in mounts {
        let title = mount.title();
        for entry in T::registry(mount.server.inner()).now().iter() {
            let name = mount.name_of::<T>(entry.key());
            if !T::is_legal(&name) {
                faults.push(format!(
                    "The {kind} `{}` of {title} would be called `{name}`, which is no name for a \
                     {kind}; use a shorter prefix.",
                    entry.key()
                ));
            }
            let other = match seen.iter().find(|(it, _)| *it == name) {
                _ if own.find(&name).is_some() => "the server itself".to_owned(),
                Some((_, other)) => other.title(),
                None => {
                    seen.push((name, mount));
                    continue;
                }
            };
            let way_out = match T::HAS_NAME {
                true => "rename one, or mount it under another prefix",
                false => "a prefix is no part of a URI, so give one of them another URI",
            };
            faults.push(format!(
                "There are two {kind}s `{name}`: one of {other}, one of {title}; {way_out}."
            ));
        }
    }
}

/// Adds the skills of mounted servers.
pub(super) fn add_skills(skills: &mut Skills, mounts: &[Mount], faults: &mut Vec<String>) {
    for mount in mounts {
        for skill in mount.server.inner().skills.iter() {
            let uri = skill.key();
            if skills.iter().any(|it| it.key() == uri) {
                let title = mount.title();
                faults.push(format!("There is another skill `{uri}` in {title}; leave one out."));
            }
            skills.add((**skill).clone());
        }
    }
}

/// A kind of entry that a mounted server can offer.
pub(crate) trait Offered: Entry + Clone + Sized {
    /// The kind, in a word.
    const KIND: &'static str;
    /// Whether its key is a name, which takes a prefix, or a URI, which does not.
    const HAS_NAME: bool;

    fn registry(server: &Inner) -> &Registry<Self>;

    fn origin(&self) -> Option<&Arc<Origin>>;

    /// A copy under another name, if it has one, and with an origin.
    fn moved(&self, name: &str, origin: Arc<Origin>) -> Self;

    fn is_legal(name: &str) -> bool;
}

/// `$entry` is called `$kind`, is in the list `$list`, has a name at `$part.name` if there is a
/// `$part`, and may be called what `$is_legal` says.
macro_rules! offered {
    ($entry:ident: $kind:literal in $list:ident, $($part:ident)?, $is_legal:expr) => {
        impl Offered for $entry {
            const KIND: &'static str = $kind;
            const HAS_NAME: bool = !stringify!($($part)?).is_empty();

            fn registry(server: &Inner) -> &Registry<Self> {
                &server.$list
            }

            fn origin(&self) -> Option<&Arc<Origin>> {
                self.origin.as_ref()
            }

            fn moved(&self, name: &str, origin: Arc<Origin>) -> Self {
                let mut moved = self.clone();
                moved.origin = Some(origin);
                let _ = name;
                $(moved.$part.name = name.to_owned();)?
                moved
            }

            fn is_legal(name: &str) -> bool {
                $is_legal(name)
            }
        }
    };
}

offered!(ToolEntry: "tool" in tools, tool, is_tool_name);
offered!(PromptEntry: "prompt" in prompts, prompt, |_| true);
offered!(ResourceEntry: "resource" in resources, , |_| true);
offered!(TemplateEntry: "template" in templates, , |_| true);

/// The servers that a server is mounted in, each with the index of the mount.
#[derive(Default)]
pub(crate) struct Outers(Mutex<Vec<(Weak<Inner>, usize)>>);

impl Outers {
    fn add(&self, outer: &Arc<Inner>, mount: usize) {
        let mut all = lock(&self.0);
        all.retain(|(it, _)| it.strong_count() > 0);
        all.push((Arc::downgrade(outer), mount));
    }

    fn now(&self) -> Vec<(Arc<Inner>, usize)> {
        // Not under the lock: this may drop the last reference to a server.
        let all = lock(&self.0).clone();
        all.into_iter().filter_map(|(it, mount)| Some((it.upgrade()?, mount))).collect()
    }

    /// Each once, however often it mounts the server.
    fn each(&self) -> Vec<Arc<Inner>> {
        let mut each: Vec<Arc<Inner>> = Vec::new();
        for (outer, _) in self.now() {
            if !each.iter().any(|it| Arc::ptr_eq(it, &outer)) {
                each.push(outer);
            }
        }
        each
    }
}

impl Inner {
    /// Offers the entries of mounted servers from now on, and follows their changes.
    pub(super) fn fill(self: &Arc<Self>) {
        for (at, mount) in self.mounts.iter().enumerate() {
            // Before the first read of the lists, so that no change is missed.
            mount.server.inner().outers.add(self, at);
            self.fill_with::<ToolEntry>(at, mount);
            self.fill_with::<PromptEntry>(at, mount);
            self.fill_with::<ResourceEntry>(at, mount);
            self.fill_with::<TemplateEntry>(at, mount);
        }
    }

    /// Notifies every listener of this server and its outer servers. Task changes go only to
    /// listeners of the server that runs the task.
    pub(super) fn tell(&self, change: &Change) {
        match change {
            Change::Resource(uri) => self.listeners.tell(change, |who| self.may_hear_of(uri, who)),
            _ => self.listeners.tell(change, |_| true),
        }
        if matches!(change, Change::Task(..)) {
            return;
        }
        self.outers.each().iter().for_each(|outer| outer.tell(change));
    }

    /// The same at every replica.
    pub(super) fn tell_everywhere(&self, change: &Change) {
        self.tell(change);
        #[cfg(feature = "replicas")]
        self.tell_replicas(change);
    }

    #[cfg(feature = "replicas")]
    fn tell_replicas(&self, change: &Change) {
        if let Some(replicas) = &self.replicas {
            replicas.tell(change);
        }
        self.outers.each().iter().for_each(|outer| outer.tell_replicas(change));
    }

    /// Applies a change of one entry to the lists of the outer servers.
    pub(super) fn follow<T: Offered>(&self, key: &str) {
        for (outer, mount) in self.outers.now() {
            if outer.sync::<T>(mount, key) {
                outer.follow::<T>(&outer.mounts[mount].name_of::<T>(key));
            }
        }
    }

    /// The owner of an entry of a mounted server, for messages.
    pub(super) fn owner<T: Offered>(&self, entry: &T) -> Option<String> {
        entry.origin().map(|it| self.mounts[it.mount].title())
    }

    /// Offers an entry of a mounted server whose name has become free.
    pub(super) fn offer_again<T: Offered>(&self, name: &str) {
        for (at, mount) in self.mounts.iter().enumerate() {
            let has = |it: &&str| T::registry(mount.server.inner()).find(it).is_some();
            if let Some(key) = mount.key_of::<T>(name).filter(has)
                && self.sync::<T>(at, key)
            {
                return;
            }
        }
    }

    fn fill_with<T: Offered>(&self, at: usize, mount: &Mount) {
        for entry in T::registry(mount.server.inner()).now().iter() {
            self.sync::<T>(at, entry.key());
        }
    }

    /// Brings one entry up to date with the mounted server's list. It reads the current state, so
    /// the order of notifications does not matter. Returns whether the list changed.
    fn sync<T: Offered>(&self, at: usize, key: &str) -> bool {
        let mount = &self.mounts[at];
        let inner = mount.server.inner();
        let name = mount.name_of::<T>(key);
        let mut is_gone = false;
        let changed = T::registry(self).edit(|list| {
            let is_ours = |it: &Arc<T>| it.origin().is_some_and(|it| it.mount == at);
            let is_free = list.find(&name).is_none_or(is_ours);
            match T::registry(inner).find(key) {
                Some(entry) if is_free && T::is_legal(&name) => {
                    let before = entry.origin();
                    let home = before.map_or(inner, |it| &it.home);
                    let layers = match before {
                        Some(before) => before.layers.within(&inner.layers),
                        None => inner.layers.clone(),
                    };
                    let origin = Origin { home: Arc::clone(home), mount: at, layers };
                    list.put(entry.moved(&name, Arc::new(origin)));
                    true
                }
                Some(_) => {
                    let (kind, from) = (T::KIND, mount.title());
                    tracing::warn!(name, kind, from, "this cannot be offered under this name");
                    false
                }
                None => {
                    is_gone = is_free && list.remove(&name).is_some();
                    is_gone
                }
            }
        });
        if is_gone {
            self.offer_again::<T>(&name);
        }
        changed
    }

    /// Answers a call through layers.
    pub(super) fn through(
        self: &Arc<Self>,
        layers: &Layers,
        call: Call,
        handle: &ConversationHandle,
        inside: Inside,
    ) -> Answer {
        let server = Arc::clone(self);
        let (revision, is_tool) = (call.revision, call.method.method == Method::ToolsCall);
        let answer = layers.answer(call, handle, inside);
        Answer::later(async move {
            match answer.await {
                Ok(response) => response.into_outcome(),
                Err(error) => server.failed(error, is_tool, revision),
            }
        })
    }

    fn failed(&self, error: BoxError, is_tool: bool, revision: Revision) -> Outcome {
        let error = layer::told(error, is_tool);
        if !is_tool {
            return Err::<_, ErrorObject>(error.into_rpc());
        }
        Ok(stateful::encode(error.into_tool_result()?, revision, &self.extras(None)))
    }
}

impl Target {
    pub(super) fn origin(&self) -> Option<&Arc<Origin>> {
        match self {
            Self::Tool(it) => it.origin(),
            Self::Prompt(it) => it.origin(),
            Self::Resource(it) => it.origin(),
            Self::Template(it, _) => it.origin(),
        }
    }

    /// The layers of the servers it came through, if any.
    pub(super) fn layers(&self) -> Option<Layers> {
        self.origin().map(|it| &it.layers).filter(|it| !it.is_empty()).cloned()
    }
}

impl ToolEntry {
    /// Its own layers and those of the servers it came through, if any.
    pub(super) fn all_layers(&self) -> Option<Layers> {
        let own = Some(&self.layers).filter(|it| !it.is_empty());
        let from = self.origin.as_ref().map(|it| &it.layers).filter(|it| !it.is_empty());
        match (own, from) {
            (None, None) => None,
            (Some(only), None) | (None, Some(only)) => Some(only.clone()),
            (Some(own), Some(from)) => Some(own.within(from)),
        }
    }
}
