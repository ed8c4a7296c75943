//! `trunkline whoami [URL]`

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::auth::Login;
use trunkline_auth::url::shown;
use trunkline_gateway::allowed;
use trunkline_gateway::catalog::load_file;

use crate::failure::Failure;
use crate::logins::{Logins, Profile};
use crate::output::{Screen, Tone, one_line};
use crate::secret::Source;
use crate::words::url;

/// Shows who is logged in where. Nobody is asked: it shows what is kept here.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The server. The default is all of them.
    #[arg(value_name = "URL", value_parser = url)]
    url: Option<String>,
    /// Shows instead what the bearer of a token would be allowed by a gateway's catalog. Where the token is:
    /// `env:NAME`, `file:PATH`, or `-` for stdin.
    #[arg(long, value_name = "SECRET", conflicts_with = "url")]
    token: Option<Source>,
    /// The catalog that `--token` is about.
    #[arg(long, value_name = "FILE", env = "TRUNKLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    if let Some(token) = &args.token {
        return bearer(&args, &token.read()?, screen).await;
    }
    let logins = Logins::open()?;
    let profiles = match &args.url {
        Some(url) => match logins.find(url).await? {
            Some(profile) => vec![profile],
            None => return Err(Failure::logged_out(url).into()),
        },
        None => {
            let (profiles, damaged) = logins.all().await?;
            for it in damaged {
                screen.aside("whoami", &it.to_string());
            }
            profiles
        }
    };
    let mut found = Vec::new();
    for profile in profiles {
        found.push((logins.login(&profile).await?, profile));
    }
    if args.json {
        let all: Vec<_> = found.iter().map(|(login, it)| to_json(it, login.as_ref())).collect();
        match args.url {
            Some(_) => screen.json(&all[0])?,
            None => screen.json(&all)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    for (place, (login, profile)) in found.iter().enumerate() {
        let gap = if place == 0 { "" } else { "\n" };
        let text = describe(screen, &logins, profile, login.as_ref());
        screen.print(&format!("{gap}{text}"))?;
    }
    if found.is_empty() {
        screen.print("Nobody is logged in anywhere. Log in with `trunkline login URL`.")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The permissions of a token's bearer.
async fn bearer(args: &Args, token: &str, screen: &Screen) -> Result<ExitCode> {
    let Some(file) = crate::catalog::meant(args.config.as_deref()) else {
        let why = "There is no catalog here that could say who is let in.";
        return Err(Failure::usage(why).advice("Name it with `--config FILE`.").into());
    };
    let plan = match load_file(&file) {
        Ok(loaded) => loaded.plan,
        Err(faults) => match faults.rest {
            Some(rest) => rest.plan,
            None => return Err(Failure::usage(faults.to_string()).into()),
        },
    };
    let found = allowed(&plan, token).await.map_err(|it| Failure::usage(it.to_string()))?;
    if args.json {
        screen.json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = format!("{}\n", screen.tone(Tone::Bold, &one_line(&found.principal)));
    let mut line = |name: &str, value: &str| {
        let name = screen.tone(Tone::Dim, &format!("{name:<9}"));
        let _ = writeln!(out, "  {name} {}", one_line(value));
    };
    let list = |all: &[String], none: &str| match all.is_empty() {
        true => none.to_owned(),
        false => all.join(", "),
    };
    line("also", &list(&found.also, "–"));
    line("scopes", &list(&found.scopes, "none"));
    match &found.tags {
        Some(tags) => line("tags", &list(tags, "none: sees what has no tags")),
        None => line("tags", "all"),
    }
    line("sees", &list(&found.servers, "no server"));
    found.hidden.iter().for_each(|(name, why)| line("not", &format!("{name}: {why}")));
    match found.rules.is_empty() {
        true => line("rules", "none is about them: what they see, they may call"),
        false => found.rules.iter().for_each(|it| line("rule", it)),
    }
    screen.print(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// A login for people.
pub(crate) fn describe(
    screen: &Screen,
    logins: &Logins,
    profile: &Profile,
    login: Option<&Login>,
) -> String {
    let mut out = format!("{}\n", screen.tone(Tone::Bold, &one_line(&shown(profile.server()))));
    let mut line = |name: &str, value: &str| {
        let name = screen.tone(Tone::Dim, &format!("{name:<9}"));
        let _ = writeln!(out, "  {name} {}", one_line(value));
    };
    let Some(login) = login else {
        line("login", "has ended; log in again with `trunkline login URL`");
        return out;
    };
    let who = match (&login.subject, profile.is_machine) {
        (Some(subject), _) => subject.clone(),
        (None, true) => format!("the client `{}` itself", login.client_id),
        (None, false) => "somebody whom the token does not name".to_owned(),
    };
    line("as", &who);
    line("by", &shown(&login.issuer));
    line("for", &shown(&login.resource));
    line("client", &login.client_id);
    let scopes = if login.scopes.is_empty() { "none".to_owned() } else { login.scopes.join(" ") };
    line("scopes", &scopes);
    line("expires", &expiry(login, profile.is_machine, SystemTime::now()));
    if login.is_bound {
        line("bound", "to a key of this machine (DPoP)");
    }
    line("kept in", &logins.place(profile));
    out
}

/// A login for programs.
pub(crate) fn to_json(profile: &Profile, login: Option<&Login>) -> Value {
    let Some(login) = login else {
        return json!({ "server": shown(profile.server()), "loggedIn": false });
    };
    let seconds = |it: SystemTime| it.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    json!({
        "server": shown(profile.server()),
        "loggedIn": true,
        "issuer": shown(&login.issuer),
        "resource": shown(&login.resource),
        "clientId": login.client_id,
        "subject": login.subject,
        "scopes": login.scopes,
        "expiresAt": login.expires.map(seconds),
        "renews": login.renews || profile.is_machine,
        "bound": login.is_bound,
    })
}

fn expiry(login: &Login, is_machine: bool, now: SystemTime) -> String {
    let goes_on = login.renews || is_machine;
    match login.expires {
        None => "nobody knows when".to_owned(),
        Some(at) => {
            let when = match at.duration_since(now) {
                Ok(left) => format!("in {}", span(left)),
                Err(past) => format!("{} ago", span(past.duration())),
            };
            match (goes_on, at > now) {
                (true, true) => format!("{when}, and renews itself"),
                (true, false) => format!("{when}; the next call renews it"),
                (false, true) => format!("{when}, and cannot renew itself"),
                (false, false) => format!("{when}; log in again with `trunkline login URL`"),
            }
        }
    }
}

/// A time as people say it.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (count, unit) = match seconds {
        0..90 => (seconds, "second"),
        90..5400 => ((seconds + 30) / 60, "minute"),
        5400..129_600 => ((seconds + 1800) / 3600, "hour"),
        _ => ((seconds + 43_200) / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_people_tell_them() {
        for (seconds, expected) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (89, "89 seconds"),
            (90, "2 minutes"),
            (52 * 60, "52 minutes"),
            (3600, "60 minutes"),
            (5400, "2 hours"),
            (24 * 3600, "24 hours"),
            (36 * 3600, "2 days"),
            (30 * 86_400, "30 days"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
        }
    }
}
