//! A catalog's text and servers → the text with them, with every other line unchanged.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::edit::{self, Field, Fields};
use super::entry::Entry;
use super::jsonc::{self, Unreadable};
use super::read::of_catalog;
use super::yaml::{self, Data, Node, indent, is_json, row, to_value};

/// The content of a catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Have {
    /// Its servers; `None` for an entry that cannot be parsed.
    pub(crate) servers: Vec<(String, Option<Entry>)>,
    /// Where the gateway listens.
    pub(crate) listen: Option<String>,
    /// Its `envFile`.
    pub(crate) env_file: Option<String>,
    /// Whether it has a certificate.
    pub(crate) has_tls: bool,
    /// Whether it requires tokens.
    pub(crate) has_auth: bool,
}

/// Parses a catalog. Variables stay as they are.
pub(crate) fn have(text: &str) -> Result<Have, Unreadable> {
    let root = value(text)?;
    let servers = servers(&root).into_iter().map(|(name, it)| (name, of_catalog(&it).ok()));
    let listen = root["gateway"]["listen"].as_str().map(str::to_owned);
    let gateway = &root["gateway"];
    let has = |it: &Value| !it.is_null();
    let has_auth = has(&gateway["auth"]["tokens"]) || has(&gateway["auth"]["issuers"]);
    let env_file = gateway["envFile"].as_str().map(str::to_owned);
    let has_tls = has(&gateway["tls"]);
    Ok(Have { servers: servers.collect(), listen, env_file, has_tls, has_auth })
}

/// The catalog with these servers; those of the same name are replaced.
pub(crate) fn merged(text: &str, entries: &[(String, Entry)]) -> Result<String, Unreadable> {
    let entries: Vec<(&str, Fields)> =
        entries.iter().map(|(name, entry)| (name.as_str(), entry.fields())).collect();
    if let Some(out) = together(text, &entries) {
        return Ok(out);
    }
    let mut out = text.to_owned();
    for entry in &entries {
        let one = std::slice::from_ref(entry);
        let new = if is_json(&out) { put_json(&out, entry)? } else { put(&out, one)? };
        if !is_unharmed(&out, &new, one)? {
            let why = format!(
                "`{}` cannot be written into this file without harm. Add it by hand.",
                entry.0
            );
            return Err(Unreadable::at(text, 0, why));
        }
        out = new;
    }
    Ok(out)
}

/// All of them in one edit, which a thousand servers need. `None` where one has to be replaced, or something is
/// wrong: one after the other, it shows with which.
fn together(text: &str, entries: &[(&str, Fields)]) -> Option<String> {
    let known = servers(&value(text).ok()?);
    let known: HashSet<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let names: HashSet<&str> = entries.iter().map(|(name, _)| *name).collect();
    let are_new = names.len() == entries.len() && names.is_disjoint(&known);
    if is_json(text) || entries.is_empty() || !are_new {
        return None;
    }
    let new = put(text, entries).ok()?;
    is_unharmed(text, &new, entries).ok()?.then_some(new)
}

/// Whether the new text has these servers, and the rest parses to the same values; otherwise we did not
/// understand the file.
fn is_unharmed(old: &str, new: &str, entries: &[(&str, Fields)]) -> Result<bool, Unreadable> {
    let (before, after) = (value(old)?, value(new)?);
    let (mut expected, mut found) = (servers(&before), servers(&after));
    // The first of a name is the one that is replaced.
    let numbered = expected.iter().enumerate().rev();
    let places: HashMap<String, usize> = numbered.map(|(at, it)| (it.0.clone(), at)).collect();
    for (name, fields) in entries {
        match places.get(*name) {
            Some(at) => expected[*at].1 = fields.to_value(),
            None => expected.push(((*name).to_owned(), fields.to_value())),
        }
    }
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found == expected && rest(&before) == rest(&after))
}

/// The catalog with `gateway.envFile`, which it does not have yet.
pub(crate) fn with_env_file(text: &str, path: &str) -> Result<String, Unreadable> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let line = format!("envFile: {}", scalar(path));
    let why = format!("`{line}` cannot be written below `gateway` without harm. Add it by hand.");
    let refuse = || Unreadable::at(text, 0, why.clone());
    if is_json(text) {
        return Err(refuse());
    }
    let root = yaml::parse(text)?;
    let section = root.as_ref().and_then(|it| yaml::get(it, "gateway"));
    let new = match section {
        None => {
            let body = format!("gateway:\n  {line}\n");
            appended(text, &body, newline, !text.trim().is_empty())
        }
        Some((name, node)) => {
            let indent = match &node.data {
                _ if node.is_null() => 2,
                Data::Map(all) if node.at.line > name.at.line && !all.is_empty() => {
                    indent(all[0].0.at)
                }
                _ => return Err(refuse()),
            };
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            let gap = if lines[row(name.at)].ends_with('\n') { "" } else { newline };
            let line = format!("{gap}{}{line}{newline}", " ".repeat(indent));
            lines.insert(row(name.at) + 1, &line);
            lines.concat()
        }
    };
    // Everything else must parse to the same values.
    let (before, mut after) = (value(text)?, value(&new).map_err(|_| refuse())?);
    let added = after["gateway"].as_object_mut().and_then(|it| it.remove("envFile"));
    let mut expected = rest(&before);
    if expected["gateway"].is_null() {
        expected["gateway"] = json!({});
    }
    let is_whole = servers(&before) == servers(&after) && expected == rest(&after);
    if is_whole && added == Some(path.into()) { Ok(new) } else { Err(refuse()) }
}

fn value(text: &str) -> Result<Value, Unreadable> {
    match is_json(text) {
        true => Ok(jsonc::parse(text)?.map_or(Value::Null, |it| it.to_value())),
        false => Ok(yaml::parse(text)?.map_or(Value::Null, |it| to_value(&it))),
    }
}

fn servers(root: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for key in CONTAINERS {
        match &root[key] {
            Value::Object(map) => {
                all.extend(map.iter().map(|(name, it)| (name.clone(), it.clone())))
            }
            Value::Array(list) => {
                for item in list {
                    let mut item = item.clone();
                    let name = item.as_object_mut().and_then(|it| it.remove("name"));
                    let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
                    all.push((name.to_owned(), item));
                }
            }
            _ => {}
        }
    }
    all
}

/// Everything but the servers.
fn rest(root: &Value) -> Value {
    let mut root = if root.is_null() { json!({}) } else { root.clone() };
    if let Some(all) = root.as_object_mut() {
        CONTAINERS.iter().for_each(|it| drop(all.remove(*it)));
    }
    root
}

fn put_json(text: &str, (name, fields): &(&str, Fields)) -> Result<String, Unreadable> {
    let root = value(text)?;
    let has = |key: &&&str| root[**key].get(*name).is_some();
    let holder = CONTAINERS.iter().find(has);
    let holder = holder.or_else(|| CONTAINERS.iter().find(|it| root[**it].is_object()));
    edit::put(text, &[holder.copied().unwrap_or(CONTAINERS[0])], name, fields)
}

/// The text with one server, or with several that are all new to it.
fn put(text: &str, entries: &[(&str, Fields)]) -> Result<String, Unreadable> {
    let known = |holder: &Node| entries.iter().find_map(|(name, _)| find(holder, name));
    let blocks = |indent| -> String {
        entries.iter().map(|(name, fields)| block(name, fields, indent)).collect()
    };
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let Some(root) = yaml::parse(text)? else {
        let body = format!("{}:\n{}", CONTAINERS[0], blocks(2));
        return Ok(appended(text, &body, newline, false));
    };
    let Data::Map(keys) = &root.data else {
        return Err(yaml::fail(root.at, "A catalog is a map of names and values."));
    };
    let mut holders = keys.iter().filter(|(it, _)| CONTAINERS.contains(&&*it.text));
    let holder = holders.clone().find(|(_, it)| known(it).is_some()).or_else(|| holders.next());
    let Some((key, holder)) = holder else {
        let body = format!("{}:\n{}", CONTAINERS[0], blocks(2));
        return Ok(appended(text, &body, newline, true));
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // Where the next name of the file begins, and before it the last non-empty line.
    let at = row(key.at);
    let next = keys.iter().map(|(it, _)| row(it.at)).filter(|it| *it > at).min();
    let end = content_end(&lines, at, next.unwrap_or(lines.len()));
    // What an alias stands for is written above it.
    let is_flow =
        holder.at.line <= key.at.line || starts_flow(lines[row(holder.at)], indent(holder.at));
    let (range, new) = match &holder.data {
        _ if holder.is_null() => (end..end, blocks(2)),
        Data::Map(all) if all.is_empty() => {
            let line = lines[at].replacen("{}", "", 1);
            let head = format!("{}\n", line.trim_end());
            (at..at + 1, head + &blocks(2))
        }
        _ if is_flow => {
            let why = "The servers are written in braces. Write each on lines of its own first.";
            return Err(yaml::fail(key.at, why));
        }
        Data::Map(all) => {
            let new = blocks(indent(all[0].0.at));
            match known(holder) {
                Some(place) => {
                    let start = row(all[place].0.at);
                    let until = all.get(place + 1).map_or(end, |(it, _)| row(it.at));
                    (start..content_end(&lines, start, until), new)
                }
                None => (end..end, new),
            }
        }
        Data::List(items) => {
            let dash = lines[row(items[0].at)].find('-').unwrap_or(0);
            let item = |(name, fields): &(&str, Fields)| {
                let mut all = vec![("name".to_owned(), Field::One((*name).into()))];
                all.extend(fields.0.iter().cloned());
                let body = body(&Fields(all), dash + 2);
                format!("{}- {}", " ".repeat(dash), &body[dash + 2..])
            };
            let new = entries.iter().map(item).collect();
            match known(holder) {
                Some(place) => {
                    let start = row(items[place].at);
                    let until = items.get(place + 1).map_or(end, |it| row(it.at));
                    (start..content_end(&lines, start, until), new)
                }
                None => (end..end, new),
            }
        }
        Data::Scalar { .. } => {
            return Err(yaml::fail(holder.at, "Here should be servers."));
        }
    };
    let new = new.replace('\n', newline);
    let before = lines[..range.start].concat();
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { newline };
    Ok(format!("{before}{gap}{new}{}", lines[range.end..].concat()))
}

/// Where a server of that name is among the others.
fn find(holder: &Node, name: &str) -> Option<usize> {
    match &holder.data {
        Data::Map(all) => all.iter().position(|(it, _)| it.text == name),
        Data::List(items) => items.iter().position(|it| {
            let found = yaml::get(it, "name").map(|(_, it)| to_value(it));
            found.is_some_and(|it| it.as_str() == Some(name))
        }),
        Data::Scalar { .. } => None,
    }
}

fn starts_flow(line: &str, column: usize) -> bool {
    matches!(line.chars().nth(column), Some('{' | '['))
}

fn appended(text: &str, body: &str, newline: &str, has_gap: bool) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
    let gap = if has_gap { newline } else { "" };
    format!("{text}{end}{gap}{}", body.replace('\n', newline))
}

/// One past the last non-empty line.
fn content_end(lines: &[&str], start: usize, end: usize) -> usize {
    let says = |line: &&str| !matches!(line.trim_start().bytes().next(), None | Some(b'#'));
    lines[start..end].iter().rposition(says).map_or(end, |it| start + it + 1)
}

fn block(name: &str, fields: &Fields, indent: usize) -> String {
    format!("{}{}:\n{}", " ".repeat(indent), scalar(name), body(fields, indent + 2))
}

fn body(fields: &Fields, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let lines = fields.0.iter().map(|(key, field)| {
        let key = scalar(key);
        match field {
            Field::One(Value::String(text)) => format!("{pad}{key}: {}\n", scalar(text)),
            Field::One(Value::Array(items)) => {
                let items = items.iter().map(|it| it.as_str().map_or(it.to_string(), scalar));
                format!("{pad}{key}: [{}]\n", items.collect::<Vec<_>>().join(", "))
            }
            Field::One(value) => format!("{pad}{key}: {value}\n"),
            Field::Many(fields) => format!("{pad}{key}:\n{}", body(fields, indent + 2)),
        }
    });
    lines.collect()
}

/// A YAML scalar: quoted, unless it is unambiguous.
fn scalar(text: &str) -> String {
    let is_word = |it: char| it.is_ascii_alphanumeric() || "_/.-".contains(it);
    let lower = text.to_ascii_lowercase();
    let is_plain = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '/')
        && text.chars().all(is_word)
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&&*lower);
    // JSON's escapes are YAML's.
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

/// The members that contain the servers. The first is written if there is none.
const CONTAINERS: [&str; 2] = ["mcpServers", "servers"];

#[cfg(test)]
mod tests;
