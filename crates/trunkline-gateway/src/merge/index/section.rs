//! One kind of items in an index: found by shown and by own name, encoded once per revision.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json;
use trunkline_wire::revision::Revision;

use super::Target;

/// An item that is shown.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its shown name.
    pub(super) shown: Arc<str>,
    /// Where it is.
    pub(super) target: Arc<Target>,
    /// The arguments mirrored as headers, if the tool's server checks them.
    pub(super) headers: Option<Arc<ParamHeaders>>,
    /// The target's name as requests have it, once it was called.
    spelled: OnceLock<Json>,
}

impl Entry {
    pub(super) fn new(shown: Arc<str>, target: Target, headers: Option<Arc<ParamHeaders>>) -> Self {
        Self { shown, target: Arc::new(target), headers, spelled: OnceLock::new() }
    }

    /// The target's name as requests have it.
    pub(super) fn spelled(&self) -> &Json {
        self.spelled.get_or_init(|| Json::string(&self.target.name))
    }
}

#[derive(Debug)]
pub(super) struct Section {
    pub(super) entries: Vec<Entry>,
    pub(super) etag: String,
    /// The places of the entries, in the order of their shown names.
    by_shown: Box<[usize]>,
    by_own: HashMap<Arc<str>, HashMap<Arc<str>, usize>>,
    written: [OnceLock<Box<[Box<str>]>>; 5],
    whole: [OnceLock<Option<Json>>; 5],
}

impl Section {
    pub(super) fn new(entries: Vec<Entry>, etag: String) -> Self {
        let mut by_own: HashMap<Arc<str>, HashMap<Arc<str>, usize>> = HashMap::new();
        for (at, entry) in entries.iter().enumerate() {
            let of_server = by_own.entry(entry.target.server.clone()).or_default();
            of_server.insert(entry.target.name.clone(), at);
        }
        let mut by_shown: Box<[usize]> = (0..entries.len()).collect();
        by_shown.sort_by_key(|at| &entries[*at].shown);
        let (written, whole) = Default::default();
        Self { entries, etag, by_shown, by_own, written, whole }
    }

    pub(super) fn place(&self, shown: &str) -> Option<usize> {
        let found = self.by_shown.binary_search_by_key(&shown, |at| &self.entries[*at].shown);
        Some(self.by_shown[found.ok()?])
    }

    pub(super) fn find(&self, shown: &str) -> Option<&Entry> {
        Some(&self.entries[self.place(shown)?])
    }

    pub(super) fn find_own(&self, server: &str, own: &str) -> Option<&Entry> {
        Some(&self.entries[*self.by_own.get(server)?.get(own)?])
    }

    /// Every entry as JSON.
    pub(super) fn written(
        &self,
        revision: Revision,
        write: impl FnOnce() -> Box<[Box<str>]>,
    ) -> &[Box<str>] {
        self.written[revision as usize].get_or_init(write)
    }

    /// The result with all entries, if they fit one page.
    pub(super) fn whole(
        &self,
        revision: Revision,
        make: impl FnOnce() -> Option<Json>,
    ) -> Option<&Json> {
        self.whole[revision as usize].get_or_init(make).as_ref()
    }
}
