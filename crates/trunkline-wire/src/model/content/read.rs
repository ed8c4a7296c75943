//! The contents of a resource → a text, or bytes.

use super::{ResourceContents, ResourceData};
use crate::text::base64;

impl ResourceContents {
    /// Its text, if it is one.
    #[doc = example!(r#"let contents = ResourceContents::text("file:///a", "A");"#,
        r#"assert_eq!(contents.as_text(), Some("A"));"#)]
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            ResourceData::Text(text) => Some(text),
            ResourceData::Blob(_) => None,
        }
    }

    /// Its bytes in either case; `None` if the base64 is invalid.
    #[doc = example!(r#"let contents = ResourceContents::blob("file:///a", "aGk=");"#,
        r#"assert_eq!(contents.bytes(), Some(b"hi".to_vec()));"#)]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.data {
            ResourceData::Text(text) => Some(text.clone().into_bytes()),
            ResourceData::Blob(blob) => base64::decode(blob),
        }
    }
}
