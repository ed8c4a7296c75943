//! JSON with comments and trailing commas → a tree with the position of everything.
//!
//! The `jsonc-parser` crate parses the text. It can write as well, but reflows single lines and
//! drops empty ones; so `edit.rs` edits the text itself.

use std::fmt;
use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

/// Why and where a text could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// Counted from one.
    pub(crate) line: usize,
    /// Counted from one, in characters.
    pub(crate) column: usize,
    /// What is wrong, in a sentence.
    pub(crate) message: String,
}

impl Unreadable {
    /// What is wrong at a byte of a text.
    pub(super) fn at(text: &str, byte: usize, message: impl Into<String>) -> Self {
        let before = &text.as_bytes()[..byte.min(text.len())];
        let line = before.iter().filter(|it| **it == b'\n').count() + 1;
        let start = before.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
        // Bytes that continue a character do not begin a column.
        let column = before[start..].iter().filter(|it| **it & 0xc0 != 0x80).count() + 1;
        Self { line, column, message: message.into() }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for Unreadable {}

/// A value and its position.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar(Value),
}

/// A name with its value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    /// Where its name begins.
    pub(super) start: usize,
    pub(super) value: Node,
    /// The position of the comma after it, if there is one.
    pub(super) comma: Option<usize>,
}

impl Node {
    /// The members of an object.
    pub(super) fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            _ => None,
        }
    }

    /// A member of an object. The last duplicate counts, as in JavaScript.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        self.members()?.iter().rfind(|it| it.key == key)
    }

    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|it| (it.key.clone(), it.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
            Kind::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Kind::Scalar(value) => value.clone(),
        }
    }
}

/// Parses a text. `None` if it contains only whitespace and comments.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Unreadable> {
    let collect = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: true };
    // The parser does not know the byte order mark; replacing it with spaces keeps positions.
    let unmarked = text.strip_prefix('\u{feff}').map(|it| format!("   {it}"));
    let result = parse_to_ast(unmarked.as_deref().unwrap_or(text), &collect, &OPTIONS);
    let result = result.map_err(|error| {
        let why = sentence(error.kind());
        Unreadable::at(text, error.range().start, why)
    })?;
    let tokens = result.tokens.unwrap_or_default();
    let commas = tokens.iter().filter(|it| it.token == Token::Comma).map(|it| it.range.start);
    let builder = Builder { text, commas: commas.collect() };
    result.value.map(|it| builder.node(&it)).transpose()
}

/// The parser's error as a sentence.
fn sentence(kind: &ParseErrorKind) -> String {
    let words = match kind {
        ParseErrorKind::ExpectedComma => "Here should be a comma.",
        ParseErrorKind::ExpectedColonAfterObjectKey => "Here should be a colon.",
        ParseErrorKind::ExpectedStringObjectProperty => "Here should be a name in double quotes.",
        ParseErrorKind::ExpectedObjectValue
        | ParseErrorKind::UnexpectedCloseBrace
        | ParseErrorKind::UnexpectedCloseBracket
        | ParseErrorKind::UnexpectedWord => "Here should be a value.",
        ParseErrorKind::NestingDepthExceeded => "It is nested too deeply.",
        other => return format!("This is no JSON: {other}."),
    };
    words.to_owned()
}

/// The parser's tree → our tree.
struct Builder<'a> {
    text: &'a str,
    /// The positions of the commas, in order.
    commas: Vec<usize>,
}

impl Builder<'_> {
    fn node(&self, value: &ast::Value<'_>) -> Result<Node, Unreadable> {
        let range = value.range();
        let kind = match value {
            ast::Value::Object(object) => Kind::Object(self.members(object)?),
            ast::Value::Array(array) => Kind::Array(
                array.elements.iter().map(|it| self.node(it)).collect::<Result<_, _>>()?,
            ),
            ast::Value::StringLit(it) => Kind::Scalar(Value::from(&*it.value)),
            ast::Value::NumberLit(it) => {
                let number = serde_json::from_str(it.value);
                Kind::Scalar(number.map_err(|_| {
                    Unreadable::at(self.text, range.start, "This is no JSON: No such number.")
                })?)
            }
            ast::Value::BooleanLit(it) => Kind::Scalar(it.value.into()),
            ast::Value::NullKeyword(_) => Kind::Scalar(Value::Null),
        };
        Ok(Node { span: range.start..range.end, kind })
    }

    fn members(&self, object: &ast::Object<'_>) -> Result<Vec<Member>, Unreadable> {
        let all = &object.properties;
        let starts = all.iter().skip(1).map(|it| it.range.start);
        let nexts = starts.chain([object.range.end]);
        let members = all.iter().zip(nexts).map(|(it, next)| {
            let value = self.node(&it.value)?;
            let first = self.commas.partition_point(|it| *it < value.span.end);
            let comma = self.commas.get(first).copied().filter(|it| *it < next);
            Ok(Member { key: it.name.as_str().to_owned(), start: it.range.start, value, comma })
        });
        members.collect()
    }
}

/// JSON as editors read it: with comments and trailing commas, and no other extension.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_are_no_obstacle() {
        let text = "\u{feff}// Zed\n{ /* a */ \"a\" /*b*/ : [1, -2.5e3, true,], // c\r\n \"é\\n\": {}, }\n//";
        let found = parse(text).unwrap().unwrap();
        assert_eq!(found.to_value(), json!({ "a": [1, -2500.0, true], "é\n": {} }));
        assert!(parse(" // nothing\n").unwrap().is_none());
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        let found = parse(r#"{"a": 1, "a": 2}"#).unwrap().unwrap();
        assert_eq!(found.member("a").unwrap().value.to_value(), json!(2));
        assert_eq!(found.to_value(), json!({ "a": 2 }));
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        for (text, line, column) in [
            ("{\n  \"é\" 1}", 2, 7),
            ("{\"a\": 1 \"b\": 2}", 1, 8),
            ("{\"a\": tru}", 1, 7),
            ("{\"a\": }", 1, 7),
            ("{a: 1}", 1, 2),
            ("[1 2]", 1, 3),
            ("{} x", 1, 4),
            ("{\n\"a", 2, 1),
            ("/* a", 1, 1),
            ("{", 1, 1),
            ("\"\\q\"", 1, 2),
        ] {
            let found = parse(text).unwrap_err();
            assert_eq!((found.line, found.column), (line, column), "{text}: {found}");
        }
        assert!(parse(&"[".repeat(5000)).unwrap_err().message.contains("deep"));
    }
}
