//! Numbers that look random and are the same in every run.

/// A xorshift generator; its state is the seed, which must not be zero.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// A number below the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// The same for indices.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.below(sides as u64) as usize
    }

    /// One of these.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.roll(of.len())]
    }
}
