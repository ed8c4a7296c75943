//! URI templates (RFC 6570): values → URI, and back in linear time.

mod expand;
mod matching;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::percent_encode_reserved;
use matching::Reading;

/// The longest template, in bytes.
pub const MAX_TEMPLATE: usize = 8 << 10;
/// The most variables in one template.
pub const MAX_VARIABLES: usize = 256;
/// The longest URI that is matched, in bytes.
pub const MAX_URI: usize = 64 << 10;

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    source: Box<str>,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Literal text, percent-encoded where needed.
    Literal(String),
    Expression(Operator, Vec<Variable>),
}

/// A variable as a template names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: Box<str>,
    /// `*`: each item of a list is expanded by itself.
    pub explode: bool,
    /// `:n`: only the first `n` characters.
    pub prefix: Option<usize>,
}

/// The operator of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `{a}`
    Simple,
    /// `{+a}`: reserved characters stay.
    Reserved,
    /// `{#a}`
    Fragment,
    /// `{.a}`
    Label,
    /// `{/a}`
    Path,
    /// `{;a}`
    PathParameter,
    /// `{?a}`
    Query,
    /// `{&a}`
    QueryMore,
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One text.
    Text(String),
    /// A list; matching returns one for a variable with `*`.
    List(Vec<String>),
    /// An associative array.
    Pairs(Vec<(String, String)>),
}

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTemplate(&'static str);

impl UriTemplate {
    /// Parses a template.
    pub fn parse(template: &str) -> Result<Self, BadTemplate> {
        if template.len() > MAX_TEMPLATE {
            return Err(BadTemplate("it is longer than 8 KiB"));
        }
        let mut parts = Vec::new();
        let (mut rest, mut variables) = (template, 0);
        while let Some(at) = rest.find(['{', '}']) {
            literal(&rest[..at], &mut parts)?;
            let inside = rest[at..].strip_prefix('{').ok_or(BadTemplate("a `}` has no `{`"))?;
            let (inside, tail) = inside.split_once('}').ok_or(BadTemplate("a `{` has no `}`"))?;
            let (operator, names) = Operator::parse(inside)?;
            let list = names.split(',').map(Variable::parse).collect::<Result<Vec<_>, _>>()?;
            variables += list.len();
            if variables > MAX_VARIABLES {
                return Err(BadTemplate("it has more than 256 variables"));
            }
            parts.push(Part::Expression(operator, list));
            rest = tail;
        }
        literal(rest, &mut parts)?;
        Ok(Self { source: template.into(), parts })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The variables in order; a name may occur twice.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        let lists = self.parts.iter().filter_map(|part| match part {
            Part::Expression(_, list) => Some(list),
            Part::Literal(_) => None,
        });
        lists.flatten()
    }

    /// Expands the template; a variable without a value expands to nothing.
    pub fn expand(&self, values: &BTreeMap<String, Value>) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Expression(operator, list) => operator.expand(list, values, &mut out),
            }
        }
        out
    }

    /// Finds the decoded values that expand to this URI. Query parameters may come in any order. `{a}`
    /// and `{+a}` need at least one character; other expressions may be absent, unless their variable
    /// has a value elsewhere: RFC 6570 §3.2.1 expands it wherever it is named.
    ///
    /// In an ambiguous template, a variable matches as little as possible. A value may contain any
    /// character, `/` and `..` included (as `%2F`): check it before using it as a path.
    pub fn matches(&self, uri: &str) -> Option<BTreeMap<String, Value>> {
        if uri.len() > MAX_URI {
            return None;
        }
        let mut reading = Reading::default();
        let mut rest = uri;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => rest = rest.strip_prefix(&**text)?,
                Part::Expression(operator, list) => {
                    let (inside, tail) = operator.extent(list, rest, &self.parts[at + 1..])?;
                    operator.read(list, inside, &mut reading)?;
                    rest = tail;
                }
            }
        }
        let Reading { found, absent } = reading;
        let is_whole = rest.is_empty() && !absent.iter().any(|it| found.contains_key(*it));
        is_whole.then_some(found)
    }
}

impl FromStr for UriTemplate {
    type Err = BadTemplate;

    fn from_str(template: &str) -> Result<Self, BadTemplate> {
        Self::parse(template)
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl Value {
    /// The text; a list is joined with commas.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List(items) => items.join(","),
            Self::Pairs(pairs) => {
                let joined: Vec<String> =
                    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
                joined.join(",")
            }
        }
    }
}

impl<T: Into<String>> From<T> for Value {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl fmt::Display for BadTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "This is no URI template: {}.", self.0)
    }
}

impl std::error::Error for BadTemplate {}

fn literal(text: &str, parts: &mut Vec<Part>) -> Result<(), BadTemplate> {
    if text.chars().any(char::is_control) {
        return Err(BadTemplate("it has control characters"));
    }
    if !text.is_empty() {
        let mut encoded = String::with_capacity(text.len());
        percent_encode_reserved(text, &mut encoded);
        parts.push(Part::Literal(encoded));
    }
    Ok(())
}

impl Variable {
    fn parse(text: &str) -> Result<Self, BadTemplate> {
        let (name, explode) = match text.strip_suffix('*') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let (name, prefix) = match name.split_once(':') {
            Some((name, digits)) => {
                let length = digits.parse().ok().filter(|length| (1..10_000).contains(length));
                let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
                let bad = explode || length.is_none() || !is_plain;
                (
                    name,
                    if bad {
                        return Err(BadTemplate("a prefix is a number below 10000"));
                    } else {
                        length
                    },
                )
            }
            None => (name, None),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.%-".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(BadTemplate("a variable has a name of letters, digits, `_`, `-` and `.`"));
        }
        Ok(Self { name: name.into(), explode, prefix })
    }
}

impl Operator {
    fn parse(inside: &str) -> Result<(Self, &str), BadTemplate> {
        let operator = match inside.bytes().next() {
            Some(b'+') => Self::Reserved,
            Some(b'#') => Self::Fragment,
            Some(b'.') => Self::Label,
            Some(b'/') => Self::Path,
            Some(b';') => Self::PathParameter,
            Some(b'?') => Self::Query,
            Some(b'&') => Self::QueryMore,
            Some(b'=' | b',' | b'!' | b'@' | b'|') => {
                return Err(BadTemplate(
                    "the operators `=`, `,`, `!`, `@` and `|` have no meaning yet",
                ));
            }
            _ => return Ok((Self::Simple, inside)),
        };
        Ok((operator, &inside[1..]))
    }

    /// The text before the first value.
    fn lead(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::PathParameter => ";",
            Self::Query => "?",
            Self::QueryMore => "&",
        }
    }

    /// The text between values.
    fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Query => "&",
            _ => self.lead(),
        }
    }

    fn is_named(self) -> bool {
        matches!(self, Self::PathParameter | Self::Query | Self::QueryMore)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_that_make_no_sense_are_refused() {
        let many = "{a}".repeat(MAX_VARIABLES + 1);
        let long = "x".repeat(MAX_TEMPLATE + 1);
        for bad in [
            "{",
            "}",
            "{a",
            "a}",
            "{}",
            "{a b}",
            "{=a}",
            "{a:0}",
            "{a:10000}",
            "{a:+1}",
            "{a:1*}",
            "{{a}}",
            "{a,}",
            "\n",
            &many,
            &long,
        ] {
            assert!(UriTemplate::parse(bad).is_err(), "{bad:.20}");
        }
        let names: Vec<_> =
            UriTemplate::parse("{+a}/{b*,c:3}").unwrap().variables().cloned().collect();
        assert_eq!(names.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(names[1].explode && names[2].prefix == Some(3));
    }
}
