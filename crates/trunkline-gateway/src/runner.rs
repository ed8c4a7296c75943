//! Turns the stderr of installers (npx, uvx, docker) into a short progress text for callers.
//!
//! Only recognised lines are used, and of those only the package's name: stderr belongs to the operator.

/// What an installer's line reports, if it is one.
pub(crate) fn doing(line: &str) -> Option<String> {
    let line = line.trim();
    // npm: "npm warn exec The following package was not found and will be installed: NAME"
    if let Some((_, name)) = line.split_once("will be installed:") {
        return Some(installing(name));
    }
    // docker: "Unable to find image 'NAME' locally"
    if let Some(rest) = line.strip_prefix("Unable to find image ") {
        return Some(format!("pulling {}", quoted(rest.trim_end_matches(" locally"))));
    }
    // uv: "Downloading NAME (1.2MiB)", "Building NAME==1.0"
    for (word, doing) in [("Downloading ", "downloading"), ("Building ", "building")] {
        if let Some(rest) = line.strip_prefix(word) {
            return Some(format!("{doing} {}", quoted(rest)));
        }
    }
    // uv: "Resolved 31 packages in 120ms", "Installed 31 packages in 40ms"
    ["Resolved ", "Prepared ", "Installed "]
        .iter()
        .any(|it| line.starts_with(it) && line.contains("package"))
        .then(|| "installing its packages".to_owned())
}

fn installing(name: &str) -> String {
    format!("installing {}", quoted(name))
}

/// The first word in backticks, if it can be a package name; otherwise "a package".
fn quoted(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default().trim_matches(['\'', '"']);
    let is_name = |it: char| it.is_ascii_alphanumeric() || "@/._-+=:".contains(it);
    match !word.is_empty() && word.len() <= LONGEST && word.chars().all(is_name) {
        true => format!("`{word}`"),
        false => "a package".to_owned(),
    }
}

const LONGEST: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recognised_installer_lines_are_reported() {
        for (line, expected) in [
            (
                "npm warn exec The following package was not found and will be installed: @scope/server@1.2.3",
                Some("installing `@scope/server@1.2.3`"),
            ),
            ("Unable to find image 'mcp/time:latest' locally", Some("pulling `mcp/time:latest`")),
            ("Downloading pydantic-core (1.9MiB)", Some("downloading `pydantic-core`")),
            ("   Building mcp==2.3.0", Some("building `mcp==2.3.0`")),
            ("Installed 31 packages in 40ms", Some("installing its packages")),
            ("Downloading https://x/?token=s3cret", Some("downloading a package")),
            ("password is hunter2", None),
            ("", None),
        ] {
            assert_eq!(doing(line).as_deref(), expected, "{line}");
        }
    }
}
