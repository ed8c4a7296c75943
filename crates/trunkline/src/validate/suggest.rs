//! An unknown name → the known name that was probably meant.

use trunkline_wire::text::edit_distance;

/// The name among `known` that `name` was probably meant to be.
pub(super) fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MOST_COMPARED {
        return None;
    }
    let letters: Vec<char> = name.chars().collect();
    let allowed = letters.len() / 3;
    let simple_name = simple(name);
    let known = known.take(MAX_CANDIDATES).filter(|it| it.len() <= MOST_COMPARED && *it != name);
    let near = known.filter_map(|it| {
        if simple(it) == simple_name {
            return Some((0, it));
        }
        let others: Vec<char> = it.chars().collect();
        Some((edit_distance(&letters, &others, allowed)?, it))
    });
    near.min_by_key(|(far, _)| *far).map(|(_, it)| it)
}

/// The name as it is compared: `check_in`, `checkIn` and `check-in` are equal.
fn simple(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

const MOST_COMPARED: usize = 64;
/// How many names are compared, so that a guessing caller costs little.
const MAX_CANDIDATES: usize = 200;
