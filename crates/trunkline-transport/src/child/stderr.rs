//! A child's stderr → its last lines, safe to show, in bounded memory.

use std::collections::VecDeque;
use std::fmt;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::command::OnLine;
use crate::limits::Limits;

/// The last lines a child wrote to stderr. Clones share them.
#[derive(Clone)]
pub struct Stderr {
    tail: Arc<Mutex<Tail>>,
    line_limit: usize,
}

#[derive(Debug)]
struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
    max_lines: usize,
    max_bytes: usize,
}

impl Stderr {
    pub(super) fn new(limits: &Limits) -> Self {
        let (max_lines, max_bytes) = (limits.stderr_lines, limits.stderr_bytes);
        let tail = Tail { lines: VecDeque::new(), bytes: 0, max_lines, max_bytes };
        Self { tail: Arc::new(Mutex::new(tail)), line_limit: limits.log_line }
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.lock(|tail| tail.lines.iter().cloned().collect())
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.lock(|tail| tail.lines.is_empty())
    }

    /// Reads until the child closes its end. An incomplete line is not shown.
    pub(super) async fn read(self, mut pipe: pipe::Receiver, on_line: Option<OnLine>) {
        let mut lines = Lines { partial: Vec::new(), limit: self.line_limit, is_cut: false };
        let mut chunk = vec![0; 16 << 10];
        let mut keep = |line: String| {
            if let Some(on_line) = &on_line {
                on_line(&line);
            }
            self.lock(|tail| tail.push(line));
        };
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            lines.feed(&chunk[..count], &mut keep);
        }
        if !lines.partial.is_empty() {
            keep(lines.take());
        }
    }

    fn lock<T>(&self, act: impl FnOnce(&mut Tail) -> T) -> T {
        act(&mut self.tail.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Display for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().fmt(f)
    }
}

impl Tail {
    fn push(&mut self, line: String) {
        self.bytes += line.len();
        self.lines.push_back(line);
        // The newest line stays even if it alone exceeds the limit: it is the most informative.
        while self.lines.len() > self.max_lines
            || (self.bytes > self.max_bytes && self.lines.len() > 1)
        {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len());
        }
    }
}

/// Splits chunks into lines, keeping no more of a line than is shown.
struct Lines {
    partial: Vec<u8>,
    limit: usize,
    is_cut: bool,
}

impl Lines {
    fn feed(&mut self, chunk: &[u8], keep: &mut impl FnMut(String)) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let room = self.limit.saturating_sub(self.partial.len()).min(text.len());
            self.partial.extend_from_slice(&text[..room]);
            self.is_cut |= room < text.len();
            if text.len() < part.len() {
                keep(self.take());
            }
        }
    }

    fn take(&mut self) -> String {
        let bytes = std::mem::take(&mut self.partial);
        let is_cut = std::mem::take(&mut self.is_cut);
        escape(bytes.strip_suffix(b"\r").unwrap_or(&bytes), self.limit, is_cut)
    }
}

/// Makes text safe for a terminal and a log: control characters and bidirectional overrides are
/// escaped. At most `limit` bytes, then `…`.
fn escape(bytes: &[u8], limit: usize, is_cut: bool) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len().min(limit));
    for character in text.chars() {
        let start = out.len();
        if is_unsafe(character) {
            let _ = write!(out, "{}", character.escape_default());
        } else {
            out.push(character);
        }
        if out.len() > limit {
            out.truncate(start);
            out.push('…');
            return out;
        }
    }
    if is_cut {
        out.push('…');
    }
    out
}

fn is_unsafe(character: char) -> bool {
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    character.is_control() || turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines { partial: Vec::new(), limit, is_cut: false };
        let mut out = Vec::new();
        chunks.iter().for_each(|chunk| lines.feed(chunk, &mut |line| out.push(line)));
        out
    }

    #[test]
    fn lines_are_joined_across_chunks_and_cut_at_the_limit() {
        assert_eq!(
            lines(9, &[b"ab", b"c\r\n\n", b"0123456789\n", b"x"]),
            ["abc", "", "012345678…"]
        );
        assert_eq!(lines(4, &[b"0123", b"45", b"67\nok\n"]), ["0123…", "ok"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        let hostile = "\u{1b}[2J\ta\u{202e}b\0\u{85}é\n";
        assert_eq!(lines(99, &[hostile.as_bytes()]), [r"\u{1b}[2J\ta\u{202e}b\u{0}\u{85}é"]);
        assert_eq!(lines(99, &[b"\xff\n"]), ["\u{fffd}"]);
        assert_eq!(lines(8, &[b"\x1b\x1b\x1b\n"]), [r"\u{1b}…"]);
    }

    #[test]
    fn only_the_last_lines_are_remembered() {
        let limits = Limits::default().stderr_lines(3).stderr_bytes(10);
        let stderr = Stderr::new(&limits);
        for line in ["a", "b", "c", "d"] {
            stderr.lock(|tail| tail.push(line.into()));
        }
        assert_eq!(stderr.lines(), ["b", "c", "d"]);
        stderr.lock(|tail| tail.push("123456789".into()));
        assert_eq!(stderr.to_string(), "d\n123456789");
        stderr.lock(|tail| tail.push("x".repeat(50)));
        assert_eq!(stderr.lines(), ["x".repeat(50)]);
    }
}
