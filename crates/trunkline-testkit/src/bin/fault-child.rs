//! A server that misbehaves in the way its first argument names. Only the standard library, so
//! that `fault::child` can build it with nothing but a compiler.

#![forbid(unsafe_code)]

use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mode = args.first().map_or("", String::as_str);
    let argument = || args.get(1).cloned().unwrap_or_default();
    match mode {
        // Say what we were given, then leave.
        "env" => environment(),
        "descriptors" => descriptors(),
        "directory" => writeln!(io::stdout(), "{}", std::env::current_dir()?.display()),
        "session" => session(),
        // Start badly.
        "fail" => {
            writeln!(io::stderr(), "cannot read the \u{1b}[31mconfiguration\u{1b}[0m\nleaving")?;
            exit(argument().parse().unwrap_or(1))
        }
        "mute" => wait_for_end_of_input(),
        "noise" => {
            for _ in 0..1000 {
                writeln!(io::stdout(), "this is not JSON {{\u{7}")?;
            }
            wait_for_end_of_input()
        }
        // Answer the handshake, then do something else.
        "exit-in-call" => serve(|_| exit(3)),
        "abort-in-call" => serve(|_| std::process::abort()),
        "never-answer" => serve(|_| Ok(())),
        "close-stdout-in-call" => serve(|_| become_shell("exec >&-; cat >/dev/null")),
        "long-line" => serve(|id| long_answer(id, 100 << 20)),
        "garbage-in-call" => serve(|id| {
            let mut out = io::stdout().lock();
            out.write_all(b"\xff\xfe\n{\"jsonrpc\":\"2.0\",\"id\":\n[]\n")?;
            writeln!(out, r#"{{"jsonrpc":"2.0","id":"nobody","result":{{}}}}"#)?;
            writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)
        }),
        "noise-in-call" => serve(|id| {
            let mut out = io::BufWriter::new(io::stdout().lock());
            for line in 0..1000 {
                writeln!(out, "\u{1b}[33mINFO\u{1b}[0m {line}: [] {{\"jsonrpc\": not quite")?;
            }
            writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)
        }),
        "half-line-in-call" => serve(|id| {
            write!(io::stdout(), r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]"#)?;
            io::stdout().flush()?;
            exit(4)
        }),
        // Whoever does not read while writing waits for ever here: no pipe holds that much.
        "write-first" => serve(|id| {
            let mut out = io::stdout().lock();
            out.write_all(&vec![b'x'; 4 << 20])?;
            writeln!(out)?;
            writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)
        }),
        "answer-twice" => serve(|id| {
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
            write!(io::stdout(), "{answer}\n{answer}\n")
        }),
        // Do not leave.
        "stubborn" => become_shell("trap '' TERM INT HUP PIPE; sleep 1000 & echo $!; wait"),
        "leave-grandchild" => become_shell("trap '' TERM INT HUP PIPE; sleep 1000 & echo $!"),
        "hold" => {
            let mut fifo = std::fs::OpenOptions::new().write(true).open(argument())?;
            writeln!(fifo, "{}", std::process::id())?;
            loop {
                std::thread::park();
            }
        }
        // Write more than any limit.
        "flood-stderr" => {
            let line = [&[b'e'; 99][..], b"\n"].concat().repeat(1000);
            let mut err = io::stderr().lock();
            (0..1000).try_for_each(|_| err.write_all(&line))?;
            writeln!(err, "the last line")
        }
        "flood-stderr-line" => {
            let mut err = io::stderr().lock();
            (0..1000).try_for_each(|_| err.write_all(&[b'e'; 100_000]))
        }
        _ => {
            writeln!(io::stderr(), "`{mode}` is no way to misbehave that I know.")?;
            exit(2)
        }
    }
}

fn environment() -> io::Result<()> {
    let mut names: Vec<String> = std::env::vars_os()
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect();
    names.sort();
    names.iter().try_for_each(|line| writeln!(io::stdout(), "{line}"))
}

fn descriptors() -> io::Result<()> {
    let mut open: Vec<(u32, String)> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let target = std::fs::read_link(entry.path())?.display().to_string();
        // The directory that is being read here is open too.
        if !target.ends_with("/fd") {
            let number = entry.file_name().to_string_lossy().parse().map_err(io::Error::other)?;
            open.push((number, target));
        }
    }
    open.sort();
    open.iter().try_for_each(|(number, _)| writeln!(io::stdout(), "{number}"))
}

/// Process, group and session id.
fn session() -> io::Result<()> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    writeln!(io::stdout(), "{} {} {}", std::process::id(), fields[2], fields[3])
}

fn wait_for_end_of_input() -> io::Result<()> {
    io::stdin().lock().read_to_end(&mut Vec::new()).map(drop)
}

fn become_shell(script: &str) -> io::Result<()> {
    Err(Command::new("/bin/sh").args(["-c", script]).exec())
}

/// Speaks just enough of 2025-11-25 to be called: `on_call` gets the id of each `tools/call`.
fn serve(on_call: impl Fn(&str) -> io::Result<()>) -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some(id) = member(&line, "id") else { continue };
        let result = match member(&line, "method").unwrap_or_default() {
            r#""initialize""# => {
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fault-child","version":"0"}}"#
            }
            r#""tools/list""# => r#"{"tools":[{"name":"fault","inputSchema":{"type":"object"}}]}"#,
            r#""ping""# => "{}",
            r#""tools/call""# => {
                on_call(id)?;
                continue;
            }
            _ => {
                writeln!(
                    io::stdout(),
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#
                )?;
                continue;
            }
        };
        writeln!(io::stdout(), r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)?;
    }
    Ok(())
}

/// The text of an outer member. Good enough for what our own client writes: the envelope first.
fn member<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let head = line.split(r#""params""#).next()?;
    let (_, value) = head.split_once(&format!("\"{name}\":"))?;
    value.split([',', '}']).next()
}

fn long_answer(id: &str, length: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#)?;
    let part = [b'x'; 1 << 16];
    (0..length / part.len()).try_for_each(|_| out.write_all(&part))?;
    out.write_all(b"\"}]}}\n")
}
