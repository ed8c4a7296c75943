//! The URL of a page → a browser that shows it, without a shell in between.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;
use trunkline_auth::address::{Class, Host, class};
use trunkline_auth::url;

use crate::http::client::target::Address;

/// What opens pages: a program and its arguments before the URL.
#[derive(Clone, Debug)]
pub(super) struct Opener(pub(super) Vec<OsString>);

impl Default for Opener {
    fn default() -> Self {
        Self(vec![if cfg!(target_os = "macos") { "open" } else { "xdg-open" }.into()])
    }
}

impl Opener {
    /// Opens a page. The URL is a single argument of the program.
    pub(super) async fn open(&self, page: &str) -> Result<(), String> {
        check(page)?;
        let (program, before) = self.0.split_first().expect("a program has a name");
        let name = program.to_string_lossy().into_owned();
        let advice = "Open the page by hand, or log in without a browser";
        let mut command = Command::new(program);
        command.args(before).arg(page);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = command.spawn();
        let mut child = started
            .map_err(|error| format!("`{name}`, which opens pages, failed: {error}. {advice}."))?;
        let (tell, told) = oneshot::channel();
        // The program may be the browser itself and run for days, so nobody joins this thread.
        std::thread::spawn(move || {
            let _ = tell.send(child.wait().is_ok_and(|it| it.success()));
        });
        match timeout(SOON, told).await {
            Ok(Ok(false)) => Err(format!("`{name}`, which opens pages, failed. {advice}.")),
            _ => Ok(()),
        }
    }
}

/// Whether a page may be opened: over `https`, or over `http` on this machine. Characters that no URL
/// contains may target something other than a browser.
pub(super) fn check(page: &str) -> Result<(), String> {
    let refuse = |why: &str| {
        let page = url::shown(page);
        Err(format!("The page `{page}` is not opened, for {why}. Ask the operator of the server."))
    };
    let is_url = |it: u8| it.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&it);
    if !page.bytes().all(is_url) {
        return refuse("its address holds characters that no URL holds");
    }
    if page.len() > LONGEST {
        return refuse("its address is too long");
    }
    let is_plain = match page {
        _ if page.starts_with("https://") => false,
        _ if page.starts_with("http://") => true,
        _ => return refuse("its address begins with neither `https://` nor `http://`"),
    };
    let Ok(address) = Address::parse(page) else {
        return refuse("its address is no URL, or holds a user name");
    };
    let is_here = match Host::parse(&address.origin.host) {
        Ok(Host::Address(it)) => class(it) == Class::Loopback,
        Ok(Host::Name(name)) => name == "localhost",
        Err(_) => return refuse("its address names no host"),
    };
    if is_plain && !is_here {
        return refuse("it is not encrypted: `http` is for this machine alone");
    }
    Ok(())
}

/// How soon a program fails that cannot open pages.
const SOON: Duration = Duration::from_secs(2);
/// The longest URL of a page.
const LONGEST: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use trunkline_auth::tag::random_name;

    use super::*;

    const GOOD: [&str; 5] = [
        "https://id.example/authorize?response_type=code&state=a%20b",
        "http://127.0.0.1:8080/authorize?x=1",
        "http://localhost/authorize",
        "http://[::1]:9/authorize",
        // A shell would interpret these, but there is none.
        "https://id.example/$(touch+pwned);touch+pwned&'x'*!?a=$HOME;b",
    ];

    #[test]
    fn only_pages_are_opened() {
        for page in GOOD {
            assert_eq!(check(page), Ok(()), "{page}");
        }
        for (page, shown, why) in [
            ("javascript:alert(1)", "javascript:alert(1)", NO_PAGE),
            ("JavaScript://id.example/%0aalert(1)", "JavaScript://id.example/%0aalert(1)", NO_PAGE),
            ("data:text/html,hello", "data:text/html,hello", NO_PAGE),
            ("file:///etc/passwd", "file:///etc/passwd", NO_PAGE),
            ("vscode://x", "vscode://x", NO_PAGE),
            ("-a", "-a", NO_PAGE),
            ("--new-window", "--new-window", NO_PAGE),
            ("", "", NO_PAGE),
            ("HTTPS://id.example/", "HTTPS://id.example/", NO_PAGE),
            (" https://id.example/", " https://id.example/", STRANGE),
            ("https://id.example/\n-a", "https://id.example/-a", STRANGE),
            ("https://id.example/\0", "https://id.example/", STRANGE),
            ("https://id.example/`id`", "https://id.example/`id`", STRANGE),
            ("https://id.example/|id", "https://id.example/|id", STRANGE),
            ("https://id.example/\"", "https://id.example/\"", STRANGE),
            ("https://id.example/<x>", "https://id.example/<x>", STRANGE),
            ("https://id.example\\x", "https://id.example\\x", STRANGE),
            ("https://id.example/ü", "https://id.example/ü", STRANGE),
            ("http://id.example/", "http://id.example/", PLAIN),
            ("http://10.0.0.1/", "http://10.0.0.1/", PLAIN),
            ("http://127.0.0.1.example/", "http://127.0.0.1.example/", PLAIN),
            ("http://localhost.example/", "http://localhost.example/", PLAIN),
            ("https://user@id.example/", "https://id.example/", NO_URL),
            ("https:///x", "https:///x", NO_URL),
            ("https://1.2.3.4.5/", "https://1.2.3.4.5/", "its address names no host"),
        ] {
            let expected = format!(
                "The page `{shown}` is not opened, for {why}. Ask the operator of the server."
            );
            assert_eq!(check(page), Err(expected), "{page}");
        }
        let long = format!("https://id.example/?{}", "x".repeat(LONGEST));
        assert!(check(&long).unwrap_err().contains("its address is too long"));
    }

    #[tokio::test]
    async fn a_page_is_one_argument_and_no_shell_reads_it() {
        let folder = std::env::temp_dir().join(format!("trunkline-open-{}", random_name()));
        std::fs::create_dir(&folder).unwrap();
        let script = folder.join("browser");
        std::fs::write(&script, "printf '%s\\n' \"$#\" \"$@\" > \"${0%/*}/seen\"\n").unwrap();
        let opener = Opener(vec!["sh".into(), script.into()]);
        for page in GOOD {
            opener.open(page).await.unwrap();
            assert_eq!(
                std::fs::read_to_string(folder.join("seen")).unwrap(),
                format!("1\n{page}\n")
            );
        }
        std::fs::remove_file(folder.join("seen")).unwrap();
        assert!(opener.open("javascript:alert(1)").await.unwrap_err().contains(NO_PAGE));
        assert!(!folder.join("seen").exists(), "nobody was started");
        let left: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
        assert_eq!(left.len(), 1, "{left:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn a_missing_browser_is_reported() {
        for (program, expected) in [
            (vec!["no-such-browser"], "`no-such-browser`, which opens pages, failed: No such file"),
            (vec!["false"], "`false`, which opens pages, failed. Open the page by hand"),
        ] {
            let opener = Opener(program.into_iter().map(Into::into).collect());
            let why = opener.open("https://id.example/").await.unwrap_err();
            assert!(why.starts_with(expected), "{why}");
        }
    }

    const NO_PAGE: &str = "its address begins with neither `https://` nor `http://`";
    const STRANGE: &str = "its address holds characters that no URL holds";
    const PLAIN: &str = "it is not encrypted: `http` is for this machine alone";
    const NO_URL: &str = "its address is no URL, or holds a user name";
}
