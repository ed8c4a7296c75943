//! An input → its parts, so that every input means something.

/// What of an input is still to be read.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// The next byte; 0 at the end.
    pub(crate) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// Everything up to the next `\0`, which is left out; all that is left if there is none.
    pub(crate) fn part(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let (part, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        part
    }

    /// The same as text, with what is no UTF-8 replaced.
    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.part()).into_owned()
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Cuts `data` into chunks whose lengths follow from `seed`: single bytes, and up to 40 at once.
pub(crate) fn chunks(data: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    let mut state = u32::from(seed).wrapping_mul(0x9e37_79b9) | 1;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let most = if seed == 0 { 1 } else { 40 };
        let length = (1 + state as usize % most).min(rest.len());
        let (chunk, tail) = rest.split_at(length);
        rest = tail;
        Some(chunk)
    })
}

/// Changes `genuine` as `edits` says: triples of a kind, a place and a byte.
pub(crate) fn edited(genuine: &str, edits: &[u8]) -> String {
    let mut bytes = genuine.as_bytes().to_vec();
    for edit in edits.chunks_exact(4) {
        let place = usize::from(u16::from_be_bytes([edit[1], edit[2]])) % (bytes.len() + 1);
        match edit[0] % 6 {
            0 if place < bytes.len() => bytes[place] = edit[3],
            1 => bytes.insert(place, edit[3]),
            2 if place < bytes.len() => {
                bytes.remove(place);
            }
            3 => bytes.truncate(place),
            4 if place < bytes.len() => bytes[place] ^= 1 << (edit[3] % 8),
            5 => {
                let part = bytes[place..].iter().take(usize::from(edit[3])).copied();
                let part: Vec<u8> = part.collect();
                bytes.extend(part);
            }
            _ => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
