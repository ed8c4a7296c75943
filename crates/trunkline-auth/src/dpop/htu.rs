//! The URL of a request → its `htu`, and whether two URLs are the same target.

/// Without query and fragment.
pub(super) fn bare(url: &str) -> &str {
    url.split_once(['?', '#']).map_or(url, |(start, _)| start)
}

/// Whether two URLs name the same target, ignoring query and fragment: after the normalizations of
/// RFC 3986 §6.2.2 and §6.2.3 that RFC 9449 asks for.
pub(super) fn same_target(one: &str, other: &str) -> bool {
    normal(one).is_some_and(|it| normal(other) == Some(it))
}

fn normal(url: &str) -> Option<String> {
    let (scheme, rest) = bare(url).split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = authority.to_ascii_lowercase();
    let usual = match &*scheme {
        "https" => ":443",
        "http" => ":80",
        _ => return None,
    };
    let authority = authority.strip_suffix(usual).unwrap_or(&authority);
    let path = if path.is_empty() { "/" } else { path };
    Some(format!("{scheme}://{authority}{}", unescaped(path)))
}

/// Unreserved characters decoded, other percent-encodings in upper case.
fn unescaped(path: &str) -> String {
    let mut parts = path.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let escape = part.split_at_checked(2);
        let byte = escape.and_then(|(hex, rest)| {
            let is_hex = hex.bytes().all(|it| it.is_ascii_hexdigit());
            is_hex.then(|| u8::from_str_radix(hex, 16).ok().map(|byte| (byte, rest)))?
        });
        match byte {
            Some((byte, rest)) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(char::from(byte));
                out.push_str(rest);
            }
            Some((byte, rest)) => out.push_str(&format!("%{byte:02X}{rest}")),
            None => {
                out.push('%');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_and_fragment_are_left_out() {
        for (url, expected) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://a.example/mcp?b#c", "https://a.example/mcp"),
            ("https://a.example/mcp#b?c", "https://a.example/mcp"),
            ("https://a.example?b", "https://a.example"),
            ("", ""),
        ] {
            assert_eq!(bare(url), expected);
        }
    }

    #[test]
    fn targets_are_compared_as_the_rfc_says() {
        let same = [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://a.example/mcp?b", "https://a.example/mcp#c"),
            ("HTTPS://A.example/mcp", "https://a.EXAMPLE/mcp"),
            ("https://a.example:443/mcp", "https://a.example/mcp"),
            ("http://a.example:80/mcp", "http://a.example/mcp"),
            ("https://a.example", "https://a.example/"),
            ("https://a.example?b", "https://a.example/"),
            ("https://a.example/%6dcp%2D%2e%5f%7e%30", "https://a.example/mcp-._~0"),
            ("https://a.example/%c3%a9", "https://a.example/%C3%A9"),
            ("https://a.example/%2f", "https://a.example/%2F"),
            ("https://a.example/%+1%é%4", "https://a.example/%+1%é%4"),
        ];
        let different = [
            ("https://a.example/mcp", "https://a.example/MCP"),
            ("https://a.example/mcp", "https://a.example/mcp/"),
            ("https://a.example/mcp", "http://a.example/mcp"),
            ("https://a.example/mcp", "https://b.example/mcp"),
            ("https://a.example:80/mcp", "https://a.example/mcp"),
            ("http://a.example:443/mcp", "http://a.example/mcp"),
            ("https://a.example:8443/mcp", "https://a.example/mcp"),
            ("https://u@a.example/mcp", "https://a.example/mcp"),
            ("https://a.example/%2f", "https://a.example//"),
            ("https://a.example/%00", "https://a.example/"),
            ("https://a.example/%6", "https://a.example/%06"),
            ("https://a.example/%+1", "https://a.example/%01"),
            ("ftp://a.example/", "ftp://a.example/"),
            ("a.example/mcp", "a.example/mcp"),
            ("", ""),
        ];
        for (pairs, expected) in [(&same[..], true), (&different[..], false)] {
            for (one, other) in pairs {
                assert_eq!(same_target(one, other), expected, "{one} {other}");
                assert_eq!(same_target(other, one), expected, "{other} {one}");
            }
        }
    }
}
