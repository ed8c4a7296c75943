//! The hash chain of the audit: links each line to the one before it, and verifies that no line was changed,
//! removed, inserted or moved.
//!
//! A line is one JSON object. It begins with `{"seq":N,"prev":"HASH",` and ends with `,"hash":"HASH"}`, where
//! `hash` is the SHA-256 of everything before `,"hash"`. That includes `prev`, the hash of the line before, so
//! a line fixes all lines before it. The first line has the sequence number 1 and a `prev` of zeros; a further
//! file continues where the one before ended.
//!
//! An attacker who can write the file can also compute a whole new chain. So keep the last hash elsewhere:
//! [`Verifier::expects`] checks that it is still in the chain.

use std::fmt;

use serde::{Deserialize, Serialize};
use trunkline_auth::digest::sha256;

/// The head of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The number of the last line.
    pub seq: u64,
    /// The hash of the last line, in 64 hexadecimal digits.
    pub hash: String,
}

impl Default for Head {
    fn default() -> Self {
        Self { seq: 0, hash: "0".repeat(DIGITS) }
    }
}

impl Head {
    /// Appends this JSON object to `text`, as the next line of the chain.
    pub(super) fn seal(&mut self, object: &str, text: &mut Vec<u8>) {
        self.seq += 1;
        let members = object.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        let comma = if members.is_none_or(str::is_empty) { "" } else { "," };
        let members = members.unwrap_or_default();
        let line = format!("{{\"seq\":{},\"prev\":\"{}\"{comma}{members}", self.seq, self.hash);
        self.hash = hash(line.as_bytes());
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(format!("{BEFORE}{}{BEHIND}\n", self.hash).as_bytes());
    }
}

/// A line of a chain.
#[derive(Debug)]
pub(super) struct Sealed<'a> {
    pub(super) seq: u64,
    prev: &'a str,
    pub(super) hash: &'a str,
    /// Whether the hash matches the line.
    pub(super) is_true: bool,
}

impl<'a> Sealed<'a> {
    /// Parses a line without its line end; `None` if it belongs to no chain.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let line = str::from_utf8(line).ok()?;
        let (seq, rest) = line.strip_prefix("{\"seq\":")?.split_once(",\"prev\":\"")?;
        let prev = rest.get(..DIGITS)?;
        let (body, hash) = line.strip_suffix(BEHIND)?.rsplit_once(BEFORE)?;
        let is_hash = |it: &str| it.len() == DIGITS && it.bytes().all(|it| it.is_ascii_hexdigit());
        let is_good = is_hash(prev) && is_hash(hash) && rest[DIGITS..].starts_with('"');
        let is_number = !seq.is_empty() && seq.bytes().all(|it| it.is_ascii_digit());
        let seq = seq.parse().ok().filter(|_| is_number && is_good)?;
        Some(Self { seq, prev, hash, is_true: self::hash(body.as_bytes()) == hash })
    }

    pub(super) fn head(&self) -> Head {
        Head { seq: self.seq, hash: self.hash.to_owned() }
    }
}

/// Verifies the files of one chain, in order.
#[derive(Debug, Default)]
pub struct Verifier {
    found: Found,
    head: Option<Head>,
    /// Lines read of the current file.
    line: u64,
    /// A line outside the chain, which the next line has to explain.
    stray: Option<(u64, String)>,
    expected: Option<(String, bool)>,
}

/// What is in the files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Lines of the chain.
    pub lines: u64,
    /// The number of the first.
    pub first: u64,
    /// The number and the hash of the last.
    pub last: Head,
    /// Unprotected lines before the chain begins, from versions without a chain.
    pub unprotected: u64,
    /// Calls that were lost, as the file itself reports.
    pub lost: u64,
    /// Lines torn by a crash that the gateway reported at its next start.
    pub recovered: u64,
    /// Whether the last line is torn, as by a crash.
    pub is_cut_off: bool,
}

/// Where a chain breaks, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The line of the file, from one.
    pub line: u64,
    /// A sentence.
    pub why: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The chain breaks at line {}: {}", self.line, self.why)
    }
}

impl Verifier {
    /// Requires a line with this hash, which was noted elsewhere.
    pub fn expects(mut self, hash: &str) -> Self {
        self.expected = Some((hash.trim_start_matches("sha256:").to_ascii_lowercase(), false));
        self
    }

    /// Begins the next file.
    pub fn next_file(&mut self) {
        self.line = 0;
    }

    /// Verifies the next line, without its line end; `is_whole` if it had one.
    pub fn line(&mut self, line: &[u8], is_whole: bool) -> Result<(), Broken> {
        self.line += 1;
        self.found.is_cut_off = false;
        let Some(sealed) = Sealed::read(line) else {
            if self.head.is_none() && is_whole {
                self.found.unprotected += 1;
                return Ok(());
            }
            self.explain(None)?;
            self.found.is_cut_off = !is_whole;
            self.stray = Some((self.line, sha256(line)));
            return Ok(());
        };
        if !sealed.is_true {
            return self.broken("Its text is not what was written: its hash does not fit.");
        }
        let said: Said = serde_json::from_slice(line).unwrap_or_default();
        self.explain(said.torn.as_deref())?;
        match &self.head {
            Some(head) => self.follows(&sealed, &head.clone())?,
            None if sealed.seq == 1 && sealed.prev != Head::default().hash => {
                return self.broken("It is the first, and says that there was one before it.");
            }
            None if sealed.seq != 1 && self.found.unprotected > 0 => {
                return self.broken("It continues another chain than the lines before it.");
            }
            None => {}
        }
        if self.found.lines == 0 {
            self.found.first = sealed.seq;
        }
        self.found.lines += 1;
        self.found.lost += said.lost.unwrap_or_default();
        if let Some((hash, is_found)) = &mut self.expected {
            *is_found |= hash == sealed.hash;
        }
        self.found.last = sealed.head();
        self.head = Some(sealed.head());
        Ok(())
    }

    /// What was found so far.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Ends the verification.
    pub fn finish(mut self) -> Result<Found, Broken> {
        if !self.found.is_cut_off {
            self.explain(None)?;
        }
        match &self.expected {
            Some((hash, false)) => {
                let why = format!("No line has the hash `{hash}`, which was noted elsewhere.");
                Err(Broken { line: self.line, why })
            }
            _ => Ok(self.found),
        }
    }

    /// A line outside the chain is accepted only if the next line reports it as torn.
    fn explain(&mut self, torn: Option<&str>) -> Result<(), Broken> {
        match (self.stray.take(), torn) {
            (Some((_, stray)), Some(torn)) if stray == torn => {
                self.found.recovered += 1;
                Ok(())
            }
            (Some((line, _)), _) => {
                let why = "The gateway has not written this line: it has no place in the chain.";
                Err(Broken { line, why: why.to_owned() })
            }
            (None, _) => Ok(()),
        }
    }

    fn follows(&self, sealed: &Sealed<'_>, head: &Head) -> Result<(), Broken> {
        let due = head.seq + 1;
        match sealed.seq {
            1 if due != 1 => self.broken("A new chain begins here; the one before has no end."),
            seq if seq > due => self.broken(&format!(
                "Lines are missing before it: it is number {seq}, and {due} was due."
            )),
            seq if seq < due => self
                .broken(&format!("It is not in its place: it is number {seq}, and {due} was due.")),
            _ if sealed.prev != head.hash => {
                self.broken("The line before it is not the one that it was written behind.")
            }
            _ => Ok(()),
        }
    }

    fn broken<T>(&self, why: &str) -> Result<T, Broken> {
        Err(Broken { line: self.line, why: why.to_owned() })
    }
}

/// The members of a line that matter to the chain.
#[derive(Default, Deserialize)]
struct Said {
    lost: Option<u64>,
    torn: Option<String>,
}

fn hash(bytes: &[u8]) -> String {
    sha256(bytes)["sha256:".len()..].to_owned()
}

const DIGITS: usize = 64;
const BEFORE: &str = ",\"hash\":\"";
const BEHIND: &str = "\"}";

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(count: u64) -> Vec<String> {
        let mut head = Head::default();
        (0..count).map(|it| next(&mut head, &format!(r#"{{"tool":"t{it}"}}"#))).collect()
    }

    fn next(head: &mut Head, object: &str) -> String {
        let mut text = Vec::new();
        head.seal(object, &mut text);
        String::from_utf8(text).unwrap().trim_end().to_owned()
    }

    fn verify(lines: &[String]) -> Result<Found, Broken> {
        let mut verifier = Verifier::default();
        lines.iter().try_for_each(|it| verifier.line(it.as_bytes(), true))?;
        verifier.finish()
    }

    fn broken(lines: &[String]) -> (u64, String) {
        let broken = verify(lines).unwrap_err();
        (broken.line, broken.why)
    }

    #[test]
    fn a_line_is_json_and_a_chain_holds() {
        let lines = chain(3);
        for (at, line) in lines.iter().enumerate() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(
                (&value["seq"], &value["tool"]),
                (&(at + 1).into(), &format!("t{at}").into())
            );
        }
        let found = verify(&lines).unwrap();
        assert_eq!((found.lines, found.first, found.last.seq), (3, 1, 3));
        assert!(lines[2].contains(&found.last.hash));
        assert_eq!(verify(&[]).unwrap(), Found::default());
    }

    #[test]
    fn every_flipped_bit_shows() {
        let lines = chain(3);
        for at in 0..lines[1].len() {
            let mut bytes: Vec<Vec<u8>> = lines.iter().map(|it| it.clone().into_bytes()).collect();
            bytes[1][at] ^= 1;
            let mut verifier = Verifier::default();
            let read = bytes.iter().try_for_each(|it| verifier.line(it, true));
            let broken = read.and_then(|()| verifier.finish().map(drop)).unwrap_err();
            assert!((2..=3).contains(&broken.line), "byte {at}: {broken}");
        }
    }

    #[test]
    fn manipulations_of_a_chain_are_located() {
        let lines = chain(5);
        let without = |at: usize| {
            let mut lines = lines.clone();
            lines.remove(at);
            lines
        };
        let missing = "Lines are missing before it: it is number 3, and 2 was due.";
        assert_eq!(broken(&without(1)), (2, missing.to_owned()));
        let mut swapped = lines.clone();
        swapped.swap(1, 2);
        assert_eq!(broken(&swapped).0, 2);
        let mut twice = lines.clone();
        twice.insert(2, lines[1].clone());
        let late = "It is not in its place: it is number 2, and 3 was due.";
        assert_eq!(broken(&twice), (3, late.to_owned()));
        let stranger = "The gateway has not written this line: it has no place in the chain.";
        for at in 1..=5 {
            let mut forged = lines.clone();
            forged.insert(at, r#"{"tool":"forged"}"#.to_owned());
            assert_eq!(broken(&forged), (at as u64 + 1, stranger.to_owned()));
        }
        // A line of the right form, with a valid hash of its own.
        let mut forger = Head { seq: 5, ..Head::default() };
        let mut forged = lines.clone();
        forged.push(next(&mut forger, r#"{"tool":"forged"}"#));
        let not_behind = "The line before it is not the one that it was written behind.";
        assert_eq!(broken(&forged), (6, not_behind.to_owned()));
        let mut anew = lines.clone();
        anew.extend(chain(1));
        assert!(broken(&anew).1.starts_with("A new chain begins here"));
    }

    #[test]
    fn lines_that_went_from_the_end_show_by_a_hash_that_was_noted() {
        let lines = chain(5);
        let last = verify(&lines).unwrap().last.hash;
        let check = |lines: &[String]| {
            let mut verifier = Verifier::default().expects(&last);
            lines.iter().try_for_each(|it| verifier.line(it.as_bytes(), true)).unwrap();
            verifier.finish()
        };
        assert!(check(&lines).is_ok());
        assert!(check(&lines[..4]).unwrap_err().why.contains("noted elsewhere"));
    }

    #[test]
    fn a_cut_off_end_is_a_crash_and_not_tampering() {
        let lines = chain(3);
        let cut = &lines[2].as_bytes()[..20];
        let mut verifier = Verifier::default();
        lines[..2].iter().for_each(|it| verifier.line(it.as_bytes(), true).unwrap());
        verifier.line(cut, false).unwrap();
        let found = verifier.finish().unwrap();
        assert_eq!((found.lines, found.is_cut_off), (2, true));
        // After the next start, the gateway itself has reported it.
        let mut verifier = Verifier::default();
        lines[..2].iter().for_each(|it| verifier.line(it.as_bytes(), true).unwrap());
        let mut head = verifier.found().last.clone();
        verifier.line(cut, true).unwrap();
        let torn = sha256(cut);
        let line = next(&mut head, &format!(r#"{{"event":"recovered","torn":"{torn}"}}"#));
        verifier.line(line.as_bytes(), true).unwrap();
        let found = verifier.finish().unwrap();
        assert_eq!((found.lines, found.recovered, found.is_cut_off), (3, 1, false));
    }

    #[test]
    fn files_of_one_chain_are_read_in_their_order() {
        let lines = chain(4);
        let read = |files: [&[String]; 2]| {
            let mut verifier = Verifier::default();
            for file in files {
                verifier.next_file();
                file.iter().try_for_each(|it| verifier.line(it.as_bytes(), true))?;
            }
            verifier.finish()
        };
        assert_eq!(read([&lines[..2], &lines[2..]]).unwrap().lines, 4);
        assert_eq!(read([&lines[..1], &lines[2..]]).unwrap_err().line, 1);
        assert_eq!(read([&lines[2..], &lines[..2]]).unwrap_err().line, 1);
        let second = verify(&lines[2..]).unwrap();
        assert_eq!((second.first, second.lines), (3, 2), "one by itself goes on with another");
    }

    #[test]
    fn unprotected_lines_are_counted_and_reported_losses_added_up() {
        let mut lines = vec![r#"{"tool":"old"}"#.to_owned(), String::new()];
        let mut head = Head::default();
        lines.push(next(&mut head, r#"{"lost":3}"#));
        lines.push(next(&mut head, r#"{"lost":4}"#));
        let found = verify(&lines).unwrap();
        assert_eq!((found.unprotected, found.lines, found.lost), (2, 2, 7));
        lines.remove(2);
        assert_eq!(broken(&lines).0, 3, "what begins late was cut");
    }
}
