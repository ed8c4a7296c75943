//! The official conformance suite against our server and client: installed once, run, and judged
//! more strictly than it judges itself. Warnings count, and so does what it skips or only notes.

mod checks;
mod client;
mod gateway;
mod report;
mod server;
mod suite;

use gateway::Front;
use report::Report;
pub use suite::install;

/// The chore: install, build, run, and print a table.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    install()?;
    suite::build()?;
    let mut report = Report::new(options.scenario.is_some());
    if let Some(name) = &options.scenario {
        let served = options.server && server::one(name, &mut report)?;
        let called = options.client && client::alone(&mut report, Some(name))?;
        if !served && !called {
            return Err(format!("The suite has no scenario `{name}` for that."));
        }
        return report.end();
    }
    if options.server {
        server::run(&mut report)?;
    }
    if options.client {
        client::run(&mut report)?;
        if options.strict {
            client::alone(&mut report, None)?;
        }
    }
    if options.gateway {
        gateway::run(Front::One, &mut report)?;
    }
    if options.replicas {
        gateway::run(Front::Three, &mut report)?;
    }
    if options.server_replicas {
        server::of_three(&mut report)?;
    }
    report.end()
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Options {
    server: bool,
    client: bool,
    gateway: bool,
    replicas: bool,
    server_replicas: bool,
    strict: bool,
    scenario: Option<String>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "server" => options.server = true,
                "client" => options.client = true,
                "gateway" => options.gateway = true,
                "replicas" => options.replicas = true,
                "server-replicas" => options.server_replicas = true,
                "--strict" => options.strict = true,
                "--scenario" => {
                    let name = args.next().ok_or("`--scenario` needs a name.")?;
                    options.scenario = Some(name.clone());
                }
                other => return Err(format!("`conformance` does not know `{other}`. {USAGE}")),
            }
        }
        let direct = [options.server, options.client];
        let through = [options.gateway, options.replicas, options.server_replicas];
        if !direct.iter().chain(&through).any(|is_named| *is_named) {
            (options.server, options.client) = (true, true);
            let is_all = options.scenario.is_none();
            (options.gateway, options.replicas, options.server_replicas) = (is_all, is_all, is_all);
        }
        Ok(options)
    }
}

const USAGE: &str = "It takes `server`, `client`, `gateway`, `replicas` or `server-replicas` (all when none is named), \
    `--strict` to run each client scenario alone as well, and `--scenario NAME` to run just one.";

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(line: &str) -> Result<Options, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&args)
    }

    #[test]
    fn nothing_named_means_everything() {
        let all = Options { server: true, client: true, gateway: true, ..Options::default() };
        assert_eq!(parse(""), Ok(Options { replicas: true, server_replicas: true, ..all }));
        let gateway = Options { gateway: true, ..Options::default() };
        assert_eq!(parse("gateway"), Ok(gateway));
        let client = Options { client: true, strict: true, ..Options::default() };
        assert_eq!(parse("client --strict"), Ok(client));
    }

    #[test]
    fn what_is_unknown_or_half_said_is_refused() {
        for line in ["servers", "--scenario", "--quick"] {
            assert!(parse(line).is_err(), "`{line}` was taken");
        }
    }
}
