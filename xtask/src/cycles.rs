//! The modules of a crate into the circles in which its top-level modules import each other.

mod source;

use source::{Item, items};
use std::collections::{BTreeMap, BTreeSet};

/// Finds the circles of a crate and returns one sentence per circle.
///
/// `roots` are the root files of its library and its programs, `read` gives the text of a file.
/// Names that a root re-exports and code under `#[cfg(test)]` make no arrow.
pub fn check(roots: &[String], read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    roots.iter().flat_map(|root| circles(&Graph::of(root, read), root)).collect()
}

/// Which top-level module imports which, with one place for each arrow.
#[derive(Default)]
pub struct Graph {
    /// Every top-level module, and under it each that it imports with the file and line where it does.
    pub arrows: BTreeMap<String, BTreeMap<String, String>>,
}

impl Graph {
    /// Reads a crate from the file that is its root.
    pub fn of(root: &str, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut graph = Self::default();
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        // Modules of a root file stand beside it, those of any other file in its folder.
        let mut open = vec![(root.to_owned(), folder.to_owned(), Vec::new())];
        let mut imports = Vec::new();
        while let Some((file, folder, path)) = open.pop() {
            for item in items(&read(&file).unwrap_or_default(), &path) {
                match item {
                    Item::Module { path } => {
                        if let [top] = path.as_slice() {
                            graph.arrows.entry(top.clone()).or_default();
                        }
                    }
                    Item::File { path, below } => {
                        if let [top] = path.as_slice() {
                            graph.arrows.entry(top.clone()).or_default();
                        }
                        let folder = format!("{folder}/{}", below.join("/"));
                        let beside = format!("{folder}.rs");
                        let inside = format!("{folder}/mod.rs");
                        let file = if read(&beside).is_some() { beside } else { inside };
                        open.push((file, folder, path));
                    }
                    Item::Import { from, to, line } => {
                        imports.push((from, to, format!("{file}:{line}")));
                    }
                }
            }
        }
        for (from, to, place) in imports {
            if from != to
                && graph.arrows.contains_key(&to)
                && let Some(arrows) = graph.arrows.get_mut(&from)
            {
                arrows.entry(to).or_insert(place);
            }
        }
        graph
    }

    /// Every module that can be reached from this one by at least one arrow.
    fn reach(&self, from: &str) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for next in self.arrows.get(module).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        seen
    }
}

/// One sentence for each set of modules that all reach each other.
fn circles(graph: &Graph, root: &str) -> Vec<String> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.arrows.keys().map(|module| (module.as_str(), graph.reach(module))).collect();
    let mut named = BTreeSet::new();
    let mut sentences = Vec::new();
    for (module, reached) in &reach {
        if !reached.contains(module) || named.contains(module) {
            continue;
        }
        let circle: BTreeSet<&str> =
            reached.iter().copied().filter(|other| reach[other].contains(module)).collect();
        let names: Vec<String> = circle.iter().map(|name| format!("`{name}`")).collect();
        let mut sentence = format!("{root}: the modules {} import in a circle:", names.join(", "));
        for from in &circle {
            for (to, place) in &graph.arrows[*from] {
                if circle.contains(to.as_str()) {
                    sentence.push_str(&format!("\n  `{from}` imports `{to}` at {place}"));
                }
            }
        }
        sentences.push(sentence);
        named.extend(circle);
    }
    sentences
}

#[cfg(test)]
mod tests;
