//! The rules of extensions that need more than a few types: so far [`skills`].
//!
//! ```
//! use trunkline_wire::ext::skills;
//!
//! assert_eq!(skills::name_of("skill://pdf/SKILL.md"), Some("pdf"));
//! ```

mod frontmatter;
pub mod skills;
