//! A server → a short description without secrets.

use trunkline_auth::url::shown;

use super::entry::{Entry, ServerTransport};
use super::variables::{is_variable, references};

/// A server in lines of `key: value`. Possible secrets are `***`; references to variables and files
/// are listed, so that the user sees what would be sent.
pub(crate) fn summary(entry: &Entry) -> Vec<String> {
    let mut lines = Vec::new();
    match &entry.transport {
        ServerTransport::Stdio { command, args, inherit, cwd, .. } => {
            let words = [command.clone()].into_iter().chain(masked_args(args));
            lines.push(format!("command: {}", words.collect::<Vec<_>>().join(" ")));
            lines.extend(cwd.iter().map(|it| format!("cwd: {it}")));
            if !inherit.is_empty() {
                lines.push(format!("inherit: {}", inherit.join(", ")));
            }
        }
        ServerTransport::Http { url, is_sse, .. } => {
            let kind = if *is_sse { "sse" } else { "url" };
            let hidden = shown(url);
            let rest = if hidden == *url { "" } else { " (and more)" };
            lines.push(format!("{kind}: {hidden}{rest}"));
        }
    }
    let what =
        if matches!(entry.transport, ServerTransport::Stdio { .. }) { "env" } else { "headers" };
    let values = entry.values().iter().map(|(name, value)| match is_harmless(name, value) {
        true => format!("{name}={value}"),
        false => format!("{name}=***"),
    });
    let values: Vec<_> = values.collect();
    if !values.is_empty() {
        lines.push(format!("{what}: {}", values.join(", ")));
    }
    let hidden: Vec<_> = filled_in(entry)
        .into_iter()
        .filter(|it| lines.iter().all(|line| !line.contains(it)))
        .collect();
    if !hidden.is_empty() {
        lines.push(format!("fills in: {}", hidden.join(", ")));
    }
    if !entry.expose.is_empty() {
        lines.push(format!("exposeTools: {}", entry.expose.join(", ")));
    }
    if entry.is_disabled {
        lines.push("disabled: true".to_owned());
    }
    lines
}

/// The variables and files that an entry refers to, without their defaults, which may be secret.
fn filled_in(entry: &Entry) -> Vec<String> {
    let mut texts: Vec<&str> = entry.values().iter().map(|(_, value)| &**value).collect();
    match &entry.transport {
        ServerTransport::Stdio { command, args, cwd, .. } => {
            texts.push(command);
            texts.extend(args.iter().map(String::as_str));
            texts.extend(cwd.as_deref());
        }
        ServerTransport::Http { url, .. } => texts.push(url),
    }
    let mut found = Vec::new();
    for reference in texts.into_iter().flat_map(references) {
        let shown = match reference.split_once(":-") {
            Some((name, _)) => format!("{name}}}"),
            None => reference.to_owned(),
        };
        if !found.contains(&shown) {
            found.push(shown);
        }
    }
    found
}

/// A line of a file in which only names and the `known` values can be read.
pub(crate) fn masked_line(line: &str, known: &[&str]) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(['"', '\'']) {
        let quote = if rest[start..].starts_with('"') { '"' } else { '\'' };
        let end = closing(&rest[start + 1..], quote).map_or(rest.len(), |it| start + it + 2);
        let (before, text, after) = (&rest[..start], &rest[start..end], &rest[end..]);
        let is_name =
            after.trim_start().starts_with([':', '=']) || before.trim_end().ends_with('.');
        let value = text.trim_matches(quote).replace("\\\\", "\\").replace("\\\"", "\"");
        out.push_str(before);
        match is_name || value.is_empty() || known.contains(&&*value) {
            true => out.push_str(text),
            false => out.extend([quote, '…', quote]),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Where a quoted text ends.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, letter)| {
        let ends = letter == quote && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped && quote == '"';
        ends.then_some(at)
    })
}

/// Whether a value is safe to show.
fn is_harmless(name: &str, value: &str) -> bool {
    let is_small = value.len() <= 5 && value.bytes().all(|it| it.is_ascii_digit());
    let plain = value.strip_prefix("Bearer ").unwrap_or(value);
    is_variable(plain)
        || matches!(value, "" | "true" | "false")
        || (is_small && !has_secret_name(name))
        || HARMLESS.iter().any(|it| name.eq_ignore_ascii_case(it))
}

pub(super) fn is_secret(name: &str, value: &str) -> bool {
    !is_harmless(name, value) && (has_secret_name(name) || has_secret_shape(value))
}

pub(super) fn has_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|it| name.contains(it))
}

/// Whether it looks like a key.
pub(super) fn has_secret_shape(value: &str) -> bool {
    let is_known = PREFIXES.iter().any(|it| value.starts_with(it));
    let is_word = value.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.=+".contains(&it));
    let has = |class: fn(&u8) -> bool| value.as_bytes().iter().any(class);
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    // A connection string with a password.
    let has_password = value.split_once("://").is_some_and(|(_, it)| {
        it.split('/').next().is_some_and(|it| it.contains('@') && it.contains(':'))
    });
    is_known || has_password || (value.len() >= 20 && is_word && is_mixed)
}

fn masked_args(args: &[String]) -> Vec<String> {
    let mut is_next_secret = false;
    let one = |arg: &String| {
        let was_named = std::mem::take(&mut is_next_secret);
        if let Some((flag, value)) = arg.split_once('=')
            && flag.starts_with('-')
        {
            let hides = has_secret_name(flag) || has_secret_shape(value);
            return if hides { format!("{flag}={}", hidden(value)) } else { arg.clone() };
        }
        if let Some((name, value)) = assignment(arg)
            && is_secret(name, value)
        {
            return format!("{name}=***");
        }
        is_next_secret = arg.starts_with('-') && has_secret_name(arg);
        let header = arg.split_once(':').filter(|(name, _)| has_secret_name(name));
        match header {
            _ if was_named && !arg.starts_with('-') => hidden(arg).to_owned(),
            Some((name, value)) if !arg.contains("://") => match hidden(value.trim_start()) {
                "***" => format!("{name}:***"),
                variable => format!("{name}: {variable}"),
            },
            _ if arg.contains("://") => shown(arg),
            _ if has_secret_shape(arg) && !arg.contains('/') && !arg.contains('@') => {
                "***".to_owned()
            }
            _ => arg.clone(),
        }
    };
    args.iter().map(one).collect()
}

/// A secret as it is shown: the variable that stands for it, or `***`.
fn hidden(value: &str) -> &str {
    let plain = value.strip_prefix("Bearer ").unwrap_or(value);
    if is_variable(plain) { value } else { "***" }
}

/// A variable and its value, as `docker run -e` takes them.
pub(super) fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let is_name = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some((name, value))
}

const SECRET: [&str; 12] = [
    "key",
    "token",
    "secret",
    "pass",
    "pwd",
    "auth",
    "credential",
    "cookie",
    "session",
    "dsn",
    "private",
    "signature",
];

const HARMLESS: [&str; 12] = [
    "TZ",
    "LANG",
    "LC_ALL",
    "PATH",
    "HOME",
    "DEBUG",
    "LOG_LEVEL",
    "NODE_ENV",
    "PORT",
    "HOST",
    "Accept",
    "Content-Type",
];

/// The prefixes of well-known keys.
const PREFIXES: [&str; 10] =
    ["sk-", "sk_", "ghp_", "gho_", "github_pat_", "xox", "AKIA", "AIza", "glpat-", "eyJ"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::fixtures::secret_args;

    fn stdio(args: &[&str], env: &[(&str, &str)]) -> Entry {
        let own = |it: &(&str, &str)| (it.0.to_owned(), it.1.to_owned());
        Entry {
            transport: ServerTransport::Stdio {
                command: "npx".to_owned(),
                args: args.iter().map(|it| (*it).to_owned()).collect(),
                env: env.iter().map(own).collect(),
                inherit: Vec::new(),
                cwd: None,
            },
            is_disabled: false,
            expose: Vec::new(),
            start_seconds: None,
            call_seconds: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let args = secret_args(&[
            "https://me:hunter2@a.example/x?key=hunter2",
            "sk-hunter2hunter2hunter2",
            "Authorization: Bearer hunter2",
        ]);
        let env = [
            ("API_KEY", "hunter2"),
            ("FOO", "hunter2"),
            ("PIN_TOKEN", "1234"),
            ("TZ", "UTC"),
            ("A", "${A_KEY}"),
            ("B", "${B:-hunter2}"),
            ("RETRIES", "3"),
            ("ON", "true"),
        ];
        let found = summary(&stdio(&args, &env)).join("\n");
        assert_eq!(
            found,
            "command: npx -y @org/pkg@1.2.3 --api-key *** --token=*** --port 80 https://a.example/x \
             *** Authorization:*** -e PIN_TOKEN=*** /users/a/some-long-folder-name-2026/x\n\
             env: API_KEY=***, FOO=***, PIN_TOKEN=***, TZ=UTC, A=${A_KEY}, B=***, RETRIES=3, ON=true\n\
             fills in: ${B}"
        );
    }

    #[test]
    fn what_will_be_filled_in_is_shown() {
        let mut entry = stdio(&[], &[]);
        entry.transport = ServerTransport::Http {
            url: "https://a.example/x?key=${file:/run/key}".to_owned(),
            is_sse: false,
            headers: vec![("Authorization".to_owned(), "Bearer x${TOKEN:-hunter2}".to_owned())],
        };
        assert_eq!(
            summary(&entry).join("\n"),
            "url: https://a.example/x (and more)\nheaders: Authorization=***\n\
             fills in: ${TOKEN}, ${file:/run/key}"
        );
    }

    #[test]
    fn lines_of_files_are_shown_without_their_secrets() {
        let known = ["npx", "a\"b"];
        for (line, expected) in [
            (r#"  "API_KEY": "hunter2","#, r#"  "API_KEY": "…","#),
            (
                r#"{"a":{"command":"npx","env":{"A": "x\"y"},"n":5}}"#,
                r#"{"a":{"command":"npx","env":{"A": "…"},"n":5}}"#,
            ),
            (r#"  "args": ["a\"b", "hunter2"]"#, r#"  "args": ["a\"b", "…"]"#),
            ("token = 'hunter2' # x", "token = '…' # x"),
            ("[mcp_servers.\"x\"]", "[mcp_servers.\"x\"]"),
            ("  \"auth\": {", "  \"auth\": {"),
            ("  \"open", "  \"…\""),
            ("  }", "  }"),
        ] {
            assert_eq!(masked_line(line, &known), expected);
        }
    }
}
