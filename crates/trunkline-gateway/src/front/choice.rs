//! Turns the path and headers of a request into the canonical choice of servers. Pure.

use std::borrow::Cow;
use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, StatusCode};
use trunkline_proto::http::Refusal;

use crate::selector::Selector;

/// What a path chooses.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// The path of its endpoint.
    pub(super) base: &'a str,
    named: Option<Named<'a>>,
    /// Whether MCP clients connect here.
    pub(super) is_mcp: bool,
}

/// Servers as a client names them.
#[derive(Clone, Copy, Debug)]
enum Named<'a> {
    Server(&'a str),
    Tags(&'a str),
}

/// What a request chose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Choice {
    pub(super) selector: Selector,
    /// Whether the path chose, and not a header.
    pub(super) by_path: bool,
}

impl Choice {
    pub(super) const ALL: Self = Self { selector: Selector::All, by_path: false };

    /// The path of the endpoint. All spellings of a choice share one.
    pub(super) fn path(&self) -> Cow<'static, str> {
        match &self.selector {
            _ if !self.by_path => ALL.into(),
            Selector::All => ALL.into(),
            Selector::Server(name) => format!("/mcp/server/{name}").into(),
            Selector::Tags(tags) => format!("/mcp/tags/{}", tags.join(",")).into(),
            // No tag can be called so: lists are split at commas.
            Selector::Untagged => "/mcp/tags/,".into(),
        }
    }
}

impl<'a> Place<'a> {
    pub(super) fn of(path: &'a str) -> Self {
        // Nearly every request.
        if path == ALL {
            return Self { base: ALL, named: None, is_mcp: true };
        }
        let base = path.strip_suffix("/sse").or_else(|| path.strip_suffix("/messages"));
        let base = base.filter(|it| it.starts_with("/mcp/")).unwrap_or(path);
        let name = |prefix: &str| {
            let name = base.strip_prefix(prefix)?;
            (!name.is_empty() && !name.contains('/')).then_some(name)
        };
        let named = name("/mcp/server/").map(Named::Server);
        let named = named.or_else(|| name("/mcp/tags/").map(Named::Tags));
        if named.is_some() {
            return Self { base, named, is_mcp: true };
        }
        // Everything else goes to the endpoint of all servers, which answers 404 to unknown paths.
        Self { base: ALL, named: None, is_mcp: matches!(path, ALL | "/sse" | "/messages") }
    }

    /// Whether neither path nor headers choose: nearly every request.
    pub(super) fn is_of_all(&self, headers: &HeaderMap) -> bool {
        // Comparing a few names is quicker than hashing two.
        self.named.is_none() && !headers.keys().any(|it| HEADERS.contains(it))
    }

    /// What path and headers choose together, among servers with these tags.
    pub(super) fn choice(
        &self,
        headers: &HeaderMap,
        tags: &BTreeSet<String>,
    ) -> Result<Choice, Refusal> {
        let [server, of_tags] = HEADERS.each_ref().map(|it| text(headers, it));
        let by_header = match (server?, of_tags?) {
            (None, None) => None,
            (Some(server), None) => Some(Named::Server(server)),
            (None, Some(tags)) => Some(Named::Tags(tags)),
            (Some(_), Some(_)) => {
                return Err(bad("`X-Mcp-Server` and `X-Mcp-Tags` exclude each other."));
            }
        };
        let lengths = [(self.named, StatusCode::URI_TOO_LONG), (by_header, TOO_LARGE)];
        for (named, status) in lengths {
            if named.is_some_and(|it| it.text().len() > LONGEST) {
                let why = format!("A choice of servers may have at most {LONGEST} bytes.");
                return Err(Refusal::new(status, why));
            }
        }
        let by_path = self.named.map(|it| it.selector(tags));
        match (by_path, by_header.map(|it| it.selector(tags))) {
            (Some(path), Some(header)) if path != header => {
                Err(bad("The path and the header choose different servers."))
            }
            (Some(selector), _) => Ok(Choice { selector, by_path: true }),
            (None, Some(selector)) => Ok(Choice { selector, by_path: false }),
            (None, None) => Ok(Choice::ALL),
        }
    }
}

impl<'a> Named<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Server(text) | Self::Tags(text) => text,
        }
    }

    /// Unknown tags select nothing, so they are dropped.
    fn selector(self, known: &BTreeSet<String>) -> Selector {
        let Self::Tags(text) = self else { return Selector::Server(self.text().to_owned()) };
        let wanted = text.split(',').map(|it| it.trim().to_lowercase());
        let wanted: BTreeSet<_> = wanted.filter(|it| known.contains(it)).collect();
        match wanted.is_empty() {
            true => Selector::Untagged,
            false => Selector::Tags(wanted.into_iter().collect()),
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            // An empty header chooses nothing.
            Ok(value) => Ok(Some(value.trim()).filter(|it| !it.is_empty())),
            Err(_) => Err(bad(&format!("The header `{name}` cannot be read."))),
        },
        (Some(_), Some(_)) => Err(bad(&format!("The header `{name}` is there twice."))),
    }
}

fn bad(why: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, why)
}

/// The path of all servers together.
pub(super) const ALL: &str = "/mcp";
static HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-mcp-server"), HeaderName::from_static("x-mcp-tags")];
const TOO_LARGE: StatusCode = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
/// The bytes that a choice may have.
const LONGEST: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (&'static str, &'static [(&'static str, &'static str)], Chosen);
    type Chosen = Result<(Selector, &'static str), u16>;

    fn choose(path: &str, headers: &[(&'static str, &str)]) -> Result<(Selector, String), u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let known = ["a", "b"].map(str::to_owned).into();
        let choice = Place::of(path).choice(&map, &known).map_err(|it| it.status.as_u16())?;
        let path = choice.path().into_owned();
        Ok((choice.selector, path))
    }

    #[test]
    fn servers_are_chosen_by_path_or_header_and_not_by_both() {
        let server = |name: &str| Selector::Server(name.to_owned());
        let tags = |tags: &[&str]| Selector::Tags(tags.iter().map(|&it| it.to_owned()).collect());
        let table: &[Row] = &[
            ("/mcp", &[], Ok((Selector::All, "/mcp"))),
            ("/sse", &[], Ok((Selector::All, "/mcp"))),
            ("/mcp/server/time", &[], Ok((server("time"), "/mcp/server/time"))),
            ("/mcp/server/time/sse", &[], Ok((server("time"), "/mcp/server/time"))),
            ("/mcp/tags/B,a,,b", &[], Ok((tags(&["a", "b"]), "/mcp/tags/a,b"))),
            ("/mcp/tags/b,x,y", &[], Ok((tags(&["b"]), "/mcp/tags/b"))),
            ("/mcp/tags/x", &[], Ok((Selector::Untagged, "/mcp/tags/,"))),
            ("/mcp/tags/y,z/sse", &[], Ok((Selector::Untagged, "/mcp/tags/,"))),
            ("/mcp/tags/,", &[], Ok((Selector::Untagged, "/mcp/tags/,"))),
            ("/mcp", &[("x-mcp-server", "time")], Ok((server("time"), "/mcp"))),
            ("/mcp", &[("x-mcp-tags", "b, A")], Ok((tags(&["a", "b"]), "/mcp"))),
            ("/mcp", &[("x-mcp-tags", " ")], Ok((Selector::All, "/mcp"))),
            ("/mcp", &[("x-mcp-tags", "x")], Ok((Selector::Untagged, "/mcp"))),
            (
                "/mcp/server/time",
                &[("x-mcp-server", "time")],
                Ok((server("time"), "/mcp/server/time")),
            ),
            ("/mcp/tags/a", &[("x-mcp-tags", "x,a")], Ok((tags(&["a"]), "/mcp/tags/a"))),
            ("/mcp/server/time", &[("x-mcp-server", "git")], Err(400)),
            ("/mcp/server/time", &[("x-mcp-tags", "a")], Err(400)),
            ("/mcp", &[("x-mcp-server", "time"), ("x-mcp-tags", "a")], Err(400)),
            ("/mcp", &[("x-mcp-server", "a"), ("x-mcp-server", "b")], Err(400)),
        ];
        for (path, headers, expected) in table {
            let expected = expected.clone().map(|(it, base)| (it, base.to_owned()));
            assert_eq!(choose(path, headers), expected, "{path} {headers:?}");
        }
    }

    #[test]
    fn a_choice_has_a_greatest_length() {
        let long = "a,".repeat(LONGEST / 2);
        assert!(choose(&format!("/mcp/tags/{long}"), &[]).is_ok());
        assert!(choose("/mcp", &[("x-mcp-tags", &long)]).is_ok());
        assert_eq!(choose(&format!("/mcp/tags/{long}a"), &[]), Err(414));
        assert_eq!(choose(&format!("/mcp/server/{long}a"), &[]), Err(414));
        assert_eq!(choose("/mcp", &[("x-mcp-tags", &format!("{long}a"))]), Err(431));
    }
}
