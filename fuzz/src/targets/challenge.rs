//! `WWW-Authenticate`: whatever is read can be written, fits into a header, and is read again.

use trunkline_auth::challenge::{Challenge, parse};

use crate::input::Input;

/// Header values, with `\0` between them.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let mut lines = Vec::new();
    while !input.is_empty() {
        lines.push(input.text());
    }
    let read = parse(&lines);
    let words: usize = lines.iter().map(|it| it.split([' ', '\t', ',']).count()).sum();
    assert!(read.len() <= words, "more challenges than words");
    for challenge in &read {
        assert!(!challenge.scheme.is_empty());
        let _ = (challenge.is("Bearer"), challenge.param("scope"));
    }
    // Only what is not ASCII is lost on the way, and only once.
    let once = parse(&written(&read));
    assert_eq!(once.len(), read.len(), "{read:?}");
    assert_eq!(parse(&written(&once)), once);
}

fn written(challenges: &[Challenge]) -> Vec<String> {
    let write = |it: &Challenge| {
        let text = it.to_string();
        assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')), "no header: {text:?}");
        text
    };
    challenges.iter().map(write).collect()
}

pub(crate) const WORDS: &[&str] = &[
    "Bearer ",
    "DPoP ",
    "Basic ",
    "Negotiate ",
    "realm=",
    "scope=",
    "error=\"invalid_token\"",
    "resource_metadata=\"https://a.example/.well-known/oauth-protected-resource\"",
    "\\\"",
    "==",
    ", ",
    "algs=\"ES256\"",
    "\"",
    "YWJj",
];
