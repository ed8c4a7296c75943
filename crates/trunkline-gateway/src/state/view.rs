//! The merged lists that clients with one selector see, cached until a list changes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::GatewayState;
use crate::merge::Index;
use crate::search::Search;
use crate::selector::Selector;

/// What all clients with one selector see.
pub(crate) struct View {
    pub(crate) selector: Selector,
    built: Mutex<Option<(u64, Arc<Index>)>>,
    /// The bytes of lists that this view was last counted with.
    kept: AtomicUsize,
    /// The search index over an index's tools, built on the first search.
    words: Mutex<Option<(Arc<Index>, Arc<Search>)>>,
}

impl View {
    pub(crate) fn new(selector: Selector) -> Arc<Self> {
        let (built, words, kept) = (Mutex::default(), Mutex::default(), AtomicUsize::new(0));
        Arc::new(Self { selector, built, kept, words })
    }

    /// The current merged lists.
    pub(crate) fn index(&self, shared: &GatewayState) -> Arc<Index> {
        self.look(shared, Arc::clone)
    }

    /// Looks at the current merged lists where they are. `look` must not ask for them again.
    pub(crate) fn look<T>(&self, shared: &GatewayState, look: impl FnOnce(&Arc<Index>) -> T) -> T {
        let generation = shared.generation.load(Ordering::Acquire);
        let built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        match &*built {
            Some((at, index)) if *at == generation => look(index),
            _ => look(&self.build(shared, generation, built)),
        }
    }

    fn build(
        &self,
        shared: &GatewayState,
        generation: u64,
        mut built: MutexGuard<'_, Option<(u64, Arc<Index>)>>,
    ) -> Arc<Index> {
        let active = shared.active_plan();
        let servers = active.servers.values().filter_map(|server| {
            let plan = server.plan();
            let lists = self.selector.chooses(&plan).then(|| server.lists()).flatten()?;
            Some((plan, shared.shown(server, lists)))
        });
        let servers: Vec<_> = servers.collect();
        let is_raw = matches!(self.selector, Selector::Server(_));
        let page = shared.page();
        let index = Arc::new(Index::with(active.plan.gateway.naming, &servers, is_raw, page));
        *built = Some((generation, Arc::clone(&index)));
        drop(built);
        self.count(shared, &index);
        index
    }

    /// Counts the bytes again after lists were merged or encoded.
    pub(crate) fn count(&self, shared: &GatewayState, index: &Index) {
        if self.selector == Selector::All {
            return;
        }
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = index.bytes() + words.as_ref().map_or(0, |(_, it)| it.bytes());
        drop(words);
        if self.kept.swap(bytes, Ordering::Relaxed) != bytes {
            shared.keeps(&self.selector, bytes);
        }
    }

    #[cfg(test)]
    pub(crate) fn copied(&self) -> usize {
        let built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        built.as_ref().map_or(0, |(_, it)| it.bytes())
    }

    /// Evicts the copies of all lists; the next request rebuilds them.
    pub(crate) fn forget(&self) {
        self.kept.store(0, Ordering::Relaxed);
        self.built.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.words.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The search index over an index.
    pub(crate) fn search(&self, index: &Arc<Index>) -> Arc<Search> {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, search)) = &*words
            && Arc::ptr_eq(of, index)
        {
            return Arc::clone(search);
        }
        let search = Arc::new(Search::build(index));
        *words = Some((Arc::clone(index), Arc::clone(&search)));
        search
    }
}
