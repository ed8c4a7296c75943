//! A server → the same server with a variable in place of each secret: in variables, headers,
//! arguments and URLs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::catalog::Have;
use super::entry::{Entry, ServerTransport};
use super::mask::{assignment, has_secret_name, has_secret_shape, is_secret};
use super::variables::{is_variable, references, variable_name};

/// The variables that stand for secrets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    /// Each with its secret.
    values: BTreeMap<String, String>,
    /// Those that the catalog refers to, each with the servers that use it.
    used: BTreeMap<String, BTreeSet<String>>,
}

impl Secrets {
    /// None yet. It avoids variables that a catalog uses for another server, or that are `known`
    /// with another value.
    pub(crate) fn new(have: &Have, known: BTreeMap<String, String>) -> Self {
        let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (server, entry) in &have.servers {
            for name in entry.iter().flat_map(needed_variables) {
                used.entry(name).or_default().insert(server.clone());
            }
        }
        Self { values: known, used }
    }

    /// The server with a variable in place of each secret.
    pub(crate) fn replace(&mut self, server: &str, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        for (text, parts) in texts(&mut entry) {
            // From the end, so that positions stay valid.
            for part in parts.into_iter().rev() {
                let variable = self.variable(server, &part, &text[part.range.clone()]);
                text.replace_range(part.range, &format!("${{{variable}}}"));
            }
        }
        entry
    }

    /// The value of a variable.
    pub(crate) fn get(&self, variable: &str) -> Option<&str> {
        self.values.get(variable).map(String::as_str)
    }

    fn variable(&mut self, server: &str, part: &Part, written: &str) -> String {
        let secret = written.replace("$$", "$");
        let long = variable_name(&format!("{server}_{}", part.name));
        let short = part.is_own_name.then(|| variable_name(&part.name));
        let more = (2..).map(|it| format!("{long}_{it}"));
        let is_free = |it: &String| {
            let is_elsewhere =
                self.used.get(it).is_some_and(|all| all.iter().any(|it| it != server));
            match self.values.get(it) {
                Some(known) => *known == secret,
                None => !is_elsewhere,
            }
        };
        let mut all = short.into_iter().chain([long.clone()]).chain(more);
        let variable = all.find(is_free).unwrap_or(long);
        self.values.insert(variable.clone(), secret);
        variable
    }
}

/// Whether a server of the catalog equals the one that was found, apart from variables in place of
/// secrets.
pub(super) fn is_same_but_for_secrets(catalog: &Entry, found: &Entry) -> bool {
    let (mut catalog, mut found) = (catalog.sorted(), found.sorted());
    let there: Vec<String> =
        texts(&mut catalog).into_iter().map(|(text, _)| text.clone()).collect();
    for ((text, parts), there) in texts(&mut found).into_iter().zip(there) {
        if stands_for(&there, text, &parts) {
            *text = there;
        }
    }
    catalog == found
}

/// Whether a text equals another one with variables in place of its secrets.
fn stands_for(text: &str, with_secrets: &str, parts: &[Part]) -> bool {
    let (mut rest, mut last) = (text, 0);
    for part in parts {
        let Some(after) = rest.strip_prefix(&with_secrets[last..part.range.start]) else {
            return false;
        };
        let end = after.find('}').map_or(0, |it| it + 1);
        if !is_variable(&after[..end]) {
            return false;
        }
        (rest, last) = (&after[end..], part.range.end);
    }
    rest == &with_secrets[last..]
}

/// The variables that a server needs, without those that have a default or that every gateway has.
pub(crate) fn needed_variables(entry: &Entry) -> Vec<String> {
    let mut entry = entry.clone();
    let mut names = Vec::new();
    let own = |it: &String| it.clone();
    let mut all: Vec<String> = texts(&mut entry).into_iter().map(|(text, _)| own(text)).collect();
    if let ServerTransport::Stdio { command, cwd, .. } = &entry.transport {
        all.push(command.clone());
        all.extend(cwd.clone());
    }
    for reference in all.iter().flat_map(|it| references(it)) {
        let name = reference.trim_start_matches("${").trim_end_matches('}');
        let is_variable = !name.contains(':') && !EVERYWHERE.contains(&name);
        if is_variable && !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// A secret within a text.
#[derive(Debug, PartialEq)]
struct Part {
    range: Range<usize>,
    /// Its name in the text.
    name: String,
    /// Whether that is already the name of a variable.
    is_own_name: bool,
}

/// The texts of a server that may contain secrets, each with its secrets.
fn texts(entry: &mut Entry) -> Vec<(&mut String, Vec<Part>)> {
    let mut all = Vec::new();
    let is_env = matches!(entry.transport, ServerTransport::Stdio { .. });
    let values = match &mut entry.transport {
        ServerTransport::Stdio { args, env, .. } => {
            let mut flag = None;
            for arg in args {
                let parts = in_argument(arg, flag.take());
                let is_flag = arg.starts_with('-') && !arg.contains('=') && has_secret_name(arg);
                flag = is_flag.then(|| arg.trim_start_matches('-').to_owned());
                all.push((arg, parts));
            }
            env
        }
        ServerTransport::Http { url, headers, .. } => {
            let parts = in_url(url);
            all.push((url, parts));
            headers
        }
    };
    for (name, value) in values {
        let parts = match is_secret(name, value) {
            true => vec![Part { is_own_name: is_env, ..part(name, value, 0) }],
            false => Vec::new(),
        };
        all.push((value, parts));
    }
    // A text that already contains a variable is left alone.
    for (text, parts) in &mut all {
        parts.retain(|it| references(&text[it.range.clone()]).is_empty());
    }
    all
}

/// The secrets of an argument that follows `flag`, if that is the name of a secret.
fn in_argument(arg: &str, flag: Option<String>) -> Vec<Part> {
    if let Some(flag) = flag.filter(|_| !arg.starts_with('-') && !arg.is_empty()) {
        return vec![part(&flag, arg, 0)];
    }
    if let Some((flag, value)) = arg.split_once('=').filter(|_| arg.starts_with('-')) {
        let start = arg.len() - value.len();
        if has_secret_name(flag) && !value.is_empty() {
            return vec![part(flag.trim_start_matches('-'), value, start)];
        }
        return moved(in_word(value), start);
    }
    if arg.starts_with('-') { Vec::new() } else { in_word(arg) }
}

/// The secrets of a word: a URL, `NAME=value`, a header, or something that looks like a key.
fn in_word(word: &str) -> Vec<Part> {
    if let Some((name, value)) = assignment(word) {
        let start = word.len() - value.len();
        return match value.contains("://") {
            true => moved(in_url(value), start),
            false if is_secret(name, value) => {
                vec![Part { is_own_name: true, ..part(name, value, start) }]
            }
            false => Vec::new(),
        };
    }
    if word.contains("://") {
        return in_url(word);
    }
    match word.split_once(':') {
        Some((name, value)) if has_secret_name(name) && !value.trim().is_empty() => {
            let value = value.trim_start();
            vec![part(name, value, word.len() - value.len())]
        }
        _ if has_secret_shape(word) && !word.contains(['/', '@']) => vec![part("secret", word, 0)],
        _ => Vec::new(),
    }
}

/// The user info of a URL, and the secrets of its query.
fn in_url(url: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let Some(start) = url.find("://").map(|it| it + 3) else { return parts };
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |it| start + it);
    if let Some(at) = url[start..end].rfind('@').map(|it| start + it) {
        let colon = url[start..at].find(':').map(|it| start + it + 1);
        let range = colon.unwrap_or(start)..at;
        if !range.is_empty() {
            parts.push(Part { range, name: "password".to_owned(), is_own_name: false });
        }
    }
    let Some(query) = url[end..].find('?').map(|it| end + it + 1) else { return parts };
    let stop = url[query..].find('#').map_or(url.len(), |it| query + it);
    let mut at = query;
    for pair in url[query..stop].split('&') {
        if let Some((name, value)) = pair.split_once('=')
            && !value.is_empty()
            && (has_secret_name(name) || has_secret_shape(value))
        {
            parts.push(part(name, value, at + name.len() + 1));
        }
        at += pair.len() + 1;
    }
    parts
}

/// A secret value, without its scheme such as `Bearer`.
fn part(name: &str, value: &str, start: usize) -> Part {
    let scheme = ["Bearer ", "Basic ", "Token "].into_iter().find(|it| value.starts_with(it));
    let scheme = scheme.map_or(0, str::len);
    let range = start + scheme..start + value.len();
    Part { range, name: name.to_owned(), is_own_name: false }
}

fn moved(parts: Vec<Part>, by: usize) -> Vec<Part> {
    let by = |it: Part| Part { range: it.range.start + by..it.range.end + by, ..it };
    parts.into_iter().map(by).collect()
}

/// The variables that are set wherever a gateway runs.
const EVERYWHERE: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

#[cfg(test)]
mod tests {
    use super::super::mask::summary;
    use super::*;
    use crate::clients::fixtures::secret_args;

    fn entry(transport: ServerTransport) -> Entry {
        Entry {
            transport,
            is_disabled: false,
            expose: Vec::new(),
            start_seconds: None,
            call_seconds: None,
            notes: Vec::new(),
        }
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect()
    }

    fn stdio(args: &[&str], env: &[(&str, &str)]) -> Entry {
        entry(ServerTransport::Stdio {
            command: "npx".to_owned(),
            args: args.iter().map(|it| (*it).to_owned()).collect(),
            env: pairs(env),
            inherit: Vec::new(),
            cwd: None,
        })
    }

    fn http(url: &str, headers: &[(&str, &str)]) -> Entry {
        entry(ServerTransport::Http { url: url.to_owned(), is_sse: false, headers: pairs(headers) })
    }

    #[test]
    fn secrets_become_variables_and_two_secrets_two() {
        let mut secrets = Secrets::default();
        let first = stdio(&[], &[("API_KEY", "one"), ("DATA", "/x"), ("DB", "pg://a:b@h/d")]);
        let found = secrets.replace("a", &first);
        let values: Vec<_> = found.values().iter().map(|it| it.1.as_str()).collect();
        assert_eq!(values, ["${API_KEY}", "/x", "${DB}"]);
        assert_eq!(secrets.replace("a", &first), found);
        let second = secrets.replace("my-b", &stdio(&[], &[("API_KEY", "two")]));
        assert_eq!(second.values()[0].1, "${MY_B_API_KEY}");
        let header = http("https://a.example", &[("Authorization", "Bearer s3$$cret")]);
        assert_eq!(secrets.replace("c", &header).values()[0].1, "Bearer ${C_AUTHORIZATION}");
        let names: Vec<_> = secrets.values.keys().map(String::as_str).collect();
        assert_eq!(names, ["API_KEY", "C_AUTHORIZATION", "DB", "MY_B_API_KEY"]);
        assert_eq!(secrets.get("C_AUTHORIZATION"), Some("s3$cret"));
    }

    #[test]
    fn arguments_and_urls_keep_no_secret() {
        let args = secret_args(&[
            "--url=https://me:hunter2@a.example/x?team=5&key=hunter2#top",
            "sk-hunter2hunter2hunter2",
            "--header",
            "Authorization: Bearer hunter2",
        ]);
        let found = Secrets::default().replace("s", &stdio(&args, &[]));
        let ServerTransport::Stdio { args, .. } = &found.transport else {
            unreachable!("it is a program")
        };
        assert_eq!(
            args.join(" "),
            "-y @org/pkg@1.2.3 --api-key ${S_API_KEY} --token=${S_TOKEN} --port 80 \
             --url=https://me:${S_PASSWORD}@a.example/x?team=5&key=${S_KEY}#top ${S_SECRET} \
             --header Authorization: Bearer ${S_AUTHORIZATION} -e PIN_TOKEN=${PIN_TOKEN} \
             /users/a/some-long-folder-name-2026/x"
        );
        let shown = summary(&found).join("\n");
        assert!(shown.contains("--api-key ${S_API_KEY} --token=${S_TOKEN}"), "{shown}");
        let names = "S_API_KEY S_TOKEN S_PASSWORD S_KEY S_SECRET S_AUTHORIZATION PIN_TOKEN";
        assert_eq!(needed_variables(&found).join(" "), names);
        let url = http("https://hunter2@a.example/mcp?token=hunter2&x=1", &[]);
        let found = Secrets::default().replace("s", &url);
        let ServerTransport::Http { url, .. } = &found.transport else {
            unreachable!("it is a URL")
        };
        assert_eq!(url, "https://${S_PASSWORD}@a.example/mcp?token=${S_TOKEN}&x=1");
        assert!(!summary(&found).join("\n").contains("***"), "{:?}", summary(&found));
    }

    #[test]
    fn a_variable_of_another_server_stands_for_nothing_else() {
        let other = stdio(&[], &[("API_KEY", "${API_KEY}")]);
        let have = Have { servers: vec![("other".to_owned(), Some(other))], ..Have::default() };
        let new = stdio(&[], &[("API_KEY", "two")]);
        let mut secrets = Secrets::new(&have, BTreeMap::new());
        assert_eq!(secrets.replace("new", &new).values()[0].1, "${NEW_API_KEY}");
        let known = |value: &str| [("API_KEY".to_owned(), value.to_owned())].into();
        let mut secrets = Secrets::new(&have, known("two"));
        assert_eq!(secrets.replace("new", &new).values()[0].1, "${API_KEY}");
        let mut secrets = Secrets::new(&Have::default(), known("one"));
        assert_eq!(secrets.replace("new", &new).values()[0].1, "${NEW_API_KEY}");
    }

    #[test]
    fn what_was_written_is_known_again() {
        let found = [
            stdio(&["--api-key", "hunter2", "x"], &[("API_KEY", "hunter2"), ("TZ", "UTC")]),
            http("https://a.example/mcp?token=hunter2", &[("Authorization", "Bearer hunter2")]),
        ];
        for it in found {
            let written = Secrets::default().replace("s", &it);
            assert!(is_same_but_for_secrets(&written, &it), "{written:?}");
            assert!(!is_same_but_for_secrets(&it, &written), "a secret stands for no variable");
        }
        let one = stdio(&["--api-key", "hunter2"], &[]);
        let other = stdio(&["--api-key", "hunter3"], &[]);
        assert!(!is_same_but_for_secrets(&one, &other));
        let written = stdio(&["--api-key", "${K}", "more"], &[]);
        assert!(!is_same_but_for_secrets(&written, &one));
        let default = stdio(&["--api-key", "${K:-x}"], &[]);
        assert!(!is_same_but_for_secrets(&default, &one));
    }
}
