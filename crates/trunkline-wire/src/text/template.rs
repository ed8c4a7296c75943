//! URI templates (RFC 6570): values → URI, and back in linear time.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{is_unreserved, percent_decode, percent_encode, percent_encode_reserved};

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
    /// Text as it stands in a URI, that is with `%XX` where needed.
    Literal(String),
    Expression(Operator, Vec<Variable>),
}

/// A variable as a template names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: Box<str>,
    /// `*`: each item of a list stands for itself.
    pub explode: bool,
    /// `:n`: only so many characters are used.
    pub prefix: Option<usize>,
}

/// How an expression writes its variables.
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

/// A value to put in, or one that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One text.
    Text(String),
    /// A list; what matching finds for a variable with `*`.
    List(Vec<String>),
    /// Names with values.
    Pairs(Vec<(String, String)>),
}

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTemplate(&'static str);

impl UriTemplate {
    /// Reads a template.
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

    /// The variables in order; a name may come twice.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        let lists = self.parts.iter().filter_map(|part| match part {
            Part::Expression(_, list) => Some(list),
            Part::Literal(_) => None,
        });
        lists.flatten()
    }

    /// Fills the values in; a variable without a value leaves no trace.
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

    /// Finds the values that make the template this URI, decoded. Query parameters may come in
    /// any order. `{a}`, `{+a}` need at least one character; the other expressions may be absent.
    ///
    /// Where a template is ambiguous a variable takes as little as lets the text after it match.
    /// A value may hold any character, `/` and `..` included (as `%2F`): check it before it
    /// becomes a path.
    pub fn matches(&self, uri: &str) -> Option<BTreeMap<String, Value>> {
        if uri.len() > MAX_URI {
            return None;
        }
        let mut found = BTreeMap::new();
        let mut rest = uri;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => rest = rest.strip_prefix(&**text)?,
                Part::Expression(operator, list) => {
                    let (inside, tail) = operator.extent(list, rest, &self.parts[at + 1..])?;
                    operator.read(list, inside, &mut found)?;
                    rest = tail;
                }
            }
        }
        rest.is_empty().then_some(found)
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

    /// What stands before the first value.
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

    /// What stands between values.
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

    fn encode(self, text: &str, out: &mut String) {
        match self {
            Self::Reserved | Self::Fragment => percent_encode_reserved(text, out),
            _ => percent_encode(text, out),
        }
    }

    fn expand(self, list: &[Variable], values: &BTreeMap<String, Value>, out: &mut String) {
        let mut between = self.lead();
        let mut begin = |out: &mut String| {
            out.push_str(between);
            between = self.separator();
        };
        for variable in list {
            match values.get(&*variable.name) {
                None => {}
                Some(Value::Text(text)) => {
                    begin(out);
                    let end = variable.prefix.and_then(|count| text.char_indices().nth(count));
                    self.write_named(variable, &text[..end.map_or(text.len(), |(at, _)| at)], out);
                }
                Some(Value::List(items)) if variable.explode => {
                    for item in items {
                        begin(out);
                        self.write_named(variable, item, out);
                    }
                }
                Some(Value::Pairs(pairs)) if variable.explode => {
                    for (name, value) in pairs {
                        begin(out);
                        self.encode(name, out);
                        out.push('=');
                        self.encode(value, out);
                    }
                }
                Some(Value::List(items)) if !items.is_empty() => {
                    begin(out);
                    self.write_joined(variable, items.iter(), out);
                }
                Some(Value::Pairs(pairs)) if !pairs.is_empty() => {
                    begin(out);
                    self.write_joined(
                        variable,
                        pairs.iter().flat_map(|(name, value)| [name, value]),
                        out,
                    );
                }
                Some(_) => {}
            }
        }
    }

    fn write_named(self, variable: &Variable, text: &str, out: &mut String) {
        if self.is_named() {
            out.push_str(&variable.name);
            if !text.is_empty() || self != Self::PathParameter {
                out.push('=');
            }
        }
        self.encode(text, out);
    }

    fn write_joined<'a>(
        self,
        variable: &Variable,
        items: impl Iterator<Item = &'a String>,
        out: &mut String,
    ) {
        self.write_named(variable, "", out);
        if self == Self::PathParameter {
            out.push('=');
        }
        for (at, item) in items.enumerate() {
            if at > 0 {
                out.push(',');
            }
            self.encode(item, out);
        }
    }

    /// How much of `rest` belongs to this expression: that much, and what follows it.
    fn extent<'a>(
        self,
        list: &[Variable],
        rest: &'a str,
        after: &[Part],
    ) -> Option<(&'a str, &'a str)> {
        let least = match rest.strip_prefix(self.lead()) {
            Some(_) if self.lead().is_empty() => rest.chars().next()?.len_utf8(),
            Some(_) => self.lead().len(),
            None => return Some(("", rest)),
        };
        let end = match after {
            [] => rest.len(),
            [Part::Literal(text)] => {
                rest.len().checked_sub(text.len()).filter(|end| *end >= least)?
            }
            [Part::Literal(text), ..] => least + rest.get(least..)?.find(&**text)?,
            [Part::Expression(next, _), ..] => {
                let stop = next.lead().chars().next();
                let end = stop.and_then(|stop| rest[least..].find(stop));
                // `{/a,b}{/c}`: the first takes its own segments and leaves the rest.
                match end {
                    Some(_) if *next == self => self.own_segments(list, rest),
                    Some(end) => least + end,
                    None => rest.len(),
                }
            }
        };
        (rest.is_char_boundary(end)).then(|| rest.split_at(end))
    }

    /// The end of as many segments as there are variables.
    fn own_segments(self, list: &[Variable], rest: &str) -> usize {
        let mut ends = rest.match_indices(self.separator()).map(|(at, _)| at);
        ends.nth(list.len()).unwrap_or(rest.len())
    }

    /// Whether a character may stand in this expression's text.
    fn allows(self, byte: u8) -> bool {
        match self {
            Self::Reserved | Self::Fragment => byte > b' ',
            Self::Path => byte > b' ' && !b"?#".contains(&byte),
            Self::Query | Self::QueryMore => byte > b' ' && byte != b'#',
            Self::Simple | Self::Label | Self::PathParameter => {
                is_unreserved(byte) || (byte > b' ' && !b"/?#".contains(&byte))
            }
        }
    }

    /// Reads the values out of the expression's text.
    fn read(
        self,
        list: &[Variable],
        text: &str,
        found: &mut BTreeMap<String, Value>,
    ) -> Option<()> {
        if text.is_empty() {
            return Some(());
        }
        let inside = text.strip_prefix(self.lead())?;
        if !inside.bytes().all(|byte| self.allows(byte)) {
            return None;
        }
        if self.is_named() {
            return self.read_named(list, inside, found);
        }
        let [first @ .., last] = list else { return None };
        let mut rest = Some(inside);
        for variable in first {
            let Some(text) = rest else { return Some(()) };
            let (item, tail) = match text.split_once(self.separator()) {
                Some((item, tail)) => (item, Some(tail)),
                None => (text, None),
            };
            put(found, variable, percent_decode(item)?)?;
            rest = tail;
        }
        let Some(text) = rest else { return Some(()) };
        if last.explode {
            return text
                .split(self.separator())
                .try_for_each(|item| put(found, last, percent_decode(item)?));
        }
        // A comma may be part of a lone value; a separator of segments may not.
        let splits = matches!(self, Self::Path) || (self == Self::Simple && !first.is_empty());
        if splits && text.contains(self.separator()) {
            return None;
        }
        put(found, last, percent_decode(text)?)
    }

    fn read_named(
        self,
        list: &[Variable],
        inside: &str,
        found: &mut BTreeMap<String, Value>,
    ) -> Option<()> {
        let by_name: BTreeMap<&str, &Variable> = list.iter().map(|it| (&*it.name, it)).collect();
        for pair in inside.split(self.separator()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            put(found, by_name.get(name)?, percent_decode(value)?)?;
        }
        Some(())
    }
}

/// Notes a value; `None` if the variable has another one already.
fn put(found: &mut BTreeMap<String, Value>, variable: &Variable, text: String) -> Option<()> {
    match found.get_mut(&*variable.name) {
        None if variable.explode => {
            found.insert(variable.name.to_string(), Value::List(vec![text]));
        }
        None => {
            found.insert(variable.name.to_string(), Value::Text(text));
        }
        Some(Value::List(items)) if variable.explode => items.push(text),
        Some(Value::Text(old)) if *old == text => {}
        Some(_) => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> BTreeMap<String, Value> {
        let list = ["red", "green", "blue"].map(String::from).to_vec();
        let pairs = [("semi", ";"), ("dot", "."), ("comma", ",")]
            .map(|(a, b)| (a.into(), b.into()))
            .to_vec();
        let text = [
            ("var", "value"),
            ("hello", "Hello World!"),
            ("path", "/foo/bar"),
            ("empty", ""),
            ("x", "1024"),
            ("y", "768"),
            ("half", "50%"),
            ("who", "fred"),
            ("base", "http://example.com/home/"),
        ];
        let mut values: BTreeMap<String, Value> =
            text.map(|(name, text)| (name.to_owned(), text.into())).into();
        values.insert("list".into(), Value::List(list));
        values.insert("keys".into(), Value::Pairs(pairs));
        values.insert("none".into(), Value::List(vec![]));
        values
    }

    #[test]
    fn expansions_are_those_of_the_rfc() {
        let cases = [
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,y}", "1024,768"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("?{x,empty}", "?1024,"),
            ("?{x,undef}", "?1024"),
            ("?{undef,y}", "?768"),
            ("{var:3}", "val"),
            ("{var:30}", "value"),
            ("{list}", "red,green,blue"),
            ("{list*}", "red,green,blue"),
            ("{keys}", "semi,%3B,dot,.,comma,%2C"),
            ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
            ("{+var}", "value"),
            ("{+hello}", "Hello%20World!"),
            ("{+half}", "50%25"),
            ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
            ("{+base}index", "http://example.com/home/index"),
            ("up{+path}{var}/here", "up/foo/barvalue/here"),
            ("{+x,hello,y}", "1024,Hello%20World!,768"),
            ("{+path:6}/here", "/foo/b/here"),
            ("{+keys}", "semi,;,dot,.,comma,,"),
            ("{#var}", "#value"),
            ("{#hello}", "#Hello%20World!"),
            ("foo{#empty}", "foo#"),
            ("foo{#undef}", "foo"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
            ("{#keys*}", "#semi=;,dot=.,comma=,"),
            ("{.who,who}", ".fred.fred"),
            ("X{.empty}", "X."),
            ("X{.undef}", "X"),
            ("X{.list}", "X.red,green,blue"),
            ("X{.list*}", "X.red.green.blue"),
            ("X{.none}", "X"),
            ("X{.none*}", "X"),
            ("{/var,x}/here", "/value/1024/here"),
            ("{/var,empty}", "/value/"),
            ("{/var:1,var}", "/v/value"),
            ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
            ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{;hello:5}", ";hello=Hello"),
            ("{;list}", ";list=red,green,blue"),
            ("{;list*}", ";list=red;list=green;list=blue"),
            ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?x,y,undef}", "?x=1024&y=768"),
            ("{?var:3}", "?var=val"),
            ("{?list}", "?list=red,green,blue"),
            ("{?list*}", "?list=red&list=green&list=blue"),
            ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
            ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{&x,y,empty}", "&x=1024&y=768&empty="),
            ("é {x}", "%C3%A9%201024"),
        ];
        for (template, expected) in cases {
            assert_eq!(
                UriTemplate::parse(template).unwrap().expand(&values()),
                expected,
                "{template}"
            );
        }
    }

    #[track_caller]
    fn found(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let found = UriTemplate::parse(template).unwrap().matches(uri)?;
        Some(found.into_iter().map(|(name, value)| (name, value.to_text())).collect())
    }

    #[track_caller]
    fn check(template: &str, uri: &str, expected: &[(&str, &str)]) {
        let expected =
            expected.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        assert_eq!(found(template, uri), Some(expected), "{template} {uri}");
    }

    #[test]
    fn a_uri_gives_its_variables_back() {
        check("file:///{name}.txt", "file:///a.b.txt", &[("name", "a.b")]);
        check("file:///{+path}", "file:///a/b%20c", &[("path", "a/b c")]);
        check("db://{table}/rows/{id}", "db://users/rows/5", &[("id", "5"), ("table", "users")]);
        check("{a}-{b}-x", "1-2-3-x", &[("a", "1"), ("b", "2-3")]);
        check("x://{a,b}", "x://1,2", &[("a", "1"), ("b", "2")]);
        check("x://{a,b}", "x://1", &[("a", "1")]);
        check(
            "x://h{/p*}{?q,n}",
            "x://h/a/b?n=2&q=%C3%A9",
            &[("n", "2"), ("p", "a,b"), ("q", "é")],
        );
        check("x://h{/p*}{?q,n}", "x://h", &[]);
        check("x://h{/a}{/b}", "x://h/1/2", &[("a", "1"), ("b", "2")]);
        check("x://h{+p}{#f}", "x://h/y#top", &[("f", "top"), ("p", "/y")]);
        check("x{.a,b}{;k}", "x.tar.gz;k=v", &[("a", "tar"), ("b", "gz"), ("k", "v")]);
        check("x?a=1{&b}", "x?a=1&b=2", &[("b", "2")]);
        check("é://{a}", "%C3%A9://1", &[("a", "1")]);
        check("plain://x", "plain://x", &[]);
        let exploded = UriTemplate::parse("{?t*}").unwrap().matches("?t=a&t=b").unwrap();
        assert_eq!(exploded["t"], Value::List(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn what_does_not_fit_is_no_match() {
        let cases = [
            ("file:///{name}", "file:///"),
            ("file:///{name}", "file:///a/b"),
            ("file:///{name}", "file://a"),
            ("x://{a}", "x://%zz"),
            ("x://{a}", "x://%ff"),
            ("x://{a}", "x://a b"),
            ("x{?a}", "x?b=1"),
            ("x{?a}", "x?a=1&a=2"),
            ("x{/a}", "x/1/2"),
            ("x{/a}y", "x/1"),
            ("{a}/{a}", "1/2"),
            ("plain", "plain2"),
            ("x://{a}.txt", "x://.txt"),
            ("x://{a}?y", "x://1#y"),
            ("{a}é", "é"),
        ];
        for (template, uri) in cases {
            assert_eq!(found(template, uri), None, "{template} {uri}");
        }
        assert_eq!(found("{+a}", &"x".repeat(MAX_URI + 1)), None);
    }

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

    #[test]
    fn hostile_uris_cost_linear_time() {
        let template = UriTemplate::parse(&"{a}aab".repeat(200))
            .unwrap_or_else(|_| panic!("it is short enough"));
        let commas = ",".repeat(MAX_URI);
        assert_eq!(template.matches(&"a".repeat(MAX_URI)), None);
        assert_eq!(UriTemplate::parse("{/id*}").unwrap().matches(&commas), None);
        let slashes = UriTemplate::parse("{/id*}").unwrap().matches(&"/".repeat(MAX_URI)).unwrap();
        assert!(matches!(&slashes["id"], Value::List(items) if items.len() == MAX_URI));
    }
}
