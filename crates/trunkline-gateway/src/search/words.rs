//! Splits a text into the words that it is found by.

/// Lower case, stemmed, in order. `getHTTPStatus_2` gives `get`, `http`, `status` and `2`; scripts without
/// spaces are split into characters.
pub(super) fn of(text: &str) -> Vec<Box<str>> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut last = Class::Other;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let class = Class::of(char);
        let next = chars.peek().copied().map_or(Class::Other, Class::of);
        let begins = match (last, class) {
            (_, Class::Other | Class::Sign) | (Class::Sign, _) => true,
            (Class::Lower | Class::Digit, Class::Upper) => true,
            // The last of several capitals begins the next word.
            (Class::Upper, Class::Upper) => next == Class::Lower,
            (Class::Digit, Class::Lower) | (Class::Lower | Class::Upper, Class::Digit) => true,
            _ => false,
        };
        if begins {
            finish(&mut word, &mut words);
        }
        if class != Class::Other {
            word.extend(char.to_lowercase());
        }
        last = class;
    }
    finish(&mut word, &mut words);
    words
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    /// Of a script without spaces between words.
    Sign,
    Other,
}

impl Class {
    fn of(char: char) -> Self {
        match char {
            _ if char.is_numeric() => Self::Digit,
            '\u{2E80}'..='\u{D7FF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}'
                if char.is_alphabetic() =>
            {
                Self::Sign
            }
            _ if char.is_uppercase() => Self::Upper,
            _ if char.is_alphabetic() => Self::Lower,
            _ => Self::Other,
        }
    }
}

fn finish(word: &mut String, words: &mut Vec<Box<str>>) {
    if !word.is_empty() && !COMMON.contains(&word.as_str()) {
        words.push(stem(word).into());
    }
    word.clear();
}

/// Removes plural endings: `files`, `queries` and `searches` become `file`, `query` and `search`.
fn stem(word: &str) -> String {
    let cut = |end: &str| word.strip_suffix(end).filter(|rest| rest.len() >= 2);
    if let Some(rest) = cut("ies") {
        return format!("{rest}y");
    }
    if let Some(rest) = cut("es")
        && ["ch", "sh", "ss", "x", "z"].iter().any(|end| rest.ends_with(end))
    {
        return rest.to_owned();
    }
    match cut("s") {
        Some(rest) if !rest.ends_with(['s', 'u', 'i']) => rest.to_owned(),
        _ => word.to_owned(),
    }
}

/// Stop words.
const COMMON: [&str; 42] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from",
    "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "or", "please",
    "that", "the", "this", "to", "tool", "tools", "use", "want", "what", "which", "will", "with",
    "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_spelling() {
        for (text, expected) in [
            ("git.log", "git log"),
            ("getHTTPStatus_2", "get http status 2"),
            ("read-Files v2", "read file v 2"),
            ("the queries, searches & classes", "query search class"),
            ("status bus analysis", "status bus analysis"),
            ("Öffne Türen", "öffne türen"),
            ("読む file", "読 む file"),
            ("…", ""),
        ] {
            assert_eq!(of(text).join(" "), expected, "{text}");
        }
    }
}
