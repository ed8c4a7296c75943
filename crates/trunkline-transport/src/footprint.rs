//! Freed memory that the allocator keeps → returned to the system.
//!
//! glibc's allocator returns free memory at the end of its heaps, but keeps what is free in the middle.
//! Large blocks, which it maps separately at first, come from the heaps as well once one was freed.
//! After one flood a process would stay large for ever.
//!
//! What long texts took is kept for the next ones, for two seconds at most: `shelf`.

mod shelf;

use std::time::Duration;

use crate::child;
use shelf::Keeping;

/// Returns memory for as long as it is polled: while the process is larger than it was, at a
/// millisecond or two each time.
pub async fn keep_small() {
    child::keep_apart();
    let Some(now) = resident() else { return };
    let (mut watch, kept, mut waited) = (Watch::new(now), Keeping::begin(), Duration::ZERO);
    loop {
        tokio::time::sleep(OFTEN).await;
        kept.forget();
        waited += OFTEN;
        if waited < watch.pause {
            continue;
        }
        waited = Duration::ZERO;
        let Some(before) = resident() else { return };
        if watch.is_due(before) {
            let _ = tokio::task::spawn_blocking(child::trim).await;
            watch.trimmed(before, resident().unwrap_or(before));
        }
    }
}

/// Decides when to return memory. How much is free cannot be observed: so it tries while the process is
/// larger than it was, with backoff if that frees nothing.
struct Watch {
    /// The smallest size of the process, or a size too small to matter.
    least: usize,
    pause: Duration,
}

impl Watch {
    fn new(now: usize) -> Self {
        Self { least: now.max(LITTLE), pause: OFTEN }
    }

    /// Whether it is so much larger that a part of it may be free.
    fn is_due(&mut self, now: usize) -> bool {
        self.least = self.least.min(now.max(LITTLE));
        let is_due = now > self.least + GROWTH;
        if !is_due {
            self.pause = OFTEN;
        }
        is_due
    }

    fn trimmed(&mut self, before: usize, after: usize) {
        let has_freed_memory = before.saturating_sub(after) > GROWTH / 8;
        self.pause = if has_freed_memory { OFTEN } else { (self.pause * 2).min(SELDOM) };
    }
}

/// The resident set size in bytes.
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    // On machines with larger pages the trigger is a little later.
    Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}

const OFTEN: Duration = Duration::from_secs(2);
const SELDOM: Duration = Duration::from_secs(8);
const LITTLE: usize = 24 << 20;
const GROWTH: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_by_what_is_larger_than_it_was() {
        let mut watch = Watch::new(40 << 20);
        assert!(!watch.is_due(48 << 20));
        assert!(watch.is_due((48 << 20) + 1));
        assert!(!watch.is_due(20 << 20), "it has become smaller by itself");
        assert!(!watch.is_due(32 << 20), "that is little");
        assert!(watch.is_due(33 << 20));
        for pause in [4, 8, 8] {
            watch.trimmed(33 << 20, 33 << 20);
            assert_eq!(watch.pause.as_secs(), pause, "all of it is in use");
        }
        watch.trimmed(60 << 20, 33 << 20);
        assert_eq!(watch.pause, OFTEN);
    }

    #[test]
    fn memory_freed_in_the_middle_of_the_heap_is_returned() {
        let (before, mut kept) = (resident().unwrap(), Vec::new());
        // Every second block stays, so nothing is free at the end of the heap.
        let pieces: Vec<Vec<u8>> = (0..64 << 10).map(|_| vec![1; 2 << 10]).collect();
        for (at, piece) in pieces.into_iter().enumerate() {
            if at % 64 == 0 {
                kept.push(piece);
            }
        }
        child::trim();
        let after = resident().unwrap();
        assert!(after < before + (64 << 20), "{} MiB", (after - before) >> 20);
        assert_eq!(kept.len(), 1 << 10);
    }
}
