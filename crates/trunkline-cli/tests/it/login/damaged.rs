//! Files of logins that hold something else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use trunkline_authority::Settings;

use super::place::Place;

/// Changes the files whose names begin so.
fn change(place: &Place, kind: &str, to: impl Fn(&[u8]) -> Vec<u8>) {
    let mut found = 0;
    for file in place.files() {
        let bytes = fs::read(&file).unwrap();
        if bytes.starts_with(kind.as_bytes()) {
            let end = bytes.iter().position(|it| *it == b'\n').unwrap();
            fs::write(&file, to(&bytes[..=end])).unwrap();
            found += 1;
        }
    }
    assert!(found > 0, "there is a {kind}");
}

#[tokio::test]
async fn what_is_no_text_is_told_forgotten_and_replaced() {
    let place = Place::open("bytes", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    let other = Place::open("bytes", Settings::new().approve_as("bob")).await;
    for kind in ["cli ", "login ", "token ", "client "] {
        for keeps_name in [true, false] {
            let case = format!("{kind}{keeps_name}");
            assert_eq!(place.login(&["login", "--no-browser", url]).await.code, 0, "{case}");
            let break_it = || {
                change(&place, kind, |name| match keeps_name {
                    true => [name, b"{\"server\":\"\xff\xfe\"}"].concat(),
                    false => b"\xff\xfe\x00\n\x80".to_vec(),
                });
            };
            break_it();
            let found = place.run(&["whoami"]).await;
            assert_eq!(found.code, 0, "{case}: {}", found.stderr);
            if kind == "cli " || !keeps_name {
                assert!(found.stderr.contains("cannot be understood"), "{case}: {}", found.stderr);
            }
            let found = place.login(&["login", "--no-browser", url]).await;
            assert_eq!(found.code, 0, "{case}: {}", found.stderr);
            assert_eq!(place.run(&["call", "whoami", url]).await.stdout, "alice\n", "{case}");

            break_it();
            assert_eq!(place.run(&["logout", url]).await.code, 0, "{case}");
            let found = place.login(&["login", "--no-browser", url]).await;
            assert_eq!(found.code, 0, "{case}: {}", found.stderr);
            break_it();
            let found = place.run(&["logout", "--all"]).await;
            assert_eq!(found.code, 0, "{case}: {}", found.stderr);
            let is_token = |it: &String| it.starts_with("token ");
            assert!(!place.texts().iter().any(is_token), "{case}: a token is left");
            let found = place.run(&["whoami"]).await;
            assert!(found.stdout.starts_with("Nobody is logged in"), "{case}: {}", found.stdout);
            assert_eq!(found.stderr, "", "{case}");
        }
    }

    // One that is damaged hides no other.
    assert_eq!(place.login(&["login", "--no-browser", url]).await.code, 0);
    change(&place, "cli ", |name| [name, b"\xff"].concat());
    let login = ["login", "--no-browser", &*other.url];
    assert_eq!(place.login(&login).await.code, 0);
    let found = place.run(&["whoami"]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stdout.contains("  as        bob\n"), "{}", found.stdout);
    assert!(
        found.stderr.contains(&format!("login to `{url}` cannot be understood.")),
        "{}",
        found.stderr
    );
}

#[tokio::test]
async fn a_pipe_keeps_nobody_waiting() {
    let place = Place::open("pipe", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    assert_eq!(place.login(&["login", "--no-browser", url]).await.code, 0);
    let files = place.files();
    let is_profile = |it: &&std::path::PathBuf| fs::read(it).unwrap().starts_with(b"cli ");
    let file = files.iter().find(is_profile).unwrap();
    fs::remove_file(file).unwrap();
    assert!(Command::new("mkfifo").arg(file).status().unwrap().success());
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    for verb in [&["whoami"][..], &["call", "whoami", url], &["login", url], &["logout", "--all"]] {
        let found = place.run(verb).await;
        assert_eq!(found.code, 3, "{verb:?}: {}", found.stderr);
        assert!(found.stderr.contains("is no ordinary file. Remove it"), "{}", found.stderr);
    }
}
