//! The text of an expression → values, without backtracking: a hostile URI costs linear time.

use std::collections::BTreeMap;

use super::super::{is_unreserved, percent_decode};
use super::{Operator, Part, Value, Variable};

/// What a URI says of a template's variables.
#[derive(Default)]
pub(super) struct Reading<'a> {
    pub(super) found: BTreeMap<String, Value>,
    /// The variables of expressions that are left out.
    pub(super) absent: Vec<&'a str>,
}

impl Operator {
    /// How much of `rest` belongs to this expression: that text, and the rest.
    pub(super) fn extent<'a>(
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
            [] => Some(rest.len()),
            [Part::Literal(text)] => rest.len().checked_sub(text.len()),
            [Part::Literal(text), ..] => rest[least..].find(&**text).map(|at| least + at),
            [Part::Expression(next, _), ..] => {
                let stop = next.lead().chars().next();
                Some(match stop.and_then(|stop| rest[least..].find(stop)) {
                    // `{/a,b}{/c}`: the first takes its own segments and leaves the rest.
                    Some(_) if *next == self => self.own_segments(list, rest),
                    Some(at) => least + at,
                    None => rest.len(),
                })
            }
        };
        match end.filter(|end| *end >= least && rest.is_char_boundary(*end)) {
            Some(end) => Some(rest.split_at(end)),
            // `x{/a}/y` and `x/y`: what looked like the start of `a` is the literal after it.
            None => (!self.lead().is_empty()).then_some(("", rest)),
        }
    }

    /// The end of as many segments as there are variables.
    fn own_segments(self, list: &[Variable], rest: &str) -> usize {
        let mut ends = rest.match_indices(self.separator()).map(|(at, _)| at);
        ends.nth(list.len()).unwrap_or(rest.len())
    }

    /// Whether a byte may occur in this expression's text.
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

    /// Reads the values from the expression's text, and records the variables without one.
    pub(super) fn read<'a>(
        self,
        list: &'a [Variable],
        text: &str,
        reading: &mut Reading<'a>,
    ) -> Option<()> {
        if text.is_empty() {
            reading.absent.extend(list.iter().map(|it| &*it.name));
            return Some(());
        }
        let inside = text.strip_prefix(self.lead())?;
        if !inside.bytes().all(|byte| self.allows(byte)) {
            return None;
        }
        if self.is_named() {
            return self.read_named(list, inside, reading);
        }
        let [first @ .., last] = list else { return None };
        let mut rest = Some(inside);
        for variable in first {
            let Some(text) = rest else {
                reading.absent.push(&variable.name);
                continue;
            };
            let (item, tail) = match text.split_once(self.separator()) {
                Some((item, tail)) => (item, Some(tail)),
                None => (text, None),
            };
            reading.put(variable, vec![percent_decode(item)?])?;
            rest = tail;
        }
        let Some(text) = rest else {
            reading.absent.push(&last.name);
            return Some(());
        };
        if last.explode {
            let items = text.split(self.separator()).map(percent_decode);
            return reading.put(last, items.collect::<Option<_>>()?);
        }
        // A comma may be part of a single value; a separator of segments may not.
        let splits = matches!(self, Self::Path) || (self == Self::Simple && !first.is_empty());
        if splits && text.contains(self.separator()) {
            return None;
        }
        reading.put(last, vec![percent_decode(text)?])
    }

    fn read_named<'a>(
        self,
        list: &'a [Variable],
        inside: &str,
        reading: &mut Reading<'a>,
    ) -> Option<()> {
        let mut by_name: BTreeMap<&str, Vec<String>> =
            list.iter().map(|it| (&*it.name, Vec::new())).collect();
        for pair in inside.split(self.separator()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            by_name.get_mut(name)?.push(percent_decode(value)?);
        }
        for variable in list {
            match by_name.remove(&*variable.name) {
                Some(items) if items.is_empty() => reading.absent.push(&variable.name),
                Some(items) => reading.put(variable, items)?,
                // `{?a*,a}`: the values cannot be attributed.
                None if variable.explode => return None,
                None => {}
            }
        }
        Some(())
    }
}

impl Reading<'_> {
    /// Records the value of a variable; `None` if it already has another.
    fn put(&mut self, variable: &Variable, mut items: Vec<String>) -> Option<()> {
        if !variable.explode {
            items.dedup();
        }
        match self.found.get(&*variable.name) {
            None if variable.explode => {
                self.found.insert(variable.name.to_string(), Value::List(items));
            }
            None => {
                let [text] = <[String; 1]>::try_from(items).ok()?;
                self.found.insert(variable.name.to_string(), Value::Text(text));
            }
            Some(Value::List(old)) if variable.explode && *old == items => {}
            Some(Value::Text(old)) if *old == *items.first()? && items.len() == 1 => {}
            Some(_) => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_URI, UriTemplate};
    use super::*;

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
        check("x{/a}/y", "x/y", &[]);
        check("x{/a}/y", "x/y/y", &[("a", "y")]);
        check("x{/a}/y{/b}", "x/y", &[]);
        check("x{.a,b}{/a}", "x.tar.gz/tar", &[("a", "tar"), ("b", "gz")]);
        check("x{?a}{&a}", "x", &[]);
        check("x{?a}", "x?a=1&a=1", &[("a", "1")]);
        check("x{/p*}{.p*}", "x/1/2.1.2", &[("p", "1,2")]);
        let exploded = UriTemplate::parse("{?t*}").unwrap().matches("?t=a&t=b").unwrap();
        assert_eq!(exploded["t"], Value::List(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn other_uris_do_not_match() {
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
            // A value appears wherever its variable is named.
            ("x{.a,b}{/a}", "x.tar.gz:k=v"),
            ("x{.a,b}{/c,a}", "x.tar.gz/1"),
            ("x/{a}{?a,b}", "x/1"),
            ("x/{a}{?a,b}", "x/1?b=2"),
            ("{a,b}/{b}", "1/2"),
            ("x{/p*}{/p*}", "x/1/2"),
            ("x{?a*,a*}", "x?a=1"),
        ];
        for (template, uri) in cases {
            assert_eq!(found(template, uri), None, "{template} {uri}");
        }
        assert_eq!(found("{+a}", &"x".repeat(MAX_URI + 1)), None);
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
