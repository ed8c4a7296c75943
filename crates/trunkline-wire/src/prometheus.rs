//! Numbers ⇄ the text in which Prometheus reads them.

use std::fmt::{Display, Write};

/// A text of metric families and their samples.
///
/// ```
/// let mut text = trunkline_wire::prometheus::Exposition::default();
/// text.family("calls_total", "counter", "Calls so far.");
/// text.sample("calls_total", &[("tool", "a \"b\"")], 3);
/// let lines: Vec<&str> = text.0.lines().collect();
/// assert_eq!(lines[..2], ["# HELP calls_total Calls so far.", "# TYPE calls_total counter"]);
/// assert_eq!(lines[2], r#"calls_total{tool="a \"b\""} 3"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposition(pub String);

impl Exposition {
    /// Says what the samples that come next are about.
    pub fn family(&mut self, name: impl Display, kind: &str, help: &str) {
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Writes a number.
    pub fn sample(&mut self, name: impl Display, labels: &[(&str, &str)], value: impl Display) {
        self.write(format_args!("{name}"));
        let mut opening = '{';
        for (label, value) in labels {
            self.write(format_args!("{opening}{label}=\""));
            for letter in value.chars() {
                match letter {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    letter => self.0.push(letter),
                }
            }
            self.0.push('"');
            opening = ',';
        }
        if opening == ',' {
            self.0.push('}');
        }
        self.write(format_args!(" {value}\n"));
    }

    /// Writes a histogram: how many values are at most as large as each bound, how many there are, and their sum.
    pub fn histogram(
        &mut self,
        name: impl Display,
        labels: &[(&str, &str)],
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        let bounds = buckets.into_iter().map(|(bound, count)| (bound.to_string(), count));
        for (bound, count) in bounds.chain([("+Inf".to_owned(), count)]) {
            let labels = [labels, &[("le", &*bound)]].concat();
            self.sample(format_args!("{name}_bucket"), &labels, count);
        }
        self.sample(format_args!("{name}_sum"), labels, sum);
        self.sample(format_args!("{name}_count"), labels, count);
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("writing to a string cannot fail");
    }
}

/// A number as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// What it is the number of.
    pub name: &'a str,
    labels: Vec<(&'a str, String)>,
    /// The number.
    pub value: f64,
}

impl<'a> Sample<'a> {
    /// Reads a line, unless it is a comment or no sample.
    fn read(line: &'a str) -> Option<Self> {
        let end = line.find(['{', ' ']).filter(|_| !line.starts_with('#'))?;
        let (name, mut rest) = line.split_at(end);
        let mut labels = Vec::new();
        if let Some(mut inside) = rest.strip_prefix('{') {
            while !inside.starts_with('}') {
                let (label, after) = inside.split_once("=\"")?;
                let (value, after) = quoted(after)?;
                labels.push((label.trim_start_matches(','), value));
                inside = after;
            }
            rest = &inside[1..];
        }
        Some(Self { name, labels, value: rest.trim().parse().ok()? })
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|it| it.0 == name).map(|it| it.1.as_str())
    }
}

/// Reads every sample of a text; what is none is passed over.
pub fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    text.lines().filter_map(Sample::read)
}

/// The text up to the quotation mark that ends it, and what is behind that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match letters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut text = Exposition::default();
        let odd = "a\\b\n\"c\" {d},";
        text.family("up", "gauge", "Whether it runs.");
        text.sample("up", &[], 1);
        text.histogram("took", &[("tool", odd)], [(0.5, 2), (10.0, 3)], 4, 61.25);
        let read: Vec<_> = samples(&text.0).collect();
        let told: Vec<_> =
            read.iter().map(|it| (it.name, it.label("tool"), it.label("le"), it.value)).collect();
        let expected = [
            ("up", None, None, 1.0),
            ("took_bucket", Some(odd), Some("0.5"), 2.0),
            ("took_bucket", Some(odd), Some("10"), 3.0),
            ("took_bucket", Some(odd), Some("+Inf"), 4.0),
            ("took_sum", Some(odd), None, 61.25),
            ("took_count", Some(odd), None, 4.0),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_no_sample_is_passed_over() {
        let bad = ["", "# HELP a 1", "a", "a b", "a{", "a{b} 1", "a{b=\"c} 1", "a{b=\"c\" 1"];
        for line in bad.into_iter().chain(["a{b=\"c\"} many", "a{b=\"\\"]) {
            assert_eq!(Sample::read(line), None, "{line}");
        }
    }
}
