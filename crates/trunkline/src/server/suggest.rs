//! An unknown name → the known name that was probably meant.

use trunkline_wire::text::edit_distance;

/// The closest of `known`, if its edit distance is small enough to be a typo.
pub(super) fn closest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(wanted)?;
    // In a short name, more edits make another word.
    let limit = (wanted.len() / 3).clamp(1, 3);
    let near = known.take(MAX_CANDIDATES).filter_map(|name| {
        let steps = edit_distance(&wanted, &plain(name)?, limit)?;
        Some((steps, name))
    });
    near.min_by_key(|(steps, _)| *steps).map(|(_, name)| name)
}

/// The name as it is compared: lower case, one kind of separator.
fn plain(name: &str) -> Option<Vec<char>> {
    let plain = |it: char| match it {
        '-' | '.' | ' ' | '/' => '_',
        other => other.to_ascii_lowercase(),
    };
    (!name.is_empty() && name.len() <= LONGEST).then(|| name.chars().map(plain).collect())
}

/// The longest name that is compared, in bytes.
pub(super) const LONGEST: usize = 128;
/// How many names are compared, so that a guessing caller costs little.
const MAX_CANDIDATES: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn suggest(wanted: &str) -> Option<&'static str> {
        let known = ["book", "cancel_booking", "list-rooms", "search", "x", "get_Weather"];
        closest(wanted, known.into_iter())
    }

    #[test]
    fn a_slip_is_found() {
        for (wanted, meant) in [
            ("bok", "book"),
            ("Book", "book"),
            ("boook", "book"),
            ("obok", "book"),
            ("list_rooms", "list-rooms"),
            ("listrooms", "list-rooms"),
            ("cancelBooking", "cancel_booking"),
            ("get_weather", "get_Weather"),
            ("serach", "search"),
        ] {
            assert_eq!(suggest(wanted), Some(meant), "{wanted}");
        }
    }

    #[test]
    fn another_word_is_not_a_slip() {
        let long = "b".repeat(LONGEST + 1);
        for wanted in ["", "b", "flights", "cook the books", "room", &long, "日本語"] {
            assert_eq!(suggest(wanted).filter(|it| *it != "x"), None, "{wanted}");
        }
    }

    #[test]
    fn the_nearest_of_several_is_meant() {
        let known = ["read_file", "read_files", "write_file"];
        assert_eq!(closest("raed_file", known.into_iter()), Some("read_file"));
        assert_eq!(closest("read_filez", known.into_iter()), Some("read_file"));
        assert_eq!(closest("reed_files", known.into_iter()), Some("read_files"));
    }
}
