//! Clients that log in to a protected server, also in several processes at once, also when one of
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
pub(crate) struct World {
    authority: Serving,
    url: String,
    folder: PathBuf,
}

impl World {
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

    /// Alice logs in, and her login is kept in the folder.
    async fn log_in(&self) -> OAuth {
        let oauth = person(&self.url).vault(Arc::new(FileVault::new(&self.folder)));
        let login = oauth.login().await.unwrap();
        assert!(login.renews, "{login:?}");
        oauth
    }

    /// Refresh tokens spent, those spent again in time, those spent again too late, and how often a
    /// person was asked.
    fn counts(&self) -> (u64, u64, u64, u64) {
        let stats = self.authority.stats();
        (stats.refreshes, stats.graces, stats.reuses, stats.authorizations)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A login of somebody who says yes to everything: their browser is a fetch that follows redirects.
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
    let world = World::new(Settings::new().approve_as("alice")).await;
    let oauth = Arc::new(person(&world.url));
    assert_eq!(who(Arc::clone(&oauth), &world.url).await, "alice");
    assert_eq!(who(Arc::clone(&oauth), &world.url).await, "alice");
    assert_eq!(world.counts(), (0, 0, 0, 1), "once is enough");
    assert_eq!(oauth.status().await.unwrap().unwrap().issuer, world.authority.issuer());
    oauth.logout().await.unwrap();
    assert!(oauth.status().await.unwrap().is_none());
    assert!(world.authority.stats().revocations > 0);
}

#[tokio::test]
async fn a_login_is_found_again_by_the_next_program() {
    let world = World::new(Settings::new().approve_as("alice")).await;
    world.log_in().await;
    let vault = FileVault::new(&world.folder);
    let next = auth::oauth(&*world.url).vault(Arc::new(vault));
    assert_eq!(who(Arc::new(next), &world.url).await, "alice");
    assert_eq!(world.counts(), (0, 0, 0, 1));
    let kept = OAuth::kept(&FileVault::new(&world.folder)).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].server, world.url);
}

#[tokio::test]
async fn a_machine_logs_in_with_its_own_credentials() {
    let robot = trunkline_authority::Client::new("robot").secret("p7Q-secret");
    let world = World::new(Settings::new().client(robot)).await;
    let issuer = world.authority.issuer();
    let unnamed = Client::builder("report", "1.0.0").client_credentials("robot", "p7Q-secret");
    let error = unnamed.connect_http(&*world.url).await.unwrap_err().to_string();
    assert!(error.contains(&format!("set `{issuer}` as their issuer")), "{error}");
    let builder = Client::builder("report", "1.0.0")
        .client_credentials("robot", "p7Q-secret")
        .for_issuer(issuer);
    let client = builder.connect_http(&*world.url).await.unwrap();
    let said = client.call_tool("whoami", ()).await.unwrap();
    assert_eq!(said.content[0].as_text(), Some("client:robot"));
    assert_eq!(world.counts(), (0, 0, 0, 0), "nobody was asked");

    let builder =
        Client::builder("report", "1.0.0").client_credentials("robot", "n0t-it").for_issuer(issuer);
    let error = builder.connect_http(&*world.url).await.unwrap_err().to_string();
    assert!(error.contains("invalid_client") && !error.contains("n0t-it"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_refresh_at_once_spend_one_refresh_token() {
    let world = World::new(Settings::new().approve_as("alice")).await;
    world.log_in().await;
    // Whoever holds the login keeps both waiting where they are about to refresh it.
    let held = hold(&world.folder).await;
    let mut children: Vec<_> = (0..2).map(|_| child::start("refresh", 1, &world)).collect();
    for child in &mut children {
        child.hear("about to refresh");
    }
    drop(held);
    for child in &mut children {
        child.hear("I am alice");
        assert!(child.end().success());
    }
    assert_eq!(world.counts(), (1, 0, 0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_between_refresh_and_save_loses_no_login() {
    use std::os::unix::process::ExitStatusExt;

    let world = World::new(Settings::new().approve_as("alice")).await;
    world.log_in().await;
    let mut killed = child::start("die", 1, &world);
    killed.hear("about to refresh");
    assert_eq!(killed.end().signal(), Some(9));
    assert_eq!(world.counts(), (1, 0, 0, 1), "the refresh token was spent");

    // What was kept is the old one, and nobody holds it any more.
    let mut next = child::start("refresh", 1, &world);
    next.hear("I am alice");
    assert!(next.end().success());
    assert_eq!(world.counts(), (1, 1, 0, 1), "it was good once more, and nobody was asked");

    // From here on everything is as if nobody had been killed.
    let mut last = child::start("refresh", 2, &world);
    last.hear("I am alice");
    assert!(last.end().success());
    assert_eq!(world.counts(), (2, 1, 0, 1));
}

/// Holds the tokens that are kept in this folder.
async fn hold(folder: &Path) -> Box<dyn Send> {
    let vault = FileVault::new(folder);
    let names = vault.names().await.unwrap();
    let name = names.iter().find(|it| it.starts_with("token ")).expect("there is a login");
    vault.lock(name).await.unwrap()
}
