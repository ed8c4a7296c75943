//! One line of YAML → JSON: keys, scalars, flow collections, block headers.

use std::iter::repeat_n;

use serde_json::{Map, Value};

type Read<T> = Result<T, &'static str>;

/// A plain scalar, or a part of one.
pub(super) struct Plain<'a> {
    pub(super) text: &'a str,
    /// A comment ends a scalar.
    pub(super) has_comment: bool,
}

/// Splits `key: rest`; `None` if the line does not begin a field.
pub(super) fn split_key(line: &str) -> Read<Option<(String, &str)>> {
    let (key, after) = match line.chars().next() {
        Some('"' | '\'') => quoted(line)?,
        Some('[' | '{' | '|' | '>') => return Ok(None),
        _ => {
            let said = &line[..comment(line).unwrap_or(line.len())];
            let Some(at) = colon(said) else { return Ok(None) };
            let key = said[..at].trim_end();
            if key == "<<" {
                return Err("`<<` is not supported");
            }
            check_start(key)?;
            (key.to_owned(), &line[at..])
        }
    };
    let rest = after.trim_start().strip_prefix(':');
    let rest = rest.filter(|it| it.is_empty() || it.starts_with(' ')).map(str::trim);
    Ok(rest.map(|rest| (key, if rest.starts_with('#') { "" } else { rest })))
}

/// The first line of a plain scalar.
pub(super) fn plain(text: &str) -> Read<Plain<'_>> {
    check_start(text)?;
    plain_more(text)
}

/// A continuation line of a plain scalar.
pub(super) fn plain_more(text: &str) -> Read<Plain<'_>> {
    let end = comment(text);
    let text_only = text[..end.unwrap_or(text.len())].trim_end();
    match colon(text_only) {
        Some(_) => Err("a text with `: ` must be quoted"),
        None => Ok(Plain { text: text_only, has_comment: end.is_some() }),
    }
}

/// The value of a plain scalar on one line.
pub(super) fn resolve(text: &str) -> Read<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = |it: char| it.is_ascii_digit() || matches!(it, '.' | 'e' | 'E' | '-' | '+');
    Ok(match text {
        "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ if matches!(digits, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") => {
            return Err("JSON has no such number");
        }
        _ if text.starts_with("0x") || text.starts_with("0o") => {
            return Err("write numbers with decimal digits, or quote the text");
        }
        _ if !digits.chars().all(is_number) || !digits.contains(|it: char| it.is_ascii_digit()) => {
            text.into()
        }
        _ => number(text).unwrap_or_else(|| text.into()),
    })
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number)
}

/// A self-delimiting value: quoted, or a flow collection.
pub(super) fn closed(text: &str) -> Read<Value> {
    let (value, rest) = flow(text, 0)?;
    match rest.trim().is_empty() || comment(rest).is_some_and(|at| rest[..at].trim().is_empty()) {
        true => Ok(value),
        false => Err("something follows where the value has ended"),
    }
}

fn flow(text: &str, depth: usize) -> Read<(Value, &str)> {
    let text = text.trim_start();
    if depth > super::MAX_DEPTH {
        return Err("it is nested too deeply");
    }
    match text.chars().next() {
        None => Err(UNCLOSED),
        Some('"' | '\'') => quoted(text).map(|(it, rest)| (Value::String(it), rest)),
        Some('[') => flow_sequence(&text[1..], depth),
        Some('{') => flow_mapping(&text[1..], depth),
        Some(_) => {
            let (word, rest) = flow_word(text)?;
            Ok((resolve(word)?, rest))
        }
    }
}

fn flow_sequence(rest: &str, depth: usize) -> Read<(Value, &str)> {
    let mut items = Vec::new();
    let after = flow_items(rest, ']', |rest| {
        let (item, after) = flow(rest, depth + 1)?;
        items.push(item);
        Ok(after)
    })?;
    Ok((Value::Array(items), after))
}

fn flow_mapping(rest: &str, depth: usize) -> Read<(Value, &str)> {
    let mut fields = Map::new();
    let after = flow_items(rest, '}', |rest| {
        let (key, after) = match rest.chars().next() {
            Some('"' | '\'') => quoted(rest)?,
            _ => flow_word(rest).map(|(key, after)| (key.to_owned(), after))?,
        };
        let after =
            after.trim_start().strip_prefix(':').ok_or("a field is written `name: value`")?;
        let (value, after) = flow(after, depth + 1)?;
        if fields.insert(key, value).is_some() {
            return Err("a name stands twice");
        }
        Ok(after)
    })?;
    Ok((Value::Object(fields), after))
}

/// Reads items up to `end` with `one`, which returns what follows its item; returns what follows the end.
fn flow_items<'a>(
    mut rest: &'a str,
    end: char,
    mut one: impl FnMut(&'a str) -> Read<&'a str>,
) -> Read<&'a str> {
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(end) {
            return Ok(after);
        }
        rest = separated(one(rest)?, end)?;
    }
}

/// After an item: skips a comma, or finds the end.
fn separated(rest: &str, end: char) -> Read<&str> {
    let rest = rest.trim_start();
    match rest.strip_prefix(',') {
        Some(after) => Ok(after),
        None if rest.starts_with(end) => Ok(rest),
        None => Err(UNCLOSED),
    }
}

fn flow_word(text: &str) -> Read<(&str, &str)> {
    check_start(text)?;
    let is_end = |(at, it): (usize, char)| match it {
        ',' | ']' | '}' | '[' | '{' => true,
        ':' => text[at + 1..].chars().next().is_none_or(|it| " ,]}".contains(it)),
        '#' => text[..at].ends_with(' '),
        _ => false,
    };
    let end = text.char_indices().find(|it| is_end(*it)).map_or(text.len(), |(at, _)| at);
    match text[..end].trim_end() {
        "" => Err("a value is missing"),
        word => Ok((word, &text[end..])),
    }
}

/// A quoted string at the start of `text`, and the rest.
fn quoted(text: &str) -> Read<(String, &str)> {
    let is_double = text.starts_with('"');
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, it)) = chars.next() {
        match it {
            '"' if is_double => return Ok((out, &text[at + 1..])),
            '\'' if !is_double => match chars.next_if(|(_, next)| *next == '\'') {
                Some(_) => out.push('\''),
                None => return Ok((out, &text[at + 1..])),
            },
            '\\' if is_double => {
                let (_, letter) = chars.next().ok_or(UNCLOSED)?;
                let digits = match letter {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => 0,
                };
                let code = (0..digits).try_fold(0_u32, |code, _| {
                    let digit = chars.next().and_then(|(_, it)| it.to_digit(16))?;
                    Some(code << 4 | digit)
                });
                out.push(match letter {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => '\0',
                    'e' => '\u{1b}',
                    '"' | '\\' | '/' | ' ' => letter,
                    _ if digits > 0 => {
                        code.and_then(char::from_u32).ok_or("that is no character")?
                    }
                    _ => return Err("that escape is not supported"),
                });
            }
            other => out.push(other),
        }
    }
    Err(UNCLOSED)
}

/// The header of a block scalar.
pub(super) struct BlockHeader {
    is_folded: bool,
    chomp: Option<char>,
    /// The explicit indentation of its lines, if given.
    pub(super) indent: Option<usize>,
}

impl BlockHeader {
    pub(super) fn read(text: &str) -> Read<Self> {
        let mut header = Self { is_folded: text.starts_with('>'), chomp: None, indent: None };
        let marks = text[..comment(text).unwrap_or(text.len())].trim_end();
        for mark in marks[1..].chars() {
            match mark {
                '+' | '-' if header.chomp.is_none() => header.chomp = Some(mark),
                '1'..='9' if header.indent.is_none() => {
                    header.indent = mark.to_digit(10).map(|it| it as usize);
                }
                _ => return Err("a block begins with `|` or `>` alone on its line"),
            }
        }
        Ok(header)
    }

    /// The text of the block.
    pub(super) fn join(&self, lines: &[&str]) -> String {
        let end = lines.iter().rposition(|it| !it.is_empty()).map_or(0, |at| at + 1);
        let (body, blank) = lines.split_at(end);
        let mut out = match self.is_folded {
            true => fold(body),
            false => body.join("\n"),
        };
        match self.chomp {
            Some('-') => {}
            Some(_) => out.extend(repeat_n('\n', blank.len() + usize::from(end > 0))),
            None if end > 0 => out.push('\n'),
            None => {}
        }
        out
    }
}

/// Folds lines: adjacent ones are joined; blank ones separate; indented ones stay.
fn fold(lines: &[&str]) -> String {
    let mut out = String::new();
    let (mut before, mut blank): (Option<&str>, usize) = (None, 0);
    for &line in lines {
        if line.is_empty() {
            blank += 1;
            continue;
        }
        let is_further = |it: &str| it.starts_with([' ', '\t']);
        match before {
            None => out.extend(repeat_n('\n', blank)),
            Some(last) if is_further(last) || is_further(line) => {
                out.extend(repeat_n('\n', blank + 1));
            }
            Some(_) if blank == 0 => out.push(' '),
            Some(_) => out.extend(repeat_n('\n', blank)),
        }
        out.push_str(line);
        (before, blank) = (Some(line), 0);
    }
    out
}

/// Refuses indicator characters at the start of a scalar.
fn check_start(text: &str) -> Read<()> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some('&' | '*'), _) => Err("anchors and aliases are not supported"),
        (Some('!'), _) => Err("tags are not supported"),
        (Some('%' | '@' | '`' | ',' | ']' | '}' | '|' | '>'), _) => Err("quote that text"),
        (Some('-' | '?' | ':'), None | Some(' ')) => Err("quote that text"),
        _ => Ok(()),
    }
}

/// The start of a comment.
fn comment(text: &str) -> Option<usize> {
    match text.starts_with('#') {
        true => Some(0),
        false => text.find(" #"),
    }
}

/// The position of the colon in `key: value`.
fn colon(text: &str) -> Option<usize> {
    text.find(": ").or_else(|| text.ends_with(':').then(|| text.len() - 1))
}

const UNCLOSED: &str = "it does not end on the line where it begins";
