//! Words of a command line: quoted for a shell, and parsed.

use trunkline_auth::url::shown;

/// A word quoted for a shell.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || "-_=+:,./@%".contains(it);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A URL quoted for a shell; a placeholder if it cannot be shown.
pub(crate) fn as_word(url: &str) -> String {
    if shown(url) == url { word(url) } else { "URL".to_owned() }
}

pub(crate) fn is_url(word: &str) -> bool {
    let begins =
        |scheme: &str| word.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
}

/// A server's URL.
pub(crate) fn url(text: &str) -> Result<String, String> {
    match is_url(text) {
        true => Ok(text.to_owned()),
        false => Err("give a URL that begins with http:// or https://".to_owned()),
    }
}

/// `KEY=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_in_a_url_is_not_shown() {
        for (url, expected) in [
            ("https://mcp.example/mcp?api_key=s3cret", "https://mcp.example/mcp"),
            ("https://me:s3cret@mcp.example/a@b", "https://mcp.example/a@b"),
            ("https://me:s3@cret@mcp.example#x", "https://mcp.example"),
            ("https://mcp.example?access_token=s3cret", "https://mcp.example"),
        ] {
            assert_eq!((&*shown(url), &*as_word(url)), (expected, "URL"));
        }
        let plain = "https://mcp.example/mcp";
        assert_eq!((&*shown(plain), &*as_word(plain)), (plain, plain));
    }
}
