//! `trunkline approve SERVER [NAME…|--all] [--digest DIGEST] [--refuse]`

mod diff;

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::admin::Gateway;
use crate::cmd::retry::server_name;
use crate::failure::{Failure, PEER};
use crate::output::{Screen, Tone, one_line};

use diff::{Line, diff};

/// Shows what of a server is held back and what differs; lets through what was looked at.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Of which server.
    #[arg(value_parser = server_name)]
    server: String,
    /// Which tools, prompts, resources or templates, by the server's own names.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only what is of this kind; `instructions` have no name.
    #[arg(long, value_name = "KIND", value_parser = KINDS)]
    kind: Option<String>,
    /// All that is held back.
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// The digest that was shown. What has another by now stays held back. May be repeated.
    #[arg(long, value_name = "DIGEST", conflicts_with = "all")]
    digest: Vec<String>,
    /// Approve, or refuse, what is shown without being asked.
    #[arg(long)]
    yes: bool,
    /// Refuse it instead: it stays held back, and nobody is asked about it again.
    #[arg(long)]
    refuse: bool,
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let (mut done, mut failed) = (None, None);
    for gateway in args.gateway.with(&args.server).await? {
        match at(&gateway, &args, screen).await {
            Ok(code) => done = Some(code),
            Err(error) => failed = Some(error),
        }
    }
    // What one gateway holds back, another may never have seen.
    match (done, failed) {
        (None, Some(error)) => Err(error),
        (code, _) => Ok(code.unwrap_or(ExitCode::SUCCESS)),
    }
}

async fn at(gateway: &Gateway, args: &Args, screen: &Screen) -> Result<ExitCode> {
    let server = &args.server;
    let held = gateway.get(&format!("/v1/servers/{server}/held")).await?["held"].take();
    let held = held.as_array().cloned().unwrap_or_default();
    let is_chosen = args.all || args.kind.is_some() || !args.names.is_empty();
    let is_meant = |it: &&Value| {
        let is = |name: &str, given: &String| it[name].as_str() == Some(given);
        (args.names.is_empty() || args.names.iter().any(|given| is("name", given)))
            && args.kind.iter().all(|given| is("kind", given))
            && (args.digest.is_empty() || args.digest.iter().any(|given| is("seen", given)))
    };
    let meant: Vec<_> = held.iter().filter(is_meant).collect();
    if !is_chosen && args.digest.is_empty() {
        if args.refuse {
            let cause = "`--refuse` needs to know what.";
            let advice = "Name it, or its `--digest`; or say `--all`.";
            return Err(Failure::usage(cause).advice(advice).into());
        }
        match gateway.json {
            true => screen.json(&meant)?,
            false => screen.print(&overview(server, &meant, screen))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if meant.is_empty() {
        return Err(nothing(server, args).into());
    }
    // A user who names a digest has seen it.
    if args.digest.is_empty() {
        if !gateway.json {
            let shown: Vec<_> = meant.iter().map(|it| one(it, screen)).collect();
            screen.print(&shown.join("\n"))?;
        }
        if !args.yes && !asked(args, meant.len(), screen).await? {
            screen.print(if args.refuse {
                "Nothing was refused."
            } else {
                "Nothing was approved."
            })?;
            return Ok(ExitCode::FAILURE);
        }
    }
    match args.refuse {
        false => approve(gateway, server, &meant, screen).await?,
        true => refuse(gateway, server, &meant, screen).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn approve(gateway: &Gateway, server: &str, meant: &[&Value], screen: &Screen) -> Result<()> {
    let mut approved = Vec::new();
    for some in meant.chunks(AT_ONCE) {
        let named =
            |it: &&Value| json!({ "kind": it["kind"], "name": it["name"], "digest": it["seen"] });
        let body = json!({ "approve": some.iter().map(named).collect::<Vec<_>>() });
        let mut done = gateway.post(&format!("/v1/servers/{server}/approve"), &body).await?;
        approved.extend(done["approved"].as_array_mut().map(std::mem::take).unwrap_or_default());
    }
    if gateway.json {
        return screen.json(&json!({ "server": server, "approved": approved }));
    }
    let names: Vec<_> = approved.iter().map(title).collect();
    let names = names.join(", ");
    screen.print(&format!("Clients see {names} of `{server}` as the server has it now."))
}

async fn refuse(gateway: &Gateway, server: &str, meant: &[&Value], screen: &Screen) -> Result<()> {
    let mut refused = Vec::new();
    for it in meant {
        let body = json!({
            "server": server, "kind": it["kind"], "name": it["name"], "digest": it["seen"],
        });
        refused.push(gateway.post("/v1/approvals/refuse", &body).await?["refused"].take());
    }
    if gateway.json {
        return screen.json(&json!({ "server": server, "refused": refused }));
    }
    let names: Vec<_> = refused.iter().map(title).collect();
    let names = names.join(", ");
    screen.print(&format!("{names} of `{server}` stays held back. Nobody is asked again."))
}

/// Asks the user.
async fn asked(args: &Args, count: usize, screen: &Screen) -> Result<bool> {
    if !screen.is_interactive() {
        let cause = "Nobody is there to be asked.";
        let advice = "Look at what is shown, and name its `--digest`; or say `--yes`.";
        return Err(Failure::usage(cause).advice(advice).into());
    }
    let what = if count == 1 { "this".to_owned() } else { format!("these {count}") };
    let _asking = screen.asking();
    let verb = if args.refuse { "Refuse" } else { "Approve" };
    screen.say(&format!("{verb} {what} of `{}` as shown? [y/N] ", args.server));
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    Ok(matches!(line.await??.trim(), "y" | "Y" | "yes"))
}

fn nothing(server: &str, args: &Args) -> Failure {
    let cause = match args.digest.is_empty() {
        true => format!("Nothing of that name is held back of `{server}`."),
        false => format!(
            "Nothing of `{server}` is held back with that digest: it was let through, or it has changed \
             since it was shown."
        ),
    };
    let advice = format!("See what is held back now with `trunkline approve {server}`.");
    Failure::admin(PEER, cause).advice(advice)
}

fn overview(server: &str, held: &[&Value], screen: &Screen) -> String {
    if held.is_empty() {
        return format!("Nothing of `{server}` is held back.");
    }
    let mut shown: Vec<_> = held.iter().take(SHOWN).map(|it| one(it, screen)).collect();
    if held.len() > SHOWN {
        shown.push(format!("… and {} more; name one to see it.\n", held.len() - SHOWN));
    }
    shown.push(format!(
        "If that is meant: `trunkline approve {server} NAME --digest DIGEST`, or `--all` to be asked; \
         if not, the same with `--refuse`."
    ));
    shown.join("\n")
}

/// One definition that is held back: its kind, the reason, and the difference.
fn one(held: &Value, screen: &Screen) -> String {
    let text = |name: &str| held[name].as_str();
    let why = match text("why") {
        Some("changed") => "has changed since it was pinned",
        Some("new") => "is new, and `pin: strict` does not trust that",
        Some("hidden") => "has characters that a reader does not see",
        Some("full") => "is new, and there is no room for more pins of this server",
        Some("lost") => "is not known any more: the file of pins was damaged",
        _ => "is held back",
    };
    let refused = if held["refused"] == true { " It was refused." } else { "" };
    let mut out = format!("{} {why}.{refused}\n", screen.tone(Tone::Bold, &title(held)));
    for (label, digest) in [("pinned", text("pinned")), ("digest", text("seen"))] {
        if let Some(digest) = digest {
            out.push_str(&format!("  {label} {}\n", one_line(digest)));
        }
    }
    let before = text("before");
    match text("definition") {
        None => out.push_str("  It is too long to be kept: look at it at the server itself.\n"),
        Some(now) => {
            if text("pinned").is_some() && before.is_none() {
                out.push_str("  What it was is not kept; this is what it is.\n");
            }
            let lines = diff(before, now);
            if lines.is_empty() {
                // It is held back for its content, not for a difference.
                diff::lines(now).iter().for_each(|it| out.push_str(&format!("    {it}\n")));
            }
            for line in lines {
                out.push_str(&match line {
                    Line::Same(text) => format!("    {text}\n"),
                    Line::Gone(text) => screen.tone(Tone::Bad, &format!("  - {text}")) + "\n",
                    Line::New(text) => screen.tone(Tone::Good, &format!("  + {text}")) + "\n",
                });
            }
        }
    }
    out
}

/// `tool `push``.
fn title(held: &Value) -> String {
    let kind = held["kind"].as_str().unwrap_or("something");
    match held["name"].as_str().filter(|it| !it.is_empty()) {
        Some(name) => format!("{kind} `{}`", trunkline_gateway::policy::hidden::escape(name)),
        None => kind.to_owned(),
    }
}

const KINDS: [&str; 5] = ["tool", "prompt", "resource", "template", "instructions"];
/// How many are shown at once, unless `--all` is given.
const SHOWN: usize = 20;
/// How many are approved with one request.
const AT_ONCE: usize = 100;
