//! The README's shell blocks into a check that each line does what it shows. Its Rust blocks are tests of
//! `examples/guide.rs`.

use crate::run;
use std::process::Command;
use std::time::Duration;

/// Runs every `trunkline` line of the shell blocks.
pub fn run() -> Result<(), String> {
    shell(&run::file("README.md")?)
}

/// The build that `cargo test` makes, binaries included: nothing is compiled twice.
pub fn build<const N: usize>(more: [&str; N]) -> Command {
    let mut cargo = run::cargo(["build", "--workspace", "--bins", "--tests"]);
    cargo.args(more);
    cargo
}

fn shell(readme: &str) -> Result<(), String> {
    let mut ran = 0;
    for block in blocks(readme, "sh") {
        for line in block.lines().map(str::trim) {
            let Some(arguments) = arguments(line) else { continue };
            if arguments.is_empty() {
                gateway().map_err(|error| format!("README.md's `{line}` failed: {error}"))?;
                ran += 1;
                continue;
            }
            let mut sh = Command::new("sh");
            sh.arg("-c").arg(format!("\"$TRUNKLINE\" {arguments}"));
            sh.env("TRUNKLINE", run::trunkline()).env("PATH", path()?).current_dir(run::root());
            run::run_within(&mut sh, Duration::from_secs(60))
                .map_err(|error| format!("README.md's `{line}` failed: {error}"))?;
            ran += 1;
        }
    }
    println!("{ran} shell lines of README.md run");
    Ok(())
}

/// Starts the gateway as the first line of the README does, waits until it says where it is, and ends it.
fn gateway() -> Result<(), String> {
    let state = run::target().join("readme-state");
    let mut gateway = Command::new(run::trunkline());
    gateway.args(["serve", "--listen", "127.0.0.1:0", "--state"]).arg(state);
    // No catalog lies there.
    gateway.current_dir(run::target()).stderr(std::process::Stdio::piped());
    let mut child = gateway.spawn().map_err(|error| format!("it does not start: {error}."))?;
    let mut said = String::new();
    let stderr = child.stderr.take().expect("it is piped");
    for line in std::io::BufRead::lines(std::io::BufReader::new(stderr)) {
        let line = line.map_err(|error| error.to_string())?;
        said.push_str(&line);
        said.push('\n');
        if line.contains("trunkline import") {
            break;
        }
    }
    let ended = Command::new("kill").arg(child.id().to_string()).status();
    let exit = child.wait().map_err(|error| error.to_string())?;
    let is_told = ["at http://127.0.0.1:", "trunkline list", "trunkline call demo.sum"];
    match is_told.iter().find(|it| !said.contains(**it)) {
        Some(missing) => Err(format!("it does not say `{missing}`, but: {said}")),
        None if !exit.success() => Err(format!("it ended with {exit}, after {ended:?}.")),
        None => Ok(()),
    }
}

/// What a shell line hands to our binary, if it calls it. A line that starts another server is shown by the peers.
fn arguments(line: &str) -> Option<&str> {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line.split(" #").next().unwrap_or(line).trim_end();
    let rest = if let Some(rest) = line.strip_prefix("cargo run --release") {
        rest.trim_start().strip_prefix("--").unwrap_or(rest)
    } else {
        line.strip_prefix("trunkline").filter(|rest| rest.is_empty() || rest.starts_with(' '))?
    };
    let server = rest.split_once(" -- ").map(|(_, server)| server.trim());
    let waits_for_input = server.is_none() && rest.trim() == "demo";
    let ours = server.is_none_or(|server| server.starts_with("trunkline "));
    (ours && !waits_for_input).then(|| rest.trim())
}

fn path() -> Result<std::ffi::OsString, String> {
    let mut folders = vec![run::target().join("debug")];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    std::env::join_paths(folders).map_err(|error| format!("Cannot extend `PATH`: {error}."))
}

fn blocks<'a>(markdown: &'a str, language: &str) -> Vec<&'a str> {
    let mut blocks = Vec::new();
    let mut rest = markdown;
    while let Some((_, after)) = rest.split_once("```") {
        let Some((info, body)) = after.split_once('\n') else { break };
        let Some((block, next)) = body.split_once("\n```") else { break };
        if info.split([',', ' ']).next() == Some(language) {
            blocks.push(block);
        }
        rest = next;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_by_their_language() {
        let text = "a\n```rust,no_run\nfn f() {}\n```\nb\n```sh\nx\ny\n```\n```\nz\n```\n";
        assert_eq!(blocks(text, "rust"), ["fn f() {}"]);
        assert_eq!(blocks(text, "sh"), ["x\ny"]);
    }

    #[test]
    fn lines_that_call_our_binary_alone_are_run() {
        assert_eq!(arguments("cargo run --release"), Some(""));
        assert_eq!(
            arguments("cargo run --release -- list -- trunkline demo"),
            Some("list -- trunkline demo")
        );
        assert_eq!(
            arguments("$ trunkline call sum a=1 -- trunkline demo # 3"),
            Some("call sum a=1 -- trunkline demo")
        );
        assert_eq!(arguments("trunkline list -- npx server"), None);
        assert_eq!(arguments("trunkline demo"), None);
        assert_eq!(arguments("cargo xtask test"), None);
    }
}
