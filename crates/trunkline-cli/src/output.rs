//! Results → readable text: colours for people only, and no control characters.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use trunkline::model::{Content, Progress, ResourceContents, ResourceData};
use trunkline_gateway::policy::hidden;

use crate::failure::Failure;

/// When to use colours.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// An emphasis.
#[derive(Clone, Copy)]
pub(crate) enum Tone {
    Bold,
    Dim,
    Name,
    Bad,
    Good,
}

/// The two streams we write to.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Inner>);

struct Inner {
    out_color: bool,
    err_color: bool,
    out_is_terminal: bool,
    err_is_terminal: bool,
    line: Mutex<Line>,
}

/// The content of the last line of stderr.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Nothing that matters.
    Free,
    /// Progress, which the next output replaces.
    Progress,
    /// A question, which progress must not overwrite.
    Question,
}

/// A question is open while this lives.
pub(crate) struct Asking(Screen);

impl Drop for Asking {
    fn drop(&mut self) {
        *self.0.line() = Line::Free;
    }
}

impl Screen {
    pub(crate) fn new(when: ColorWhen) -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
        let color = |is_terminal| match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => is_terminal && wanted,
        };
        Self(Arc::new(Inner {
            out_color: color(out),
            err_color: color(err),
            out_is_terminal: out,
            err_is_terminal: err,
            line: Mutex::new(Line::Free),
        }))
    }

    /// Whether a user can be asked.
    pub(crate) fn is_interactive(&self) -> bool {
        self.0.err_is_terminal && io::stdin().is_terminal()
    }

    /// Prints to stdout.
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        self.clear_progress();
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    /// Prints a value as JSON to stdout.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<()> {
        self.print(&harmless_json(&serde_json::to_string_pretty(value)?))
    }

    /// Prints a failure as one line of JSON to stdout.
    pub(crate) fn json_failure(&self, failure: &Failure) -> Result<()> {
        self.print(&harmless_json(&failure.to_json().to_string()))
    }

    /// Colours text for stdout.
    pub(crate) fn tone(&self, tone: Tone, text: &str) -> String {
        paint(self.0.out_color, tone, text)
    }

    /// A server's text for stdout: unchanged for programs, sanitized for terminals.
    pub(crate) fn foreign<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        if self.0.out_is_terminal { harmless(text).into() } else { text.into() }
    }

    /// Prints a remark to stderr.
    pub(crate) fn aside(&self, label: &str, text: &str) {
        let label = paint(self.0.err_color, Tone::Dim, &format!("{}:", one_line(label)));
        self.say(&format!("{label} {}\n", indented(text)));
    }

    /// Writes to stderr unchanged.
    pub(crate) fn say(&self, text: &str) {
        self.clear_progress();
        // Without stderr there is nobody left to tell.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Colours text for stderr.
    pub(crate) fn err_tone(&self, tone: Tone, text: &str) -> String {
        paint(self.0.err_color, tone, text)
    }

    /// Suppresses progress while the user is being asked.
    pub(crate) fn asking(&self) -> Asking {
        self.clear_progress();
        *self.line() = Line::Question;
        Asking(self.clone())
    }

    /// Shows progress on a terminal.
    pub(crate) fn progress(&self, step: &Progress) {
        if !self.0.err_is_terminal || *self.line() == Line::Question {
            return;
        }
        let mut line = format!("\r\x1b[K{}", step.progress);
        if let Some(total) = step.total {
            let _ = write!(line, "/{total}");
        }
        if let Some(message) = &step.message {
            let _ = write!(line, "  {}", one_line(message));
        }
        *self.line() = Line::Progress;
        let _ = io::stderr().write_all(line.as_bytes());
    }

    pub(crate) fn failure(&self, failure: &Failure) {
        let mut text = paint(self.0.err_color, Tone::Bad, "trunkline:");
        if failure.code != crate::failure::USAGE {
            let _ = write!(text, " {} failed:", failure.stage);
        }
        let _ = writeln!(text, " {}", indented(&failure.cause));
        if let Some(advice) = &failure.advice {
            let _ = writeln!(
                text,
                "  {} {}",
                paint(self.0.err_color, Tone::Bold, "try:"),
                one_line(advice)
            );
        }
        if !failure.stderr.is_empty() {
            let _ = writeln!(text, "  the last the server wrote to stderr:");
            let first = failure.stderr.len().saturating_sub(10);
            for line in &failure.stderr[first..] {
                let _ =
                    writeln!(text, "    {}", paint(self.0.err_color, Tone::Dim, &one_line(line)));
            }
        }
        self.say(&text);
    }

    fn clear_progress(&self) {
        let mut line = self.line();
        if *line == Line::Progress {
            *line = Line::Free;
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One block of content, as text.
pub(crate) fn block(screen: &Screen, block: &Content) -> String {
    let note = |text: String| screen.tone(Tone::Dim, &text);
    match block {
        Content::Text(it) => screen.foreign(&it.text).into_owned(),
        Content::Image(it) => note(blob("image", &it.mime_type, &it.data)),
        Content::Audio(it) => note(blob("audio", &it.mime_type, &it.data)),
        Content::ResourceLink(it) => {
            format!("{} {}", note("[link]".to_owned()), one_line(&it.uri))
        }
        Content::Resource(it) => resource(screen, &it.resource),
        other => harmless_json(&serde_json::to_string(other).unwrap_or_default()),
    }
}

/// What is in a resource, as text.
pub(crate) fn resource(screen: &Screen, contents: &ResourceContents) -> String {
    match &contents.data {
        ResourceData::Text(text) => screen.foreign(text).into_owned(),
        ResourceData::Blob(data) => {
            let kind = contents.mime_type.as_deref().unwrap_or("application/octet-stream");
            screen.tone(Tone::Dim, &blob(&contents.uri, kind, data))
        }
    }
}

pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

/// Text without characters that move the cursor or change the direction of writing.
pub(crate) fn harmless(text: &str) -> String {
    escaped(text, |it| is_obeyed(it) && it != '\n' && it != '\t')
}

/// The same for a single line, such as a name: it cannot begin another.
pub(crate) fn one_line(text: &str) -> String {
    escaped(text, is_obeyed)
}

/// The same for several lines, of which only the first looks like one of ours.
pub(crate) fn indented(text: &str) -> String {
    harmless(text).replace('\n', "\n  ")
}

/// Equivalent JSON without control characters.
fn harmless_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push('\n'),
            // Valid JSON has these between its tokens only.
            '\t' | '\r' => out.push(' '),
            // None of these has more than four digits.
            it if is_obeyed(it) => drop(write!(out, "\\u{:04x}", u32::from(it))),
            // Invisible characters are escaped too.
            it if hidden::is_hidden(it) && !SCRIPT.contains(&it) => {
                let units = it.encode_utf16(&mut [0; 2]).to_vec();
                units.iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            it => out.push(it),
        }
    }
    out
}

/// Joiners and the two variation selectors of emoji, which are common in legitimate text.
const SCRIPT: [char; 4] = ['\u{200c}', '\u{200d}', '\u{fe0e}', '\u{fe0f}'];

fn escaped(text: &str, is_unwanted: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match is_unwanted(character) {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out
}

/// Whether a terminal interprets a character instead of showing it.
fn is_obeyed(character: char) -> bool {
    let turns = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || turns
}

fn blob(name: &str, kind: &str, base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|it| *it == b'=').count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    one_line(&format!("[{name}, {kind}, {bytes} bytes; see --json]"))
}

fn paint(color: bool, tone: Tone, text: &str) -> String {
    if !color || text.is_empty() {
        return text.to_owned();
    }
    let code = match tone {
        Tone::Bold => "1",
        Tone::Dim => "2",
        Tone::Name => "36",
        Tone::Bad => "31;1",
        Tone::Good => "32",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        assert_eq!(harmless("a\u{1b}[2Jb\n\tc\u{202e}d é"), "a\\u{1b}[2Jb\n\tc\\u{202e}d é");
        assert_eq!(one_line("a\n\tb\u{9b}2J"), "a\\n\\tb\\u{9b}2J");
        assert_eq!(indented("a\nerror: b"), "a\n  error: b");
        assert_eq!(blob("image", "image/png", "AAAA"), "[image, image/png, 3 bytes; see --json]");
        assert_eq!(blob("image", "image/png", "AA=="), "[image, image/png, 1 bytes; see --json]");
    }

    #[test]
    fn json_says_the_same_and_is_obeyed_by_no_terminal() {
        let ranges =
            [0x7f..=0x9f, 0x61c..=0x61c, 0x200e..=0x200f, 0x2028..=0x202e, 0x2066..=0x2069];
        let evil: String = ranges.into_iter().flatten().filter_map(char::from_u32).collect();
        let found = harmless_json(&format!("{{\"a\":\r\n\"é{evil}\"}}"));
        assert!(found.chars().all(|it| it == '\n' || !is_obeyed(it)), "{found}");
        assert!(found.contains("é\\u007f\\u0080"), "{found}");
        let value: serde_json::Value = serde_json::from_str(&found).unwrap();
        assert_eq!(value["a"], format!("é{evil}"));
    }
}
