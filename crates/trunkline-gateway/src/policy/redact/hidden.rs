//! Finds likely secrets in arguments and URLs. Most parts are none, and without them logs would say little.

/// Likely secrets in a program's arguments: the value of a telling name, and whatever looks machine-made.
pub(super) fn in_args(args: &[String]) -> impl Iterator<Item = &str> {
    args.iter().enumerate().filter_map(|(at, arg)| {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, value),
            None => (if at == 0 { "" } else { args[at - 1].as_str() }, arg.as_str()),
        };
        let is_option = arg.starts_with('-') && !arg.contains('=');
        let is_named = !is_option && names_a_secret(name);
        (is_named || looks_machine_made(value)).then_some(value)
    })
}

/// Likely secrets in a URL: the user info, the values of its query, and segments that look machine-made.
pub(super) fn in_url(url: &str) -> impl Iterator<Item = &str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let user = user.into_iter().flat_map(|it| it.split(':').chain([it]));
    let values = query.split('#').next().unwrap_or_default().split('&');
    let values = values.filter_map(|it| it.split_once('=')).map(|(_, value)| value);
    user.chain(values).chain(path.split('/').filter(|it| looks_machine_made(it)))
}

/// Whether a variable holds a path, which occurs in every other log line.
pub(super) fn is_place(variable: &str) -> bool {
    PLACES.contains(&variable) || variable.starts_with("LC_") || variable.starts_with("XDG_")
}

/// Whether a name says that its value is a secret.
fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with('-') && TELLING.iter().any(|it| name.contains(it))
}

/// Whether a text looks machine-made: long, of letters and digits, without words in it.
fn looks_machine_made(text: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || "-_.~+".contains(it);
    text.len() >= MADE_UP
        && text.chars().all(is_part)
        && text.chars().any(|it| it.is_ascii_digit())
        && text.chars().any(|it| it.is_ascii_alphabetic())
}

const TELLING: [&str; 7] = ["token", "key", "secret", "pass", "auth", "cred", "dsn"];
const PLACES: [&str; 11] =
    ["HOME", "PATH", "LANG", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "PWD", "TZ", "DISPLAY"];
const MADE_UP: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_secrets_are_found_and_little_else() {
        let args = ["-y", "server@1.2.3", "--api-key", "hunter2!", "--token=abc def", "--root"];
        let more = ["/srv/ann/projects/a1", "sk-proj-4f9aa02b71cc04d2e8"];
        let args: Vec<_> = args.iter().chain(&more).map(|it| (*it).to_owned()).collect();
        let found: Vec<_> = in_args(&args).collect();
        assert_eq!(found, ["hunter2!", "abc def", "sk-proj-4f9aa02b71cc04d2e8"]);
        let url = "https://ann:s3cret@mcp.example/v1/9f2c4e6a8b0d1f3a5c7e/sse?key=hunter2!&x=1#y";
        let found: Vec<_> = in_url(url).collect();
        assert_eq!(found, ["ann", "s3cret", "ann:s3cret", "hunter2!", "1", "9f2c4e6a8b0d1f3a5c7e"]);
        assert_eq!(in_url("http://localhost:7000/mcp").count(), 0);
    }
}
