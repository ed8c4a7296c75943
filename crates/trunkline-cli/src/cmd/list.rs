//! `trunkline list [tools|resources|templates|prompts|all] -- COMMAND…`

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use trunkline::client::Client;
use trunkline::model::{Prompt, Resource, ResourceTemplate, Tool};

use super::{made, talk};
use crate::output::{Screen, Tone, one_line};
use crate::target::Target;

/// Lists what a server offers.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to list.
    #[arg(value_enum, default_value_t)]
    what: What,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    Tools,
    Resources,
    Templates,
    Prompts,
    #[default]
    All,
}

#[derive(Default, Serialize)]
struct Found {
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Tool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<Resource>>,
    #[serde(rename = "resourceTemplates", skip_serializing_if = "Option::is_none")]
    templates: Option<Vec<ResourceTemplate>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<Vec<Prompt>>,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let (found, head) = talk(&args.target, screen, async |client| {
        Ok((find(client, args.what).await?, head(client, screen)))
    })
    .await?;
    match args.target.json {
        true => screen.json(&found)?,
        false => screen.print(&format!("{head}{}", describe(&found, screen)))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn find(client: &Client, what: What) -> Result<Found> {
    let offered = client.server_capabilities();
    // A kind that was named is requested from the server even if it does not declare it.
    let wants = |kind, is_offered| what == kind || (what == What::All && is_offered);
    let mut found = Found::default();
    if wants(What::Tools, offered.tools.is_some()) {
        found.tools = Some(made(client, "tools/list", client.list_tools()).await?);
    }
    if wants(What::Resources, offered.resources.is_some()) {
        found.resources = Some(made(client, "resources/list", client.list_resources()).await?);
    }
    if wants(What::Templates, offered.resources.is_some()) {
        let call = client.list_resource_templates();
        found.templates = match made(client, "resources/templates/list", call).await {
            // Many servers with resources do not support templates.
            Err(_) if what == What::All => None,
            outcome => Some(outcome?),
        };
    }
    if wants(What::Prompts, offered.prompts.is_some()) {
        found.prompts = Some(made(client, "prompts/list", client.list_prompts()).await?);
    }
    Ok(found)
}

fn head(client: &Client, screen: &Screen) -> String {
    let name = client.server_info().map_or("(nameless server)".to_owned(), |it| {
        format!("{} {}", it.title.as_ref().unwrap_or(&it.name), it.version)
    });
    let revision = screen.tone(Tone::Dim, &format!("speaks {}", client.revision()));
    format!("{} {revision}\n", screen.tone(Tone::Bold, &one_line(&name)))
}

fn describe(found: &Found, screen: &Screen) -> String {
    let mut out = String::new();
    let tools = found.tools.iter().flatten().map(|it| (signature(it), it.description.as_deref()));
    section(&mut out, screen, "Tools", found.tools.is_some(), tools);
    let resources = found
        .resources
        .iter()
        .flatten()
        .map(|it| (it.uri.clone(), about(&it.description, &it.name)));
    section(&mut out, screen, "Resources", found.resources.is_some(), resources);
    let templates = found.templates.iter().flatten();
    let templates = templates.map(|it| (it.uri_template.clone(), about(&it.description, &it.name)));
    section(&mut out, screen, "Templates", found.templates.is_some(), templates);
    let prompts = found.prompts.iter().flatten().map(|it| {
        let arguments = it.arguments.iter().map(|it| optional(&it.name, it.required));
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        (format!("{}({arguments})", it.name), it.description.as_deref())
    });
    section(&mut out, screen, "Prompts", found.prompts.is_some(), prompts);
    out
}

fn section<'a>(
    out: &mut String,
    screen: &Screen,
    title: &str,
    is_there: bool,
    items: impl Iterator<Item = (String, Option<&'a str>)>,
) {
    if !is_there {
        return;
    }
    let _ = writeln!(out, "\n{}", screen.tone(Tone::Bold, title));
    let items: Vec<_> = items.map(|(name, about)| (one_line(&name), about)).collect();
    let width = items.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(40);
    for (name, about) in &items {
        let first = one_line(about.unwrap_or_default().lines().next().unwrap_or_default());
        // Colours do not count for the width, so the padding stays outside them.
        let gap = " ".repeat(width.saturating_sub(name.chars().count()));
        let line = format!("  {}{gap}  {first}", screen.tone(Tone::Name, name));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if items.is_empty() {
        let _ = writeln!(out, "  {}", screen.tone(Tone::Dim, "none"));
    }
}

fn about<'a>(description: &'a Option<String>, name: &'a str) -> Option<&'a str> {
    Some(description.as_deref().unwrap_or(name))
}

fn optional(name: &str, is_required: bool) -> String {
    if is_required { name.to_owned() } else { format!("{name}?") }
}

/// `sum(a: number, b: number)`
fn signature(tool: &Tool) -> String {
    let schema: Value = tool.input_schema.to().unwrap_or_default();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object();
    let arguments = properties.into_iter().flatten().map(|(name, field)| {
        let name = optional(name, required.iter().any(|it| it == name));
        match field["type"].as_str() {
            Some(kind) => format!("{name}: {kind}"),
            None => name,
        }
    });
    format!("{}({})", tool.name, arguments.collect::<Vec<_>>().join(", "))
}
