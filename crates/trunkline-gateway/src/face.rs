//! What one kind of client sees: a choice of servers → names, lists, and a handler for its calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_proto::{Attached, Call, Change, Heard};
use trunkline_transport::handler::{Answer, Handler, Listening};
use trunkline_transport::voice::Voice;
use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json;
use trunkline_wire::method::Method;

use crate::caller::{Caller, principal};
use crate::catalog::plan::{Effect, ServerPlan};
use crate::gateway::{Shared, World};
use crate::merge::{Index, Item, Kind, Lists, Target};
use crate::policy::What;
use crate::policy::subject::Subject;
use crate::search::Search;

/// Which servers a client chose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Selector {
    /// All that it may see.
    #[default]
    All,
    /// One, by its own names.
    Server(String),
    /// Those with one of these tags, and those without tags.
    Tags(Vec<String>),
    /// Those without tags.
    Untagged,
}

impl Selector {
    /// Whether a server is among them.
    pub fn chooses(&self, plan: &ServerPlan) -> bool {
        match self {
            Self::All => true,
            Self::Server(name) => plan.name == *name,
            Self::Tags(tags) => overlap(&plan.tags, tags),
            Self::Untagged => plan.tags.is_empty(),
        }
    }
}

/// Whether one tag is in both; who has none goes with everything.
fn overlap(server: &[String], wanted: &[String]) -> bool {
    server.is_empty() || wanted.is_empty() || server.iter().any(|it| wanted.contains(it))
}

/// All clients with one selector.
pub(crate) struct View {
    pub(crate) selector: Selector,
    built: Mutex<Option<(u64, Arc<Index>)>>,
    /// How many bytes of lists it is known to keep.
    kept: AtomicUsize,
    /// The words of the tools of an index, once somebody searched.
    words: Mutex<Option<(Arc<Index>, Arc<Search>)>>,
}

impl View {
    pub(crate) fn new(selector: Selector) -> Arc<Self> {
        let (built, words, kept) = (Mutex::default(), Mutex::default(), AtomicUsize::new(0));
        Arc::new(Self { selector, built, kept, words })
    }

    /// What there is to see now.
    pub(crate) fn index(&self, shared: &Shared) -> Arc<Index> {
        let generation = shared.generation.load(Ordering::Acquire);
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, index)) = &*built
            && *at == generation
        {
            return Arc::clone(index);
        }
        let world = shared.world();
        let servers = world.servers.values().filter_map(|server| {
            let plan = server.plan();
            let lists = self.selector.chooses(&plan).then(|| server.lists()).flatten()?;
            Some((plan, shared.shown(server, lists)))
        });
        let servers: Vec<_> = servers.collect();
        let is_raw = matches!(self.selector, Selector::Server(_));
        let page = shared.page();
        let index = Arc::new(Index::with(world.plan.gateway.naming, &servers, is_raw, page));
        *built = Some((generation, Arc::clone(&index)));
        drop(built);
        self.count(shared, &index);
        index
    }

    /// Lists were put together or written: what is kept of them counts.
    pub(crate) fn count(&self, shared: &Shared, index: &Index) {
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

    /// Keeps nothing of any list, until somebody asks again.
    pub(crate) fn forget(&self) {
        self.kept.store(0, Ordering::Relaxed);
        self.built.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.words.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The words of an index.
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

/// What a caller may see and do.
pub(crate) struct Sight<'a> {
    pub(crate) world: &'a World,
    pub(crate) caller: &'a Caller,
    /// The tags that the caller's token is for.
    tags: Option<Vec<String>>,
}

impl<'a> Sight<'a> {
    pub(crate) fn new(world: &'a World, caller: &'a Caller) -> Self {
        let tags = caller.bearer.sees(&world.plan.gateway.auth);
        Self { world, caller, tags }
    }

    /// Whether everybody sees the same.
    pub(crate) fn is_open(&self) -> bool {
        self.tags.is_none() && self.world.rules.is_empty()
    }

    /// Whether some part of a server is there for the caller.
    pub(crate) fn sees_server(&self, name: &str) -> bool {
        let Some(server) = self.world.servers.get(name) else { return false };
        self.is_open() || self.sees(&server.plan(), server.lists().as_deref())
    }

    fn sees(&self, plan: &ServerPlan, lists: Option<&Lists>) -> bool {
        let caller = self.caller.bearer.names();
        if !self.is_tagged_for(plan) || !self.world.rules.may_allow(caller, &plan.tags, &plan.name)
        {
            return false;
        }
        let Some(lists) = lists else { return true };
        let server: Arc<str> = Arc::from(plan.name.as_str());
        let mut is_any = false;
        let is_seen = lists.targets(&server).any(|it| {
            is_any = true;
            self.effect(&it) != Effect::Deny
        });
        is_seen || !is_any
    }

    /// What the rules say of something, under its name for them.
    pub(crate) fn effect(&self, target: &Target) -> Effect {
        if self.is_open() {
            return Effect::Allow;
        }
        let Some(server) = self.world.servers.get(&*target.server) else { return Effect::Deny };
        let plan = server.plan();
        if !self.is_tagged_for(&plan) {
            return Effect::Deny;
        }
        let subject = Subject::new(&target.server, what(target));
        self.world.rules.decide(self.caller.bearer.names(), &plan.tags, &subject)
    }

    /// Whether a server has no tags, or one of those that the caller sees.
    fn is_tagged_for(&self, plan: &ServerPlan) -> bool {
        let tags = self.tags.as_ref();
        plan.tags.is_empty() || tags.is_none_or(|tags| plan.tags.iter().any(|it| tags.contains(it)))
    }
}

/// A handler for all clients with one selector.
pub(crate) struct Face {
    pub(crate) shared: Arc<Shared>,
    pub(crate) view: Arc<View>,
}

impl Handler for Face {
    fn call(&self, call: Call, voice: &Voice) -> Answer {
        crate::gate::call(&self.shared, &self.view, call, voice)
    }

    fn heard(&self, heard: Heard, voice: &Voice) {
        if heard.method == Method::RootsListChanged {
            let world = self.shared.world();
            return world.servers.values().for_each(|it| it.has_other_roots(voice.number()));
        }
        self.shared.subscriptions.heard(&self.shared, &heard, voice);
    }

    fn listen(&self, voice: &Voice, attached: &Attached) -> Listening {
        Some(Box::new(Joined::new(self, voice, attached)))
    }

    fn param_headers(
        &self,
        tool: &str,
        _: Option<&Json>,
        _: &Attached,
    ) -> Option<Arc<ParamHeaders>> {
        self.view.index(&self.shared).param_headers(tool).cloned()
    }

    fn is_same_caller(&self, one: &Attached, other: &Attached) -> bool {
        let id = |it| principal(it).map(|it| it.id());
        id(one) == id(other)
    }
}

/// A client that is there.
struct Joined {
    shared: Arc<Shared>,
    view: Arc<View>,
    conversation: u64,
    listener: Arc<trunkline_transport::listeners::Listener<Seat>>,
}

/// Where a listener sits.
pub(crate) struct Seat {
    pub(crate) selector: Selector,
    /// By what the client is told apart from others.
    pub(crate) caller: Arc<str>,
    /// What its conversation is called.
    pub(crate) conversation: u64,
}

impl Joined {
    fn new(face: &Face, voice: &Voice, attached: &Attached) -> Self {
        let caller = Caller::listening(attached, voice);
        let (selector, conversation) = (face.view.selector.clone(), caller.conversation);
        let seat = Seat { selector, caller: caller.id.clone(), conversation };
        face.shared.subscriptions.joined(caller, &face.view);
        let listener = face.shared.listeners.add(voice.clone(), seat);
        let (shared, view) = (Arc::clone(&face.shared), Arc::clone(&face.view));
        shared.joined(&view.selector);
        Self { shared, view, conversation: voice.number(), listener }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.shared.listeners.remove(&self.listener);
        self.shared.subscriptions.left(&self.shared, self.conversation);
        self.shared.left(&self.view.selector, self.conversation);
    }
}

/// What something is to the rules.
pub(crate) fn what(target: &Target) -> What<'_> {
    match &target.item {
        Item::Tool(_) => What::Tool(&target.name),
        Item::Prompt(_) => What::Prompt(&target.name),
        Item::Resource(_) | Item::Template(_) | Item::Unlisted => What::Resource(&target.name),
    }
}

/// What has to be told when a list of a kind changes.
pub(crate) fn change_of(kind: Kind) -> Change {
    match kind {
        Kind::Tools => Change::Tools,
        Kind::Prompts => Change::Prompts,
        Kind::Resources | Kind::Templates => Change::Resources,
    }
}
