//! Two names → their edit distance.

/// How many insertions, deletions, substitutions or transpositions of neighbours separate two names;
/// `None` if more than `limit`.
///
/// This is the optimal string alignment distance, computed in a band around the diagonal.
pub fn edit_distance(one: &[char], other: &[char], limit: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > limit {
        return None;
    }
    let mut before = vec![0; other.len() + 1];
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for at in 1..=one.len() {
        let mut row = vec![limit + 1; other.len() + 1];
        row[0] = at;
        // Cells outside the band exceed the limit.
        for to in at.saturating_sub(limit).max(1)..=(at + limit).min(other.len()) {
            let changed = above[to - 1] + usize::from(one[at - 1] != other[to - 1]);
            row[to] = changed.min(above[to] + 1).min(row[to - 1] + 1);
            let is_swapped =
                at > 1 && to > 1 && one[at - 1] == other[to - 2] && one[at - 2] == other[to - 1];
            if is_swapped {
                row[to] = row[to].min(before[to - 2] + 1);
            }
        }
        if row.iter().all(|it| *it > limit) {
            return None;
        }
        before = std::mem::replace(&mut above, row);
    }
    Some(above[other.len()]).filter(|it| *it <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(one: &str, other: &str, limit: usize) -> Option<usize> {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        edit_distance(&letters(one), &letters(other), limit)
    }

    #[test]
    fn slips_are_counted_up_to_the_limit() {
        for (one, other, steps) in [
            ("", "", 0),
            ("nights", "nights", 0),
            ("ngihts", "nights", 1),
            ("night", "nights", 1),
            ("knights", "nights", 1),
            ("lights", "nights", 1),
            ("sitting", "kitten", 3),
            ("café", "cafe", 1),
            ("", "abc", 3),
        ] {
            for limit in 0..6 {
                let expected = (steps <= limit).then_some(steps);
                assert_eq!(distance(one, other, limit), expected, "{one} {other} {limit}");
                assert_eq!(distance(other, one, limit), expected, "{other} {one} {limit}");
            }
        }
    }
}
