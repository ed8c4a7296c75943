//! What the embedded files promise, without a browser.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{FILES, file, unpack};

/// The path of each file, and its text.
fn texts() -> impl Iterator<Item = (&'static str, String)> {
    FILES.iter().map(|(path, _, gzip)| {
        (*path, String::from_utf8(unpack(gzip)).expect("a file of the page is text"))
    })
}

#[test]
fn what_is_embedded_is_what_is_in_the_folder() {
    let mut found = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("web")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.to_string_lossy().ends_with(".d.ts") {
                let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
                let text = fs::read_to_string(&path).expect("a file of the page is text");
                found.insert((path.to_string_lossy().replacen(root, "/", 1), text));
            }
        }
    }
    let embedded: BTreeSet<(String, String)> =
        texts().map(|(path, text)| (path.to_owned(), text)).collect();
    let paths = |all: &BTreeSet<(String, String)>| -> Vec<String> {
        all.iter().map(|(path, _)| path.clone()).collect()
    };
    assert_eq!(paths(&embedded), paths(&found));
    assert!(embedded == found, "a file is not what is in the folder");
}

/// What a browser loads for the whole page.
#[test]
fn the_page_weighs_at_most_150_kb() {
    let weight: usize = FILES.iter().map(|(.., gzip)| gzip.len()).sum();
    assert!((50_000..=150_000).contains(&weight), "{weight} bytes are sent");
}

/// The head and the tail are ours, and browsers check them: the length and the checksum of RFC 1952.
#[test]
fn each_file_is_a_gzip_of_its_own() {
    for (path, _, gzip) in FILES {
        assert_eq!(gzip[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255], "{path}");
        let text = unpack(gzip);
        let tail = [checksum(&text), text.len() as u32].map(u32::to_le_bytes).concat();
        assert_eq!(gzip[gzip.len() - 8..], tail, "{path}");
    }
    assert_eq!(checksum(b"123456789"), 0xcbf4_3926, "the check value of CRC-32");
}

/// CRC-32, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for bit in bytes.iter().flat_map(|byte| (0..8).map(move |at| u32::from(byte >> at) & 1)) {
        let is_odd = (crc ^ bit) & 1 == 1;
        crc >>= 1;
        if is_odd {
            crc ^= 0xedb8_8320;
        }
    }
    !crc
}

#[test]
fn the_page_and_what_it_names_are_there_and_nothing_else_is() {
    let page = file("/").expect("there is a page");
    assert_eq!(page.content_type, "text/html; charset=utf-8");
    assert_eq!(Some(&page), file("/web/index.html").as_ref());
    let text = String::from_utf8(unpack(page.gzip)).expect("the page is text");
    let named: Vec<&str> =
        text.split(['"', '\'']).filter(|word| word.starts_with("/web/")).collect();
    assert!(named.len() >= 4, "{named:?}");
    for path in named {
        assert!(file(path).is_some(), "{path}");
    }
    for path in
        ["", "/index.html", "/web", "/web/", "/web/../web/main.js", "/web/types.d.ts", "/v1/status"]
    {
        assert_eq!(file(path), None, "{path}");
    }
}

#[test]
fn every_import_leads_to_an_embedded_file() {
    let mut count = 0;
    for (path, text) in texts().filter(|(path, _)| path.ends_with(".js")) {
        for (_, rest) in text.match_indices("from").map(|(at, _)| text.split_at(at + 4)) {
            let rest = rest.trim_start();
            let Some(quote) = rest.chars().next().filter(|it| matches!(it, '\'' | '"')) else {
                continue;
            };
            let Some(to) = rest[1..].split(quote).next().filter(|to| to.starts_with('.')) else {
                continue;
            };
            let folder = Path::new(path).parent().expect("a file is in a folder");
            let mut steps: Vec<&str> = folder.to_str().expect("it is text").split('/').collect();
            for step in to.split('/') {
                match step {
                    "." => {}
                    ".." => drop(steps.pop()),
                    step => steps.push(step),
                }
            }
            let to = steps.join("/");
            assert!(file(&to).is_some(), "{path} imports {to}");
            count += 1;
        }
    }
    assert!(count > 40, "only {count} imports were found");
}

/// A strict policy (`default-src 'none'`, no inline script or style) has nothing to refuse.
#[test]
fn nothing_is_inline_and_no_other_host_is_asked() {
    for (path, text) in texts().filter(|(path, _)| !path.ends_with(".txt")) {
        if path.ends_with(".html") {
            for inline in ["<script>", "<style", " style=", " onclick=", " onload=", "javascript:"]
            {
                assert!(!text.contains(inline), "{path}: {inline}");
            }
        }
        for word in ["eval(", "new Function(", "innerHTML =", "document.write("] {
            assert!(path.contains("/vendor/") || !text.contains(word), "{path}: {word}");
        }
        for (at, _) in text.match_indices("://") {
            let before = &text[at.saturating_sub(5)..at];
            let after: String = text[at + 3..].chars().take(14).collect();
            let is_known = after.starts_with("127.0.0.1")
                || after.starts_with("www.w3.org")
                // Where a library is from, in its first line.
                || (path.contains("/vendor/") && after.starts_with("github.com"))
                || after.starts_with("${")
                // What a field suggests: a name that is reserved for examples, and a root of this machine.
                || after.starts_with("server.example")
                || before.ends_with("file");
            assert!(is_known, "{path} names {before}://{after}");
        }
    }
}

#[test]
fn a_tag_follows_the_content() {
    let tags: BTreeSet<&str> = FILES.iter().map(|(_, tag, _)| *tag).collect();
    assert_eq!(tags.len(), FILES.len(), "two files have one tag");
    let is_plain = |tag: &str| tag.len() == 16 && tag.bytes().all(|it| it.is_ascii_hexdigit());
    assert!(tags.iter().all(|tag| is_plain(tag)), "{tags:?}");
}

#[test]
fn media_types_are_those_that_browsers_insist_on() {
    for (path, ..) in FILES {
        let kind = file(path).expect("it is listed").content_type;
        let expected = match path.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("html") => "text/html; charset=utf-8",
            _ => "text/plain; charset=utf-8",
        };
        assert_eq!(kind, expected, "{path}");
    }
}
