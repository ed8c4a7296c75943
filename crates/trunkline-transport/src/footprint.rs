//! What was freed and not given back → the system has it again.
//!
//! The allocator of glibc returns what is free at the end of its heaps, and keeps what is free in their
//! midst; and large pieces, which it maps apart at first, come from the heaps as well once one was freed.
//! A process that was flooded once would stay large for ever.

use std::time::Duration;

use crate::child;

/// Gives memory back as long as it is polled. It is done while the process is larger
/// than it was, and takes a millisecond or two.
pub async fn keep_small() {
    child::keep_apart();
    let Some(now) = resident() else { return };
    let mut watch = Watch::new(now);
    loop {
        tokio::time::sleep(watch.pause).await;
        let Some(before) = resident() else { return };
        if watch.is_due(before) {
            let _ = tokio::task::spawn_blocking(child::trim).await;
            watch.trimmed(before, resident().unwrap_or(before));
        }
    }
}

/// When memory is to be given back. How much of it is free cannot be seen from outside: it is asked for
/// while the process is larger than it was, ever more seldom if nothing comes of that.
struct Watch {
    /// What the process was at least, or what is little anyway.
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
        let came_to_something = before.saturating_sub(after) > GROWTH / 8;
        self.pause = if came_to_something { OFTEN } else { (self.pause * 2).min(SELDOM) };
    }
}

/// The bytes of the process that are in memory.
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    // Pages are larger on some machines: then it is done a little later.
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
    fn what_was_freed_in_the_midst_of_the_heap_is_given_back() {
        let (before, mut kept) = (resident().unwrap(), Vec::new());
        // Every second piece stays: nothing is free at the end.
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
