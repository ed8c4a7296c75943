//! A position in a stream ⇄ an event id that a client cannot forge.

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

    /// The bytes that the tag covers, besides the session's secret.
    pub fn tagged(stream: u64, place: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&stream.to_be_bytes());
        bytes[8..].copy_from_slice(&place.to_be_bytes());
        bytes
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
        out.reserve(3 * 16 + 2);
        hex(self.stream, 1, out);
        out.push(b'-');
        hex(self.place, 1, out);
        out.push(b'-');
        hex(self.tag, 16, out);
    }
}

fn hex(number: u64, least: u32, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (16 - number.leading_zeros() / 4).max(least);
    out.extend((0..digits).rev().map(|at| DIGITS[(number >> (4 * at)) as usize & 15]));
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
        for other in
            ["3-1F-0000000000000007", "03-1f-0000000000000007", "3-1f-7", "3-1f", "+3-1f-7", ""]
        {
            assert_eq!(EventId::parse(other), None, "{other}");
        }
    }
}
