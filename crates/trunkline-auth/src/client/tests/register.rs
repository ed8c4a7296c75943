//! How we are registered: pre-registered, by a document, dynamically; and with whom.

use super::*;
use crate::client::{Reregistration, Step};

const GIVEN: &str = r#"
    > BROWSER https://id.example/authorize response_type=code client_id=given redirect_uri=http://127.0.0.1:9001/callback *
    < code=k-1&state={state}
"#;

#[test]
fn a_given_client_shows_its_secret_as_the_server_takes_it() {
    for (listed, proof) in [
        (
            r#"["client_secret_basic"]"#,
            "resource=https://mcp.example/mcp [basic given:p%40ss%3Aword]",
        ),
        (r#"["client_secret_post"]"#, "client_id=given client_secret=p@ss:word"),
        (r#"["client_secret_post","client_secret_basic"]"#, "[basic given:p%40ss%3Aword]"),
        (r#"["none"]"#, "resource=https://mcp.example/mcp client_id=given"),
    ] {
        let more = format!(r#","token_endpoint_auth_methods_supported":{listed}"#);
        let exchange = format!(
            "> POST https://id.example/token grant_type=authorization_code *{proof}
            < 200 {{\"access_token\":\"t-1\",\"token_type\":\"Bearer\"}}
            = login https://id.example"
        );
        let transcript = check_with(
            |it| it.client_id("given").client_secret("p@ss:word").for_issuer("https://id.example"),
            &["login\n", &resource(""), &issuer(&more), GIVEN, &exchange].concat(),
        );
        // The parts of the set-up are not stored.
        let kept = transcript.kept("token person:given").to_string();
        assert!(!kept.contains("p@ss"), "{kept}");
    }
}

#[test]
fn a_given_client_is_never_shown_to_another_issuer() {
    let error = "! The client's credentials are those of `https://other.example`, but \
        `https://mcp.example/mcp` now names `https://id.example`. They were not sent there: *";
    check_with(
        |it| it.client_id("given").for_issuer("https://other.example"),
        &["login\n", &resource(""), error].concat(),
    );
    // Without an issuer in the set-up, it is the first one.
    let moved = resource("").replace("https://id", "https://new");
    let document = issuer("").replace("https://id", "https://new");
    let error = "! The client's credentials are those of `https://id.example`, but \
        `https://mcp.example/mcp` now names `https://new.example`. *";
    check_with(
        |it| it.client_id("given"),
        &[
            "login\n",
            &resource(""),
            &issuer(""),
            GIVEN,
            EXCHANGE,
            "= login https://id.example\nlogin\n",
            &moved,
            &document,
            error,
        ]
        .concat(),
    );
}

#[test]
fn a_document_is_a_client_where_that_is_known() {
    let url = "https://client.example/client.json";
    let more = r#","client_id_metadata_document_supported":true"#;
    let visit = VISIT.replace("c-1", url);
    let exchange = EXCHANGE.replace("code=k-1 *", &format!("code=k-1 *client_id={url}"));
    let transcript = check_with(
        |it| it.client_metadata_url(url).redirect_uris(["http://127.0.0.1:7777/cb"]),
        &["login\n", &resource(""), &issuer(more), &visit, &exchange, "= login https://id.example"]
            .concat(),
    );
    assert!(transcript.names().iter().all(|it| !it.starts_with("client ")));
    assert_eq!(transcript.kept("token")["client"]["redirect_uris"][0], "http://127.0.0.1:7777/cb");
    check_with(|it| it.client_metadata_url(url), &first_login());
}

#[test]
fn where_nobody_can_register_the_way_out_is_said() {
    let closed =
        issuer("").replace(r#""registration_endpoint":"https://id.example/register","#, "");
    let error = "! `https://id.example` does not let clients register themselves. Register one there \
        by hand and give its client id.";
    check(&["login\n", &resource(""), &closed, error]);
}

#[test]
fn a_registration_is_asked_for_as_it_will_be_used() {
    for (listed, asked, given, proof) in [
        ("", "none", r#""client_id":"c-1""#, "client_id=c-1"),
        (
            r#","token_endpoint_auth_methods_supported":["client_secret_basic"]"#,
            "client_secret_basic",
            r#""client_id":"c-1","client_secret":"s-1""#,
            "[basic c-1:s-1]",
        ),
        (
            r#","token_endpoint_auth_methods_supported":["client_secret_post"]"#,
            "client_secret_post",
            r#""client_id":"c-1","client_secret":"s-1","token_endpoint_auth_method":"client_secret_post""#,
            "client_id=c-1 client_secret=s-1",
        ),
    ] {
        let register = format!(
            r#"> POST https://id.example/register {{*"token_endpoint_auth_method":"{asked}"}}
            < 201 {{{given},"redirect_uris":["http://127.0.0.1:9001/callback"]}}
            "#
        );
        let exchange = EXCHANGE.replace("code=k-1 *", &format!("code=k-1 *{proof}"));
        let end = "= login https://id.example";
        let script =
            ["login\n", &resource(""), &issuer(listed), &register, VISIT, &exchange, end].concat();
        check(&[&script]);
    }
}

#[test]
fn a_registration_that_is_refused_for_its_kind_is_tried_as_another() {
    let no = r#"> POST https://id.example/register {*"application_type":"native"*
        < 400 {"error":"invalid_redirect_uri","error_description":"no loopback"}
        "#;
    let web = REGISTER.replace("native", "web");
    let start = ["login\n", &resource(""), &issuer(""), no].concat();
    check(&[&start, &web, VISIT, EXCHANGE, "= login https://id.example"]);
    let refused = "> POST https://id.example/register {*\"application_type\":\"web\"*
        < 400 {\"error\":\"invalid_redirect_uri\"}
        ! `https://id.example` does not take `http://127.0.0.1:9001/callback` as a redirect URI: “no \
        loopback”. Register a client there by hand and give its client id.";
    check(&[&start, refused]);
    let closed = r#"> POST https://id.example/register *
        < 403 {"error":"access_denied"}
        ! `https://id.example` refused to register the client with `access_denied`. Register one there by hand and give its client id."#;
    check(&["login\n", &resource(""), &issuer(""), closed]);
    for (answer, error) in [
        ("500 oops", "refused to register the client with `500`"),
        ("201 {}", "registered the client without telling its id"),
        (r#"201 {"client_id":""}"#, "registered the client without telling its id"),
        (r#"201 {"client_id":"c","redirect_uris":["http://x"]}"#, "without its redirect URI"),
    ] {
        let end = format!("> POST https://id.example/register *\n< {answer}\n! *{error}*");
        check(&["login\n", &resource(""), &issuer(""), &end]);
    }
}

#[test]
fn a_registration_is_used_again_while_it_is_good() {
    let again = [
        "login\n",
        &resource(""),
        &issuer(""),
        "> BROWSER * client_id=c-1 redirect_uri=http://127.0.0.1:9001/callback *
        < code=k-1&state={state}\n",
        EXCHANGE,
        "= login https://id.example\n",
    ]
    .concat();
    let transcript = check(&[&first_login(), &*again]);
    // Its redirect URI is no longer available: another registration.
    transcript.0.lock().unwrap().taken.insert("http://127.0.0.1:9001/callback".to_owned());
    let anew = again
        .replace("> BROWSER", &format!("{}\n> BROWSER", REGISTER.replace("c-1", "c-2")))
        .replace(
            "client_id=c-1 redirect_uri=http://127.0.0.1:9001",
            "client_id=c-2 redirect_uri=*",
        );
    transcript.more(&anew);
    play(&transcript, |it| it);
    assert_eq!(transcript.kept("client https://id.example")["id"], "c-2");
}

#[test]
fn a_secret_that_has_ended_is_replaced_by_a_new_registration() {
    let register = |id: &str, ends: u64| {
        REGISTER.replace(
            r#"{"client_id":"c-1"}"#,
            &format!(
                r#"{{"client_id":"{id}","client_secret":"s","client_secret_expires_at":{ends}}}"#
            ),
        )
    };
    let login = |register: &str, id: &str| {
        let visit = VISIT.replace("c-1", id);
        let end = "= login https://id.example\n";
        ["login\n", &resource(""), &issuer(""), register, &visit, EXCHANGE, end].concat()
    };
    let never = register("c-1", 0);
    check(&[&login(&never, "c-1"), "wait 999999999\n", &login("", "c-1")]);
    let soon = register("c-1", 1_800_000_060);
    let next = register("c-2", 0);
    check(&[
        &login(&soon, "c-1"),
        "wait 59\n",
        &login("", "c-1"),
        "wait 1\n",
        &login(&next, "c-2"),
    ]);
}

#[test]
fn a_registration_that_was_forgotten_there_is_made_again_once() {
    let gone = EXCHANGE.replace(
        r#"< 200 {"access_token":"t-1","token_type":"Bearer","expires_in":3600,"refresh_token":"r-1"}"#,
        r#"< 401 {"error":"invalid_client"}"#,
    );
    let start = [&first_login(), "login\n", &*resource(""), &issuer(""), VISIT, &gone].concat();
    let end = [REGISTER, VISIT, EXCHANGE, "= login https://id.example"].concat();
    check(&[&*start, &end]);
    let end =
        [REGISTER, VISIT, &gone, "! `https://id.example` answers `invalid_client`. *"].concat();
    check(&[&*start, &end]);
    // One that was registered for less is made again for more.
    let less = VISIT.replace("code=k-1", "error=invalid_scope");
    let more = REGISTER.replace(r#""native"*"#, r#""native"*"scope":"a"*"#);
    check_with(
        |it| it.scopes(["a"]),
        &[
            &first_login(),
            "login\n",
            &*resource(""),
            &issuer(""),
            &less,
            &more,
            VISIT,
            EXCHANGE,
            "= login https://id.example",
        ]
        .concat(),
    );
}

/// A successful login, with these steps between discovery and exchange.
fn login(between: &str) -> String {
    let end = "= login https://id.example\n";
    ["login\n", &resource(""), &issuer(""), between, EXCHANGE, end].concat()
}

/// A login that is killed at the page of `c-1`.
fn killed() -> String {
    let visit = VISIT.replace("code=k-1&state={state}", "nothing");
    ["killed\n", &resource(""), &issuer(""), &visit].concat()
}

#[test]
fn a_registration_whose_page_led_nowhere_is_not_used_again() {
    let transcript = check(&[&*first_login(), &killed()]);
    assert_eq!(transcript.kept("client https://id.example")["is_unanswered"], true);
    let anew = [REGISTER, VISIT].concat().replace("c-1", "c-2");
    transcript.more(&login(&anew));
    // The new one serves from then on, and the token endpoint was asked nothing else.
    transcript.more(&login(&VISIT.replace("c-1", "c-2")));
    let steps = Arc::new(Mutex::new(Vec::new()));
    play(&transcript, |it| {
        let steps = Arc::clone(&steps);
        it.progress(move |step| steps.lock().unwrap().push(step))
    });
    let at = || "https://id.example".to_owned();
    let steps = steps.lock().unwrap();
    assert_eq!(steps[1], Step::Reregistering(at(), Reregistration::Unanswered));
    assert_eq!(steps[2], Step::Registering(at()));
    assert!(steps[3..].contains(&Step::Reusing(at())), "{steps:?}");
    let kept = transcript.kept("client https://id.example");
    assert_eq!((&kept["id"], kept.get("is_unanswered")), (&"c-2".into(), None));
}

#[test]
fn a_registration_whose_page_led_back_is_used_again() {
    // Whatever the page answered: it knew the client.
    let no = [
        "login\n",
        &resource(""),
        &issuer(""),
        &VISIT.replace("code=k-1", "error=access_denied"),
        "! *`access_denied`*\n",
    ]
    .concat();
    check(&[&first_login(), &*no, &login(VISIT)]);
    // A new registration is known, even if the user aborts the login.
    let first = killed().replace("> BROWSER", &format!("{REGISTER}\n> BROWSER"));
    check(&[&*first, &login(VISIT)]);
    // A forged redirect does not count.
    let stranger = VISIT.replace("state={state}", "state=other");
    let stranger = ["login\n", &resource(""), &issuer(""), &stranger, "! *\n"].concat();
    let anew = [REGISTER, VISIT].concat().replace("c-1", "c-2");
    check(&[&first_login(), &*stranger, &login(&anew)]);
}

#[test]
fn a_registration_that_can_be_read_is_read_before_it_is_used_again() {
    let registered = |id: &str, at: &str, token: &str| {
        let more = format!(
            r#"{{"client_id":"{id}","registration_client_uri":"{at}","registration_access_token":"{token}"}}"#
        );
        REGISTER.replace(r#"{"client_id":"c-1"}"#, &more)
    };
    let own = "https://id.example/register/c-1";
    let first = login(&[&registered("c-1", own, "rt-1"), VISIT].concat());
    let reads = |token: &str, answer: &str| format!("> GET {own} [bearer {token}]\n< {answer}\n");
    let anew = [REGISTER, VISIT].concat().replace("c-1", "c-2");
    for gone in [
        r#"401 {"error":"invalid_token"}"#,
        "404",
        r#"200 {"client_id":"c-1","redirect_uris":["http://127.0.0.1:1/other"]}"#,
    ] {
        check(&[&*first, &login(&[&reads("rt-1", gone), &*anew].concat())]);
    }
    let same = r#"200 {"client_id":"c-1"}"#;
    for said in [same, "403", "500 oops", "200 oops", r#"200 {"client_id":"x"}"#, "failed No."] {
        check(&[&*first, &login(&[&reads("rt-1", said), VISIT].concat())]);
    }
    // What it replaced is what is used the next time.
    let other = format!(
        r#"200 {{"client_id":"c-1","client_secret":"s-2","registration_client_uri":"{own}","registration_access_token":"rt-2"}}"#
    );
    let transcript = check(&[
        &*first,
        &login(&[&reads("rt-1", &other), VISIT].concat()),
        &login(&[&reads("rt-2", same), VISIT].concat()),
    ]);
    let kept = transcript.kept("client https://id.example");
    assert_eq!((&kept["secret"], &kept["management"]["token"]), (&"s-2".into(), &"rt-2".into()));
    assert!(!transcript.kept("token").to_string().contains("rt-2"), "a login has no use for it");
    // The authorization server's answer counts more than a page that never redirected.
    let left = killed().replace("> BROWSER", &format!("{}> BROWSER", reads("rt-1", same)));
    let again = login(&[&reads("rt-1", same), VISIT].concat());
    check(&[&*first, &left, &again]);
    // An invalid response is ignored.
    let odd = registered("c-1", own, "rt-1").replace(r#""rt-1""#, "1");
    check(&[&*login(&[&odd, VISIT].concat()), &login(VISIT)]);
    // The token is sent nowhere else.
    for elsewhere in ["https://evil.example/c-1", "http://id.example/c-1", "nowhere"] {
        let first = login(&[&registered("c-1", elsewhere, "rt-1"), VISIT].concat());
        check(&[&*first, &login(VISIT)]);
    }
}

#[test]
fn a_new_registration_can_be_asked_for() {
    let transcript = check(&[&first_login()]);
    transcript.more(&login(&[REGISTER, VISIT].concat().replace("c-1", "c-2")));
    play(&transcript, OAuth::register_anew);
    assert_eq!(transcript.kept("client https://id.example")["id"], "c-2");
}

#[test]
fn a_server_that_moves_to_another_issuer_takes_no_credentials_along() {
    let to = |text: &str| text.replace("https://id", "https://two").replace("c-1", "c-2");
    let transcript = check(&[
        &first_login(),
        "call\n> MCP Bearer t-1\n< 401 Bearer error=\"invalid_token\"\n",
        // Before the refresh token is sent anywhere.
        &to(&resource("")),
        &to(&issuer("")),
        &to(REGISTER),
        &to(VISIT),
        &to(EXCHANGE).replace("t-1", "t-2"),
        "> MCP Bearer t-2\n< 200\n= 200",
    ]);
    let names = transcript.names();
    assert!(names.contains(&"client https://id.example".to_owned()));
    assert!(names.contains(&"client https://two.example".to_owned()));
    assert_eq!(transcript.kept("login")["issuer"], "https://two.example");
}

#[test]
fn where_codes_come_back_must_be_safe() {
    check_with(
        |it| it.redirect_uris(["http://attacker.example/cb"]),
        &[
            "login\n",
            &resource(""),
            &issuer(""),
            "! `http://attacker.example/cb` cannot be a redirect URI: it is neither https nor on this machine.",
        ]
        .concat(),
    );
}

#[test]
fn nothing_secret_is_ever_shown() {
    let oauth = OAuth::new("https://me:hidden@mcp.example/mcp?key=hidden")
        .client_id("given")
        .client_secret("hidden")
        .grant(crate::client::Grant::ClientCredentials(crate::client::ClientAuth::secret(
            "a", "hidden",
        )));
    let shown = format!("{oauth:?}");
    assert!(shown.contains("https://mcp.example/mcp") && !shown.contains("hidden"), "{shown}");
}
