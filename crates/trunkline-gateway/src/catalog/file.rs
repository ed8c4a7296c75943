//! Parses text into a tree in which every value has its position. YAML, and so JSON; JSON may have comments.
//!
//! The cost of a text is bounded: its size, its depth, and the expansion of its aliases.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

/// A position in the text. Both count from 1, the column in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl From<Marker> for Mark {
    fn from(marker: Marker) -> Self {
        Self { line: marker.line(), column: marker.col() + 1 }
    }
}

/// A value and its position.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it begins; what an alias stands for begins where it is written.
    pub at: Mark,
    /// What it is.
    pub data: Data,
    /// The number of values in it, itself included.
    size: usize,
}

/// A value. Only its reader knows whether `5` is a number or a text.
#[derive(Clone, Debug)]
pub enum Data {
    /// Neither list nor map.
    Scalar {
        /// What is written.
        text: String,
        /// Written without quotes.
        is_plain: bool,
    },
    /// Values in their order.
    List(Vec<Node>),
    /// Keys with their values, in their order; of a key that is given twice, the first.
    Map(Vec<(Name, Node)>),
}

/// A key and its position.
#[derive(Clone, Debug)]
pub struct Name {
    /// The key.
    pub text: String,
    /// Where it begins.
    pub at: Mark,
}

impl Node {
    /// Whether it is empty: `null`, `~` or no value.
    pub fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar { text, is_plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Its type, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match &self.data {
            _ if self.is_null() => "nothing",
            Data::Scalar { is_plain: true, text } if text == "true" || text == "false" => {
                text_flag(text)
            }
            Data::Scalar { is_plain: true, text } if text.parse::<f64>().is_ok() => "a number",
            Data::Scalar { .. } => "a text",
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
        }
    }
}

fn text_flag(text: &str) -> &'static str {
    if text == "true" { "`true`" } else { "`false`" }
}

/// A parsed text.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) root: Node,
    /// Duplicate keys, with their paths.
    pub(super) twice: Vec<(Mark, String)>,
    /// Whether it is JSON rather than YAML, and so most likely another program's.
    pub(super) is_json: bool,
    lines: Vec<String>,
    /// The spans of scalar values, in order.
    scalars: Vec<(Mark, Mark)>,
}

/// Why a text cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub struct SyntaxFault {
    /// Where it is.
    pub at: Mark,
    /// What it is, in a sentence.
    pub message: String,
    /// What to do, in a sentence.
    pub suggestion: Option<String>,
    pub(super) excerpt: Option<(String, usize)>,
}

/// Parses YAML into a tree; `None` if nothing is in it.
///
/// # Errors
///
/// What is no YAML, or more than a catalog may be.
pub fn tree(text: &str) -> Result<Option<Node>, SyntaxFault> {
    Ok(build(unmarked(text)?)?.0)
}

/// Parses a text.
pub(super) fn read(text: &str) -> Result<Document, SyntaxFault> {
    let text = unmarked(text)?;
    let is_json = is_json(text);
    let text = if is_json { without_comments(text) } else { text.to_owned() };
    // Lines as YAML counts them: a lone carriage return ends a line too.
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<String> = lines.split('\n').map(str::to_owned).collect();
    let built = build(&text).and_then(|(root, twice, scalars)| match root {
        Some(root) => Ok((root, twice, scalars)),
        None => Err(fault(START, "The file is empty.", "Write `mcpServers: {}` for no servers.")),
    });
    match built {
        Ok((root, twice, scalars)) => Ok(Document { root, twice, is_json, lines, scalars }),
        Err(mut fault) => {
            let line = lines.get(fault.at.line.saturating_sub(1)).map_or("", String::as_str);
            if !line.is_empty() {
                fault.excerpt = Some(window(&masked(line), fault.at.column - 1));
            }
            if fault.suggestion.is_none() && line.contains("${") {
                fault.suggestion =
                    Some("Put quotes around `\"${…}\"` in `[…]` and `{…}`.".to_owned());
            }
            Err(fault)
        }
    }
}

impl Document {
    /// The line of a position, with every value masked except, at most, the one there.
    pub(super) fn excerpt(&self, at: Mark, shows: bool) -> Option<(String, usize)> {
        let line: Vec<char> = self.lines.get(at.line.checked_sub(1)?)?.chars().collect();
        let (mut out, mut before, mut next) = (String::new(), 0, 0);
        let until = |out: &mut String, from: usize, to: usize, before: &mut usize| {
            for (place, letter) in line[from.min(line.len())..to.min(line.len())].iter().enumerate()
            {
                if from + place + 1 == at.column {
                    *before = out.chars().count();
                }
                out.push(if letter.is_control() { ' ' } else { *letter });
            }
        };
        let first = self.scalars.partition_point(|(_, end)| end.line < at.line);
        for (start, end) in self.scalars[first..].iter().take_while(|(it, _)| it.line <= at.line) {
            let from = if start.line < at.line { 0 } else { start.column - 1 };
            let to = if end.line > at.line { line.len() } else { end.column - 1 };
            // The end of a quoted text may be where the next token begins.
            let gap = line[..to.min(line.len())].iter().rev().take_while(|it| it.is_whitespace());
            let to = to - gap.count();
            if from >= to || from < next {
                continue;
            }
            until(&mut out, next, from, &mut before);
            if shows && *start == at {
                until(&mut out, from, to, &mut before);
            } else {
                if (from..to).contains(&(at.column - 1)) {
                    before = out.chars().count();
                }
                out.push('…');
            }
            next = to;
        }
        let mut tail: usize = line.len();
        if let Some(comment) = line.get(next..).and_then(|it| it.iter().position(|it| *it == '#')) {
            tail = next + comment;
        }
        until(&mut out, next, tail, &mut before);
        let shown = out.trim_end();
        if shown.is_empty() { None } else { Some(window(shown, before)) }
    }
}

/// The part of a line around a position.
fn window(line: &str, before: usize) -> (String, usize) {
    let count = line.chars().count();
    if count <= WIDEST {
        return (line.to_owned(), before.min(count));
    }
    let skipped = before.saturating_sub(WIDEST / 2);
    let part: String = line.chars().skip(skipped).take(WIDEST).collect();
    if skipped == 0 {
        return (format!("{part}…"), before);
    }
    (format!("…{part}…"), before - skipped + 1)
}

/// Masks a line that cannot be parsed: it may hold anything, so only its first key and its punctuation are
/// shown.
fn masked(line: &str) -> String {
    let is_key = |(place, _): &(usize, &str)| {
        let after = line[place + 1..].chars().next();
        line[..*place].ends_with('"') || after.is_none_or(char::is_whitespace)
    };
    let key = line.match_indices(':').next().filter(is_key).map_or(0, |(place, _)| place);
    let shown = line.char_indices().map(|(place, it)| match it {
        it if it.is_control() => ' ',
        it if it.is_alphanumeric() && place >= key => '·',
        it => it,
    });
    shown.collect()
}

fn fault(at: Mark, message: impl Into<String>, suggestion: &str) -> SyntaxFault {
    let suggestion = Some(suggestion.to_owned());
    SyntaxFault { at, message: message.into(), suggestion, excerpt: None }
}

/// The text without its byte order mark, unless it is too long.
fn unmarked(text: &str) -> Result<&str, SyntaxFault> {
    if text.len() > LARGEST {
        let message = format!("The file is larger than {} KiB.", LARGEST / 1024);
        return Err(fault(START, message, "Split it, or leave out what no server needs."));
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

type Built = (Option<Node>, Vec<(Mark, String)>, Vec<(Mark, Mark)>);

fn build(text: &str) -> Result<Built, SyntaxFault> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| SyntaxFault {
            at: (*error.marker()).into(),
            message: sentence(error.info()),
            suggestion: None,
            excerpt: None,
        })?;
        builder.take(event, span)?;
    }
    Ok((builder.root.filter(|it| !it.is_null()), builder.twice, builder.scalars))
}

/// The path of a member.
pub(super) fn join(path: &str, key: &str) -> String {
    let is_word = |it: char| it.is_alphanumeric() || "_-$".contains(it);
    match (key.chars().all(is_word) && !key.is_empty(), path) {
        (true, "") => key.to_owned(),
        (true, _) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{key:?}]"),
    }
}

/// The parser's message as a sentence.
fn sentence(info: &str) -> String {
    let mut letters = info.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// Builds the tree from parser events. Not recursive: open nodes are on a stack.
#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    documents: usize,
    /// Values so far, counting those of aliases each time.
    total: usize,
    twice: Vec<(Mark, String)>,
    scalars: Vec<(Mark, Mark)>,
}

struct Open {
    at: Mark,
    anchor: usize,
    parts: Parts,
}

enum Parts {
    List(Vec<Node>),
    Map { pairs: Vec<(Name, Node)>, seen: HashSet<String>, key: Option<Name> },
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), SyntaxFault> {
        let at = span.start.into();
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(fault(at, "The file has a second document.", "Remove the `---`."));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.as_ref().is_some_and(|it| it.suffix == "str" || it.suffix == "!");
                if tag.is_some_and(|it| !it.is_yaml_core_schema() && it.suffix != "!") {
                    return Err(fault(
                        at,
                        "There is a tag (`!…`) here.",
                        "Write the value itself.",
                    ));
                }
                let is_plain = style == ScalarStyle::Plain && !is_text;
                let data = Data::Scalar { text: text.into_owned(), is_plain };
                let is_key = matches!(
                    self.open.last(),
                    Some(Open { parts: Parts::Map { key: None, .. }, .. })
                );
                if !is_key && !span.is_empty() {
                    self.scalars.push((at, span.end.into()));
                }
                self.put(Node { at, data, size: 1 }, anchor)?;
            }
            Event::SequenceStart(anchor, _) => self.open(at, anchor, Parts::List(Vec::new()))?,
            Event::MappingStart(anchor, _) => {
                let (pairs, seen) = Default::default();
                self.open(at, anchor, Parts::Map { pairs, seen, key: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let open = self.open.pop().expect("the parser ends only what it began");
                let (data, size) = match open.parts {
                    Parts::List(list) => {
                        let size = list.iter().map(|it| it.size).sum::<usize>();
                        (Data::List(list), size)
                    }
                    Parts::Map { pairs, .. } => {
                        let pairs = merged(pairs);
                        let size = pairs.iter().map(|(_, it)| it.size).sum::<usize>();
                        (Data::Map(pairs), size)
                    }
                };
                self.put(Node { at: open.at, data, size: size + 1 }, open.anchor)?;
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err(fault(
                        at,
                        "This alias stands in what it stands for.",
                        "Remove it.",
                    ));
                };
                // Counted before it is copied: nine lines can ask for a billion values ("billion laughs").
                self.total += node.size;
                self.bound(at)?;
                let node = node.clone();
                self.put(node, 0)?;
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn open(&mut self, at: Mark, anchor: usize, parts: Parts) -> Result<(), SyntaxFault> {
        if let Some(Open { parts: Parts::Map { key: None, .. }, .. }) = self.open.last() {
            return Err(fault(at, "A key must be a text.", "Write `key: value`."));
        }
        if self.open.len() >= DEEPEST {
            return Err(fault(at, "This is nested too deeply.", "Take a level out."));
        }
        self.open.push(Open { at, anchor, parts });
        Ok(())
    }

    fn put(&mut self, node: Node, anchor: usize) -> Result<(), SyntaxFault> {
        self.total += 1;
        self.bound(node.at)?;
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
            self.total += node.size;
        }
        let path = if self.is_twice() { self.path() } else { String::new() };
        match self.open.last_mut().map(|it| &mut it.parts) {
            None => self.root = Some(node),
            Some(Parts::List(list)) => list.push(node),
            Some(Parts::Map { pairs, seen, key }) => match key.take() {
                Some(name) if seen.insert(name.text.clone()) => pairs.push((name, node)),
                Some(name) => self.twice.push((name.at, path)),
                None => match node.data {
                    Data::Scalar { text, .. } => *key = Some(Name { text, at: node.at }),
                    _ => {
                        return Err(fault(node.at, "A key must be a text.", "Write `key: value`."));
                    }
                },
            },
        }
        Ok(())
    }

    /// Whether the next value belongs to a duplicate key.
    fn is_twice(&self) -> bool {
        matches!(self.open.last().map(|it| &it.parts),
            Some(Parts::Map { seen, key: Some(key), .. }) if seen.contains(&key.text))
    }

    /// The path of the value being read.
    fn path(&self) -> String {
        self.open.iter().fold(String::new(), |path, open| match &open.parts {
            Parts::List(list) => format!("{path}[{}]", list.len()),
            Parts::Map { key: Some(key), .. } => join(&path, &key.text),
            Parts::Map { key: None, .. } => path,
        })
    }

    fn bound(&self, at: Mark) -> Result<(), SyntaxFault> {
        if self.total > MOST {
            let message =
                format!("The file has more than {MOST} values, those of aliases included.");
            return Err(fault(at, message, "Use fewer aliases, or split the file."));
        }
        Ok(())
    }
}

/// Merges `<<: *other` into a map; the map's own keys win.
fn merged(pairs: Vec<(Name, Node)>) -> Vec<(Name, Node)> {
    if !pairs.iter().any(|(name, _)| name.text == "<<") {
        return pairs;
    }
    let (mut out, mut others) = (Vec::new(), Vec::new());
    for (name, node) in pairs {
        match (name.text.as_str(), node.data) {
            ("<<", Data::Map(more)) => others.extend(more),
            ("<<", Data::List(list)) => {
                for it in list {
                    if let Data::Map(more) = it.data {
                        others.extend(more);
                    }
                }
            }
            (_, data) => out.push((name, Node { data, ..node })),
        }
    }
    for (name, node) in others {
        if !out.iter().any(|(it, _): &(Name, Node)| it.text == name.text) {
            out.push((name, node));
        }
    }
    out
}

/// Whether the first character outside comments is a `{`.
pub fn is_json(text: &str) -> bool {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    loop {
        let comment = match rest {
            _ if rest.starts_with("//") => rest.split_once('\n'),
            _ if rest.starts_with("/*") => rest.split_once("*/"),
            _ => return rest.starts_with('{'),
        };
        match comment {
            Some((_, after)) => rest = after.trim_start(),
            None => return false,
        }
    }
}

/// JSON with its comments blanked out, so that every position stays the same.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let (mut is_quoted, mut last) = (false, '\n');
    while let Some(letter) = letters.next() {
        // In YAML's flow style, `{a: http://b}` has no comment.
        let can_start = last.is_whitespace() || ",{}[]\"".contains(last) || last.is_ascii_digit();
        let next = letters.peek().copied();
        match (letter, next) {
            _ if is_quoted => {
                out.push(letter);
                match letter {
                    '\\' => out.extend(letters.next()),
                    '"' => is_quoted = false,
                    _ => {}
                }
            }
            ('/', Some('/')) if can_start => {
                out.push(' ');
                while let Some(it) = letters.next_if(|it| *it != '\n') {
                    out.push(if it == '\r' { it } else { ' ' });
                }
            }
            ('/', Some('*')) if can_start => {
                out.push(' ');
                let mut before = ' ';
                letters.next();
                out.push(' ');
                for it in letters.by_ref() {
                    out.push(if it == '\n' || it == '\r' { it } else { ' ' });
                    if before == '*' && it == '/' {
                        break;
                    }
                    before = it;
                }
            }
            _ => {
                is_quoted = letter == '"';
                out.push(letter);
            }
        }
        last = letter;
    }
    out
}

const START: Mark = Mark { line: 1, column: 1 };
/// The largest text, in bytes.
pub(super) const LARGEST: usize = 1024 * 1024;
/// How deep lists and maps may nest.
const DEEPEST: usize = 64;
/// The bound on values.
const MOST: usize = 100_000;
/// The characters of a line that are shown.
const WIDEST: usize = 120;

#[cfg(test)]
mod tests;
