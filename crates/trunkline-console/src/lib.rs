//! The console's page: a path of the admin listener → an embedded file.
//!
//! The page is in the folder `web`, as ES modules that a browser reads as they are. `cargo xtask web` writes the list
//! of its files and puts the libraries it uses into `web/vendor`.
#![forbid(unsafe_code)]

mod files;
#[cfg(test)]
mod tests;

use files::FILES;

/// A file of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The media type, for `Content-Type`.
    pub content_type: &'static str,
    /// The content.
    pub bytes: &'static [u8],
    /// The entity tag with its quotes, for `ETag`; it depends on the content alone.
    pub etag: String,
}

/// The file at a path: `/` is the page, the rest is below `/web/`.
pub fn file(path: &str) -> Option<File> {
    let path = if path == "/" { PAGE } else { path };
    let (_, bytes) = FILES.iter().find(|(known, _)| *known == path)?;
    Some(File { content_type: content_type(path), bytes, etag: etag(bytes) })
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

/// FNV-1a: it tells one build of the page from another and protects nothing.
fn etag(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("\"{hash:016x}\"")
}

const PAGE: &str = "/web/index.html";
