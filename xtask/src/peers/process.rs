//! Peers' command lines into what they print, or into a server that listens until it is dropped.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::run;

/// Runs a command line in the root of the repository and returns its standard output; what it writes to its
/// standard error is in the error of one that fails.
pub fn output(words: &[String], limit: Duration) -> Result<String, String> {
    let mut child = start(words)?;
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let end = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                stop(&mut child);
                return Err(format!("nothing came within {} s", limit.as_secs()));
            }
            Err(error) => return Err(format!("cannot wait for `{}`: {error}", words[0])),
        }
    };
    let text = |pipe: thread::JoinHandle<String>| pipe.join().unwrap_or_default();
    if status.success() {
        return Ok(text(out));
    }
    let said = format!("{} {}", text(err), text(out));
    let last: Vec<&str> = said.lines().rev().filter(|it| !it.trim().is_empty()).take(6).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(format!("{status}: {}", last.join(" | ")))
}

/// A server over HTTP; dropping it ends it.
pub struct Listening {
    child: Child,
    /// Where its MCP endpoint is.
    pub url: String,
}

impl Listening {
    /// Starts a server that prints its address on either of its outputs.
    pub fn start(words: &[String]) -> Result<Listening, String> {
        let mut child = start(words)?;
        let lines = lines(&mut child);
        let end = Instant::now() + Duration::from_secs(30);
        let mut said = Vec::new();
        let url = loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => match address(&line) {
                    Some(url) => break url,
                    None => said.push(line),
                },
                // Both outputs ended, or the time did.
                Err(_) => {
                    stop(&mut child);
                    let said = said.join(" | ");
                    return Err(format!("`{}` did not say where it listens: {said}", words[0]));
                }
            }
        };
        Ok(Listening { child, url })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

fn start(words: &[String]) -> Result<Child, String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(run::root()).env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| format!("`{}` did not start: {error}", words[0]))
}

fn stop(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The lines of both outputs as they come. They are read to the end, so that the server can always write.
fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let out = child.stdout.take().map(|it| Box::new(it) as Box<dyn Read + Send>);
    let err = child.stderr.take().map(|it| Box::new(it) as Box<dyn Read + Send>);
    for pipe in [out, err].into_iter().flatten() {
        let sender: Sender<String> = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // The output is not read any more once the address is known.
                let _ = sender.send(line);
            }
        });
    }
    receiver
}

/// The address in a line; `/mcp` when it has no path of its own.
fn address(line: &str) -> Option<String> {
    let from = &line[line.find("http://")?..];
    let allowed = |c: char| c.is_ascii_alphanumeric() || ":/.-_[]".contains(c);
    let end = from.find(|c| !allowed(c)).unwrap_or(from.len());
    let url = from[..end].trim_end_matches(['.', '/']);
    let has_path = url["http://".len()..].contains('/');
    Some(if has_path { url.to_owned() } else { format!("{url}/mcp") })
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_is_found_in_whatever_a_server_says() {
        for line in ["Serving at {}/mcp", "Serving MCP at {}/mcp.", "{}", "on {}/ now"] {
            for origin in ["http://127.0.0.1:4000", "http://[::1]:4000"] {
                let found = address(&line.replace("{}", origin));
                assert_eq!(found, Some(format!("{origin}/mcp")), "{line}");
            }
        }
        assert_eq!(address("listening on 127.0.0.1:4000"), None);
    }
}
