//! Reads the pages of one server's lists into [`Lists`], independent of any revision and fit to store.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline_auth::digest::sha256;
use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{
    Implementation, Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool,
};
use trunkline_wire::revision::{Era, Revision};
use trunkline_wire::text::{MAX_URI, UriTemplate};

use super::{Item, Kind, Target};

/// The bound on items of one kind from one server.
pub const MAX_ITEMS: usize = 10_000;
/// The bound on pages of one list.
pub const MAX_PAGES: usize = 64;
/// The bound on bytes of all pages of one server, so that they can be stored.
pub const MAX_BYTES: usize = 12 << 20;
/// The longest name, in bytes. Names longer than MCP allows are shown shortened.
pub const MAX_NAME: usize = 1 << 10;

/// The bound on bytes of one server's instructions.
pub const MAX_INSTRUCTIONS: usize = 64 << 10;

/// What one server offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lists {
    /// The revision of the connection.
    #[serde(with = "revision")]
    pub revision: Revision,
    /// The server's own name and version.
    pub server_info: Implementation,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// The server's instructions for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its tools, in its order, without duplicate names.
    #[serde(with = "shared")]
    pub tools: Vec<Arc<Tool>>,
    /// Its prompts, in its order, without duplicate names.
    #[serde(with = "shared")]
    pub prompts: Vec<Arc<Prompt>>,
    /// Its resources, in its order, without duplicate URIs.
    #[serde(with = "shared")]
    pub resources: Vec<Arc<Resource>>,
    /// Its resource templates, in its order, without duplicates.
    #[serde(with = "shared")]
    pub templates: Vec<Arc<ResourceTemplate>>,
    /// What was left out and why, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    etags: Etags,
}

/// SHA-256 of each list, and of all together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Etags {
    tools: Box<str>,
    prompts: Box<str>,
    resources: Box<str>,
    templates: Box<str>,
    all: Box<str>,
}

impl Lists {
    /// Equal content has an equal etag, and other content another.
    pub fn etag(&self) -> &str {
        &self.etags.all
    }

    /// The etag of one list.
    pub fn etag_of(&self, kind: Kind) -> &str {
        match kind {
            Kind::Tools => &self.etags.tools,
            Kind::Prompts => &self.etags.prompts,
            Kind::Resources => &self.etags.resources,
            Kind::Templates => &self.etags.templates,
        }
    }

    /// All items, as targets for rules.
    pub(crate) fn targets(&self, server: &Arc<str>) -> impl Iterator<Item = Target> {
        let to = |name: &str, item| Target { server: Arc::clone(server), name: name.into(), item };
        let tools = self.tools.iter().map(move |it| to(&it.name, Item::Tool(Arc::clone(it))));
        let prompts = self.prompts.iter().map(move |it| to(&it.name, Item::Prompt(Arc::clone(it))));
        let resources =
            self.resources.iter().map(move |it| to(&it.uri, Item::Resource(Arc::clone(it))));
        let templates = self
            .templates
            .iter()
            .map(move |it| to(&it.uri_template, Item::Template(Arc::clone(it))));
        tools.chain(prompts).chain(resources).chain(templates)
    }

    /// How many items of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Tools => self.tools.len(),
            Kind::Prompts => self.prompts.len(),
            Kind::Resources => self.resources.len(),
            Kind::Templates => self.templates.len(),
        }
    }

    /// Whether stored lists still match their digest.
    pub(crate) fn is_sound(&self) -> bool {
        self.etags == self.digest()
    }

    fn digest(&self) -> Etags {
        let hash = |text: String| sha256(text.as_bytes()).into_boxed_str();
        let of = |json: Json| hash(json.to_string());
        let (tools, prompts) = (of(list(&self.tools)), of(list(&self.prompts)));
        let (resources, templates) = (of(list(&self.resources)), of(list(&self.templates)));
        let head = Json::of(&(
            self.revision.as_str(),
            &self.server_info,
            &self.capabilities,
            &self.instructions,
        ));
        let all = hash(format!("{head}\n{tools}\n{prompts}\n{resources}\n{templates}"));
        Etags { tools, prompts, resources, templates, all }
    }
}

fn list<T: Serialize>(items: &[Arc<T>]) -> Json {
    Json::of(&items.iter().map(|it| &**it).collect::<Vec<_>>())
}

/// [`Lists`] while they are being fetched.
#[derive(Debug)]
pub struct Draft {
    lists: Lists,
    /// Names and URIs seen so far.
    taken: HashSet<(Kind, Box<str>)>,
    /// Cursors seen so far: a server that repeats one would never end.
    cursors: HashSet<(Kind, Box<str>)>,
    pages: [usize; 4],
    bytes: usize,
}

/// The answer to a list request was no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPage(String);

impl Draft {
    /// Begins with the results of the handshake.
    pub fn new(
        revision: Revision,
        server_info: Implementation,
        capabilities: ServerCapabilities,
        instructions: Option<String>,
    ) -> Self {
        let lists = Lists {
            revision,
            server_info,
            capabilities,
            instructions: instructions.map(|it| cut(it, MAX_INSTRUCTIONS)),
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            warnings: Vec::new(),
            etags: Etags::default(),
        };
        let (taken, cursors) = (HashSet::new(), HashSet::new());
        Self { lists, taken, cursors, pages: [0; 4], bytes: 0 }
    }

    /// Whether the server declares any of this.
    pub fn wants(&self, kind: Kind) -> bool {
        let capabilities = &self.lists.capabilities;
        match kind {
            Kind::Tools => capabilities.tools.is_some(),
            Kind::Prompts => capabilities.prompts.is_some(),
            Kind::Resources | Kind::Templates => capabilities.resources.is_some(),
        }
    }

    /// Adds a page. `Some` is the cursor of the next page; `None` if the list is done, because the server says
    /// so or because a bound is reached.
    pub fn add(&mut self, kind: Kind, page: &Json) -> Result<Option<String>, BadPage> {
        let no_list = || BadPage(format!("The answer to `{}` was no list.", kind.method()));
        let mut members = Object::parse(page.get()).map_err(|_| no_list())?;
        let items = members.take(kind.member()).ok_or_else(no_list)?;
        let items: Vec<Json> = items.to().map_err(|_| no_list())?;
        self.pages[kind as usize] += 1;
        for item in &items {
            if self.lists.count(kind) >= MAX_ITEMS {
                self.stop(kind, &format!("it has more than {MAX_ITEMS} items"));
                return Ok(None);
            }
            if self.bytes + item.get().len() > MAX_BYTES {
                self.stop(kind, &format!("all lists together exceed {} MiB", MAX_BYTES >> 20));
                return Ok(None);
            }
            match self.take(kind, item) {
                Ok(()) => self.bytes += item.get().len(),
                Err(why) => self.warn(why),
            }
        }
        let next: Option<String> =
            members.take("nextCursor").and_then(|cursor| cursor.to().ok().flatten());
        let Some(next) = next else { return Ok(None) };
        if self.pages[kind as usize] >= MAX_PAGES {
            self.stop(kind, &format!("it has more than {MAX_PAGES} pages"));
            return Ok(None);
        }
        if !self.cursors.insert((kind, next.as_str().into())) {
            self.stop(kind, "a cursor came twice");
            return Ok(None);
        }
        Ok(Some(next))
    }

    /// The fetched lists.
    pub fn finish(mut self) -> Lists {
        self.lists.etags = self.lists.digest();
        self.lists
    }

    fn stop(&mut self, kind: Kind, why: &str) {
        self.warn(format!("The rest of `{}` was left out: {why}.", kind.method()));
    }

    fn warn(&mut self, warning: String) {
        // A bad server must not fill the memory with warnings either.
        if self.lists.warnings.len() < MAX_WARNINGS {
            self.lists.warnings.push(warning);
        }
    }

    fn take(&mut self, kind: Kind, item: &Json) -> Result<(), String> {
        match kind {
            Kind::Tools => {
                let mut tool: Tool = read(kind, item)?;
                self.claim(kind, &tool.name, check_name)?;
                if let Some(warning) = check_schemas(&mut tool, self.lists.revision)? {
                    self.warn(warning);
                }
                self.lists.tools.push(Arc::new(tool));
            }
            Kind::Prompts => {
                let prompt: Prompt = read(kind, item)?;
                self.claim(kind, &prompt.name, check_name)?;
                self.lists.prompts.push(Arc::new(prompt));
            }
            Kind::Resources => {
                let resource: Resource = read(kind, item)?;
                self.claim(kind, &resource.uri, check_uri)?;
                self.lists.resources.push(Arc::new(resource));
            }
            Kind::Templates => {
                let template: ResourceTemplate = read(kind, item)?;
                self.claim(kind, &template.uri_template, check_template)?;
                self.lists.templates.push(Arc::new(template));
            }
        }
        Ok(())
    }

    fn claim(
        &mut self,
        kind: Kind,
        name: &str,
        check: fn(&str) -> Result<(), String>,
    ) -> Result<(), String> {
        let left_out = |why: &str| {
            let name: String = name.chars().take(80).flat_map(char::escape_default).collect();
            format!("`{name}` of `{}` was left out: {why}.", kind.method())
        };
        check(name).map_err(|why| left_out(&why))?;
        if !self.taken.insert((kind, name.into())) {
            return Err(left_out("there is one of that name before it"));
        }
        Ok(())
    }
}

fn read<T: serde::de::DeserializeOwned>(kind: Kind, item: &Json) -> Result<T, String> {
    // Derived deserializers accept arrays for objects.
    if !item.is_object() {
        return Err(format!("An item of `{}` was left out: it is no object.", kind.method()));
    }
    item.to().map_err(|error| format!("An item of `{}` was left out: {error}.", kind.method()))
}

fn check_name(name: &str) -> Result<(), String> {
    match name {
        "" => Err("it has no name".into()),
        _ if name.len() > MAX_NAME => Err(format!("its name exceeds {MAX_NAME} bytes")),
        _ if name.chars().any(char::is_control) => Err("its name has control characters".into()),
        _ => Ok(()),
    }
}

fn check_uri(uri: &str) -> Result<(), String> {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    match uri {
        _ if !is_scheme => Err("its URI has no scheme".into()),
        _ if uri.len() > MAX_URI => Err(format!("its URI exceeds {} KiB", MAX_URI >> 10)),
        _ if uri.chars().any(char::is_control) => Err("its URI has control characters".into()),
        _ => Ok(()),
    }
}

fn check_template(template: &str) -> Result<(), String> {
    match UriTemplate::parse(template) {
        Ok(_) if template.is_empty() => Err("it has no URI template".into()),
        Ok(_) => Ok(()),
        Err(_) => Err("its URI template cannot be read".into()),
    }
}

/// Strict clients reject a whole list over one schema, so a bad one must not get through.
fn check_schemas(tool: &mut Tool, revision: Revision) -> Result<Option<String>, String> {
    let name = &tool.name;
    let left_out = |why: &str| format!("The tool `{name}` was left out: {why}.");
    let schema = Object::parse(tool.input_schema.get())
        .map_err(|_| left_out("its input schema is no object"))?;
    match schema.get("type").map(Json::get) {
        Some(r#""object""#) => {}
        Some(_) => return Err(left_out("its input is no object")),
        // The type is missing: arguments are always an object, so add it.
        None => {
            let rest = tool.input_schema.get()[1..].trim_start();
            let comma = if rest == "}" { "" } else { "," };
            tool.input_schema = Json::parse(format!(r#"{{"type":"object"{comma}{rest}"#))
                .map_err(|_| left_out("its input schema is nested too deeply"))?;
        }
    }
    // MCP tells clients to drop such tools. For older servers the annotations mean nothing.
    if revision.era() == Era::Stateless && ParamHeaders::read(&tool.input_schema).is_err() {
        return Err(left_out("its `x-mcp-header` annotations are not valid"));
    }
    if tool.output_schema.as_ref().is_some_and(|schema| !schema.is_object()) {
        tool.output_schema = None;
        return Ok(Some(format!("The output schema of `{name}` was left out: it is no object.")));
    }
    Ok(None)
}

impl fmt::Display for BadPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPage {}

mod revision {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};
    use trunkline_wire::revision::Revision;

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    pub(super) fn serialize<S: Serializer>(it: &Revision, ser: S) -> Result<S::Ok, S::Error> {
        ser.serialize_str(it.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(de: D) -> Result<Revision, D::Error> {
        let text = String::deserialize(de)?;
        text.parse().map_err(D::Error::custom)
    }
}

mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        items: &[Arc<T>],
        ser: S,
    ) -> Result<S::Ok, S::Error> {
        ser.collect_seq(items.iter().map(|it| &**it))
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        de: D,
    ) -> Result<Vec<Arc<T>>, D::Error> {
        Ok(Vec::<T>::deserialize(de)?.into_iter().map(Arc::new).collect())
    }
}

/// Shortens a text, with `…` at the end.
pub(crate) fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most.saturating_sub(3)));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

const MAX_WARNINGS: usize = 100;

#[cfg(test)]
mod tests;
