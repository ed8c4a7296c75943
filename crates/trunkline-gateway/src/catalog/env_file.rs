//! Reads and writes files of `NAME=value` lines.

use std::collections::BTreeMap;

use super::expand::is_name;

/// Reads variables. Empty lines and comments are skipped, and so is `export`. A value in `'…'` is literal; in
/// `"…"` a `\\n` is a new line and `\\` escapes the next character.
///
/// # Errors
///
/// The number of an invalid line. The line itself may be secret.
pub fn read_env_file(text: &str) -> Result<BTreeMap<String, String>, usize> {
    let mut variables = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim_end();
        let value = unquoted(value.trim_start()).ok_or(index + 1)?;
        if !is_name(name) {
            return Err(index + 1);
        }
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

/// Updates the variables of a text: existing ones get their new values in place, others are appended. Every
/// other line stays as it is.
pub fn write_env_file(text: &str, variables: &BTreeMap<String, String>) -> String {
    let name = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        line.split_once('=').map(|(name, _)| name.trim().to_owned())
    };
    let line = |name: &str, value: &str| format!("{name}={}\n", quoted(value));
    let mut missing = variables.clone();
    let mut out = String::new();
    for old in text.lines() {
        match name(old).filter(|it| variables.contains_key(it)) {
            Some(name) => {
                missing.remove(&name);
                out.push_str(&line(&name, &variables[&name]));
            }
            None => out.extend([old, "\n"]),
        }
    }
    out.extend(missing.iter().map(|(name, value)| line(name, value)));
    out
}

fn unquoted(value: &str) -> Option<String> {
    if let Some(inner) = value.strip_prefix('\'') {
        return inner.strip_suffix('\'').map(str::to_owned);
    }
    let Some(inner) = value.strip_prefix('"') else { return Some(value.to_owned()) };
    let (mut out, mut letters) = (String::new(), inner.chars());
    loop {
        match letters.next()? {
            '"' => return letters.next().is_none().then_some(out),
            '\\' => match letters.next()? {
                'n' => out.push('\n'),
                other => out.push(other),
            },
            letter => out.push(letter),
        }
    }
}

fn quoted(value: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.:/+=@%,~".contains(it);
    if value.chars().all(is_plain) {
        return value.to_owned();
    }
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$");
    format!("\"{}\"", value.replace('`', "\\`").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect()
    }

    #[test]
    fn lines_are_variables() {
        let text = "# mine\n\nA=1\nexport B = x y # z\nC='a\"b\\n'\nD=\"a\\\"b\\n\\$c\"\nE=\n";
        let expected =
            [("A", "1"), ("B", "x y # z"), ("C", "a\"b\\n"), ("D", "a\"b\n$c"), ("E", "")];
        assert_eq!(read_env_file(text), Ok(map(&expected)));
        for bad in ["A=1\nB\n", "A=1\n1B=2\n", "A=1\nB=\"x\n", "A=1\nB='x\n", "A=1\nB=\"x\"y\n"] {
            assert_eq!(read_env_file(bad), Err(2), "{bad}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let variables = map(&[("A", "plain-1"), ("B", "a \"b\" $c `d` \\e\nf"), ("C", "")]);
        let text = write_env_file("# mine\nA=old\nZ=1", &variables);
        assert!(text.starts_with("# mine\nA=plain-1\nZ=1\nB="), "{text}");
        let mut expected = variables;
        expected.insert("Z".to_owned(), "1".to_owned());
        assert_eq!(read_env_file(&text), Ok(expected));
    }
}
