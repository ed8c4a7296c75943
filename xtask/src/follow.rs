//! Executes the pages that newcomers read first, word by word, and checks that they work.
//!
//! Each page has an empty folder and a home of its own. Commands are typed into one shell, files are written as their
//! blocks say, programs are compiled with the dependencies that the page names, and what is said is compared with what
//! the page shows. A block that cannot be followed says why in the page: `<!-- not followed: REASON -->`.

mod page;
mod person;
mod ports;
mod said;
mod shell;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::run;
use page::{Block, Kind, Step};
use shell::{Ended, Shell};

/// What a newcomer reads first.
pub const PAGES: [&str; 6] = [
    "README.md",
    "docs/guide/first-server.md",
    "docs/guide/first-client.md",
    "docs/gateway.md",
    "docs/cli.md",
    "docs/recordings.md",
];

/// The chore: builds the binary and follows the pages that are named, or all of them.
pub fn run(args: &[String]) -> Result<(), String> {
    if let [flag, url] = args
        && flag == "--person"
    {
        return person::approve(url);
    }
    let with_peers = !args.iter().any(|it| it == "--no-peers");
    let named: Vec<&str> =
        args.iter().map(String::as_str).filter(|it| *it != "--no-peers").collect();
    if let Some(unknown) = named.iter().find(|it| !PAGES.contains(it)) {
        return Err(format!("`{unknown}` is none of the pages; they are {}.", PAGES.join(", ")));
    }
    run::run(&mut run::cargo(["build", "--quiet", "--package", "trunkline-cli"]))?;
    pages(if named.is_empty() { &PAGES } else { &named }, with_peers)
}

/// Follows pages with the binary that is built.
pub fn pages(pages: &[&str], with_peers: bool) -> Result<(), String> {
    let mut faults = 0;
    for page in pages {
        let start = Instant::now();
        let followed = follow(page, &run::file(page)?, with_peers)?;
        println!("{page}: {}, {:.1} s", followed.count(), start.elapsed().as_secs_f64());
        for (line, reason) in &followed.marked {
            println!("  {page}:{line} is not followed: {reason}");
        }
        for (line, why) in &followed.faults {
            println!("  {page}:{line} FAILED: {}", why.trim_end().replace('\n', "\n    "));
        }
        faults += followed.faults.len();
    }
    match faults {
        0 => Ok(()),
        1 => Err("One block does not do what its page says.".to_owned()),
        _ => Err(format!("{faults} times a page does not get a newcomer where it says.")),
    }
}

#[derive(Default)]
struct Followed {
    blocks: BTreeMap<Kind, usize>,
    commands: usize,
    /// What `Try next` named and was typed.
    hints: usize,
    /// Commands that need what `--no-peers` leaves out.
    left_out: usize,
    marked: Vec<(usize, String)>,
    faults: Vec<(usize, String)>,
}

impl Followed {
    fn count(&self) -> String {
        let of = |kind| self.blocks.get(&kind).copied().unwrap_or_default();
        let mut text = format!(
            "{} blocks run, {} compiled, {} written, {} read, {} marked; {} commands, {} hints",
            of(Kind::Run),
            of(Kind::Compiled),
            of(Kind::Written),
            of(Kind::Read),
            self.marked.len(),
            self.commands,
            self.hints,
        );
        if self.left_out > 0 {
            text.push_str(&format!(", {} left out by `--no-peers`", self.left_out));
        }
        text
    }
}

fn follow(page: &str, markdown: &str, with_peers: bool) -> Result<Followed, String> {
    let blocks = page::blocks(markdown).map_err(|error| format!("{page}:{error}"))?;
    let name = page.rsplit('/').next().unwrap_or(page).trim_end_matches(".md");
    let mut shell = Shell::start(name, with_peers)?;
    let mut followed = Followed::default();
    // Programs are compiled with what the page says of the manifest, wherever it says it.
    let is_manifest = |it: &&Block| {
        it.steps().is_ok_and(
            |(_, steps)| matches!(&steps[..], [Step::Write { path, .. }] if path == page::MANIFEST),
        )
    };
    for step in
        blocks.iter().filter(is_manifest).filter_map(|it| it.steps().ok()).flat_map(|it| it.1)
    {
        act(&mut shell, &step, with_peers, &mut followed)?;
    }
    for block in &blocks {
        if let Some(reason) = &block.not_followed {
            followed.marked.push((block.line, reason.clone()));
            continue;
        }
        let steps = match block.steps() {
            Ok((kind, steps)) => {
                *followed.blocks.entry(kind).or_default() += 1;
                steps
            }
            Err(why) => {
                followed.faults.push((block.line, why));
                continue;
            }
        };
        for step in &steps {
            act(&mut shell, step, with_peers, &mut followed)?;
        }
    }
    Ok(followed)
}

/// Executes one block of a page, and records the outcome.
fn act(shell: &mut Shell, step: &Step, with_peers: bool, to: &mut Followed) -> Result<(), String> {
    match step {
        Step::Write { path, text } => shell.write(path, text)?,
        Step::Know { line, command } => {
            to.commands += 1;
            let help = shell.run(&format!("trunkline help {command}"));
            if !help.is_ok_and(|it| it.code == 0) {
                to.faults.push((*line, format!("There is no command `{command}`.")));
            }
        }
        Step::Run { line, command, shows } => {
            if !with_peers && OF_PEERS.iter().any(|it| command.contains(it)) {
                to.left_out += 1;
                return Ok(());
            }
            to.commands += 1;
            let ended = match shell.run(command) {
                Ok(ended) => ended,
                Err(why) => {
                    to.faults.push((*line, format!("`{command}`: {why}")));
                    return Ok(());
                }
            };
            if let Some(why) = judged(command, &ended, shows.as_deref()) {
                to.faults.push((*line, format!("`{command}` {why}; it said:\n{}", ended.said)));
            }
            for hint in hints(&ended.said) {
                to.hints += 1;
                let why = match shell.run(&hint) {
                    Ok(Ended { code: 0, .. }) => continue,
                    Ok(Ended { said, .. }) => said,
                    Err(why) => why,
                };
                let why = format!("`{command}` says to try `{hint}`, which fails:\n{why}");
                to.faults.push((*line, why));
            }
        }
    }
    Ok(())
}

/// What is wrong with how a command ended.
fn judged(command: &str, ended: &Ended, shows: Option<&[String]>) -> Option<String> {
    let is_failure = |it: &String| it.starts_with("trunkline: ") || it.starts_with("{\"error\"");
    let shows_failure = shows.is_some_and(|it| it.iter().any(is_failure));
    if (ended.code != 0) != shows_failure {
        return Some(format!("ended with {}", ended.code));
    }
    // A server may say more while it runs.
    let goes_on = command.starts_with("trunkline serve") || command.starts_with("trunkline demo");
    // What it logs comes whenever it happens, also before what it says first.
    let said: String = match goes_on {
        true => ended.said.lines().filter(|it| !is_log(it)).flat_map(|it| [it, "\n"]).collect(),
        false => ended.said.clone(),
    };
    let missing = said::missing(shows?, &said, !goes_on)?;
    Some(format!("did not say `{missing}` where the page shows it"))
}

/// Whether a line is one of the log: a time, then a level.
fn is_log(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let has_time = words.next().is_some_and(|it| it.contains('T') && it.ends_with('Z'));
    has_time && matches!(words.next(), Some("ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE"))
}

/// The commands below `Try next`.
fn hints(said: &str) -> Vec<String> {
    let after = said.lines().skip_while(|it| !it.starts_with("Try next")).skip(1);
    let lines = after.take_while(|it| it.starts_with("  "));
    lines.map(|it| it.trim().to_owned()).collect()
}

/// What only the installed packages of others have.
const OF_PEERS: [&str; 4] = ["npx", "uvx", "mcp-server-", "get_current_time"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_what_is_indented_below_try_next() {
        let said =
            "At http://x.\n\nTry next, in a terminal:\n  trunkline ps\n  trunkline list\nmore\n";
        assert_eq!(hints(said), ["trunkline ps", "trunkline list"]);
        assert!(hints("Nothing.\n").is_empty());
    }

    #[test]
    fn a_command_fails_where_the_page_shows_that() {
        let ended = |code, said: &str| Ended { code, said: said.to_owned() };
        let shows = |it: &str| Some(vec![it.to_owned()]);
        let failed = "trunkline: no";
        assert_eq!(judged("x", &ended(3, failed), shows(failed).as_deref()), None);
        assert!(judged("x", &ended(0, failed), shows(failed).as_deref()).is_some());
        assert!(judged("x", &ended(1, ""), None).is_some());
        assert!(judged("x", &ended(0, "a"), shows("b").as_deref()).is_some());
    }
}
