//! The rules for skills (SEP-2640): names, the location of files, and frontmatter.
//!
//! ```
//! use trunkline_wire::ext::skills::{is_skill_name, name_of, read_frontmatter};
//!
//! let front = read_frontmatter("---\nname: pdf\n---\n# How to read PDFs\n").unwrap();
//! assert_eq!(front["name"], name_of("skill://pdf/SKILL.md").unwrap());
//! assert!(is_skill_name("pdf"));
//! ```

use serde_json::{Map, Value};

use super::frontmatter;
pub use super::frontmatter::BadFrontmatter;

/// The file that every skill has at its root.
pub const SKILL_FILE: &str = "SKILL.md";
/// The scheme of the URIs that servers should use.
pub const SKILL_SCHEME: &str = "skill://";
/// The media type of a directory among resources.
pub const DIRECTORY_TYPE: &str = "inode/directory";
/// How many files a skill should have at most.
pub const MAX_FILES: usize = 512;
/// How many bytes a skill's files should have together at most.
pub const MAX_BYTES: u64 = 16 << 20;

/// Whether `name` is 1 to 64 of `a–z 0–9 -`, without a hyphen at either end or two in a row.
///
/// ```
/// # use trunkline_wire::ext::skills::*;
/// assert!(is_skill_name("pdf-forms2"));
/// assert!(!is_skill_name("PDF") && !is_skill_name("pdf--forms") && !is_skill_name("pdf-"));
/// ```
pub fn is_skill_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// The directory of a skill, from the URI of its `SKILL.md`.
///
/// ```
/// # use trunkline_wire::ext::skills::*;
/// assert_eq!(directory("skill://acme/pdf/SKILL.md"), Some("skill://acme/pdf"));
/// assert_eq!(directory("skill://acme/pdf/notes.md"), None);
/// ```
pub fn directory(uri: &str) -> Option<&str> {
    uri.strip_suffix(SKILL_FILE)?.strip_suffix('/').filter(|it| !it.ends_with('/'))
}

/// The name of a skill, from the URI of its `SKILL.md`.
///
/// ```
/// # use trunkline_wire::ext::skills::*;
/// assert_eq!(name_of("skill://acme/pdf/SKILL.md"), Some("pdf"));
/// assert_eq!(name_of("skill:///SKILL.md"), None);
/// ```
pub fn name_of(uri: &str) -> Option<&str> {
    let directory = directory(uri)?;
    let (_, path) = directory.split_once("://")?;
    path.rsplit('/').next().filter(|it| !it.is_empty())
}

/// Whether `uri` is a file below `directory`, without `.` or `..` segments.
///
/// ```
/// # use trunkline_wire::ext::skills::*;
/// assert!(is_within("skill://pdf/references/forms.md", "skill://pdf"));
/// assert!(!is_within("skill://pdf/../other/a.md", "skill://pdf"));
/// assert!(!is_within("skill://pdfs/a.md", "skill://pdf"));
/// ```
pub fn is_within(uri: &str, directory: &str) -> bool {
    let inside = uri.strip_prefix(directory).and_then(|it| it.strip_prefix('/'));
    inside.is_some_and(|path| path.split('/').all(|it| !matches!(it, "" | "." | "..")))
}

/// The frontmatter of a `SKILL.md`: the text between two lines of `---` at its start.
///
/// ```
/// # use trunkline_wire::ext::skills::*;
/// let front = read_frontmatter("---\nname: pdf\ntags: [a, b]\n---\n").unwrap();
/// assert_eq!(front["tags"], serde_json::json!(["a", "b"]));
/// assert!(read_frontmatter("# No frontmatter\n").is_err());
/// ```
pub fn read_frontmatter(text: &str) -> Result<Map<String, Value>, BadFrontmatter> {
    frontmatter::read(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lowercase_words_with_single_hyphens() {
        for name in ["a", "pdf-processing", "a1-2b", "9", &"x".repeat(64)] {
            assert!(is_skill_name(name), "{name}");
        }
        for name in ["", "-a", "a-", "a--b", "A", "a_b", "a/b", "ä", &"x".repeat(65)] {
            assert!(!is_skill_name(name), "{name}");
        }
    }

    #[test]
    fn a_uri_tells_directory_and_name() {
        for (uri, directory_of, name) in [
            ("skill://pdf/SKILL.md", Some("skill://pdf"), Some("pdf")),
            ("skill://acme/billing/pdf/SKILL.md", Some("skill://acme/billing/pdf"), Some("pdf")),
            ("skill://pdf/notes.md", None, None),
            ("skill://pdf/xSKILL.md", None, None),
            ("skill:///SKILL.md", None, None),
            ("SKILL.md", None, None),
        ] {
            assert_eq!((directory(uri), name_of(uri)), (directory_of, name), "{uri}");
        }
    }

    #[test]
    fn files_are_below_their_directory() {
        for uri in ["skill://pdf/SKILL.md", "skill://pdf/references/FORMS.md"] {
            assert!(is_within(uri, "skill://pdf"), "{uri}");
        }
        for uri in [
            "skill://pdf",
            "skill://pdf/",
            "skill://pdfs/a.md",
            "skill://pdf/../other/a.md",
            "skill://pdf/a//b",
            "file:///etc/passwd",
        ] {
            assert!(!is_within(uri, "skill://pdf"), "{uri}");
        }
    }
}
