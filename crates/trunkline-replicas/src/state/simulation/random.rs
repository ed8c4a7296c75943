//! Numbers that a seed determines.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(super) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True once in so many times.
    pub(super) fn once_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// A clock's rate.
    pub(super) fn rate(&mut self) -> f64 {
        0.9 + 0.2 * (self.below(1_001) as f64) / 1_000.0
    }
}
