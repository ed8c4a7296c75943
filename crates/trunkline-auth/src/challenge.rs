//! `WWW-Authenticate` ⇄ challenges (RFC 9110 §11.6.1).
//!
//! Parsing tolerates what servers in the field get wrong: bare URLs, missing commas, junk between
//! challenges. Writing quotes every value.
//!
//! ```
//! use trunkline_auth::challenge::{self, Challenge};
//!
//! let written = Challenge::new("Bearer").with("scope", "files:read files:write").to_string();
//! assert_eq!(written, r#"Bearer scope="files:read files:write""#);
//! let read = challenge::parse(&[written]);
//! assert_eq!(read[0].param("scope"), Some("files:read files:write"));
//! ```

use std::fmt;

/// An authentication scheme that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// Such as `Bearer`, as written.
    pub scheme: String,
    /// The token68 that some schemes have instead of parameters.
    pub token68: Option<String>,
    /// Names in lower case and unquoted values, in order.
    pub params: Vec<(String, String)>,
}

impl Challenge {
    /// A challenge without parameters.
    pub fn new(scheme: impl Into<String>) -> Self {
        Self { scheme: scheme.into(), token68: None, params: Vec::new() }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.params.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// The first parameter of this name, ignoring case.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// Whether this is its scheme, ignoring case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        if let Some(token68) = &self.token68 {
            return write!(f, " {token68}");
        }
        for (place, (name, value)) in self.params.iter().enumerate() {
            let before = if place == 0 { " " } else { ", " };
            write!(f, "{before}{name}=\"")?;
            for char in value.chars() {
                match char {
                    '"' | '\\' => write!(f, "\\{char}")?,
                    ' '..='~' => write!(f, "{char}")?,
                    // A header cannot contain it, and a line break would begin another header.
                    _ => f.write_str("?")?,
                }
            }
            f.write_str("\"")?;
        }
        Ok(())
    }
}

/// Every challenge in these values of `WWW-Authenticate`, in order. Anything else is skipped.
///
/// ```
/// use trunkline_auth::challenge::parse;
///
/// let lines = ["Basic realm=files, Bearer".to_owned(), "DPoP algs=\"ES256\"".to_owned()];
/// let schemes: Vec<_> = parse(&lines).into_iter().map(|it| it.scheme).collect();
/// assert_eq!(schemes, ["Basic", "Bearer", "DPoP"]);
/// ```
pub fn parse(lines: &[String]) -> Vec<Challenge> {
    lines.iter().flat_map(|line| parse_line(line)).collect()
}

fn parse_line(line: &str) -> Vec<Challenge> {
    let mut rest = Rest(line);
    let mut read: Vec<Challenge> = Vec::new();
    // Each iteration consumes at least a character, so this ends.
    for _ in 0..line.len() {
        rest.take_while(|it| it == ',' || is_space(it));
        let word = rest.take_while(is_token);
        if word.is_empty() {
            rest.skip_junk();
            continue;
        }
        if let Some(value) = rest.param_value() {
            // A parameter before any scheme is dropped.
            if let (Some(challenge), Some(value)) = (read.last_mut(), value) {
                challenge.params.push((word.to_ascii_lowercase(), value));
            }
        } else {
            let token68 = rest.token68();
            read.push(Challenge { token68, ..Challenge::new(word) });
        }
    }
    read
}

/// The rest of a line.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|it| !is_part(it)).unwrap_or(self.0.len());
        let (part, rest) = self.0.split_at(end);
        self.0 = rest;
        part
    }

    /// After the name of a parameter: its value, or `Some(None)` if its quote never ends. `None` if
    /// it was not a parameter.
    fn param_value(&mut self) -> Option<Option<String>> {
        let value = self.0.trim_start_matches(is_space).strip_prefix('=')?;
        self.0 = value.trim_start_matches(is_space);
        match self.0.strip_prefix('"') {
            Some(quoted) => {
                self.0 = quoted;
                Some(self.quoted())
            }
            // The grammar requires a token; unquoted URLs occur in the field.
            None => Some(Some(self.take_while(|it| it != ',' && !is_space(it)).to_owned())),
        }
    }

    /// The inside of a quoted string, up to and including its closing quote.
    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut chars = self.0.chars();
        while let Some(char) = chars.next() {
            match char {
                '"' => {
                    self.0 = chars.as_str();
                    return Some(value);
                }
                '\\' => value.extend(chars.next()),
                _ => value.push(char),
            }
        }
        self.0 = "";
        None
    }

    /// After a scheme: a token68, which extends to the next comma.
    fn token68(&mut self) -> Option<String> {
        let text = self.0.trim_start_matches(is_space);
        let letters = text.find(|it| !is_token68(it)).unwrap_or(text.len());
        let end = text[letters..].find(|it| it != '=').map_or(text.len(), |more| letters + more);
        let after = text[end..].trim_start_matches(is_space);
        if letters == 0 || !(after.is_empty() || after.starts_with(',')) {
            return None;
        }
        self.0 = after;
        Some(text[..end].to_owned())
    }

    /// Skips to the next comma, over quoted strings.
    fn skip_junk(&mut self) {
        while let Some(char) = self.0.chars().next() {
            if char == ',' {
                return;
            }
            self.0 = &self.0[char.len_utf8()..];
            if char == '"' {
                self.quoted();
            }
        }
    }
}

fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t')
}

fn is_token(char: char) -> bool {
    char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char)
}

fn is_token68(char: char) -> bool {
    char.is_ascii_alphanumeric() || "-._~+/".contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scheme, its text, and parameters, written so that a person can compare.
    fn shown(read: &[Challenge]) -> String {
        let one = |it: &Challenge| {
            let mut out = it.scheme.clone();
            if let Some(text) = &it.token68 {
                out.push_str(&format!(" <{text}>"));
            }
            for (name, value) in &it.params {
                out.push_str(&format!(" {name}[{value}]"));
            }
            out
        };
        read.iter().map(one).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn lines_are_read() {
        for (line, expected) in [
            ("", ""),
            (" , ,\t,", ""),
            ("Bearer", "Bearer"),
            ("Bearer ", "Bearer"),
            ("Bearer,", "Bearer"),
            ("Bearer, Basic", "Bearer | Basic"),
            ("Bearer realm=\"a\"", "Bearer realm[a]"),
            ("Bearer realm=a", "Bearer realm[a]"),
            ("Bearer Realm=A", "Bearer realm[A]"),
            ("Bearer realm = \"a\" , error\t=\tb", "Bearer realm[a] error[b]"),
            ("Bearer realm=\"a\", error=\"b\"", "Bearer realm[a] error[b]"),
            // A missing comma.
            ("Bearer realm=\"a\" error=\"b\"", "Bearer realm[a] error[b]"),
            ("Bearer realm=a error=b", "Bearer realm[a] error[b]"),
            // Quoted commas, equals signs, quotes and backslashes.
            ("Bearer a=\"x, Basic y=z\", b=c", "Bearer a[x, Basic y=z] b[c]"),
            (r#"Bearer a="x\"y\\z\q""#, r#"Bearer a[x"y\zq]"#),
            ("Bearer a=\"\", b=c", "Bearer a[] b[c]"),
            // A URL without quotes.
            (
                "Bearer resource_metadata=https://a.example/x?y=z, scope=b",
                "Bearer resource_metadata[https://a.example/x?y=z] scope[b]",
            ),
            // Several challenges in a line.
            (
                "Basic realm=\"a\", Bearer scope=\"b c\", DPoP algs=\"ES256\"",
                "Basic realm[a] | Bearer scope[b c] | DPoP algs[ES256]",
            ),
            ("Bearer scope=a, Basic", "Bearer scope[a] | Basic"),
            ("Bearer scope=\"a\" Basic", "Bearer scope[a] | Basic"),
            // One text in place of parameters.
            ("Negotiate YWJj/+-._~==", "Negotiate <YWJj/+-._~==>"),
            ("Negotiate YWJj= , Bearer a=b", "Negotiate <YWJj=> | Bearer a[b]"),
            ("Negotiate\tYWJj\t,Bearer", "Negotiate <YWJj> | Bearer"),
            ("Negotiate YWJj==x", "Negotiate ywjj[=x]"),
            ("Negotiate =", ""),
            ("Bearer a=", "Bearer <a=>"),
            // What belongs to nobody, and what is no word.
            ("realm=\"a\", Bearer b=c", "Bearer b[c]"),
            ("\"Basic, x\" y, Bearer a=b", "Bearer a[b]"),
            ("(), Bearer", "Bearer"),
            ("(Basic), Bearer", "Bearer"),
            ("é, Bearer a=\"é\"", "Bearer a[é]"),
            ("(\"never ends, Bearer", ""),
            ("Bearer a=b, c=\"never ends, d=e", "Bearer a[b]"),
            ("Bearer a=b, c=\"never ends \\", "Bearer a[b]"),
            ("Bearer a=b (c), d=e", "Bearer a[b] d[e]"),
            // Every character a word may have.
            ("!#$%&'*+-.^_`|~a0=b, X Aa0!#$%&'*+-.^_`|~=1", "X aa0!#$%&'*+-.^_`|~[1]"),
        ] {
            assert_eq!(shown(&parse(&[line.to_owned()])), expected, "{line}");
        }
    }

    #[test]
    fn a_parameter_never_crosses_a_line() {
        let lines = ["Basic realm=a".to_owned(), "realm=b, Bearer".to_owned()];
        assert_eq!(shown(&parse(&lines)), "Basic realm[a] | Bearer");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let challenge = Challenge::new("Bearer")
            .with("Error", "invalid_token")
            .with("error_description", "a \"b\" \\c, d=e")
            .with("scope", "");
        let written =
            r#"Bearer error="invalid_token", error_description="a \"b\" \\c, d=e", scope="""#;
        assert_eq!(challenge.to_string(), written);
        assert_eq!(parse(&[written.to_owned()]), [challenge]);
        let negotiate = Challenge { token68: Some("YQ==".into()), ..Challenge::new("Negotiate") };
        assert_eq!(negotiate.to_string(), "Negotiate YQ==");
        assert_eq!(parse(&[negotiate.to_string()]), [negotiate]);
    }

    #[test]
    fn no_value_breaks_out_of_its_header() {
        let challenge = Challenge::new("Bearer").with("a", "x\r\nSet-Cookie: b\u{7f}\u{e9} ~");
        assert_eq!(challenge.to_string(), "Bearer a=\"x??Set-Cookie: b?? ~\"");
    }

    #[test]
    fn names_are_compared_in_any_case_and_the_first_counts() {
        let challenge = Challenge::new("bEARER").with("a", "1").with("A", "2");
        assert_eq!(challenge.param("A"), Some("1"));
        assert_eq!(challenge.param("b"), None);
        assert!(challenge.is("Bearer") && !challenge.is("Basic"));
        assert_eq!(
            Challenge { params: vec![("X".into(), "1".into())], ..challenge }.param("x"),
            Some("1")
        );
    }
}
