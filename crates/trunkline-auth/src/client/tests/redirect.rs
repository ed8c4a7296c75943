//! What redirects contain.

use super::*;

/// A login whose visit ends like this.
fn visit(more: &str, answer: &str) -> String {
    let visit = VISIT.replace("code=k-1&state={state}", answer);
    ["login\n", &resource(""), &issuer(more), REGISTER, &visit].concat()
}

const PROMISES: &str = r#","authorization_response_iss_parameter_supported":true"#;
const ISS: &str = "code=k-1&state={state}&iss=https%3A%2F%2Fid.example";

#[test]
fn codes_of_the_issuer_that_was_asked_are_used() {
    for (more, answer) in [(PROMISES, ISS), ("", ISS), ("", "code=k-1&state={state}")] {
        let end = "= login https://id.example";
        check(&[&*visit(more, answer), EXCHANGE, end]);
    }
}

#[test]
fn codes_of_others_are_never_sent_anywhere() {
    let slash = format!("{ISS}%2F");
    let case = ISS.replace("id.example", "ID.example");
    let port = format!("{ISS}%3A443");
    let evil = ISS.replace("id.example", "evil.example");
    for (more, answer, words) in [
        (
            PROMISES,
            "code=k-1&state={state}",
            "It lacks `iss`, which `https://id.example` promises to send.",
        ),
        (PROMISES, &*evil, "It was not sent by `https://id.example`."),
        ("", &*evil, "It was not sent by `https://id.example`."),
        (PROMISES, &*slash, "It was not sent by `https://id.example`."),
        (PROMISES, &*case, "It was not sent by `https://id.example`."),
        (PROMISES, &*port, "It was not sent by `https://id.example`."),
        ("", "code=k-1&state=guessed", "It does not belong to this login."),
        ("", "code=k-1", "It does not belong to this login."),
        ("", "state={state}", "It has no code."),
    ] {
        let end = format!(
            "! The browser came back with an answer that cannot be trusted. {words} Log in again; if \
             this repeats, tell the operator of the server."
        );
        let transcript = check(&[&*visit(more, answer), &end]);
        assert!(transcript.names().iter().all(|it| it.starts_with("client ")), "nothing was got");
    }
}

#[test]
fn a_state_is_good_for_one_login() {
    let again = VISIT.replace("{state}", "{old}");
    let end = "! *It does not belong to this login.*";
    let script =
        [&visit("", "code=k-1&state={state}"), EXCHANGE, "= login https://id.example\nlogin\n"]
            .concat();
    check(&[&*script, &resource(""), &issuer(""), &again, end]);
}

#[test]
fn a_no_is_shown_if_it_is_from_who_was_asked() {
    let no = "error=access_denied&error_description=Ask+your%0Aadmin&state={state}";
    let end = "! `https://id.example` answers `access_denied`: “Ask your admin”. Access was not \
        granted; log in again to try once more.";
    check(&[&*visit("", no), end]);
    let stranger = format!("{no}&iss=https%3A%2F%2Fevil.example");
    let end = "! The browser came back with an answer that cannot be trusted. It was not sent by \
        `https://id.example`. Log in again; if this repeats, tell the operator of the server.";
    check(&[&*visit("", &stranger), end]);
    let end = "! Nobody logged in at `https://id.example`: The window was closed.";
    check(&[&*visit("", "failed The window was closed."), end]);
}

#[test]
fn without_pkce_nobody_is_asked() {
    for methods in [
        "",
        r#","code_challenge_methods_supported":[]"#,
        r#","code_challenge_methods_supported":["plain"]"#,
    ] {
        let document =
            issuer("").replace(r#","code_challenge_methods_supported":["S256"]"#, methods);
        let end = "! `https://id.example` does not say that it supports PKCE with S256, without which \
            a login can be stolen on its way. Nobody was asked to log in; its operator has to add \
            `code_challenge_methods_supported` to its metadata.";
        check(&["login\n", &resource(""), &document, end]);
    }
}

#[test]
fn an_endpoint_with_a_query_keeps_it() {
    let document = issuer("").replace("/authorize\"", "/authorize?tenant=a%20b\"");
    let visit = VISIT.replace("authorize response", "authorize tenant=a b response");
    let end = "= login https://id.example";
    check(&["login\n", &resource(""), &document, REGISTER, &visit, EXCHANGE, end]);
}

#[test]
fn what_a_token_endpoint_says_is_told() {
    for (answer, words) in [
        (
            r#"400 {"error":"invalid_grant","error_description":"code expired"}"#,
            "`https://id.example` answers `invalid_grant`: “code expired”. Log in again.",
        ),
        (
            r#"200 {"error":"bad_verification_code"}"#,
            "`https://id.example` answers `bad_verification_code`.",
        ),
        ("502 oops", "`https://id.example` answers with 502 instead of a token. Try again later."),
        (
            "200 {}",
            "`https://id.example` cannot be used to log in: its answer has no access token. Tell its operator.",
        ),
        (
            r#"200 {"access_token":"t","token_type":"DPoP"}"#,
            "`https://id.example` cannot be used to log in: it bound the token to a key that nobody has. Tell its operator.",
        ),
    ] {
        let exchange = "> POST https://id.example/token grant_type=authorization_code *\n";
        let end = format!("< {answer}\n! {words}");
        check(&[&*visit("", "code=k-1&state={state}"), exchange, &end]);
    }
}

#[test]
fn a_registration_that_led_nowhere_is_not_used_again() {
    let no = VISIT.replace("code=k-1&state={state}", "failed The window was closed.");
    let ended = "! Nobody logged in at `https://id.example`: The window was closed.\n";
    check(&[
        &first_login(),
        "login\n",
        &resource(""),
        &issuer(""),
        &no,
        ended,
        "login\n",
        &resource(""),
        &issuer(""),
        &logs_in(),
    ]);
}
