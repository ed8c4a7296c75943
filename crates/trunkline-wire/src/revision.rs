//! The five released revisions, the two eras they fall into, and sets of them.
//!
//! ```
//! use trunkline_wire::revision::{Era, Revision, Revisions};
//!
//! let ours = Revisions::ALL;
//! let theirs = Revisions::range(Revision::V2024_11_05, Revision::V2025_06_18);
//! assert_eq!(ours.common(theirs).newest(), Some(Revision::V2025_06_18));
//! assert!(theirs.of_era(Era::Stateless).is_empty());
//! ```

use std::fmt;
use std::str::FromStr;

/// A released revision of the MCP specification, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The names are the documentation.
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// The two kinds of conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` opens a session, which keeps state.
    Stateful,
    /// Every request carries its own context, and the server keeps no state.
    Stateless,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest revision of all.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision that begins with `initialize`.
    pub const LATEST_STATEFUL: Self = Self::V2025_11_25;

    /// Parses a revision as it is on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    /// The revision as it is on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era of this revision.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Stateless,
            _ => Era::Stateful,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is not one of the five revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRevision(pub String);

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Revision::ALL.map(Revision::as_str).join(", ");
        write!(f, "`{}` is not a released revision; choose one of {known}.", self.0)
    }
}

impl std::error::Error for UnknownRevision {}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Self::parse(text).ok_or_else(|| UnknownRevision(text.to_owned()))
    }
}

/// A set of revisions, such as those that one side speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revisions(u8);

impl Revisions {
    /// All five.
    pub const ALL: Self = Self(0b1_1111);
    /// None.
    pub const NONE: Self = Self(0);

    /// Just this one.
    pub const fn only(revision: Revision) -> Self {
        Self(1 << revision as u8)
    }

    /// Every revision from `oldest` to `newest`, both included.
    pub fn range(oldest: Revision, newest: Revision) -> Self {
        Revision::ALL.into_iter().filter(|it| (oldest..=newest).contains(it)).collect()
    }

    /// Whether `revision` is in the set.
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & (1 << revision as u8) != 0
    }

    /// Those of one era.
    pub const fn of_era(self, era: Era) -> Self {
        match era {
            Era::Stateless => Self(self.0 & Self::STATELESS),
            Era::Stateful => Self(self.0 & !Self::STATELESS),
        }
    }

    const STATELESS: u8 = {
        let (mut bits, mut at) = (0, 0);
        while at < Revision::ALL.len() {
            if matches!(Revision::ALL[at].era(), Era::Stateless) {
                bits |= Self::only(Revision::ALL[at]).0;
            }
            at += 1;
        }
        bits
    };

    /// The intersection.
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The newest one, if any.
    pub fn newest(self) -> Option<Revision> {
        self.iter().last()
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Oldest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |it| self.contains(*it))
    }
}

impl FromIterator<Revision> for Revisions {
    fn from_iter<I: IntoIterator<Item = Revision>>(revisions: I) -> Self {
        Self(revisions.into_iter().fold(0, |set, it| set | Self::only(it).0))
    }
}

impl fmt::Debug for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Revision::as_str)).finish()
    }
}
