//! Two recordings → what differs: call by call, and definition by definition.

mod definitions;
mod ignore;
mod pairs;

use serde::Serialize;

use crate::calls::{self, Act, Answer, Saying};
use crate::normal::{Zone, is_empty_meta, is_volatile, same};
use crate::recording::Recording;
use crate::tree::Tree;

pub use ignore::{BadPath, Ignore};

/// What two recordings have in common, and what not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether nothing differs.
    pub equal: bool,
    /// How many requests and notifications of the client were compared.
    pub calls: usize,
    /// How many tools, prompts, resources and templates were compared.
    pub definitions: usize,
    /// What differs, in the order of the first recording.
    pub differences: Vec<Difference>,
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// What it is about, such as `tools/call sum` or `tool sum`.
    pub of: String,
    /// Which call it is about, counted from 1 in the first recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
    /// The arguments of that call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Tree>,
    /// Where in it, as a JSON Pointer; empty for all of it.
    pub path: String,
    /// What the first recording has there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<Tree>,
    /// What the second recording has there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<Tree>,
}

/// Compares two recordings.
pub fn compare(a: &Recording, b: &Recording, ignore: &Ignore) -> Comparison {
    compare_acts(&calls::all(a), &calls::all(b), ignore)
}

/// Compares what two clients did and what came of it.
pub(crate) fn compare_acts(a: &[Act], b: &[Act], ignore: &Ignore) -> Comparison {
    let mut finder = Finder::new(ignore);
    let definitions = definitions::compare(a, b, &mut finder);
    let pairs = pairs::pair(a, b);
    let mut news: Vec<_> = pairs.iter().map(|(one, other)| news(*one, *other)).collect();
    news.push((unasked(a), unasked(b)));
    remove_same(&mut news);
    for (number, (one, other)) in (1..).zip(&pairs) {
        let act = one.or(*other);
        finder.call = act.map(|it| (number, it.params.get("arguments").cloned()));
        let news = std::mem::take(&mut news[number - 1]);
        match (one, other) {
            (Some(one), Some(other)) => compare_act(one, other, news, &mut finder),
            (Some(act), None) => finder.only(&act.title(), Some(shown(act)), None),
            (None, Some(act)) => finder.only(&act.title(), None, Some(shown(act))),
            (None, None) => {}
        }
    }
    finder.call = None;
    finder.of = UNASKED.to_owned();
    for (at, (one, other)) in paired(news.pop().unwrap_or_default()).into_iter().enumerate() {
        finder.values(&format!("/{at}"), one.as_ref(), other.as_ref(), Zone::Protocol);
    }
    let differences = finder.found;
    let (equal, calls) = (differences.is_empty(), pairs.len());
    Comparison { equal, calls, definitions, differences }
}

/// The first place where two values differ, and both values there, clipped.
pub(crate) fn first_difference(a: &Tree, b: &Tree) -> Option<(String, String, String)> {
    let ignore = Ignore::default();
    let mut finder = Finder::new(&ignore);
    finder.values("", Some(a), Some(b), Zone::Protocol);
    let found = finder.found.into_iter().next()?;
    let shown = |tree: Option<Tree>| match tree {
        Some(tree) => clip(&tree.to_text()),
        None => "absent".to_owned(),
    };
    Some((found.path, shown(found.a), shown(found.b)))
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a server says of its own accord belongs to no call.
const UNASKED: &str = "the server, unasked";

/// How many characters of a value a sentence repeats.
const MOST_SHOWN: usize = 80;

/// A call that only one recording has.
fn shown(act: &Act) -> Tree {
    let mut params = act.params.clone();
    if let Tree::Object(members) = &mut params {
        members.retain(|(name, _)| name != "_meta");
    }
    params
}

fn compare_act(a: &Act, b: &Act, news: News, finder: &mut Finder<'_>) {
    finder.of = a.title();
    finder.values("/params", Some(&a.params), Some(&b.params), Zone::Protocol);
    let (questions_a, questions_b) = (questions(a), questions(b));
    for at in 0..questions_a.len().max(questions_b.len()) {
        let path = format!("/questions/{at}");
        finder.values(&path, questions_a.get(at), questions_b.get(at), Zone::Protocol);
    }
    for (at, (one, other)) in paired(news).into_iter().enumerate() {
        let path = format!("/notifications/{at}");
        finder.values(&path, one.as_ref(), other.as_ref(), Zone::Protocol);
    }
    if is_chance(a) || is_chance(b) {
        return;
    }
    match (a.answer(), b.answer()) {
        (Some(Ok(one)), Some(Ok(other))) => {
            let (one, other) = (definitions::rest(a, one), definitions::rest(b, other));
            finder.values("/result", Some(&one), Some(&other), Zone::Protocol);
        }
        (Some(Err(one)), Some(Err(other))) => {
            finder.values("/error", Some(one), Some(other), Zone::Protocol);
        }
        (None, None) => {}
        (one, other) => finder.put("/answer", one.map(as_tree), other.map(as_tree)),
    }
}

/// Whether what came of it is chance: how far the server came before a cancellation, and a task before it was asked for.
fn is_chance(act: &Act) -> bool {
    act.is_cancelled || is_waiting(act)
}

/// Whether it asked how a task is doing, and the task was not done: how often that happens is chance.
fn is_waiting(act: &Act) -> bool {
    let status = || match act.answer() {
        Some(Ok(result)) => result.get("status")?.as_text(),
        _ => None,
    };
    act.method == "tasks/get" && matches!(status(), Some("working" | "submitted"))
}

/// Whether the answer is a task, in either era.
fn is_task(act: &Act) -> bool {
    let Some(Ok(result)) = act.answer() else { return false };
    let is_handle = result.get("resultType").and_then(Tree::as_text) == Some("task");
    is_handle || matches!(result.get("task"), Some(Tree::Object(_)))
}

fn as_tree(answer: &Answer) -> Tree {
    let (name, value) = match answer {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    Tree::Object(vec![(name.to_owned(), value.clone())])
}

/// The questions of the server during a call, with their answers.
fn questions(act: &Act) -> Vec<Tree> {
    let steps = act.steps.iter().filter(|it| !it.is_unasked());
    let asked = steps.filter_map(|it| match &it.saying {
        Saying::Ask { method, params, answer, .. } => {
            let mut question = said(method, params);
            if let Some(answer) = answer {
                question.set("answer", as_tree(answer));
            }
            Some(question)
        }
        _ => None,
    });
    asked.collect()
}

/// What the server told during a call.
fn told(act: &Act) -> Vec<Tree> {
    let steps = act.steps.iter().filter(|it| !it.is_unasked());
    let told = steps.filter_map(|it| match &it.saying {
        Saying::Tell { method, params } => Some(said(method, params)),
        _ => None,
    });
    told.collect()
}

/// What the server said of its own accord. Whether the client was still there to answer is chance.
fn unasked(acts: &[Act]) -> Vec<Tree> {
    let steps = acts.iter().flat_map(|it| &it.steps).filter(|it| it.is_unasked());
    let said = steps.filter_map(|it| match &it.saying {
        Saying::Tell { method, params } | Saying::Ask { method, params, .. } => {
            Some(said(method, params))
        }
        Saying::Answer { .. } => None,
    });
    said.collect()
}

fn said(method: &str, params: &Tree) -> Tree {
    let method = ("method".to_owned(), Tree::Text(method.to_owned()));
    Tree::Object(vec![method, ("params".to_owned(), params.clone())])
}

/// What the servers of two recordings told during one call, or unasked.
type News = (Vec<Tree>, Vec<Tree>);

/// What both servers told during a call, if that is not chance.
fn news(a: Option<&Act>, b: Option<&Act>) -> News {
    let (Some(a), Some(b)) = (a, b) else { return News::default() };
    // How far a task came before the conversation ended is chance.
    if is_chance(a) || is_chance(b) || (is_task(a) && is_task(b)) {
        return News::default();
    }
    (told(a), told(b))
}

/// Removes what both servers told, whatever its order: during the same call, or else anywhere, because over stdio nothing
/// says which call a notification belongs to.
fn remove_same(all: &mut [News]) {
    for (one, other) in all.iter_mut() {
        one.retain(|it| !remove(it, other));
    }
    for at in 0..all.len() {
        let mut rest = std::mem::take(&mut all[at].0);
        rest.retain(|it| !all.iter_mut().any(|(_, other)| remove(it, other)));
        all[at].0 = rest;
    }
}

fn remove(it: &Tree, from: &mut Vec<Tree>) -> bool {
    let found = from.iter().position(|other| same(it, other, Zone::Protocol));
    found.map(|at| from.remove(at)).is_some()
}

/// Pairs what has the same method.
fn paired((a, mut b): News) -> Vec<(Option<Tree>, Option<Tree>)> {
    let mut pairs = Vec::new();
    for one in a {
        let other = b.iter().position(|other| one.get("method") == other.get("method"));
        pairs.push((Some(one), other.map(|at| b.remove(at))));
    }
    pairs.extend(b.into_iter().map(|other| (None, Some(other))));
    pairs
}

/// Collects differences.
pub(crate) struct Finder<'i> {
    ignore: &'i Ignore,
    of: String,
    call: Option<(usize, Option<Tree>)>,
    found: Vec<Difference>,
}

impl<'i> Finder<'i> {
    fn new(ignore: &'i Ignore) -> Self {
        Self { ignore, of: String::new(), call: None, found: Vec::new() }
    }

    /// All of something is in one recording only.
    fn only(&mut self, of: &str, a: Option<Tree>, b: Option<Tree>) {
        self.of = of.to_owned();
        self.put("", a, b);
    }

    fn put(&mut self, path: &str, a: Option<Tree>, b: Option<Tree>) {
        if !self.ignore.covers(&self.of, path) {
            let (of, path) = (self.of.clone(), path.to_owned());
            let (call, arguments) = match self.call.clone() {
                Some((call, arguments)) => (Some(call), arguments),
                None => (None, None),
            };
            self.found.push(Difference { of, call, arguments, path, a, b });
        }
    }

    /// Compares two values, down to the smallest parts that differ.
    fn values(&mut self, path: &str, a: Option<&Tree>, b: Option<&Tree>, zone: Zone) {
        match (a, b) {
            (Some(Tree::Object(members)), Some(other @ Tree::Object(others))) => {
                let is_new = |name: &String| !members.iter().any(|(it, _)| it == name);
                let added = others.iter().map(|(name, _)| name).filter(|it| is_new(it));
                let names = members.iter().map(|(name, _)| name).chain(added);
                for name in names.collect::<Vec<_>>() {
                    if zone == Zone::Protocol && is_volatile(name) {
                        continue;
                    }
                    let (one, two) = (a.and_then(|it| it.get(name)), other.get(name));
                    if zone == Zone::Protocol && is_empty_meta(name, one, two) {
                        continue;
                    }
                    let zone = one.or(two).map_or(zone, |it| zone.inside(name, it));
                    self.values(&format!("{path}/{}", escaped(name)), one, two, zone);
                }
            }
            (Some(Tree::List(one)), Some(Tree::List(other))) => {
                for at in 0..one.len().max(other.len()) {
                    self.values(&format!("{path}/{at}"), one.get(at), other.get(at), zone);
                }
            }
            (Some(one), Some(other)) if same(one, other, zone) => {}
            (None, None) => {}
            _ => self.put(path, a.cloned(), b.cloned()),
        }
    }
}

/// A member's name in a JSON Pointer (RFC 6901 §3).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
