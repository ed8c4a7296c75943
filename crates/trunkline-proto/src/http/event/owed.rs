//! The ids of requests ⇄ the last part of an event id.

/// The requests whose answers a stream owes, as text that fits into an event id: short, and of letters, digits
/// and `-._~%,` only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owed(String);

impl Owed {
    /// Names requests by their ids as JSON. Those that do not fit are left out.
    pub fn of(ids: &[String]) -> Self {
        let mut text = String::new();
        for id in ids {
            let before = text.len();
            if before > 0 {
                text.push(',');
            }
            // Most ids that do not fit need not be encoded to see it.
            if id.len() <= LONGEST {
                encode(id, &mut text);
            }
            if id.len() > LONGEST || text.len() > LONGEST {
                text.truncate(before);
            }
        }
        Self(text)
    }

    /// Parses what [`Self::text`] wrote; another spelling is nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let owed = Self(text.to_owned());
        (!text.is_empty() && Self::of(&owed.ids()?) == owed).then_some(owed)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The ids, as JSON.
    pub fn to_ids(&self) -> Vec<String> {
        self.ids().unwrap_or_default()
    }

    fn ids(&self) -> Option<Vec<String>> {
        self.0.split(',').filter(|it| !it.is_empty()).map(decode).collect()
    }
}

/// Percent-encodes all but the unreserved characters (RFC 3986 §2.3).
fn encode(id: &str, out: &mut String) {
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                out.push('%');
                out.extend([byte >> 4, byte & 15].map(|it| char::from(DIGITS[usize::from(it)])));
            }
        }
    }
}

fn decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// The most bytes of the text: enough for a UUID, or a batch with small numbers.
const LONGEST: usize = 64;
const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use super::*;

    fn owed(ids: &[&str]) -> Owed {
        Owed::of(&ids.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn ids_of_any_form_come_back_and_are_visible_ascii() {
        let uuid = r#""67e55044-10b1-426f-9247-bb680e5fe0c8""#;
        for ids in [&["7"][..], &["-1", "0"], &[uuid], &[r#""é,\n%""#, "2"], &[r#""""#], &[]] {
            let owed = owed(ids);
            assert_eq!(owed.to_ids(), ids);
            assert!(owed.text().bytes().all(|it| it.is_ascii_graphic()), "{}", owed.text());
            assert_eq!(Owed::parse(owed.text()), Some(owed).filter(|_| !ids.is_empty()));
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let (long, quotes) = ("1".repeat(65), "\"".repeat(30));
        assert_eq!(owed(&[&long]), Owed::default());
        assert_eq!(owed(&["1", &long, &quotes, "2"]).to_ids(), ["1", "2"]);
        let all: Vec<_> = (100..200).map(|it: u32| it.to_string()).collect();
        let some = Owed::of(&all);
        assert_eq!((some.text().len(), some.to_ids()), (63, all[..16].to_vec()));
    }

    #[test]
    fn a_list_has_one_spelling() {
        for other in
            ["", ",", "1,", ",1", "1,,2", "%31", "%2", "%2g", "%+1", "%", "%FF", "\"x\"", "a b"]
        {
            assert_eq!(Owed::parse(other), None, "{other}");
        }
        assert_eq!(Owed::parse(&"1".repeat(65)), None);
    }
}
