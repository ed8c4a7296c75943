//! `trunkline connect CLIENT`

mod diff;
pub(crate) mod file;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use self::file::Seen;
use crate::clients::{
    Client, Ours, Place, Surroundings, Unreadable, connect, disconnect, have, is_connected,
    masked_line, others, places, without,
};
use crate::failure::Failure;
use crate::output::{Screen, Tone, one_line};

/// Puts the gateway into the settings of a program that uses MCP servers, or takes it out again.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program: claude-desktop, claude-code, cursor, vscode, windsurf, zed, codex or gemini.
    #[arg(value_name = "CLIENT", value_parser = client)]
    client: Client,
    /// Let it connect to the URL of a running gateway, instead of starting one.
    #[arg(long)]
    http: bool,
    /// Remove from the file the servers that the catalog has too: the gateway serves them.
    #[arg(long, conflicts_with = "undo")]
    replace: bool,
    /// Change the settings of the project in this folder instead of the user's.
    #[arg(long)]
    project: bool,
    /// Write the file. Without this, the change is only shown.
    #[arg(long)]
    write: bool,
    /// Show the change and write nothing (the default).
    #[arg(long, conflicts_with = "write")]
    dry_run: bool,
    /// Remove the gateway.
    #[arg(long, conflicts_with = "http")]
    undo: bool,
    /// The gateway's catalog.
    #[arg(long, value_name = "FILE", env = "TRUNKLINE_CONFIG")]
    config: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let place = place(args.client, args.project)?;
    let seen = Seen::read(&place.path)?;
    let text = seen.text.clone().unwrap_or_default();
    let told = |error: Unreadable| unreadable(&seen.path, args.client, &error);
    let ours = if args.undo { None } else { Some(ours(&args)?) };
    let mut doubled: Vec<String> = Vec::new();
    let new = match &ours {
        None => undone(&args, &seen, &text).map_err(told)?,
        Some((ours, _)) => {
            let twice = twice(&args, &text)?;
            let rest = match args.replace {
                true => without(args.client, &text, &twice).map_err(told)?,
                false => text.clone(),
            };
            doubled = twice.into_iter().filter(|_| !args.replace).collect();
            Some(connect(args.client, &rest, ours).map_err(told)?)
        }
    };
    let title = args.client.title();
    let (known, mut notes) =
        ours.map_or_else(Default::default, |(ours, notes)| (words(ours), notes));
    if !doubled.is_empty() {
        let names: Vec<_> = doubled.iter().map(|it| format!("`{}`", one_line(it))).collect();
        notes.push(format!(
            "The catalog has {} too, so {title} would have them twice. `--replace` takes them out here.",
            names.join(", ")
        ));
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let path = shown(&seen.path);
    let Some(new) = new.filter(|it| *it != text) else {
        screen.print(&match args.undo {
            true => format!("`{path}` has no entry of the gateway; there is nothing to undo."),
            false => format!("`{path}` has the gateway already; there is nothing to do."),
        })?;
        return Ok(ExitCode::SUCCESS);
    };
    let is_gone = args.undo && new.is_empty();
    let mut out = format!("{} {path}\n", screen.tone(Tone::Bold, title));
    for (sign, line) in diff::lines(&text, &new) {
        let line = format!("{sign} {}", one_line(&masked_line(line, &known)));
        let line = match sign {
            '+' => screen.tone(Tone::Good, &line),
            '-' => screen.tone(Tone::Bad, &line),
            _ => line,
        };
        out.push_str(&format!("  {line}\n"));
    }
    screen.print(&out)?;
    for note in &notes {
        screen.print(note)?;
    }
    if !args.write {
        let what = if seen.text.is_some() { "changed" } else { "made" };
        screen.print(&format!("The file was not {what}. Do it with `--write`."))?;
        return Ok(ExitCode::SUCCESS);
    }
    let backup = seen.back_up()?;
    if is_gone {
        seen.remove()?
    } else {
        seen.write(&new, false)?
    }
    let kept = backup.map(|it| format!(" What was there is in `{}`.", shown(&it)));
    let done = if is_gone { "removed" } else { "written" };
    screen.print(&format!("`{path}` is {done}.{}", kept.unwrap_or_default()))?;
    let next = if args.undo { "forgets" } else { "uses" };
    screen.print(&format!("{title} {next} the gateway when it is started the next time."))?;
    Ok(ExitCode::SUCCESS)
}

/// The text without our entry: the original, if it is known.
fn undone(args: &Args, seen: &Seen, text: &str) -> Result<Option<String>, Unreadable> {
    if !is_connected(args.client, text)? {
        return Ok(None);
    }
    // If there was no file before, there is none afterwards.
    for before in seen.backups().into_iter().chain([String::new()]) {
        let found = disconnect(args.client, text, Some(&before))?;
        if found.as_ref() == Some(&before) {
            return Ok(found);
        }
    }
    disconnect(args.client, text, None)
}

/// The servers of the file that the catalog has under the same names.
fn twice(args: &Args, text: &str) -> Result<Vec<String>, Failure> {
    let Some(path) = config(args.config.as_deref())? else { return Ok(Vec::new()) };
    let catalog = Seen::read(&path)?.text.unwrap_or_default();
    let have = have(&catalog)
        .map_err(|error| Failure::usage(format!("The catalog cannot be read: {error}")))?;
    let mut names = others(args.client, text).unwrap_or_default();
    names.retain(|name| have.servers.iter().any(|(it, _)| it == name));
    Ok(names)
}

/// The entry to write, and remarks about it.
fn ours(args: &Args) -> Result<(Ours, Vec<String>), Failure> {
    let config = config(args.config.as_deref())?;
    let mut notes = Vec::new();
    if !args.http {
        let mut words = vec!["serve".to_owned(), "--stdio".to_owned()];
        if config.is_some() {
            // One gateway for all hosts of a user, with one set of approvals.
            words.push("--share".to_owned());
        }
        match &config {
            Some(path) => {
                let Some(path) = path.to_str() else {
                    let why = format!("The path of `{}` is no text.", path.display());
                    return Err(Failure::usage(why).advice("Move the catalog elsewhere."));
                };
                words.extend(["--config".to_owned(), path.to_owned()]);
            }
            None => notes.push(
                "There is no `trunkline.yaml` here, so it gets the built-in demo server. Make a \
                 catalog with `trunkline import --write`, and connect again."
                    .to_owned(),
            ),
        }
        return Ok((Ours::Stdio { command: binary()?, args: words }, notes));
    }
    if !args.client.takes_url() {
        let why = format!("{} takes no URLs in its file.", args.client.title());
        return Err(Failure::usage(why).advice("Leave `--http` out."));
    }
    let text = config.map(|it| Seen::read(&it)).transpose()?.and_then(|it| it.text);
    let have = have(&text.unwrap_or_default())
        .map_err(|error| Failure::usage(format!("The catalog cannot be read: {error}")))?;
    let listen = have.listen.unwrap_or_else(|| LISTEN.to_owned());
    if listen.contains("${") {
        let why = "Where the gateway listens depends on variables.";
        return Err(Failure::usage(why).advice("Write `gateway.listen` without variables."));
    }
    let here = listen.replacen("0.0.0.0:", "127.0.0.1:", 1).replacen("[::]:", "[::1]:", 1);
    let scheme = if have.has_tls { "https" } else { "http" };
    let url = format!("{scheme}://{here}/mcp");
    if have.has_auth {
        notes.push(format!(
            "The gateway requires a token. Give {} a header \
             `Authorization: Bearer …`, or let it log in.",
            args.client.title()
        ));
    }
    notes.push("Start the gateway with `trunkline serve`.".to_owned());
    Ok((Ours::Http { url }, notes))
}

/// Every text of our entry.
fn words(ours: Ours) -> Vec<String> {
    let mut all = vec!["stdio".to_owned(), "http".to_owned()];
    match ours {
        Ours::Stdio { command, args } => {
            all.push(command);
            all.extend(args);
        }
        Ours::Http { url } => all.push(url),
    }
    all
}

/// The path of the binary: desktop programs do not have the `PATH` of a shell.
fn binary() -> Result<String, Failure> {
    let fail = |why: String| Failure::usage(format!("This program does not know its path: {why}."));
    let this = env::current_exe().map_err(|error| fail(error.to_string()))?;
    let real = this.canonicalize().unwrap_or_else(|_| this.clone());
    let path = env::var_os("PATH").unwrap_or_default();
    let mut known = env::split_paths(&path).map(|it| it.join("trunkline"));
    let known = known.find(|it| it.is_absolute() && it.canonicalize().is_ok_and(|it| it == real));
    let path = known.unwrap_or(this);
    path.into_os_string().into_string().map_err(|_| fail("it is no text".to_owned()))
}

/// The file of a client.
fn place(client: Client, is_project: bool) -> Result<Place, Failure> {
    let mut all = places(client, &surroundings()?).into_iter();
    let found = if is_project { all.find(|it| it.project.is_some()) } else { all.next() };
    found.ok_or_else(|| {
        let why = format!("{} has no file for a project here.", client.title());
        Failure::usage(why).advice("Leave `--project` out.")
    })
}

/// The environment that determines the paths.
pub(crate) fn surroundings() -> Result<Surroundings, Failure> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let home = folder("HOME").ok_or_else(|| {
        Failure::usage("Nobody knows where the home folder is.").advice("Set `HOME` to its path.")
    })?;
    let project = env::current_dir()
        .map_err(|error| Failure::usage(format!("This folder cannot be used: {error}.")))?;
    Ok(Surroundings {
        home,
        config: folder("XDG_CONFIG_HOME"),
        codex: folder("CODEX_HOME"),
        project,
        is_mac: cfg!(target_os = "macos"),
    })
}

/// The catalog to use, as an absolute path.
pub(crate) fn config(named: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    let Some(path) = crate::catalog::meant(named) else { return Ok(None) };
    let whole = std::path::absolute(&path);
    whole.map(Some).map_err(|error| Failure::usage(format!("`{}`: {error}.", path.display())))
}

/// A client by its name.
pub(crate) fn client(name: &str) -> Result<Client, String> {
    Client::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Client::ALL.iter().map(|it| it.name()).collect();
        format!("the clients are {}", names.join(", "))
    })
}

/// A file that could not be parsed, and so is not touched.
fn unreadable(path: &Path, client: Client, error: &Unreadable) -> Failure {
    let why = format!(
        "`{}:{}:{}` cannot be understood: {}",
        path.display(),
        error.line,
        error.column,
        error.message
    );
    let advice = format!(
        "Put it right, or look whether {} can read it; nothing was changed.",
        client.title()
    );
    Failure::usage(why).advice(advice)
}

/// A path for display.
pub(crate) fn shown(path: &Path) -> String {
    let home = env::var_os("HOME").map(PathBuf::from).filter(|it| it.as_os_str().len() > 1);
    let below = home.as_deref().and_then(|it| path.strip_prefix(it).ok());
    let text = match below {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    };
    one_line(&text)
}

/// Where the gateway listens unless told otherwise.
pub(crate) const LISTEN: &str = "127.0.0.1:7373";
