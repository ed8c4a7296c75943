//! The readings of a URI that rules go by: what one of them can be read as is one of them.

use trunkline_gateway::fuzzing::uri_forms;

/// A URI.
pub(crate) fn check(data: &[u8]) {
    let Ok(uri) = std::str::from_utf8(data) else { return };
    let Some((near, far)) = uri_forms(uri) else { return };
    assert!(!near.is_empty(), "nothing is clear about {uri:?}, and nobody says so");
    assert!(near.len() + far.len() <= MOST, "{uri:?} has {} readings", near.len() + far.len());
    let is_reading = |it: &String| near.contains(it) || far.contains(it);
    assert!(is_reading(&uri.to_owned()), "{uri:?} is no reading of itself: {near:?} {far:?}");
    for form in &near {
        assert!(form.len() <= 3 * uri.len() + 16, "{uri:?} became {form:?}");
        if let Some(path) = form.strip_prefix("file://") {
            let path = path.split(['?', '#']).next().unwrap_or_default();
            assert!(path.split('/').all(|it| it != ".." && it != "."), "{uri:?} became {form:?}");
        }
        let Some((again, further)) = uri_forms(form) else {
            panic!("{uri:?} is clear, and its reading {form:?} is not");
        };
        for other in again.iter().chain(&further) {
            assert!(is_reading(other), "{uri:?} has the reading {form:?}, and that has {other:?}");
        }
    }
    // A scheme has no case, and begins with a letter (RFC 3986 §3.1).
    if let Some((scheme, rest)) = uri.split_once(':')
        && scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme.bytes().all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it))
    {
        let loud = uri_forms(&format!("{}:{rest}", scheme.to_ascii_uppercase()));
        let quiet = uri_forms(&format!("{}:{rest}", scheme.to_ascii_lowercase()));
        assert_eq!(loud.map(|it| it.0), quiet.map(|it| it.0), "{uri:?}");
    }
}

/// Readings that one URI may have: each costs a match with every rule.
const MOST: usize = 65;
pub(crate) const WORDS: &[&str] = &[
    "file:///",
    "FILE://",
    "file:",
    "file://localhost/",
    "file://h/",
    "%2e",
    "%2F",
    "%25",
    "%252e",
    "..",
    "/./",
    "/../",
    "//",
    "?",
    "#",
    "@",
    ":80",
    "etc/passwd",
    "https://",
    "%c0%af",
    "%00",
    "\\",
    "é",
];
