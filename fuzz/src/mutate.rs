//! Seeds → inputs like them, without coverage as a guide: what plain `cargo test` fuzzes with.

/// Makes inputs out of seeds and words. The same number gives the same inputs.
#[derive(Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// One that begins here.
    pub fn new(number: u64) -> Self {
        Self { state: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// A seed with some changes, at most 8 KiB long.
    pub fn next(&mut self, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
        let mut data = self.pick(seeds).cloned().unwrap_or_default();
        for _ in 0..=self.below(6) {
            self.change(&mut data, seeds, words);
        }
        data.truncate(LONGEST);
        data
    }

    fn change(&mut self, data: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&str]) {
        let place = self.below(data.len() + 1);
        let length = self.below(16).min(data.len() - place);
        match self.below(9) {
            0 if place < data.len() => data[place] ^= 1 << self.below(8),
            1 if place < data.len() => data[place] = self.below(256) as u8,
            2 => {
                data.drain(place..place + length);
            }
            3 => {
                let part = data[place..place + length].to_vec();
                let to = self.below(data.len() + 1);
                data.splice(to..to, part);
            }
            4 => {
                let odd = *self.pick(ODD).unwrap_or(&0);
                data.insert(place, odd);
            }
            5 | 6 => {
                let word = self.pick(words).copied().unwrap_or_default();
                let end = if self.below(2) == 0 { place } else { place + length };
                data.splice(place..end, word.bytes());
            }
            7 => {
                let other = self.pick(seeds).cloned().unwrap_or_default();
                let from = self.below(other.len() + 1);
                data.truncate(place);
                data.extend_from_slice(&other[from..]);
            }
            _ => data.truncate(place),
        }
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.below(from.len())) }
    }

    fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % end.max(1)
    }
}

/// The longest input.
const LONGEST: usize = 8 << 10;
/// Bytes that readers stumble over.
const ODD: &[u8] = b"\0\n\r\t \"'\\{}[]:,;%/?#.\x7f\x80\xc3\xff0";
