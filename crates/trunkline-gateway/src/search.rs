//! Full-text search over tools: ranks the tools of an index for a query. Pure.
//!
//! BM25F: a word weighs more the rarer it is and the more telling its field (name, title, argument names,
//! description, in this order), and less in a long text than in a short one.

mod automatic;
mod seen;
mod words;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;
use trunkline_wire::model::Tool;

use crate::merge::{Index, Kind};

pub(crate) use automatic::{
    Asked, CALL_TOOL, FIND_TOOLS, call_tool, find_tools, found, read_call, read_find,
};
pub(crate) use seen::Seen;

/// An inverted index of tools.
#[derive(Debug, Default)]
pub(crate) struct Search {
    names: Vec<Arc<str>>,
    /// For each word, the tools it occurs in and its weight there.
    words: BTreeMap<Box<str>, Vec<(usize, f32)>>,
}

impl Search {
    /// Indexes all tools.
    pub(crate) fn build(index: &Index) -> Self {
        let mut names = Vec::new();
        let mut counted = Vec::new();
        let mut lengths = [0_usize; FIELDS];
        for (shown, target) in index.iter(Kind::Tools) {
            let Some(tool) = target.tool() else { continue };
            let fields = Fields::of(shown, &target.server, tool).0.map(|text| words::of(&text));
            for (sum, words) in lengths.iter_mut().zip(&fields) {
                *sum += words.len();
            }
            names.push(shown.clone());
            counted.push(fields);
        }
        let mean = lengths.map(|sum| (sum as f32 / names.len().max(1) as f32).max(1.0));
        let mut words: BTreeMap<Box<str>, Vec<(usize, f32)>> = BTreeMap::new();
        for (at, fields) in counted.into_iter().enumerate() {
            let mut weights: HashMap<Box<str>, f32> = HashMap::new();
            for (field, list) in fields.into_iter().enumerate() {
                let length = 1.0 - B + B * list.len() as f32 / mean[field];
                for word in list {
                    *weights.entry(word).or_default() += WEIGHTS[field] / length;
                }
            }
            for (word, weight) in weights {
                words.entry(word).or_default().push((at, weight));
            }
        }
        Self { names, words }
    }

    /// The approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let words = self.words.iter().map(|(word, at)| word.len() + EACH + at.len() * 16);
        words.sum::<usize>() + self.names.len() * 16
    }

    /// The best tools for a query that `may_see` admits, at most `limit`, with their scores. Tools that score
    /// far below the best are left out. A query without words returns the first tools.
    pub(crate) fn find(
        &self,
        query: &str,
        limit: usize,
        may_see: &dyn Fn(&str) -> bool,
    ) -> Vec<(f32, Arc<str>)> {
        let mut asked = words::of(query);
        asked.sort();
        asked.dedup();
        asked.truncate(MAX_QUERY);
        if asked.is_empty() {
            let visible = self.names.iter().filter(|name| may_see(name));
            return visible.take(limit).map(|name| (0.0, name.clone())).collect();
        }
        let mut scores: HashMap<usize, f32> = HashMap::new();
        for word in &asked {
            for (at, score) in self.score(word) {
                *scores.entry(at).or_default() += score;
            }
        }
        let visible = scores.into_iter().filter(|(at, _)| may_see(&self.names[*at]));
        let mut found: Vec<(usize, f32)> = visible.collect();
        // Ties keep the order of the list.
        found.sort_by(|(a, one), (b, other)| {
            other.partial_cmp(one).unwrap_or(Ordering::Equal).then(a.cmp(b))
        });
        let worst = found.first().map_or(0.0, |(_, best)| best * RELEVANT);
        let relevant = found.into_iter().take_while(|(_, score)| *score >= worst);
        relevant.take(limit).map(|(at, score)| (score, self.names[at].clone())).collect()
    }

    /// The score of each tool for one word of the query. An unknown word may be a prefix of a known one
    /// (`repo`, `repository`), or the other way round.
    fn score(&self, word: &str) -> Vec<(usize, f32)> {
        if let Some(places) = self.words.get(word) {
            return self.weigh(places, 1.0);
        }
        let mut places: HashMap<usize, f32> = HashMap::new();
        let from = (Bound::Included(word), Bound::Unbounded);
        let longer = self.words.range::<str, _>(from).take_while(|(it, _)| it.starts_with(word));
        let shorter = (MIN_STEM..word.len())
            .rev()
            .filter_map(|end| self.words.get_key_value(word.get(..end)?));
        let longer = longer.filter(|_| word.chars().count() >= MIN_PREFIX).take(MAX_RELATED);
        for (_, related) in longer.chain(shorter.take(1)) {
            for (at, weight) in related {
                let best = places.entry(*at).or_default();
                *best = best.max(*weight);
            }
        }
        let mut places: Vec<(usize, f32)> = places.into_iter().collect();
        places.sort_by_key(|(at, _)| *at);
        self.weigh(&places, RELATED)
    }

    fn weigh(&self, places: &[(usize, f32)], factor: f32) -> Vec<(usize, f32)> {
        let (all, with) = (self.names.len() as f32, places.len() as f32);
        let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln() * factor;
        places.iter().map(|(at, weight)| (*at, rarity * weight / (K1 + weight))).collect()
    }
}

/// The fields of a tool: name, title, arguments, description, descriptions of arguments, server.
struct Fields([String; FIELDS]);

impl Fields {
    fn of(shown: &str, server: &str, tool: &Tool) -> Self {
        let mut fields = Self(Default::default());
        fields.add(0, &tool.name);
        // The shown name counts as well, without the server's prefix, which says little.
        let bare = shown.strip_prefix(server).and_then(|rest| rest.strip_prefix('.'));
        let bare = bare.unwrap_or(shown);
        if bare != tool.name {
            fields.add(0, bare);
        }
        fields.add(5, server);
        let annotated = tool.annotations.as_ref().and_then(|it| it.title.as_deref());
        fields.add(1, tool.title.as_deref().or(annotated).unwrap_or_default());
        fields.add(3, tool.description.as_deref().unwrap_or_default());
        fields.schema(&tool.input_schema.to().unwrap_or_default(), MAX_DEPTH);
        fields
    }

    fn schema(&mut self, schema: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (name, property) in properties {
                self.add(2, name);
                if let Some(Value::String(description)) = property.get("description") {
                    self.add(4, description);
                }
                self.schema(property, depth);
            }
        }
        if let Some(items) = schema.get("items") {
            self.schema(items, depth);
        }
    }

    fn add(&mut self, field: usize, text: &str) {
        let field = &mut self.0[field];
        let room = MAX_FIELD.saturating_sub(field.len());
        let end = text.floor_char_boundary(room.min(text.len()));
        field.push(' ');
        field.push_str(&text[..end]);
    }
}

const FIELDS: usize = 6;
const WEIGHTS: [f32; FIELDS] = [4.0, 3.0, 1.5, 1.0, 0.5, 0.4];
/// BM25 parameters: term saturation and length normalisation.
const K1: f32 = 1.2;
const B: f32 = 0.75;
const RELATED: f32 = 0.5;
/// Tools below this share of the best score are irrelevant.
const RELEVANT: f32 = 0.3;
const MAX_FIELD: usize = 4 << 10;
const MAX_DEPTH: usize = 4;
const MAX_QUERY: usize = 64;
const MIN_PREFIX: usize = 3;
const MIN_STEM: usize = 4;
const MAX_RELATED: usize = 64;
/// The overhead of a word in bytes.
const EACH: usize = 96;

#[cfg(test)]
mod tests;
