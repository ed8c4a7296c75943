//! Clients that log in to a protected server, also from several processes at once, also when one of
//! them is killed.

mod child;

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use trunkline::auth::fetch::{Ask, Fetch};
use trunkline::auth::vault::Vault;
use trunkline::auth::{self, FileVault, HttpFetch, Loopback, MemoryVault, OAuth};
use trunkline::server::protect::{JwtIssuer, Protect};
use trunkline::{Client, Principal, Server, tool};
use trunkline_auth::tag::random_name;
use trunkline_authority::{Authority, Serving, Settings};

/// A protected server, and the authorization server that it trusts.
pub(crate) struct Setup {
    authority: Serving,
    url: String,
    folder: PathBuf,
}

impl Setup {
    async fn new(settings: Settings) -> Self {
        let bind = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let settings = settings.access_lifetime(Duration::from_secs(600));
        let authority = Authority::serve(bind().await, settings).unwrap();
        let listener = bind().await;
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let whoami = tool("whoami", async |who: Principal| who.subject);
        let server = Server::builder("whoami", "1.0.0").tool(whoami).build();
        let protect = Protect::new(&*url).jwt(JwtIssuer::new(authority.issuer()));
        let http = server.http().protect(protect).unwrap();
        tokio::spawn(http.serve(listener, pending()));
        let folder = std::env::temp_dir().join(format!("trunkline-logins-{}", random_name()));
        Self { authority, url, folder }
    }

    /// Alice logs in, and the login is stored in the folder.
    async fn log_in(&self) -> OAuth {
        let oauth = person(&self.url).vault(Arc::new(FileVault::new(&self.folder)));
        let login = oauth.login().await.unwrap();
        assert!(login.renews, "{login:?}");
        oauth
    }

    /// Refresh tokens used, reused within the grace period, reused too late, and how often a person
    /// was asked.
    fn counts(&self) -> (u64, u64, u64, u64) {
        let stats = self.authority.stats();
        (stats.refreshes, stats.graces, stats.reuses, stats.authorizations)
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A login of a user who consents to everything: the browser is a fetch that follows redirects.
fn person(url: &str) -> OAuth {
    let seen = Arc::new(HttpFetch::for_server(url));
    let browser = Loopback::new().without_opening().tell(move |page| {
        let (seen, page) = (Arc::clone(&seen), Ask::get(page));
        tokio::spawn(async move { seen.fetch(page).await });
    });
    auth::oauth(url).vault(Arc::new(MemoryVault::new())).browser(Arc::new(browser))
}

async fn who(oauth: Arc<OAuth>, url: &str) -> String {
    let builder = Client::builder("example", "1.0.0").credentials(oauth);
    let client = builder.connect_http(url).await.unwrap();
    let said = client.call_tool("whoami", ()).await.unwrap();
    said.content[0].as_text().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_that_is_refused_logs_in_and_is_sent_again() {
    let setup = Setup::new(Settings::new().approve_as("alice")).await;
    let oauth = Arc::new(person(&setup.url));
    assert_eq!(who(Arc::clone(&oauth), &setup.url).await, "alice");
    assert_eq!(who(Arc::clone(&oauth), &setup.url).await, "alice");
    assert_eq!(setup.counts(), (0, 0, 0, 1), "once is enough");
    assert_eq!(oauth.status().await.unwrap().unwrap().issuer, setup.authority.issuer());
    oauth.logout().await.unwrap();
    assert!(oauth.status().await.unwrap().is_none());
    assert!(setup.authority.stats().revocations > 0);
}

#[tokio::test]
async fn a_login_is_found_again_by_the_next_program() {
    let setup = Setup::new(Settings::new().approve_as("alice")).await;
    setup.log_in().await;
    let vault = FileVault::new(&setup.folder);
    let next = auth::oauth(&*setup.url).vault(Arc::new(vault));
    assert_eq!(who(Arc::new(next), &setup.url).await, "alice");
    assert_eq!(setup.counts(), (0, 0, 0, 1));
    let kept = OAuth::kept(&FileVault::new(&setup.folder)).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].server, setup.url);
}

#[tokio::test]
async fn a_machine_logs_in_with_its_own_credentials() {
    let robot = trunkline_authority::Client::new("robot").secret("p7Q-secret");
    let setup = Setup::new(Settings::new().client(robot)).await;
    let issuer = setup.authority.issuer();
    let unnamed = Client::builder("report", "1.0.0").client_credentials("robot", "p7Q-secret");
    let error = unnamed.connect_http(&*setup.url).await.unwrap_err().to_string();
    assert!(error.contains(&format!("set `{issuer}` as their issuer")), "{error}");
    let builder = Client::builder("report", "1.0.0")
        .client_credentials("robot", "p7Q-secret")
        .for_issuer(issuer);
    let client = builder.connect_http(&*setup.url).await.unwrap();
    let said = client.call_tool("whoami", ()).await.unwrap();
    assert_eq!(said.content[0].as_text(), Some("client:robot"));
    assert_eq!(setup.counts(), (0, 0, 0, 0), "nobody was asked");

    let builder =
        Client::builder("report", "1.0.0").client_credentials("robot", "n0t-it").for_issuer(issuer);
    let error = builder.connect_http(&*setup.url).await.unwrap_err().to_string();
    assert!(error.contains("invalid_client") && !error.contains("n0t-it"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_refresh_at_once_spend_one_refresh_token() {
    let setup = Setup::new(Settings::new().approve_as("alice")).await;
    setup.log_in().await;
    // Holding the lock keeps both children waiting where they are about to refresh.
    let held = hold(&setup.folder).await;
    let mut children: Vec<_> = (0..2).map(|_| child::start("refresh", 1, &setup)).collect();
    for child in &mut children {
        child.hear("about to refresh");
    }
    drop(held);
    for child in &mut children {
        child.hear("I am alice");
        assert!(child.end().success());
    }
    assert_eq!(setup.counts(), (1, 0, 0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_between_refresh_and_save_loses_no_login() {
    use std::os::unix::process::ExitStatusExt;

    let setup = Setup::new(Settings::new().approve_as("alice")).await;
    setup.log_in().await;
    let mut killed = child::start("die", 1, &setup);
    killed.hear("about to refresh");
    assert_eq!(killed.end().signal(), Some(9));
    assert_eq!(setup.counts(), (1, 0, 0, 1), "the refresh token was spent");

    // The stored login is the old one, and no process holds the lock.
    let mut next = child::start("refresh", 1, &setup);
    next.hear("I am alice");
    assert!(next.end().success());
    assert_eq!(setup.counts(), (1, 1, 0, 1), "it was good once more, and nobody was asked");

    // From here on everything is as if no process had been killed.
    let mut last = child::start("refresh", 2, &setup);
    last.hear("I am alice");
    assert!(last.end().success());
    assert_eq!(setup.counts(), (2, 1, 0, 1));
}

/// Holds the lock of the tokens in this folder.
async fn hold(folder: &Path) -> Box<dyn Send> {
    let vault = FileVault::new(folder);
    let names = vault.names().await.unwrap();
    let name = names.iter().find(|it| it.starts_with("token ")).expect("there is a login");
    vault.lock(name).await.unwrap()
}
