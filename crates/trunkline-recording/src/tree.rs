//! JSON text ⇄ a tree that keeps the order of members and the spelling of numbers.

use std::fmt;

use serde::{Serialize, Serializer};
use trunkline_wire::json::{Json, write_string};

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Tree {
    Null,
    Bool(bool),
    /// As it was spelled.
    Number(Box<str>),
    Text(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// Parses a text.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        Ok(Self::of(&Json::parse(text)?))
    }

    /// The tree of a valid text.
    pub fn of(json: &Json) -> Self {
        Parser { text: json.get(), at: 0 }.value()
    }

    /// An object without members.
    pub fn empty() -> Self {
        Self::Object(Vec::new())
    }

    /// The value as one text.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        String::from_utf8(out).expect("it is written from UTF-8 pieces")
    }

    /// The value as it travels.
    pub fn to_json(&self) -> Json {
        Json::parse(self.to_text()).expect("a tree is written as valid JSON")
    }

    /// The member `name` of an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The member `name` of an object, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Object(members) => {
                members.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The value at the end of a path of member names.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |tree, name| tree.get(name))
    }

    /// Sets the member `name` of an object; of another value nothing.
    pub fn set(&mut self, name: &str, value: Self) {
        let Self::Object(members) = self else { return };
        match members.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => members.push((name.to_owned(), value)),
        }
    }

    /// What a text says.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The members of an object; none of another value.
    pub fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// The items of a list; none of another value.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Number(digits) => out.extend_from_slice(digits.as_bytes()),
            Self::Text(text) => write_string(text, out),
            Self::List(items) => {
                out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_string(name, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

/// Reads a text that is known to be valid, and no deeper than `MAX_DEPTH`.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self) -> Tree {
        match self.peek() {
            b'{' => {
                let mut members = Vec::new();
                while self.opens_item(members.is_empty(), b'}') {
                    let name = self.string();
                    self.peek();
                    self.at += 1; // The colon.
                    members.push((name, self.value()));
                }
                Tree::Object(members)
            }
            b'[' => {
                let mut items = Vec::new();
                while self.opens_item(items.is_empty(), b']') {
                    items.push(self.value());
                }
                Tree::List(items)
            }
            b'"' => Tree::Text(self.string()),
            _ => match self.word() {
                "null" => Tree::Null,
                "true" => Tree::Bool(true),
                "false" => Tree::Bool(false),
                digits => Tree::Number(digits.into()),
            },
        }
    }

    /// The first byte that is no white space; 0 at the end.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Passes the opening bracket or the comma before an item; false after the closing bracket.
    fn opens_item(&mut self, is_first: bool, close: u8) -> bool {
        self.peek();
        if is_first {
            self.at += 1;
        }
        let next = self.peek();
        if next == close || next == 0 {
            self.at += 1;
            return false;
        }
        if !is_first {
            self.at += 1; // The comma.
            self.peek();
        }
        true
    }

    fn string(&mut self) -> String {
        self.peek();
        let (start, bytes) = (self.at, self.text.as_bytes());
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            self.at += match byte {
                b'\\' => 2,
                b'"' => break,
                _ => 1,
            };
        }
        self.at = (self.at + 1).min(bytes.len());
        let spelled = &self.text[start..self.at];
        // Half a surrogate pair is valid JSON and no text: it stays as it is spelled.
        serde_json::from_str(spelled).unwrap_or_else(|_| spelled.trim_matches('"').to_owned())
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let is_end = |it: char| matches!(it, ',' | ']' | '}') || it.is_ascii_whitespace();
        let word = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        self.at += word.len().max(1);
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_spelling_survive() {
        for text in [
            r#"{"b":1.50,"a":[1e3,-0,10000000000000000000000],"c":{"d":null,"e":[]}}"#,
            r#"[true,false,null,"é\n\"\\",{}]"#,
            r#""text""#,
            "3",
            "[]",
            "{}",
        ] {
            assert_eq!(Tree::parse(text).unwrap().to_text(), text);
        }
        let spaced = " {\n \"a\" : [ 1 , 2 ] ,\t\"b\" : { } }\r\n";
        assert_eq!(Tree::parse(spaced).unwrap().to_text(), r#"{"a":[1,2],"b":{}}"#);
        assert!(Tree::parse("{\"a\":}").is_err());
    }

    #[test]
    fn members_are_found_and_set() {
        let mut tree = Tree::parse(r#"{"a":{"b":"c"}}"#).unwrap();
        assert_eq!(tree.at(&["a", "b"]).and_then(Tree::as_text), Some("c"));
        tree.get_mut("a").unwrap().set("d", Tree::Null);
        assert_eq!(tree.to_text(), r#"{"a":{"b":"c","d":null}}"#);
    }
}
