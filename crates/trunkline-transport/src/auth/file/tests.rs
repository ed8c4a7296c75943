//! What is in the folder, who may read it, and what killed processes leave behind.

use std::fs::{Permissions, metadata, read_to_string, set_permissions, write};
use std::os::unix::fs::{PermissionsExt, symlink};

use trunkline_auth::tag::random_name;

use super::*;

/// A temporary folder, removed on drop.
struct Temp(PathBuf);

impl Temp {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("trunkline-vault-{}", random_name())))
    }

    fn vault(&self) -> FileVault {
        FileVault::new(self.0.join("in/here"))
    }

    /// The one file with this suffix.
    fn file(&self, ending: &str) -> PathBuf {
        LoginFiles::new(self.vault().folder, NAME, 0).file(ending)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const NAME: &str = "login https://id.example https://mcp.example/../mcp";

/// A vault that keeps a secret.
async fn kept() -> (Temp, FileVault) {
    let temp = Temp::new();
    let vault = temp.vault();
    vault.put(NAME, "secret").await.unwrap();
    (temp, vault)
}

/// Why it refuses everything.
async fn refusals(vault: &FileVault) -> [String; 5] {
    [
        vault.get(NAME).await.err(),
        vault.put(NAME, "").await.err(),
        vault.remove(NAME).await.err(),
        vault.names().await.err(),
        vault.lock(NAME).await.err(),
    ]
    .map(|it| it.unwrap().to_string())
}

#[tokio::test]
async fn texts_are_kept_until_they_are_removed() {
    let temp = Temp::new();
    let vault = temp.vault();
    assert_eq!(vault.get(NAME).await, Ok(None));
    assert_eq!(vault.names().await, Ok(vec![]));
    vault.remove(NAME).await.unwrap();
    vault.put(NAME, "first").await.unwrap();
    vault.put(NAME, "the\nsecond").await.unwrap();
    vault.put("a", "").await.unwrap();
    let other = temp.vault();
    assert_eq!(other.get(NAME).await, Ok(Some("the\nsecond".to_owned())));
    assert_eq!(other.get("a").await, Ok(Some(String::new())));
    assert_eq!(other.names().await, Ok(vec!["a".to_owned(), NAME.to_owned()]));
    other.remove(NAME).await.unwrap();
    assert_eq!(vault.get(NAME).await, Ok(None));
    assert_eq!(vault.names().await, Ok(vec!["a".to_owned()]));
}

#[tokio::test]
async fn only_this_user_can_read_them() {
    let (_temp, vault) = kept().await;
    drop(vault.lock(NAME).await.unwrap());
    let mode = |path: &Path| metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(vault.folder()), 0o700);
    for entry in fs::read_dir(vault.folder()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
    assert!(!format!("{vault:?}").contains("secret"));
}

#[tokio::test]
async fn files_that_others_can_read_are_refused_with_a_sentence() {
    let (temp, vault) = kept().await;

    let file = temp.file("login");
    set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let expected = format!(
        "`{0}` holds logins, and others may read or change it. Take that from them: \
         `chmod 600 '{0}'`; if they may have read it, log in anew.",
        file.display()
    );
    assert_eq!(vault.get(NAME).await, Err(VaultError(expected.clone())));
    assert_eq!(vault.names().await, Err(VaultError(expected)));
    // A new write replaces the file.
    vault.put(NAME, "other").await.unwrap();
    assert_eq!(vault.get(NAME).await, Ok(Some("other".to_owned())));

    set_permissions(vault.folder(), Permissions::from_mode(0o701)).unwrap();
    for why in refusals(&vault).await {
        assert!(why.contains("`chmod 700 '"));
    }
}

#[tokio::test]
async fn files_of_another_user_are_refused_with_a_sentence() {
    let (temp, vault) = kept().await;
    let owner = metadata(vault.folder()).unwrap().uid();
    assert_eq!(current_user().unwrap(), owner);

    let other = FileVault { user: Some(owner + 1), ..temp.vault() };
    let expected = format!(
        "`{}` holds logins, and belongs to another user (uid {owner}). Run this as that user, \
         or keep logins somewhere else.",
        vault.folder().display()
    );
    for why in refusals(&other).await {
        assert_eq!(why, expected);
    }
    // A file is checked by itself, because it may have been moved here.
    let files = LoginFiles::new(Arc::clone(&vault.folder), NAME, owner + 1);
    let why = files.read(&temp.file("login")).unwrap_err().to_string();
    assert!(why.contains(".login` holds logins, and belongs to another user"), "{why}");
    assert_eq!(vault.get(NAME).await, Ok(Some("secret".to_owned())));
}

#[tokio::test]
async fn a_link_is_not_followed() {
    let (temp, vault) = kept().await;
    let elsewhere = temp.0.join("elsewhere");
    fs::rename(temp.file("login"), &elsewhere).unwrap();
    for ending in ["login", "lock"] {
        let _ = fs::remove_file(temp.file(ending));
        symlink(&elsewhere, temp.file(ending)).unwrap();
    }
    let refused = [vault.get(NAME).await.err(), vault.lock(NAME).await.err()];
    for (refused, ending) in refused.into_iter().zip(["login", "lock"]) {
        let expected = format!(
            "`{}` is where logins are kept, and is a link to somewhere else. Remove it, and log in \
             anew.",
            temp.file(ending).display()
        );
        assert_eq!(refused.unwrap().to_string(), expected);
    }
    // A new write creates a regular file.
    vault.put(NAME, "other").await.unwrap();
    assert_eq!(vault.get(NAME).await, Ok(Some("other".to_owned())));
    assert!(read_to_string(&elsewhere).unwrap().ends_with("secret"));
}

#[tokio::test]
async fn leftovers_of_a_killed_process_do_no_harm() {
    let temp = Temp::new();
    let vault = temp.vault();
    vault.put(NAME, "old").await.unwrap();
    write(temp.file("new"), "half a te").unwrap();
    assert_eq!(vault.get(NAME).await, Ok(Some("old".to_owned())));
    assert_eq!(vault.names().await, Ok(vec![NAME.to_owned()]));
    vault.put(NAME, "new").await.unwrap();
    assert!(!temp.file("new").exists());
    assert_eq!(read_to_string(temp.file("login")).unwrap(), format!("{NAME}\nnew"));
    write(temp.file("new"), "half a te").unwrap();
    vault.remove(NAME).await.unwrap();
    assert!(!temp.file("new").exists() && !temp.file("login").exists());
}

#[tokio::test]
async fn a_file_that_holds_something_else_is_no_login() {
    let temp = Temp::new();
    let vault = temp.vault();
    vault.put(NAME, "text").await.unwrap();
    fs::write(temp.file("login"), "other\ntext").unwrap();
    assert_eq!(vault.get(NAME).await, Ok(None));
}

#[tokio::test]
async fn a_file_that_is_not_utf_8_is_no_login_and_hides_no_other() {
    let (temp, vault) = kept().await;
    vault.put("a", "other").await.unwrap();
    write(temp.file("login"), [NAME.as_bytes(), b"\n{\"access\":\"\xff\xfe\"}"].concat()).unwrap();
    assert_eq!(vault.get(NAME).await, Ok(Some(String::new())));
    assert_eq!(vault.names().await, Ok(vec!["a".to_owned(), NAME.to_owned()]));
    write(temp.file("login"), b"\xff\xfe\n\x80").unwrap();
    assert_eq!(vault.get(NAME).await, Ok(None));
    assert_eq!(vault.names().await, Ok(vec!["a".to_owned()]));
    vault.put(NAME, "anew").await.unwrap();
    assert_eq!(vault.get(NAME).await, Ok(Some("anew".to_owned())));
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_is_refused_with_a_sentence() {
    let (temp, vault) = kept().await;
    let pipe = |ending: &str| {
        let path = temp.file(ending);
        let _ = fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&path).status();
        assert!(made.expect("`mkfifo` is there").success());
        format!(
            "`{}` is where logins are kept, and is no ordinary file. Remove it, and log in anew.",
            path.display()
        )
    };
    let why = pipe("login");
    assert_eq!(vault.get(NAME).await, Err(VaultError(why.clone())));
    assert_eq!(vault.names().await, Err(VaultError(why)));
    vault.put(NAME, "anew").await.unwrap();
    assert_eq!(vault.get(NAME).await, Ok(Some("anew".to_owned())), "it is replaced");
    let why = pipe("lock");
    assert_eq!(vault.lock(NAME).await.err(), Some(VaultError(why)));
}

#[test]
fn waiting_for_a_stopped_process_times_out() {
    let temp = Temp::new();
    let mut files = LoginFiles::new(temp.vault().folder, NAME, 0);
    fs::create_dir_all(&files.folder).unwrap();
    let _held = files.begin().unwrap();
    files.patience = Duration::from_millis(20);
    let why = files.begin().unwrap_err().to_string();
    assert!(why.contains("has held the lock `") && why.contains("folder.lock`"), "{why}");
}

#[tokio::test]
async fn one_vault_at_a_time_holds_a_name() {
    let temp = Temp::new();
    let (one, two) = (temp.vault(), Arc::new(temp.vault()));
    let held = one.lock(NAME).await.unwrap();
    let waiting = tokio::spawn({
        let two = Arc::clone(&two);
        async move { two.lock(NAME).await.map(drop) }
    });
    drop(two.lock("another name").await.unwrap());
    // The operating system's lock is taken: the second caller waits for it.
    while !two.locks.is_taken(NAME) {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    drop(held);
    assert_eq!(waiting.await.unwrap(), Ok(()));
}

#[test]
fn the_usual_folder_is_where_such_things_are() {
    let some = |path: &str| Some(PathBuf::from(path));
    for (is_mac, data, home, expected) in [
        (false, None, some("/h"), Some("/h/.local/share/trunkline/logins")),
        (false, some("/d"), some("/h"), Some("/d/trunkline/logins")),
        (false, some("/d"), None, Some("/d/trunkline/logins")),
        (true, some("/d"), some("/h"), Some("/h/Library/Application Support/trunkline/logins")),
        (true, some("/d"), None, None),
        (false, None, None, None),
    ] {
        assert_eq!(usual(is_mac, data, home).ok(), expected.map(PathBuf::from));
    }
}
