//! W3C Trace Context: `traceparent` and `tracestate` ⇄ ids.

use std::fmt;

/// The fields of a `traceparent`: trace id, parent span id and flags.
///
/// ```
/// # use trunkline_wire::trace::Traceparent;
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let parent = Traceparent::parse(text).unwrap();
/// assert!(parent.is_sampled());
/// assert_eq!(parent.to_string(), text);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traceparent {
    /// The trace id; not zero.
    pub trace: u128,
    /// The caller's span id; not zero.
    pub span: u64,
    /// [`Self::SAMPLED`] and [`Self::RANDOM`].
    pub flags: u8,
}

impl Traceparent {
    /// The flag of a trace that the caller records.
    pub const SAMPLED: u8 = 1;
    /// The flag of a random trace id.
    pub const RANDOM: u8 = 2;

    /// Parses a `traceparent`; `None` if it is invalid.
    ///
    /// Later versions begin like version 00 and may append fields. Unknown flags are not passed on.
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_at_checked(LENGTH)?;
        let mut parts = head.split('-');
        let mut part = |digits: usize| {
            let part = parts.next().filter(|it| it.len() == digits)?;
            let is_hex = part.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
            u128::from_str_radix(part, 16).ok().filter(|_| is_hex)
        };
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let is_whole = rest.is_empty() || (version != 0 && rest.starts_with('-'));
        let is_good = version != 0xff && is_whole && trace != 0 && span != 0;
        // The parts are as wide as their types.
        let flags = flags as u8 & (Self::SAMPLED | Self::RANDOM);
        is_good.then_some(Self { trace, span: span as u64, flags })
    }

    /// Whether the caller records the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }
}

/// In the form of version 00.
impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// Whether a text is a valid `tracestate`: not empty, printable ASCII, within the limits of the
/// specification.
pub fn is_tracestate(text: &str) -> bool {
    text.len() <= LONGEST_STATE
        && text.contains('=')
        && text.split(',').count() <= MOST_STATES
        && text.bytes().all(|it| (0x20..0x7f).contains(&it))
}

/// The length of a version 00 `traceparent`.
const LENGTH: usize = 55;
const LONGEST_STATE: usize = 512;
const MOST_STATES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_was_read_is_written_again() {
        let parent = Traceparent::parse(GOOD).unwrap();
        assert_eq!((parent.span, parent.flags), (0x00f0_67aa_0ba9_02b7, 1));
        assert_eq!(parent.to_string(), GOOD);
        for rest in ["", "-what-comes-then"] {
            let later = format!("01{}{rest}", &GOOD[2..]);
            assert_eq!(Traceparent::parse(&later), Some(parent), "{later}");
        }
        let unknown = Traceparent::parse(&GOOD.replace("-01", "-ff")).unwrap();
        assert_eq!(unknown.flags, Traceparent::SAMPLED | Traceparent::RANDOM);
    }

    #[test]
    fn what_is_wrong_is_none() {
        for (from, to) in [
            (GOOD, ""),
            ("00-4bf", "00-4BF"),
            ("4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000000000"),
            ("00f067aa0ba902b7", "0000000000000000"),
            ("b7-01", "b7-01-more"),
            ("b7-01", "b7-1"),
            ("00-4b", "ff-4b"),
            ("00-4b", "00-+b"),
            ("b7-01", "b7-0é"),
        ] {
            assert_eq!(Traceparent::parse(&GOOD.replacen(from, to, 1)), None, "{to}");
        }
    }

    #[test]
    fn a_state_has_members_and_limits() {
        assert!(is_tracestate("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
        let many = vec!["a=1"; 33].join(",");
        for bad in ["", "a", "a=\n", "a=é", &many, &format!("a={}", "x".repeat(511))] {
            assert!(!is_tracestate(bad), "{bad}");
        }
    }
}
