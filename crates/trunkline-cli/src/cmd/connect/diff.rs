//! Two texts → the lines in which they differ. They differ in one place, so comparing the common
//! start and end is enough.

/// The removed and added lines, with some context.
pub(crate) fn lines<'a>(old: &'a str, new: &'a str) -> Vec<(char, &'a str)> {
    let (before, after): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let pairs = before.iter().zip(&after);
    let start = pairs.take_while(|(one, other)| one == other).count();
    let most = before.len().min(after.len()) - start;
    let pairs = before.iter().rev().zip(after.iter().rev());
    let end = pairs.take_while(|(one, other)| one == other).count().min(most);
    let mut out = Vec::new();
    out.extend(before[start.saturating_sub(AROUND)..start].iter().map(|it| (' ', *it)));
    out.extend(before[start..before.len() - end].iter().map(|it| ('-', *it)));
    out.extend(after[start..after.len() - end].iter().map(|it| ('+', *it)));
    let rest = &before[before.len() - end..];
    out.extend(rest.iter().take(AROUND).map(|it| (' ', *it)));
    out
}

/// Lines that show where it is.
const AROUND: usize = 3;

#[cfg(test)]
mod tests {
    use super::lines;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &str) {
        let found: String =
            lines(old, new).iter().map(|(sign, it)| format!("{sign}{it};")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_differs_is_shown_and_a_little_around_it() {
        check("a\nb\nc\nd\ne\n", "a\nb\nc\nd\nx\ne\n", " b; c; d;+x; e;");
        check("a\nb\nc\n", "a\nx\nc\n", " a;-b;+x; c;");
        check("", "a\n", "+a;");
        check("a\na\n", "a\n", " a;-a;");
        check("a\n", "a\n", " a;");
    }
}
