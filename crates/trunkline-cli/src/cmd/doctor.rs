//! `trunkline doctor [SERVER]`

mod gateway;
mod http;
mod overheard;
mod stages;
mod stdio;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use trunkline::client::Client;
use trunkline_gateway::catalog::plan::{Plan, Reach, ServerPlan};
use trunkline_gateway::catalog::{built_in, load_file};
use trunkline_gateway::policy::redact::Redactor;

use self::stages::{Stages, Step};
use super::connect::{config, shown};
use crate::failure::Failure;
use crate::output::{Screen, Tone, one_line};

/// Goes through everything that a call depends on, one step after the other, and says what is
/// wrong. Servers are started and stopped for it, a few at a time.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The server. The default is all of them.
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// The catalog.
    #[arg(long, value_name = "FILE", env = "TRUNKLINE_CONFIG")]
    config: Option<PathBuf>,
    /// The folder in which the gateway keeps its state.
    #[arg(long, value_name = "DIR", env = "TRUNKLINE_STATE")]
    state: Option<PathBuf>,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let mut report = Report {
        screen,
        is_json: args.json,
        all: Vec::new(),
        unwell: Vec::new(),
        count: 0,
        is_well: true,
    };
    let mut stages = Stages::default();
    let plan = catalog(&args, &mut stages)?;
    if let Some(plan) = &plan {
        if let Some(name) = &args.server
            && !plan.servers.contains_key(name)
            && !plan.out.contains_key(name)
        {
            let names = plan.servers.keys().chain(plan.out.keys());
            let names: Vec<_> = names.map(String::as_str).collect();
            let why = format!("The catalog has no server `{name}`, or it is disabled.");
            let advice = format!("It has: {}.", names.join(", "));
            return Err(Failure::usage(why).advice(advice).into());
        }
        gateway::check(plan, args.state.clone(), &mut stages).await;
    }
    report.add("gateway", "", stages.end(&Redactor::default()))?;
    if let Some(plan) = plan {
        let redactor = Redactor::of(&plan);
        let is_wanted = |it: &&str| args.server.as_deref().is_none_or(|name| name == *it);
        for (name, why) in plan.out.iter().filter(|it| is_wanted(&it.0.as_str())) {
            let mut stages = Stages::default();
            stages.bad(
                "catalog",
                why,
                "Mend its entry. Until then the others are served without it.",
            );
            report.add(name, "left out", stages.end(&redactor))?;
        }
        let wanted = plan.servers.iter().filter(|(name, _)| is_wanted(&name.as_str()));
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let (redactor, mut looking) = (Arc::new(redactor), Vec::new());
        for (name, server) in wanted {
            let (room, redactor) = (Arc::clone(&room), Arc::clone(&redactor));
            let server = server.clone();
            let task = tokio::spawn(async move {
                let _place = room.acquire().await;
                one(&server, &redactor).await
            });
            looking.push((name, AbortOnDrop(task)));
        }
        // Reported in order, each as soon as those before it are.
        for (name, mut task) in looking {
            let (what, steps) = (&mut task.0).await?;
            report.add(name, &what, steps)?;
        }
    }
    report.end()
}

/// A check of a server, aborted with the command.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How many servers are checked concurrently.
const AT_ONCE: usize = 4;

/// The catalog, or the part of it that can be served.
fn catalog(args: &Args, stages: &mut Stages) -> Result<Option<Plan>, Failure> {
    let Some(path) = config(args.config.as_deref())? else {
        let this = std::env::current_exe().ok().and_then(|it| it.to_str().map(str::to_owned));
        stages.fine("catalog", "there is no `trunkline.yaml` here; the built-in one is used");
        let command = this.unwrap_or_else(|| "trunkline".to_owned());
        return Ok(Some(built_in(vec![command, "demo".to_owned()])));
    };
    let faults = match load_file(&path) {
        Ok(loaded) => {
            let count = loaded.plan.servers.len();
            let odd = match loaded.warnings.len() {
                0 => String::new(),
                1 => "; 1 thing is odd, see `trunkline check`".to_owned(),
                more => format!("; {more} things are odd, see `trunkline check`"),
            };
            stages.fine(
                "catalog",
                format!(
                    "{}, {count} server{}{odd}",
                    shown(&path),
                    if count == 1 { "" } else { "s" }
                ),
            );
            stages.fine("variables", "all are set");
            return Ok(Some(loaded.plan));
        }
        Err(faults) => faults,
    };
    let is_variable = |it: &&trunkline_gateway::catalog::Fault| it.message.contains("variable");
    let (variables, others): (Vec<_>, Vec<_>) = faults.faults.iter().partition(is_variable);
    let mut tell = |stage, all: &[&trunkline_gateway::catalog::Fault], fine: &str| {
        let Some(first) = all.first() else { return stages.fine(stage, fine) };
        let place = format!("{}:{}:{}", shown(&path), first.line, first.column);
        let more =
            if all.len() > 1 { format!(" And {} more.", all.len() - 1) } else { String::new() };
        let advice = first.suggestion.clone().unwrap_or_default();
        let name = if first.path.is_empty() { String::new() } else { format!("{}: ", first.path) };
        stages.bad(stage, format!("{place}: {name}{}{more}", first.message), advice);
    };
    tell("catalog", &others, &shown(&path));
    tell("variables", &variables, "all are set");
    Ok(faults.rest.map(|it| it.plan))
}

async fn one(server: &ServerPlan, redactor: &Redactor) -> (String, Vec<Step>) {
    let mut stages = Stages::default();
    let what = match &server.reach {
        Reach::Stdio { command, .. } => {
            stdio::check(server, &mut stages).await;
            command.clone()
        }
        Reach::Http { url, .. } => {
            http::check(server, &mut stages).await;
            trunkline_auth::url::shown(url)
        }
    };
    (what, stages.end(redactor))
}

/// What a server offers, and whether it answers.
async fn offers(client: &Client, stages: &mut Stages) {
    let can = client.server_capabilities();
    let is_offered = [can.tools.is_some(), can.prompts.is_some(), can.resources.is_some()];
    for (stage, is_offered) in ["tools", "prompts", "resources"].into_iter().zip(is_offered) {
        if !is_offered {
            stages.none(stage, "it offers none");
            continue;
        }
        stages.begin();
        let count = match stage {
            "tools" => client.list_tools().await.map(|it| it.len()),
            "prompts" => client.list_prompts().await.map(|it| it.len()),
            _ => client.list_resources().await.map(|it| it.len()),
        };
        match count {
            Ok(count) => stages.fine(stage, format!("{count} listed")),
            Err(error) => stages.bad(stage, error.to_string(), "Tell the author of the server."),
        }
    }
    stages.begin();
    match client.ping().await {
        Ok(()) => stages.fine("ping", "it answers"),
        Err(error) => stages.bad("ping", error.to_string(), "Tell the author of the server."),
    }
}

/// The identity of a server, in words.
fn identity(client: &Client) -> String {
    let who = client.server_info().map(|it| format!("{} {}", it.name, it.version));
    format!("{}, speaks {}", who.unwrap_or_else(|| "nameless".to_owned()), client.revision())
}

/// The findings, printed as they arrive.
struct Report<'a> {
    screen: &'a Screen,
    is_json: bool,
    all: Vec<Value>,
    /// The servers with problems.
    unwell: Vec<String>,
    count: usize,
    is_well: bool,
}

impl Report<'_> {
    fn add(&mut self, name: &str, what: &str, steps: Vec<Step>) -> Result<()> {
        let is_well = steps.iter().all(|it| it.is_fine != Some(false));
        self.is_well &= is_well;
        self.count += 1;
        if !is_well {
            self.unwell.push(format!("`{}`", one_line(name)));
        }
        if self.is_json {
            let steps: Vec<_> = steps.iter().map(Step::to_json).collect();
            self.all.push(json!({ "name": name, "ok": is_well, "stages": steps }));
            return Ok(());
        }
        let gap = if self.all.is_empty() { "" } else { "\n" };
        self.all.push(Value::Null);
        let head = self.screen.tone(Tone::Bold, &one_line(name));
        let mut text = format!("{gap}{head}  {}\n", self.screen.tone(Tone::Dim, &one_line(what)));
        for step in &steps {
            text.push_str(&step.to_text(self.screen));
        }
        self.screen.print(&text)
    }

    fn end(mut self) -> Result<ExitCode> {
        if self.is_json {
            let gateway = self.all.remove(0);
            self.screen.json(&json!({
                "ok": self.is_well, "gateway": gateway, "servers": self.all,
            }))?;
        } else {
            let last = match self.is_well {
                true => self.screen.tone(Tone::Good, "Everything is in order."),
                false => {
                    let (count, well) = (self.count, self.count - self.unwell.len());
                    let which = self.unwell.join(", ");
                    let last = format!("{well} of {count} are in order. See ✗ at {which}.");
                    self.screen.tone(Tone::Bad, &last)
                }
            };
            self.screen.print(&format!("\n{last}"))?;
        }
        Ok(if self.is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// How long something is as people say it.
fn span(time: Duration) -> String {
    match time.as_secs_f64() * 1000.0 {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 10_000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}
