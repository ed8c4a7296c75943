//! A page of markdown into its fenced blocks, and a block into what it has its reader do.

use std::iter::Peekable;

/// A fenced block.
#[derive(Debug, PartialEq)]
pub struct Block {
    /// The line of its fence, counted from 1.
    pub line: usize,
    language: String,
    is_no_run: bool,
    text: String,
    /// Why it cannot be executed here, if the page says so: `<!-- not followed: REASON -->`.
    pub not_followed: Option<String>,
}

/// What a block has its reader do, one after the other.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Write a file.
    Write { path: String, text: String },
    /// Type a command and see what it says, if the page shows that.
    Run { line: usize, command: String, shows: Option<Vec<String>> },
    /// Look whether there is such a command.
    Know { line: usize, command: String },
}

/// The outcome of a block, for the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Its commands were typed.
    Run,
    /// It is a program: compiled, and run unless it says `no_run`.
    Compiled,
    /// It is a file: written, and checked.
    Written,
    /// It is JSON, or a list of commands: it was looked at.
    Read,
}

/// Every fenced block of a page.
pub fn blocks(markdown: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut marker: Option<String> = None;
    let mut lines = markdown.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let mut words = info.split([',', ' ']).filter(|it| !it.is_empty());
            let language = words.next().unwrap_or_default().to_owned();
            let is_no_run = words.any(|it| it == "no_run");
            let text: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|it| *it != "```").collect();
            let not_followed = marker.take();
            let text = text.join("\n");
            blocks.push(Block { line: index + 1, language, is_no_run, text, not_followed });
        } else if let Some(reason) = line.strip_prefix("<!-- not followed:") {
            let reason = reason.strip_suffix("-->").map(str::trim).filter(|it| !it.is_empty());
            let reason = reason.ok_or(format!(
                "{}: The marker needs a reason, and `-->` at its end.",
                index + 1
            ))?;
            marker = Some(reason.to_owned());
        } else if !line.is_empty() && marker.is_some() {
            return Err(format!("{}: `not followed` stands before no block.", index + 1));
        }
    }
    Ok(blocks)
}

impl Block {
    /// What its reader does. The error says what to change in the page.
    pub fn steps(&self) -> Result<(Kind, Vec<Step>), String> {
        match self.language.as_str() {
            "sh" => Ok((Kind::Run, self.commands())),
            "console" => Ok((Kind::Run, self.transcript()?)),
            "rust" => Ok((Kind::Compiled, self.program())),
            "toml" => {
                let path = self.name().unwrap_or(MANIFEST).to_owned();
                let text = format!("{}\n", self.text);
                Ok((Kind::Written, vec![Step::Write { path, text }]))
            }
            "yaml" => Ok((Kind::Written, self.catalog()?)),
            "json" => match serde_json::from_str::<serde_json::Value>(&self.text) {
                Ok(_) => Ok((Kind::Read, Vec::new())),
                Err(error) => Err(format!("This is no JSON: {error}.")),
            },
            "text" if self.text.starts_with("$ ") => {
                Err("Commands with what they say are `console`, not `text`.".to_owned())
            }
            "text" => Ok((Kind::Read, self.synopsis())),
            other => Err(format!(
                "`{other}` is none of `sh`, `console`, `rust`, `toml`, `yaml`, `json` and `text`."
            )),
        }
    }

    /// A command on each line, or on several with `\` at their ends.
    fn commands(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut lines = self.numbered();
        while let Some((line, text)) = lines.next() {
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            steps.push(Step::Run { line, command: whole(text, &mut lines), shows: None });
        }
        steps
    }

    /// Commands after `$`, each with what it shows.
    fn transcript(&self) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        let mut lines = self.numbered().peekable();
        while let Some((line, text)) = lines.next() {
            let Some(command) = text.strip_prefix("$ ") else {
                return Err(
                    "What is shown comes after a command, which begins with `$ `.".to_owned()
                );
            };
            let command = whole(command, &mut lines);
            let shows = until_next_command(&mut lines);
            let shows = (!shows.is_empty()).then_some(shows);
            steps.push(Step::Run { line, command, shows });
        }
        Ok(steps)
    }

    fn program(&self) -> Vec<Step> {
        let path = self.name().unwrap_or("src/main.rs").to_owned();
        let has_main = self.text.lines().any(|it| it.contains("fn main("));
        // A reader puts it beside a `main` of their own.
        let main = if has_main { "" } else { "\n#[allow(dead_code)]\nfn main() {}\n" };
        let text = format!("{}\n{main}", self.text);
        let verb = if self.is_no_run || !has_main { "build" } else { "run" };
        let bin = path.strip_prefix("src/bin/").and_then(|it| it.strip_suffix(".rs"));
        let bin = bin.map(|it| format!(" --bin {it}")).unwrap_or_default();
        let command = format!("cargo {verb} -q{bin}");
        vec![Step::Write { path, text }, Step::Run { line: self.line, command, shows: None }]
    }

    fn catalog(&self) -> Result<Vec<Step>, String> {
        let Some(path) = self.name() else {
            return Err(
                "Say in its first line which file it is, such as `# trunkline.yaml`.".to_owned()
            );
        };
        let check = format!("trunkline check {path}");
        Ok(vec![
            Step::Write { path: path.to_owned(), text: format!("{}\n", self.text) },
            Step::Run { line: self.line, command: check, shows: None },
        ])
    }

    /// Lines that begin with `trunkline`, a command or several with commas between, and what they take or do.
    fn synopsis(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (line, text) in self.numbered() {
            let mut words = text.split_whitespace();
            if words.next() != Some("trunkline") {
                continue;
            }
            for word in words {
                let command = word.trim_matches(['[', ']', ',']).to_owned();
                steps.push(Step::Know { line, command });
                if !word.ends_with(',') {
                    break;
                }
            }
        }
        steps
    }

    /// The file that its first line names: `# trunkline.yaml`, `// src/bin/server.rs`.
    fn name(&self) -> Option<&str> {
        let line = self.text.lines().next()?;
        let path = line.strip_prefix("# ").or_else(|| line.strip_prefix("// "))?;
        let is_path = !path.contains(' ') && path.contains('.') && !path.ends_with('.');
        is_path.then_some(path)
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (self.line + 1 + index, line))
    }
}

/// A command that continues on the next line after `\`.
fn whole<'a>(first: &str, lines: &mut impl Iterator<Item = (usize, &'a str)>) -> String {
    let mut command = first.to_owned();
    while command.ends_with('\\') {
        command.pop();
        command.push_str(lines.next().map(|(_, line)| line).unwrap_or_default().trim_start());
    }
    command
}

fn until_next_command<'a, I: Iterator<Item = (usize, &'a str)>>(
    lines: &mut Peekable<I>,
) -> Vec<String> {
    let mut shown = Vec::new();
    while let Some((_, line)) = lines.next_if(|(_, line)| !line.starts_with("$ ")) {
        shown.push(line.to_owned());
    }
    shown
}

/// Where the dependencies of a program stand.
pub const MANIFEST: &str = "Cargo.toml";

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(markdown: &str) -> Result<Vec<Step>, String> {
        Ok(blocks(markdown)?.remove(0).steps()?.1)
    }

    fn run(line: usize, command: &str, shows: &[&str]) -> Step {
        let shows = shows.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let shows = (!shows.is_empty()).then_some(shows);
        Step::Run { line, command: command.to_owned(), shows }
    }

    #[test]
    fn shell_lines_are_commands() {
        let page = "a\n\n```sh\ntrunkline ps\n# no command\necho a \\\n  b\n```\n";
        assert_eq!(steps(page).unwrap(), [run(4, "trunkline ps", &[]), run(6, "echo a b", &[])]);
    }

    #[test]
    fn a_transcript_has_commands_and_what_they_show() {
        let page = "```console\n$ echo a\na\n\nb\n$ true\n```\n";
        assert_eq!(steps(page).unwrap(), [run(2, "echo a", &["a", "", "b"]), run(6, "true", &[])]);
    }

    #[test]
    fn a_program_is_run_unless_it_says_no_run() {
        let written = |path: &str, text: &str| Step::Write { path: path.into(), text: text.into() };
        assert_eq!(
            steps("```rust\nfn main() {}\n```\n").unwrap(),
            [written("src/main.rs", "fn main() {}\n"), run(1, "cargo run -q", &[])]
        );
        assert_eq!(
            steps("```rust,no_run\n// src/bin/a.rs\nfn main() {}\n```\n").unwrap()[1],
            run(1, "cargo build -q --bin a", &[])
        );
    }

    #[test]
    fn a_catalog_says_which_file_it_is() {
        assert!(steps("```yaml\nmcpServers: {}\n```\n").unwrap_err().contains("which file"));
        let page = "```yaml\n# a.yaml\nmcpServers: {}\n```\n";
        assert_eq!(steps(page).unwrap()[1], run(1, "trunkline check a.yaml", &[]));
    }

    #[test]
    fn lists_of_commands_are_looked_at() {
        let page = "```text\ntrunkline [serve]  serves\ntrunkline ps, logs\nlast words\n```\n";
        let know = |line, command: &str| Step::Know { line, command: command.into() };
        assert_eq!(steps(page).unwrap(), [know(2, "serve"), know(3, "ps"), know(3, "logs")]);
    }

    #[test]
    fn a_marker_needs_a_reason_and_a_block() {
        let marked = "<!-- not followed: needs a browser -->\n```sh\nx\n```\n";
        assert_eq!(blocks(marked).unwrap()[0].not_followed.as_deref(), Some("needs a browser"));
        assert!(blocks("<!-- not followed: -->\n").unwrap_err().contains("reason"));
        let astray = "<!-- not followed: x -->\ntext\n```sh\nx\n```\n";
        assert!(blocks(astray).unwrap_err().contains("no block"));
    }

    #[test]
    fn what_cannot_be_followed_is_a_fault() {
        assert!(steps("```text\n$ trunkline ps\n```\n").unwrap_err().contains("`console`"));
        assert!(steps("```\nx\n```\n").is_err());
        assert!(steps("```json\n{\n```\n").is_err());
    }
}
