//! The path of a request here → its URL as the client sees it, which a proxy in front may have
//! rewritten.

use crate::metadata;

/// The URL that a client used for the request at `path`, if the resource is served at `own`, as far
/// as that is known.
pub(crate) fn seen_by_client(resource: &str, own: Option<&str>, path: &str) -> String {
    let (origin, public) = metadata::split(resource).unwrap_or_default();
    let public = public.split('?').next().unwrap_or_default();
    let Some(own) = own.filter(|own| !is_within(own, public)) else {
        return format!("{origin}{path}");
    };
    // The proxy strips a prefix.
    if let Some(front) = public.strip_suffix(own) {
        return format!("{origin}{front}{path}");
    }
    if path == own {
        return format!("{origin}{public}");
    }
    // A sibling of the resource here is a sibling of it there.
    let last = |path: &str| path.rfind('/').unwrap_or(0);
    format!("{origin}{}{}", &public[..last(public)], &path[last(path)..])
}

/// Whether `path` is that of the resource, or below it: then no proxy has rewritten it.
fn is_within(path: &str, resource: &str) -> bool {
    path.strip_prefix(resource)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || resource.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::seen_by_client;

    #[test]
    fn a_proxy_may_give_paths_other_names() {
        for (resource, own, path, expected) in [
            // The own path is unknown: the path is unchanged.
            ("https://a.example/mcp", None, "/mcp", "https://a.example/mcp"),
            ("https://a.example/x", None, "/mcp", "https://a.example/mcp"),
            // No proxy, or one that changes nothing.
            ("https://a.example/mcp", Some("/mcp"), "/mcp", "https://a.example/mcp"),
            ("https://a.example/mcp", Some("/mcp"), "/old/sse", "https://a.example/old/sse"),
            ("https://a.example/mcp?t=1", Some("/mcp"), "/mcp", "https://a.example/mcp"),
            // The resource is the whole origin.
            ("https://a.example", Some("/mcp"), "/mcp", "https://a.example/mcp"),
            ("https://a.example/", Some("/mcp"), "/sse", "https://a.example/sse"),
            ("https://a.example/x", Some("/x/mcp"), "/x/mcp", "https://a.example/x/mcp"),
            ("https://a.example/x/", Some("/x/mcp"), "/x/mcp", "https://a.example/x/mcp"),
            // A proxy that strips a prefix.
            ("https://a.example/api/mcp", Some("/mcp"), "/mcp", "https://a.example/api/mcp"),
            ("https://a.example/api/mcp?t=1", Some("/mcp"), "/sse", "https://a.example/api/sse"),
            (
                "https://a.example/api/mcp",
                Some("/mcp"),
                "/old/sse",
                "https://a.example/api/old/sse",
            ),
            ("https://a.example/api/", Some("/"), "/", "https://a.example/api/"),
            ("https://a.example/api/", Some("/"), "/sse", "https://a.example/api/sse"),
            // A proxy that rewrites the path.
            ("https://a.example/files", Some("/mcp"), "/mcp", "https://a.example/files"),
            ("https://a.example/files", Some("/mcp"), "/sse", "https://a.example/sse"),
            ("https://a.example/x/files", Some("/mcp"), "/mcp", "https://a.example/x/files"),
            ("https://a.example/x/files", Some("/mcp"), "/y/sse", "https://a.example/x/sse"),
            ("https://a.example/x", Some("/xy"), "/xy", "https://a.example/x"),
            ("https://a.example/x", Some("/"), "/", "https://a.example/x"),
        ] {
            assert_eq!(seen_by_client(resource, own, path), expected, "{resource} {own:?} {path}");
        }
    }
}
