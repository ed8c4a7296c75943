//! A position in a stream ⇄ an event id that a client cannot forge.
//!
//! Where replicas share sessions, an id also names the requests whose answers its stream owes: whoever takes the
//! session over can then tell that they are lost, even if it knows nothing else of the stream.

mod owed;

pub use owed::Owed;

/// An event of a stream of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The stream.
    pub stream: u64,
    /// Its position there. Position 0 is the empty first event.
    pub place: u64,
    /// A tag that only the server that issued the id can compute.
    pub tag: u64,
}

impl EventId {
    /// Parses an id exactly as it was written; another spelling is another id.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-').map(|it| u64::from_str_radix(it, 16));
        let (Some(Ok(stream)), Some(Ok(place)), Some(Ok(tag))) =
            (parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let id = Self { stream, place, tag };
        (id.text() == text).then_some(id)
    }

    /// The same for an id that may name what its stream owes.
    pub fn parse_owing(text: &str) -> Option<(Self, Owed)> {
        match text.match_indices('-').nth(2) {
            None => Some((Self::parse(text)?, Owed::default())),
            Some((at, _)) => Some((Self::parse(&text[..at])?, Owed::parse(&text[at + 1..])?)),
        }
    }

    /// The id of an event after which its stream owes `owed`. `mac` computes a tag with the session's secret.
    pub fn issue(stream: u64, place: u64, owed: &Owed, mac: impl Fn(&[u8]) -> u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&stream.to_be_bytes());
        bytes[8..].copy_from_slice(&place.to_be_bytes());
        let tag = match owed.text() {
            "" => mac(&bytes),
            owed => mac(&[&bytes, owed.as_bytes()].concat()),
        };
        Self { stream, place, tag }
    }
}

impl EventId {
    /// The id as text.
    pub fn text(self) -> String {
        let mut text = Vec::new();
        self.write(&mut text);
        String::from_utf8(text).expect("digits are UTF-8")
    }

    /// Appends the text. Bypasses `Display`, which is several times slower.
    pub fn write(self, out: &mut Vec<u8>) {
        // From its end to its beginning, so that it is appended in one piece.
        let mut text = [b'-'; 3 * 16 + 2];
        let (rest, tag) = text.split_at_mut(2 * 16 + 2);
        let (high, low) = tag.split_at_mut(8);
        high.copy_from_slice(&eight_digits((self.tag >> 32) as u32));
        low.copy_from_slice(&eight_digits(self.tag as u32));
        let place = hex(self.place, rest, 2 * 16 + 1);
        let start = hex(self.stream, rest, place - 1);
        out.extend_from_slice(&text[start..]);
    }

    /// Appends the text, and what the stream owes if it owes anything.
    pub fn write_owing(self, owed: &Owed, out: &mut Vec<u8>) {
        self.write(out);
        if !owed.text().is_empty() {
            out.push(b'-');
            out.extend_from_slice(owed.text().as_bytes());
        }
    }
}

/// Writes a number that ends before `end`. Returns where it begins.
fn hex(mut number: u64, text: &mut [u8], end: usize) -> usize {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut at = end;
    loop {
        at -= 1;
        text[at] = DIGITS[(number & 15) as usize];
        number >>= 4;
        if number == 0 {
            return at;
        }
    }
}

/// The hexadecimal digits of a number, all at once: a tag has as many as fit.
fn eight_digits(number: u32) -> [u8; 8] {
    const ONES: u64 = u64::MAX / 255;
    let mut spread = u64::from(number);
    spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // Each byte holds a digit: one from ten on reaches the fifth bit with six more.
    let letters = (spread + 6 * ONES) >> 4 & ONES;
    let after_nine = u64::from(b'a' - b'9' - 1);
    (spread + u64::from(b'0') * ONES + after_nine * letters).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = EventId { stream: 3, place: 0x1f, tag: 7 };
        let text = id.text();
        assert_eq!(text, "3-1f-0000000000000007");
        assert_eq!(EventId::parse(&text), Some(id));
        for number in [0, 9, 10, 0x1234_5678_9abc_def0, 0xfedc_ba98_7654_3210, u64::MAX] {
            let id = EventId { stream: number, place: number, tag: number };
            assert_eq!(id.text(), format!("{number:x}-{number:x}-{number:016x}"));
        }
        for other in
            ["3-1F-0000000000000007", "03-1f-0000000000000007", "3-1f-7", "3-1f", "+3-1f-7", ""]
        {
            assert_eq!(EventId::parse(other), None, "{other}");
        }
    }

    /// Not a MAC, but it depends on every byte.
    fn mac(bytes: &[u8]) -> u64 {
        bytes.iter().fold(7, |sum: u64, it| sum.wrapping_mul(31).wrapping_add(u64::from(*it)))
    }

    #[test]
    fn an_id_names_what_its_stream_owes_and_its_tag_covers_that() {
        let owed = Owed::of(&["-7".to_owned(), "\"a-b\"".to_owned()]);
        let id = EventId::issue(3, 1, &owed, mac);
        let mut text = Vec::new();
        id.write_owing(&owed, &mut text);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, format!("{}--7,%22a-b%22", id.text()));
        assert_eq!(EventId::parse_owing(&text), Some((id, owed)));
        assert_eq!(EventId::parse(&text), None, "only replicas take such an id");
        let (id, owed) = EventId::parse_owing(&text.replace("-7", "-8")).unwrap();
        assert_ne!(EventId::issue(id.stream, id.place, &owed, mac), id);
    }

    #[test]
    fn an_id_that_owes_nothing_is_as_short_as_without_replicas() {
        let nothing = Owed::default();
        let id = EventId::issue(3, 1, &nothing, mac);
        let mut text = Vec::new();
        id.write_owing(&nothing, &mut text);
        assert_eq!(String::from_utf8(text).unwrap(), id.text());
        assert_eq!(EventId::parse_owing(&id.text()), Some((id, nothing)));
        assert_eq!(EventId::parse_owing(&format!("{}-", id.text())), None, "it has one spelling");
    }
}
