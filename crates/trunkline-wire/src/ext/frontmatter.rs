//! The frontmatter of a Markdown file → JSON.
//!
//! Frontmatter is YAML. This reads the subset that frontmatter uses: mappings, sequences, plain and
//! quoted scalars, block scalars, flow collections on one line. It refuses everything else (anchors,
//! tags, several documents), because code that compares frontmatter to decide what to trust must not
//! guess.

mod scalar;

use std::fmt;

use serde_json::{Map, Value};

/// Why the frontmatter cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFrontmatter {
    /// The line of the file, from 1.
    pub line: usize,
    /// What is wrong there.
    pub why: &'static str,
}

impl fmt::Display for BadFrontmatter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The frontmatter cannot be read: line {}: {}.", self.line, self.why)
    }
}

impl std::error::Error for BadFrontmatter {}

type Read<T> = Result<T, BadFrontmatter>;

/// Reads the frontmatter at the beginning of `text`.
pub(super) fn read(text: &str) -> Read<Map<String, Value>> {
    let mut reader = Reader { lines: lines(text)?, at: 0, depth: 0 };
    let value = match reader.peek()? {
        Some(line) => reader.node(line, None)?,
        None => Value::Null,
    };
    match (reader.peek()?, value) {
        (None, Value::Object(fields)) => Ok(fields),
        (None, _) => Err(BadFrontmatter { line: 1, why: "there are no fields" }),
        (Some(_), _) => Err(reader.wrong("the indentation fits nothing above")),
    }
}

/// The lines between the two that are `---`.
fn lines(text: &str) -> Read<Vec<String>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut all = text.split('\n').map(|it| it.strip_suffix('\r').unwrap_or(it));
    if all.next() != Some(FENCE) {
        return Err(BadFrontmatter { line: 1, why: "the file must begin with a line of `---`" });
    }
    let (mut lines, mut bytes) = (Vec::new(), 0);
    for line in all {
        if line.trim_end_matches([' ', '\t']) == FENCE {
            return Ok(lines);
        }
        bytes += line.len();
        if bytes > MAX_BYTES {
            return Err(BadFrontmatter { line: lines.len() + 2, why: "it is too long" });
        }
        lines.push(line.to_owned());
    }
    Err(BadFrontmatter { line: lines.len() + 2, why: "there is no line of `---` at its end" })
}

struct Reader {
    lines: Vec<String>,
    at: usize,
    depth: usize,
}

/// A line that is not blank: its number, indentation and text.
#[derive(Clone)]
struct Line {
    indent: usize,
    text: String,
}

impl Line {
    fn is_item(&self) -> bool {
        self.text == "-" || self.text.starts_with("- ")
    }
}

impl Reader {
    /// The next line that is not blank, without consuming it.
    fn peek(&mut self) -> Read<Option<Line>> {
        while let Some(line) = self.lines.get(self.at) {
            let text = line.trim_start_matches(' ');
            if text.trim().is_empty() || text.starts_with('#') {
                self.at += 1;
                continue;
            }
            if text.starts_with('\t') {
                return Err(self.wrong("a tab cannot indent"));
            }
            let indent = line.len() - text.len();
            return Ok(Some(Line { indent, text: text.trim_end().to_owned() }));
        }
        Ok(None)
    }

    /// The node that begins at `line`, inside a parent with this indentation.
    fn node(&mut self, line: Line, parent: Option<usize>) -> Read<Value> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong("it is nested too deeply"));
        }
        let value = if line.is_item() {
            self.sequence(line.indent)
        } else if scalar::split_key(&line.text).map_err(|why| self.wrong(why))?.is_some() {
            self.mapping(line.indent)
        } else {
            self.at += 1;
            self.value(&line.text, parent)
        };
        self.depth -= 1;
        value
    }

    fn mapping(&mut self, indent: usize) -> Read<Value> {
        let mut fields = Map::new();
        while let Some(line) = self.peek()?.filter(|it| it.indent >= indent) {
            if line.indent > indent {
                return Err(self.wrong("the indentation fits nothing above"));
            }
            let split = scalar::split_key(&line.text).map_err(|why| self.wrong(why))?;
            let Some((key, rest)) = split else {
                return Err(self.wrong("a field is written `name: value`"));
            };
            if fields.contains_key(&key) {
                return Err(self.wrong("a name stands twice"));
            }
            self.at += 1;
            // The items of a sequence may have the indentation of its key.
            let items = match rest {
                "" => self.peek()?.filter(|it| it.indent == indent && it.is_item()),
                _ => None,
            };
            let value = match items {
                Some(first) => self.node(first, Some(indent))?,
                None => self.value(rest, Some(indent))?,
            };
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }

    fn sequence(&mut self, indent: usize) -> Read<Value> {
        let mut items = Vec::new();
        while let Some(line) = self.peek()?.filter(|it| it.indent >= indent) {
            if line.indent > indent {
                return Err(self.wrong("the indentation fits nothing above"));
            }
            if !line.is_item() {
                break;
            }
            // The text after the dash is a node of its own, indented as it stands.
            self.lines[self.at].replace_range(indent..=indent, " ");
            let next = self.peek()?.filter(|it| it.indent > indent);
            items.push(match next {
                Some(next) => self.node(next, Some(indent))?,
                None => Value::Null,
            });
        }
        Ok(Value::Array(items))
    }

    /// A value that begins with `rest`, on a line already consumed.
    fn value(&mut self, rest: &str, parent: Option<usize>) -> Read<Value> {
        let inner = parent.map_or(0, |it| it + 1);
        match rest.chars().next() {
            None => match self.peek()?.filter(|it| it.indent >= inner) {
                Some(next) => self.node(next, parent),
                None => Ok(Value::Null),
            },
            Some('|' | '>') => self.block(rest, inner).map(Value::String),
            Some('"' | '\'' | '[' | '{') => {
                scalar::closed(rest).map_err(|why| self.wrong_before(why))
            }
            Some(_) => self.plain(rest, inner),
        }
    }

    /// A plain scalar, which may continue on lines with more indentation.
    fn plain(&mut self, rest: &str, inner: usize) -> Read<Value> {
        let first = scalar::plain(rest).map_err(|why| self.wrong_before(why))?;
        let mut text = first.text.to_owned();
        let (mut is_single, mut goes_on) = (true, !first.has_comment);
        while goes_on {
            let before = self.at;
            let Some(line) = self.peek()?.filter(|it| it.indent >= inner) else { break };
            let skipped = &self.lines[before..self.at];
            if skipped.iter().any(|it| it.trim_start().starts_with('#')) {
                break;
            }
            let breaks = skipped.len();
            let more = scalar::plain_more(&line.text).map_err(|why| self.wrong(why))?;
            goes_on = !more.has_comment;
            match breaks {
                0 => text.push(' '),
                _ => text.extend(std::iter::repeat_n('\n', breaks)),
            }
            text.push_str(more.text);
            is_single = false;
            self.at += 1;
        }
        match is_single {
            true => scalar::resolve(&text).map_err(|why| self.wrong_before(why)),
            false => Ok(Value::String(text)),
        }
    }

    /// A block scalar: its header is `rest`, its lines are indented further.
    fn block(&mut self, rest: &str, inner: usize) -> Read<String> {
        let header = scalar::BlockHeader::read(rest).map_err(|why| self.wrong_before(why))?;
        let mut indent = header.indent.map(|more| inner.saturating_sub(1) + more);
        let mut lines: Vec<&str> = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            let text = line.trim_start_matches(' ');
            let depth = line.len() - text.len();
            if text.is_empty() && indent.is_none_or(|it| depth < it) {
                lines.push("");
            } else {
                let indent = *indent.get_or_insert(depth.max(inner));
                if depth < indent {
                    break;
                }
                lines.push(&line[indent..]);
            }
            self.at += 1;
        }
        Ok(header.join(&lines))
    }

    /// An error at the next line.
    fn wrong(&self, why: &'static str) -> BadFrontmatter {
        BadFrontmatter { line: self.at + 2, why }
    }

    /// An error at the line consumed last.
    fn wrong_before(&self, why: &'static str) -> BadFrontmatter {
        BadFrontmatter { line: self.at + 1, why }
    }
}

const FENCE: &str = "---";
const MAX_BYTES: usize = 64 << 10;
const MAX_DEPTH: usize = 16;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(frontmatter: &str, expected: Value) {
        let text = format!("---\n{frontmatter}\n---\n\nBody: not ours.\n");
        let read = read(&text).unwrap_or_else(|why| panic!("{why}\n{frontmatter}"));
        assert_eq!(Value::Object(read), expected, "{frontmatter}");
        let crlf = text.replace('\n', "\r\n");
        let crlf = super::read(&crlf).unwrap_or_else(|why| panic!("{why}\n{frontmatter}"));
        assert_eq!(Value::Object(crlf), expected, "with CRLF: {frontmatter}");
    }

    fn refused(text: &str) -> BadFrontmatter {
        read(text).expect_err(text)
    }

    #[test]
    fn the_usual_frontmatter_is_read() {
        check(
            "name: pdf-processing\ndescription: Extract, fill, and assemble PDF documents",
            json!({ "name": "pdf-processing", "description": "Extract, fill, and assemble PDF documents" }),
        );
        check(
            "# a comment\nname: a # another\n\nlicense: Apache-2.0\nmetadata:\n  author: someone\n  version: \"1.0\"\nallowed-tools: Bash(git:*) Read",
            json!({ "name": "a", "license": "Apache-2.0", "metadata": { "author": "someone", "version": "1.0" }, "allowed-tools": "Bash(git:*) Read" }),
        );
    }

    #[test]
    fn scalars_mean_what_yaml_says() {
        check(
            "a: true\nb: ~\nc: 12\nd: -1.5e3\ne: 1.2.3\nf: 2026-07-28\ng: yes\nh:\ni: '~'\nj: -\u{2014}x\nk: e5\nl: http://x/#y",
            json!({ "a": true, "b": null, "c": 12, "d": -1500.0, "e": "1.2.3", "f": "2026-07-28", "g": "yes", "h": null, "i": "~", "j": "-\u{2014}x", "k": "e5", "l": "http://x/#y" }),
        );
        check(
            r#"a: "q: \"x\" \u00e9\n" # c
b: 'it''s'
"c d": 1
'e': [1, "two", {f: g, h: [ ]}]
i: {}"#,
            json!({ "a": "q: \"x\" é\n", "b": "it's", "c d": 1, "e": [1, "two", { "f": "g", "h": [] }], "i": {} }),
        );
    }

    #[test]
    fn texts_go_on_over_lines() {
        check("a: one\n  two\n\n  three\nb: x", json!({ "a": "one two\nthree", "b": "x" }));
        check(
            "a: >\n  one\n  two\n\n  three\n    four\nb: x",
            json!({ "a": "one two\nthree\n  four\n", "b": "x" }),
        );
        check(
            "a: |\n  one\n    two\n\nb: |-\n  x\nc: |+\n  y\n",
            json!({ "a": "one\n  two\n", "b": "x", "c": "y\n\n" }),
        );
        check("a: >-\n  # no comment\n  x", json!({ "a": "# no comment x" }));
    }

    #[test]
    fn collections_nest() {
        check(
            "a:\n- x\n- y: 1\n  z: 2\n-\n  - p\n  - q\n-\nb:\n  c:\n    - d",
            json!({ "a": ["x", { "y": 1, "z": 2 }, ["p", "q"], null], "b": { "c": ["d"] } }),
        );
    }

    #[test]
    fn unsupported_yaml_is_refused() {
        for frontmatter in [
            "a: &x 1",
            "a: *x",
            "a: !!str 1",
            "a: 1\na: 2",
            "a: b: c",
            "a: 'open",
            "a: [1, 2",
            "a: 1\n  b: 2",
            "\ta: 1",
            "? a\n: b",
            "<<: x",
            "- a",
            "just text",
            "",
            "a: {b: 1, b: 2}",
            "a: .nan",
            "a: 0x1f",
            "a: \"\\q\"",
            "a: | x\n  y",
            "a: - b",
            "a: 'x' y",
            "  a: 1\n b: 2",
        ] {
            refused(&format!("---\n{frontmatter}\n---\n"));
        }
        for text in ["", "name: a", "--- \na: 1\n---", "---\na: 1\n", "\n---\na: 1\n---\n"] {
            refused(text);
        }
        assert_eq!(refused("---\na: 1\nb: *x\n---\n").line, 3);
        refused(&format!("---\na: {}{}\n---\n", "[".repeat(99), "]".repeat(99)));
        refused(&format!("---\n{}\n---\n", "- ".repeat(99)));
        refused(&format!("---\na: {}\n---\n", "x".repeat(70_000)));
    }
}
