//! A buffer: chunks in, slices out. Bytes move at most once, however many texts a chunk holds.

use std::ops::Range;

use crate::spares;

/// Capacity kept while the buffer is empty.
const KEEP: usize = 256 << 10;
/// Room beyond the longest text for its framing: a header block, a line break.
const MARGIN: usize = 4 << 10;

/// Bytes that were read; those before `start` are consumed.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    ceiling: usize,
}

impl Buffer {
    pub(super) fn new(limit: usize) -> Self {
        Self { ceiling: limit.saturating_add(MARGIN), ..Self::default() }
    }

    /// Room for `chunk` more bytes. Grows by doubling, up to what one text may take, or into memory that was kept.
    pub(super) fn space(&mut self, chunk: usize) -> &mut Vec<u8> {
        if self.start >= self.bytes.len() {
            self.clear();
            if self.bytes.capacity() > KEEP {
                self.bytes.shrink_to(KEEP);
            }
        }
        if self.bytes.capacity() - self.bytes.len() < chunk {
            // From here `start` is 0 until a text is complete: an unfinished text moves only once.
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if capacity - length < chunk {
            let most = self.ceiling.saturating_add(chunk);
            let doubled = capacity.saturating_mul(2).min(most);
            let size = doubled.max(length + chunk);
            spares::grow(&mut self.bytes, size, size..=most);
        }
        &mut self.bytes
    }

    /// The unconsumed bytes.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Consumes `count` bytes and returns their range, valid until the next [`Buffer::space`].
    pub(super) fn consume(&mut self, count: usize) -> Range<usize> {
        let end = (self.start + count).min(self.bytes.len());
        let range = self.start.min(end)..end;
        self.start = end;
        range
    }

    /// Skips a byte order mark; `false` if more bytes are needed to decide.
    pub(super) fn skip_mark(&mut self) -> bool {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let rest = self.rest();
        if rest.len() < MARK.len() && MARK.starts_with(rest) {
            return false;
        }
        if rest.starts_with(MARK) {
            self.consume(MARK.len());
        }
        true
    }

    pub(super) fn lend(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Gives up consumed bytes together with the allocation, if that is too large to be kept and holds nothing else.
    pub(super) fn give(&mut self, range: Range<usize>) -> Option<Vec<u8>> {
        if self.bytes.capacity() <= KEEP || self.start < self.bytes.len() {
            return None;
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        self.start = 0;
        bytes.truncate(range.end);
        bytes.drain(..range.start);
        Some(bytes)
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }
}
