//! Which scopes are requested, and when more are.

use super::*;

/// A login that asks for exactly these scopes.
fn login_with(challenge: &str, more: &str, listed: &str, scope: &str) -> String {
    let asked = if scope.is_empty() { String::new() } else { format!(" scope={scope}") };
    let registered =
        if scope.is_empty() { String::new() } else { format!(r#""scope":"{scope}",*"#) };
    [
        &*format!("call\n> MCP -\n< 401 {challenge}\n"),
        &resource(more),
        &issuer(listed),
        &REGISTER.replace(r#""native"*"#, &format!(r#""native"*{registered}"none"}}"#)),
        &VISIT.replace(" *", &format!(" *resource=https://mcp.example/mcp{asked}")),
        EXCHANGE,
        "> MCP Bearer t-1\n< 200\n= 200\n",
    ]
    .concat()
}

#[test]
fn scopes_come_from_the_refusal_or_the_document_or_nowhere() {
    let lists = r#","scopes_supported":["s","t"]"#;
    check(&[&login_with(r#"Bearer scope="a b""#, lists, "", "a b")]);
    check(&[&login_with("Bearer", lists, "", "s t")]);
    check(&[&login_with("Bearer", "", lists, "")]);
    check_with(|it| it.scopes(["w"]), &login_with("Bearer", lists, "", "w"));
    check_with(|it| it.scopes(["w"]), &login_with(r#"Bearer scope="a""#, lists, "", "a w"));
}

#[test]
fn offline_access_is_asked_for_where_it_is_listed_alone() {
    let offers = r#","scopes_supported":["a","offline_access"]"#;
    let a = r#"Bearer scope="a""#;
    check(&[&login_with(a, "", "", "a")]);
    check_with(|it| it.offline_access(false), &login_with(a, "", offers, "a"));
    check(&[&login_with("Bearer", "", offers, "")]);
    let both = r#","scopes_supported":["a","offline_access"]"#;
    check(&[&login_with("Bearer", both, r#","scopes_supported":["a"]"#, "a")]);
    let visit = login_with(a, "", offers, "a offline_access")
        .replace("scope=a offline_access\n", "scope=a offline_access prompt=consent\n");
    check(&[&visit]);
}

const STEP_UP: &str = r#"call
    > MCP Bearer t-1
    < 403 Bearer error="insufficient_scope", scope="b", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
"#;

fn second_visit(scope: &str, answer: &str) -> String {
    format!(
        r#"> BROWSER https://id.example/authorize response_type=code client_id=c-1 *resource=https://mcp.example/mcp scope={scope}
        < code=k-2&state={{state}}
        > POST https://id.example/token grant_type=authorization_code code=k-2 *
        < 200 {{"access_token":"t-2","token_type":"Bearer"{answer}}}
        "#
    )
}

#[test]
fn a_step_up_keeps_what_was_asked_for_before() {
    let transcript = check(&[
        &login_with(r#"Bearer scope="a""#, "", "", "a"),
        STEP_UP,
        &resource(r#","scopes_supported":["unrelated"]"#),
        &issuer(""),
        &second_visit("a b", ""),
        "> MCP Bearer t-2\n< 200\n= 200",
    ]);
    assert_eq!(transcript.kept("token")["granted"], "a b");
}

#[test]
fn a_server_that_is_never_satisfied_is_left() {
    let start = login_with(r#"Bearer scope="a""#, "", "", "a");
    // It requires what the login has.
    let has = STEP_UP.replace("scope=\"b\"", "scope=\"a\"");
    let error = "! `https://mcp.example/mcp` wants the scopes `a`, which the login has. Tell the operator of the server.";
    check(&[&*start, &has, error]);
    // It requires what was requested in vain.
    let again = STEP_UP.replace("call\n", "").replace("t-1", "t-2");
    let error = "! `https://mcp.example/mcp` wants the scopes `b`, which were asked for and not \
        granted. Log in as somebody who has them.";
    let vain = second_visit("a b", r#","scope":"a""#);
    check(&[&*start, STEP_UP, &resource(""), &issuer(""), &vain, &again, error]);
    // It requires something else each time: three logins, and no more.
    let mut script = start.clone();
    for (token, scope, all) in [("1", "b", "a b"), ("2", "c", "a b c"), ("3", "d", "a b c d")] {
        let step = STEP_UP.replace("scope=\"b\"", &format!("scope=\"{scope}\""));
        let step = if token == "1" { step } else { step.replace("call\n", "") };
        let next = (token.parse::<u8>().unwrap() + 1).to_string();
        script += &step.replace("t-1", &format!("t-{token}"));
        script += &resource("");
        script += &issuer("");
        script += &second_visit(all, "").replace("t-2", &format!("t-{next}"));
    }
    script += "> MCP Bearer t-4\n< 403 Bearer error=\"insufficient_scope\", scope=\"e\"\n";
    script += "! `https://mcp.example/mcp` refused the same request too often, each time with a new login.";
    check(&[&script]);
}

#[test]
fn a_refusal_that_is_no_question_of_scopes_is_final() {
    check(&[
            &first_login(),
            "call
            > MCP Bearer t-1
            < 403 Bearer error=\"access_denied\"
            ! `https://mcp.example/mcp` does not allow this, whoever is logged in with whatever scopes.",
        ]);
}

#[test]
fn a_fresh_login_that_is_refused_is_not_repeated() {
    let (start, _) = first_login()
        .rsplit_once("> MCP Bearer t-1")
        .map(|(a, b)| (a.to_owned(), b.len()))
        .unwrap();
    check(&[
            &*start,
            "> MCP Bearer t-1
            < 401 Bearer error=\"invalid_token\"
            ! `https://mcp.example/mcp` refuses the token that its own authorization server just gave. Tell the operator of the server.",
        ]);
}

#[test]
fn nobody_is_asked_in_the_background() {
    let transcript = check(&["background
        > MCP -
        < 401 Bearer
        ! `https://mcp.example/mcp` wants a login. Log in to it and try again."]);
    // Another caller's new login is used.
    transcript.more(&first_login());
    play(&transcript, |it| it);
    let oauth = transcript.process();
    let none = Vec::new();
    let to = Target { method: "GET", url: SERVER };
    let refusal = Refused { status: 401, challenges: &[], sent: &none, times: 1 };
    assert_eq!(run(oauth.refused(to, refusal, None)), Ok(()));
}
