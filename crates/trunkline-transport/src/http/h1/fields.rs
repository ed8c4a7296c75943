//! The lines of a head, as they came → their names and values (RFC 9112 §5).

use std::ops::Range;

/// Where in a head a field is.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Field {
    start: usize,
    colon: usize,
    end: usize,
}

/// Whether `text` holds all of the head that it begins with. So much of it as `searched` was looked through before.
pub(in crate::http) fn is_whole(text: &[u8], searched: usize) -> bool {
    let mut rest = &text[searched.saturating_sub(2)..];
    while let Some(line) = rest.iter().position(|it| *it == b'\n') {
        rest = &rest[line + 1..];
        if matches!(rest, [b'\n', ..] | [b'\r', b'\n', ..]) {
            return true;
        }
    }
    false
}

/// What is wrong with the lines of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum WrongFields {
    Malformed,
    TooMany,
}

/// Reads the fields that begin at `at`, up to the empty line, and says where that ends; `None` if it has not come.
pub(in crate::http) fn read_fields(
    text: &[u8],
    mut at: usize,
    fields: &mut Vec<Field>,
) -> Result<Option<usize>, WrongFields> {
    fields.clear();
    loop {
        match text[at..] {
            [b'\n', ..] => return Ok(Some(at + 1)),
            [b'\r', b'\n', ..] => return Ok(Some(at + 2)),
            [] | [b'\r'] => return Ok(None),
            _ if fields.len() == MAX_FIELDS => return Err(WrongFields::TooMany),
            _ => {}
        }
        let Some((field, next)) = Field::read(text, at)? else { return Ok(None) };
        fields.push(field);
        at = next;
    }
}

impl Field {
    /// The field that begins at `start`, and where the next one does; `None` if it has not all come. A space after the
    /// name and a folded line are refused (RFC 9112 §5).
    fn read(text: &[u8], start: usize) -> Result<Option<(Self, usize)>, WrongFields> {
        let Some(name) = text[start..].iter().position(|it| !is_token(*it)) else {
            return Ok(None);
        };
        let colon = start + name;
        if name == 0 || text[colon] != b':' {
            return Err(WrongFields::Malformed);
        }
        let Some(value) = text[colon..].iter().position(|it| !is_value(*it)) else {
            return Ok(None);
        };
        let end = colon + value;
        let next = match text[end..] {
            [b'\n', ..] => end + 1,
            [b'\r', b'\n', ..] => end + 2,
            [b'\r'] => return Ok(None),
            _ => return Err(WrongFields::Malformed),
        };
        Ok(Some((Self { start, colon, end }, next)))
    }

    pub(in crate::http) fn name(self, text: &[u8]) -> &[u8] {
        &text[self.start..self.colon]
    }

    pub(in crate::http) fn value(self, text: &[u8]) -> &[u8] {
        text[self.colon + 1..self.end].trim_ascii()
    }

    /// Where its value is.
    pub(in crate::http) fn value_at(self, text: &[u8]) -> Range<usize> {
        let value = &text[self.colon + 1..self.end];
        let start = self.end - value.trim_ascii_start().len();
        start..start + value.trim_ascii().len()
    }
}

/// Whether these are the same name, of which `name` is in lower case.
pub(in crate::http) fn is_name(written: &[u8], name: &[u8]) -> bool {
    written.eq_ignore_ascii_case(name)
}

/// Whether the name of a method or a field may have this byte (RFC 9110 §5.6.2).
pub(in crate::http) fn is_token(byte: u8) -> bool {
    IS_TOKEN[usize::from(byte)]
}

/// Whether the value of a field may have this byte (RFC 9110 §5.5).
pub(in crate::http) fn is_value(byte: u8) -> bool {
    IS_VALUE[usize::from(byte)]
}

/// A number of digits alone.
pub(in crate::http) fn digits(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(value).ok()?.parse().ok()).flatten()
}

/// The comma-separated parts of a value.
pub(in crate::http) fn parts(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|it| *it == b',').map(<[u8]>::trim_ascii)
}

const IS_TOKEN: [bool; 256] = {
    let (mut is, mut at) = ([false; 256], 0);
    while at < 256 {
        is[at] = matches!(at as u8, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'!' | b'#'..=b'\'' | b'*'
            | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~');
        at += 1;
    }
    is
};
const IS_VALUE: [bool; 256] = {
    let (mut is, mut at) = ([true; 256], 0);
    while at < 256 {
        is[at] = matches!(at as u8, b'\t' | b' '..=b'~' | 0x80..);
        at += 1;
    }
    is
};
/// The most fields of a head.
pub(in crate::http) const MAX_FIELDS: usize = 100;
