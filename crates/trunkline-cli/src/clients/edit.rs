//! A JSON text and a member → the text with or without it, with every other byte unchanged.

use serde_json::Value;

use super::jsonc::{self, Member, Node, Unreadable};

/// Puts `key` with `value` into the object at `path`, and creates missing objects on the way.
/// `value` is JSON in its own order, on one line or several.
pub(super) fn put(
    text: &str,
    path: &[&str],
    key: &str,
    value: &Fields,
) -> Result<String, Unreadable> {
    let style = Style::of(text);
    let Some(root) = jsonc::parse(text)? else {
        let object = Fields(vec![]).nested(path, key, value);
        let lines = object.lines("", style.unit_or_default(), style.newline);
        // Comments stay.
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { style.newline };
        return Ok(format!("{text}{gap}{lines}{}", style.newline));
    };
    let (mut at, mut rest) = (&root, path);
    while let Some((first, others)) = rest.split_first() {
        let Some(next) = at.member(first) else { break };
        (at, rest) = (&next.value, others);
    }
    if at.members().is_none() {
        let what = path[..path.len() - rest.len()].last();
        let what = what.map_or("The file".to_owned(), |it| format!("`{it}`"));
        return Err(Unreadable::at(text, at.span.start, format!("{what} is no object.")));
    }
    match rest.split_first() {
        Some((first, others)) => {
            let object = Fields(vec![]).nested(others, key, value);
            Ok(insert(text, at, first, &object, &style))
        }
        None => match at.member(key) {
            Some(member) => {
                let indent = indent_of(text, member.start);
                let new = render(value, text, &member.value, indent, &style);
                Ok(replaced(text, member.value.span.clone(), &new))
            }
            None => Ok(insert(text, at, key, value, &style)),
        },
    }
}

/// Removes `key` from the object at `path`, if it is there.
pub(super) fn take(text: &str, path: &[&str], key: &str) -> Result<Option<String>, Unreadable> {
    let Some(root) = jsonc::parse(text)? else { return Ok(None) };
    let mut at = &root;
    for name in path {
        let Some(next) = at.member(name) else { return Ok(None) };
        at = &next.value;
    }
    let members = at.members().unwrap_or_default();
    let Some(place) = members.iter().rposition(|it| it.key == key) else { return Ok(None) };
    Ok(Some(without(text, at, members, place)))
}

/// A JSON object with ordered members.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fields(pub(super) Vec<(String, Field)>);

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    One(Value),
    Many(Fields),
}

impl Fields {
    pub(super) fn to_value(&self) -> Value {
        let one = |field: &Field| match field {
            Field::One(value) => value.clone(),
            Field::Many(fields) => fields.to_value(),
        };
        Value::Object(self.0.iter().map(|(key, field)| (key.clone(), one(field))).collect())
    }

    /// This with `value` under `key` under `path`.
    fn nested(mut self, path: &[&str], key: &str, value: &Self) -> Self {
        let (name, inner) = match path.split_first() {
            Some((first, others)) => (*first, Self(vec![]).nested(others, key, value)),
            None => (key, value.clone()),
        };
        self.0.push((name.to_owned(), Field::Many(inner)));
        self
    }

    fn lines(&self, indent: &str, unit: &str, newline: &str) -> String {
        let inner = format!("{indent}{unit}");
        let fields = self.0.iter().map(|(key, field)| {
            let value = match field {
                Field::One(value) => spaced(value),
                Field::Many(fields) => fields.lines(&inner, unit, newline),
            };
            format!("{newline}{inner}{}: {value}", Value::from(&**key))
        });
        match self.0.is_empty() {
            true => "{}".to_owned(),
            false => format!("{{{}{newline}{indent}}}", fields.collect::<Vec<_>>().join(",")),
        }
    }

    fn line(&self, gap: &str) -> String {
        let fields = self.0.iter().map(|(key, field)| {
            let value = match field {
                Field::One(value) if gap.is_empty() => value.to_string(),
                Field::One(value) => spaced(value),
                Field::Many(fields) => fields.line(gap),
            };
            format!("{}:{gap}{value}", Value::from(&**key))
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(&format!(",{gap}")))
    }
}

/// The layout of a text.
struct Style {
    newline: &'static str,
    /// One step of indentation, if there are several lines.
    unit: Option<String>,
    /// The space after a colon.
    gap: &'static str,
}

impl Style {
    fn of(text: &str) -> Self {
        let newline = match text.find('\n') {
            Some(at) if text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let indents = text.lines().skip(1).filter(|it| it.trim_start().starts_with('"'));
        let unit = indents.map(leading).find(|it| !it.is_empty()).map(str::to_owned);
        let gap = if text.contains("\":") && !text.contains("\": ") { "" } else { " " };
        Self { newline, unit, gap }
    }

    fn unit_or_default(&self) -> &str {
        self.unit.as_deref().unwrap_or("  ")
    }
}

fn insert(text: &str, at: &Node, key: &str, value: &Fields, style: &Style) -> String {
    let members = at.members().unwrap_or_default();
    let name = Value::from(key).to_string();
    let Some(last) = members.last() else {
        let open = at.span.start + 1;
        let inside = &text[open..at.span.end - 1];
        // A text of one line stays one.
        if !text.trim_end().contains('\n') && text.trim_end().len() > 2 {
            let new = format!("{name}:{}{}", style.gap, value.line(style.gap));
            return replaced(text, open..open, &new);
        }
        let indent = indent_of(text, at.span.start);
        let inner = format!("{indent}{}", style.unit_or_default());
        let body = value.lines(&inner, style.unit_or_default(), style.newline);
        let new = format!("{}{inner}{name}: {body}", style.newline);
        let new = if inside.contains('\n') { new } else { new + style.newline + indent };
        return replaced(text, open..open, &new);
    };
    let is_inline = !text[at.span.start..last.start].contains('\n');
    let (gap, body) = if is_inline {
        let gap =
            if text[last.start..last.value.span.end].contains(": ") { " " } else { style.gap };
        (gap.to_owned(), format!("{name}:{gap}{}", value.line(gap)))
    } else {
        let indent = indent_of(text, last.start);
        let unit = style.unit_or_default();
        let body = value.lines(indent, unit, style.newline);
        (format!("{}{indent}", style.newline), format!("{name}: {body}"))
    };
    match last.comma {
        // A trailing comma stays one.
        Some(comma) => {
            let place = if is_inline { comma + 1 } else { after_remark(text, comma + 1) };
            replaced(text, place..place, &format!("{gap}{body},"))
        }
        None => {
            let end = last.value.span.end;
            let place = if is_inline { end } else { after_remark(text, end) };
            let with_entry = replaced(text, place..place, &format!("{gap}{body}"));
            replaced(&with_entry, end..end, ",")
        }
    }
}

/// Replaces a value, in the layout of the old one.
fn render(value: &Fields, text: &str, old: &Node, indent: &str, style: &Style) -> String {
    match text[old.span.clone()].contains('\n') || old.members().is_none_or(<[_]>::is_empty) {
        true => value.lines(indent, style.unit_or_default(), style.newline),
        false => value.line(style.gap),
    }
}

fn without(text: &str, at: &Node, members: &[Member], place: usize) -> String {
    let member = &members[place];
    let end = member.comma.map_or(member.value.span.end, |it| it + 1);
    if members.len() == 1 {
        let (open, close) = (at.span.start + 1, at.span.end - 1);
        let is_bare =
            text[open..member.start].trim().is_empty() && text[end..close].trim().is_empty();
        return match is_bare {
            true => replaced(text, open..close, ""),
            false => replaced(text, member.start..end, ""),
        };
    }
    // The whitespace before it goes with it, so what follows keeps its own.
    let before = &text[..member.start];
    let start = before.trim_end_matches([' ', '\t']).len();
    let start = before[..start].strip_suffix('\n').map_or(start, str::len);
    let start = text[..start].strip_suffix('\r').map_or(start, str::len);
    if place == 0 && start == at.span.start + 1 && !text[start..member.start].contains('\n') {
        // The first of a line: what follows takes its position.
        return replaced(text, member.start..members[1].start, "");
    }
    let shorter = replaced(text, start..end, "");
    match (member.comma, place.checked_sub(1).and_then(|it| members[it].comma)) {
        (None, Some(comma)) => replaced(&shorter, comma..comma + 1, ""),
        _ => shorter,
    }
}

/// Skips a comment on the same line.
fn after_remark(text: &str, from: usize) -> usize {
    let line = text[from..].lines().next().unwrap_or_default();
    let rest = line.trim_start();
    let is_remark =
        rest.starts_with("//") || (rest.starts_with("/*") && rest.trim_end().ends_with("*/"));
    if is_remark { from + line.trim_end().len() } else { from }
}

/// The indentation of the line that contains a byte.
fn indent_of(text: &str, byte: usize) -> &str {
    let start = text[..byte].rfind('\n').map_or(0, |it| it + 1);
    leading(&text[start..byte])
}

fn leading(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

pub(super) fn replaced(text: &str, range: std::ops::Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// A value on one line, with a space after each comma.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::fixtures::entry;

    /// Adds an entry, removes it again, and compares both.
    #[track_caller]
    fn check(before: &str, after: &str) {
        let put = put(before, &["m"], "t", &entry()).unwrap();
        assert_eq!(put, after);
        let value = jsonc::parse(&put).unwrap().unwrap().to_value();
        assert_eq!(value["m"]["t"], entry().to_value());
        let again = super::put(&put, &["m"], "t", &entry()).unwrap();
        assert_eq!(again, put, "twice is as good as once");
        let taken = take(&put, &["m"], "t").unwrap().unwrap();
        assert_eq!(taken, before, "there and back");
        assert_eq!(take(&taken, &["m"], "t").unwrap(), None);
    }

    #[test]
    fn an_entry_goes_in_and_out_and_nothing_else_moves() {
        check(
            "{\n  \"m\": {\n    \"a\": {}\n  },\n  \"z\": 1\n}\n",
            "{\n  \"m\": {\n    \"a\": {},\n    \"t\": {\n      \"command\": \"t\",\n      \"args\": [\"a\", \"b\"]\n    }\n  },\n  \"z\": 1\n}\n",
        );
        // Tabs, carriage returns, a comment after the last value, no newline at the end.
        check(
            "{\r\n\t\"m\": {\r\n\t\t\"a\": {} // mine\r\n\t\t// end\r\n\t}\r\n}",
            "{\r\n\t\"m\": {\r\n\t\t\"a\": {}, // mine\r\n\t\t\"t\": {\r\n\t\t\t\"command\": \"t\",\r\n\t\t\t\"args\": [\"a\", \"b\"]\r\n\t\t}\r\n\t\t// end\r\n\t}\r\n}",
        );
        // A trailing comma.
        check(
            "{\n    \"m\": {\n        \"a\": {}, /* mine */\n    },\n}\n",
            "{\n    \"m\": {\n        \"a\": {}, /* mine */\n        \"t\": {\n            \"command\": \"t\",\n            \"args\": [\"a\", \"b\"]\n        },\n    },\n}\n",
        );
        // One line.
        check(
            r#"{"m":{"a":{}},"z":1}"#,
            r#"{"m":{"a":{},"t":{"command":"t","args":["a","b"]}},"z":1}"#,
        );
        check(
            r#"{"m": {}, "z": 1}"#,
            r#"{"m": {"t": {"command": "t", "args": ["a", "b"]}}, "z": 1}"#,
        );
        // Empty.
        check(
            "{\n  \"m\": {}\n}\n",
            "{\n  \"m\": {\n    \"t\": {\n      \"command\": \"t\",\n      \"args\": [\"a\", \"b\"]\n    }\n  }\n}\n",
        );
    }

    #[test]
    fn what_is_not_there_is_made() {
        let made = put("", &["m"], "t", &Fields(vec![])).unwrap();
        assert_eq!(made, "{\n  \"m\": {\n    \"t\": {}\n  }\n}\n");
        let made = put("// mine\n", &["m"], "t", &Fields(vec![])).unwrap();
        assert_eq!(made, "// mine\n{\n  \"m\": {\n    \"t\": {}\n  }\n}\n");
        let made = put("{}", &["m"], "t", &Fields(vec![])).unwrap();
        assert_eq!(made, "{\n  \"m\": {\n    \"t\": {}\n  }\n}");
        let made = put("{\n    \"z\": 1\n}\n", &["m"], "t", &Fields(vec![])).unwrap();
        assert_eq!(made, "{\n    \"z\": 1,\n    \"m\": {\n        \"t\": {}\n    }\n}\n");
    }

    #[test]
    fn an_entry_takes_the_place_of_another() {
        let text = "{ \"m\": {\n  \"t\": { \"url\": \"x\" }, // old\n  \"b\": 1\n} }";
        let found = put(text, &["m"], "t", &entry()).unwrap();
        let expected = "{ \"m\": {\n  \"t\": {\"command\": \"t\", \"args\": [\"a\", \"b\"]}, // old\n  \"b\": 1\n} }";
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_and_the_middle_can_go_too() {
        let text = "{\n  \"t\": 1,\n  \"b\": 2,\n  \"c\": 3\n}";
        assert_eq!(take(text, &[], "t").unwrap().unwrap(), "{\n  \"b\": 2,\n  \"c\": 3\n}");
        assert_eq!(take(text, &[], "b").unwrap().unwrap(), "{\n  \"t\": 1,\n  \"c\": 3\n}");
        let line = r#"{"t": 1, "b": 2, "c": 3}"#;
        assert_eq!(take(line, &[], "t").unwrap().unwrap(), r#"{"b": 2, "c": 3}"#);
        assert_eq!(take(line, &[], "b").unwrap().unwrap(), r#"{"t": 1, "c": 3}"#);
        assert_eq!(take(line, &[], "c").unwrap().unwrap(), r#"{"t": 1, "b": 2}"#);
    }

    #[test]
    fn what_is_no_object_is_left_alone() {
        let found = put("{\n  \"m\": [1]\n}", &["m"], "t", &entry()).unwrap_err();
        assert_eq!(found.to_string(), "line 2, column 8: `m` is no object.");
        assert_eq!(put("[]", &["m"], "t", &entry()).unwrap_err().line, 1);
    }
}
