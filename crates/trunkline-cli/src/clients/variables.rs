//! A client's variable syntax → the catalog's: `${NAME}`, `${NAME:-default}`, `${file:PATH}`, and
//! `$$` for a dollar.

use std::path::Path;

use super::Client;

/// A variable syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// There are none.
    Literal,
    /// `${NAME}`, `${NAME:-default}`.
    Braces,
    /// The same, and `$NAME`.
    Shell,
    /// `${env:NAME}`, `${input:ID}`, `${workspaceFolder}` …
    Editor,
    /// The same, and `${file:PATH}`.
    EditorWithFiles,
    /// As in the catalog.
    Catalog,
}

impl Syntax {
    pub(super) const fn of(client: Client) -> Self {
        match client {
            Client::ClaudeDesktop | Client::Zed | Client::Codex => Self::Literal,
            Client::ClaudeCode => Self::Braces,
            Client::Gemini => Self::Shell,
            Client::Cursor | Client::VsCode => Self::Editor,
            Client::Windsurf => Self::EditorWithFiles,
        }
    }
}

/// Translates the texts of one server.
pub(super) struct Translator<'a> {
    pub(super) syntax: Syntax,
    pub(super) project: Option<&'a Path>,
    /// Variables for values that the client asks its user for.
    pub(super) asked: Vec<String>,
}

impl Translator<'_> {
    /// A text in the catalog's syntax, or why there is none.
    pub(super) fn text(&mut self, text: &str) -> Result<String, String> {
        if self.syntax == Syntax::Catalog {
            return Ok(text.to_owned());
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let braced = after.strip_prefix('{').and_then(|it| it.split_once('}'));
            rest = match (self.syntax, braced) {
                (Syntax::Braces | Syntax::Shell, Some((inner, tail))) if is_reference(inner) => {
                    out.push_str(&reference(inner)?);
                    tail
                }
                (Syntax::Editor | Syntax::EditorWithFiles, Some((inner, tail))) => {
                    out.push_str(&self.editor(inner)?);
                    tail
                }
                (Syntax::Shell, None) if is_name(&after[..name_end(after)]) => {
                    let (name, tail) = after.split_at(name_end(after));
                    out.push_str(&format!("${{{name}}}"));
                    tail
                }
                _ => {
                    out.push_str("$$");
                    after
                }
            };
        }
        out.push_str(rest);
        Ok(out)
    }

    fn editor(&mut self, inner: &str) -> Result<String, String> {
        let folder = || {
            let folder = self.project.and_then(Path::to_str);
            folder.map(escaped).ok_or(format!(
                "It uses `${{{inner}}}`, and this file is for no folder. Write the folder instead."
            ))
        };
        Ok(match inner.split_once(':') {
            Some(("env", name)) if is_name(name) => format!("${{{name}}}"),
            // Only what the other program would read itself, and without variables of ours in it.
            Some(("file", path))
                if self.syntax == Syntax::EditorWithFiles && !path.contains(['$', '{']) =>
            {
                format!("${{file:{path}}}")
            }
            Some(("input", id)) => {
                let name = variable_name(id);
                self.asked.push(name.clone());
                format!("${{{name}}}")
            }
            None if inner == "userHome" => "${HOME}".to_owned(),
            None if inner == "workspaceFolder" => folder()?,
            None if inner == "workspaceFolderBasename" => {
                folder()?.rsplit('/').next().unwrap_or_default().to_owned()
            }
            None if inner == "pathSeparator" || inner == "/" => "/".to_owned(),
            // Cursor also accepts a plain name.
            None if is_name(inner) && inner.chars().all(|it| !it.is_ascii_lowercase()) => {
                format!("${{{inner}}}")
            }
            _ => return Err(format!("It uses `${{{inner}}}`, which only the editor knows.")),
        })
    }
}

/// A text with its dollars escaped.
pub(super) fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}

/// A valid name of a variable.
pub(super) fn variable_name(text: &str) -> String {
    let fit = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' };
    let name: String = text.chars().map(fit).collect();
    if name.starts_with(|it: char| it.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Whether a text is exactly one variable.
pub(super) fn is_variable(text: &str) -> bool {
    let inner = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    inner.is_some_and(|it| !it.contains('}') && !it.contains(":-"))
}

/// The references in a text of the catalog, in order.
pub(super) fn references(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('$') {
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('$') {
            rest = after;
            continue;
        }
        rest = after;
        if let Some(inner) = after.strip_prefix('{') {
            let end = inner.find('}').map_or(inner.len(), |it| it + 1);
            found.push(&text[text.len() - inner.len() - 2..text.len() - inner.len() + end]);
        }
    }
    found
}

/// A variable, perhaps with a default. The default is the other program's text: a dollar in it is
/// literal, and what looks like a variable of ours is refused rather than expanded.
fn reference(inner: &str) -> Result<String, String> {
    match inner.split_once(":-") {
        Some((name, default)) if default.contains("${") => Err(format!(
            "The default of `${{{name}}}` has a variable in it, which means something else here. Write the value instead."
        )),
        Some((name, default)) => Ok(format!("${{{name}:-{}}}", escaped(default))),
        None => Ok(format!("${{{inner}}}")),
    }
}

fn is_reference(inner: &str) -> bool {
    is_name(inner.split_once(":-").map_or(inner, |(name, _)| name))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|it: char| it.is_ascii_digit())
        && name_end(text) == text.len()
}

fn name_end(text: &str) -> usize {
    text.find(|it: char| !it.is_ascii_alphanumeric() && it != '_').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(syntax: Syntax, text: &str, expected: Result<&str, &str>) {
        let project = Some(Path::new("/p/shop"));
        let mut translator = Translator { syntax, project, asked: Vec::new() };
        match (translator.text(text), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(part)) => assert!(found.contains(part), "{found}"),
            (found, _) => panic!("{found:?}"),
        }
    }

    #[test]
    fn variables_of_one_are_variables_of_the_other() {
        check(Syntax::Literal, "a$b ${C}", Ok("a$$b $${C}"));
        check(Syntax::Braces, "x${A} ${B:-c d} $E ${f g}", Ok("x${A} ${B:-c d} $$E $${f g}"));
        check(Syntax::Shell, "$A/${B} $1 $", Ok("${A}/${B} $$1 $$"));
        check(Syntax::Editor, "Bearer ${env:TOKEN}", Ok("Bearer ${TOKEN}"));
        check(Syntax::Editor, "${userHome}/x ${/}", Ok("${HOME}/x /"));
        check(Syntax::Editor, "${workspaceFolder}/x", Ok("/p/shop/x"));
        check(Syntax::Editor, "${workspaceFolderBasename}", Ok("shop"));
        check(Syntax::Editor, "${input:api-key}", Ok("${API_KEY}"));
        check(Syntax::EditorWithFiles, "${file:/run/key} $5", Ok("${file:/run/key} $$5"));
        check(Syntax::Editor, "${command:x.y}", Err("only the editor"));
        check(Syntax::Catalog, "$$ ${A}", Ok("$$ ${A}"));
    }

    #[test]
    fn no_text_of_another_program_makes_us_read_a_file() {
        for syntax in [Syntax::Braces, Syntax::Shell] {
            check(syntax, "${X:-${file:/etc/passwd}}", Err("has a variable in it"));
            check(syntax, "a${X:-b ${Y}}c", Err("has a variable in it"));
            check(syntax, "${X:-a$b}", Ok("${X:-a$$b}"));
            check(syntax, "${file:/etc/passwd}", Ok("$${file:/etc/passwd}"));
        }
        check(Syntax::Literal, "${X:-${file:/a}}", Ok("$${X:-$${file:/a}}"));
        check(Syntax::Editor, "${file:/etc/passwd}", Err("only the editor"));
        check(Syntax::Editor, "${env:X:-${file:/a}}", Err("only the editor"));
        check(Syntax::EditorWithFiles, "${file:${env:HOME}/x}", Err("only the editor"));
    }

    #[test]
    fn references_are_found_and_escapes_are_none() {
        let text = "a${X} $${Y} $$${Z:-w} $5 ${file:/a b}";
        assert_eq!(references(text), ["${X}", "${Z:-w}", "${file:/a b}"]);
        assert_eq!(references("$$ $ {x} ${open"), ["${open"]);
    }

    #[test]
    fn without_a_folder_there_is_no_workspace() {
        let mut it = Translator { syntax: Syntax::Editor, project: None, asked: Vec::new() };
        assert!(it.text("${workspaceFolder}").unwrap_err().contains("for no folder"));
        it.text("${input:a}").unwrap();
        assert_eq!(it.asked, ["A"]);
    }

    #[test]
    fn names_fit() {
        assert_eq!(variable_name("perplexity-key"), "PERPLEXITY_KEY");
        assert_eq!(variable_name("2fa"), "_2FA");
        assert!(is_variable("${A}") && !is_variable("a${A}") && !is_variable("${A:-secret}"));
        assert!(!is_variable("${A}${B}"));
    }
}
