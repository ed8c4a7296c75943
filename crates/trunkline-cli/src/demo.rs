//! A built-in server that shows every feature: something to try clients against.

mod asking;
#[cfg(feature = "authority")]
mod auth;
#[cfg(not(feature = "authority"))]
#[path = "demo/no_auth.rs"]
mod auth;
mod content;
mod http;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use trunkline::model::{
    Icon, LogLevel, LogMessage, Progress, PromptMessage, TaskSupport, ToolAnnotations,
};
use trunkline::schemars::JsonSchema;
use trunkline::serde::{Deserialize, Serialize};
use trunkline::server::TaskBounds;
use trunkline::{
    Args as Given, Change, Context, Json, RawJson, Server, ToolError, prompt, resource, template,
    tool,
};

/// What the demo is told.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    http: http::Options,
    #[command(flatten)]
    auth: auth::Login,
}

/// Serves the demo over stdin and stdout, or over HTTP.
pub(crate) fn run(args: Args) -> Result<()> {
    if let Some(address) = args.http.address() {
        return http::run(build(args.auth.is_on()), address, &args.http, &args.auth);
    }
    if std::io::stdin().is_terminal() {
        let hint = "This server speaks MCP on stdin and stdout, so it waits for a host to talk to it.\n\
                    Try `trunkline list -- trunkline demo`, or end it with Ctrl-D.";
        writeln!(std::io::stderr(), "{hint}")?;
    }
    Ok(server()?.run_stdio()?)
}

/// The demo server.
pub(crate) fn server() -> Result<Server> {
    Ok(build(false))
}

/// The demo server, with or without a login.
fn build(is_protected: bool) -> Server {
    let touch = tool("touch", touch).about("Says that a resource was updated.");
    let announce = tool("announce", announce).about("Says that a list has changed.");
    // Tools that affect other clients need a scope.
    let (touch, announce) = match is_protected {
        true => (touch.scopes([auth::WRITE]), announce.scopes([auth::WRITE])),
        false => (touch, announce),
    };
    let read_only = ToolAnnotations::new().read_only_hint(true).open_world_hint(false);
    let server = Server::builder("trunkline-demo", env!("CARGO_PKG_VERSION"))
        .title("The trunkline demo")
        // Shows every task, however quick it is.
        .tasks(TaskBounds { inline: Duration::ZERO, ..TaskBounds::default() })
        .icon(Icon::new(content::LOGO_URI).mime_type("image/png"))
        .instructions(
            "Call `echo` to hear yourself, `greet` to be asked your name, `book` for all of it.",
        )
        .tool(tool("echo", echo).about("Says the text back.").annotations(read_only.clone()))
        .tool(tool("sum", sum).about("Adds two numbers.").annotations(read_only).title("Sum"))
        .tool(tool("progress", progress).about("Counts to `steps` and reports each step."))
        .tool(tool("sleep", sleep).about("Waits, and can be cancelled."))
        .tool(tool("log", log).about("Sends one log message."))
        .tool(tool("fail", fail).about("Fails with the message, so that the model sees it."))
        .tool(tool("boom", boom).about("Panics. The caller gets an error, the server lives on."))
        .tool(touch)
        .tool(announce)
        .tool(
            tool("work", work)
                .about("Works in steps; may run as a task.")
                .task(TaskSupport::Optional),
        )
        .resource(
            resource("demo://readme", "readme", content::readme)
                .about("What this server is.")
                .mime_type("text/markdown"),
        )
        .resource(
            resource("demo://logo", "logo", content::logo)
                .about("A picture.")
                .mime_type("image/png"),
        )
        .template(
            template("demo://greeting/{name}", "greeting", content::greeting)
                .about("A greeting for anybody.")
                .mime_type("text/plain")
                .complete("name", |typed, _| starting_with(typed, &NAMES)),
        )
        .prompt(
            prompt("review", review)
                .about("Asks for a review of some code.")
                .complete("language", |typed, _: &BTreeMap<_, _>| starting_with(typed, &LANGUAGES)),
        );
    let server = content::register(asking::register(server));
    if is_protected { auth::register(server).build() } else { server.build() }
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say.
    text: String,
}

async fn echo(Given(it): Given<Echo>) -> String {
    it.text
}

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: f64,
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Total {
    sum: Number,
}

/// An integer is written without a fraction.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct Number(trunkline::serde_json::Number);

async fn sum(Given(it): Given<Sum>) -> Result<Json<Total>, ToolError> {
    let sum = it.a + it.b;
    let whole = sum as i64;
    let number = if whole as f64 == sum {
        Some(whole.into())
    } else {
        trunkline::serde_json::Number::from_f64(sum)
    };
    let number = number.ok_or_else(|| ToolError::new("The sum is too large to be written."))?;
    Ok(Json(Total { sum: Number(number) }))
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    /// How many.
    #[schemars(range(min = 1, max = 1000))]
    steps: u32,
}

async fn progress(cx: Context, Given(it): Given<Steps>) -> &'static str {
    count(&cx, it.steps).await;
    "done"
}

async fn work(cx: Context, Given(it): Given<Steps>) -> String {
    count(&cx, it.steps).await;
    format!("worked {} steps", it.steps)
}

async fn count(cx: &Context, steps: u32) {
    for step in 1..=steps.min(1000) {
        let progress = Progress::new(step).total(f64::from(steps));
        tokio::time::sleep(Duration::from_millis(5)).await;
        cx.report(progress.message(format!("step {step} of {steps}"))).await;
    }
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    /// For how many milliseconds.
    ms: u64,
}

async fn sleep(Given(it): Given<Sleep>) -> String {
    tokio::time::sleep(Duration::from_millis(it.ms)).await;
    format!("slept {} ms", it.ms)
}

#[derive(Deserialize, JsonSchema)]
struct Log {
    /// One of the eight levels.
    level: String,
    message: String,
}

async fn log(cx: Context, Given(it): Given<Log>) -> Result<&'static str, ToolError> {
    let level: LogLevel = it
        .level
        .parse()
        .map_err(|_| ToolError::new(format!("`{}` is not one of the eight levels.", it.level)))?;
    cx.log_message(LogMessage::new(level, RawJson::string(&it.message)).logger("demo")).await;
    Ok("logged")
}

#[derive(Deserialize, JsonSchema)]
struct Fail {
    message: String,
}

async fn fail(Given(it): Given<Fail>) -> Result<(), ToolError> {
    Err(ToolError::new(it.message))
}

async fn boom() -> &'static str {
    panic!("this is what `boom` does")
}

#[derive(Deserialize, JsonSchema)]
struct Touch {
    uri: String,
}

async fn touch(cx: Context, Given(it): Given<Touch>) -> &'static str {
    cx.changed(Change::Resource(it.uri)).await;
    "touched"
}

#[derive(Deserialize, JsonSchema)]
struct Announce {
    kind: Kind,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Tools,
    Prompts,
    Resources,
}

async fn announce(cx: Context, Given(it): Given<Announce>) -> &'static str {
    cx.changed(match it.kind {
        Kind::Tools => Change::Tools,
        Kind::Prompts => Change::Prompts,
        Kind::Resources => Change::Resources,
    })
    .await;
    "announced"
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The code to look at.
    code: String,
    /// What it is written in.
    language: Option<String>,
}

async fn review(Given(it): Given<Review>) -> Vec<PromptMessage> {
    let language = it.language.unwrap_or_default();
    vec![PromptMessage::user(format!("Please review this code:\n```{language}\n{}\n```", it.code))]
}

fn starting_with(typed: &str, known: &[&str]) -> Vec<String> {
    let typed = typed.to_lowercase();
    let fits = known.iter().filter(|it| it.to_lowercase().starts_with(&typed));
    fits.map(|it| (*it).to_owned()).collect()
}

const NAMES: [&str; 6] = ["Ada", "Alan", "Barbara", "Edsger", "Grace", "Kathleen"];
const LANGUAGES: [&str; 8] =
    ["c", "go", "java", "javascript", "python", "ruby", "rust", "typescript"];
