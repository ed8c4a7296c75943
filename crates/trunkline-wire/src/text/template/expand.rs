//! Values → the text of an expression.

use std::collections::BTreeMap;

use super::super::{percent_encode, percent_encode_reserved};
use super::{Operator, Value, Variable};

impl Operator {
    pub(super) fn expand(
        self,
        list: &[Variable],
        values: &BTreeMap<String, Value>,
        out: &mut String,
    ) {
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

    fn encode(self, text: &str, out: &mut String) {
        match self {
            Self::Reserved | Self::Fragment => percent_encode_reserved(text, out),
            _ => percent_encode(text, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::UriTemplate;
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
}
