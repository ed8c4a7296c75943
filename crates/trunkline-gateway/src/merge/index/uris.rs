//! Maps URIs of many servers to URIs of one list, and back.
//!
//! A URI means what its server says, so it is shown unchanged. A URI that several servers claim, by listing it
//! or by a template that it matches, belongs to none of them, as with tool names: each is shown as
//! `trunkline:SERVER/URI`, and a client that reads the bare URI gets an error that says so. When a server comes
//! or goes, a bare URI may disappear but never refers to another server. Hosts recognise user interfaces and
//! skills by their schemes, so `ui://REST` is shown as `ui://trunkline/SERVER/REST`.
//!
//! The long form works for any server and any URI, listed or not. A URI that already looks like it is wrapped
//! again, so that it has one meaning.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use trunkline_wire::text::UriTemplate;

use super::super::Kind;
use super::super::names::Scheme;
use super::section::Entry;
use super::{Given, Index, Item, Target};

impl Index {
    /// The target of a resource that only one server claims.
    pub fn resource(&self, uri: &str) -> Option<Target> {
        let mut claims = self.claims(uri);
        if claims.len() == 1 { claims.pop() } else { None }
    }

    /// The servers that claim a URI, one target each: those that list it, and those with a matching template.
    /// The long form is claimed by the server that it names.
    pub fn claims(&self, uri: &str) -> Vec<Target> {
        if self.scheme != Scheme::Raw
            && let Some((server, own)) = unwrap(uri)
        {
            let server = self.servers().find(|it| ***it == *server);
            return server.map(|it| self.at(it, &own)).into_iter().collect();
        }
        let resources = self.section(Kind::Resources);
        let listed = self.servers().filter_map(|it| resources.find_own(it, uri));
        let mut found: Vec<Target> = listed.map(|entry| Target::clone(&entry.target)).collect();
        let templates = &self.section(Kind::Templates).entries;
        for (at, template) in &self.matchers {
            let target = &templates[*at].target;
            // A template without a scheme could match everything, so it claims nothing.
            let is_claim = self.scheme == Scheme::Raw
                || scheme(&target.name).is_some_and(|it| uri.starts_with(it));
            let is_new = || found.iter().all(|it| it.server != target.server);
            if is_claim && is_new() && template.matches(uri).is_some() {
                found.push(Target { name: uri.into(), ..Target::clone(target) });
            }
        }
        found.sort_by(|a, b| a.server.cmp(&b.server));
        found
    }

    /// Whether a URI names its server.
    pub fn is_addressed(&self, uri: &str) -> bool {
        self.scheme != Scheme::Raw && unwrap(uri).is_some()
    }

    /// The only server with resources, if there is just one. A URI that nobody claims can only be its own.
    pub fn only_server(&self) -> Option<&Arc<str>> {
        let mut all = self.servers.iter().filter(|it| it.has_resources).map(|it| &it.name);
        all.next().filter(|_| all.next().is_none())
    }

    /// The URI by which a client refers to `own` of `server`: in a notification, a link or a result.
    pub fn shown_uri(&self, server: &str, own: &str) -> String {
        if self.scheme == Scheme::Raw {
            return own.to_owned();
        }
        if let Some(entry) = self.section(Kind::Resources).find_own(server, own) {
            return (*entry.shown).to_owned();
        }
        let leads_back = match &*self.claims(own) {
            [target] => *target.server == *server,
            [] => self.only_server().is_some_and(|it| **it == *server) || is_public_url(own),
            _ => false,
        };
        if leads_back && unwrap(own).is_none() { own.to_owned() } else { wrap(server, own) }
    }

    /// A URI at a server: listed there, of one of its templates, or neither.
    fn at(&self, server: &Arc<str>, own: &str) -> Target {
        let listed = self.section(Kind::Resources).find_own(server, own);
        let item = listed.map(|entry| entry.target.item.clone());
        let item = item.or_else(|| self.matching(own, server).map(|it| it.item.clone()));
        let item = item.unwrap_or(Item::Unlisted);
        Target { server: server.clone(), name: own.into(), item }
    }

    /// The first template of a server that a URI matches.
    fn matching(&self, uri: &str, server: &str) -> Option<&Target> {
        let templates = &self.section(Kind::Templates).entries;
        let mut own =
            self.matchers.iter().filter(|(at, _)| *templates[*at].target.server == *server);
        let (at, _) = own.find(|(_, template)| template.matches(uri).is_some())?;
        Some(&templates[*at].target)
    }
}

/// Which servers claim which URIs, while lists are merged. Servers are indices.
pub(super) struct Claims<'a> {
    /// The server that lists a URI; `None` if several do.
    listed: HashMap<&'a str, Option<usize>>,
    /// Templates by their scheme.
    templates: HashMap<&'a str, Vec<(usize, UriTemplate)>>,
    /// Templates without the names of their variables, which do not matter.
    shapes: HashMap<String, Option<usize>>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(servers: &'a [Given<'_>]) -> Self {
        let mut claims =
            Self { listed: HashMap::new(), templates: HashMap::new(), shapes: HashMap::new() };
        for (at, server) in servers.iter().enumerate() {
            for resource in &server.lists.resources {
                claim(&mut claims.listed, &*resource.uri, at);
            }
            for template in &server.lists.templates {
                let text = &*template.uri_template;
                claim(&mut claims.shapes, shape(text), at);
                if let (Some(scheme), Ok(parsed)) = (scheme(text), UriTemplate::parse(text)) {
                    claims.templates.entry(scheme).or_default().push((at, parsed));
                }
            }
        }
        claims
    }

    /// Whether a server is alone in claiming a URI that it lists. `patience` bounds the templates still to
    /// check: where many servers list very much of one scheme, all get the long form.
    fn is_alone(&self, server: usize, uri: &str, patience: &mut usize) -> bool {
        if self.listed.get(uri) != Some(&Some(server)) {
            return false;
        }
        let templates = scheme(uri).and_then(|it| self.templates.get(it));
        let mut others = templates.into_iter().flatten().filter(|(at, _)| *at != server);
        !others.any(|(_, template)| {
            let is_tired = *patience == 0;
            *patience = patience.saturating_sub(1);
            is_tired || template.matches(uri).is_some()
        })
    }
}

fn claim<K: std::hash::Hash + Eq>(claims: &mut HashMap<K, Option<usize>>, what: K, server: usize) {
    let holder = claims.entry(what).or_insert(Some(server));
    *holder = holder.filter(|it| *it == server);
}

/// A template with every expression as `{}`.
fn shape(template: &str) -> String {
    let mut out = String::with_capacity(template.len());
    let mut is_inside = false;
    for character in template.chars() {
        is_inside = is_inside && character != '}';
        if !is_inside {
            out.push(character);
        }
        is_inside |= character == '{';
    }
    out
}

pub(super) fn resources(
    scheme: Scheme,
    servers: &[Given<'_>],
    claims: &Claims<'_>,
    entries: &mut Vec<Entry>,
) {
    let mut patience = PATIENCE;
    for (at, server) in servers.iter().enumerate() {
        for resource in &server.lists.resources {
            let target = server.target(&resource.uri, Item::Resource(resource.clone()));
            let is_alone =
                scheme == Scheme::Raw || claims.is_alone(at, &resource.uri, &mut patience);
            entries.push(entry(scheme, target, is_alone));
        }
    }
}

pub(super) fn templates(
    naming: Scheme,
    servers: &[Given<'_>],
    claims: &Claims<'_>,
    entries: &mut Vec<Entry>,
) {
    for (at, server) in servers.iter().enumerate() {
        for template in &server.lists.templates {
            let text = &*template.uri_template;
            let target = server.target(text, Item::Template(template.clone()));
            // A template without a scheme could belong to any server.
            let is_alone =
                scheme(text).is_some() && claims.shapes.get(&shape(text)) == Some(&Some(at));
            entries.push(entry(naming, target, is_alone));
        }
    }
}

/// The scheme of a URI, or of a template that begins with one.
pub(super) fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    (!scheme.contains('{')).then_some(scheme)
}

fn entry(scheme: Scheme, target: Target, is_alone: bool) -> Entry {
    let is_bare = scheme == Scheme::Raw || is_alone && unwrap(&target.name).is_none();
    let shown =
        if is_bare { target.name.clone() } else { wrap(&target.server, &target.name).into() };
    Entry::new(shown, target, None)
}

/// The long form of a URI.
pub(crate) fn wrap(server: &str, uri: &str) -> String {
    let known = KNOWN.iter().find_map(|scheme| Some((scheme, uri.strip_prefix(scheme)?)));
    match known {
        Some((scheme, rest)) => format!("{scheme}{HERE}{server}/{rest}"),
        None => format!("{SCHEME}{server}/{uri}"),
    }
}

/// The name of a server contains no `/`.
fn unwrap(uri: &str) -> Option<(&str, Cow<'_, str>)> {
    let known = KNOWN.iter().find_map(|scheme| {
        Some((scheme, uri.strip_prefix(scheme)?.strip_prefix(HERE)?.split_once('/')?))
    });
    if let Some((scheme, (server, rest))) = known {
        return Some((server, format!("{scheme}{rest}").into()));
    }
    let (server, own) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    Some((server, own.into()))
}

/// Whether a client can fetch it without any server.
fn is_public_url(uri: &str) -> bool {
    matches!(scheme(uri), Some("http" | "https" | "data"))
}

const SCHEME: &str = "trunkline:";
/// Schemes that hosts recognise: MCP Apps and skills; and the prefix of their long form.
const KNOWN: [&str; 2] = ["ui://", "skill://"];
const HERE: &str = "trunkline/";
/// The bound on template matches while one list is merged.
const PATIENCE: usize = 1 << 20;
