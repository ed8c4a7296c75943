//! `trunkline login URL`

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use trunkline::Revision;
use trunkline::auth::credentials::Credentials;
use trunkline::auth::jose::Algorithm;
use trunkline::auth::{AuthError, Login, Reregistration, Step};
use trunkline::client::{Client, ClientBuilder, ConnectError};
use trunkline_auth::url::shown as safe;

use super::whoami::{describe, to_json};
use crate::failure::Failure;
use crate::logins::{Logins, Person, Probe, Profile, StoredLogin};
use crate::output::{Screen, Tone, one_line};
use crate::secret::Source;
use crate::words::url;

/// Logs in to a server, for later calls.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// The server.
    #[arg(value_name = "URL", value_parser = url)]
    url: String,
    /// Open no browser: show the address of the page, and take the one it leads to from stdin too.
    #[arg(long)]
    no_browser: bool,
    /// Ask for this scope; may be repeated.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// The id of a client that was registered beforehand.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Where the secret of that client is: `env:NAME`, `file:PATH`, or `-` for stdin.
    #[arg(long, value_name = "FROM", requires = "client_id")]
    client_secret: Option<Source>,
    /// Show the credentials of the client to this issuer alone.
    #[arg(long, value_name = "ISSUER", requires = "client_id")]
    issuer: Option<String>,
    /// The URL of a client metadata document, for authorization servers that accept one.
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    client_metadata_url: Option<String>,
    /// Listen for the answer at this port of 127.0.0.1.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Listen for the answer at this address, which was registered beforehand.
    #[arg(long, value_name = "URL", conflicts_with = "port")]
    redirect_uri: Option<String>,
    /// Register with the authorization server again, even if a registration is kept.
    #[arg(long, conflicts_with_all = ["client_id", "client_metadata_url"])]
    register: bool,
    /// Bind the tokens to a key, so that nobody else can use them.
    #[arg(long)]
    dpop: bool,
    /// Never bind them, also where the server offers it.
    #[arg(long, conflicts_with = "dpop")]
    no_dpop: bool,
    /// Log in as the client itself, without a person.
    #[arg(long, requires = "client_id", conflicts_with_all = PERSONAL)]
    client_credentials: bool,
    /// The key of the client, in place of a secret: a PEM file.
    #[arg(
        long,
        value_name = "FILE",
        requires = "client_credentials",
        conflicts_with = "client_secret"
    )]
    private_key: Option<PathBuf>,
    /// What to sign with the key, such as ES256 or RS256.
    #[arg(long, value_name = "ALG", requires = "private_key", value_parser = algorithm)]
    alg: Option<Algorithm>,
    /// The key's name, if the authorization server knows several.
    #[arg(long, value_name = "KID", requires = "private_key")]
    key_id: Option<String>,
    /// Let the server name an authorization server on this machine or a private network.
    #[arg(long)]
    allow_private_network: bool,
    /// Trust certificates that were issued by one in this PEM file, too.
    #[arg(long, value_name = "FILE")]
    cacert: Vec<PathBuf>,
    /// Speak only this revision, such as 2025-11-25.
    #[arg(long, value_name = "REV")]
    protocol: Option<Revision>,
    /// Keep the login in the keyring of this machine, not in a file.
    #[arg(long)]
    keyring: bool,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    if has_user(&args.url) {
        let why = "The URL names a user or a password, which is no way to log in to MCP servers.";
        return Err(Failure::usage(why).advice("Leave out what stands before the `@`.").into());
    }
    let logins = Logins::open()?;
    // Omitted options keep their values from the last login.
    let before = match logins.find(&args.url).await {
        Err(failure) if failure.is_damaged => {
            screen.aside("login", &format!("{} It is replaced.", failure.cause));
            None
        }
        found => found?,
    };
    let profile = args.profile(before.clone());
    if let (true, Some(id)) = (args.register, &profile.client_id) {
        let id = one_line(id);
        let why = format!("The last login was as the client `{id}`, which was registered by hand.");
        let advice = "Leave out `--register`, or forget that client with `trunkline logout URL`.";
        return Err(Failure::usage(why).advice(advice).into());
    }
    let secret = match &args.client_secret {
        Some(source) => Some(source.read()?),
        None => match &before {
            Some(before) if !profile.is_apart_from(before) => logins.secret(before).await?,
            _ => None,
        },
    };
    let mut oauth = profile.way_in(logins.vault(&profile), secret.clone())?;
    if args.register {
        oauth = oauth.register_anew();
    }

    tell(screen, "connect", &format!("asking `{}` what it wants to see", safe(&args.url)));
    let wanted = args.probe(&profile).await?;
    let person = Person::new(screen, args.no_browser, args.port);
    let (watching, doubt) = (screen.clone(), person.doubt());
    let oauth = oauth.browser(Arc::new(person)).progress(move |step| {
        match step {
            Step::Reusing(_) => doubt.store(true, Ordering::Relaxed),
            Step::Registering(_) => doubt.store(false, Ordering::Relaxed),
            _ => {}
        }
        shown(&watching, &step);
    });
    let entered = oauth.login_after(wanted.as_deref().unwrap_or_default()).await;
    let login = entered.map_err(|error| refused(error, wanted.is_some(), &args.url))?;

    tell(screen, "check", "connecting with the login");
    let stored = Arc::new(StoredLogin::new(oauth));
    let checked = args.check(&profile, &stored).await;
    if checked.is_err() && stored.obstacle().is_unwelcome {
        // A refused login is revoked, and its options are not stored.
        let _ = logins.give_back(&profile, secret).await;
        return Err(Failure::unwelcome(&args.url, &login).into());
    }
    if let Some(before) = before.filter(|it| it.is_apart_from(&profile)) {
        // Otherwise it could never be found again.
        let _ = logins.leave(&before).await;
    }
    logins.keep(&profile, secret.as_deref()).await?;
    let name = checked?;
    args.report(screen, &logins, &profile, &login, &name)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// The given options on top of those of the last login.
    fn profile(&self, before: Option<Profile>) -> Profile {
        let mut profile = before.unwrap_or_else(|| Profile::new(&self.url));
        if !self.scope.is_empty() {
            let words = self.scope.iter().flat_map(|it| it.split_whitespace());
            profile.scopes = words.map(str::to_owned).collect();
        }
        if self.client_id.is_some() {
            // Nothing of another client applies.
            profile.client_id.clone_from(&self.client_id);
            profile.issuer.clone_from(&self.issuer);
            profile.client_metadata_url = None;
            profile.is_machine = self.client_credentials;
            profile.private_key = self.private_key.as_deref().map(absolute);
            profile.alg = self.alg.map(|it| it.name().to_owned());
            profile.key_id.clone_from(&self.key_id);
        }
        if self.client_metadata_url.is_some() {
            profile.client_metadata_url.clone_from(&self.client_metadata_url);
            (profile.client_id, profile.is_machine) = (None, false);
        }
        if let Some(port) = self.port {
            profile.redirect_uri = Some(format!("http://127.0.0.1:{port}/callback"));
        } else if self.redirect_uri.is_some() {
            profile.redirect_uri.clone_from(&self.redirect_uri);
        }
        for file in &self.cacert {
            let file = absolute(file);
            if !profile.cacert.contains(&file) {
                profile.cacert.push(file);
            }
        }
        if self.dpop || self.no_dpop {
            (profile.dpop, profile.no_dpop) = (self.dpop, self.no_dpop);
        }
        profile.allow_private_network |= self.allow_private_network;
        profile.keyring |= self.keyring || is_set("TRUNKLINE_KEYRING");
        profile
    }

    /// The challenge for a request without a token; `None` if the server requires none.
    async fn probe(&self, profile: &Profile) -> Result<Option<Vec<String>>, Failure> {
        let probe = Arc::new(Probe::default());
        match self.connect(profile, Arc::clone(&probe) as _).await? {
            Ok(client) => drop(client.close().await),
            Err(error) if probe.heard().is_none() => {
                let mut failure = Failure::from(error);
                failure.hide(&self.url);
                return Err(failure);
            }
            Err(_) => {}
        }
        Ok(probe.heard())
    }

    /// Connects as calls will, and returns the server's name.
    async fn check(&self, profile: &Profile, stored: &Arc<StoredLogin>) -> Result<String, Failure> {
        let client = match self.connect(profile, Arc::clone(stored) as _).await? {
            Ok(client) => client,
            Err(error) => {
                let mut failure = Failure::from(error);
                failure.explain(&self.url, Some(&stored.denial()), false);
                failure.cause = format!("The login is kept, but {}", lower(&failure.cause));
                return Err(failure);
            }
        };
        let name = client.server_info().map_or_else(String::new, |it| {
            format!("{} {}", it.title.as_ref().unwrap_or(&it.name), it.version)
        });
        client.close().await;
        Ok(name)
    }

    async fn connect(
        &self,
        profile: &Profile,
        credentials: Arc<dyn Credentials>,
    ) -> Result<Result<Client, ConnectError>, Failure> {
        let mut builder: ClientBuilder =
            Client::builder("trunkline", env!("CARGO_PKG_VERSION")).credentials(credentials);
        if let Some(revision) = self.protocol {
            builder = builder.protocol(revision);
        }
        for pem in profile.certificates()? {
            builder = builder.root_certificate(&pem);
        }
        Ok(builder.connect_http(&self.url).await)
    }

    fn report(
        &self,
        screen: &Screen,
        logins: &Logins,
        profile: &Profile,
        login: &Login,
        name: &str,
    ) -> Result<()> {
        if self.json {
            return screen.json(&to_json(profile, Some(login)));
        }
        let what = if name.is_empty() { String::new() } else { format!(" ({})", one_line(name)) };
        screen.print(&format!("{}{what}", screen.tone(Tone::Good, "Logged in.")))?;
        screen.print(&describe(screen, logins, profile, Some(login)))
    }
}

fn shown(screen: &Screen, step: &Step) {
    match step {
        Step::Discovering(server) => {
            tell(screen, "discover", &format!("looking for who gives logins for `{server}`"));
        }
        Step::Reregistering(issuer, why) => {
            let why = match why {
                Reregistration::Unanswered => {
                    format!("the last login at `{issuer}` never came back from its page")
                }
                Reregistration::Forgotten => format!("`{issuer}` has forgotten this client"),
                _ => return,
            };
            screen.aside("register", &format!("{why}, so the client registers there again."));
        }
        Step::Registering(issuer) => {
            tell(screen, "register", &format!("becoming known to `{issuer}`"));
        }
        Step::Waiting(issuer) => {
            tell(screen, "browser", &format!("waiting for you to log in at `{issuer}`"));
        }
        Step::Exchanging(issuer) => tell(screen, "token", &format!("asking `{issuer}` for it")),
        // The report says so.
        _ => {}
    }
}

fn tell(screen: &Screen, label: &str, text: &str) {
    screen.aside(label, &format!("{text} …"));
}

/// An absolute path, valid in any folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|it| !it.is_empty() && it != "0")
}

/// A failed login.
fn refused(error: AuthError, is_wanted: bool, url: &str) -> Failure {
    let is_offered = !matches!(error, AuthError::NotOffered(_));
    let mut failure = Failure::login(error);
    failure.hide(url);
    if !is_wanted {
        failure.advice.take_if(|_| !is_offered);
        let url = safe(url);
        failure.cause = format!(
            "`{url}` lets clients in without a login. Asked for one, {}",
            lower(&failure.cause)
        );
    }
    failure
}

/// Whether the URL has user info.
fn has_user(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|it| it.contains('@'))
}

/// A sentence as part of another.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |it| it.to_lowercase().chain(letters).collect())
}

fn algorithm(text: &str) -> Result<Algorithm, String> {
    Algorithm::parse(text).ok_or_else(|| {
        let all: Vec<_> = Algorithm::ALL.iter().map(|it| it.name()).collect();
        format!("choose one of {}", all.join(", "))
    })
}

/// Options that only people need.
const PERSONAL: [&str; 5] =
    ["no_browser", "port", "redirect_uri", "client_metadata_url", "register"];

const AFTER: &str = "\
What is not said is as it was at the last login to the same server; `trunkline logout URL` forgets it.
Logins are kept in a folder for you alone; `TRUNKLINE_LOGINS` names another one.";
