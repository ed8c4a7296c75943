//! Checks a program: its path, start, handshake, lists and stop.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use trunkline::client::{Client, Command, ConnectCause, ConnectError, OpenError};
use trunkline::{Era, Limits, Revisions};
use trunkline_gateway::catalog::plan::{Reach, ServerPlan};
use trunkline_transport::child::Child;

use super::overheard::{Overheard, StdoutRecorder};
use super::stages::Stages;
use super::{identity, offers};

pub(super) async fn check(server: &ServerPlan, stages: &mut Stages) {
    let Reach::Stdio { command, args, env, inherit, cwd } = &server.reach else { return };
    stages.begin();
    let path = path_of_child(env);
    match find(command, &path, cwd.as_deref()) {
        Ok(file) => stages.fine("command", file.display().to_string()),
        Err(why) => {
            let folders = if command.contains('/') { String::new() } else { told(&path) };
            return stages.bad("command", why, folders);
        }
    }
    let mut line = Command::new(command).args(args);
    for name in inherit {
        line = line.inherit(name);
    }
    for (name, value) in env {
        line = line.env(name, value);
    }
    if let Some(cwd) = cwd {
        line = line.current_dir(cwd);
    }
    let limits =
        Limits::default().init_deadline(server.timeouts.start).call_deadline(server.timeouts.call);
    // A server of the stateful era may exit on the `server/discover` probe.
    let stateful = server.revisions.of_era(Era::Stateful);
    let mut heard = Vec::new();
    let Some((child, outcome)) = start(&line, &limits, server.revisions, &mut heard, stages).await
    else {
        return;
    };
    let (child, outcome) = match outcome {
        Err(error) if is_probed_to_death(&error) && !stateful.is_empty() => {
            drop(child);
            stages
                .none("handshake", "it hung up at `server/discover`; once more with `initialize`");
            match start(&line, &limits, stateful, &mut heard, stages).await {
                Some(found) => found,
                None => return,
            }
        }
        outcome => (child, outcome),
    };
    let client = match outcome {
        Ok(client) => client,
        Err(error) => {
            failed(child, &error, stages).await;
            return stages.stdout(heard);
        }
    };
    stages.fine("handshake", identity(&client));
    offers(&client, stages).await;
    stages.begin();
    let _ = client.close().await;
    let stderr = child.stderr().clone();
    let exit = child.stop().await;
    match exit {
        trunkline::client::Exit::Code(0) => stages.fine("stop", format!("it {exit}")),
        trunkline::client::Exit::Code(_) | trunkline::client::Exit::Signal(15) => {
            stages.fine("stop", format!("it {exit}; a server should leave when its stdin ends"));
        }
        trunkline::client::Exit::Signal(_) => {
            let advice = "Tell the author of the server: it should leave when its stdin ends.";
            stages.bad("stop", format!("it {exit}"), advice);
            stages.stderr(stderr.lines());
        }
    }
}

/// Starts it and performs the handshake. `None` if it did not start, which is reported then.
async fn start(
    line: &Command,
    limits: &Limits,
    revisions: Revisions,
    heard: &mut Vec<String>,
    stages: &mut Stages,
) -> Option<(Child, Result<Client, ConnectError>)> {
    stages.begin();
    let mut child = match Child::spawn(line.clone(), limits).await {
        Ok(child) => child,
        Err(error) => {
            stages.bad("spawn", error.to_string(), "");
            return None;
        }
    };
    stages.fine("spawn", format!("process {}", child.id()));
    let (to, from) = child.take_stdin().zip(child.take_stdout())?;
    let builder = Client::builder("trunkline-doctor", env!("CARGO_PKG_VERSION"));
    let builder = builder.limits(limits.clone()).protocols(revisions);
    let recorder = StdoutRecorder::default();
    let from = Overheard { from, recorder: recorder.clone() };
    tokio::select! {
        outcome = builder.connect_io(from, to) => {
            if outcome.is_err() {
                heard.clone_from(&recorder.odd());
            }
            Some((child, outcome))
        }
        () = recorder.is_odd() => {
            let what = "It prints to stdout what is no message of MCP, and answers nothing.";
            let advice = "Have it print to stderr, or speak MCP over stdio (some servers need an option for that).";
            stages.bad("handshake", what, advice);
            stages.stdout(recorder.odd());
            let stderr = child.stderr().clone();
            child.stop().await;
            stages.stderr(stderr.lines());
            None
        }
    }
}

/// Reports a failed handshake, with the server's exit status and last lines of stderr.
async fn failed(child: Child, error: &ConnectError, stages: &mut Stages) {
    let advice = error.advice().unwrap_or("Run the command in a terminal to see what it does.");
    let cause = match &error.cause {
        ConnectCause::Handshake(cause) => cause.to_string(),
        other => format!("{other:?}"),
    };
    let stderr = child.stderr().clone();
    // A server that closed its stdout is about to exit, and its status is worth knowing.
    if matches!(&error.cause, ConnectCause::Handshake(OpenError::Closed { .. })) {
        let exit = child.stop().await;
        let advice = "Run the command in a terminal to see why it ends.";
        stages.bad("handshake", format!("{cause} It {exit}."), advice);
        return stages.stderr(stderr.lines());
    }
    stages.bad("handshake", cause, advice);
    child.stop().await;
    stages.stderr(stderr.lines());
}

fn is_probed_to_death(error: &ConnectError) -> bool {
    matches!(&error.cause, ConnectCause::Handshake(OpenError::Closed { probing: true }))
}

/// The PATH that the child has: the catalog's, or ours.
fn path_of_child(variables: &[(String, String)]) -> OsString {
    let own = variables.iter().rev().find(|(name, _)| name == "PATH");
    own.map(|(_, it)| it.into()).or_else(|| env::var_os("PATH")).unwrap_or_default()
}

/// The file that a command is.
fn find(command: &str, path: &OsString, cwd: Option<&Path>) -> Result<PathBuf, String> {
    let is_program = |it: &Path| {
        it.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        let file = cwd.map_or_else(|| PathBuf::from(command), |it| it.join(command));
        return match (is_program(&file), file.exists()) {
            (true, _) => Ok(file),
            (_, true) => Err(format!("`{}` may not be executed.", file.display())),
            _ => Err(format!("`{}` does not exist.", file.display())),
        };
    }
    let mut files = env::split_paths(path).map(|it| it.join(command));
    files.find(|it| is_program(it)).ok_or_else(|| format!("`{command}` was not found on PATH."))
}

fn told(path: &OsString) -> String {
    let path = path.to_string_lossy();
    format!("Install it, or give its full path. PATH is `{path}`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_looked_for_where_the_child_would() {
        let usual = OsString::from("/nowhere:/bin:/usr/bin");
        assert!(find("sh", &usual, None).unwrap().ends_with("sh"));
        assert!(find("sh", &"/nowhere".into(), None).unwrap_err().contains("not found on PATH"));
        assert!(find("./sh", &usual, Some(Path::new("/bin"))).is_ok());
        assert!(find("./no-such", &usual, Some(Path::new("/bin"))).unwrap_err().contains("exist"));
        assert!(find("/etc/passwd", &usual, None).unwrap_err().contains("executed"));
        let own = [("PATH".to_owned(), "/a".to_owned())];
        assert_eq!(path_of_child(&own), "/a");
    }
}
