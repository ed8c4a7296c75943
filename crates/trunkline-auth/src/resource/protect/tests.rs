use super::*;
use crate::jose::Jwks;

const SECRET: &str = "0123456789abcdef";

fn base(resource: &str) -> Protect {
    Protect::new(resource).api_key("a", SECRET, ["read"])
}

#[test]
fn what_cannot_work_is_said() {
    let url = |it: &str| {
        format!(
            "`{it}` is not the URL of a resource; give the `https://` URL that clients use, without a user and without `#`."
        )
    };
    let key = "The API key `b` cannot be used; give it 16 or more random letters and digits.";
    let offline = "`offline_access` is not for a resource to ask for; leave it out, clients ask by themselves.";
    let encode =
        "The URL of the resource has a character that URLs cannot have; percent-encode it.";
    let no_scope = |it: &str| {
        format!(
            "`{it}` is not a scope; give scopes one by one, without spaces, quotes and backslashes."
        )
    };
    let good = || base("https://a.example/mcp");
    let jwt = || JwtIssuer::new("https://id.example");
    for (protect, expected) in [
        (good(), Ok(())),
        (base("https://a.example"), Ok(())),
        (base("http://127.0.0.1:8080/mcp"), Ok(())),
        (base("https://a.example/mcp?tenant=1"), Ok(())),
        (Protect::new("https://a.example").jwt(jwt()), Ok(())),
        (Protect::new("https://a.example").introspection(Introspection::new("https://u", "c", "s")), Ok(())),
        (base("a.example/mcp"), Err(url("a.example/mcp"))),
        (base("ftp://a.example/mcp"), Err(url("ftp://a.example/mcp"))),
        (base("https://"), Err(url("https://"))),
        (base(""), Err(url(""))),
        (base("https://u:p@a.example/mcp"), Err(url("https://a.example/mcp"))),
        (base("https://a.example/mcp#x"), Err(url("https://a.example/mcp"))),
        (base("https://a.example/m cp"), Err(encode.into())),
        (base("https://a.example/mcp\n"), Err(encode.into())),
        (base("https://a.example/é"), Err(encode.into())),
        (
            Protect::new("https://a.example/mcp").authorization_server("https://id.example"),
            Err("Nobody could get in at `https://a.example/mcp`; add an issuer with `jwt`, or `introspection`, or an `api_key`.".into()),
        ),
        (good().jwt(jwt()).jwt(JwtIssuer::new("https://id.example/")), Ok(())),
        (
            good().jwt(jwt()).jwt(JwtIssuer::new("https://b.example")).jwt(jwt()),
            Err("The issuer `https://id.example` is there twice; leave one.".into()),
        ),
        (
            good().jwt(jwt().algorithms([])),
            Err("No algorithm is allowed for the issuer `https://id.example`; name one, such as `ES256`.".into()),
        ),
        (good().api_key("b", "0123456789abcdeg", ["x"]), Ok(())),
        (good().api_key("b", SECRET, ["x"]), Err("The API keys `a` and `b` are the same; give each its own.".into())),
        (good().api_key("b", "0123456789abcde", ["x"]), Err(key.into())),
        (good().api_key("b", "0123456789 abcdef", ["x"]), Err(key.into())),
        (
            good().dpop(Dpop::Require),
            Err("The API key `a` cannot be bound to a key of the client; use `Dpop::Accept`, or leave it out.".into()),
        ),
        (good().dpop(Dpop::Accept), Ok(())),
        (good().scopes_required(["a b"]), Err(no_scope("a b"))),
        (good().scopes_supported([""]), Err(no_scope(""))),
        (good().api_key("b", "0123456789abcdeg", ["a", "b c"]), Err(no_scope("b c"))),
        (good().scopes_required(["a", "offline_access"]), Err(offline.into())),
        (good().scopes_supported(["offline_access"]), Err(offline.into())),
    ] {
        let shown = format!("{protect:?}");
        assert_eq!(protect.check(), expected.map_err(Misconfigured), "{shown}");
    }
}

#[test]
fn who_is_asked_is_asked_where_nobody_can_change_the_answer() {
    let why = |it: &str| {
        let why = format!(
            "What `{it}` says could be changed on the way; give an `https://` URL, or an `http://` one on this machine or a private network."
        );
        Err(Misconfigured(why))
    };
    let known = || {
        let key = crate::jose::SigningKey::generate();
        Jwks::new([key.public().clone()])
    };
    for (url, expected) in [
        ("https://id.example/a", Ok(())),
        ("http://127.0.0.1:9000/a", Ok(())),
        ("http://localhost/a", Ok(())),
        ("http://[::1]/a", Ok(())),
        ("http://10.0.0.1/a", Ok(())),
        ("http://keycloak:8080/a", Ok(())),
        ("http://id.corp.internal/a", Ok(())),
        ("http://id.example/a", why("http://id.example/a")),
        ("http://1.1.1.1/a", why("http://1.1.1.1/a")),
        ("http://169.254.169.254/a", why("http://169.254.169.254/a")),
        ("http://u:p@id.example/a", why("http://id.example/a")),
        ("ftp://127.0.0.1/a", why("ftp://127.0.0.1/a")),
        ("u", why("u")),
        ("", why("")),
    ] {
        let protect = || Protect::new("https://a.example/mcp");
        let issuer = JwtIssuer::new(url);
        assert_eq!(protect().jwt(issuer.clone()).check(), expected, "{url}");
        let keys = JwtIssuer::new("https://id.example").jwks_url(url);
        assert_eq!(protect().jwt(keys).check(), expected, "{url}");
        let asking = Introspection::new(url, "mcp", "hush");
        assert_eq!(protect().introspection(asking).check(), expected, "{url}");
        // Where nothing is fetched, clients are still sent.
        let is_in_the_clear = url.starts_with("http://");
        let sent = if is_in_the_clear { expected } else { Ok(()) };
        assert_eq!(protect().jwt(issuer.jwks(known())).check(), sent, "{url}");
        assert_eq!(base("https://a.example").authorization_server(url).check(), sent, "{url}");
    }
}

#[test]
fn the_document_says_what_was_said() {
    let written = |it: Protect| serde_json::to_string(&it.document()).unwrap();
    assert_eq!(
        written(base("https://a.example/mcp")),
        r#"{"resource":"https://a.example/mcp","bearer_methods_supported":["header"]}"#
    );
    let all = base("https://a.example/mcp")
        .authorization_server("https://b.example")
        .jwt(JwtIssuer::new("https://id.example"))
        .jwt(JwtIssuer::new("https://b.example"))
        .scopes_required(["mcp"])
        .name("Files")
        .documentation("https://a.example/docs");
    assert_eq!(
        written(all.clone()),
        r#"{"resource":"https://a.example/mcp","authorization_servers":["https://b.example","https://id.example"],"scopes_supported":["mcp"],"bearer_methods_supported":["header"],"resource_name":"Files","resource_documentation":"https://a.example/docs"}"#
    );
    let all = all.scopes_supported(["mcp", "files"]);
    assert_eq!(all.document().scopes_supported, ["mcp", "files"]);
    for (dpop, algorithms, required) in
        [(Dpop::Off, 0, false), (Dpop::Accept, 9, false), (Dpop::Require, 9, true)]
    {
        let document = all.clone().dpop(dpop).document();
        assert_eq!(document.dpop_signing_alg_values_supported.len(), algorithms, "{dpop:?}");
        assert_eq!(document.dpop_bound_access_tokens_required, required, "{dpop:?}");
    }
}

#[test]
fn secrets_are_never_shown() {
    let protect =
        base("https://a.example").introspection(Introspection::new("u", "client", "hush"));
    let shown = format!("{protect:?}");
    assert!(!shown.contains(SECRET) && !shown.contains("hush"), "{shown}");
    assert!(
        shown.contains("a (read)") && shown.contains("Introspection at u as client"),
        "{shown}"
    );
}
