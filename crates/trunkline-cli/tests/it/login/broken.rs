//! Logins that cannot be kept or read, servers that want none, and command lines that make no sense.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use tokio::net::TcpListener;
use trunkline::Server;
use trunkline_authority::Settings;

use super::place::{Place, mode};
use crate::run::run;

#[tokio::test]
async fn logins_are_for_their_owner_alone() {
    let place = Place::open("modes", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    assert_eq!(place.login(&["login", "--no-browser", url]).await.code, 0);
    assert_eq!(mode(&place.folder), 0o700);
    let files = place.files();
    assert!(files.len() >= 4, "{files:?}");
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    for file in &files {
        fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
    }
    for verb in [&["whoami"][..], &["call", "whoami"]] {
        let found = place.run(&[verb, &[url]].concat()).await;
        assert_eq!(found.code, 3, "{}", found.stderr);
        assert!(found.stderr.contains("others may read or change it"), "{}", found.stderr);
        assert!(found.stderr.contains("chmod 600"), "{}", found.stderr);
        assert_eq!(found.stdout, "");
    }
    fs::set_permissions(&place.folder, Permissions::from_mode(0o755)).unwrap();
    let found = place.run(&["login", "--no-browser", url]).await;
    assert_eq!(found.code, 3, "{}", found.stderr);
    assert!(found.stderr.contains("chmod 700"), "{}", found.stderr);
}

#[tokio::test]
async fn a_login_that_is_damaged_is_told_and_can_be_made_anew() {
    let place = Place::open("damaged", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    assert_eq!(place.login(&["login", "--no-browser", url]).await.code, 0);
    let break_all = |kind: &str| {
        for file in place.files() {
            let text = fs::read_to_string(&file).unwrap();
            let name = text.lines().next().unwrap();
            if name.starts_with(kind) {
                fs::write(&file, format!("{name}\n{{\"half")).unwrap();
            }
        }
    };
    break_all("token ");
    let found = place.run(&["call", "whoami", url]).await;
    assert_eq!(found.code, 3, "{}", found.stderr);
    assert!(found.stderr.contains(&format!("`trunkline login {url}`")), "{}", found.stderr);
    let found = place.run(&["whoami", url]).await;
    assert!(found.stdout.contains("has ended; log in again"), "{}", found.stdout);

    break_all("cli ");
    for verb in [&["whoami"][..], &["call", "whoami"]] {
        let found = place.run(&[verb, &[url]].concat()).await;
        assert_eq!(found.code, 3, "{}", found.stderr);
        assert!(found.stderr.contains("cannot be understood"), "{}", found.stderr);
        assert!(found.stderr.contains(&format!("`trunkline logout {url}`")), "{}", found.stderr);
    }
    assert_eq!(place.run(&["logout", url]).await.code, 0);
    let found = place.login(&["login", "--no-browser", url]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert_eq!(place.run(&["call", "whoami", url]).await.stdout, "alice\n");
}

#[tokio::test]
async fn a_server_that_wants_no_login() {
    let place = Place::open("open", Settings::new()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let http = Server::builder("open", "1.0.0").build().http();
    let serving = tokio::spawn(async move { http.serve(listener, std::future::pending()).await });
    let found = place.run(&["login", "--no-browser", &url]).await;
    assert_eq!(found.code, 4, "{}", found.stderr);
    assert!(found.stderr.contains("lets clients in without a login"), "{}", found.stderr);
    assert_eq!(place.run(&["ping", &url]).await.code, 0);
    serving.abort();
    let nobody = place.run(&["login", "http://127.0.0.1:9/mcp"]).await;
    assert_eq!(nobody.code, 3, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("cannot be reached"), "{}", nobody.stderr);
}

#[test]
fn command_lines_that_make_no_sense() {
    let cases: [(&[&str], &str); 8] = [
        (&["login"], "URL"),
        (&["login", "demo"], "http:// or https://"),
        (&["login", "--client-secret", "-", "http://a/"], "--client-id"),
        (&["login", "--client-credentials", "http://a/"], "--client-id"),
        (&["login", "--port", "0", "http://a/"], "0 is not in"),
        (&["login", "--port", "80", "--redirect-uri", "http://a/", "http://a/"], "--redirect-uri"),
        (&["logout"], "--all"),
        (&["logout", "--all", "http://a/"], "--all"),
    ];
    for (args, part) in cases {
        let found = run(args);
        assert_eq!(found.code, 2, "{args:?}: {}", found.stderr);
        assert!(found.stderr.contains(part), "{args:?}: {}", found.stderr);
    }
    let alg = ["--private-key", "k.pem", "--alg", "HS256", "--client-credentials", "--client-id"];
    let found = run(&[&["login"], &alg[..], &["a", "http://a/"]].concat());
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains("choose one of RS256, "), "{}", found.stderr);
}
