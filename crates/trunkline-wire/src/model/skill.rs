//! Skills (SEP-2640): folders of instructions for a model, served as resources.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spelling::is_false;
use crate::json::Json;

model! {
    /// A skill in a server's list.
    pub struct Skill {
        /// Where its `SKILL.md` is.
        pub uri: String,
        /// The frontmatter of the `SKILL.md`, as an object.
        pub frontmatter: Json,
        /// Its files.
        pub resources: SkillFiles,
        /// The `_meta` member.
        pub meta?: Json,
    }
}

/// The files of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillFiles {
    /// All of them, the `SKILL.md` included.
    Listed(Vec<SkillFile>),
    /// They are generated when read, so they cannot be listed.
    Dynamic,
}

model! {
    /// One file of a skill.
    #[derive(Eq)]
    pub struct SkillFile {
        /// Where it is.
        pub uri: String,
        /// `sha256:` and the hash of its bytes in lowercase hexadecimal digits.
        pub digest: String,
        /// Its length in bytes.
        pub size: u64,
    }

    /// The parameters of `skills/get`.
    #[derive(Eq)]
    pub struct GetSkillParams {
        /// The `SKILL.md` of the skill.
        pub uri: String,
    }

    /// The answer to `skills/get`.
    pub struct GetSkillResult {
        /// The skill.
        pub skill: Skill,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// The parameters of `resources/directory/read`.
    #[derive(Eq)]
    pub struct ReadDirectoryParams {
        /// The directory.
        pub uri: String,
        /// The cursor.
        pub cursor?: String,
    }

    /// A server's settings of the extension.
    #[derive(Copy, Default, Eq)]
    #[serde(default)]
    pub struct SkillsSettings {
        /// It answers `resources/directory/read`.
        #[serde(skip_serializing_if = "is_false")]
        pub directory_read: bool,
    }
}

impl Skill {
    /// A skill.
    pub fn new(uri: impl Into<String>, frontmatter: Json, resources: SkillFiles) -> Self {
        Self { uri: uri.into(), frontmatter, resources, meta: None }
    }

    /// The name in its frontmatter.
    pub fn name(&self) -> Option<String> {
        self.field("name")
    }

    /// The description in its frontmatter.
    pub fn description(&self) -> Option<String> {
        self.field("description")
    }

    fn field(&self, name: &str) -> Option<String> {
        let fields: serde_json::Map<String, serde_json::Value> = self.frontmatter.to().ok()?;
        fields.get(name)?.as_str().map(str::to_owned)
    }
}

setters! { Skill = Skill::new("skill://pdf/SKILL.md", Json::empty_object(), SkillFiles::Dynamic);
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""resources":"dynamic","_meta":{}"#;
}

impl SkillFile {
    /// A file.
    pub fn new(uri: impl Into<String>, digest: impl Into<String>, size: u64) -> Self {
        Self { uri: uri.into(), digest: digest.into(), size }
    }
}

impl GetSkillParams {
    /// Asks for one skill.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

impl GetSkillResult {
    /// One skill.
    pub fn new(skill: Skill) -> Self {
        Self { skill, meta: None }
    }
}

impl ReadDirectoryParams {
    /// Reads one directory.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), cursor: None }
    }
}

setters! { ReadDirectoryParams = ReadDirectoryParams::new("skill://pdf");
    /// Sets the cursor.
    cursor(String) = "page-2" => r#"{"uri":"skill://pdf","cursor":"page-2"}"#;
}

impl SkillsSettings {
    /// Skills whose directories can be read, or not.
    pub fn new(directory_read: bool) -> Self {
        Self { directory_read }
    }

    /// Whether `settings`, as received, allow reading directories.
    pub(super) fn reads_directories(settings: &Json) -> bool {
        settings.to::<Self>().is_ok_and(|it| it.directory_read)
    }
}

impl Serialize for SkillFiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Listed(files) => files.serialize(serializer),
            Self::Dynamic => serializer.serialize_str(DYNAMIC),
        }
    }
}

impl<'de> Deserialize<'de> for SkillFiles {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let raw = Json::deserialize(de)?;
        if raw.to::<String>().is_ok_and(|it| it == DYNAMIC) {
            return Ok(Self::Dynamic);
        }
        raw.to().map(Self::Listed).map_err(D::Error::custom)
    }
}

/// The value in place of a list that cannot be given.
const DYNAMIC: &str = "dynamic";
