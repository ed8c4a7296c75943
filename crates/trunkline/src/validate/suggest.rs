//! A name that is not known → the one that was probably meant.

/// The name among `known` that `name` was probably meant to be.
pub(super) fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MOST_COMPARED {
        return None;
    }
    let letters: Vec<char> = name.chars().collect();
    let allowed = letters.len() / 3;
    let simple_name = simple(name);
    let known = known.take(LOOKED_AT).filter(|it| it.len() <= MOST_COMPARED && *it != name);
    let near = known.filter_map(|it| {
        if simple(it) == simple_name {
            return Some((0, it));
        }
        let others: Vec<char> = it.chars().collect();
        Some((distance(&letters, &others, allowed)?, it))
    });
    near.min_by_key(|(far, _)| *far).map(|(_, it)| it)
}

/// How many characters must be put in, left out, changed or swapped with their neighbour to get
/// from one name to the other; `None` if they are more than `limit`.
pub(crate) fn distance(one: &[char], other: &[char], limit: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > limit {
        return None;
    }
    let mut before = vec![0; other.len() + 1];
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for at in 1..=one.len() {
        let mut row = vec![limit + 1; other.len() + 1];
        row[0] = at;
        // What is farther from the diagonal is farther than the limit.
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

/// A name without what people spell differently: `check_in`, `checkIn`, `check-in`.
fn simple(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

const MOST_COMPARED: usize = 64;
/// How many names are looked at: who guesses must not cost much.
const LOOKED_AT: usize = 200;
