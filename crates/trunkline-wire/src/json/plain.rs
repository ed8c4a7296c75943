//! A string → how far it stands as it is, without escapes. Many bytes are looked at together.

/// Where the first byte is, from `start` on, that stands in no string as it is: a quote, a backslash or
/// a control character. The first words are looked at in place: most strings are no longer.
#[inline(always)]
pub(super) fn end_of_plain(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let (words, _) = rest.as_chunks::<WORD>();
    let mut at = start;
    for word in words.iter().take(FEW) {
        let found = special_bytes(u64::from_le_bytes(*word));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    if words.len() > FEW { end_of_long(bytes, at) } else { end_of_tail(bytes, at) }
}

/// The same byte by byte.
fn end_of_tail(bytes: &[u8], start: usize) -> usize {
    let tail = bytes.get(start..).unwrap_or_default();
    start + tail.iter().take_while(|it| !is_special(**it)).count()
}

/// The same in blocks that the compiler turns into vectors, then word by word.
#[inline(never)]
fn end_of_long(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let words = rest.as_chunks::<WORD>().0;
    let is_plain = |block: &&[[u8; WORD]; BLOCK]| {
        block.iter().fold(0, |found, it| found | special_bytes(u64::from_le_bytes(*it))) == 0
    };
    let blocks = words.as_chunks().0.iter().take_while(is_plain).count();
    let mut at = blocks * BLOCK * WORD;
    for word in &words[blocks * BLOCK..] {
        let found = special_bytes(u64::from_le_bytes(*word));
        if found != 0 {
            return start + at + found.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    end_of_tail(bytes, start + at)
}

const fn is_special(byte: u8) -> bool {
    // With this bit turned, a quote comes right after the control characters.
    (byte ^ 0x02 <= b' ') | (byte == b'\\')
}

/// A bit for each of eight bytes that is special; those above the lowest may be wrong.
#[inline(always)]
const fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    // With this bit turned, a quote comes right after the control characters.
    let low = word ^ (ONES * 0x02);
    let low = low.wrapping_sub(ONES * 0x21) & !low;
    let backslash = word ^ (ONES * b'\\' as u64);
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (low | backslash) & HIGH
}

/// The bytes that are looked at together.
const WORD: usize = 8;
/// The words of a string that are looked at before it is taken for a long one.
const FEW: usize = 4;
/// The words of a block.
const BLOCK: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_special_byte_is_found_wherever_it_stands() {
        for length in (0..100).chain(220..400) {
            let plain = "é".repeat(length / 2) + &"x".repeat(length % 2);
            assert_eq!(end_of_plain(plain.as_bytes(), 0), plain.len());
            for special in ["\"", "\\", "\n", "\u{0}", "\u{1f}"] {
                let text = format!("{plain}{special}{plain}\"");
                assert_eq!(end_of_plain(text.as_bytes(), 0), plain.len(), "{text:?}");
            }
        }
    }
}
