//! Expired tokens: refreshed once, by the first caller, and never lost.

use super::*;

pub(super) fn renews(old: &str, answer: &str) -> String {
    format!(
        "> POST https://id.example/token grant_type=refresh_token refresh_token={old} resource=https://mcp.example/mcp client_id=c-1
        < {answer}
        "
    )
}

pub(super) fn gives(access: &str, refresh: &str) -> String {
    format!(r#"200 {{"access_token":"{access}","token_type":"Bearer","expires_in":3600{refresh}}}"#)
}

#[test]
fn tokens_are_renewed_before_they_end() {
    let transcript = check(&[
        &first_login(),
        "wait 3569\ncall\n> MCP Bearer t-1\n< 200\n= 200\nwait 1\ncall\n",
        &renews("r-1", &gives("t-2", r#","refresh_token":"r-2""#)),
        "> MCP Bearer t-2\n< 200\n= 200\nwait 3600\nprocess\ncall\n",
        // An answer without a refresh token leaves the old one.
        &renews("r-2", &gives("t-3", "")),
        "> MCP Bearer t-3\n< 200\n= 200\nwait 3600\ncall\n",
        &renews("r-2", &gives("t-4", "")),
        "> MCP Bearer t-4\n< 200\n= 200",
    ]);
    assert_eq!(transcript.kept("token")["refresh"], "r-2");
}

#[test]
fn a_token_that_is_refused_is_renewed() {
    check(&[
        &first_login(),
        "background\n> MCP Bearer t-1\n< 401 Bearer error=\"invalid_token\"\n",
        &resource(""),
        &issuer(""),
        &renews("r-1", &gives("t-2", "")),
        "> MCP Bearer t-2\n< 200\n= 200",
    ]);
}

#[test]
fn a_refresh_token_that_is_refused_means_another_login() {
    let no = r#"400 {"error":"invalid_grant","error_description":"revoked"}"#;
    let login = [&resource(""), &*issuer(""), VISIT, &EXCHANGE.replace("-1\"", "-9\"")].concat();
    // Before a request …
    let transcript = check(&[
        &first_login(),
        "wait 3600\ncall\n",
        &renews("r-1", no),
        "> MCP -\n< 401 Bearer\n",
        &login,
        "> MCP Bearer t-9\n< 200\n= 200\n",
    ]);
    assert_eq!(transcript.kept("token")["refresh"], "r-9");
    // … and after a refusal, when the metadata is already known.
    check(&[
        &first_login(),
        "call\n> MCP Bearer t-1\n< 401 Bearer\n",
        &resource(""),
        &issuer(""),
        &renews("r-1", no),
        VISIT,
        &EXCHANGE.replace("-1\"", "-9\""),
        "> MCP Bearer t-9\n< 200\n= 200\n",
    ]);
    // Without a person to ask, the error says so. The dead refresh token is not sent again.
    check(&[
        &first_login(),
        "wait 3600\nbackground\n",
        &renews("r-1", no),
        "> MCP -\n< 401 Bearer
            ! `https://mcp.example/mcp` wants a login. Log in to it and try again.
            background\n> MCP -\n< 401 Bearer
            ! `https://mcp.example/mcp` wants a login. Log in to it and try again.",
    ]);
}

#[test]
fn a_client_that_is_refused_is_forgotten() {
    let no = r#"401 {"error":"invalid_client"}"#;
    let anew = REGISTER.replace("c-1", "c-2");
    check(&[
        &first_login(),
        "wait 3600\ncall\n",
        &renews("r-1", no),
        "> MCP -\n< 401 Bearer\n",
        &resource(""),
        &issuer(""),
        &anew,
        &VISIT.replace("c-1", "c-2"),
        &EXCHANGE.replace("t-1", "t-2"),
        "> MCP Bearer t-2\n< 200\n= 200",
    ]);
}

#[test]
fn an_authorization_server_that_fails_costs_no_login() {
    let transcript = check(&[
        &first_login(),
        // The token is still valid for half a minute.
        "wait 3580\ncall\n",
        &renews("r-1", "503 oops"),
        "> MCP Bearer t-1\n< 200\n= 200\nwait 20\ncall\n",
        &renews("r-1", "failed It hung up."),
        "! `https://id.example/token` cannot be reached: It hung up.\ncall\n",
        &renews("r-1", r#"503 {"error":"temporarily_unavailable"}"#),
        // Its word for it: the server is asked what to do.
        "> MCP -\n< 200\n= 200\ncall\n",
        &renews("r-1", &gives("t-2", "")),
        "> MCP Bearer t-2\n< 200\n= 200",
    ]);
    assert_eq!(transcript.kept("token")["refresh"], "r-1");
}

#[test]
fn two_processes_spend_one_refresh_token() {
    let transcript = check(&[&first_login()]);
    transcript.0.lock().unwrap().now += Duration::from_secs(3600);
    transcript.more(&renews("r-1", &gives("t-2", r#","refresh_token":"r-2""#)));
    let (one, two) = (transcript.process(), transcript.process());
    let to = Target { method: "POST", url: SERVER };
    let all = run_all(vec![one.headers(to), two.headers(to), one.headers(to)]);
    for headers in all {
        assert_eq!(headers, Ok(vec![("authorization", "Bearer t-2".to_owned())]));
    }
    assert_eq!(transcript.take(), None);
    assert_eq!(transcript.kept("token")["refresh"], "r-2");
}

#[test]
fn requests_that_are_refused_at_once_cost_one_refresh() {
    let transcript = check(&[&first_login()]);
    let script = [&resource(""), &*issuer("")].concat();
    // Each checks whether the server has moved, then one refreshes and the others see it.
    let lines: Vec<_> = script.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    for pair in lines.chunks(2) {
        (0..2).for_each(|_| transcript.more(&pair.join("\n")));
    }
    transcript.more(&renews("r-1", &gives("t-2", r#","refresh_token":"r-2""#)));
    let (one, two) = (transcript.process(), transcript.process());
    let sent = vec![("authorization", "Bearer t-1".to_owned())];
    let to = Target { method: "POST", url: SERVER };
    let refusal = Refused { status: 401, challenges: &[], sent: &sent, times: 1 };
    let all = run_all(vec![one.refused(to, refusal, None), two.refused(to, refusal, None)]);
    assert_eq!(all, [Ok(()), Ok(())]);
    assert_eq!(transcript.take(), None);
}

#[test]
fn requests_that_are_refused_at_once_show_one_page() {
    let (_, login) =
        first_login().split_once("< 401 Bearer\n").map(|(a, b)| (a.len(), b.to_owned())).unwrap();
    let (login, _) = login.split_once("> MCP").unwrap();
    let transcript = Transcript::new(login);
    let oauth = transcript.process();
    let (none, people) = (Vec::new(), |_| ());
    let to = Target { method: "POST", url: SERVER };
    let refusal = Refused { status: 401, challenges: &[], sent: &none, times: 1 };
    let ask = || oauth.refused(to, refusal, Some(&people));
    assert_eq!(run_all(vec![ask(), ask(), ask()]), [Ok(()), Ok(()), Ok(())]);
    assert_eq!(transcript.take(), None);
}

#[test]
fn a_process_that_dies_before_it_could_save_loses_nothing() {
    let transcript = check(&[&first_login()]);
    transcript.0.lock().unwrap().now += Duration::from_secs(3600);
    transcript.more(&renews("r-1", &gives("t-2", r#","refresh_token":"r-2""#)));
    {
        let oauth = transcript.process();
        let mut dies = oauth.headers(Target { method: "POST", url: SERVER });
        let mut context = Context::from_waker(Waker::noop());
        // The request is in flight: the response will never be read.
        assert!(dies.as_mut().poll(&mut context).is_pending());
        assert!(transcript.0.lock().unwrap().locked.len() == 1);
    }
    assert!(transcript.0.lock().unwrap().locked.is_empty());
    assert_eq!(transcript.kept("token")["refresh"], "r-1");
    transcript.more("call");
    transcript.0.lock().unwrap().script.rotate_right(1);
    transcript.more("> MCP Bearer t-2\n< 200\n= 200");
    play(&transcript, |it| it);
    assert_eq!(transcript.kept("token")["refresh"], "r-2");
}

#[test]
fn leaving_gives_tokens_back_and_forgets_them() {
    let more = r#","revocation_endpoint":"https://id.example/revoke""#;
    let transcript = check(&[
        "login\n",
        &resource(""),
        &issuer(more),
        REGISTER,
        VISIT,
        EXCHANGE,
        "= login https://id.example
            logout
            > POST https://id.example/revoke token=r-1 token_type_hint=refresh_token client_id=c-1
            < 503
            > POST https://id.example/revoke token=t-1 token_type_hint=access_token client_id=c-1
            < failed It hung up.
            = logout
            logout
            = logout
            call
            > MCP -
            < 200
            = 200",
    ]);
    assert!(transcript.names().is_empty());
}

#[test]
fn logins_can_be_listed() {
    let transcript = check(&[&first_login()]);
    let login = run(transcript.process().status()).unwrap().unwrap();
    assert_eq!((&*login.server, &*login.issuer), (SERVER, "https://id.example"));
    assert_eq!((&*login.resource, &*login.client_id), (SERVER, "c-1"));
    assert!(login.renews && !login.is_bound && login.subject.is_none());
    assert_eq!(login.expires, Some(transcript.now() + Duration::from_secs(3600)));
    assert_eq!(run(OAuth::kept(&transcript)).unwrap(), [login]);
    // An unreadable entry counts as absent.
    transcript.0.lock().unwrap().vault.values_mut().for_each(|it| it.truncate(3));
    assert_eq!(run(OAuth::kept(&transcript)).unwrap(), []);
    assert_eq!(run(transcript.process().status()).unwrap(), None);
}

#[test]
fn what_cannot_be_kept_is_not_spent() {
    check(&[
        &first_login(),
        "wait 3600\nfull\ncall\n! The disk is full.\nroom\ncall\n",
        &renews("r-1", &gives("t-2", r#","refresh_token":"r-2""#)),
        "> MCP Bearer t-2\n< 200\n= 200",
    ]);
}
