//! Reads typed values from the tree: a text, a number, a choice, or a fault that says what was expected.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::catalog::env_file::read_env_file;
use crate::catalog::expand::{Env, Problem, Wanted, expand, is_filled_in, is_name};
use crate::catalog::fault::{Fault, nearest};
use crate::catalog::file::{Data, Mark, Name, Node, join};
use crate::catalog::keys::{DECIDING, ELSEWHERE, Key, Kind};

/// The inputs of reading, and its findings.
pub(super) struct Reader<'a> {
    pub(super) env: &'a dyn Env,
    /// The folder of the file.
    pub(super) base: &'a Path,
    pub(super) faults: RefCell<Vec<Fault>>,
    pub(super) warnings: RefCell<Vec<Fault>>,
    /// The files that values came from.
    pub(super) files: RefCell<BTreeSet<PathBuf>>,
    /// The variables of `gateway.envFile`.
    pub(super) variables: RefCell<BTreeMap<String, String>>,
    /// What those files said.
    pub(super) filled_in: RefCell<BTreeSet<String>>,
    /// The keys that were read, to compare with the table.
    #[cfg(test)]
    pub(super) asked: RefCell<BTreeSet<String>>,
}

/// A value and its path.
#[derive(Clone)]
pub(super) struct At<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) node: &'a Node,
    pub(super) path: String,
}

/// A map with known keys.
pub(super) struct Section<'a> {
    pub(super) at: At<'a>,
    keys: &'static [Key],
}

/// A scalar value, with `${…}` expanded.
struct Scalar {
    text: String,
    /// Whether it may be a number or a flag.
    is_typed: bool,
}

impl Reader<'_> {
    pub(super) fn note(&self, path: &str, mark: Mark, message: String) -> Fault {
        Fault {
            path: path.to_owned(),
            line: mark.line,
            column: mark.column,
            message,
            suggestion: None,
            excerpt: None,
            shows: false,
        }
    }

    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        if let Some(rest) = path.strip_prefix("~/")
            && let Some(home) = self.env.var("HOME")
        {
            return Path::new(&home).join(rest);
        }
        let mut out = PathBuf::new();
        // Removes `.`, keeps `..`: the part before it may be a symlink.
        out.extend(self.base.join(path).components());
        out
    }

    fn file(&self, path: &str, written: &str) -> Result<Option<String>, Problem> {
        let path = self.resolve(path);
        self.files.borrow_mut().insert(path.clone());
        match self.env.read(&path) {
            Ok(text) => {
                let text = text.trim_end_matches(['\r', '\n']).to_owned();
                self.filled_in.borrow_mut().insert(text.clone());
                Ok(Some(text))
            }
            Err(error) => {
                let shown = match is_filled_in(written) {
                    true => shortly(written),
                    false => path.display().to_string(),
                };
                Err(Problem::new(
                    format!("The file `{shown}` cannot be read: {error}."),
                    "Check its path, which is relative to this file, and who may read it.",
                ))
            }
        }
    }

    /// What files filled in so far.
    pub(super) fn filled_in(&self) -> Vec<String> {
        let variables = self.variables.borrow();
        variables.values().cloned().chain(self.filled_in.borrow().iter().cloned()).collect()
    }

    fn look(&self, wanted: Wanted<'_>) -> Result<Option<String>, Problem> {
        match wanted {
            Wanted::Var(name) => {
                let of_file = || self.variables.borrow().get(name).cloned();
                Ok(self.env.var(name).or_else(of_file))
            }
            Wanted::File { path, written } => self.file(path, written),
        }
    }
}

impl<'a> At<'a> {
    pub(super) fn fault(&self, message: impl Into<String>, suggestion: impl Into<String>) {
        let fault = self.reader.note(&self.path, self.node.at, message.into());
        let fault = Fault { suggestion: Some(suggestion.into()), shows: true, ..fault };
        self.reader.faults.borrow_mut().push(fault);
    }

    /// A fault of a value that may be secret.
    pub(super) fn hidden(&self, message: impl Into<String>, suggestion: impl Into<String>) {
        self.fault(message, suggestion);
        if let Some(last) = self.reader.faults.borrow_mut().last_mut() {
            last.shows = false;
        }
    }

    /// Loads the file that it names as variables.
    pub(super) fn variables(&self) {
        let Some(path) = self.path() else { return };
        self.reader.files.borrow_mut().insert(path.clone());
        match self.reader.env.read_private(&path).map(|it| read_env_file(&it)) {
            Ok(Ok(variables)) => *self.reader.variables.borrow_mut() = variables,
            Ok(Err(line)) => self.fault(
                format!("Line {line} of the file is no `NAME=value`."),
                "Write one variable on each line; a value with line breaks stands in `\"…\"`, with `\\n`.",
            ),
            Err(error) => self.fault(
                format!("The file cannot be read: {error}."),
                "Check its path, which is relative to this file. Nobody but its owner may read it: `chmod 600`.",
            ),
        }
    }

    pub(super) fn warn(&self, message: impl Into<String>, suggestion: impl Into<String>) {
        let fault = self.reader.note(&self.path, self.node.at, message.into());
        let fault = Fault { suggestion: Some(suggestion.into()), ..fault };
        self.reader.warnings.borrow_mut().push(fault);
    }

    /// The value as written, for a message.
    pub(super) fn written(&self) -> String {
        match &self.node.data {
            Data::Scalar { text, .. } => format!("`{}`", shortly(text)),
            _ => self.node.kind().to_owned(),
        }
    }

    /// Whether the value came from a variable or a file.
    pub(super) fn is_filled_in(&self) -> bool {
        matches!(&self.node.data, Data::Scalar { text, .. } if is_filled_in(text))
    }

    /// The value for a message; as written if it was expanded.
    pub(super) fn shown(&self, value: impl Display) -> String {
        if self.is_filled_in() { self.written() } else { format!("`{value}`") }
    }

    fn wanted(&self, what: &str, is_secret: bool) {
        let fault = if is_secret { Self::hidden } else { Self::fault };
        fault(
            self,
            format!("This must be {what}; it is {}.", self.node.kind()),
            format!("Write {what}."),
        );
    }

    fn scalar(&self, what: &str, is_secret: bool) -> Option<Scalar> {
        let Data::Scalar { text, is_plain } = &self.node.data else {
            self.wanted(what, is_secret);
            return None;
        };
        if self.node.is_null() {
            self.wanted(what, is_secret);
            return None;
        }
        match expand(text, &mut |wanted| self.reader.look(wanted)) {
            Ok((text, is_expanded)) => Some(Scalar { text, is_typed: *is_plain || is_expanded }),
            Err(problems) => {
                for it in problems {
                    self.hidden(it.message, it.suggestion.unwrap_or_default());
                }
                None
            }
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        let text = self.scalar("a text", false)?.text;
        if text.contains('\0') {
            self.hidden("This has a NUL character in it.", "Remove it.");
            return None;
        }
        Some(text)
    }

    /// A text that is not empty.
    pub(super) fn word(&self) -> Option<String> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.hidden("This is empty.", "Write a text.");
            return None;
        }
        Some(text)
    }

    /// A text, `{ file: PATH }` or `{ env: NAME }`.
    pub(super) fn secret(&self) -> Option<String> {
        let text = match &self.node.data {
            Data::Map(pairs) => match pairs.as_slice() {
                [(name, node)] if name.text == "file" || name.text == "env" => {
                    let path = join(&self.path, &name.text);
                    let inner = At { reader: self.reader, node, path };
                    let value = inner.word()?;
                    let found = match name.text.as_str() {
                        "file" => match &inner.node.data {
                            Data::Scalar { text, .. } => self.reader.file(&value, text),
                            _ => return None,
                        },
                        _ if !is_name(&value) => Err(Problem::new(
                            "This names no variable.",
                            "Write the name of a variable: letters, digits and `_`.",
                        )),
                        _ => self.reader.env.var(&value).map(Some).ok_or_else(|| {
                            let message =
                                format!("The variable {} is not set.", inner.shown(&value));
                            Problem::new(message, "Set it.")
                        }),
                    };
                    match found {
                        Ok(text) => text.unwrap_or_default(),
                        Err(it) => {
                            inner.fault(it.message, it.suggestion.unwrap_or_default());
                            return None;
                        }
                    }
                }
                _ => {
                    self.wanted("a text, `{ file: PATH }` or `{ env: NAME }`", true);
                    return None;
                }
            },
            _ => self.scalar("a text, `{ file: PATH }` or `{ env: NAME }`", true)?.text,
        };
        if text.contains('\0') {
            self.hidden("This has a NUL character in it.", "Remove it.");
            return None;
        }
        Some(text)
    }

    pub(super) fn path(&self) -> Option<PathBuf> {
        Some(self.reader.resolve(&self.word()?))
    }

    /// A file that must exist.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let path = self.path()?;
        if !self.reader.env.is_file(&path) {
            let message = format!("There is no file {}.", self.shown(path.display()));
            self.fault(message, "Check the path, which is relative to this file.");
            return None;
        }
        Some(path)
    }

    fn flag(&self) -> Option<bool> {
        let scalar = self.scalar("`true` or `false`", false)?;
        match scalar.text.as_str() {
            "true" | "True" | "TRUE" if scalar.is_typed => Some(true),
            "false" | "False" | "FALSE" if scalar.is_typed => Some(false),
            _ => {
                let message = format!("This must be `true` or `false`; it is {}.", self.written());
                self.fault(message, "Write `true` or `false`, without quotes.");
                None
            }
        }
    }

    fn count(&self, least: u64) -> Option<u64> {
        let scalar = self.scalar("a whole number", false)?;
        let number = scalar.text.parse().ok().filter(|_| scalar.is_typed);
        match number {
            Some(number) if (least..=MOST).contains(&number) => Some(number),
            _ => {
                let bound = match number {
                    Some(number) if number > MOST => format!("at most {MOST}"),
                    _ => format!("at least {least}"),
                };
                let message =
                    format!("This must be a whole number, {bound}; it is {}.", self.written());
                self.fault(message, format!("Write a number that is {bound}, without quotes."));
                None
            }
        }
    }

    fn seconds(&self, is_zero_good: bool) -> Option<Duration> {
        let scalar = self.scalar("a number of seconds", false)?;
        let number = scalar.text.parse::<f64>().ok().filter(|_| scalar.is_typed);
        let good = number.filter(|it| (0.0..=LONGEST).contains(it) && (is_zero_good || *it > 0.0));
        if good.is_none() {
            let bound = if is_zero_good { "0 or more" } else { "more than 0" };
            let message =
                format!("This must be a number of seconds, {bound}; it is {}.", self.written());
            self.fault(message, format!("Write a number that is {bound}, without quotes."));
        }
        good.map(Duration::from_secs_f64)
    }

    pub(super) fn choice(&self, choices: &[&'static str]) -> Option<&'static str> {
        let text = self.scalar("a text", false)?.text;
        let spelled = match text.as_str() {
            "True" | "TRUE" => "true",
            "False" | "FALSE" => "false",
            other => other,
        };
        let found = choices.iter().find(|it| **it == spelled);
        if found.is_none() {
            let all = choices.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
            let message = format!("{} is none of {all}.", self.written());
            match nearest(&text, choices.iter().copied()) {
                Some(near) => self.fault(message, format!("Did you mean `{near}`?")),
                None => self.fault(message, "Choose one of them."),
            }
        }
        found.copied()
    }

    /// The values of a list; one text is a list of one.
    pub(super) fn items(&self) -> Vec<At<'a>> {
        match &self.node.data {
            Data::List(list) => {
                let at = |(place, node)| At {
                    reader: self.reader,
                    node,
                    path: format!("{}[{place}]", self.path),
                };
                list.iter().enumerate().map(at).collect()
            }
            Data::Scalar { .. } => vec![self.clone()],
            Data::Map(_) => {
                self.wanted("a list", false);
                Vec::new()
            }
        }
    }

    /// The values of a map, with their names.
    pub(super) fn members(&self) -> Vec<(&'a str, At<'a>)> {
        let Data::Map(pairs) = &self.node.data else {
            self.wanted("a map", true);
            return Vec::new();
        };
        let at = |name: &'a str, node| {
            (name, At { reader: self.reader, node, path: join(&self.path, name) })
        };
        pairs.iter().map(|(name, node)| at(&name.text, node)).collect()
    }

    /// The value as JSON, with `${…}` expanded.
    pub(super) fn json(&self) -> Option<serde_json::Value> {
        use serde_json::Value;
        match &self.node.data {
            _ if self.node.is_null() => Some(Value::Null),
            Data::Scalar { .. } => {
                let scalar = self.scalar("a value", true)?;
                let typed = || match scalar.text.as_str() {
                    "true" => Some(Value::Bool(true)),
                    "false" => Some(Value::Bool(false)),
                    text => {
                        serde_json::from_str::<serde_json::Number>(text).ok().map(Value::Number)
                    }
                };
                let value = if scalar.is_typed { typed() } else { None };
                Some(value.unwrap_or(Value::String(scalar.text)))
            }
            Data::List(_) => {
                self.items().iter().map(At::json).collect::<Option<Vec<_>>>().map(Value::Array)
            }
            Data::Map(_) => {
                let members = self.members();
                let members =
                    members.iter().map(|(name, it)| Some(((*name).to_owned(), it.json()?)));
                members.collect::<Option<serde_json::Map<_, _>>>().map(Value::Object)
            }
        }
    }

    /// A map with known keys. Others get a warning, unless they are in `foreign`; in [`DECIDING`] parts they are faults.
    pub(super) fn section(&self, keys: &'static [Key], foreign: &[&str]) -> Option<Section<'a>> {
        let Data::Map(pairs) = &self.node.data else {
            self.wanted("a map", true);
            return None;
        };
        self.check_aliases(pairs, keys);
        let section = Section { at: self.clone(), keys };
        for (name, node) in pairs {
            let text = name.text.as_str();
            let is_known = keys.iter().any(|it| it.name == text || it.aliases.contains(&text));
            let is_private =
                text.starts_with("x-") || text.starts_with('_') || text.starts_with("//");
            if is_known || is_private || foreign.contains(&text) {
                continue;
            }
            let path = join(&self.path, text);
            let at = At { reader: self.reader, node, path };
            let suggestion =
                ELSEWHERE.iter().find(|(it, _)| *it == text).map(|(_, it)| (*it).to_owned());
            let names = keys.iter().map(|it| it.name);
            let suggestion = suggestion
                .or_else(|| meant(text, names).map(|it| format!("Did you mean `{it}`?")))
                .unwrap_or_else(|| "Remove it.".to_owned());
            let shown: String = text.chars().filter(|it| !it.is_control()).take(60).collect();
            let message = format!("`{shown}` means nothing here.");
            let warning = self.reader.note(&at.path, name.at, message);
            let warning = Fault { suggestion: Some(suggestion), ..warning };
            let decides = DECIDING.iter().any(|it| self.path.starts_with(it));
            let told = if decides { &self.reader.faults } else { &self.reader.warnings };
            told.borrow_mut().push(warning);
        }
        Some(section)
    }

    /// Reports a key that is given under two of its names.
    fn check_aliases(&self, pairs: &'a [(Name, Node)], keys: &[Key]) {
        let several = keys.iter().filter(|it| !it.aliases.is_empty());
        for key in several.filter(|it| !matches!(it.kind, Kind::Servers | Kind::Choice(_))) {
            let is_it = |text: &str| text == key.name || key.aliases.contains(&text);
            let mut given =
                pairs.iter().filter(|(name, node)| is_it(&name.text) && !node.is_null());
            if let (Some((first, _)), Some((second, _))) = (given.next(), given.next()) {
                let path = join(&self.path, &second.text);
                let message = format!("`{}` and `{}` mean the same.", first.text, second.text);
                let fault = self.reader.note(&path, second.at, message);
                let suggestion = Some("Write one of them.".to_owned());
                self.reader.faults.borrow_mut().push(Fault { suggestion, ..fault });
            }
        }
    }
}

impl<'a> Section<'a> {
    /// The value of a key, under any of its names.
    pub(super) fn get(&self, name: &str) -> Option<At<'a>> {
        self.find(name).0
    }

    /// Whether a key is present.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.text()
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name)?.flag()
    }

    pub(super) fn count(&self, name: &str) -> Option<usize> {
        match self.find(name) {
            (Some(at), Kind::Count(least)) => at.count(least).map(|it| it as usize),
            _ => None,
        }
    }

    pub(super) fn seconds(&self, name: &str) -> Option<Duration> {
        match self.find(name) {
            (Some(at), Kind::Seconds(is_zero_good)) => at.seconds(is_zero_good),
            _ => None,
        }
    }

    pub(super) fn choice(&self, name: &str) -> Option<&'static str> {
        match self.find(name) {
            (Some(at), Kind::Choice(choices)) => at.choice(choices),
            _ => None,
        }
    }

    /// Texts that are not empty.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).iter().filter_map(At::word).collect()
    }

    /// The values of a list; empty if it is absent.
    pub(super) fn list(&self, name: &str) -> Vec<At<'a>> {
        self.get(name).map(|it| it.items()).unwrap_or_default()
    }

    /// Names and values that may be secret; empty if absent.
    pub(super) fn secrets(&self, name: &str) -> Vec<(String, String, At<'a>)> {
        let members = self.get(name).map(|it| it.members()).unwrap_or_default();
        let read = |(name, at): (&str, At<'a>)| Some((name.to_owned(), at.secret()?, at));
        members.into_iter().filter_map(read).collect()
    }

    pub(super) fn section(&self, name: &str) -> Option<Section<'a>> {
        match self.find(name) {
            (Some(at), Kind::Object(keys)) => at.section(keys, &[]),
            _ => None,
        }
    }

    /// A map where a path is possible, too; `None` if it is no map.
    pub(super) fn either(&self, name: &str) -> Option<Section<'a>> {
        match self.find(name) {
            (Some(at), Kind::PathOr(keys)) if matches!(at.node.data, Data::Map(_)) => {
                at.section(keys, &[])
            }
            _ => None,
        }
    }

    pub(super) fn sections(&self, name: &str) -> Vec<Section<'a>> {
        match self.find(name) {
            (Some(at), Kind::Objects(keys)) => {
                at.items().iter().filter_map(|it| it.section(keys, &[])).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A key that the table requires.
    pub(super) fn need(&self, name: &str) -> Option<At<'a>> {
        debug_assert!(self.keys.iter().any(|it| it.name == name && it.is_required), "{name}");
        self.want(name)
    }

    /// A key that is required in this context.
    pub(super) fn want(&self, name: &str) -> Option<At<'a>> {
        let found = self.get(name);
        if found.is_none() {
            self.at.hidden(format!("`{name}` is missing."), format!("Add `{name}: …`."));
        }
        found
    }

    fn find(&self, name: &str) -> (Option<At<'a>>, Kind) {
        let key = self.keys.iter().find(|it| it.name == name);
        let key = key.unwrap_or_else(|| panic!("`{name}` is not in the table"));
        #[cfg(test)]
        self.at.reader.asked.borrow_mut().insert(format!("{:p}.{name}", self.keys));
        let Data::Map(pairs) = &self.at.node.data else { return (None, key.kind) };
        let is_it = |text: &str| text == key.name || key.aliases.contains(&text);
        let found = pairs.iter().find(|(it, node)| is_it(&it.text) && !node.is_null());
        let at = found.map(|(it, node)| At {
            reader: self.at.reader,
            node,
            path: join(&self.at.path, &it.text),
        });
        (at, key.kind)
    }
}

/// The known key that was probably meant: one that is spelled nearly so, or the only one that begins with the
/// same word, as `idle` means `idleSeconds`.
fn meant<'a>(written: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let first_word = |key: &str| {
        let end = key.find(|it: char| !it.is_ascii_lowercase()).unwrap_or(key.len());
        key[..end].to_owned()
    };
    let word = first_word(written);
    let begins_so = || {
        let mut same = known.clone().filter(|it| !word.is_empty() && first_word(it) == word);
        same.next().filter(|_| same.next().is_none())
    };
    nearest(written, known.clone()).or_else(begins_so)
}

/// A text of the file as a message quotes it.
fn shortly(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(60).collect()
}

/// The longest time, in seconds: ten years.
const LONGEST: f64 = 10.0 * 365.0 * 86_400.0;
/// The largest count.
const MOST: u64 = 1_000_000;
