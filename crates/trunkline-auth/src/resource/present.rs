//! The head of a request → the one token it presents, or why what it presents is refused.

/// What of a request's head a gate looks at.
#[derive(Clone)]
pub struct HeadView<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) own: Option<&'a str>,
    query: Option<&'a str>,
    authorization: Vec<&'a [u8]>,
    dpop: Vec<&'a [u8]>,
}

impl<'a> HeadView<'a> {
    /// A view of this head. Names of headers are in any case, and a name may come again.
    pub fn new(
        method: &'a str,
        path: &'a str,
        query: Option<&'a str>,
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let (authorization, dpop) = (Vec::new(), Vec::new());
        let mut head = Self { method, path, own: None, query, authorization, dpop };
        for (name, value) in headers {
            if name.eq_ignore_ascii_case("authorization") {
                head.authorization.push(value);
            } else if name.eq_ignore_ascii_case("dpop") {
                head.dpop.push(value);
            }
        }
        head
    }

    /// Says at which path the resource is served here. A proxy in front may show it to clients at
    /// another, and their proofs of possession name that one.
    #[must_use]
    pub fn served_at(mut self, path: &'a str) -> Self {
        self.own = Some(path);
        self
    }
}

impl std::fmt::Debug for HeadView<'_> {
    /// Without query and headers, which may hold tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// How a token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Bearer,
    Dpop,
}

/// The token and how it is presented; none if there is no token of a kind that we know.
pub(crate) fn token<'a>(head: &HeadView<'a>) -> Result<Option<(Scheme, &'a str)>, &'static str> {
    // Also beside a good header: it is in a log of somebody's by now.
    if head.query.is_some_and(has_token) {
        return Err("A token in the query is refused; send it in the `Authorization` header.");
    }
    let value = match &*head.authorization {
        [] => return Ok(None),
        [one] => one,
        _ => return Err("More than one `Authorization` header is refused; send one."),
    };
    if value.len() > LONGEST {
        return Err("The `Authorization` header is too long.");
    }
    const MALFORMED: &str =
        "The `Authorization` header is malformed; send the scheme, a space and one token.";
    let value = std::str::from_utf8(value).map_err(|_| MALFORMED)?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let scheme = if scheme.eq_ignore_ascii_case("bearer") {
        Scheme::Bearer
    } else if scheme.eq_ignore_ascii_case("dpop") {
        Scheme::Dpop
    } else {
        return Ok(None);
    };
    let token = token.trim_matches(' ');
    if is_token(token) { Ok(Some((scheme, token))) } else { Err(MALFORMED) }
}

/// The one proof that comes with a token.
pub(crate) fn proof<'a>(head: &HeadView<'a>) -> Result<&'a str, &'static str> {
    match &*head.dpop {
        [] => Err("The `DPoP` header with the proof is missing."),
        [one] if one.len() > LONGEST => Err("The `DPoP` header is too long."),
        [one] => std::str::from_utf8(one).map_err(|_| "The `DPoP` header is malformed."),
        _ => Err("More than one `DPoP` header is refused; send one."),
    }
}

/// Whether this can be sent as a token. More than the grammar of RFC 6750 allows, since it is seen
/// in the field, but nothing that could be two.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_graphic() && it != b',' && it != b'"')
}

fn has_token(query: &str) -> bool {
    query.split('&').any(|field| {
        let name = field.split('=').next().unwrap_or_default();
        decoded(name).eq_ignore_ascii_case(b"access_token")
    })
}

/// Without percent-encoding: `access%5Ftoken` is one too.
fn decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => {
                let digit = |it: u8| char::from(it).to_digit(16);
                digit(*high)
                    .zip(digit(*low))
                    .and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
            }
            _ => None,
        };
        out.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &rest[3..] } else { more };
    }
    out
}

const LONGEST: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &str = "A token in the query is refused; send it in the `Authorization` header.";
    const TWICE: &str = "More than one `Authorization` header is refused; send one.";
    const MALFORMED: &str =
        "The `Authorization` header is malformed; send the scheme, a space and one token.";

    fn check(
        query: Option<&str>,
        headers: &[(&str, &str)],
        expected: Result<Option<(Scheme, &str)>, &str>,
    ) {
        let sent = headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        let head = HeadView::new("POST", "/mcp", query, sent);
        assert_eq!(token(&head), expected, "{query:?} {headers:?}");
    }

    #[test]
    fn a_token_is_found_in_the_header_alone() {
        for (value, expected) in [
            ("Bearer abc", Ok(Some((Scheme::Bearer, "abc")))),
            ("bEARER abc", Ok(Some((Scheme::Bearer, "abc")))),
            ("DPoP abc", Ok(Some((Scheme::Dpop, "abc")))),
            ("dpop   abc ", Ok(Some((Scheme::Dpop, "abc")))),
            ("Bearer aZ0-._~+/==!", Ok(Some((Scheme::Bearer, "aZ0-._~+/==!")))),
            ("Basic YTpi", Ok(None)),
            ("Basic a b c", Ok(None)),
            ("Bearers abc", Ok(None)),
            ("", Ok(None)),
            ("abc", Ok(None)),
            ("Bearer", Err(MALFORMED)),
            ("Bearer ", Err(MALFORMED)),
            ("Bearer a b", Err(MALFORMED)),
            ("Bearer a,Bearer", Err(MALFORMED)),
            ("Bearer a, Bearer b", Err(MALFORMED)),
            ("Bearer \"a\"", Err(MALFORMED)),
            ("Bearer \ta", Err(MALFORMED)),
            ("Bearer é", Err(MALFORMED)),
        ] {
            check(None, &[("Authorization", value)], expected);
        }
        check(None, &[], Ok(None));
        check(None, &[("x-authorization", "Bearer a"), ("dpop", "Bearer a")], Ok(None));
        check(None, &[("authorization", "Bearer a"), ("Authorization", "Bearer a")], Err(TWICE));
        check(None, &[("authorization", "Basic a"), ("authorization", "Bearer a")], Err(TWICE));
    }

    #[test]
    fn a_token_in_the_query_is_refused_also_beside_a_header() {
        let header = &[("authorization", "Bearer a")][..];
        let found = Ok(Some((Scheme::Bearer, "a")));
        for query in ["", "a=b&c", "access_tokens=a", "x=access_token", "%61ccess%5token=a", "%"] {
            check(Some(query), header, found);
        }
        for query in [
            "access_token=a",
            "access_token",
            "a=b&access_token=c",
            "access%5Ftoken=a",
            "%61%63%63ess%5ftoken=",
            "Access_Token=a",
        ] {
            check(Some(query), header, Err(QUERY));
            check(Some(query), &[], Err(QUERY));
        }
    }

    #[test]
    fn sizes_are_bounded_and_bytes_must_be_text() {
        let sent = |value: &[u8]| {
            let head = HeadView::new("POST", "/", None, [("authorization", value)]);
            token(&head).map(|it| it.map(|(_, token)| token.len()))
        };
        let longest = "Bearer ".to_owned() + &"a".repeat(LONGEST - 7);
        assert_eq!(sent(longest.as_bytes()), Ok(Some(LONGEST - 7)));
        assert_eq!(
            sent((longest + "a").as_bytes()),
            Err("The `Authorization` header is too long.")
        );
        assert_eq!(sent(b"Bearer \xff"), Err(MALFORMED));
        assert_eq!(LONGEST, 16_384);
    }

    #[test]
    fn a_head_is_shown_without_what_may_hold_a_token() {
        let head = HeadView::new("GET", "/mcp", Some("q"), [("authorization", &b"Bearer abc"[..])]);
        assert_eq!(format!("{head:?}"), "GET /mcp");
    }

    #[test]
    fn there_is_one_proof() {
        let sent = |values: &[&[u8]]| {
            let head = HeadView::new("POST", "/", None, values.iter().map(|it| ("DPoP", *it)));
            proof(&head).map(str::len)
        };
        let longest = vec![b'a'; LONGEST + 1];
        assert_eq!(sent(&[b"abc"]), Ok(3));
        assert_eq!(sent(&[&longest[1..]]), Ok(LONGEST));
        assert_eq!(sent(&[&longest]), Err("The `DPoP` header is too long."));
        assert_eq!(sent(&[b"\xff"]), Err("The `DPoP` header is malformed."));
        assert_eq!(sent(&[]), Err("The `DPoP` header with the proof is missing."));
        assert_eq!(sent(&[b"a", b"a"]), Err("More than one `DPoP` header is refused; send one."));
    }
}
