//! The content of the demo: resources, and one block of each kind of content.

use trunkline::model::{
    Annotations, AudioContent, Content, EmbeddedResource, ImageContent, ResourceContents,
    ResourceLink, Role, TextContent,
};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::server::{Bytes, ServerBuilder};
use trunkline::{Args, tool};

pub(super) fn register(server: ServerBuilder) -> ServerBuilder {
    server.tool(tool("kinds", kinds).about("Answers with one block of each kind of content."))
}

async fn kinds() -> Vec<Content> {
    let mut text = TextContent::new("a text");
    text.annotations = Some(Annotations::new().audience(vec![Role::User]).priority(0.5));
    vec![
        text.into(),
        ImageContent::new(LOGO, "image/png").into(),
        AudioContent::new(SILENCE, "audio/wav").into(),
        ResourceLink::new("demo://readme", "readme").mime_type("text/markdown").into(),
        EmbeddedResource::new(ResourceContents::text("demo://note", "an embedded text")).into(),
    ]
}

pub(super) async fn readme() -> &'static str {
    "# The trunkline demo\n\nA server that shows every feature of the Model Context Protocol.\n"
}

pub(super) async fn logo() -> Bytes {
    Bytes(LOGO_BYTES.to_vec())
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Greeting {
    name: String,
}

pub(super) async fn greeting(Args(it): Args<Greeting>) -> String {
    format!("Hello, {}!", it.name)
}

/// A PNG of one transparent pixel.
const LOGO_BYTES: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0,
    1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54,
    0x78, 0xda, 0x63, 0x64, 0xf8, 0xcf, 0x50, 0x0f, 0, 3, 0x86, 1, 0x80, 0x5a, 0x34, 0x7d, 0x6b, 0,
    0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];
/// The same in base64.
const LOGO: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The same as an icon.
pub(super) const LOGO_URI: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A WAV file without a sound in it.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
