//! A server's stdout → its lines.

use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::process::ChildStdout;

use memchr::memchr;

pub struct Lines {
    pub pipe: ChildStdout,
    buffer: Vec<u8>,
    /// Read and not yet handed out.
    unread: Range<usize>,
    /// Up to here `unread` holds no newline.
    searched: usize,
}

impl Lines {
    pub fn new(pipe: ChildStdout) -> Lines {
        Lines { pipe, buffer: vec![0; 1 << 20], unread: 0..0, searched: 0 }
    }

    /// The next line, waiting for it.
    pub fn next(&mut self) -> Result<&[u8], String> {
        loop {
            if let Some(line) = self.find() {
                return Ok(&self.buffer[line]);
            }
            self.fill()?;
        }
    }

    /// The next line if it is already here.
    pub fn buffered(&mut self) -> Option<&[u8]> {
        self.find().map(|line| &self.buffer[line])
    }

    /// One read. It waits unless the pipe was found readable.
    pub fn fill(&mut self) -> Result<(), String> {
        if self.unread.start > 0 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.searched -= self.unread.start;
            self.unread = 0..self.unread.len();
        }
        if self.unread.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.pipe.read(&mut self.buffer[self.unread.end..]) {
                Ok(0) => return Err(
                    "it closed its stdout, or was killed at the deadline, with answers still owed."
                        .into(),
                ),
                Ok(read) => {
                    self.unread.end += read;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("its stdout cannot be read: {error}.")),
            }
        }
    }

    fn find(&mut self) -> Option<Range<usize>> {
        match memchr(b'\n', &self.buffer[self.searched..self.unread.end]) {
            Some(length) => {
                let line = self.unread.start..self.searched + length;
                self.unread.start = line.end + 1;
                self.searched = self.unread.start;
                Some(line)
            }
            None => {
                self.searched = self.unread.end;
                None
            }
        }
    }
}
