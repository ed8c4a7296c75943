//! The totals that all processes share: the last number, entries and bytes.
//!
//! The file is not synced. After a crash of the machine it may be old or torn, so opening the folder
//! counts again, and numbers continue from the clock: all earlier ones are in the past.

use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use super::locks::Lock;
use super::record::checksum;

pub(super) struct Ledger {
    lock: Lock,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// The last number assigned.
    pub(super) last: u64,
    /// The number of files. After a crash it may be too high, never too low.
    pub(super) entries: u64,
    /// Their total length.
    pub(super) bytes: u64,
}

impl Totals {
    /// A number greater than any before, in any process.
    pub(super) fn next(&mut self, now: Duration) -> u64 {
        let micros = u64::try_from(now.as_micros()).unwrap_or(0);
        self.last = micros.max(self.last + 1);
        self.last
    }

    pub(super) fn add(&mut self, entries: i64, bytes: i64) {
        self.entries = self.entries.saturating_add_signed(entries);
        self.bytes = self.bytes.saturating_add_signed(bytes);
    }
}

impl Ledger {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { lock: Lock::open(path)? })
    }

    /// Gives `change` exclusive access to the totals.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Totals) -> T) -> io::Result<T> {
        let mut locked = self.lock.lock()?;
        let file = locked.file();
        let mut bytes = Vec::with_capacity(LENGTH);
        file.rewind()?;
        file.take(LENGTH as u64).read_to_end(&mut bytes)?;
        let before = decode(&bytes).unwrap_or_default();
        let mut totals = before;
        let answer = change(&mut totals);
        if totals != before {
            file.rewind()?;
            file.write_all(&encode(&totals))?;
        }
        Ok(answer)
    }
}

fn encode(totals: &Totals) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [totals.last, totals.entries, totals.bytes].iter().flat_map(|n| n.to_le_bytes()).collect();
    bytes.extend(checksum(&bytes).to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Totals> {
    let (numbers, _) = bytes.as_chunks::<8>();
    let &[last, entries, total, sum] = numbers else { return None };
    let totals = Totals {
        last: u64::from_le_bytes(last),
        entries: u64::from_le_bytes(entries),
        bytes: u64::from_le_bytes(total),
    };
    (checksum(&bytes[..LENGTH - 8]).to_le_bytes() == sum).then_some(totals)
}

const LENGTH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_come_back_and_torn_ones_do_not() {
        let totals = Totals { last: 1, entries: 2, bytes: 3 };
        let bytes = encode(&totals);
        assert_eq!(decode(&bytes), Some(totals));
        assert_eq!(decode(&bytes[..31]), None);
        assert_eq!(decode(&[0; LENGTH]), None);
    }

    #[test]
    fn numbers_grow_with_a_stopped_clock_and_a_lost_ledger() {
        let mut totals = Totals::default();
        let now = Duration::from_secs(5);
        let first = totals.next(now);
        let second = totals.next(now);
        assert!(second > first);
        let mut lost = Totals::default();
        assert!(lost.next(now + Duration::from_secs(1)) > second);
    }
}
