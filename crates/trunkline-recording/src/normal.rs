//! What always differs between two runs: times, states, tokens and the ids of sessions and tasks.

use trunkline_wire::model::meta;

use crate::redact::MASK;
use crate::tree::Tree;

/// Where a value stands: among the protocol's own members, or in data of a tool or a user, whose names mean nothing
/// here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Protocol,
    Data,
}

impl Zone {
    /// The zone of a member's value.
    pub(crate) fn inside(self, name: &str, value: &Tree) -> Self {
        let is_data = match name {
            "arguments" | "structuredContent" | "inputSchema" | "outputSchema"
            | "requestedSchema" | "data" => true,
            // The answer to a form; blocks of content are a list.
            "content" => matches!(value, Tree::Object(_)),
            _ => false,
        };
        if is_data { Self::Data } else { self }
    }
}

/// Members of the protocol whose values are new in every run.
pub(crate) fn is_volatile(name: &str) -> bool {
    VOLATILE.contains(&name)
}

/// Whether one of two has a `_meta`, and nothing in it counts.
pub(crate) fn is_empty_meta(name: &str, one: Option<&Tree>, other: Option<&Tree>) -> bool {
    let ((Some(only), None) | (None, Some(only))) = (one, other) else { return false };
    name == "_meta" && only.members().iter().all(|(name, _)| is_volatile(name))
}

/// Whether two texts say the same: times in them do not count, and a mask stands for anything.
pub(crate) fn same_text(one: &str, other: &str) -> bool {
    one == other
        || fits(one, other)
        || fits(other, one)
        || same_but_for_times(one.as_bytes(), other.as_bytes())
}

/// Whether two numbers are the same, however they are spelled.
pub(crate) fn same_number(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let is_whole = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    // Two integers that are spelled differently differ, even if a float cannot tell them apart.
    if is_whole(one) && is_whole(other) {
        return false;
    }
    matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one == other)
}

/// Whether two values say the same.
pub(crate) fn same(one: &Tree, other: &Tree, zone: Zone) -> bool {
    match (one, other) {
        (Tree::Text(one), Tree::Text(other)) => same_text(one, other),
        // A mask stands for a number or an object, too.
        (Tree::Text(mask), _) | (_, Tree::Text(mask)) if mask == MASK => true,
        (Tree::Number(one), Tree::Number(other)) => same_number(one, other),
        (Tree::List(one), Tree::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same(a, b, zone))
        }
        (Tree::Object(a), Tree::Object(b)) => {
            a.iter().all(|(name, value)| same_member(name, Some(value), other.get(name), zone))
                && b.iter().all(|(name, value)| {
                    one.get(name).is_some() || same_member(name, None, Some(value), zone)
                })
        }
        _ => one == other,
    }
}

fn same_member(name: &str, one: Option<&Tree>, other: Option<&Tree>, zone: Zone) -> bool {
    if zone == Zone::Protocol && (is_volatile(name) || is_empty_meta(name, one, other)) {
        return true;
    }
    match (one, other) {
        (Some(one), Some(other)) => same(one, other, zone.inside(name, one)),
        _ => false,
    }
}

/// The parameters of a request as far as they choose its answer: the client's name, capabilities and tokens do not.
pub(crate) fn asked(params: &Tree) -> Tree {
    with_meta(params, &[meta::PROTOCOL_VERSION])
}

/// The same with what the client can be asked, which may matter.
pub(crate) fn asked_by(params: &Tree) -> Tree {
    with_meta(params, &[meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::LOG_LEVEL])
}

/// The parameters with these members of `_meta` alone.
fn with_meta(params: &Tree, names: &[&str]) -> Tree {
    let Tree::Object(members) = params else { return params.clone() };
    let mut kept: Vec<_> = members.iter().filter(|(name, _)| name != "_meta").cloned().collect();
    let all = params.get("_meta").map(Tree::members).unwrap_or_default();
    let meta: Vec<_> = all.iter().filter(|(it, _)| names.contains(&it.as_str())).cloned().collect();
    if !meta.is_empty() {
        kept.push(("_meta".to_owned(), Tree::Object(meta)));
    }
    Tree::Object(kept)
}

/// Whether two texts are the same but for the times in them. Ends at the first difference.
fn same_but_for_times(one: &[u8], other: &[u8]) -> bool {
    let (mut one, mut other) = (one, other);
    loop {
        match (one.split_first(), other.split_first()) {
            (None, None) => return true,
            (Some((a, rest)), Some((b, others))) => {
                let is_digit = a.is_ascii_digit() && b.is_ascii_digit();
                let times = if is_digit { time_length(one).zip(time_length(other)) } else { None };
                match times {
                    Some((length, others)) => (one, other) = (&one[length..], &other[others..]),
                    None if a == b => (one, other) = (rest, others),
                    None => return false,
                }
            }
            _ => return false,
        }
    }
}

/// The length of the date and time (RFC 3339, or the same with a space) that a text begins with.
fn time_length(text: &[u8]) -> Option<usize> {
    let fits = |shape: &[u8], text: &[u8]| {
        text.len() >= shape.len()
            && shape.iter().zip(text).all(|(shape, byte)| match shape {
                b'0' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b't' | b' '),
                b'+' => matches!(byte, b'+' | b'-'),
                other => other == byte,
            })
    };
    if !fits(b"0000-00-00T00:00", text) {
        return None;
    }
    let mut length = 16;
    if fits(b":00", &text[length..]) {
        length += 3;
    }
    if fits(b".0", &text[length..]) {
        length += 1;
        length += text[length..].iter().take_while(|it| it.is_ascii_digit()).count();
    }
    if fits(b"+00:00", &text[length..]) {
        length += 6;
    } else if matches!(text.get(length), Some(b'Z' | b'z')) {
        length += 1;
    }
    Some(length)
}

/// Whether a text fits one in which a mask stands for anything.
fn fits(masked: &str, text: &str) -> bool {
    if !masked.contains(MASK) {
        return false;
    }
    let pieces: Vec<&str> = masked.split(MASK).collect();
    let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for piece in &pieces[1..pieces.len() - 1] {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

const VOLATILE: &[&str] = &[
    "baggage",
    "createdAt",
    "cursor",
    "elicitationId",
    "lastModified",
    "lastUpdatedAt",
    "nextCursor",
    "progressToken",
    "requestId",
    "requestState",
    "taskId",
    "traceparent",
    "tracestate",
    meta::SUBSCRIPTION_ID,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        let (a, b) = (Tree::parse(one).unwrap(), Tree::parse(other).unwrap());
        assert_eq!(same(&a, &b, Zone::Protocol), expected, "{one} {other}");
        assert_eq!(same(&b, &a, Zone::Protocol), expected, "{other} {one}");
    }

    #[test]
    fn what_always_differs_is_the_same() {
        check(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, true);
        check("1", "1.0", true);
        check("10000000000000000001", "10000000000000000002", false);
        check(r#"{"requestState":"x"}"#, r#"{"requestState":"y"}"#, true);
        check(r#"{"requestState":"x"}"#, "{}", true);
        check(r#"{"_meta":{"progressToken":1}}"#, "{}", true);
        check(r#"{"_meta":{"a":1}}"#, "{}", false);
        check(r#"{"arguments":{"taskId":"x"}}"#, r#"{"arguments":{"taskId":"y"}}"#, false);
        check(
            r#"{"content":[{"annotations":{"lastModified":"x"}}]}"#,
            r#"{"content":[{"annotations":{"lastModified":"y"}}]}"#,
            true,
        );
        check(r#""it is 2026-11-17T12:36:51+00:00.""#, r#""it is 2026-11-18T01:02:03.5Z.""#, true);
        check(r#""on 2026-11-17""#, r#""on 2026-11-18""#, false);
        check(r#"{"a":null}"#, "{}", false);
    }

    #[test]
    fn a_mask_stands_for_anything() {
        check(r#"{"arguments":{"key":"***"}}"#, r#"{"arguments":{"key":17}}"#, true);
        check(r#""key=***; b""#, r#""key=hunter2; b""#, true);
        check(r#""key=***; b""#, r#""key=hunter2; c""#, false);
        check(r#""a***b***c""#, r#""a1b2c""#, true);
        check(r#""a***b***c""#, r#""a1c2b""#, false);
    }
}
