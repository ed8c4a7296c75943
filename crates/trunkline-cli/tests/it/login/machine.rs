//! Programs that log in for themselves.

use std::fs;

use trunkline::auth::jose::{Algorithm, SigningKey};
use trunkline::server::protect::Jwks;
use trunkline_authority::{Client, Settings};

use super::place::Place;

#[tokio::test]
async fn a_program_logs_in_with_a_secret_that_nobody_sees() {
    let client = Client::new("nightly").secret("s3cret");
    let place = Place::open("secret", Settings::new().client(client)).await;
    let url = &*place.url;
    let login = ["login", "--client-credentials", "--client-id", "nightly"];
    let unnamed = place.start_with(
        &[&login[..], &["--client-secret", "env:KEY", url]].concat(),
        &[("KEY", "s3cret")],
    );
    let found = unnamed.end().await;
    let issuer = place.authority.issuer();
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains(&format!("set `{issuer}` as their issuer")), "{}", found.stderr);
    let login = [&login[..], &["--issuer", issuer, "--client-secret"]].concat();
    let run = |from| place.start_with(&[&login[..], &[from, url]].concat(), &[("KEY", "s3cret")]);
    let found = run("env:KEY").end().await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(!found.stderr.contains("browser"), "{}", found.stderr);
    assert!(found.stdout.contains("  client    nightly\n"), "{}", found.stdout);
    assert!(found.stdout.contains(", and renews itself\n"), "{}", found.stdout);
    let tokens = place.authority.stats().tokens;
    let found = place.run(&["call", "whoami", url]).await;
    assert_eq!((found.code, &*found.stdout), (0, "client:nightly\n"), "{}", found.stderr);
    assert_eq!(place.authority.stats().tokens, tokens, "the one that is kept was used");

    place.change_token(|token| {
        token["expires"] = 1.into();
        token["renew"] = 1.into();
    });
    let found = place.run(&["call", "whoami", url]).await;
    assert_eq!((found.code, &*found.stdout), (0, "client:nightly\n"), "{}", found.stderr);
    assert_eq!(place.authority.stats().tokens, tokens + 1, "it asked anew, with what it keeps");

    let mut login = run("-");
    login.type_line("s3cret").await;
    assert_eq!(login.end().await.code, 0);
    let found = run("env:NOT_THERE").end().await;
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains("`NOT_THERE` cannot be read"), "{}", found.stderr);
    let found = run("s3cret").end().await;
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains("env:NAME, file:PATH, or - for stdin"), "{}", found.stderr);
    let mut login = run("-");
    login.type_line("wrong").await;
    let found = login.end().await;
    assert_eq!(found.code, 4, "{}", found.stderr);
    assert!(found.stderr.contains("invalid_client"), "{}", found.stderr);

    assert_eq!(place.run(&["logout", url]).await.code, 0);
    assert!(place.texts().is_empty(), "the secret is forgotten too");
}

#[tokio::test]
async fn a_program_logs_in_with_its_own_key() {
    let key = SigningKey::from_pem(KEY, Algorithm::ES256).unwrap();
    let client = Client::new("nightly").keys(Jwks::new([key.public().clone()]));
    let place = Place::open("key", Settings::new().client(client)).await;
    let url = &*place.url;
    let file = format!("{}/key-{}.pem", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    fs::write(&file, KEY).unwrap();
    let login = ["login", "--client-credentials", "--client-id", "nightly", "--private-key"];
    let found = place.run(&[&login[..], &[&*file, url]].concat()).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert_eq!(place.run(&["call", "whoami", url]).await.stdout, "client:nightly\n");

    let found = place.run(&[&login[..], &[&*file, "--alg", "RS256", url]].concat()).await;
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains("holds no key that can be used"), "{}", found.stderr);
    fs::remove_file(&file).unwrap();
    let found = place.run(&["call", "whoami", url]).await;
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains("cannot be read"), "{}", found.stderr);
    let found = place.run(&["logout", url]).await;
    assert!(place.texts().iter().all(|it| !it.starts_with("cli ")), "{}", found.stderr);
}

/// Made for this test; nothing is protected by it.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgFrtuy4E6YTTNlM3L
jbaZi+NrpDP3ZyhRjiKDmWsKffqhRANCAAS8Iw+wFAi3XMZawm/YmE3BYK+CNqXv
XgtMlaey06aF3mwnUR8t3V5Vwai78WXozxSg3dyIO2A2UBnla1OpFPDo
-----END PRIVATE KEY-----
";
