//! A chunked body, in pieces → where its data is (RFC 9112 §7.1).

use super::fields::{is_token, is_value};

/// How far a chunked body was read.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) struct Chunks {
    at: At,
    /// Bytes of the leading zeros, the extension or the trailers that are being read.
    ignored: usize,
}

/// What is next in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The size of a chunk, of which so much was read; `None` before its first digit.
    Size(Option<u64>),
    /// Spaces after the size.
    SizeSpace(u64),
    /// What follows the size on its line.
    Extension(u64),
    /// The line feed after the size.
    SizeEnd(u64),
    /// So much data.
    Data(u64),
    /// The line break after the data.
    DataEnd,
    DataLineFeed,
    /// The line of a trailer, or the empty one that ends the body.
    Trailer,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
    Over,
}

/// What some bytes of a chunked body are.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) enum Chunk {
    /// After so many bytes come so many of data.
    Data(usize, usize),
    /// All of them are between the data.
    None,
    /// The body ends after so many bytes.
    End(usize),
}

impl Default for Chunks {
    fn default() -> Self {
        Self { at: At::Size(None), ignored: 0 }
    }
}

impl Chunks {
    /// Reads on, up to the next data. Fails with what is wrong.
    pub(in crate::http) fn next(&mut self, bytes: &[u8]) -> Result<Chunk, &'static str> {
        for (at, byte) in bytes.iter().copied().enumerate() {
            if let At::Data(left) = &mut self.at {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - at);
                *left -= here as u64;
                if *left == 0 {
                    self.at = At::DataEnd;
                }
                return Ok(Chunk::Data(at, here));
            }
            self.at = self.after(byte)?;
            if self.at == At::Over {
                return Ok(Chunk::End(at + 1));
            }
        }
        Ok(Chunk::None)
    }

    fn after(&mut self, byte: u8) -> Result<At, &'static str> {
        const BROKEN: &str = "its chunks are malformed";
        Ok(match (self.at, byte) {
            (At::Size(Some(0)), b'0') => self.ignore(At::Size(Some(0)))?,
            (At::Size(size), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                let size = size.unwrap_or_default().checked_mul(16).ok_or(BROKEN)?;
                At::Size(Some(size + u64::from(digit)))
            }
            (At::Size(Some(size)) | At::SizeSpace(size) | At::Extension(size), b'\r') => {
                At::SizeEnd(size)
            }
            (At::Size(Some(size)) | At::SizeSpace(size), b' ' | b'\t') => {
                self.ignore(At::SizeSpace(size))?
            }
            (At::Size(Some(size)) | At::SizeSpace(size), b';') => {
                self.ignore(At::Extension(size))?
            }
            (At::Extension(size), byte) if is_value(byte) => self.ignore(At::Extension(size))?,
            (At::SizeEnd(0), b'\n') => At::Trailer,
            (At::SizeEnd(size), b'\n') => {
                self.ignored = 0;
                At::Data(size)
            }
            (At::DataEnd, b'\r') => At::DataLineFeed,
            (At::DataLineFeed, b'\n') => At::Size(None),
            (At::Trailer, b'\r') => At::LastLineFeed,
            (At::Trailer | At::TrailerName, byte) if is_token(byte) => {
                self.ignore(At::TrailerName)?
            }
            (At::TrailerName, b':') => At::TrailerValue,
            (At::TrailerValue, b'\r') => At::TrailerLineFeed,
            (At::TrailerValue, byte) if is_value(byte) => self.ignore(At::TrailerValue)?,
            (At::TrailerLineFeed, b'\n') => At::Trailer,
            (At::LastLineFeed, b'\n') => At::Over,
            _ => return Err(BROKEN),
        })
    }

    fn ignore(&mut self, next: At) -> Result<At, &'static str> {
        self.ignored += 1;
        match self.ignored > MAX_IGNORED {
            true => Err("its chunks hold more extensions than data"),
            false => Ok(next),
        }
    }
}

/// The longest extension of a chunk with the zeros before its size, and the longest trailers.
const MAX_IGNORED: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// The data of a body that comes in pieces of `size`, and what follows it.
    fn read(text: &[u8], size: usize) -> Result<(Vec<u8>, &[u8]), &'static str> {
        let (mut chunks, mut data, mut at) = (Chunks::default(), Vec::new(), 0);
        while at < text.len() {
            let piece = &text[at..text.len().min(at + size)];
            match chunks.next(piece)? {
                Chunk::Data(skipped, length) => {
                    data.extend_from_slice(&piece[skipped..skipped + length]);
                    at += skipped + length;
                }
                Chunk::None => at += piece.len(),
                Chunk::End(length) => return Ok((data, &text[at + length..])),
            }
        }
        Err("cut off")
    }

    #[test]
    fn data_is_found_in_whatever_pieces_it_comes() {
        for text in [
            "5\r\nhello\r\n6\r\n, you!\r\n0\r\n\r\nrest",
            "05;a=b\r\nhello\r\n6 ;c\r\n, you!\r\n00\r\nX: y\r\nZ: \r\n\r\nrest",
            "B;\r\nhello, you!\r\n0;last\r\n\r\nrest",
        ] {
            for size in 1..=text.len() {
                let read = read(text.as_bytes(), size);
                assert_eq!(read, Ok((b"hello, you!".to_vec(), &b"rest"[..])), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn malformed_chunks_are_refused() {
        let long = "x".repeat(MAX_IGNORED + 1);
        for text in [
            "\r\nhello",
            "g\r\n",
            "-1\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhello0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
            "5\r\rhello\r\n0\r\n\r\n",
            "0\r\n\rx",
            "fffffffffffffffff\r\n",
            &format!("5;{long}\r\nhello\r\n0\r\n\r\n"),
            &format!("0\r\nX: {long}\r\n\r\n"),
            &format!("{}5\r\nhello\r\n0\r\n\r\n", long.replace('x', "00")),
            &format!("0{}\r\n\r\n", long.replace('x', "0")),
            "5\r\nhello\r\n0\r\n",
            "5 5\r\nhello\r\n0\r\n\r\n",
            "5;a\0\r\nhello\r\n0\r\n\r\n",
            "0\r\n\n",
            "0\r\nX: y\n\r\n",
            "0\r\nX : y\r\n\r\n",
            "0\r\n X: y\r\n\r\n",
            "0\r\n: y\r\n\r\n",
            "0\r\nX\r\n\r\n",
            "0\r\nX: \0\r\n\r\n",
        ] {
            assert!(read(text.as_bytes(), 7).is_err(), "{text:?}");
        }
    }
}
