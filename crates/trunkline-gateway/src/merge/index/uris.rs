//! URIs of many servers → URIs of one list, and back.
//!
//! A URI means what its server says, so it is shown as it is. Where several list the same one, the
//! first by name keeps it and the others are shown as `trunkline:SERVER/URI`. That form is understood
//! for any server and any URI, listed or not; a URI that looks like it from the start is put into it
//! too, so that there is one way to read it.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::Kind;
use super::super::names::Scheme;
use super::section::Entry;
use super::{Given, Index, Item, Target};

impl Index {
    /// Where a resource is: among those that are listed, then by a template that its URI matches.
    /// `None`: nobody says that it has it; see [`Self::candidates`].
    pub fn resource(&self, uri: &str) -> Option<Target> {
        if let Some(entry) = self.section(Kind::Resources).find(uri) {
            return Some(entry.target.clone());
        }
        if self.scheme != Scheme::Raw
            && let Some((server, own)) = unwrap(uri)
        {
            let server = self.servers().find(|it| ***it == *server)?;
            let listed = self.section(Kind::Resources).find_own(server, own);
            let item = listed.map(|entry| entry.target.item.clone());
            let item = item.or_else(|| self.matching(own, Some(server)).map(|it| it.item.clone()));
            let item = item.unwrap_or(Item::Unlisted);
            return Some(Target { server: server.clone(), name: own.into(), item });
        }
        let template = self.matching(uri, None)?;
        Some(Target { name: uri.into(), ..template.clone() })
    }

    /// The servers that may have a resource that nobody lists, the likeliest first: those that list
    /// URIs of its scheme, then the others.
    pub fn candidates(&self, uri: &str) -> Vec<Arc<str>> {
        let scheme = scheme(uri).unwrap_or_default();
        let mut found: Vec<_> = self.servers.iter().filter(|it| it.has_resources).collect();
        found.sort_by_key(|server| !server.schemes.contains(scheme));
        found.into_iter().map(|server| server.name.clone()).collect()
    }

    /// The URI by which a client can say `own` of `server`: in a notification, a link, a result.
    pub fn shown_uri(&self, server: &str, own: &str) -> String {
        if self.scheme == Scheme::Raw {
            return own.to_owned();
        }
        if let Some(entry) = self.section(Kind::Resources).find_own(server, own) {
            return (*entry.shown).to_owned();
        }
        let is_ours = own.starts_with(SCHEME);
        let leads_back = match self.resource(own) {
            Some(target) => *target.server == *server,
            None => {
                let mut others = self.servers.iter().filter(|it| it.has_resources);
                others.all(|it| *it.name == *server) || is_everybodys(own)
            }
        };
        if leads_back && !is_ours { own.to_owned() } else { wrap(server, own) }
    }

    /// The first template that a URI matches, of one server or of those that keep their templates.
    fn matching(&self, uri: &str, server: Option<&str>) -> Option<&Target> {
        let templates = &self.section(Kind::Templates).entries;
        let mut candidates = self.matchers.iter().filter(|(at, _)| match server {
            Some(server) => *templates[*at].target.server == *server,
            None => templates[*at].shown == templates[*at].target.name,
        });
        let (at, _) = candidates.find(|(_, template)| template.matches(uri).is_some())?;
        Some(&templates[*at].target)
    }
}

pub(super) fn resources(scheme: Scheme, servers: &[Given<'_>], entries: &mut Vec<Entry>) {
    let mut taken = HashSet::new();
    for server in servers {
        for resource in &server.lists.resources {
            let target = server.target(&resource.uri, Item::Resource(resource.clone()));
            entries.push(entry(scheme, target, &mut taken));
        }
    }
}

pub(super) fn templates(scheme: Scheme, servers: &[Given<'_>], entries: &mut Vec<Entry>) {
    let mut taken = HashSet::new();
    for server in servers {
        for template in &server.lists.templates {
            let target = server.target(&template.uri_template, Item::Template(template.clone()));
            entries.push(entry(scheme, target, &mut taken));
        }
    }
}

/// The scheme of a URI or of a template that begins with one.
pub(super) fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    (!scheme.contains('{')).then_some(scheme)
}

fn entry(scheme: Scheme, target: Target, taken: &mut HashSet<Arc<str>>) -> Entry {
    let is_bare = scheme == Scheme::Raw
        || !target.name.starts_with(SCHEME) && taken.insert(target.name.clone());
    let shown =
        if is_bare { target.name.clone() } else { wrap(&target.server, &target.name).into() };
    Entry { shown, target, headers: None }
}

fn wrap(server: &str, uri: &str) -> String {
    format!("{SCHEME}{server}/{uri}")
}

/// The name of a server has no `/`.
fn unwrap(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(SCHEME)?.split_once('/')
}

/// Whether a client can fetch it without any server.
fn is_everybodys(uri: &str) -> bool {
    matches!(scheme(uri), Some("http" | "https" | "data"))
}

const SCHEME: &str = "trunkline:";
