//! A JSON text, read from its beginning to its end, each byte once. Values that nobody asks about are
//! checked against the grammar (RFC 8259) and handed out as the text that they are.

use std::borrow::Cow;
use std::ops::Range;

use super::MAX_DEPTH;
use super::plain::end_of_plain;

/// How far a text was read.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How many arrays and objects were gone into and not yet left.
    depth: usize,
    /// The most brackets that were open at any place so far.
    deepest: usize,
    /// A value of at least this length is left in the text, for it to take over.
    left_from: usize,
    left: Option<Range<usize>>,
}

/// The text is not JSON, or not what was asked for, or nests too deeply.
#[derive(Debug)]
pub(crate) struct Unreadable;

/// What stands between the quotes of a string.
#[derive(Clone, Copy)]
pub(crate) struct Quoted<'a> {
    text: &'a str,
    has_escapes: bool,
}

impl<'a> Quoted<'a> {
    /// What it says, if it has no escapes.
    #[inline]
    pub(crate) fn plain(self) -> Option<&'a str> {
        (!self.has_escapes).then_some(self.text)
    }

    /// What it says; `None` if it has half of a surrogate pair, which is JSON and no text.
    #[inline]
    pub(crate) fn decode(self) -> Option<Cow<'a, str>> {
        match self.has_escapes {
            false => Some(Cow::Borrowed(self.text)),
            true => serde_json::from_str(&format!("\"{}\"", self.text)).ok().map(Cow::Owned),
        }
    }
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, deepest: 0, left_from: usize::MAX, left: None }
    }

    /// Reads a text that a value may take over if it is most of it.
    pub(crate) fn leaving_most(text: &'a str) -> Self {
        Self { left_from: text.len() / 2 + 1, ..Self::new(text) }
    }

    /// Whether the value that was just read stays where it is.
    #[inline]
    pub(crate) fn leaves(&mut self, value: &str) -> bool {
        let leaves = value.len() >= self.left_from;
        if leaves {
            self.left = Some(self.at - value.len()..self.at);
        }
        leaves
    }

    /// Where the value stands that was left in the text. There is at most one: it is most of it.
    pub(crate) fn left(&self) -> Option<Range<usize>> {
        self.left.clone()
    }

    /// Whether what was read nests deeper than a text may.
    #[inline]
    pub(crate) fn is_too_deep(&self) -> bool {
        self.deepest > MAX_DEPTH
    }

    /// The first byte of the next value.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.byte()
    }

    /// All of the text.
    #[inline]
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// How far it has come.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// What was read since it was at `start`.
    #[inline]
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// Goes into the array or object that is next, if it begins with this bracket.
    #[inline]
    pub(crate) fn open(&mut self, bracket: u8) -> Result<(), Unreadable> {
        self.skip_space();
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        self.expect(bracket)
    }

    /// Goes into the object that is next and past its first member, if the text begins with just this.
    #[inline]
    pub(crate) fn open_after(&mut self, beginning: &str) -> bool {
        let is_it = self.at == 0 && self.text.starts_with(beginning);
        if is_it {
            self.at = beginning.len();
            (self.depth, self.deepest) = (1, 1);
        }
        is_it
    }

    /// The name of the next member of the object that was gone into; `None` at its end.
    #[inline(always)]
    pub(crate) fn member(&mut self, is_first: bool) -> Result<Option<Quoted<'a>>, Unreadable> {
        if !self.next_item(b'}', is_first)? {
            return Ok(None);
        }
        let name = self.string()?;
        self.skip_space();
        self.expect(b':')?;
        Ok(Some(name))
    }

    /// Whether the array that was gone into has one more item.
    #[inline]
    pub(crate) fn item(&mut self, is_first: bool) -> Result<bool, Unreadable> {
        self.next_item(b']', is_first)
    }

    /// The next value, which must be a string.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<Quoted<'a>, Unreadable> {
        self.skip_space();
        self.expect(b'"')?;
        let start = self.at;
        let has_escapes = self.skip_string()?;
        Ok(Quoted { text: &self.text[start..self.at - 1], has_escapes })
    }

    /// Goes past this text if it is next, letter for letter.
    #[inline(always)]
    pub(crate) fn goes_past(&mut self, expected: &str) -> bool {
        let is_next = self.rest().starts_with(expected.as_bytes());
        if is_next {
            self.at += expected.len();
        }
        is_next
    }

    /// The next value, if it is a whole number of few digits. Otherwise nothing is read.
    #[inline]
    pub(crate) fn natural(&mut self) -> Option<i64> {
        let rest = self.rest();
        let mut number = 0;
        for (count, byte) in rest.iter().take(SHORT_NUMBER + 1).enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                // A zero is followed by no other digit. How a number may go on otherwise is known elsewhere.
                let is_whole = matches!(byte, b',' | b'}');
                let is_plain = count == 1 || (count > 1 && rest[0] != b'0');
                return (is_whole && is_plain).then(|| {
                    self.at += count;
                    number
                });
            }
            // One digit too many overflows, and is not used.
            number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
        }
        None
    }

    /// The text of the next value, whatever it is.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<&'a str, Unreadable> {
        self.skip_space();
        let start = self.at;
        if let Some(is_object) = self.skip_scalar_or_open()? {
            self.skip_nested(is_object)?;
        }
        Ok(&self.text[start..self.at])
    }

    /// Skips the rest of an array or object behind its bracket.
    fn skip_nested(&mut self, is_object: bool) -> Result<(), Unreadable> {
        // One bit for each array or object that is open, the innermost last: whether it is an object.
        let mut objects = u128::from(is_object);
        let (mut depth, mut deepest, mut is_new) = (1_usize, 1_usize, true);
        loop {
            self.skip_space();
            let is_object = objects & 1 == 1;
            let next = self.byte().ok_or(Unreadable)?;
            if next == if is_object { b'}' } else { b']' } {
                self.at += 1;
                depth -= 1;
                if depth == 0 {
                    self.deepest = self.deepest.max(self.depth + deepest);
                    return Ok(());
                }
                objects >>= 1;
                is_new = false;
                continue;
            }
            if !std::mem::take(&mut is_new) {
                self.expect(b',')?;
                self.skip_space();
            }
            if is_object {
                self.expect(b'"')?;
                self.skip_string()?;
                self.skip_space();
                self.expect(b':')?;
                self.skip_space();
            }
            if let Some(is_object) = self.skip_scalar_or_open()? {
                depth += 1;
                deepest = deepest.max(depth);
                if depth > MAX_DEPTH {
                    return Err(Unreadable);
                }
                objects = objects << 1 | u128::from(is_object);
                is_new = true;
            }
        }
    }

    /// Nothing more may come.
    #[inline]
    pub(crate) fn end(&mut self) -> Result<(), Unreadable> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(Unreadable) }
    }

    #[inline]
    fn next_item(&mut self, closing: u8, is_first: bool) -> Result<bool, Unreadable> {
        self.skip_space();
        if self.byte() == Some(closing) {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        if !is_first {
            self.expect(b',')?;
        }
        Ok(true)
    }

    /// Skips a value that holds no others, or the bracket of one that may: whether that is an object.
    #[inline(always)]
    fn skip_scalar_or_open(&mut self) -> Result<Option<bool>, Unreadable> {
        let first = self.byte().ok_or(Unreadable)?;
        self.at += 1;
        match first {
            b'"' => drop(self.skip_string()?),
            b'{' => return Ok(Some(true)),
            b'[' => return Ok(Some(false)),
            b'-' | b'0'..=b'9' => self.skip_number(first)?,
            b't' => self.skip_word("rue")?,
            b'f' => self.skip_word("alse")?,
            b'n' => self.skip_word("ull")?,
            _ => return Err(Unreadable),
        }
        Ok(None)
    }

    /// Skips the rest of a string, and says whether it has escapes.
    #[inline(always)]
    fn skip_string(&mut self) -> Result<bool, Unreadable> {
        self.at = end_of_plain(self.text.as_bytes(), self.at);
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(false);
        }
        self.skip_escapes()
    }

    /// Skips the rest of a string from its first escape on.
    fn skip_escapes(&mut self) -> Result<bool, Unreadable> {
        loop {
            match self.byte().ok_or(Unreadable)? {
                b'"' => {
                    self.at += 1;
                    return Ok(true);
                }
                b'\\' => {
                    self.at += 1;
                    self.skip_escape()?;
                }
                // A control character must be escaped.
                _ => return Err(Unreadable),
            }
            self.at = end_of_plain(self.text.as_bytes(), self.at);
        }
    }

    fn skip_escape(&mut self) -> Result<(), Unreadable> {
        let kind = self.byte().ok_or(Unreadable)?;
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or(Unreadable)?;
                self.at += 4;
                match digits.iter().all(u8::is_ascii_hexdigit) {
                    true => Ok(()),
                    false => Err(Unreadable),
                }
            }
            _ => Err(Unreadable),
        }
    }

    /// Skips the rest of a number.
    fn skip_number(&mut self, first: u8) -> Result<(), Unreadable> {
        let mut digit = first;
        if first == b'-' {
            digit = self.byte().ok_or(Unreadable)?;
            self.at += 1;
        }
        // A zero is all there is of its whole part.
        match digit {
            b'0' => {}
            b'1'..=b'9' => self.skip_digits(),
            _ => return Err(Unreadable),
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.skip_some_digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.skip_some_digits()?;
        }
        Ok(())
    }

    fn skip_some_digits(&mut self) -> Result<(), Unreadable> {
        let start = self.at;
        self.skip_digits();
        if self.at > start { Ok(()) } else { Err(Unreadable) }
    }

    fn skip_digits(&mut self) {
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
    }

    fn skip_word(&mut self, rest: &str) -> Result<(), Unreadable> {
        if !self.text.as_bytes()[self.at..].starts_with(rest.as_bytes()) {
            return Err(Unreadable);
        }
        self.at += rest.len();
        Ok(())
    }

    #[inline]
    fn skip_space(&mut self) {
        // Nearly every text comes without any.
        while self.byte().is_some_and(|it| it <= b' ' && matches!(it, b' ' | b'\n' | b'\r' | b'\t'))
        {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Unreadable> {
        if self.byte() != Some(byte) {
            return Err(Unreadable);
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// What was not read yet.
    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }
}

/// So many digits fit into a number, whichever they are.
const SHORT_NUMBER: usize = 18;

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::*;

    fn is_json(text: &str) -> bool {
        let mut reader = Reader::new(text);
        reader.value().is_ok() && reader.end().is_ok()
    }

    #[test]
    fn a_text_is_json_exactly_if_serde_json_says_so() {
        let texts = [
            "",
            " ",
            "{}",
            "[]",
            " { } ",
            "[ ]",
            "{]",
            "[}",
            "{",
            "[",
            "]",
            "}",
            "1",
            "-1",
            "-",
            "0",
            "00",
            "01",
            "-0",
            "-01",
            "1.",
            "1.5",
            ".5",
            "1e5",
            "1e",
            "1E+5",
            "1e-",
            "1e+05",
            "1.5e3",
            "1x",
            "1 2",
            "true",
            "tru",
            "trues",
            "false",
            "null",
            "nul",
            "\"\"",
            "\"",
            "\"a",
            "\"a\"",
            "\"\\\"",
            "\"\\\\\"",
            "\"\\u00e9\"",
            "\"\\u00g9\"",
            "\"\\u00",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"\\/\\b\\f\\n\\r\\t\"",
            "\"\t\"",
            "\"\u{7f}\u{e9}\u{1f600}\"",
            "[1,2]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{\"a\" : [ 1 , { \"b\" : null } ] , \"c\" : \"\" }",
            "{a:1}",
            "{1:1}",
            "{\"a\":}",
            "{,}",
            "\u{feff}{}",
            "[[[]]]",
            "[[]",
            "[]]",
            "{\"a\":{\"b\":{}}}",
            "+1",
            "Infinity",
            "NaN",
            "1e999",
            "{\"a\":1 \"b\":2}",
        ];
        for text in texts {
            assert_eq!(is_json(text), serde_json::from_str::<IgnoredAny>(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn random_texts_are_json_exactly_if_serde_json_says_so() {
        const PIECES: [&str; 24] = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"",
            "\\",
            "\\u0041",
            "1",
            "0",
            "-",
            ".",
            "e",
            "+",
            "true",
            "null",
            " ",
            "\n",
            "é",
            "plain text that goes on for a while ",
            "\u{1}",
            "\"k\":",
        ];
        let mut state = 7_u64;
        let mut below = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let mut valid = 0;
        for _ in 0..60_000 {
            let text: String = (0..below(9)).map(|_| PIECES[below(PIECES.len())]).collect();
            let expected = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            assert_eq!(is_json(&text), expected, "{text:?}");
            valid += usize::from(expected);
        }
        assert!(valid > 1_000, "only {valid} of them are JSON");
    }

    #[test]
    fn a_short_whole_number_is_read_in_place_and_no_other_value() {
        let read = |text: &str| {
            let mut reader = Reader::new(text);
            (reader.natural(), reader.position())
        };
        let nines = "9".repeat(SHORT_NUMBER);
        assert_eq!(read("0,"), (Some(0), 1));
        assert_eq!(read("1234567890}"), (Some(1_234_567_890), 10));
        assert_eq!(read(&format!("{nines},")), (nines.parse().ok(), SHORT_NUMBER));
        let others = ["", ",", "7", "7 ,", "-7,", "07,", "00}", "7.0,", "7e1,", "\"7\",", "null,"];
        for other in others {
            assert_eq!(read(other), (None, 0), "{other}");
        }
        for digits in [SHORT_NUMBER + 1, SHORT_NUMBER + 2, 40] {
            assert_eq!(read(&format!("{},", "9".repeat(digits))), (None, 0), "{digits} digits");
        }
    }

    #[test]
    fn brackets_may_nest_as_deeply_as_texts_may() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_json(&nested(MAX_DEPTH)));
        assert!(!is_json(&nested(MAX_DEPTH + 1)));
        let objects = format!("{}1{}", "{\"a\":".repeat(MAX_DEPTH), "}".repeat(MAX_DEPTH));
        assert!(is_json(&objects));
        let mixed = format!("{}1{}", "[{\"a\":".repeat(64), "}]".repeat(64));
        assert!(is_json(&mixed));
        assert!(!is_json(&mixed.replace("}]", "]}")));
    }
}
