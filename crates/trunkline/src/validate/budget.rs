//! The budget of a check, in about nanoseconds, so that no schema or value makes one take long:
//! clients run the schemas of remote servers.

use std::time::Instant;

use regex_lite::{Regex, RegexBuilder};

use super::render::cut;

/// The remaining budget of one check.
pub(super) struct Work {
    left: usize,
    /// Why the budget is spent, if it is not the sum of all work.
    pub(super) why: Option<String>,
}

impl Work {
    pub(super) fn new() -> Self {
        Self { left: MOST_WORK, why: None }
    }

    /// Ends the check: its result is void. A `not` must not turn that into a match.
    pub(super) fn none(&mut self) {
        self.left = 0;
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    pub(super) fn spend(&mut self, cost: usize) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Whether a text matches; `false` once the budget is spent.
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
        // Most patterns cost far less than the worst case of their size, which no long list of
        // names could afford. So the elapsed time is charged, capped at the worst case in case this
        // thread was preempted.
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

/// A pattern, and its compiled size in bytes.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    regex: Regex,
    pub(super) size: usize,
}

impl Pattern {
    /// Compiles a pattern, or says what is wrong with it: "is too large".
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let build = |size| RegexBuilder::new(text).size_limit(size).build();
        let regex = build(MOST_SIZE).map_err(|why| match why.to_string() {
            why if why.contains("size limit") => format!(
                "is too large: written out, with all its repetitions, it has more than \
                 {MOST_SIZE} bytes"
            ),
            why => format!("cannot be used: {why}"),
        })?;
        // The crate tells only whether a limit is exceeded, so the size is found by binary search.
        // It may be a third too large.
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

/// The size limit of all patterns of one schema.
pub(super) const MOST_PATTERNS: usize = 1 << 20;
/// Entering a schema.
pub(super) const COST_OF_NODE: usize = 15;
/// A rule with one comparison.
pub(super) const COST_OF_RULE: usize = 6;
/// A lookup or insertion of a name.
pub(super) const COST_OF_NAME: usize = 40;
/// Recording a fault.
pub(super) const COST_OF_FAULT: usize = 250;

const MOST_WORK: usize = 25_000_000;
/// The longest text that is matched against a pattern.
const MOST_MATCHED: usize = 1 << 17;
const COST_OF_MATCH: usize = 150;
/// Debug builds are slower, and must not decide otherwise.
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
