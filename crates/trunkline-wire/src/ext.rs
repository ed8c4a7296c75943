//! The rules of extensions that are more than a few types: so far [`skills`].

mod frontmatter;
pub mod skills;
