//! Skills (SEP-2640): a `SKILL.md` and its files → a list, resources and directories.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use trunkline_auth::digest;
use trunkline_proto::Call;
use trunkline_wire::ext::skills::{
    BadFrontmatter, DIRECTORY_TYPE, MAX_BYTES, MAX_FILES, SKILL_FILE, SKILL_SCHEME, is_skill_name,
    name_of, read_frontmatter,
};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::model::{
    GetSkillParams, GetSkillResult, ListSkillsResult, ReadDirectoryParams, ReadDirectoryResult,
    Resource, ResourceContents, Skill, SkillFile, SkillFiles,
};

use super::Inner;
use trunkline_wire::text::percent_encode;

use super::lists::{Entry, List, page};
use super::resource::{ResourceEntry, resource};

/// A skill, ready to be registered.
///
/// ```
/// let text = "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse `pdftotext`.";
/// let pdf = trunkline::skill("pdf", text).unwrap();
/// assert!(trunkline::Server::builder("skills", "1.0.0").skill(pdf).try_build().is_ok());
/// ```
#[derive(Clone)]
pub struct SkillEntry {
    skill: Skill,
    directory: String,
    /// Its files, the `SKILL.md` first.
    files: Vec<File>,
    bytes: u64,
}

#[derive(Clone)]
struct File {
    resource: Resource,
    content: Arc<[u8]>,
}

/// Makes a skill of the text of a `SKILL.md`, which begins with its frontmatter. The last segment
/// of `path` is the skill's name; the segments before it, as in `acme/billing/pdf`, distinguish it
/// from others.
///
/// ```
/// # use trunkline::{Client, Server, skill}; tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let text = "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse `pdftotext`.";
/// let server = Server::builder("skills", "1.0.0").skill(skill("acme/pdf", text)?).build();
/// let client = Client::in_memory(&server).await?;
/// assert_eq!(client.list_skills().await?[0].uri, "skill://acme/pdf/SKILL.md");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub fn skill(path: &str, text: impl Into<String>) -> Result<SkillEntry, BadSkill> {
    let text = text.into();
    let directory = below(SKILL_SCHEME, path).ok_or_else(|| BadSkill::Name(path.to_owned()))?;
    let uri = format!("{directory}/{SKILL_FILE}");
    let name = name_of(&uri).filter(|it| is_skill_name(it));
    let name = name.ok_or_else(|| BadSkill::Name(path.to_owned()))?;
    let frontmatter = read_frontmatter(&text).map_err(BadSkill::Frontmatter)?;
    let field = |name: &str| frontmatter.get(name).and_then(|it| it.as_str());
    if field("name") != Some(name) {
        return Err(BadSkill::OtherName(name.to_owned()));
    }
    let description = field("description").filter(|it| !it.is_empty());
    let description = description.ok_or(BadSkill::NoDescription)?;
    let resource = Resource::new(&*uri, name).description(description).mime_type("text/markdown");
    let skill = Skill::new(uri, Json::of(&frontmatter), SkillFiles::Listed(Vec::new()));
    SkillEntry { skill, directory, files: Vec::new(), bytes: 0 }.add(resource, text.into_bytes())
}

impl SkillEntry {
    /// Adds a file, by its path below the skill's directory.
    ///
    /// ```
    /// let text = "---\nname: pdf\ndescription: Reads PDF files.\n---\nRun `pdf.sh`.";
    /// let pdf = trunkline::skill("pdf", text).unwrap();
    /// let pdf = pdf.file("pdf.sh", "text/x-sh", "pdftotext \"$1\" -").unwrap();
    /// assert!(pdf.file("../other.sh", "text/x-sh", "").is_err(), "it is outside of the skill");
    /// ```
    pub fn file(
        self,
        path: &str,
        mime_type: impl Into<String>,
        content: impl Into<Vec<u8>>,
    ) -> Result<Self, BadSkill> {
        let is_new = |uri: &String| self.files.iter().all(|it| it.resource.uri != *uri);
        let uri = below(&format!("{}/", self.directory), path).filter(is_new);
        let uri = uri.ok_or_else(|| BadSkill::Path(path.to_owned()))?;
        let name = path.rsplit('/').next().unwrap_or(path);
        self.add(Resource::new(&*uri, name).mime_type(mime_type), content.into())
    }

    /// The `SKILL.md` as a resource.
    pub(super) fn resource(&self) -> ResourceEntry {
        let File { resource: about, content } = self.files[0].clone();
        let text = move || ready(String::from_utf8_lossy(&content).into_owned());
        resource(about.uri, about.name, text)
            .about(about.description.unwrap_or_default())
            .mime_type(about.mime_type.unwrap_or_default())
    }

    fn add(mut self, resource: Resource, content: Vec<u8>) -> Result<Self, BadSkill> {
        let size = content.len() as u64;
        self.bytes += size;
        if self.files.len() >= MAX_FILES || self.bytes > MAX_BYTES {
            return Err(BadSkill::TooLarge);
        }
        let file = SkillFile::new(&*resource.uri, digest::sha256(&content), size);
        if let SkillFiles::Listed(files) = &mut self.skill.resources {
            files.push(file);
        }
        self.files.push(File { resource: resource.size(size), content: content.into() });
        Ok(self)
    }
}

impl Entry for SkillEntry {
    fn key(&self) -> &str {
        &self.skill.uri
    }
}

/// Why something is not a skill.
///
/// ```
/// use trunkline::server::BadSkill;
///
/// let other = trunkline::skill("pdf", "---\nname: doc\ndescription: Reads.\n---\n");
/// assert_eq!(other.err(), Some(BadSkill::OtherName("pdf".to_owned())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadSkill {
    /// The path does not end in a skill's name.
    Name(String),
    /// The frontmatter cannot be parsed.
    Frontmatter(BadFrontmatter),
    /// The name in the frontmatter differs from the one in the path.
    OtherName(String),
    /// The frontmatter has no description.
    NoDescription,
    /// A file is outside the skill, or is a duplicate.
    Path(String),
    /// There are too many files, or they are too large.
    TooLarge,
}

impl fmt::Display for BadSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(path) => write!(
                f,
                "`{path}` does not end in a skill's name: use 1 to 64 lowercase letters, digits \
                 and single hyphens."
            ),
            Self::Frontmatter(why) => why.fmt(f),
            Self::OtherName(name) => {
                write!(f, "The frontmatter must say `name: {name}`, as the path does.")
            }
            Self::NoDescription => f.write_str("The frontmatter must have a `description`."),
            Self::Path(path) => {
                write!(f, "`{path}` is no file below the skill, or it is there already.")
            }
            Self::TooLarge => {
                write!(f, "A skill has at most {MAX_FILES} files and 16 MiB; split it.")
            }
        }
    }
}

impl std::error::Error for BadSkill {}

/// The skills of a server, and the directories of their files.
#[derive(Default)]
pub(crate) struct Skills {
    skills: List<SkillEntry>,
    /// The skill and the index of each file except the `SKILL.md`.
    files: HashMap<String, (Arc<SkillEntry>, usize)>,
    /// The direct children of each directory, in order of registration.
    directories: BTreeMap<String, Vec<Resource>>,
}

impl Skills {
    pub(super) fn add(&mut self, skill: SkillEntry) {
        self.skills.put(skill);
        // A replaced skill takes its files and directories with it, so rebuild both.
        self.files.clear();
        self.directories.clear();
        for skill in self.skills.iter() {
            for (which, file) in skill.files.iter().enumerate() {
                add_to_parent(&mut self.directories, file.resource.clone());
                // The `SKILL.md` is a resource like any other.
                if which > 0 {
                    self.files.insert(file.resource.uri.clone(), (Arc::clone(skill), which));
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<SkillEntry>> {
        self.skills.iter()
    }

    /// Adds each `SKILL.md` to the resources, unless a resource has its URI.
    pub(super) fn offer(&self, resources: &mut List<ResourceEntry>, faults: &mut Vec<String>) {
        for skill in self.iter() {
            match resources.find(skill.key()) {
                Some(_) => faults.push(clash(skill.key())),
                None => resources.put(skill.resource()),
            }
        }
    }

    /// Adds a fault for each file that has the URI of a resource: their visibility may differ.
    pub(super) fn check(&self, resources: &List<ResourceEntry>, faults: &mut Vec<String>) {
        let all = self.iter().flat_map(|it| it.files.iter().skip(1));
        let taken = all.map(|it| &*it.resource.uri).filter(|it| resources.find(it).is_some());
        faults.extend(taken.map(clash));
    }

    /// The content of a skill's file, other than its `SKILL.md`.
    pub(super) fn file(&self, uri: &str) -> Option<ResourceContents> {
        let (skill, file) = self.files.get(uri)?;
        let File { resource, content } = &skill.files[*file];
        let contents = match str::from_utf8(content) {
            Ok(text) => ResourceContents::text(uri, text),
            Err(_) => ResourceContents::blob(uri, STANDARD.encode(content)),
        };
        Some(contents.mime_type(resource.mime_type.clone().unwrap_or_default()))
    }
}

fn clash(uri: &str) -> String {
    format!("There are a resource and a file of a skill that are both `{uri}`; rename one.")
}

/// The URI of `path` below `root`; `None` if the path has `.` or `..` segments.
fn below(root: &str, path: &str) -> Option<String> {
    let mut uri = root.to_owned();
    for (at, part) in path.split('/').enumerate() {
        if matches!(part, "" | "." | "..") {
            return None;
        }
        if at > 0 {
            uri.push('/');
        }
        percent_encode(part, &mut uri);
    }
    Some(uri)
}

/// Adds a file or directory to its parent directory, and that one to its own.
fn add_to_parent(directories: &mut BTreeMap<String, Vec<Resource>>, child: Resource) {
    let Some((parent, _)) = child.uri.rsplit_once('/') else { return };
    if parent.strip_prefix(SKILL_SCHEME).is_none_or(str::is_empty) {
        return;
    }
    let parent = parent.to_owned();
    let is_new = !directories.contains_key(&parent);
    let children = directories.entry(parent.clone()).or_default();
    if children.iter().all(|it| it.uri != child.uri) {
        children.push(child);
    }
    if is_new {
        let name = parent.rsplit('/').next().unwrap_or_default().to_owned();
        add_to_parent(directories, Resource::new(parent, name).mime_type(DIRECTORY_TYPE));
    }
}

impl Inner {
    pub(super) fn list_skills(&self, call: &Call) -> Outcome {
        let (skills, next) = self.page(&self.skills.skills, call, |_| true)?;
        let mut result = ListSkillsResult::new(skills.iter().map(|it| it.skill.clone()).collect());
        let has_more = next.is_some();
        result.next_cursor = next;
        Ok(self.encode_page(result, true, has_more, call))
    }

    pub(super) fn get_skill(&self, call: &Call) -> Outcome {
        let params: GetSkillParams =
            call.params.to().map_err(|_| ErrorObject::invalid_params("`uri` must be a string."))?;
        let entry = self.skills.skills.find(&params.uri).ok_or_else(|| {
            ErrorObject::invalid_params(format!("There is no skill `{}`.", params.uri))
        })?;
        Ok(self.encode(GetSkillResult::new(entry.skill.clone()), call.revision))
    }

    pub(super) fn read_directory(&self, call: &Call) -> Outcome {
        let params: ReadDirectoryParams = call.params.to().map_err(|_| {
            ErrorObject::invalid_params("`uri` must be a string, and `cursor` too if it is there.")
        })?;
        let uri = params.uri.strip_suffix('/').unwrap_or(&params.uri);
        let children = self.skills.directories.get(uri).ok_or_else(|| {
            ErrorObject::invalid_params(format!("There is no directory `{}`.", params.uri))
        })?;
        let cursor = self.open_cursor(params.cursor, call, uri)?;
        let (children, next) = page(children, cursor.as_deref(), self.page)?;
        let has_more = next.is_some();
        let mut result = ReadDirectoryResult::new(children.to_vec());
        result.next_cursor = self.seal_cursor(next, call, uri);
        Ok(self.encode_page(result, true, has_more, call))
    }
}
