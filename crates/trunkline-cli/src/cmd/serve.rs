//! `trunkline serve`: runs the gateway of a catalog, over HTTP or stdin and stdout, until a signal.

mod attach;
mod entrance;
mod replica;

use std::future::poll_fn;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use trunkline_gateway::admin::Opened;
use trunkline_gateway::catalog::plan::Plan;
use trunkline_gateway::catalog::{self, Watch};
use trunkline_gateway::{Gateway, Operation, OtelSettings, Selector, Settings, admin};
use trunkline_store::Folder;
use trunkline_transport::Limits;
use trunkline_transport::auth::FileVault;
use trunkline_transport::http::Lasting;

use crate::catalog as catalog_file;
use crate::failure::Failure;
use crate::logins::Logins;
use crate::state;

use entrance::Entrance;
use replica::Joined;
pub(crate) use replica::store_settings;

/// What to serve, and where.
#[derive(Default, clap::Args)]
pub(crate) struct Args {
    /// The catalog. The default is `./trunkline.yaml`, else your own in `~/.config/trunkline`, else a built-in
    /// one with the demo.
    #[arg(long, short, value_name = "FILE", env = "TRUNKLINE_CONFIG")]
    config: Option<PathBuf>,
    /// The address to listen at, in place of the catalog's.
    #[arg(long, value_name = "ADDR", conflicts_with = "stdio")]
    listen: Option<String>,
    /// Serves one client over stdin and stdout: the one line in a host's configuration. If a gateway serves
    /// this catalog already, the client is handed on to that.
    #[arg(long)]
    stdio: bool,
    /// Shares one gateway in the background with other hosts, and starts it if there is none. It ends a
    /// minute after the last of them.
    #[arg(long, requires = "stdio")]
    share: bool,
    /// Starts a gateway of its own, even if another runs.
    #[arg(long, requires = "stdio", conflicts_with = "share")]
    own: bool,
    /// Serves hosts that share it, and nobody else: what `--share` starts.
    #[arg(long, hide = true, conflicts_with_all = ["stdio", "listen"])]
    attached: bool,
    /// How many seconds it stays when no host is left.
    #[arg(long, hide = true, value_name = "SECONDS", requires = "attached", default_value_t = 60)]
    linger: u64,
    /// Shows one server alone, by its own names.
    #[arg(long, value_name = "NAME", requires = "stdio", conflicts_with = "tag")]
    server: Option<String>,
    /// Shows the servers with this tag, and those without tags.
    #[arg(long, value_name = "TAG", requires = "stdio")]
    tag: Vec<String>,
    /// Where caches, pins and the admin socket are kept.
    #[arg(long, value_name = "DIR", env = "TRUNKLINE_STATE")]
    state: Option<PathBuf>,
    #[command(flatten)]
    log: crate::log::LogArgs,
}

/// Serves until SIGINT or SIGTERM, then drains. A second signal ends it at once. SIGHUP reloads the
/// catalog, as for a service, unless it comes from a terminal or a host that is gone.
pub(crate) fn run(args: Args) -> Result<()> {
    // Hosts show stderr to people, who take any output for a problem.
    let unless_said = if args.stdio || args.attached { "warn" } else { "info" };
    let _log = crate::log::begin(&args.log, unless_said).map_err(|why| {
        let advice = "Write a level (`info`), or a level and more of some parts: `warn,trunkline::call=debug`.";
        Failure::usage(why).advice(advice)
    })?;
    // On one core, threads would only hand work to each other.
    let is_alone = std::thread::available_parallelism().is_ok_and(|it| it.get() == 1);
    let mut builder = match is_alone {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build()?.block_on(serve(args))
}

async fn serve(args: Args) -> Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    // A service reloads its files. If the terminal or host is gone, there is no client left.
    let is_service = !args.stdio && !std::io::stdin().is_terminal();
    let hangup = signal(SignalKind::hangup())?;
    let (mut hangup, reload) = if is_service { (None, Some(hangup)) } else { (Some(hangup), None) };
    let (first, stopped) = watch::channel(false);
    let mut first = Some(first);
    let hurried = poll_fn(move |cx| {
        loop {
            let hung_up = hangup.as_mut().map_or(Poll::Pending, |it| it.poll_recv(cx));
            match (term.poll_recv(cx), int.poll_recv(cx), hung_up) {
                (Poll::Pending, Poll::Pending, Poll::Pending) => return Poll::Pending,
                _ => match first.take() {
                    Some(first) => {
                        first.send_replace(true);
                        // Waiters see it even when nothing else holds the sender.
                        std::mem::forget(first);
                    }
                    None => return Poll::Ready(()),
                },
            }
        }
    });
    tokio::select! {
        served = work(args, stopped, reload) => served,
        () = hurried => Ok(()),
    }
}

async fn work(args: Args, stopped: watch::Receiver<bool>, reload: Option<Signal>) -> Result<()> {
    let file = catalog_file::meant(args.config.as_deref());
    let changes = file.as_ref().map(Watch::new);
    let (mut plan, files) = match &file {
        Some(file) => read(file)?,
        None => (built_in()?, Default::default()),
    };
    if let Some(listen) = args.listen {
        catalog::may_listen(&listen, &plan.gateway).map_err(anyhow::Error::msg)?;
        plan.gateway.listen = listen;
    }
    // If the state folder is not the default one, the hints name it.
    let elsewhere = args.state.as_ref().map(std::path::absolute).transpose()?;
    let elsewhere = elsewhere.map(|it| format!(" --state {}", it.display())).unwrap_or_default();
    let state = state::folder(args.state)?;
    let selector = match args.server {
        Some(server) => Selector::Server(server),
        None if args.tag.is_empty() => Selector::All,
        None => Selector::Tags(args.tag.iter().map(|it| it.to_lowercase()).collect()),
    };
    let sockets = file.as_deref().map(|it| attach::HostSockets::to(it, &state)).transpose()?;
    if args.stdio
        && !args.own
        && let Some(sockets) = &sockets
    {
        let shared = match sockets.join(&selector).await {
            None if args.share || plan.gateway.share => Some(sockets.start(&selector).await?),
            found => found,
        };
        if let Some(shared) = shared {
            return attach::carry(shared, stopped).await;
        }
    }
    // Faults of the listener are found before anything is started behind it.
    let entrance = match (args.stdio, args.attached) {
        (true, _) => Entrance::Stdio(selector),
        (_, true) => match Entrance::hosts(sockets.as_ref(), args.linger).await {
            Some(entrance) => entrance,
            // One gateway per catalog: the second has nothing to do.
            None => return Ok(()),
        },
        _ => Entrance::http(&plan.gateway, sockets.as_ref()).await?,
    };
    let limits = Limits::default().in_flight(IN_FLIGHT);
    let joined = match &entrance {
        Entrance::Http { .. } => Joined::open(&plan.gateway, &limits).await?,
        // A host has its own process, and nobody else reaches it.
        _ => None,
    };
    let settings = Settings {
        store: Arc::new(
            Folder::open(state.join("cache")).await.with_context(|| cannot_use(&state))?,
        ),
        pins: Some(state.join("pins.json")),
        logins: logins(),
        accounts: Arc::new(FileVault::new(state.join("accounts"))),
        limits,
        otel: otel()?,
        lasting: Some(Arc::new(Lasting::new(state::key(&state)?))),
        fleet: None,
        sessions: None,
    };
    let settings = match &joined {
        Some(joined) => joined.shared(settings),
        None => settings,
    };
    let admin_plan = plan.gateway.admin.clone();
    let gateway = Gateway::open(plan, settings).await.map_err(anyhow::Error::msg)?;
    let operation = Operation::new(gateway.clone(), file.clone());
    operation.comes_from(files);
    operation.keeps_recordings(state.join("recordings"));
    let following = changes.map(|changes| {
        let operation = Arc::clone(&operation);
        tokio::spawn(async move { match operation.keep_following(changes).await {} })
    });
    let reloading = reload.map(|mut reload| {
        let operation = Arc::clone(&operation);
        tokio::spawn(async move {
            while reload.recv().await.is_some() {
                // The log reports the outcome.
                let _ = operation.follow().await;
            }
        })
    });
    let small = tokio::spawn(trunkline_transport::footprint::keep_small());
    let served = async {
        let opened = entrance.admin(&admin_plan, &state).await?;
        let place = opened.as_ref().map(|it| it.place.clone()).unwrap_or_default();
        let link = opened.as_ref().and_then(Opened::console_link);
        let admin = opened.map(|it| {
            tokio::spawn(admin::serve(it, Arc::clone(&operation), until(stopped.clone())))
        });
        // A gateway does not end with the reader of its stderr.
        let tell = |url: &str| {
            let _ = announce(url, file.as_deref(), (&place, link.as_deref()), &elsewhere);
            crate::ready::tell();
        };
        let served = entrance.serve(&gateway, &operation, joined, stopped, tell).await;
        admin.inspect(|it| it.abort());
        served
    };
    let served = served.await;
    // From now on a change of the file would start servers that nothing stops.
    for following in [following, reloading].into_iter().flatten() {
        following.abort();
        let _ = following.await;
    }
    gateway.close().await;
    small.abort();
    served
}

/// Ready when it is time to stop.
async fn until(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|it| *it).await;
}

type Read = (Plan, std::collections::BTreeSet<PathBuf>);

fn read(file: &Path) -> Result<Read> {
    match catalog::load_file(file) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                let _ = writeln!(std::io::stderr(), "{}", warning.render(file));
            }
            Ok((loaded.plan, loaded.files))
        }
        Err(faults) => match faults.rest.clone() {
            // A fault of one server does not affect the others.
            Some(rest) => {
                let out: Vec<_> = rest.plan.out.keys().map(|it| format!("`{it}`")).collect();
                let _ = writeln!(
                    std::io::stderr(),
                    "{faults}\n\nLeft out until that is mended: {}.\n",
                    out.join(", ")
                );
                Ok((rest.plan, rest.files))
            }
            None => Err(Failure::usage(faults.to_string()).into()),
        },
    }
}

/// The demo, started by this same program.
fn built_in() -> Result<Plan> {
    let program = std::env::current_exe().context("This program's own file cannot be found")?;
    let Some(program) = program.to_str() else {
        bail!("The path of this program is not text: {}.", program.display());
    };
    Ok(catalog::built_in(vec![program.to_owned(), "demo".to_owned()]))
}

fn logins() -> Option<trunkline_gateway::Logins> {
    Some(Arc::new(|url: &str| {
        let url = url.to_owned();
        Box::pin(async move {
            let logins = Logins::open().ok()?;
            let profile = logins.find(&url).await.ok()??;
            let oauth = logins.way_in(&profile).await.ok()?;
            Some(Arc::new(oauth) as Arc<dyn trunkline_auth::credentials::Credentials>)
        })
    }))
}

/// The settings of OpenTelemetry, from its environment variables.
fn otel() -> Result<Option<OtelSettings>> {
    let (settings, warnings) = OtelSettings::from_env(|name| std::env::var(name).ok());
    for warning in warnings {
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    Ok(settings)
}

/// `elsewhere` is the option that leads to our state folder, if that is not the usual one.
fn announce(
    url: &str,
    file: Option<&Path>,
    (admin, console): (&str, Option<&str>),
    elsewhere: &str,
) -> std::io::Result<()> {
    let console = console.map(|it| format!("Console: {it}\n")).unwrap_or_default();
    let (from, first, second) = match file {
        Some(file) => (
            format!("`{}`", file.display()),
            format!("trunkline ps{elsewhere}"),
            "trunkline connect claude-code".to_owned(),
        ),
        None => (
            "the built-in catalog (the demo server)".to_owned(),
            format!("trunkline call demo.sum a=2 b=3 {url}/mcp"),
            "trunkline import".to_owned(),
        ),
    };
    // One write, so that a reader gets all of it at once.
    let text = format!(
        "The gateway serves {from} at {url}/mcp (2024-11-05: {url}/sse).\n\
         Its admin API is at {admin}.\n{console}\n\
         Try next, in another terminal:\n  trunkline list {url}/mcp\n  {first}\n  {second}\n"
    );
    std::io::stderr().lock().write_all(text.as_bytes())
}

fn cannot_use(state: &Path) -> String {
    format!("The folder `{}` cannot be used. Name another with `--state`", state.display())
}

/// Concurrent calls of one client.
const IN_FLIGHT: usize = 1024;
