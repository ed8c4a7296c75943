//! The console's page: a path of the admin listener → an embedded file.
//!
//! The page is in the folder `web`, as ES modules that a browser reads as they are. The build compresses its files, and
//! browsers get them so; [`unpack`] is for everybody else. `cargo xtask web` puts the libraries that the page uses into
//! `web/vendor`.
#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use miniz_oxide::inflate;

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// The media type, for `Content-Type`.
    pub content_type: &'static str,
    /// The content, as `Content-Encoding: gzip` has it (RFC 1952).
    pub gzip: &'static [u8],
    /// What an entity tag begins with; it depends on the content alone.
    pub tag: &'static str,
}

/// The file at a path: `/` is the page, the rest is below `/web/`.
pub fn file(path: &str) -> Option<File> {
    let path = if path == "/" { PAGE } else { path };
    let (_, tag, gzip) = FILES.iter().find(|(known, ..)| *known == path)?;
    Some(File { content_type: content_type(path), gzip, tag })
}

/// The content of a [`File`] as it was before its compression.
pub fn unpack(gzip: &[u8]) -> Vec<u8> {
    let deflated = gzip.get(HEAD..gzip.len().saturating_sub(TAIL)).expect("it is a file of ours");
    inflate::decompress_to_vec(deflated).expect("it is a file of ours")
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

/// The path of each, its tag, and its compressed content: `build.rs` writes this list.
static FILES: &[(&str, &str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));
const PAGE: &str = "/web/index.html";
/// The lengths of what stands around the compressed content: `build.rs` writes neither a name nor a comment.
const HEAD: usize = 10;
const TAIL: usize = 8;
