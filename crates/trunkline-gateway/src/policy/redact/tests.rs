use super::*;

fn looks(text: &str) -> String {
    Redactor::default().redact(text).into_owned()
}

#[test]
fn known_secrets_are_masked_everywhere() {
    let redactor = Redactor::new(["hunter2", "Bearer abc-def-1", "short", "a b\"c\\d!"]);
    for (text, expected) in [
        ("login with hunter2 failed", "login with *** failed"),
        ("xhunter2x hunter2", "x***x ***"),
        ("key abc-def-1?", "key ***?"),
        ("it was short", "it was short"),
        ("got a b\"c\\d!", "got ***"),
        (r#"got "a b\"c\\d!""#, r#"got "***""#),
        ("GET /?q=a%20b%22c%5Cd%21", "GET /?q=***"),
        ("nothing here", "nothing here"),
    ] {
        assert_eq!(redactor.redact(text), expected);
    }
    assert!(matches!(redactor.redact("nothing here"), Cow::Borrowed(_)));
}

#[test]
fn a_secret_of_several_lines_is_known_line_by_line() {
    let redactor = Redactor::new(["first line\nsecond line\n"]);
    assert_eq!(redactor.redact("read: second line"), "read: ***");
}

#[test]
fn overlapping_secrets_leave_nothing_between_them() {
    let redactor = Redactor::new(["abcdef", "defghi", "abcdefghijkl"]);
    assert_eq!(redactor.redact("<abcdefghi>"), "<***>");
    assert_eq!(redactor.redact("<abcdefghijkl>"), "<***>");
}

#[test]
fn the_secrets_of_a_plan_are_known() {
    use crate::catalog::plan::{AdminPlan, GatewayPlan, Inward, TokenPlan};
    let mut plan = Plan { gateway: gateway(), ..Plan::default() };
    plan.gateway = GatewayPlan {
        auth: Inward {
            tokens: vec![TokenPlan {
                name: "alice".into(),
                token: "opensesame".into(),
                tags: vec![],
            }],
            ..Inward::default()
        },
        admin: AdminPlan { token: Some("xyzzy-plugh".into()), ..AdminPlan::default() },
        ..plan.gateway
    };
    let redactor = Redactor::of(&plan);
    assert_eq!(redactor.redact("opensesame, alice, xyzzy-plugh"), "***, alice, ***");
    assert_eq!(format!("{redactor:?}"), "Redactor(2 secrets)", "none is shown");
}

#[test]
fn inherited_variables_arguments_and_urls_are_known() {
    use crate::catalog::plan::ServerPlan;
    use std::sync::Arc;
    let mut program = ServerPlan::stdio("a", "run");
    if let Reach::Stdio { inherit, args, .. } = &mut program.reach {
        *inherit = vec!["DATABASE".to_owned(), "HOME".to_owned()];
        *args = vec!["--api-key".to_owned(), "hunter2!".to_owned()];
    }
    let remote = ServerPlan::http("b", "https://mcp.example/v1?key=opensesame");
    let mut plan = Plan::default();
    for server in [program, remote] {
        plan.servers.insert(server.name.clone(), Arc::new(server));
    }
    let value = |name: &str| Some(format!("/the/value/of/{name}"));
    let redactor = Redactor::within(&plan, value);
    let text = "/the/value/of/DATABASE hunter2! opensesame /the/value/of/HOME";
    assert_eq!(redactor.redact(text), "*** *** *** /the/value/of/HOME");
}

fn gateway() -> crate::catalog::plan::GatewayPlan {
    crate::catalog::plan::GatewayPlan::default()
}

#[test]
fn token_like_words_are_masked() {
    for (text, expected) in [
        ("Authorization: Bearer abc.def-ghi", "Authorization: ***"),
        ("sent Bearer abcdefgh twice", "sent Bearer *** twice"),
        ("sent 'bearer  abcdefgh'", "sent 'bearer  ***'"),
        ("Basic dXNlcjpwYXNz", "Basic ***"),
        ("key sk-abc123def456 is bad", "key *** is bad"),
        ("use ghp_0123456789abcdef", "use ***"),
        ("AKIAIOSFODNN7EXAMPLE denied", "*** denied"),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.", "***"),
        ("xoxb-123456-abcdef", "***"),
        ("postgres://bob:pw@db.example/x", "postgres://***@db.example/x"),
        ("https://token@host:1/p?q=1", "https://***@host:1/p?q=1"),
        ("digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "digest ***"),
        ("key 9f86d081884c7d659a2feaa0c55ad015", "key ***"),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "***"),
        ("got MIIBVgIBADANBgkqhkiG9w0BAQEFAASCAUAwggE8AgEA==", "got ***"),
    ] {
        assert_eq!(looks(text), expected);
    }
}

#[test]
fn values_of_secret_names_are_masked() {
    for (text, expected) in [
        ("password=x", "password=***"),
        ("DB_PASSWORD = hunter2, host=h", "DB_PASSWORD = ***, host=h"),
        ("?api_key=a&user=b", "?api_key=***&user=b"),
        (r#"{"client_secret": "s", "a": 1}"#, r#"{"client_secret": "***", "a": 1}"#),
        (r#"{\"token\":\"s3\"}"#, r#"{\"token\":\"***"}"#),
        ("token: abc123def", "token: ***"),
        ("token: 'expired'", "token: '***'"),
        ("X-Api-Key: 8f14e45f", "X-Api-Key: ***"),
        ("Cookie: a=b; c=d\nnext: line", "Cookie: ***\nnext: line"),
        ("set-cookie: sid=1", "set-cookie: ***"),
        ("secret => \"a b\"", "secret => \"***\""),
        ("pwd:x", "pwd:***"),
        ("password=***", "password=***"),
    ] {
        assert_eq!(looks(text), expected);
    }
}

#[test]
fn harmless_text_stays() {
    for text in [
        "Unexpected token: } at position 3",
        "Invalid token: expired",
        "the password is wrong",
        "Error: Cannot find module '/usr/lib/node_modules/@modelcontextprotocol/server/dist/index.js'",
        "at Object.<anonymous> (/users/user/projects/some-long-project-name/src/components/Main.tsx:10:5)",
        "File \"/usr/lib/python3.11/site-packages/mcp/server/v2/session.py\", line 12, in run",
        "node-v20.11.1-linux-x64-glibc-217-build-from-source",
        "session 123e4567-e89b-12d3-a456-426614174000 ended",
        "listening on http://127.0.0.1:3000/mcp",
        "mail to a@b.example",
        "org/springframework/aop/framework/AbstractSingletonProxyFactoryBean",
        "task-list sk-learn ghp_",
        "exited with code 1",
        "KeyError: 'name'",
        "",
    ] {
        assert_eq!(looks(text), text);
    }
}

#[test]
fn any_text_is_read_in_time_that_grows_with_its_length() {
    let redactor = Redactor::new(["aaaaaaab"]);
    for piece in ["a", "token=", "token:", "://", "://@", "Bearer ", "=", ":", "'", "é", "\u{1b}"]
    {
        let text = piece.repeat((1 << 18) / piece.len());
        // Quadratic backtracking would not finish here.
        assert!(redactor.redact(&text).len() <= 3 * text.len(), "{piece}");
    }
}
