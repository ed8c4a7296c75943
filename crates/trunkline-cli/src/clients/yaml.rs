//! YAML → values, with the positions of their names.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

use super::jsonc::Unreadable;

/// A value and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Counted from zero.
    pub(super) line: usize,
    /// In characters, counted from zero.
    pub(super) column: usize,
    pub(super) data: Data,
}

#[derive(Clone, Debug)]
pub(super) enum Data {
    One(Value),
    List(Vec<Node>),
    /// Name, position of the name, and value.
    Map(Vec<(String, (usize, usize), Node)>),
}

impl Node {
    pub(super) fn get(&self, key: &str) -> Option<((usize, usize), &Node)> {
        let Data::Map(all) = &self.data else { return None };
        all.iter().find(|(name, ..)| name == key).map(|(_, at, it)| (*at, it))
    }

    pub(super) fn to_value(&self) -> Value {
        match &self.data {
            Data::One(value) => value.clone(),
            Data::List(items) => items.iter().map(Self::to_value).collect(),
            Data::Map(all) => {
                let all = all.iter().map(|(name, _, it)| (name.clone(), it.to_value()));
                Value::Object(all.collect::<Map<_, _>>())
            }
        }
    }
}

/// Parses a text of one document; `None` if it is empty.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Unreadable> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = error.marker();
            let info = error.info().trim_end_matches('.');
            fail(at.line() - 1, at.col(), format!("This is no YAML: {info}."))
        })?;
        builder.take(event, span.start.line() - 1, span.start.col())?;
    }
    Ok(builder.root.filter(|it| !matches!(it.data, Data::One(Value::Null))))
}

pub(super) fn fail(line: usize, column: usize, message: impl Into<String>) -> Unreadable {
    Unreadable { line: line + 1, column: column + 1, message: message.into() }
}

/// A name that waits for its value, and its position.
type Name = (String, (usize, usize));

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    /// Open collections, with their anchors.
    open: Vec<(Node, Option<Name>, usize)>,
    anchors: HashMap<usize, Node>,
    count: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, line: usize, column: usize) -> Result<(), Unreadable> {
        self.count += 1;
        if self.count > MOST || self.open.len() > DEPTH {
            return Err(fail(line, column, "There is too much in it."));
        }
        let node = |data| Node { line, column, data };
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let value = if style == ScalarStyle::Plain { plain(&text) } else { text.into() };
                self.put(node(Data::One(value)), anchor)
            }
            Event::SequenceStart(anchor, _) => {
                self.open.push((node(Data::List(Vec::new())), None, anchor));
                Ok(())
            }
            Event::MappingStart(anchor, _) => {
                self.open.push((node(Data::Map(Vec::new())), None, anchor));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (node, _, anchor) = self.open.pop().expect("only what began can end");
                self.put(node, anchor)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(mut node) => {
                    self.count += size(&node);
                    (node.line, node.column) = (line, column);
                    self.put(node, 0)
                }
                None => Err(fail(line, column, "This alias stands for nothing.")),
            },
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(fail(line, column, "A second document begins here."))
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, node: Node, anchor: usize) -> Result<(), Unreadable> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some((Node { data: Data::List(items), .. }, ..)) => items.push(node),
            Some((Node { data: Data::Map(all), .. }, key, _)) => match key.take() {
                Some((name, at)) => all.push((name, at, node)),
                None => {
                    let name = match node.data {
                        Data::One(Value::String(text)) => text,
                        Data::One(value) => value.to_string(),
                        _ => return Err(fail(node.line, node.column, "A name must be a text.")),
                    };
                    *key = Some((name, (node.line, node.column)));
                }
            },
            Some(_) => {}
        }
        Ok(())
    }
}

fn size(node: &Node) -> usize {
    match &node.data {
        Data::One(_) => 1,
        Data::List(items) => items.iter().map(size).sum::<usize>() + 1,
        Data::Map(all) => all.iter().map(|(.., it)| size(it)).sum::<usize>() + 1,
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ if text.starts_with(|it: char| it.is_ascii_digit() || it == '-') => {
            serde_json::from_str::<serde_json::Number>(text).map_or(text.into(), Value::Number)
        }
        _ => text.into(),
    }
}

/// More values and levels than any catalog has.
const MOST: usize = 100_000;
const DEPTH: usize = 60;
