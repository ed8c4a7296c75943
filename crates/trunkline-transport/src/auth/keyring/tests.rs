//! Fake keyrings: scripts that keep their input in a file.

use std::sync::Mutex;

use super::*;

/// A temporary folder with a keyring in it.
struct Temp(PathBuf);

impl Temp {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("trunkline-keyring-{}", random_name()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn vault(&self, script: &str, tool: fn(Vec<String>) -> Tool) -> KeyringVault {
        let path = self.0.join("tool");
        std::fs::write(&path, script).unwrap();
        let program = vec!["sh".to_owned(), path.to_str().unwrap().to_owned()];
        KeyringVault::with(self.0.join("logins"), tool(program))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SECRET_TOOL: &str = r#"
here="${0%/*}"
echo "$*" >> "$here/calls"
case "$*" in
    "lookup service trunkline account logins") cat "$here/key" 2>/dev/null || exit 1 ;;
    "store --label=trunkline: the key of logins service trunkline account logins") cat > "$here/key" ;;
    *) echo "What is $*?" >&2; exit 2 ;;
esac
"#;

const SECURITY: &str = r#"
here="${0%/*}"
echo "$*" >> "$here/calls"
case "$*" in
    "find-generic-password -s trunkline -a logins -w")
        [ -f "$here/key" ] || { echo "could not be found" >&2; exit 44; }
        cat "$here/key" ;;
    "-i") read -r add u s service a account w key
        [ "$add $u $s $service $a $account $w" = "add-generic-password -U -s trunkline -a logins -w" ] || exit 1
        echo "$key" > "$here/key" ;;
    *) exit 2 ;;
esac
"#;

#[tokio::test]
async fn a_login_is_sealed_with_the_key_of_the_keyring() {
    for (script, tool) in
        [(SECRET_TOOL, Tool::Secret as fn(Vec<String>) -> Tool), (SECURITY, Tool::Security)]
    {
        let temp = Temp::new();
        let vault = temp.vault(script, tool);
        assert_eq!(vault.get("a").await, Ok(None));
        vault.put("a", "a long secret").await.unwrap();
        assert_eq!(vault.get("a").await, Ok(Some("a long secret".to_owned())));

        let again = temp.vault(script, tool);
        assert_eq!(again.get("a").await, Ok(Some("a long secret".to_owned())));
        assert_eq!(again.names().await, Ok(vec!["a".to_owned()]));
        drop(again.lock("a").await.unwrap());

        let key = temp.read("key");
        assert_eq!(key.trim().len(), 64, "{key}");
        let calls = temp.read("calls");
        assert_eq!(calls.lines().count(), 4, "once per process it is asked: {calls}");
        assert!(!calls.contains(key.trim()), "others can read arguments");
        for entry in std::fs::read_dir(temp.0.join("logins/sealed")).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(!text.contains("secret"), "{text}");
        }

        again.remove("a").await.unwrap();
        assert_eq!(vault.get("a").await, Ok(None));
    }
}

#[tokio::test]
async fn a_text_sealed_with_another_key_is_no_login() {
    let temp = Temp::new();
    temp.vault(SECRET_TOOL, Tool::Secret).put("a", "text").await.unwrap();
    std::fs::remove_file(temp.0.join("key")).unwrap();
    let vault = temp.vault(SECRET_TOOL, Tool::Secret);
    assert_eq!(vault.get("a").await, Ok(None));
    vault.put("a", "new").await.unwrap();
    assert_eq!(vault.get("a").await, Ok(Some("new".to_owned())));
}

#[tokio::test]
async fn an_unusable_keyring_is_reported_and_plain_files_are_used() {
    for (script, why) in [
        ("echo 'Cannot autolaunch D-Bus.' >&2; exit 1", "`sh` says: Cannot autolaunch D-Bus"),
        ("exit 3", "`sh` ended with the status 3"),
        ("kill -9 $$", "`sh` was killed"),
        ("[ \"$1\" = store ] || { echo no key; }", "it does not give back what it was given"),
        ("[ \"$1\" = store ] || exit 1", "it does not give back what it was given"),
    ] {
        let temp = Temp::new();
        let expected = format!("The keyring cannot be used: {why}. Unlock it, or use files.");
        let vault = temp.vault(script, Tool::Secret);
        assert_eq!(vault.get("a").await, Err(VaultError(expected.clone())));

        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let vault = vault.or_files(move |why| heard.lock().unwrap().push(why.to_owned()));
        vault.put("a", "text").await.unwrap();
        assert_eq!(vault.get("a").await, Ok(Some("text".to_owned())));
        let folder = temp.0.join("logins");
        let word = format!("Logins are kept in `{}`, readable by you alone.", folder.display());
        assert_eq!(*told.lock().unwrap(), [format!("{expected} {word}")]);
        assert_eq!(FileVault::new(folder).get("a").await, Ok(Some("text".to_owned())));
    }
    let nobody = Tool::Secret(vec!["no-such-tool".to_owned()]);
    let temp = Temp::new();
    let vault = KeyringVault::with(temp.0.join("logins"), nobody);
    let why = vault.get("a").await.unwrap_err().to_string();
    assert!(why.contains("`no-such-tool` does not start: No such file"), "{why}");
}

#[tokio::test]
async fn a_keyring_that_is_locked_for_once_does_not_make_plain_files_of_sealed_logins() {
    let temp = Temp::new();
    temp.vault(SECRET_TOOL, Tool::Secret).put("a", "text").await.unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let locked = temp.vault("exit 3", Tool::Secret);
    let locked = locked.or_files(move |why| heard.lock().unwrap().push(why.to_owned()));
    let expected = format!(
        "The keyring cannot be used: `sh` ended with the status 3. Unlock it, or use files. \
         The logins in `{}` are sealed with its key; without it, remove them and log in anew.",
        temp.0.join("logins/sealed").display()
    );
    assert_eq!(locked.get("a").await, Err(VaultError(expected.clone())));
    assert_eq!(locked.put("a", "other").await, Err(VaultError(expected)));
    assert!(told.lock().unwrap().is_empty());
    assert_eq!(FileVault::new(temp.0.join("logins")).names().await, Ok(vec![]));

    // The same vault after the keyring was unlocked.
    std::fs::write(temp.0.join("tool"), SECRET_TOOL).unwrap();
    assert_eq!(locked.get("a").await, Ok(Some("text".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_keyring_that_stays_locked_is_not_waited_for_without_end() {
    let temp = Temp::new();
    let vault = temp.vault("exec sleep 1000", Tool::Secret);
    let why = vault.get("a").await.unwrap_err().to_string();
    assert!(why.contains("`sh` did not end within 60 s"), "{why}");
}

#[test]
fn a_key_is_64_hexadecimal_digits() {
    let digits = "00ff".repeat(16);
    let expected: Vec<u8> = [0, 255].repeat(16);
    assert_eq!(key_of(&format!("{digits}\n")).unwrap(), *expected);
    for wrong in ["", "00", &digits[1..], &"+1".repeat(32), &"ü".repeat(32)] {
        assert_eq!(key_of(wrong), None, "{wrong}");
    }
}
