//! Who gets secrets and tokens.

use super::machine::{BASIC, GIVES, enterprise, report, start};
use super::refresh::{gives, renews};
use super::*;
use crate::client::{ClientAuth, Grant, TokenSource};
use crate::jose::{Algorithm, SigningKey};

const ASKS: &str = "> POST https://id.example/token grant_type=client_credentials *\n";
const UNNAMED: &str = "! `https://mcp.example/mcp` says that its logins are those of \
    `https://id.example`, and the set-up does not say whom the client's credentials are for. They \
    were not sent: if that is who gave them out, set `https://id.example` as their issuer.";

fn workload() -> Grant {
    let (client, assertion) = (ClientAuth::public("build-7"), TokenSource::fixed("jwt"));
    Grant::Assertion { client, assertion }
}

#[test]
fn secrets_are_not_for_whomever_a_server_names() {
    for grant in [report(), workload(), Grant::Enterprise(enterprise())] {
        let transcript =
            check_with(|it| it.grant(grant.clone()), &[&*start(BASIC), UNNAMED].concat());
        assert!(transcript.names().is_empty());
    }
    check_with(
        |it| it.client_id("given").client_secret("s3cret"),
        &["login\n", &resource(""), &*issuer(""), UNNAMED].concat(),
    );
    // A key signs for one issuer only, and a client id is no secret.
    let key = || ClientAuth::private_key("report", SigningKey::generate());
    for client in [key(), ClientAuth::public("report")] {
        let grant = || Grant::ClientCredentials(client.clone());
        check_with(|it| it.grant(grant()), &[&*start(""), ASKS, GIVES].concat());
    }
}

#[test]
fn credentials_are_bound_before_they_are_first_sent_and_stay_so() {
    let moved = [&resource(""), &*issuer(BASIC)].concat().replace("https://id", "https://new");
    let error = "! The client's credentials are those of `https://id.example`, but \
        `https://mcp.example/mcp` now names `https://new.example`. *\n";
    let call = "background\n> MCP -\n< 401 Bearer\n";
    // An issuer that got them and does not answer still has them.
    let transcript = check_with(
        |it| it.grant(report()).trust_first_issuer(),
        &[
            &start(BASIC),
            ASKS,
            "< 500\n! `https://id.example` answers with 500 instead of a token. *\n",
            "process\n",
            call,
            &moved,
            error,
            // An aborted login changes nothing about it.
            &start(BASIC),
            ASKS,
            GIVES,
            "logout\n= logout\nprocess\n",
            call,
            &moved,
            error,
        ]
        .concat(),
    );
    assert_eq!(transcript.names(), ["issuer machine:report https://mcp.example/mcp"]);
    // A bound issuer need not be trusted again.
    transcript.more(&[&*start(BASIC), ASKS, GIVES].concat());
    play(&transcript, |it| it.grant(report()));
    // The set-up takes precedence, and needs nothing stored.
    let token = "> POST https://new.example/token *\n";
    let script = [call, &*moved, token, GIVES, "logout\n= logout"].concat();
    let transcript = check_with(|it| it.grant(report()).for_issuer("https://new.example"), &script);
    assert!(transcript.names().is_empty());
}

#[test]
fn a_login_of_another_issuer_than_the_named_one_is_not_used() {
    let transcript = check_with(
        |it| it.grant(report()).for_issuer("https://id.example"),
        &[&*start(BASIC), ASKS, GIVES].concat(),
    );
    transcript.more("background\n> MCP -\n< 200\n= 200\nlogout\n= logout");
    play(&transcript, |it| it.grant(report()).for_issuer("https://new.example"));
}

#[test]
fn a_machine_gives_its_tokens_back_too() {
    let revokes = r#","revocation_endpoint":"https://id.example/revoke""#;
    let pkcs8 = SigningKey::generate().pkcs8().to_vec();
    let key = || SigningKey::from_pkcs8(&pkcs8, Algorithm::ES256).unwrap();
    let machine = |client| Grant::ClientCredentials(client);
    for (grant, listed, proof) in [
        (report(), BASIC, "[basic report:s3cret]"),
        (
            machine(ClientAuth::private_key("report", key())),
            "",
            "client_assertion_type=* client_assertion=*.*.*",
        ),
        (machine(ClientAuth::public("report")), "", "client_id=report"),
    ] {
        let revoke = format!(
            "logout
            > POST https://id.example/revoke token=t-1 token_type_hint=access_token {proof}
            < 200
            = logout"
        );
        check_with(
            |it| it.grant(grant.clone()).for_issuer("https://id.example"),
            &[&start(&[listed, revokes].concat()), ASKS, GIVES, "process\n", &revoke].concat(),
        );
    }
}

#[test]
fn who_leaves_while_tokens_are_renewed_gives_the_new_ones_back() {
    let revokes = r#","revocation_endpoint":"https://id.example/revoke""#;
    let transcript = check(&[&first_login().replace(&issuer(""), &issuer(revokes))]);
    transcript.0.lock().unwrap().now += Duration::from_secs(3600);
    transcript.more(&renews("r-1", &gives("t-2", r#","refresh_token":"r-2""#)));
    transcript.more(
        "> POST https://id.example/revoke token=r-2 *
        < 200
        > POST https://id.example/revoke token=t-2 *
        < 200",
    );
    let (one, two) = (transcript.process(), transcript.process());
    let to = Target { method: "POST", url: SERVER };
    let renews = async { one.headers(to).await.map(drop).map_err(|it| it.why) };
    let leaves = async { two.logout().await.map_err(words) };
    assert_eq!(run_all(vec![Box::pin(renews), Box::pin(leaves)]), [Ok(()), Ok(())]);
    assert_eq!(transcript.take(), None);
    assert!(transcript.names().is_empty());
}

#[test]
fn a_client_that_is_refused_keeps_its_refresh_token() {
    for code in ["invalid_client", "unauthorized_client", "unsupported_grant_type"] {
        let no = format!(r#"401 {{"error":"{code}"}}"#);
        let transcript = check(&[
            &first_login(),
            "wait 3600\nbackground\n",
            &renews("r-1", &no),
            "> MCP -\n< 401 Bearer
                ! `https://mcp.example/mcp` wants a login. Log in to it and try again.
                background\n",
            // It was their mistake, which they have corrected.
            &renews("r-1", &gives("t-2", r#","refresh_token":"r-2""#)),
            "> MCP Bearer t-2\n< 200\n= 200",
        ]);
        assert_eq!(transcript.kept("token")["refresh"], "r-2");
    }
}

#[test]
fn tokens_are_not_sent_where_others_can_listen() {
    let transcript = Transcript::new("");
    let at = |url: &str| {
        let transcript = Arc::new(transcript.clone());
        let (fetch, vault) = (Arc::clone(&transcript), Arc::clone(&transcript));
        OAuth::new(url).fetch(fetch).vault(vault).browser(transcript)
    };
    let url = "http://mcp.example/mcp";
    let why = "`http://mcp.example/mcp` is reached over `http`, where whoever is between could read \
        the token and use it. Nobody was asked to log in; use its `https` URL, or allow tokens over \
        `http` in the set-up.";
    assert_eq!(run(at(url).login()).unwrap_err(), AuthError::Untrusted(why.to_owned()));
    let (to, sent) = (Target { method: "POST", url }, Vec::new());
    let refusal = Refused { status: 401, challenges: &[], sent: &sent, times: 1 };
    assert_eq!(run(at(url).refused(to, refusal, None)), Err(Denied::new(why)));
    // An existing login is not sent either.
    let kept = check(&[&first_login()]);
    let moved =
        |(name, text): (&String, &String)| (name.replace(SERVER, url), text.replace(SERVER, url));
    let moved = kept.0.lock().unwrap().vault.iter().map(moved).collect();
    transcript.0.lock().unwrap().vault = moved;
    assert_eq!(run(at(url).headers(to)), Ok(Vec::new()));
    let headers = run(at(url).allow_insecure().headers(to)).unwrap();
    assert_eq!(headers, [("authorization", "Bearer t-1".to_owned())]);
    for (url, expected) in [
        ("https://mcp.example/mcp", true),
        ("http://localhost:3000/mcp", true),
        ("http://127.0.0.1/mcp", true),
        ("http://[::1]:3000/mcp", true),
        ("http://10.0.0.7/mcp", true),
        ("http://1.1.1.1/mcp", false),
        ("http://169.254.169.254/mcp", false),
        ("http://localhost.evil.example/mcp", false),
        ("http://10.0.0.7.evil.example/mcp", false),
    ] {
        assert_eq!(OAuth::new(url).is_safe(), expected, "{url}");
    }
}

#[test]
fn what_a_document_says_is_not_repeated() {
    for (body, why) in [
        (
            r#"{"resource":7,"a":"s3cret"}"#,
            "something is missing, or of the wrong kind, at line 1 column 13",
        ),
        (
            r#"{"resource":["s3cret"]}"#,
            "something is missing, or of the wrong kind, at line 1 column 12",
        ),
        (r#""s3cret""#, "something is missing, or of the wrong kind, at line 1 column 8"),
        ("s3cret", "it is no JSON at line 1 column 1"),
    ] {
        check(&[&format!(
            "call\n> MCP -\n< 401 Bearer resource_metadata=\"https://mcp.example/m\"
                > GET https://mcp.example/m
                < 200 {body}
                > GET https://mcp.example/.well-known/oauth-protected-resource/mcp
                < 404
                > GET https://mcp.example/.well-known/oauth-protected-resource
                < 404
                ! What is at `https://mcp.example/m` does not say who protects the server: {why}."
        )]);
    }
}

#[test]
fn a_document_under_a_path_is_not_about_what_is_above() {
    let document =
        r#"{"resource":"https://mcp.example/","authorization_servers":["https://id.example"]}"#;
    let above = |at: &str| format!("> GET {at}\n< 200 {document}\n");
    let root = "https://mcp.example/.well-known/oauth-protected-resource";
    let path = format!("{root}/mcp");
    let error = "! `https://mcp.example/mcp` wants tokens for `https://mcp.example/`, which is not itself. *";
    check(&["call\n> MCP -\n< 401 Bearer\n", &above(&path), error]);
    // Where the server names the place, or at its root, it is.
    let rest = [
        &issuer(""),
        REGISTER,
        VISIT,
        &*EXCHANGE.replace("k-1 *", "k-1 *resource=https://mcp.example/ *"),
        "> MCP Bearer t-1\n< 200\n= 200\n",
    ]
    .concat();
    let said = format!("call\n> MCP -\n< 401 Bearer resource_metadata=\"{path}\"\n");
    check(&[&*said, &above(&path), &rest]);
    let asked = format!("call\n> MCP -\n< 401 Bearer\n> GET {path}\n< 404\n");
    check(&[&*asked, &above(root), &rest]);
}
