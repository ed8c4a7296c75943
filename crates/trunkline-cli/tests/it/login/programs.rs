//! Programs of the machine that a login uses: the one that opens pages, and the keyring.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use trunkline_authority::Settings;

use super::place::{Place, pages};

/// A folder with programs that stand in for those of a desktop.
struct Desktop(String);

impl Desktop {
    fn new(name: &str, programs: &[(&str, &str)]) -> Self {
        let folder =
            format!("{}/desktop-{name}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        for (name, script) in programs {
            let path = format!("{folder}/{name}");
            fs::write(&path, format!("#!/bin/sh\n{}\n", script.replace("FOLDER", &folder)))
                .unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    /// The only programs there are, beside a shell's.
    fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.0)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(Path::new(&self.0).join(name)).unwrap()
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_browser_is_opened_with_the_page_alone() {
    let opener = r#"echo "$# $1" > FOLDER/opened"#;
    let desktop = Desktop::new("browser", &[("xdg-open", opener), ("open", opener)]);
    let opened = Path::new(&desktop.0).join("opened");
    assert!(Command::new("mkfifo").arg(&opened).status().expect("it is installed").success());
    let place = Place::open("opened", Settings::new().approve_as("alice")).await;
    let mut login = place.start_with(&["login", &place.url], &[("PATH", &desktop.path())]);
    let page = login.page().await;
    let told = tokio::task::spawn_blocking(|| fs::read_to_string(opened).unwrap()).await.unwrap();
    assert_eq!(told, format!("1 {page}\n"));
    pages(&page).await;
    let found = login.end().await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stderr.contains("If no browser opens, open this page"), "{}", found.stderr);
    assert!(!found.stderr.contains("Paste"), "nobody sits at a terminal: {}", found.stderr);
}

#[tokio::test]
async fn a_login_may_lie_in_the_keyring() {
    let secret_tool = r#"
        case "$1" in
            store) cat > FOLDER/key ;;
            lookup) test -f FOLDER/key && cat FOLDER/key ;;
        esac"#;
    let desktop = Desktop::new("keyring", &[("secret-tool", secret_tool)]);
    let place = Place::open("keyring", Settings::new().approve_as("alice")).await;
    let (url, path) = (&*place.url, desktop.path());
    let with = [("PATH", &*path)];
    let mut login = place.start_with(&["login", "--keyring", "--no-browser", url], &with);
    pages(&login.page().await).await;
    let found = login.end().await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stdout.contains("sealed by the keyring"), "{}", found.stdout);
    assert_eq!(desktop.text("key").len(), 64);
    assert!(place.texts().iter().all(|it| !it.contains("eyJ")), "no token lies open");
    let found = place.start_with(&["call", "whoami", url], &with).end().await;
    assert_eq!((found.code, &*found.stdout), (0, "alice\n"), "{}", found.stderr);

    let nowhere = Desktop::new("nowhere", &[("secret-tool", "echo 'It is locked.' >&2; exit 1")]);
    let locked = nowhere.path();
    let found = place.start_with(&["call", "whoami", url], &[("PATH", &*locked)]).end().await;
    assert_eq!(found.code, 3, "{}", found.stderr);
    assert!(found.stderr.contains("The keyring cannot be used"), "{}", found.stderr);
    let found = place.start_with(&["logout", url], &with).end().await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(place.texts().is_empty(), "nothing is left");
}
