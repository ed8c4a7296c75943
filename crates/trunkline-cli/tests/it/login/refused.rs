//! Logins that work and let nobody in, and URLs that hold a secret.

use serde_json::json;
use trunkline::server::protect::Dpop;
use trunkline_authority::Settings;

use super::place::Place;
use crate::gateway_kit::{self, Gateway};
use crate::run::run;

#[tokio::test]
async fn a_token_that_the_server_refuses_is_given_back_and_its_options_are_not_kept() {
    let settings = Settings::new().approve_as("alice");
    let place = Place::open_with("refused", settings, Dpop::Off).await;
    let url = &*place.url;
    let found = place.login(&["login", "--no-browser", "--dpop", url]).await;
    assert_eq!(found.code, 4, "{}", found.stderr);
    let why = format!(
        "The login at `{}` worked, but `{url}` refuses its token, which is bound to a key (DPoP).",
        place.authority.issuer()
    );
    assert!(found.stderr.contains(&why), "{}", found.stderr);
    assert!(!found.stderr.contains("has ended"), "{}", found.stderr);
    let advice = format!("`trunkline login --no-dpop {url}`");
    assert!(found.stderr.contains(&advice), "{}", found.stderr);
    let found = place.run(&["whoami"]).await;
    assert!(found.stdout.starts_with("Nobody is logged in anywhere."), "{}", found.stdout);
    assert_eq!(place.authority.stats().revocations, 1, "the login was given back");

    let found = place.login(&["login", "--no-browser", url]).await;
    assert_eq!(found.code, 0, "what was said in vain is forgotten: {}", found.stderr);
    assert!(!found.stdout.contains("DPoP"), "{}", found.stdout);
    assert_eq!(place.run(&["call", "whoami", url]).await.stdout, "alice\n");
}

#[tokio::test]
async fn a_key_can_be_done_without_again() {
    let place = Place::open("nokey", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    for (option, is_bound) in
        [(None, true), (Some("--no-dpop"), false), (None, false), (Some("--dpop"), true)]
    {
        let line: Vec<_> = ["login", "--no-browser", url].into_iter().chain(option).collect();
        let found = place.login(&line).await;
        assert_eq!(found.code, 0, "{}", found.stderr);
        assert_eq!(found.stdout.contains("(DPoP)"), is_bound, "{option:?}: {}", found.stdout);
    }
}

#[tokio::test]
async fn secrets_in_urls_are_not_shown() {
    let place = Place::open("secrets", Settings::new().approve_as("alice")).await;
    let with_key = format!("{}?api_key=s3cret", place.url);
    let with_user = place.url.replace("http://", "http://me:s3cret@");
    for url in [&*with_key, &*with_user] {
        for verb in ["login", "whoami", "logout", "list", "ping"] {
            for json in [&[][..], &["--json"]] {
                let line = [&[verb], json, &[url]].concat();
                let found = match verb {
                    "login" if url == with_key => {
                        place.login(&[&line[..], &["--no-browser"]].concat()).await
                    }
                    _ => place.run(&line).await,
                };
                for text in [&found.stdout, &found.stderr] {
                    let text = text.replace("%3Fapi_key%3Ds3cret", "");
                    assert!(!text.contains("s3cret"), "{line:?}: {text}");
                }
            }
        }
    }
    let found = run(&["login", "http://me:s3cret@127.0.0.1:9/mcp"]);
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains("names a user or a password"), "{}", found.stderr);
    assert!(found.stderr.contains("Leave out what stands before the `@`"), "{}", found.stderr);
}

#[tokio::test]
async fn a_server_that_takes_given_tokens_alone_says_how_to_give_one() {
    let home = Place::open("given", Settings::new()).await;
    for has_tokens in [true, false] {
        let place = gateway_kit::Place::new("given");
        let words = place.fake("a", &[]);
        let server = json!({ "command": words[0], "args": words[1..] });
        let mut catalog = json!({ "mcpServers": { "a": server } });
        if has_tokens {
            let tokens = json!([{ "name": "alice", "token": "the-long-secret-token-of-alice" }]);
            catalog["gateway"] = json!({ "auth": { "tokens": tokens } });
        }
        place.catalog(&catalog);
        let gateway = Gateway::start(&place).await;
        let url = format!("http://{}/mcp", gateway.address);
        let found = home.run(&["login", "--no-browser", &url]).await;
        assert_eq!(found.code, 4, "{}", found.stderr);
        let why = format!("`{url}` offers no login: it names no authorization server");
        assert!(found.stderr.contains(&why), "{}", found.stderr);
        let how = "`--header 'Authorization: Bearer TOKEN'`";
        assert_eq!(found.stderr.contains(how), has_tokens, "{}", found.stderr);
        let is_open = found.stderr.contains("lets clients in without a login");
        assert_eq!(is_open, !has_tokens, "{}", found.stderr);
    }
}
