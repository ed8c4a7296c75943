//! The skills of a server (SEP-2640): lists them, and verifies their files.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use trunkline_auth::digest;
use trunkline_wire::ext::skills::{self, BadFrontmatter};
use trunkline_wire::method::Method;
use trunkline_wire::model::{
    GetSkillParams, GetSkillResult, ListParams, ListSkillsResult, ReadDirectoryParams,
    ReadDirectoryResult, ReadResourceResult, Resource, ResourceData, Skill, SkillFile, SkillFiles,
};

use super::Client;
use super::call::Call;
use super::error::CallError;
use super::pages::{Page, follow};

impl Client {
    /// All skills. None of their files is read.
    pub fn list_skills(&self) -> Call<Vec<Skill>> {
        Call::new(
            self.caller.ask(Method::SkillsList, ListParams::new()),
            follow::<ListSkillsResult>,
        )
    }

    /// One page of skills.
    pub fn list_skills_page(&self, cursor: Option<&str>) -> Call<ListSkillsResult> {
        let mut params = ListParams::new();
        params.cursor = cursor.map(str::to_owned);
        Call::plain(self.caller.ask(Method::SkillsList, params))
    }

    /// One skill, by the URI of its `SKILL.md`.
    pub fn get_skill(&self, uri: impl Into<String>) -> Call<Skill> {
        Call::new(self.caller.ask(Method::SkillsGet, GetSkillParams::new(uri)), |mut ask| {
            Box::pin(async move { Ok(ask.send_and_read::<GetSkillResult>().await?.skill) })
        })
    }

    /// The direct children of a directory.
    pub fn read_directory(&self, uri: impl Into<String>) -> Call<Vec<Resource>> {
        let ask = self.caller.ask(Method::ResourcesDirectoryRead, ReadDirectoryParams::new(uri));
        Call::new(ask, follow::<ReadDirectoryResult>)
    }

    /// The `SKILL.md` of a skill, if it matches the size, the digest and every frontmatter field of
    /// its entry.
    pub async fn load_skill(&self, skill: &Skill) -> Result<String, SkillError> {
        let bytes = self.read_skill_file(skill, &skill.uri).await?;
        let text = String::from_utf8(bytes)
            .map_err(|_| SkillError::Contents("The `SKILL.md` is not text."))?;
        let found = skills::read_frontmatter(&text).map_err(SkillError::Unreadable)?;
        let promised: Value = skill.frontmatter.to().unwrap_or_default();
        match first_difference(&promised, &Value::Object(found)) {
            None => Ok(text),
            Some(field) => Err(SkillError::Frontmatter(field)),
        }
    }

    /// A file of a skill, if it matches the skill's entry. A skill that is generated on demand has
    /// no digests; then only the file's URI is checked.
    pub async fn read_skill_file(&self, skill: &Skill, uri: &str) -> Result<Vec<u8>, SkillError> {
        let promised = promised(skill, uri)?;
        let result = self.read_resource(uri).await.map_err(SkillError::Call)?;
        let bytes = bytes(result, uri)?;
        if let Some(file) = promised {
            let size = bytes.len() as u64;
            if size != file.size {
                return Err(SkillError::Size { promised: file.size, found: size });
            }
            if digest::sha256(&bytes) != file.digest {
                return Err(SkillError::Digest);
            }
        }
        Ok(bytes)
    }
}

impl Page for ListSkillsResult {
    type Item = Skill;

    fn split(self) -> (Vec<Skill>, Option<String>) {
        (self.skills, self.next_cursor)
    }
}

impl Page for ReadDirectoryResult {
    type Item = Resource;

    fn split(self) -> (Vec<Resource>, Option<String>) {
        (self.resources, self.next_cursor)
    }
}

/// Why a file of a skill must not be used.
///
/// ```
/// use trunkline::{Client, Server, client::SkillError, skill};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let pdf = skill("pdf", "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse it.")?;
/// let client = Client::in_memory(&Server::builder("skills", "1").skill(pdf).build()).await?;
/// let skill = client.get_skill("skill://pdf/SKILL.md").await?;
/// let outcome = client.read_skill_file(&skill, "skill://other/SKILL.md").await;
/// assert!(matches!(outcome, Err(SkillError::NotListed(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SkillError {
    /// It could not be read.
    Call(CallError),
    /// The skill's entry does not list it, or lists it outside the skill.
    NotListed(String),
    /// The result is not exactly one file.
    Contents(&'static str),
    /// Its size differs from the entry's.
    Size {
        /// The size in the entry.
        promised: u64,
        /// The size of the file.
        found: u64,
    },
    /// Its digest differs from the entry's.
    Digest,
    /// Its frontmatter cannot be parsed, so it cannot be compared.
    Unreadable(BadFrontmatter),
    /// This field of its frontmatter differs from the entry's.
    Frontmatter(String),
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => return error.fmt(f),
            Self::NotListed(uri) => write!(f, "`{uri}` is no file of this skill.")?,
            Self::Contents(why) => f.write_str(why)?,
            Self::Size { promised, found } => {
                write!(f, "The file has {found} bytes, but its skill promises {promised}.")?;
            }
            Self::Digest => f.write_str("The file is not the one that its skill promises.")?,
            Self::Unreadable(why) => why.fmt(f)?,
            Self::Frontmatter(field) => {
                write!(f, "The skill's list and its file differ in `{field}`.")?;
            }
        }
        f.write_str(" Do not use it; fetch the list anew, and ask who runs the server.")
    }
}

impl std::error::Error for SkillError {}

/// The entry of one file; `None` if the skill has no entries in advance.
fn promised<'a>(skill: &'a Skill, uri: &str) -> Result<Option<&'a SkillFile>, SkillError> {
    let not_listed = || SkillError::NotListed(uri.to_owned());
    let directory = skills::directory(&skill.uri).ok_or_else(not_listed)?;
    if !skills::is_within(uri, directory) {
        return Err(not_listed());
    }
    match &skill.resources {
        SkillFiles::Dynamic => Ok(None),
        SkillFiles::Listed(files) => {
            let mut found = files.iter().filter(|it| it.uri == uri);
            match (found.next(), found.next()) {
                (Some(file), None) => Ok(Some(file)),
                // Two entries of one file contradict each other, so neither counts.
                _ => Err(not_listed()),
            }
        }
    }
}

/// The content of the one file that was read.
fn bytes(result: ReadResourceResult, uri: &str) -> Result<Vec<u8>, SkillError> {
    let mut parts = result.contents.into_iter();
    let (Some(part), None) = (parts.next(), parts.next()) else {
        return Err(SkillError::Contents("The server did not answer with exactly one file."));
    };
    if part.uri != uri {
        return Err(SkillError::Contents("The server answered with another file."));
    }
    match part.data {
        ResourceData::Text(text) => Ok(text.into_bytes()),
        ResourceData::Blob(blob) => STANDARD
            .decode(blob)
            .map_err(|_| SkillError::Contents("The file is not what base64 looks like.")),
    }
}

/// The first field in which two frontmatters differ.
fn first_difference(one: &Value, other: &Value) -> Option<String> {
    let (Value::Object(one), Value::Object(other)) = (one, other) else {
        return Some("frontmatter".to_owned());
    };
    let differs = |name: &&String| match (one.get(*name), other.get(*name)) {
        (Some(one), Some(other)) => !is_same(one, other),
        _ => true,
    };
    one.keys().chain(other.keys()).find(differs).cloned()
}

/// Whether two values are equal; `1` and `1.0` are the same number.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() != other.is_f64() => {
            one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, it)| other.get(name).is_some_and(|its| is_same(it, its)))
        }
        _ => one == other,
    }
}
