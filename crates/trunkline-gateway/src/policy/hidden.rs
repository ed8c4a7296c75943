//! Finds characters that a reader does not see in a text, and escapes them.
//!
//! Hidden are control characters (except tab, line feed and carriage return), marks that change the direction
//! of text, and what Unicode calls *default ignorable*: zero-width characters, tags, variation selectors,
//! fillers. A model reads them and a person does not, so they can carry instructions past the person who
//! approves.
//!
//! Four kinds have a legitimate use, and pass there, one at a time:
//!
//! - ZWJ and ZWNJ after a letter of a script that joins letters (Arabic to Sinhala, Khmer, Mongolian, …), and
//!   ZWJ after an emoji, a skin tone or a variation selector;
//! - LRM and RLM beside a right-to-left letter;
//! - a variation selector after anything but a letter or white space; after a digit, `#` or `*` only the two
//!   that choose between text and emoji;
//! - an ideographic variation selector after an ideograph.
//!
//! Everything else is rare enough to need an approval. The flags of England, Scotland and Wales are written
//! with tags, the best known way to hide text: so those three need one too.

/// The first hidden character.
pub fn find(text: &str) -> Option<char> {
    // Nearly every definition is ASCII.
    if text.is_ascii() && !text.bytes().any(is_obeyed_byte) {
        return None;
    }
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(it) = rest.next() {
        if is_hidden(it) && !has_its_place(it, before, rest.peek().copied()) {
            return Some(it);
        }
        before = Some(it);
    }
    None
}

/// Whether a character is invisible, regardless of its context.
pub fn is_hidden(it: char) -> bool {
    match it {
        '\t' | '\n' | '\r' => false,
        it if it.is_control() => true,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Escapes every hidden character as `\u{…}`, and line ends too.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            '\n' | '\r' | '\t' => out.extend(it.escape_default()),
            it if is_hidden(it) => out.extend(it.escape_unicode()),
            it => out.push(it),
        }
    }
    out
}

/// Equivalent JSON with every hidden character as `\uXXXX`.
pub fn escape_json(text: String) -> String {
    if !text.chars().any(|it| !it.is_ascii() && is_hidden(it)) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for it in text.chars() {
        match !it.is_ascii() && is_hidden(it) {
            // Valid JSON has none outside its strings.
            true => {
                for unit in it.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => out.push(it),
        }
    }
    out
}

fn has_its_place(it: char, before: Option<char>, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match it {
        // Two in a row mean nothing to a reader.
        '\u{200c}' => joins(before),
        '\u{200d}' => joins(before) || (is_pictorial(before) && after.is_some_and(is_pictorial)),
        '\u{200e}' | '\u{200f}' => {
            !is_hidden(before)
                && !after.is_some_and(is_hidden)
                && (is_rtl(before) || after.is_some_and(is_rtl))
        }
        '\u{fe0e}' | '\u{fe0f}' => {
            !is_hidden(before)
                && !before.is_whitespace()
                && (before.is_ascii_digit() || "#*".contains(before) || !before.is_ascii())
                && !before.is_alphabetic()
        }
        '\u{fe00}'..='\u{fe0d}' => {
            !is_hidden(before)
                && !before.is_ascii()
                && !before.is_whitespace()
                && (!before.is_alphabetic() || is_ideograph(before))
        }
        '\u{180b}'..='\u{180f}' => matches!(before, '\u{1820}'..='\u{18aa}'),
        '\u{e0100}'..='\u{e01ef}' => is_ideograph(before),
        _ => false,
    }
}

/// Letters and signs of scripts in which joiners change the rendering.
fn joins(it: char) -> bool {
    !is_hidden(it)
        && matches!(it,
            '\u{600}'..='\u{7ff}' | '\u{840}'..='\u{8ff}' | '\u{900}'..='\u{dff}'
            | '\u{f00}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{1b00}'..='\u{1bff}'
            | '\u{a840}'..='\u{a87f}' | '\u{a980}'..='\u{a9df}' | '\u{fb50}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefc}' | '\u{11000}'..='\u{11fff}')
}

/// Emoji, and what follows one in a sequence.
fn is_pictorial(it: char) -> bool {
    matches!(it,
        '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}'
        | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

fn is_rtl(it: char) -> bool {
    matches!(it,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
        && !is_hidden(it)
}

fn is_ideograph(it: char) -> bool {
    matches!(it,
        '\u{2e80}'..='\u{2fdf}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn is_obeyed_byte(it: u8) -> bool {
    it == 0x7f || (it < 0x20 && !b"\t\n\r".contains(&it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_found() {
        for (text, found) in [
            ("a\u{1b}[2J", '\u{1b}'),
            ("a\0", '\0'),
            ("\u{9b}31m", '\u{9b}'),
            ("abc\u{202e}cba", '\u{202e}'),
            ("\u{2066}x\u{2069}", '\u{2066}'),
            ("Sends.\u{e0053}\u{e0065}\u{e006e}\u{e0064}", '\u{e0053}'),
            ("in\u{200b}visible", '\u{200b}'),
            ("in\u{200d}visible", '\u{200d}'),
            ("in\u{200c}visible", '\u{200c}'),
            ("left\u{200e}", '\u{200e}'),
            ("soft\u{ad}hyphen", '\u{ad}'),
            ("\u{feff}begins", '\u{feff}'),
            ("a\u{fe0f}", '\u{fe0f}'),
            ("❤\u{fe0f}\u{fe0e}", '\u{fe0e}'),
            ("😀\u{fe01}\u{fe02}", '\u{fe02}'),
            ("😀\u{e0101}", '\u{e0101}'),
            ("ب\u{200d}\u{200d}", '\u{200d}'),
            ("😀\u{200d} and more", '\u{200d}'),
            ("\u{3164}", '\u{3164}'),
            ("word\u{2060}joiner", '\u{2060}'),
            ("\u{200d}first", '\u{200d}'),
            ("line\u{2028}line", '\u{2028}'),
        ] {
            assert_eq!(find(text), Some(found), "{}", escape(text));
        }
    }

    #[test]
    fn honest_text_of_many_scripts_passes() {
        for text in [
            "Sends a mail.\n\tTwo lines.\r\n",
            "Größe, naïve, 日本語, 한국어, Ελληνικά, Кириллица",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष and क\u{94d}\u{200c}ष",
            "ශ\u{dca}\u{200d}රී ලංකා",
            "family 👨\u{200d}👩\u{200d}👧\u{200d}👦, 🏳\u{fe0f}\u{200d}🌈, 👩🏽\u{200d}💻, ❤\u{fe0f}",
            "keys 1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}",
            "葛\u{e0100}飾",
            "עברית\u{200f}!",
            "non\u{a0}breaking and thin\u{2009}spaces",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn escaped_text_is_all_visible() {
        let text = "a\u{202e}b\u{e0041}\u{1b}\n👩\u{200d}💻";
        assert_eq!(escape(text), "a\\u{202e}b\\u{e0041}\\u{1b}\\n👩\\u{200d}💻");
        assert!(!escape(text).chars().any(is_hidden));
        let json = serde_json::to_string(text).unwrap();
        let shown = escape_json(json.clone());
        assert!(shown.contains("\\u202e") && shown.contains("\\udb40\\udc41"), "{shown}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(&json));
    }
}
