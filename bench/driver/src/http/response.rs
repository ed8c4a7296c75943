//! The bytes of an HTTP/1.1 response, as they arrive → its head, its body and the messages in it.

use memchr::{memchr, memmem};

/// A response that may not be here in full yet.
#[derive(Default)]
pub struct Response {
    pub status: u16,
    pub is_stream: bool,
    /// Where the body begins; zero while the head is incomplete.
    head: usize,
    length: Option<usize>,
    is_chunked: bool,
    /// Up to here the chunks are in `unchunked`.
    at: usize,
    unchunked: Vec<u8>,
}

impl Response {
    /// Begins anew, keeping what was allocated.
    pub fn reset(&mut self) {
        let mut unchunked = std::mem::take(&mut self.unchunked);
        unchunked.clear();
        *self = Response { unchunked, ..Response::default() };
    }

    pub fn has_head(&self) -> bool {
        self.head > 0
    }

    /// Looks at everything received so far; true when the response is complete.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<bool, String> {
        if self.head == 0 && !self.read_head(bytes)? {
            return Ok(false);
        }
        match self.length {
            Some(length) => Ok(bytes.len() >= self.head + length),
            None if self.is_chunked => self.read_chunks(bytes),
            // A status like 202 may come without either.
            None => Ok(true),
        }
    }

    /// The body of a response that is complete, or what there is of one.
    pub fn body<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        match self.length {
            Some(length) => &bytes[self.head..self.head + length],
            None => &self.unchunked,
        }
    }

    /// Calls `each` with every message of the body: all of it, or the data of each event.
    pub fn messages<'a>(
        &'a self,
        bytes: &'a [u8],
        mut each: impl FnMut(&'a [u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut rest = self.body(bytes);
        if !self.is_stream {
            return each(rest);
        }
        while let Some(end) = memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            // Every message is one line of data; the other lines are ids, comments and ends of events.
            if let Some(data) = line.strip_prefix(b"data:") {
                let data = data.trim_ascii();
                if !data.is_empty() {
                    each(data)?;
                }
            }
        }
        Ok(())
    }

    /// One header of the head.
    pub fn header<'a>(&self, bytes: &'a [u8], name: &str) -> Option<&'a str> {
        let head = std::str::from_utf8(bytes.get(..self.head)?).ok()?;
        head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn read_head(&mut self, bytes: &[u8]) -> Result<bool, String> {
        let Some(end) = memmem::find(bytes, b"\r\n\r\n") else { return Ok(false) };
        let odd =
            || format!("it sent an odd head: {}", String::from_utf8_lossy(&bytes[..end.min(300)]));
        let mut lines = bytes[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        let status = lines.next().and_then(|line| line.strip_prefix(b"HTTP/1.1 "));
        let status = status.and_then(|rest| std::str::from_utf8(rest.get(..3)?).ok());
        self.status = status.and_then(|digits| digits.parse().ok()).ok_or_else(odd)?;
        for line in lines {
            let Some(colon) = memchr(b':', line) else { return Err(odd()) };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                let length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                self.length = Some(length.ok_or_else(odd)?);
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                self.is_chunked = value.eq_ignore_ascii_case(b"chunked");
            } else if name.eq_ignore_ascii_case(b"content-type") {
                self.is_stream = value.starts_with(b"text/event-stream");
            }
        }
        self.head = end + 4;
        self.at = self.head;
        Ok(true)
    }

    fn read_chunks(&mut self, bytes: &[u8]) -> Result<bool, String> {
        loop {
            let rest = &bytes[self.at..];
            let Some(end) = memchr(b'\n', rest) else { return Ok(false) };
            let size = std::str::from_utf8(rest[..end].trim_ascii_end()).ok();
            let size = size.and_then(|digits| usize::from_str_radix(digits, 16).ok());
            let size = size.ok_or("it sent a chunk whose size is no number.")?;
            // The bytes of the chunk, between two ends of line.
            let Some(chunk) = rest.get(end + 1..end + 1 + size + 2) else { return Ok(false) };
            if size == 0 {
                return Ok(true);
            }
            self.unchunked.extend_from_slice(&chunk[..size]);
            self.at += end + 1 + size + 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(response: &Response, bytes: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        let each = |message: &[u8]| {
            all.push(String::from_utf8_lossy(message).into_owned());
            Ok(())
        };
        response.messages(bytes, each).expect("`each` refuses nothing");
        all
    }

    #[test]
    fn a_body_of_known_length_is_one_message() {
        let bytes =
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nMcp-Session-Id: abc\r\n\r\n{}".as_slice();
        let mut response = Response::default();
        for end in 0..bytes.len() {
            assert_eq!(response.advance(&bytes[..end]), Ok(false), "{end} bytes");
        }
        assert_eq!(response.advance(bytes), Ok(true));
        assert_eq!(response.header(bytes, "mcp-session-id"), Some("abc"));
        assert_eq!(messages(&response, bytes), ["{}"]);
    }

    #[test]
    fn an_event_cut_into_chunks_is_whole_again() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
            a\r\nid: 1\ndata\r\n7\r\n:\n\ndata\r\n6\r\n: {}\n\n\r\n0\r\n\r\n".as_slice();
        let mut response = Response::default();
        for end in 0..bytes.len() {
            assert_eq!(response.advance(&bytes[..end]), Ok(false), "{end} bytes");
        }
        assert_eq!(response.advance(bytes), Ok(true));
        assert_eq!(messages(&response, bytes), ["{}"]);
    }
}
