//! A TOML text and a nested table → the text with or without it, with every other byte unchanged.
//!
//! The `toml` crate parses the text and provides positions; the edits change the text itself,
//! because no writer preserves every byte.

use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::edit::{Field, Fields, replaced};
use super::jsonc::Unreadable;

/// Reads a text.
pub(super) fn parse(text: &str) -> Result<Value, Unreadable> {
    Ok(table(tree(text)?.get_ref()))
}

/// Puts a table `outer.key` with `fields`, replacing an existing one.
pub(super) fn put(
    text: &str,
    outer: &str,
    key: &str,
    fields: &Fields,
) -> Result<String, Unreadable> {
    let tree = tree(text)?;
    let newline = match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    };
    let found = match tree.get_ref().get(outer) {
        None => None,
        Some(value) => match value.get_ref() {
            DeValue::Table(it) => Some((value.span(), it)),
            _ => {
                let why = format!("`{outer}` is no table.");
                return Err(Unreadable::at(text, value.span().start, why));
            }
        },
    };
    if let Some((outside, inside)) = found {
        let is_inline = text[outside.clone()].starts_with('{');
        match inside.get_key_value(key).map(|(name, value)| (name.span(), value)) {
            Some((_, value)) if text[value.span()].starts_with('{') => {
                return Ok(replaced(text, value.span(), &inline(fields)));
            }
            Some((name, _)) => {
                let sections = sections(text, tree.get_ref(), outer, key);
                let Some((first, others)) = sections.split_first() else {
                    let why = format!(
                        "`{outer}.{key}` is written with dotted names. Make it a table \
                         `[{outer}.{key}]` first."
                    );
                    return Err(Unreadable::at(text, name.start, why));
                };
                let mut new = text.to_owned();
                for range in others.iter().rev() {
                    new = replaced(&new, with_gap(&new, range.clone()), "");
                }
                let body = section(outer, key, fields, newline);
                let end = if text[first.clone()].ends_with('\n') { newline } else { "" };
                return Ok(replaced(&new, first.clone(), &format!("{body}{end}")));
            }
            None if is_inline => {
                let close = outside.end - 1;
                let gap = text[..close].len() - text[..close].trim_end().len();
                let place = close - gap;
                let comma = if inside.is_empty() { " " } else { ", " };
                let new = format!("{comma}{key} = {}", inline(fields));
                return Ok(replaced(text, place..place, &new));
            }
            None => {}
        }
    }
    let body = section(outer, key, fields, newline);
    Ok(match text {
        "" => format!("{body}{newline}"),
        // A text without a final newline stays without.
        _ if !text.ends_with('\n') => format!("{text}{newline}{newline}{body}"),
        _ => format!("{text}{newline}{body}{newline}"),
    })
}

/// Removes the table `outer.key`, if it is there.
pub(super) fn take(text: &str, outer: &str, key: &str) -> Result<Option<String>, Unreadable> {
    let tree = tree(text)?;
    let Some(value) = tree.get_ref().get(outer) else { return Ok(None) };
    let (outside, inside) = match value.get_ref() {
        DeValue::Table(it) => (value.span(), it),
        _ => return Ok(None),
    };
    let Some((name, value)) = inside.get_key_value(key) else { return Ok(None) };
    let sections = sections(text, tree.get_ref(), outer, key);
    if !sections.is_empty() {
        let mut new = text.to_owned();
        for range in sections.iter().rev() {
            new = replaced(&new, with_gap(&new, range.clone()), "");
        }
        return Ok(Some(new));
    }
    if !text[value.span()].starts_with('{') {
        let why = format!("`{outer}.{key}` is written with dotted names. Take it out by hand.");
        return Err(Unreadable::at(text, name.span().start, why));
    }
    if text[outside].starts_with('{') {
        let before = text[..name.span().start].trim_end();
        let (mut start, mut end) = (name.span().start, value.span().end);
        if before.ends_with(',') {
            start = before.len() - 1;
        } else if let Some(rest) = text[end..].trim_start().strip_prefix(',') {
            end = text.len() - rest.trim_start().len();
        } else {
            start = before.len();
        }
        return Ok(Some(replaced(text, start..end, "")));
    }
    let start = text[..name.span().start].rfind('\n').map_or(0, |it| it + 1);
    let end =
        text[value.span().end..].find('\n').map_or(text.len(), |it| value.span().end + it + 1);
    Ok(Some(replaced(text, start..end, "")))
}

fn tree(text: &str) -> Result<Spanned<DeTable<'_>>, Unreadable> {
    DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |it| it.start);
        let message = error.message().trim_end_matches('.');
        Unreadable::at(text, at, format!("This is no TOML: {message}."))
    })
}

fn table(table: &DeTable<'_>) -> Value {
    let members = table.iter().map(|(key, it)| (key.get_ref().to_string(), value(it.get_ref())));
    Value::Object(members.collect::<Map<_, _>>())
}

fn value(it: &DeValue<'_>) -> Value {
    match it {
        DeValue::String(text) => Value::from(&**text),
        DeValue::Integer(number) => {
            number.to_string().replace('_', "").parse::<i64>().map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(it) => Value::from(*it),
        DeValue::Datetime(it) => Value::from(it.to_string()),
        DeValue::Array(items) => items.iter().map(|it| value(it.get_ref())).collect(),
        DeValue::Table(it) => table(it),
    }
}

fn section(outer: &str, key: &str, fields: &Fields, newline: &str) -> String {
    let mut lines = vec![format!("[{outer}.{key}]")];
    for (name, field) in &fields.0 {
        lines.push(format!("{name} = {}", field_text(field)));
    }
    lines.join(newline)
}

fn inline(fields: &Fields) -> String {
    let all = fields.0.iter().map(|(name, field)| format!("{name} = {}", field_text(field)));
    format!("{{ {} }}", all.collect::<Vec<_>>().join(", "))
}

fn field_text(field: &Field) -> String {
    match field {
        Field::One(Value::Array(items)) => {
            format!("[{}]", items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        }
        // A JSON value is a TOML value.
        Field::One(value) => value.to_string(),
        Field::Many(fields) => inline(fields),
    }
}

/// The ranges of `[outer.key]` and the tables in it, without trailing comments, which may belong to
/// what follows.
fn sections(text: &str, tree: &DeTable<'_>, outer: &str, key: &str) -> Vec<Range<usize>> {
    let (mut all, mut wanted) = (Vec::new(), Vec::new());
    headers(text, tree, &mut all);
    let found = tree.get(outer).and_then(|it| it.get_ref().as_table()).and_then(|it| it.get(key));
    if let Some(found) = found {
        header(text, found, &mut wanted);
    }
    all.sort_unstable();
    all.push(text.len());
    let ranges = all.windows(2).filter(|it| wanted.contains(&it[0]));
    ranges.map(|it| it[0]..content_end(text, it[0], it[1])).collect()
}

/// The end of the last non-empty line.
fn content_end(text: &str, start: usize, end: usize) -> usize {
    let mut at = start;
    let mut last = start;
    for line in text[start..end].split_inclusive('\n') {
        at += line.len();
        if !matches!(line.trim_start().bytes().next(), None | Some(b'#')) {
            last = at;
        }
    }
    last
}

/// A range with the one empty line before it.
fn with_gap(text: &str, range: Range<usize>) -> Range<usize> {
    let before = &text[..range.start];
    let one = |it: &str| it.strip_suffix('\n').map(|it| it.strip_suffix('\r').unwrap_or(it).len());
    let Some(line_end) = one(before) else { return range };
    let is_gap = before[..line_end].is_empty() || before[..line_end].ends_with('\n');
    // At the end of a text without a final newline, the newline before the gap was added with it.
    let takes_both = range.end == text.len() && !text.ends_with('\n');
    match (is_gap, takes_both) {
        (true, true) => one(&before[..line_end]).unwrap_or(line_end)..range.end,
        (true, false) => line_end..range.end,
        _ => range,
    }
}

/// The positions of the headers of a table's tables, `[a.b]` and `[[a.b]]`.
fn headers(text: &str, table: &DeTable<'_>, found: &mut Vec<usize>) {
    table.values().for_each(|it| header(text, it, found));
}

fn header(text: &str, value: &Spanned<DeValue<'_>>, found: &mut Vec<usize>) {
    let span = value.span();
    match value.get_ref() {
        // A table without its own header has the span of its name, or of its braces.
        DeValue::Table(table) if !text[span.clone()].starts_with('{') => {
            if text[span.clone()].starts_with('[') {
                found.push(text[..span.start].rfind('\n').map_or(0, |it| it + 1));
            }
            headers(text, table, found);
        }
        // So has an array of values: its brackets, and no header.
        DeValue::Array(items) if text[span].starts_with("[[") => {
            items.iter().for_each(|it| header(text, it, found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::fixtures::entry;

    /// Adds a table, removes it again, and compares both.
    #[track_caller]
    fn check(before: &str, after: &str) {
        let put = put(before, "m", "t", &entry()).unwrap();
        assert_eq!(put, after);
        assert_eq!(parse(&put).unwrap()["m"]["t"], entry().to_value());
        let again = super::put(&put, "m", "t", &entry()).unwrap();
        assert_eq!(again, put, "twice is as good as once");
        assert_eq!(take(&put, "m", "t").unwrap().unwrap(), before, "there and back");
        assert_eq!(take(before, "m", "t").unwrap(), None);
    }

    const TABLE: &str = "[m.t]\ncommand = \"t\"\nargs = [\"a\", \"b\"]";

    #[test]
    fn a_table_goes_in_and_out_and_nothing_else_moves() {
        check("", &format!("{TABLE}\n"));
        check("a = 1 # one\n", &format!("a = 1 # one\n\n{TABLE}\n"));
        check("a = 1", &format!("a = 1\n\n{TABLE}"));
        check("a = 1\n\n\n", &format!("a = 1\n\n\n\n{TABLE}\n"));
        check(
            "[m.x]\r\na = 1\r\n",
            &format!("[m.x]\r\na = 1\r\n\n{TABLE}\n").replace("\r\n", "\n").replace('\n', "\r\n"),
        );
        check("[m]\nx = { a = 1 }\n", &format!("[m]\nx = {{ a = 1 }}\n\n{TABLE}\n"));
        check(
            "m = { x = { a = 1 } }\n",
            "m = { x = { a = 1 }, t = { command = \"t\", args = [\"a\", \"b\"] } }\n",
        );
    }

    #[test]
    fn a_table_in_the_middle_goes_and_the_rest_stays() {
        let text = "\
s = \"\"\"
[m.t]
\"\"\"
[m.t] # ours
command = \"t\"
list = [
  [1],
]
[m.t.env]
A = '''
[x]'''

# of x
[m.x]
a = 1
";
        let expected = "s = \"\"\"\n[m.t]\n\"\"\"\n\n# of x\n[m.x]\na = 1\n";
        assert_eq!(take(text, "m", "t").unwrap().unwrap(), expected);
        let found = put(text, "m", "t", &entry()).unwrap();
        let expected = format!("s = \"\"\"\n[m.t]\n\"\"\"\n{TABLE}\n\n# of x\n[m.x]\na = 1\n");
        assert_eq!(found, expected);
        let line = "[m]\nt = { a = 1 } # ours\nx = { a = 1 }\n";
        assert_eq!(take(line, "m", "t").unwrap().unwrap(), "[m]\nx = { a = 1 }\n");
        let inner = "m = { t = { a = 1 }, x = 1 }\n";
        assert_eq!(take(inner, "m", "t").unwrap().unwrap(), "m = { x = 1 }\n");
    }

    #[test]
    fn what_cannot_be_done_is_said_with_its_place() {
        let found = put("a = 1\nb = = 2\n", "m", "t", &entry()).unwrap_err();
        assert_eq!(found.line, 2, "{found}");
        let found = put("m = 1\n", "m", "t", &entry()).unwrap_err();
        assert_eq!(found.to_string(), "line 1, column 5: `m` is no table.");
        let found = take("m.t.command = 'x'\n", "m", "t").unwrap_err();
        assert!(found.message.contains("by hand"), "{found}");
    }
}
