//! `trunkline import`

mod kept;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use self::kept::Kept;
use super::connect::file::Seen;
use super::connect::{LISTEN, client, config, shown, surroundings};
use crate::clients::{
    Client, Entry, Have, Origin, Resolve, Row, Secrets, Unreadable, Verdict, have, merged,
    needed_variables, places, plan, read, with_env_file,
};
use crate::failure::Failure;
use crate::output::{Screen, one_line};

/// Takes servers over into the catalog from the settings of other programs. Without `--write` it
/// shows what it would do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The programs to import from, such as claude-desktop,codex. The default is all of them.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = client)]
    from: Vec<Client>,
    /// The catalog.
    #[arg(long, value_name = "FILE", env = "TRUNKLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Write the catalog.
    #[arg(long)]
    write: bool,
    /// Give a server another name if its own is taken.
    #[arg(long, conflicts_with_all = ["skip", "replace"])]
    rename: bool,
    /// Leave out servers whose name is taken.
    #[arg(long, conflicts_with = "replace")]
    skip: bool,
    /// Replace servers of the same name in the catalog.
    #[arg(long)]
    replace: bool,
    /// Write a variable, such as ${API_KEY}, in place of each secret.
    #[arg(long)]
    secrets_as_env: bool,
    /// The same, and write the secrets into this file, which only you can read and which the catalog names.
    #[arg(long, value_name = "FILE")]
    secrets_file: Option<PathBuf>,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A file that could not be parsed.
pub(super) struct UnreadableFile {
    pub(super) path: PathBuf,
    pub(super) why: String,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let path = match config(args.config.as_deref())? {
        Some(path) => path,
        None => std::path::absolute(crate::catalog::NAME)?,
    };
    let catalog = Seen::read(&path)?;
    let text = catalog.text.clone().unwrap_or_default();
    let have = have(&text).map_err(|error| unreadable(&path, &error))?;
    let (mut rows, unread_files) = find(&args, &have)?;
    let mut kept = Kept::open(args.secrets_file.as_deref(), &path, &have)?;
    let mut secrets = Secrets::new(&have, kept.values());
    if args.secrets_as_env || args.secrets_file.is_some() {
        replace_secrets(&args, &mut rows, &have, &mut secrets);
    }
    let changes: Vec<(String, Entry)> = rows.iter().filter_map(Row::change).collect();
    let conflicts = rows.iter().filter(|it| matches!(it.verdict, Verdict::Conflict(..)));
    let names: Vec<_> = conflicts.map(|it| format!("`{}`", one_line(&it.name))).collect();
    let conflicts = names.len();
    if args.write && conflicts > 0 {
        let verb = if conflicts == 1 { "is" } else { "are" };
        let why = format!(
            "{} {verb} defined differently in two places; nothing was written.",
            names.join(", ")
        );
        let failure = Failure::usage(why)
            .advice("Say `--skip`, `--rename` or `--replace`; see both without `--write`.");
        return Err(failure.into());
    }
    let mut variables: Vec<String> =
        changes.iter().flat_map(|(_, entry)| needed_variables(entry)).collect();
    variables.sort();
    variables.dedup();
    let mut new = merged(&text, &changes).map_err(|error| unreadable(&path, &error))?;
    let stored = kept.take(&mut variables, &secrets);
    if let Some(name) = kept.name_to_write().filter(|_| !stored.is_empty()) {
        new = with_env_file(&new, name).map_err(|error| unreadable(&path, &error))?;
    }
    let is_new = new != text;
    let mut backup = None;
    if args.write && is_new {
        kept.write(&stored)?;
        backup = catalog.back_up()?;
        let is_private = changes.iter().any(|(_, entry)| show::holds_values(entry));
        catalog.write(&new, is_private)?;
    }
    if args.json {
        screen.json(&json!({
            "config": path.display().to_string(),
            "servers": rows.iter().map(show::to_json).collect::<Vec<_>>(),
            "unreadable": unread_files.iter().map(|it| json!({ "path": it.path.display().to_string(), "why": it.why }))
                .collect::<Vec<_>>(),
            "variables": &variables,
            "secretsFile": kept.path().filter(|_| !stored.is_empty()).map(|it| it.display().to_string()),
            "stored": stored.keys().collect::<Vec<_>>(),
            "written": args.write && is_new,
            "backup": backup.map(|it| it.display().to_string()),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    screen.print(&show::table(screen, &rows, &unread_files))?;
    if let Some(file) = kept.path().filter(|_| !stored.is_empty()) {
        let names = stored.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let verb = if args.write { "are" } else { "would be" };
        screen.print(&format!("These secrets {verb} in `{}`: {names}.", shown(file)))?;
    }
    if !variables.is_empty() {
        let names = variables.join(", ");
        screen.print(&format!("Set these variables where the gateway runs: {names}."))?;
    }
    let shown_path = shown(&catalog.path);
    let last = match (is_new, args.write) {
        (false, _) => format!("There is nothing to add to `{shown_path}`."),
        (true, false) if conflicts > 0 => format!(
            "Nothing was written. Write `{shown_path}` with `--write`, and say what to do about \
             conflicts: `--skip`, `--rename` or `--replace`."
        ),
        (true, false) => format!("Nothing was written. Write `{shown_path}` with `--write`."),
        (true, true) => {
            let kept = backup.map(|it| format!(" What was there is in `{}`.", shown(&it)));
            let kept = kept.unwrap_or_default();
            format!("`{shown_path}` is written.{kept} Look at it with `trunkline check`.")
        }
    };
    screen.print(&last)?;
    Ok(ExitCode::SUCCESS)
}

/// The servers in the clients' files, and the decisions about them.
fn find(args: &Args, have: &Have) -> Result<(Vec<Row>, Vec<UnreadableFile>), Failure> {
    let at = surroundings()?;
    let (mut found, mut unread_files) = (Vec::new(), Vec::new());
    let is_wanted = |it: &Client| args.from.is_empty() || args.from.contains(it);
    for place in Client::ALL.into_iter().filter(is_wanted).flat_map(|it| places(it, &at)) {
        let text = match Seen::read(&place.path) {
            Ok(seen) => seen.text,
            Err(failure) => {
                unread_files.push(UnreadableFile { path: place.path.clone(), why: failure.cause });
                continue;
            }
        };
        match text.map(|it| read(&place, &it)) {
            Some(Ok(more)) => found.extend(more),
            Some(Err(error)) => {
                unread_files
                    .push(UnreadableFile { path: place.path.clone(), why: error.to_string() });
            }
            None => {}
        }
    }
    let listen = have.listen.as_deref().unwrap_or(LISTEN);
    Ok((plan(found, have, listen, resolve(args)), unread_files))
}

/// Puts variables in place of secrets, and compares again.
fn replace_secrets(args: &Args, rows: &mut Vec<Row>, have: &Have, secrets: &mut Secrets) {
    let changed = std::mem::take(rows).into_iter().map(|row| {
        let mut found = row.found;
        // A server that the catalog has needs no other variables.
        let is_there = matches!(row.verdict, Verdict::Same(Origin::Catalog));
        if let Ok(entry) = found.entry.as_ref()
            && !is_there
        {
            found.entry = Ok(secrets.replace(&row.name, entry));
        }
        found
    });
    let changed = changed.collect();
    let listen = have.listen.as_deref().unwrap_or(LISTEN);
    *rows = plan(changed, have, listen, resolve(args));
}

fn resolve(args: &Args) -> Option<Resolve> {
    match (args.rename, args.skip, args.replace) {
        (true, ..) => Some(Resolve::Rename),
        (_, true, _) => Some(Resolve::Skip),
        (.., true) => Some(Resolve::Replace),
        _ => None,
    }
}

fn unreadable(path: &Path, error: &Unreadable) -> Failure {
    let why = format!("`{}:{}:{}`: {}", path.display(), error.line, error.column, error.message);
    Failure::usage(why).advice("See all that is wrong with `trunkline check`.")
}
