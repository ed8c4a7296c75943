//! A catalog: a plan or faults with places in the file, and no secret in what is said.

use std::io;
use std::path::Path;

use trunkline_gateway::catalog::{Env, Fault, diff, load};

/// A file.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match load(&text, ORIGIN.as_ref(), &World) {
        Ok(loaded) => {
            loaded.warnings.iter().for_each(|it| fault(it, &text));
            let again = load(&text, ORIGIN.as_ref(), &World).expect("it was good a moment ago");
            assert!(diff(&loaded.plan, &again.plan).is_empty(), "the same file differs");
        }
        Err(faults) => {
            assert!(!faults.faults.is_empty(), "nothing is wrong with it");
            keeps_secret(&faults.to_string(), &text);
            faults.faults.iter().chain(&faults.warnings).for_each(|it| fault(it, &text));
        }
    }
}

fn fault(fault: &Fault, text: &str) {
    let shown = fault.render(ORIGIN.as_ref());
    keeps_secret(&shown, text);
    assert!(fault.line >= 1 && fault.column >= 1, "{fault:?}");
    let lines = text.split('\n').count() + text.matches('\r').count();
    assert!(fault.line <= lines + 1, "{} lines, but {fault:?}", lines);
    assert!(!fault.message.is_empty(), "{fault:?}");
}

/// What a variable or a file holds is not shown. Where the file itself spells it out, it is no secret.
fn keeps_secret(shown: &str, text: &str) {
    assert!(text.contains(SECRET) || !shown.contains(SECRET), "a secret is shown: {shown}");
}

/// One variable and one file, both secret.
struct World;

impl Env for World {
    fn var(&self, name: &str) -> Option<String> {
        match name {
            "TOKEN" => Some(SECRET.to_owned()),
            "HOME" => Some("/users/me".to_owned()),
            "NUMBER" => Some("7".to_owned()),
            _ => None,
        }
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let found = path.ends_with("secret").then(|| SECRET.to_owned());
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn is_file(&self, path: &Path) -> bool {
        path.ends_with("secret")
    }
}

const ORIGIN: &str = "/etc/trunkline/trunkline.yaml";
const SECRET: &str = "hunter2-hunter2-hunter2";
pub(crate) const WORDS: &[&str] = &[
    "mcpServers:",
    "servers:",
    "gateway:",
    "  command: ",
    "  url: https://a.example/mcp",
    "  args: [",
    "  env: {",
    "${TOKEN}",
    "${NUMBER}",
    "${file:./secret}",
    "${X:-",
    "${X:?",
    "}",
    "{ env: TOKEN }",
    "{ file: ./secret }",
    "strategy: stateful",
    "affinity: meta:user",
    "tags: [a]",
    "headers:",
    "auth:",
    "rules:",
    "listen: ",
    "listen: 0.0.0.0:80",
    "tokens:",
    "admin:",
    "limits:",
    "pin: ",
    "audit:",
    "plugins:",
    "- ",
    "&a",
    "*a",
    "<<: *a",
    "!!str",
    "|\n",
    ">\n",
    "? ",
    "\t",
    "---\n",
    "...\n",
    "%YAML 1.2",
    "maxInstances: ",
    "timeouts: {",
    "probe: {",
    "exposeTools: [",
    "renameTools: {",
    "true",
    "null",
    "0x7f",
    "1e9",
    "\u{feff}",
];
