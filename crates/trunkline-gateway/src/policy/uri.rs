//! A URI as somebody wrote it → the one that a server may take it for.

/// What a server that decodes, lowers and shortens a URI makes of it; `None` if that is the same. Only
/// rules go by it: it may stand for more than one URI, and the stricter rule wins.
pub(crate) fn plain(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    let rest = decoded(rest);
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
        None if scheme == "file" => ("", rest.as_str()),
        None => return Some(format!("{scheme}:{rest}")).filter(|it| it != uri),
    };
    let authority = authority.to_lowercase();
    let authority = if scheme == "file" && authority == "localhost" { "" } else { &authority };
    let (path, query) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|it| !it.is_empty() && *it != ".") {
        match part {
            ".." => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    let begin = if path.is_empty() { "" } else { "/" };
    let end = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    let plain = format!("{scheme}://{authority}{begin}{}{end}{query}", kept.join("/"));
    Some(plain).filter(|it| it != uri)
}

/// Without escapes. What is no text then stays out of it.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|it| char::from(*it).to_digit(16));
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_spelling_is_seen_through() {
        for (spelt, meant) in [
            ("FILE:///etc/passwd", "file:///etc/passwd"),
            ("file:///%65tc/passwd", "file:///etc/passwd"),
            ("file:///etc%2Fpasswd", "file:///etc/passwd"),
            ("file:///tmp/../etc/passwd", "file:///etc/passwd"),
            ("file:///../../etc/./passwd", "file:///etc/passwd"),
            ("file://localhost/etc/passwd", "file:///etc/passwd"),
            ("file:/etc/passwd", "file:///etc/passwd"),
            ("file:////etc//passwd", "file:///etc/passwd"),
            ("https://Example.ORG/a?b=%63", "https://example.org/a?b=c"),
            ("X-note:%61", "x-note:a"),
        ] {
            assert_eq!(plain(spelt).as_deref(), Some(meant), "{spelt}");
        }
        for same in
            ["file:///etc/passwd", "note://a", "note://a/", "a://b/c/", "x:y", "x:%", "no scheme"]
        {
            assert_eq!(plain(same), None, "{same}");
        }
    }
}
