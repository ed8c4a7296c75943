//! Content blocks: text, images, audio, resources, tool use.

mod read;

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spelling::{number, some_json};
use super::{Icon, Resource};
use crate::json::{Json, Reader, raw_text};

/// One block of content.
#[doc = example!(r##"let raw: Content = Json::parse(r#"{"type":"hologram","x":1}"#).unwrap().to().unwrap();"##,
    "assert!(matches!(raw, Content::Other(_)));")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// Sound.
    Audio(AudioContent),
    /// A resource, by its URI.
    ResourceLink(ResourceLink),
    /// A resource, contents and all.
    Resource(EmbeddedResource),
    /// A model wants to use a tool; only in sampling.
    ToolUse(ToolUseContent),
    /// The result of a tool; only in sampling.
    ToolResult(ToolResultContent),
    /// An unknown kind.
    Other(Json),
}

model! {
    /// Text.
    #[doc = example!(r#"let json = Json::of(&TextContent::new("Sunny"));"#,
        r##"assert_eq!(json.get(), r#"{"type":"text","text":"Sunny"}"#);"##)]
    pub struct TextContent {
        #[serde(rename = "type", skip_deserializing)]
        tag: tag::Text,
        /// The text.
        pub text: String,
        /// Display hints.
        pub annotations?: Annotations,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// A picture.
    #[doc = example!(r#"let json = Json::of(&ImageContent::new("iVBORw0=", "image/png"));"#,
        r##"assert_eq!(json.get(), r#"{"type":"image","data":"iVBORw0=","mimeType":"image/png"}"#);"##)]
    pub struct ImageContent {
        #[serde(rename = "type", skip_deserializing)]
        tag: tag::Image,
        /// The bytes, in base64.
        pub data: String,
        /// `image/png` …
        pub mime_type: String,
        /// Display hints.
        pub annotations?: Annotations,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// Sound.
    #[doc = example!(r#"let json = Json::of(&AudioContent::new("UklGRg==", "audio/wav"));"#,
        r##"assert_eq!(json.get(), r#"{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}"#);"##)]
    pub struct AudioContent {
        #[serde(rename = "type", skip_deserializing)]
        tag: tag::Audio,
        /// The bytes, in base64.
        pub data: String,
        /// `audio/wav` …
        pub mime_type: String,
        /// Playback hints.
        pub annotations?: Annotations,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// A resource, by its URI. It need not be in the server's list.
    #[doc = example!(r#"let link = ResourceLink::from(Resource::new("file:///a.md", "a").size(3_u64));"#,
        "assert_eq!(link.size, Some(3));")]
    pub struct ResourceLink {
        #[serde(rename = "type", skip_deserializing)]
        tag: tag::ResourceLink,
        /// Where it is.
        pub uri: String,
        /// Its name, for programs.
        pub name: String,
        /// Its display name.
        pub title?: String,
        /// What it is.
        pub description?: String,
        /// Its media type.
        pub mime_type?: String,
        /// Its size in bytes.
        pub size?: u64,
        /// Its icons.
        pub icons[]: Icon,
        /// Display hints.
        pub annotations?: Annotations,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// A resource, contents and all.
    #[doc = example!(r#"let block = Content::from(EmbeddedResource::new(ResourceContents::text("file:///a", "A")));"#,
        r##"let json = r#"{"type":"resource","resource":{"uri":"file:///a","text":"A"}}"#;"##,
        "assert_eq!(Json::of(&block).get(), json);")]
    pub struct EmbeddedResource {
        #[serde(rename = "type", skip_deserializing)]
        tag: tag::Resource,
        /// What is in it.
        pub resource: ResourceContents,
        /// Display hints.
        pub annotations?: Annotations,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// A model wants to use a tool.
    #[doc = example!(r#"let json = Json::of(&ToolUseContent::new("call-1", "add", Json::empty_object()));"#,
        r##"assert_eq!(json.get(), r#"{"type":"tool_use","id":"call-1","name":"add","input":{}}"#);"##)]
    pub struct ToolUseContent {
        #[serde(rename = "type", skip_deserializing)]
        tag: tag::ToolUse,
        /// The id that the result refers to.
        pub id: String,
        /// The tool.
        pub name: String,
        /// Its arguments.
        pub input: Json,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// The result of a tool, for a model.
    #[doc = example!(r#"let json = Json::of(&ToolResultContent::new("call-1", vec![]).is_error(true));"#,
        r##"assert!(json.get().starts_with(r#"{"type":"tool_result","toolUseId":"call-1""#));"##)]
    pub struct ToolResultContent {
        #[serde(rename = "type", skip_deserializing)]
        tag: tag::ToolResult,
        /// The tool use that it answers.
        pub tool_use_id: String,
        /// The result in blocks.
        pub content: Vec<Content>,
        /// The structured result; `null` is a value.
        #[serde(deserialize_with = "some_json")]
        pub structured_content?: Json,
        /// Whether the tool failed.
        pub is_error?: bool,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// Hints about showing something.
    #[doc = example!("let hints = Annotations::new().audience([Role::User]).priority(1.0);",
        r##"assert_eq!(Json::of(&hints).get(), r#"{"audience":["user"],"priority":1}"#);"##)]
    #[derive(Default)]
    pub struct Annotations {
        /// The audience; empty for everybody.
        pub audience[]: Role,
        /// The importance, from 0 (optional) to 1 (required).
        #[serde(with = "number::option")]
        pub priority?: f64,
        /// When it last changed, in ISO 8601.
        pub last_modified?: String,
    }
}

/// The role of a speaker.
#[doc = example!(r##"assert_eq!(Json::of(&Role::Assistant).get(), r#""assistant""#);"##)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Role {
    User,
    Assistant,
}

/// The contents of a resource, or of a part of one.
#[doc = example!(r##"let raw = Json::parse(r#"{"uri":"file:///a"}"#).unwrap();"##,
    r#"assert!(raw.to::<ResourceContents>().is_err(), "neither `text` nor `blob` is there");"#)]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// Where it is.
    pub uri: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// What it holds.
    pub data: ResourceData,
    /// The `_meta` member.
    pub meta: Option<Json>,
}

/// What a resource holds.
#[doc = example!(r##"let raw = Json::parse(r#"{"uri":"file:///a","blob":"AA=="}"#).unwrap();"##,
    r#"assert_eq!(raw.to::<ResourceContents>().unwrap().data, ResourceData::Blob("AA==".into()));"#)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceData {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

impl Content {
    /// A block of text.
    #[doc = example!(r#"assert_eq!(Content::text("Sunny"), "Sunny".into());"#)]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// A picture, its bytes in base64.
    #[doc = example!(r#"assert!(matches!(Content::image("iVBORw0=", "image/png"), Content::Image(_)));"#)]
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// Sound, its bytes in base64.
    #[doc = example!(r#"let json = Json::of(&Content::audio("UklGRg==", "audio/wav"));"#,
        r##"assert!(json.get().starts_with(r#"{"type":"audio""#));"##)]
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// The text, if it is a block of text.
    #[doc = example!(r#"assert_eq!(Content::text("Sunny").as_text(), Some("Sunny"));"#,
        r#"assert_eq!(Content::image("iVBORw0=", "image/png").as_text(), None);"#)]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

impl TextContent {
    /// Some text.
    #[doc = example!(r#"assert_eq!(TextContent::new("Sunny").text, "Sunny");"#)]
    pub fn new(text: impl Into<String>) -> Self {
        Self { tag: tag::Text, text: text.into(), annotations: None, meta: None }
    }
}

impl ImageContent {
    /// A picture, its bytes in base64.
    #[doc = example!(r#"assert_eq!(ImageContent::new("iVBORw0=", "image/png").mime_type, "image/png");"#)]
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        let (data, mime_type) = (data.into(), mime_type.into());
        Self { tag: tag::Image, data, mime_type, annotations: None, meta: None }
    }
}

impl AudioContent {
    /// Sound, its bytes in base64.
    #[doc = example!(r#"assert_eq!(AudioContent::new("UklGRg==", "audio/wav").data, "UklGRg==");"#)]
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        let (data, mime_type) = (data.into(), mime_type.into());
        Self { tag: tag::Audio, data, mime_type, annotations: None, meta: None }
    }
}

impl ResourceLink {
    /// A link to a resource.
    #[doc = example!(r#"let json = Json::of(&ResourceLink::new("file:///a.md", "a"));"#,
        r##"assert_eq!(json.get(), r#"{"type":"resource_link","uri":"file:///a.md","name":"a"}"#);"##)]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Resource::new(uri, name).into()
    }
}

impl From<Resource> for ResourceLink {
    fn from(it: Resource) -> Self {
        Self {
            tag: tag::ResourceLink,
            uri: it.uri,
            name: it.name,
            title: it.title,
            description: it.description,
            mime_type: it.mime_type,
            size: it.size,
            icons: it.icons,
            annotations: it.annotations,
            meta: it.meta,
        }
    }
}

impl EmbeddedResource {
    /// A resource, contents and all.
    #[doc = example!(r#"let block = EmbeddedResource::new(ResourceContents::blob("file:///a", "AA=="));"#,
        r#"assert_eq!(block.resource.uri, "file:///a");"#)]
    pub fn new(resource: ResourceContents) -> Self {
        Self { tag: tag::Resource, resource, annotations: None, meta: None }
    }
}

impl ToolUseContent {
    /// A model wants to use a tool.
    #[doc = example!(r#"assert_eq!(ToolUseContent::new("call-1", "add", Json::empty_object()).name, "add");"#)]
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Json) -> Self {
        Self { tag: tag::ToolUse, id: id.into(), name: name.into(), input, meta: None }
    }
}

impl ToolResultContent {
    /// The result of a tool.
    #[doc = example!(r#"assert_eq!(ToolResultContent::new("call-1", vec!["3".into()]).is_error, None);"#)]
    pub fn new(tool_use_id: impl Into<String>, content: Vec<Content>) -> Self {
        Self {
            tag: tag::ToolResult,
            tool_use_id: tool_use_id.into(),
            content,
            structured_content: None,
            is_error: None,
            meta: None,
        }
    }
}

setters! { TextContent = TextContent::new("Sunny");
    /// Adds display hints.
    annotations(Annotations) = Annotations::new().priority(1.0)
        => r#""annotations":{"priority":1}"#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}
setters! { ImageContent = ImageContent::new("iVBORw0=", "image/png");
    /// Adds display hints.
    annotations(Annotations) = Annotations::new().audience([Role::User])
        => r#""audience":["user"]"#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}
setters! { AudioContent = AudioContent::new("UklGRg==", "audio/wav");
    /// Adds playback hints.
    annotations(Annotations) = Annotations::new().priority(0.5) => r#""priority":0.5"#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}
setters! { ResourceLink = ResourceLink::new("file:///notes.md", "notes");
    /// Sets its display name.
    title(String) = "My notes" => r#""title":"My notes""#;
    /// Sets its description.
    description(String) = "What I wrote down" => r#""description":"What I wrote down""#;
    /// Sets its media type.
    mime_type(String) = "text/markdown" => r#""mimeType":"text/markdown""#;
    /// Sets its size in bytes.
    size(u64) = 120_u64 => r#""size":120"#;
    /// Sets its icons.
    icons(Vec<Icon>) = [Icon::new("https://example.com/n.png")] => r#""icons":[{"src":"#;
    /// Adds display hints.
    annotations(Annotations) = Annotations::new().priority(0.0)
        => r#""annotations":{"priority":0}"#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}
setters! { EmbeddedResource = EmbeddedResource::new(ResourceContents::text("file:///a", "A"));
    /// Adds display hints.
    annotations(Annotations) = Annotations::new().audience([Role::Assistant])
        => r#""audience":["assistant"]"#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}
setters! { ToolResultContent = ToolResultContent::new("call-1", vec!["7".into()]);
    /// Adds a structured result.
    structured_content(Json) = Json::null() => r#""structuredContent":null"#;
    /// Sets whether the tool failed.
    is_error(bool) = true => r#""isError":true"#;
}

impl Annotations {
    /// No hints.
    #[doc = example!(r#"assert_eq!(Json::of(&Annotations::new()).get(), "{}");"#)]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { Annotations = Annotations::new();
    /// Sets its audience.
    audience(Vec<Role>) = [Role::User, Role::Assistant] => r#""audience":["user","assistant"]"#;
    /// Sets its importance, from 0 to 1.
    priority(f64) = 0.75 => r#""priority":0.75"#;
    /// Sets when it last changed.
    last_modified(String) = "2026-07-28T12:00:00Z" => r#""lastModified":"2026-07-28T12:00:00Z""#;
}

impl ResourceContents {
    /// Text.
    #[doc = example!(r#"let json = Json::of(&ResourceContents::text("file:///a", "A"));"#,
        r##"assert_eq!(json.get(), r#"{"uri":"file:///a","text":"A"}"#);"##)]
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, ResourceData::Text(text.into()))
    }

    /// Bytes, in base64.
    #[doc = example!(r#"let json = Json::of(&ResourceContents::blob("file:///a", "AA=="));"#,
        r##"assert_eq!(json.get(), r#"{"uri":"file:///a","blob":"AA=="}"#);"##)]
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self::new(uri, ResourceData::Blob(blob.into()))
    }

    /// Either.
    #[doc = example!(r#"let contents = ResourceContents::new("file:///a", ResourceData::Text("A".into()));"#,
        r#"assert_eq!(contents, ResourceContents::text("file:///a", "A"));"#)]
    pub fn new(uri: impl Into<String>, data: ResourceData) -> Self {
        Self { uri: uri.into(), mime_type: None, data, meta: None }
    }
}

setters! { ResourceContents = ResourceContents::text("file:///a.md", "# A");
    /// Sets its media type.
    mime_type(String) = "text/markdown" => r#""mimeType":"text/markdown""#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

variants! { Content:
    TextContent => Text, ImageContent => Image, AudioContent => Audio,
    ResourceLink => ResourceLink, EmbeddedResource => Resource,
    ToolUseContent => ToolUse, ToolResultContent => ToolResult
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(block) => block.serialize(serializer),
            Self::Image(block) => block.serialize(serializer),
            Self::Audio(block) => block.serialize(serializer),
            Self::ResourceLink(block) => block.serialize(serializer),
            Self::Resource(block) => block.serialize(serializer),
            Self::ToolUse(block) => block.serialize(serializer),
            Self::ToolResult(block) => block.serialize(serializer),
            Self::Other(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = raw_text(deserializer)?;
        // Derived deserialisers accept arrays for structs.
        if !raw.starts_with('{') {
            return Err(D::Error::custom("a block of content must be an object"));
        }
        let (kind, text) = kind_of(&raw).map_err(D::Error::custom)?;
        Self::of_kind(&kind, text, &raw).map_err(D::Error::custom)
    }
}

impl Content {
    /// The block that is next, if its `type` stands there once and without escapes.
    pub(super) fn next(reader: &mut Reader<'_>) -> Option<Self> {
        reader.peek()?;
        let start = reader.position();
        let (kind, text) = plain_kind(reader)?;
        Self::of_kind(kind, text, reader.since(start)).ok()
    }

    /// A block of this `type`: of a `text` alone, or whatever is in `raw`.
    fn of_kind(kind: &str, text: Option<&str>, raw: &str) -> Result<Self, serde_json::Error> {
        match (kind, text) {
            ("text", Some(text)) => Ok(Self::text(text)),
            ("text", None) => serde_json::from_str(raw).map(Self::Text),
            ("image", _) => serde_json::from_str(raw).map(Self::Image),
            ("audio", _) => serde_json::from_str(raw).map(Self::Audio),
            ("resource_link", _) => serde_json::from_str(raw).map(Self::ResourceLink),
            ("resource", _) => serde_json::from_str(raw).map(Self::Resource),
            ("tool_use", _) => serde_json::from_str(raw).map(Self::ToolUse),
            ("tool_result", _) => serde_json::from_str(raw).map(Self::ToolResult),
            _ => Ok(Self::Other(Json::copied(raw))),
        }
    }
}

/// The `type` of a block, and its `text` if it has that and nothing else.
fn kind_of(block: &str) -> Result<(Cow<'_, str>, Option<&str>), serde_json::Error> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    match plain_kind(&mut Reader::new(block)) {
        Some((kind, text)) => Ok((Cow::Borrowed(kind), text)),
        // What is wrong is told by those who have words for it.
        None => serde_json::from_str(block).map(|Head { kind }| (kind, None)),
    }
}

/// The same of the block that is next, if the `type` stands there once and without escapes.
fn plain_kind<'a>(reader: &mut Reader<'a>) -> Option<(&'a str, Option<&'a str>)> {
    let (mut is_first, mut kind, mut text, mut has_more) = (true, None, None, false);
    reader.open(b'{').ok()?;
    while let Some(name) = reader.member(std::mem::take(&mut is_first)).ok()? {
        match name.plain()? {
            "type" => {
                if kind.replace(reader.string().ok()?.plain()?).is_some() {
                    return None;
                }
            }
            "text" if text.is_none() => {
                text = reader.string().ok()?.plain();
                has_more |= text.is_none();
            }
            _ => {
                reader.value().ok()?;
                has_more = true;
            }
        }
    }
    Some((kind?, text.filter(|_| !has_more)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContentsOnWire {
    uri: String,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blob: Option<String>,
    #[serde(rename = "_meta", default)]
    meta: Option<Json>,
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = ContentsOnWire::deserialize(deserializer)?;
        let data = match (wire.text, wire.blob) {
            (Some(text), _) => ResourceData::Text(text),
            (None, Some(blob)) => ResourceData::Blob(blob),
            (None, None) => return Err(D::Error::custom("neither `text` nor `blob` is there")),
        };
        Ok(Self { uri: wire.uri, mime_type: wire.mime_type, data, meta: wire.meta })
    }
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("uri", &self.uri)?;
        if let Some(mime_type) = &self.mime_type {
            map.serialize_entry("mimeType", mime_type)?;
        }
        match &self.data {
            ResourceData::Text(text) => map.serialize_entry("text", text)?,
            ResourceData::Blob(blob) => map.serialize_entry("blob", blob)?,
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

/// The `type` members, one type each, so that every block writes its own.
mod tag {
    macro_rules! tags {
        ($($Name:ident = $text:literal),*) => { $(
            #[derive(Clone, Copy, Debug, Default, PartialEq)]
            pub(super) struct $Name;

            impl serde::Serialize for $Name {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str($text)
                }
            }
        )* };
    }
    tags! {
        Text = "text", Image = "image", Audio = "audio", ResourceLink = "resource_link",
        Resource = "resource", ToolUse = "tool_use", ToolResult = "tool_result"
    }
}
