//! What each type loses in each revision.

use super::schema::{is_object_schema, simplify_form, wrap_schema, wrap_value};
use super::{Fit, ResultBody, write_body};
use crate::era::{Profile, Structured, Tasks};
use crate::json::Json;
use crate::model::*;
use crate::revision::Era;

impl Fit for Implementation {
    fn fit(&mut self, profile: &Profile) {
        keep(profile.titles, &mut self.title);
        keep(profile.icons, &mut self.description);
        keep(profile.icons, &mut self.website_url);
        keep_all(profile.icons, &mut self.icons);
    }
}

impl Fit for ClientCapabilities {
    fn fit(&mut self, profile: &Profile) {
        if let Some(roots) = &mut self.roots
            && profile.era == Era::Stateless
        {
            roots.list_changed = false;
        }
        if let Some(sampling) = &mut self.sampling
            && !profile.icons
        {
            *sampling = SamplingCapability::new();
        }
        keep(profile.titles, &mut self.elicitation);
        if let Some(elicitation) = &mut self.elicitation
            && !profile.icons
        {
            elicitation.url = false;
            elicitation.bare = true;
        }
        // Without URLs, a client that supports only URLs cannot be asked at all.
        if self.elicitation.is_some_and(|it| !it.form && !it.url) {
            self.elicitation = None;
        }
        keep(profile.tasks == Tasks::Core, &mut self.tasks);
        if profile.tasks != Tasks::Extension {
            self.extensions.remove(TASKS_EXTENSION);
        }
    }
}

impl Fit for ServerCapabilities {
    fn fit(&mut self, profile: &Profile) {
        self.completions &= profile.audio;
        keep(profile.tasks == Tasks::Core, &mut self.tasks);
        if profile.tasks != Tasks::Extension {
            self.extensions.remove(TASKS_EXTENSION);
        }
    }
}

impl Fit for InitializeParams {
    fn fit(&mut self, profile: &Profile) {
        self.capabilities.fit(profile);
        self.client_info.fit(profile);
    }
}

impl Fit for InitializeResult {
    fn fit(&mut self, profile: &Profile) {
        self.capabilities.fit(profile);
        self.server_info.fit(profile);
    }
}

impl Fit for DiscoverResult {
    fn fit(&mut self, profile: &Profile) {
        self.capabilities.fit(profile);
    }
}

impl Fit for Tool {
    fn fit(&mut self, profile: &Profile) {
        // 2025-03-26 has no titles, but its annotations do.
        if !profile.titles
            && profile.audio
            && let Some(title) = self.title.take()
        {
            self.annotations.get_or_insert_default().title.get_or_insert(title);
        }
        keep(profile.titles, &mut self.title);
        keep(profile.titles, &mut self.meta);
        keep(profile.audio, &mut self.annotations);
        keep_all(profile.icons, &mut self.icons);
        if profile.tasks != Tasks::Core {
            self.task_support = TaskSupport::Forbidden;
        }
        match (profile.structured, &self.output_schema) {
            (Structured::None, _) => self.output_schema = None,
            (Structured::Object, Some(schema)) if !is_object_schema(schema) => {
                self.output_schema = Some(wrap_schema(schema));
            }
            _ => {}
        }
    }
}

impl Fit for CallToolParams {
    fn fit(&mut self, profile: &Profile) {
        keep(profile.tasks == Tasks::Core, &mut self.task);
    }
}

impl Fit for CallToolResult {
    fn fit(&mut self, profile: &Profile) {
        fit_structured(&mut self.structured_content, &mut self.content, profile);
        fit_each(&mut self.content, profile);
    }
}

/// Wraps or drops a structured value; a dropped one leaves a text behind.
fn fit_structured(value: &mut Option<Json>, content: &mut Vec<Content>, profile: &Profile) {
    match (profile.structured, &*value) {
        (Structured::None, Some(dropped)) => {
            if !content.iter().any(|block| block.as_text().is_some()) {
                content.push(Content::text(dropped.get()));
            }
            *value = None;
        }
        (Structured::Object, Some(inner)) if !inner.is_object() => {
            *value = Some(wrap_value(inner));
        }
        _ => {}
    }
}

impl Fit for Content {
    fn fit(&mut self, profile: &Profile) {
        match self {
            Self::Audio(audio) if !profile.audio => {
                let (data, mime_type) = (audio.data.clone(), audio.mime_type.clone());
                let contents = ResourceContents::blob(AUDIO_URI, data).mime_type(mime_type);
                let mut block = EmbeddedResource::new(contents);
                block.annotations = audio.annotations.take();
                *self = block.into();
            }
            Self::ResourceLink(link) if !profile.titles => {
                let name = link.title.as_ref().unwrap_or(&link.name);
                let mut block = TextContent::new(format!("{name}: {}", link.uri));
                block.annotations = link.annotations.take();
                *self = block.into();
            }
            _ => {}
        }
        match self {
            Self::Text(it) => fit_hints(&mut it.annotations, &mut it.meta, profile),
            Self::Image(it) => fit_hints(&mut it.annotations, &mut it.meta, profile),
            Self::Audio(it) => fit_hints(&mut it.annotations, &mut it.meta, profile),
            Self::Resource(it) => {
                it.resource.fit(profile);
                fit_hints(&mut it.annotations, &mut it.meta, profile);
            }
            Self::ResourceLink(it) => {
                keep_all(profile.icons, &mut it.icons);
                fit_hints(&mut it.annotations, &mut it.meta, profile);
            }
            Self::ToolResult(it) => {
                fit_structured(&mut it.structured_content, &mut it.content, profile);
                fit_each(&mut it.content, profile);
            }
            Self::ToolUse(_) | Self::Other(_) => {}
        }
    }
}

fn fit_hints(hints: &mut Option<Annotations>, meta: &mut Option<Json>, profile: &Profile) {
    keep(profile.titles, meta);
    if let Some(some) = hints
        && !profile.titles
    {
        some.last_modified = None;
        if *some == Annotations::new() {
            *hints = None;
        }
    }
}

impl Fit for ResourceContents {
    fn fit(&mut self, profile: &Profile) {
        keep(profile.titles, &mut self.meta);
    }
}

impl Fit for Resource {
    fn fit(&mut self, profile: &Profile) {
        keep(profile.titles, &mut self.title);
        keep_all(profile.icons, &mut self.icons);
        fit_hints(&mut self.annotations, &mut self.meta, profile);
    }
}

impl Fit for ResourceTemplate {
    fn fit(&mut self, profile: &Profile) {
        keep(profile.titles, &mut self.title);
        keep_all(profile.icons, &mut self.icons);
        fit_hints(&mut self.annotations, &mut self.meta, profile);
    }
}

impl Fit for ReadResourceResult {
    fn fit(&mut self, profile: &Profile) {
        fit_each(&mut self.contents, profile);
    }
}

impl Fit for Prompt {
    fn fit(&mut self, profile: &Profile) {
        keep(profile.titles, &mut self.title);
        keep(profile.titles, &mut self.meta);
        keep_all(profile.icons, &mut self.icons);
        fit_each(&mut self.arguments, profile);
    }
}

impl Fit for PromptArgument {
    fn fit(&mut self, profile: &Profile) {
        keep(profile.titles, &mut self.title);
    }
}

impl Fit for GetPromptResult {
    fn fit(&mut self, profile: &Profile) {
        for message in &mut self.messages {
            message.content.fit(profile);
        }
    }
}

impl Fit for CompleteParams {
    fn fit(&mut self, profile: &Profile) {
        if !profile.titles {
            self.context.clear();
            if let Reference::Prompt { title, .. } = &mut self.reference {
                *title = None;
            }
        }
    }
}

impl Fit for Root {
    fn fit(&mut self, profile: &Profile) {
        keep(profile.titles, &mut self.meta);
    }
}

impl Fit for ListRootsResult {
    fn fit(&mut self, profile: &Profile) {
        fit_each(&mut self.roots, profile);
    }
}

impl Fit for CreateMessageParams {
    fn fit(&mut self, profile: &Profile) {
        keep(profile.tasks == Tasks::Core, &mut self.task);
        keep(profile.icons, &mut self.tool_choice);
        keep_all(profile.icons, &mut self.tools);
        fit_each(&mut self.tools, profile);
        if profile.icons {
            for message in &mut self.messages {
                fit_blocks(&mut message.content, profile);
            }
            return;
        }
        // One block per message: several blocks become several messages of the same role.
        let messages = std::mem::take(&mut self.messages).into_iter();
        self.messages = messages
            .flat_map(|SamplingMessage { role, content, .. }| {
                let blocks = content.into_vec().into_iter();
                blocks.map(move |block| SamplingMessage::new(role, simple(block, profile)))
            })
            .collect();
    }
}

impl Fit for CreateMessageResult {
    fn fit(&mut self, profile: &Profile) {
        if profile.icons {
            return fit_blocks(&mut self.content, profile);
        }
        // One block: the concatenated texts, or else the first block.
        let blocks = std::mem::replace(&mut self.content, Vec::new().into()).into_vec();
        let mut blocks: Vec<_> = blocks.into_iter().map(|block| simple(block, profile)).collect();
        let texts: Vec<_> = blocks.iter().filter_map(Content::as_text).collect();
        self.content = match (texts.is_empty(), blocks.len()) {
            (true, 0) => Content::text("").into(),
            (true, _) => blocks.swap_remove(0).into(),
            (false, 1) => blocks.swap_remove(0).into(),
            (false, _) => Content::text(texts.join("\n")).into(),
        };
    }
}

fn fit_blocks(content: &mut OneOrMany<Content>, profile: &Profile) {
    match content {
        OneOrMany::One(block) => block.fit(profile),
        OneOrMany::Many(blocks) => fit_each(blocks, profile),
    }
}

/// A block as sampling had it before tools: text, an image or, later, audio.
fn simple(mut block: Content, profile: &Profile) -> Content {
    block = match block {
        Content::Audio(audio) if !profile.audio => {
            Content::text(format!("({} that cannot be passed on)", audio.mime_type))
        }
        Content::ToolUse(tool) => Content::text(format!("{}({})", tool.name, tool.input)),
        Content::ToolResult(result) => {
            let texts: Vec<_> = result.content.iter().filter_map(Content::as_text).collect();
            Content::text(texts.join("\n"))
        }
        other => other,
    };
    block.fit(profile);
    block
}

impl Fit for ElicitParams {
    fn fit(&mut self, profile: &Profile) {
        let has_tasks = profile.tasks == Tasks::Core;
        match self {
            Self::Form(form) => {
                keep(has_tasks, &mut form.task);
                if !profile.icons {
                    form.names_mode = false;
                    form.requested_schema = simplify_form(&form.requested_schema);
                }
            }
            Self::Url(url) => {
                keep(has_tasks, &mut url.task);
                keep(profile.era == Era::Stateful, &mut url.elicitation_id);
            }
        }
    }
}

impl Fit for InputRequest {
    fn fit(&mut self, profile: &Profile) {
        match self {
            Self::Elicit(params) => params.fit(profile),
            Self::Sample(params) => params.fit(profile),
            Self::Roots => {}
        }
    }
}

impl Fit for InputResponse {
    fn fit(&mut self, profile: &Profile) {
        match self {
            Self::Sample(result) => result.fit(profile),
            Self::Roots(result) => result.fit(profile),
            Self::Elicit(_) => {}
        }
    }
}

impl Fit for InputRequired {
    fn fit(&mut self, profile: &Profile) {
        for (_, request) in &mut self.requests {
            request.fit(profile);
        }
    }
}

macro_rules! lists {
    ($($List:ident: $items:ident),*) => { $(
        impl Fit for $List {
            fn fit(&mut self, profile: &Profile) {
                fit_each(&mut self.$items, profile);
            }
        }
    )* };
}

lists! {
    ListToolsResult: tools, ListPromptsResult: prompts, ListResourcesResult: resources,
    ListResourceTemplatesResult: resource_templates, ReadDirectoryResult: resources
}

macro_rules! same_everywhere {
    ($($Type:ident),*) => { $(
        impl Fit for $Type {
            fn fit(&mut self, _: &Profile) {}
        }
    )* };
}

// Progress has no message in 2024-11-05, but its clients show one if it is there.
same_everywhere! {
    AcknowledgedParams, CancelledParams, CompleteResult, ElicitResult, ElicitationCompleteParams,
    EmptyResult, GetPromptParams, GetSkillParams, GetSkillResult, InputResponses, ListParams,
    ListSkillsResult, ListenParams, LogMessage, ProgressParams, ReadDirectoryParams, ReadResourceParams,
    ResourceUpdatedParams, SetLevelParams, SubscribeParams, TaskParams, UpdateTaskParams
}

macro_rules! results {
    ($($Type:ident $(: $cacheable:literal)?),*) => { $(
        impl ResultBody for $Type {
            $(const CACHEABLE: bool = $cacheable;)?

            fn take_meta(&mut self) -> Option<Json> {
                self.meta.take()
            }
        }
    )* };
}

results! {
    CompleteResult, EmptyResult, GetPromptResult, InitializeResult, CreateMessageResult,
    DiscoverResult: true, ListToolsResult: true, ListPromptsResult: true,
    ListResourcesResult: true, ListResourceTemplatesResult: true, ReadResourceResult: true,
    ListSkillsResult: true, GetSkillResult: true, ReadDirectoryResult: true
}

impl ResultBody for CallToolResult {
    fn take_meta(&mut self) -> Option<Json> {
        self.meta.take()
    }

    fn write(&self, opening: char, out: &mut String) {
        write_body(self, self.meta.as_ref(), opening, out);
    }
}

macro_rules! results_without_meta {
    ($($Type:ident),*) => { $(
        impl ResultBody for $Type {
            fn take_meta(&mut self) -> Option<Json> {
                None
            }
        }
    )* };
}

results_without_meta! { ElicitResult, ListRootsResult, InputResponse }

fn fit_each<T: Fit>(items: &mut [T], profile: &Profile) {
    for item in items {
        item.fit(profile);
    }
}

fn keep<T>(has: bool, member: &mut Option<T>) {
    if !has {
        *member = None;
    }
}

fn keep_all<T>(has: bool, members: &mut Vec<T>) {
    if !has {
        members.clear();
    }
}

/// The URI of audio that can only travel as a resource.
const AUDIO_URI: &str = "embedded:audio";
