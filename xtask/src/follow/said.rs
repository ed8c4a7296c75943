//! What a page shows against what a command said: `…` in a line stands for anything, on a line alone for any lines.

/// The first line of the page that was not said, if there is one. `is_whole` says whether nothing may follow.
pub fn missing<'a>(shown: &'a [String], said: &str, is_whole: bool) -> Option<&'a str> {
    let said: Vec<&str> = said.trim_end().lines().map(str::trim_end).collect();
    let end = shown.iter().rposition(|it| !it.trim().is_empty()).map_or(0, |it| it + 1);
    let mut best = 0;
    if fits(&shown[..end], &said, is_whole, 0, &mut best) {
        return None;
    }
    Some(shown.get(best).map_or("(nothing more)", String::as_str))
}

fn fits(shown: &[String], said: &[&str], is_whole: bool, at: usize, best: &mut usize) -> bool {
    *best = at.max(*best);
    let Some(line) = shown.get(at) else { return said.is_empty() || !is_whole };
    if line.trim() == "…" {
        return (0..=said.len()).any(|skip| fits(shown, &said[skip..], is_whole, at + 1, best));
    }
    let Some((first, rest)) = said.split_first() else { return false };
    line_fits(line.trim_end(), first) && fits(shown, rest, is_whole, at + 1, best)
}

fn line_fits(shown: &str, said: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else { return shown == said };
    let Some(rest) = said.strip_prefix(before) else { return false };
    (0..=rest.len()).filter(|it| rest.is_char_boundary(*it)).any(|it| line_fits(after, &rest[it..]))
}

#[cfg(test)]
mod tests {
    use super::missing;

    fn of(shown: &str, said: &str, is_whole: bool) -> Option<String> {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        missing(&shown, said, is_whole).map(str::to_owned)
    }

    #[test]
    fn dots_stand_for_anything() {
        assert_eq!(of("a\nb", "a\nb\n", true), None);
        assert_eq!(of("pong in … ms, … speaking", "pong in 0.3 ms, and speaking\n", true), None);
        assert_eq!(of("a\n…\nd", "a\nb\nc\nd\n", true), None);
        assert_eq!(of("a\n…", "a\n", true), None);
    }

    #[test]
    fn what_differs_is_told() {
        assert_eq!(of("a\nb\nc", "a\nx\nc\n", true), Some("b".to_owned()));
        assert_eq!(of("a", "a\nb\n", true), Some("(nothing more)".to_owned()));
        assert_eq!(of("a", "a\nb\n", false), None);
        assert_eq!(of("a\n…\nz", "a\nb\n", true), Some("z".to_owned()));
    }
}
