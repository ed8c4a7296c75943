//! Canonical JSON and its digest.
//!
//! Members are sorted by name, white space is removed, and strings have one spelling. Numbers keep their
//! spelling: `1` and `1.0` differ, and so do integers beyond a machine word, which a parser would make equal.

use trunkline_auth::digest::sha256;
use trunkline_wire::json::Json;

/// The digest of a value: `sha256:` and 64 hexadecimal digits. The order of members and white space do not
/// matter.
pub fn digest(json: &Json) -> String {
    sha256(canonical(json).as_bytes())
}

/// The canonical form of a value.
pub fn canonical(json: &Json) -> String {
    Reader::read(json).0
}

/// Whether an object in it has duplicate member names, which parsers resolve differently.
pub fn is_ambiguous(json: &Json) -> bool {
    Reader::read(json).1
}

/// Reads a text that is known to be one JSON value, nested no deeper than `Json` allows.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    is_ambiguous: bool,
}

impl<'a> Reader<'a> {
    /// The canonical form, and whether a name occurred twice.
    fn read(json: &'a Json) -> (String, bool) {
        let mut reader = Self { text: json.get(), at: 0, is_ambiguous: false };
        let mut out = String::with_capacity(json.get().len());
        reader.value(&mut out);
        (out, reader.is_ambiguous)
    }

    fn value(&mut self, out: &mut String) {
        match self.peek() {
            b'{' => self.object(out),
            b'[' => self.array(out),
            b'"' => out.push_str(&spell(self.string())),
            _ => out.push_str(self.bare()),
        }
    }

    fn object(&mut self, out: &mut String) {
        let mut members = Vec::new();
        while self.has_more(b'}') {
            let name = spell(self.string());
            self.step_over(b':');
            let mut value = String::new();
            self.value(&mut value);
            members.push((name, value));
        }
        // A stable sort: the order of duplicate members matters to parsers.
        members.sort_by(|a, b| a.0.cmp(&b.0));
        self.is_ambiguous |= members.windows(2).any(|pair| pair[0].0 == pair[1].0);
        out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            out.extend([comma, name, ":", value]);
        }
        out.push('}');
    }

    fn array(&mut self, out: &mut String) {
        out.push('[');
        let mut is_first = true;
        while self.has_more(b']') {
            if !std::mem::take(&mut is_first) {
                out.push(',');
            }
            self.value(out);
        }
        out.push(']');
    }

    /// Skips the opening bracket or a comma; or the closing bracket, and returns `false`.
    fn has_more(&mut self, end: u8) -> bool {
        if matches!(self.peek(), b'{' | b'[' | b',') {
            self.at += 1;
            if self.peek() != end {
                return true;
            }
        }
        self.step_over(end);
        false
    }

    /// A string with its quotes.
    fn string(&mut self) -> &'a str {
        self.peek();
        let start = self.at;
        let bytes = &self.text.as_bytes()[start + 1..];
        let mut escaped = false;
        let end = bytes.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        });
        self.at = start + 1 + end.map_or(bytes.len(), |it| it + 1);
        &self.text[start..self.at]
    }

    /// A number, `true`, `false` or `null`.
    fn bare(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|it: char| matches!(it, ',' | '}' | ']') || it.is_ascii_whitespace());
        let (bare, _) = rest.split_at(end.unwrap_or(rest.len()));
        self.at += bare.len();
        bare
    }

    fn step_over(&mut self, byte: u8) {
        debug_assert_eq!(self.peek(), byte, "the text is valid JSON");
        self.at += 1;
    }

    /// The next byte that is not white space; zero at the end.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or_default()
    }
}

/// The canonical spelling of a string. A lone surrogate, which is no text, stays as it is.
fn spell(string: &str) -> String {
    match serde_json::from_str::<String>(string) {
        Ok(text) => Json::string(&text).get().to_owned(),
        Err(_) => string.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn values_have_one_spelling() {
        for (text, expected) in [
            ("null", "null"),
            (" 1.50 ", "1.50"),
            ("{}", "{}"),
            ("[ ]", "[]"),
            ("{ \"b\" : 1 ,\n \"a\" : [ 1 , 2 , { } ] }", r#"{"a":[1,2,{}],"b":1}"#),
            (r#"{"a":{"z":1,"y":[true,false]}}"#, r#"{"a":{"y":[true,false],"z":1}}"#),
            (r#"["\u0061\/\"","\\","}{][,:"]"#, r#"["a/\"","\\","}{][,:"]"#),
            (r#"{"\u0062":1,"a":2}"#, r#"{"a":2,"b":1}"#),
            (r#"{"a":2,"a":1}"#, r#"{"a":2,"a":1}"#),
            (r#""\ud800""#, r#""\ud800""#),
        ] {
            assert_eq!(canonical(&json(text)), expected);
        }
    }

    #[test]
    fn the_spelling_is_its_own_and_means_the_same() {
        let text = r#" {"é\n": [1e3, -0, {"b": "\\\"", "a": null}], "": "\u00e9"} "#;
        let once = canonical(&json(text));
        assert_eq!(canonical(&json(&once)), once);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&once), value(text));
    }

    #[test]
    fn digests_differ_where_values_do() {
        assert_eq!(digest(&json(r#"{"a":1,"b":2}"#)), digest(&json(r#"{"b": 2, "a": 1}"#)));
        for (one, other) in [
            ("10000000000000000000001", "10000000000000000000002"),
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            ("[1,2]", "[2,1]"),
        ] {
            assert_ne!(digest(&json(one)), digest(&json(other)), "{one} and {other}");
        }
        assert_eq!(digest(&json("{}")), sha256(b"{}"));
    }

    #[test]
    fn a_name_that_comes_twice_is_noticed_anywhere() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"b":1,"a":2,"\u0062":3}}]"#] {
            assert!(is_ambiguous(&json(text)), "{text}");
        }
        for text in [r#"{"a":{"a":1},"b":{"a":1}}"#, r#"[{"a":1},{"a":1}]"#, r#"{"a":1,"A":1}"#] {
            assert!(!is_ambiguous(&json(text)), "{text}");
        }
    }

    #[test]
    fn deep_and_long_values_are_read() {
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert_eq!(canonical(&json(&deep)), deep);
        let long = format!("[{}0]", "0 ,".repeat(100_000));
        assert_eq!(canonical(&json(&long)).len(), 200_003);
    }
}
