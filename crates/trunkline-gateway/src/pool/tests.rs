//! The pool as transcripts, as a property test, and with tasks.

mod fake;
mod property;
mod runner;
mod sharing;
mod sim;
mod start_failures;

use sim::check;

/// Runs every transcript of these files. A line that is not indented is the sentence that one shows; `with` begins
/// it anew with other settings; `#` is a comment.
#[test]
#[allow(clippy::print_stdout)] // Shown with a failure.
fn every_transcript_is_followed() {
    let mut followed = 0;
    for (file, text) in FILES {
        let (mut sentence, mut settings, mut transcript) = ("", "", String::new());
        for line in text.lines().filter(|it| !it.trim_start().starts_with('#')).chain(["the end"]) {
            let with = line.trim_start().strip_prefix("with").filter(|_| line.starts_with(' '));
            let is_over = with.is_some() || !line.starts_with(' ');
            if is_over && !transcript.is_empty() {
                println!("{file}: {sentence}, with {settings:?}");
                check(settings, &std::mem::take(&mut transcript));
                followed += 1;
            }
            match with {
                Some(with) => settings = with.trim(),
                None if !is_over => transcript.extend([line, "\n"]),
                None => (sentence, settings) = (line, ""),
            }
        }
    }
    assert!(followed > 70, "Only {followed} transcripts were found.");
}

const FILES: [(&str, &str); 7] = [
    ("evict.txt", include_str!("tests/transcripts/evict.txt")),
    ("keeping.txt", include_str!("tests/transcripts/keeping.txt")),
    ("owners.txt", include_str!("tests/transcripts/owners.txt")),
    ("shares.txt", include_str!("tests/transcripts/shares.txt")),
    ("sharing.txt", include_str!("tests/transcripts/sharing.txt")),
    ("sticky.txt", include_str!("tests/transcripts/sticky.txt")),
    ("start_failures.txt", include_str!("tests/transcripts/start_failures.txt")),
];
