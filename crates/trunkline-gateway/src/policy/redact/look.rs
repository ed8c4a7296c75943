//! Finds parts of a text that look like secrets.
//!
//! Four passes: a word after `Bearer` or `Basic`; the value of something called `password`, `token` and the
//! like; a user in a URL; and words that begin like the tokens of well-known services, or that look random.

use std::ops::Range;

/// Adds the ranges that are found.
pub(super) fn find(text: &str, found: &mut Vec<Range<usize>>) {
    words(text, found);
    values(text, found);
    users(text, found);
}

/// Single words, and words after the name of a scheme.
fn words(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let (mut at, mut before) = (0, "");
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|it| is_token(**it)).count();
        if length == 0 {
            // A scheme and its credentials are on one line, with nothing else between them.
            if !matches!(bytes[at], b' ' | b'\t' | b'"' | b'\'') {
                before = "";
            }
            at += 1;
            continue;
        }
        let word = &text[at..at + length];
        let after_scheme =
            before.eq_ignore_ascii_case("bearer") || before.eq_ignore_ascii_case("basic");
        if (after_scheme && length >= super::SHORTEST) || is_known(word) || is_random(word) {
            found.push(at..at + length);
        }
        (at, before) = (at + length, word);
    }
}

/// `name=value`, `name: value`, `"name": "value"`, where the name promises a secret.
fn values(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|it| matches!(it, b'=' | b':')) {
        let sign = at + offset;
        let name = name_before(&text[at..sign]);
        at = sign + 1;
        let promise = promise(name);
        if promise == Promise::Nothing {
            continue;
        }
        // `:=`, `=>` and `==` are two-character operators.
        let spaces = bytes[at..].iter().take_while(|it| matches!(it, b' ' | b'\t' | b'=' | b'>'));
        let start = at + spaces.count();
        // JSON inside a JSON string has escaped quotes.
        let start = start + usize::from(bytes[start..].starts_with(b"\\\""));
        let quote = bytes.get(start).copied().filter(|it| matches!(it, b'"' | b'\'' | b'`'));
        let start = start + usize::from(quote.is_some());
        let rest = &bytes[start..];
        let length = match (quote, promise) {
            (Some(quote), _) => rest.iter().position(|it| *it == quote),
            (None, Promise::Line) => rest.iter().position(|it| matches!(it, b'\n' | b'\r')),
            (None, _) => rest.iter().position(|it| {
                it.is_ascii_whitespace() || matches!(it, b'&' | b',' | b';' | b'"' | b'\'' | b')')
            }),
        };
        let length = length.unwrap_or(rest.len());
        let value = &rest[..length];
        // `token: expired` is prose; `token: x7y…` is a secret. Words are short, which also bounds what is read
        // again for the next operator.
        let is_prose = promise == Promise::Maybe
            && quote.is_none()
            && bytes[sign] == b':'
            && value.len() < LONGEST_NAME
            && !(value.len() >= super::SHORTEST && value.iter().any(u8::is_ascii_digit));
        if !value.is_empty() && !is_prose && value != b"***" {
            found.push(start..start + length);
            at = start + length;
        }
    }
}

/// The text between `://` and `@`.
fn users(text: &str, found: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(offset) = text[at..].find("://") {
        at += offset + 3;
        let ends =
            |it: char| it.is_whitespace() || matches!(it, '/' | '?' | '#' | '"' | '\'' | '<' | '>');
        let host = &text[at..][..text[at..].find(ends).unwrap_or(text.len() - at)];
        if let Some(end) = host.rfind('@').filter(|it| *it > 0) {
            found.push(at..at + end);
        }
        at += host.len();
    }
}

/// What the name of a value says about it.
#[derive(Clone, Copy, PartialEq)]
enum Promise {
    Nothing,
    /// It is a secret, or prose about one.
    Maybe,
    /// It is a secret.
    Secret,
    /// The rest of the line is one.
    Line,
}

fn promise(name: &str) -> Promise {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|it| name.contains(it));
    if has(&["authorization", "cookie"]) {
        Promise::Line
    } else if has(&["password", "passwd", "passphrase", "pwd", "secret"]) {
        Promise::Secret
    } else if has(&[
        "token",
        "api_key",
        "apikey",
        "api-key",
        "access_key",
        "accesskey",
        "access-key",
        "private_key",
        "privatekey",
        "private-key",
        "credential",
        "auth_key",
        "session_id",
        "session-id",
        "sessionid",
    ]) {
        Promise::Maybe
    } else {
        Promise::Nothing
    }
}

/// The name at the end of `text`, quoted or not.
fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches([' ', '\t', '"', '\'', '`', '\\']);
    let name = text
        .bytes()
        .rev()
        .take(LONGEST_NAME)
        .take_while(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.'));
    &text[text.len() - name.count()..]
}

/// Whether a word begins like the tokens of a service, and is long enough.
fn is_known(word: &str) -> bool {
    let rest = |prefix: &&str| word.strip_prefix(*prefix).is_some_and(|it| it.len() >= LONG_ENOUGH);
    let aws = |prefix: &&str| {
        let rest = word.strip_prefix(*prefix).unwrap_or_default();
        rest.len() == 16 && rest.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit())
    };
    let is_jwt = || word.starts_with("eyJ") && word.matches('.').count() >= 2;
    PREFIXES.iter().any(rest) || ["AKIA", "ASIA"].iter().any(aws) || is_jwt()
}

/// Whether a word is long and changes its character class as often as chance does. Paths, names and prose do so
/// far less; identifiers (UUIDs) are no secrets.
fn is_random(word: &str) -> bool {
    let word = word.trim_matches(['.', '-', '_', '/', '=']);
    if word.len() < LONG_WORD || is_uuid(word) || !word.bytes().any(|it| it.is_ascii_digit()) {
        return false;
    }
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => Some(0),
        b'A'..=b'Z' => Some(1),
        b'0'..=b'9' => Some(2),
        _ => None,
    };
    let bytes = word.as_bytes();
    // Separators in a path or a name are no change.
    let differs =
        |pair: &&[u8]| kind(pair[0]).zip(kind(pair[1])).is_some_and(|(one, other)| one != other);
    bytes.windows(2).filter(differs).count() * 4 >= bytes.len()
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The characters of tokens: base64 in both alphabets, and the dots of a JWT.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'/' | b'=' | b'~')
}

const PREFIXES: [&str; 27] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "pk_live_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
    "dop_v1_",
    "lin_api_",
    "SG.",
];
/// The length that must follow a prefix.
const LONG_ENOUGH: usize = 8;
/// From this length on a word can be too random to be prose: 128 bits as hex.
const LONG_WORD: usize = 32;
/// How far back a name is read, and how long a word of prose can be.
const LONGEST_NAME: usize = 64;
