//! An index: the merged lists of many servers, their pages, and the lookup of each shown name.
//!
//! It is built once per change and immutable: readers hold an `Arc` of it.

mod section;
pub(crate) mod uris;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trunkline_auth::digest::sha256;
use trunkline_wire::era::stateless::Extras;
use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    CacheHint, Prompt, Resource, ResourceTemplate, ServerCapabilities, TaskSupport, Tool,
};
use trunkline_wire::revision::{Era, Revision};
use trunkline_wire::text::UriTemplate;

use super::names::{self, Own, Scheme};
use super::{BadCursor, Cursor, Kind, Lists, Offer, adapt};
use crate::catalog::plan::{Naming, ServerPlan};
use section::{Entry, Section};

/// What clients with one selector can see.
#[derive(Debug)]
pub struct Index {
    scheme: Scheme,
    page: Page,
    servers: Vec<Server>,
    sections: [Section; 4],
    /// The templates that URIs are matched with, and the entry of each.
    matchers: Vec<(usize, UriTemplate)>,
    /// The bytes of encoded entries.
    written: AtomicUsize,
}

#[derive(Debug)]
struct Server {
    name: Arc<str>,
    has_resources: bool,
    revision: Revision,
    capabilities: ServerCapabilities,
}

/// Where an item is.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The server.
    pub server: Arc<str>,
    /// Its name, URI or URI template at the server.
    pub name: Arc<str>,
    /// The item.
    pub item: Item,
}

/// The item of a target, as its server lists it.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A tool.
    Tool(Arc<Tool>),
    /// A prompt.
    Prompt(Arc<Prompt>),
    /// A resource.
    Resource(Arc<Resource>),
    /// A resource template; in a lookup by URI, one that the URI matches.
    Template(Arc<ResourceTemplate>),
    /// A URI that the server does not list.
    Unlisted,
}

/// What every page has in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Items on a page.
    pub size: usize,
    /// The bytes after which a page ends. The item that reaches the bound is still on it.
    pub bytes: usize,
    /// How long clients from 2026-07-28 on may cache a page.
    pub cache: CacheHint,
    /// The gateway's `serverInfo`, for clients from 2026-07-28 on.
    pub server_info: Option<Json>,
}

/// A request for one page of a list.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The client's revision.
    pub revision: Revision,
    /// Where the page before ended, unsealed.
    pub after: Option<&'a Cursor>,
    /// The items that the client may see; `None` for all.
    pub visible: Option<&'a dyn Fn(&Target) -> bool>,
    /// Seals a cursor for the client.
    pub seal: &'a dyn Fn(&Cursor) -> String,
}

impl Target {
    /// The tool, if it is one.
    pub fn tool(&self) -> Option<&Arc<Tool>> {
        match &self.item {
            Item::Tool(tool) => Some(tool),
            _ => None,
        }
    }
}

impl Default for Page {
    fn default() -> Self {
        Self { size: 1_000, bytes: 4 << 20, cache: CacheHint::NONE, server_info: None }
    }
}

impl Index {
    /// Merges the lists, by server name and then in each server's order. `raw`: the client has selected this
    /// one server and sees it unchanged.
    pub fn build(naming: Naming, servers: &[(Arc<ServerPlan>, Arc<Lists>)], raw: bool) -> Self {
        Self::with(naming, servers, raw, Page::default())
    }

    /// The same with other pages.
    pub fn with(
        naming: Naming,
        servers: &[(Arc<ServerPlan>, Arc<Lists>)],
        raw: bool,
        page: Page,
    ) -> Self {
        let scheme = Scheme::new(naming, raw);
        let mut sorted: Vec<Given<'_>> = servers.iter().map(Given::new).collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let tools = section(Kind::Tools, &sorted, |entries| tools(scheme, &sorted, entries));
        let prompts = section(Kind::Prompts, &sorted, |entries| prompts(scheme, &sorted, entries));
        let claims = uris::Claims::new(&sorted);
        let resources = section(Kind::Resources, &sorted, |entries| {
            uris::resources(scheme, &sorted, &claims, entries);
        });
        let templates = section(Kind::Templates, &sorted, |entries| {
            uris::templates(scheme, &sorted, &claims, entries);
        });
        let matchers = templates
            .entries
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| Some((at, UriTemplate::parse(&entry.target.name).ok()?)));
        let matchers = matchers.collect();
        let servers = sorted.iter().map(Server::new).collect();
        let (sections, written) = ([tools, prompts, resources, templates], AtomicUsize::new(0));
        Self { scheme, page, servers, sections, matchers, written }
    }

    /// The approximate size in bytes, without what servers list.
    pub fn bytes(&self) -> usize {
        let entries = Kind::ALL.iter().map(|kind| self.len(*kind)).sum::<usize>();
        entries * EACH + self.written.load(Ordering::Relaxed)
    }

    /// How many items there are.
    pub fn len(&self, kind: Kind) -> usize {
        self.section(kind).entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self, kind: Kind) -> bool {
        self.len(kind) == 0
    }

    /// All items: the shown name, URI or template, and the target.
    pub fn iter(&self, kind: Kind) -> impl Iterator<Item = (&Arc<str>, &Target)> {
        self.section(kind).entries.iter().map(|entry| (&entry.shown, &*entry.target))
    }

    /// The names of the servers, in order.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.servers.iter().map(|server| &server.name)
    }

    /// Changes exactly when the list does, so that clients can be notified.
    pub fn etag(&self, kind: Kind) -> &str {
        &self.section(kind).etag
    }

    /// The tool with this shown name.
    pub fn tool(&self, shown: &str) -> Option<&Arc<Target>> {
        self.section(Kind::Tools).find(shown).map(|entry| &entry.target)
    }

    /// The same, and the tool's own name as a request to its server has it.
    pub fn called_tool(&self, shown: &str) -> Option<(&Arc<Target>, &Json)> {
        self.section(Kind::Tools).find(shown).map(|entry| (&entry.target, entry.spelled()))
    }

    /// The prompt with this shown name.
    pub fn prompt(&self, shown: &str) -> Option<&Arc<Target>> {
        self.section(Kind::Prompts).find(shown).map(|entry| &entry.target)
    }

    /// The template with this shown form, for completions.
    pub fn template(&self, shown: &str) -> Option<&Arc<Target>> {
        self.section(Kind::Templates).find(shown).map(|entry| &entry.target)
    }

    /// The headers of a call of this tool from 2026-07-28 on; `None` if there are none.
    pub fn param_headers(&self, shown: &str) -> Option<&Arc<ParamHeaders>> {
        self.section(Kind::Tools).find(shown)?.headers.as_ref()
    }

    /// The shown name of a server's tool; `None` if it is hidden.
    pub fn shown_tool(&self, server: &str, own: &str) -> Option<&Arc<str>> {
        self.section(Kind::Tools).find_own(server, own).map(|entry| &entry.shown)
    }

    /// The shown name of a server's prompt.
    pub fn shown_prompt(&self, server: &str, own: &str) -> Option<&Arc<str>> {
        self.section(Kind::Prompts).find_own(server, own).map(|entry| &entry.shown)
    }

    /// One page of a list, as the result of the list request.
    pub fn page(&self, kind: Kind, look: &Look<'_>) -> Result<Json, BadCursor> {
        let section = self.section(kind);
        let written = section.written(look.revision, || self.write(kind, look.revision));
        let may_see = |entry: &Entry| look.visible.is_none_or(|visible| visible(&entry.target));
        if look.after.is_none() && section.entries.iter().all(may_see) {
            let whole = section.whole(look.revision, || self.whole(kind, look.revision, written));
            if let Some(whole) = whole {
                return Ok(whole.clone());
            }
        }
        let start = match look.after {
            None => 0,
            Some(cursor) if cursor.kind == kind => {
                section.place(&cursor.after).ok_or(BadCursor)? + 1
            }
            Some(_) => return Err(BadCursor),
        };
        let (mut items, mut bytes, mut last, mut next) = (Vec::new(), 0, None, None);
        for at in (start..section.entries.len()).filter(|at| may_see(&section.entries[*at])) {
            if items.len() >= self.page.size.max(1) || bytes >= self.page.bytes {
                next = last;
                break;
            }
            items.push(&*written[at]);
            bytes += written[at].len();
            last = Some(&section.entries[at].shown);
        }
        let next = next.map(|last| (look.seal)(&Cursor { kind, after: (&**last).into() }));
        Ok(adapt::page(kind, look.revision, &items, next, &self.extras()))
    }

    fn section(&self, kind: Kind) -> &Section {
        &self.sections[kind as usize]
    }

    fn extras(&self) -> Extras<'_> {
        Extras { cache: Some(self.page.cache), server_info: self.page.server_info.as_ref() }
    }

    /// The whole list, if it fits one page.
    fn whole(&self, kind: Kind, revision: Revision, written: &[Box<str>]) -> Option<Json> {
        let bytes: usize = written.iter().map(|it| it.len()).sum();
        if written.len() > self.page.size.max(1) || bytes > self.page.bytes {
            return None;
        }
        let items: Vec<&str> = written.iter().map(|it| &**it).collect();
        let whole = adapt::page(kind, revision, &items, None, &self.extras());
        self.written.fetch_add(whole.get().len(), Ordering::Relaxed);
        Some(whole)
    }

    fn write(&self, kind: Kind, revision: Revision) -> Box<[Box<str>]> {
        let entries = self.section(kind).entries.iter();
        let written: Box<[_]> = entries.map(|entry| self.write_entry(entry, revision)).collect();
        let bytes = written.iter().map(|it| it.len() + size_of::<Box<str>>()).sum();
        self.written.fetch_add(bytes, Ordering::Relaxed);
        written
    }

    /// Whether a tool can be called as a task through the gateway.
    fn task_support(&self, entry: &Entry, tool: &Tool) -> TaskSupport {
        let at = self.servers.binary_search_by(|it| it.name.cmp(&entry.target.server));
        let server = at.ok().map(|at| &self.servers[at]);
        server.map_or(TaskSupport::Forbidden, |it| {
            Offer::by(it.revision, &it.capabilities, tool.task_support).shown()
        })
    }

    fn write_entry(&self, entry: &Entry, revision: Revision) -> Box<str> {
        let shown = || (*entry.shown).to_owned();
        match &entry.target.item {
            Item::Tool(tool) => {
                let mut tool = Tool::clone(tool);
                tool.name = shown();
                tool.task_support = self.task_support(entry, &tool);
                if entry.headers.is_none() && revision.era() == Era::Stateless {
                    tool.input_schema = adapt::without_headers(&tool.input_schema);
                }
                adapt::point_interface(&mut tool, |uri| {
                    let resources = self.section(Kind::Resources);
                    resources.find_own(&entry.target.server, uri).map(|it| (*it.shown).to_owned())
                });
                adapt::write(tool, revision)
            }
            Item::Prompt(prompt) => {
                let mut prompt = Prompt::clone(prompt);
                prompt.name = shown();
                adapt::write(prompt, revision)
            }
            Item::Resource(resource) => {
                let mut resource = Resource::clone(resource);
                resource.uri = shown();
                adapt::write(resource, revision)
            }
            Item::Template(template) => {
                let mut template = ResourceTemplate::clone(template);
                template.uri_template = shown();
                adapt::write(template, revision)
            }
            Item::Unlisted => unreachable!("only lookups make these"),
        }
    }
}

/// A server and its lists, as an index takes them.
struct Given<'a> {
    name: Arc<str>,
    plan: &'a ServerPlan,
    lists: &'a Lists,
}

impl<'a> Given<'a> {
    fn new((plan, lists): &'a (Arc<ServerPlan>, Arc<Lists>)) -> Self {
        Self { name: plan.name.as_str().into(), plan, lists }
    }

    fn target(&self, name: &str, item: Item) -> Target {
        Target { server: self.name.clone(), name: name.into(), item }
    }
}

impl Server {
    fn new(given: &Given<'_>) -> Self {
        let lists = given.lists;
        let has_resources = lists.capabilities.resources.is_some();
        Self {
            name: given.name.clone(),
            has_resources,
            revision: lists.revision,
            capabilities: lists.capabilities.clone(),
        }
    }
}

fn section(kind: Kind, servers: &[Given<'_>], fill: impl FnOnce(&mut Vec<Entry>)) -> Section {
    let mut entries = Vec::new();
    fill(&mut entries);
    // The etag covers what the servers list and the names it is shown by.
    let mut seen = String::new();
    for server in servers {
        seen.extend([&*server.name, "\n", server.lists.etag_of(kind), "\n"]);
    }
    for entry in &entries {
        seen.extend([&*entry.shown, "\n"]);
    }
    Section::new(entries, sha256(seen.as_bytes()))
}

fn tools(scheme: Scheme, servers: &[Given<'_>], entries: &mut Vec<Entry>) {
    let mut own = Vec::new();
    for server in servers {
        for tool in &server.lists.tools {
            if !names::is_exposed(server.plan, &tool.name) {
                continue;
            }
            let base = names::base(server.plan, &tool.name);
            own.push(Own { server: &server.plan.name, name: &tool.name, base });
            // Only servers that check the headers get them.
            let headers = (server.lists.revision.era() == Era::Stateless)
                .then(|| ParamHeaders::read(&tool.input_schema).ok())
                .flatten()
                .filter(|headers| !headers.is_empty());
            let target = server.target(&tool.name, Item::Tool(tool.clone()));
            entries.push(Entry::new(Arc::default(), target, headers.map(Arc::new)));
        }
    }
    give_names(scheme, &own, entries);
}

fn prompts(scheme: Scheme, servers: &[Given<'_>], entries: &mut Vec<Entry>) {
    let mut own = Vec::new();
    for server in servers {
        for prompt in &server.lists.prompts {
            own.push(Own { server: &server.plan.name, name: &prompt.name, base: &prompt.name });
            let target = server.target(&prompt.name, Item::Prompt(prompt.clone()));
            entries.push(Entry::new(Arc::default(), target, None));
        }
    }
    give_names(scheme, &own, entries);
}

fn give_names(scheme: Scheme, own: &[Own<'_>], entries: &mut [Entry]) {
    for (entry, shown) in entries.iter_mut().zip(names::assign(scheme, own)) {
        entry.shown = shown;
    }
}

/// The bytes of an entry beside what its server lists: its shown name and its places in the maps.
const EACH: usize = 256;

#[cfg(test)]
mod tests;
