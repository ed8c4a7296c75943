//! What a check does → what it costs, in about nanoseconds, so that no schema and no value makes one
//! take long: the schemas of a remote server are run by its clients.

use std::time::Instant;

use regex_lite::{Regex, RegexBuilder};

use super::render::cut;

/// What is left of what one check may cost.
pub(super) struct Work {
    left: usize,
    /// Why there is nothing left, if it is not the sum of all.
    pub(super) why: Option<String>,
}

impl Work {
    pub(super) fn new() -> Self {
        Self { left: MOST_WORK, why: None }
    }

    /// No more work: what was begun comes to nothing. A `not` must not turn that into consent.
    pub(super) fn none(&mut self) {
        self.left = 0;
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    pub(super) fn spend(&mut self, cost: usize) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Whether a text matches; not if there is no telling any more.
    pub(super) fn matches(&mut self, pattern: &Pattern, text: &str) -> bool {
        if text.len() > MOST_MATCHED {
            let pattern = cut(pattern.regex.as_str());
            self.why = Some(format!(
                "has a text that is too long for the pattern `{pattern}`: {MOST_MATCHED} bytes are \
                 tried at most"
            ));
            self.none();
            return false;
        }
        // Most patterns cost far less than the most that one of their size can, and that much
        // nobody could afford for a long list of names. So what counts is the clock, which may run
        // on while we are not, but never beyond that most.
        let most = COST_OF_MATCH + (text.len() + 1) * pattern.size * 2 / 3;
        if self.left <= most {
            self.none();
            return false;
        }
        let start = Instant::now();
        let is_match = pattern.regex.is_match(text);
        let spent = usize::try_from(start.elapsed().as_nanos()).unwrap_or(usize::MAX) / SLOWNESS;
        self.spend(COST_OF_MATCH + spent.min(most));
        is_match
    }
}

/// A pattern, and how large it is when it is written out, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    regex: Regex,
    pub(super) size: usize,
}

impl Pattern {
    /// Reads a pattern, or says what is wrong with it: "is too large".
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let build = |size| RegexBuilder::new(text).size_limit(size).build();
        let regex = build(MOST_SIZE).map_err(|why| match why.to_string() {
            why if why.contains("size limit") => format!(
                "is too large: written out, with all its repetitions, it has more than \
                 {MOST_SIZE} bytes"
            ),
            why => format!("cannot be used: {why}"),
        })?;
        // Nobody tells how large it is, but up to where it is too large. A third more than it is
        // does no harm.
        let (mut low, mut high) = (0, SIZES.len() - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            match build(SIZES[middle]) {
                Ok(_) => high = middle,
                Err(_) => low = middle + 1,
            }
        }
        Ok(Self { regex, size: SIZES[low] })
    }

    pub(super) fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}

/// What the patterns of one schema may have together.
pub(super) const MOST_PATTERNS: usize = 1 << 20;
/// Entering a schema.
pub(super) const COST_OF_NODE: usize = 15;
/// A rule that looks at one thing.
pub(super) const COST_OF_RULE: usize = 6;
/// Finding a name among others, or putting one there.
pub(super) const COST_OF_NAME: usize = 40;
/// Noting a fault.
pub(super) const COST_OF_FAULT: usize = 250;

const MOST_WORK: usize = 25_000_000;
/// The longest text that is held against a pattern.
const MOST_MATCHED: usize = 1 << 17;
const COST_OF_MATCH: usize = 150;
/// A build that is not optimized is not to judge otherwise.
const SLOWNESS: usize = if cfg!(debug_assertions) { 16 } else { 1 };
const MOST_SIZE: usize = SIZES[SIZES.len() - 1];
const SIZES: [usize; 20] = [
    192,
    256,
    384,
    512,
    768,
    1 << 10,
    3 << 9,
    1 << 11,
    3 << 10,
    1 << 12,
    3 << 11,
    1 << 13,
    3 << 12,
    1 << 14,
    3 << 13,
    1 << 15,
    3 << 14,
    1 << 16,
    3 << 15,
    1 << 17,
];
