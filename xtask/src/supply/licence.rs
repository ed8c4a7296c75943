//! An SPDX expression and a list of licences → whether they suffice.

use std::collections::BTreeSet;

/// Whether the listed licences satisfy the expression. Notes in `used` the ones that count: of an
/// `OR`, the first side that suffices.
pub fn allowed(
    expression: &str,
    listed: &[&'static str],
    used: &mut BTreeSet<&'static str>,
) -> Result<bool, String> {
    // Older manifests write `MIT/Apache-2.0`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    if words.is_empty() {
        return Err("It has no licence expression.".to_owned());
    }
    let mut reader = Reader { words: &words, listed };
    let found = reader.any()?;
    if !reader.words.is_empty() {
        return Err(format!("`{expression}` is no SPDX expression."));
    }
    used.extend(found.iter().flatten());
    Ok(found.is_some())
}

struct Reader<'a> {
    words: &'a [&'a str],
    listed: &'a [&'static str],
}

/// The licences that satisfy it, if some do.
type Found = Option<Vec<&'static str>>;

impl Reader<'_> {
    fn any(&mut self) -> Result<Found, String> {
        let mut found = self.all()?;
        while self.take("OR") {
            let other = self.all()?;
            found = found.or(other);
        }
        Ok(found)
    }

    fn all(&mut self) -> Result<Found, String> {
        let mut found = self.one()?;
        while self.take("AND") {
            let other = self.one()?;
            found = found.zip(other).map(|(one, other)| [one, other].concat());
        }
        Ok(found)
    }

    fn one(&mut self) -> Result<Found, String> {
        if self.take("(") {
            let found = self.any()?;
            return if self.take(")") { Ok(found) } else { Err("A `(` has no `)`.".to_owned()) };
        }
        let [name, rest @ ..] = self.words else {
            return Err("A licence expression ends too early.".to_owned());
        };
        self.words = rest;
        let mut name = (*name).to_owned();
        if self.take("WITH") {
            let [exception, rest @ ..] = self.words else {
                return Err("`WITH` names no exception.".to_owned());
            };
            name = format!("{name} WITH {exception}");
            self.words = rest;
        }
        Ok(self.listed.iter().find(|it| **it == name).map(|it| vec![*it]))
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.first().is_some_and(|it| *it == word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        let listed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
        for (expression, expected) in [
            ("MIT", Ok(true)),
            ("GPL-3.0-only", Ok(false)),
            ("GPL-3.0-only OR MIT", Ok(true)),
            ("GPL-3.0-only/MIT", Ok(true)),
            ("GPL-3.0-only AND MIT", Ok(false)),
            ("MIT AND ISC", Ok(true)),
            ("(GPL-3.0-only OR MIT) AND ISC", Ok(true)),
            ("GPL-3.0-only AND MIT OR ISC", Ok(true)),
            ("Apache-2.0", Ok(false)),
            ("Apache-2.0 WITH LLVM-exception", Ok(true)),
            ("", Err(())),
            ("(MIT", Err(())),
            ("MIT ISC", Err(())),
            ("MIT AND", Err(())),
        ] {
            let found = allowed(expression, &listed, &mut BTreeSet::new());
            assert_eq!(found.map_err(|_| ()), expected, "{expression}");
        }
    }

    #[test]
    fn the_first_side_that_suffices_counts() {
        let mut used = BTreeSet::new();
        assert_eq!(allowed("MIT OR ISC", &["ISC", "MIT"], &mut used), Ok(true));
        assert_eq!(used, BTreeSet::from(["MIT"]));
    }
}
