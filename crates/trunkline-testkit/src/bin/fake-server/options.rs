//! The words of the command line into how this server behaves.

use std::time::Duration;

use crate::Options;

/// When it says that its tools have changed, though they have not.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Announces {
    pub(crate) at_start: bool,
    pub(crate) after_lists: bool,
    pub(crate) every: Option<Duration>,
}

impl Announces {
    fn add(&mut self, when: &str) -> Result<(), String> {
        match when {
            "start" => self.at_start = true,
            "list" => self.after_lists = true,
            every => self.every = Some(Duration::from_millis(number("--announce", every)?)),
        }
        Ok(())
    }
}

impl Options {
    /// Reads the command line; the error is a sentence.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options =
            Options { revision: "2025-11-25".into(), name: "fake".into(), ..Options::default() };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` lacks its value."));
            match word.as_str() {
                "--revision" => options.revision = known(value()?)?,
                "--also" => options.also = Some(known(value()?)?),
                "--name" => options.name = value()?,
                "--instructions" => options.instructions = Some(value()?),
                "--log" => options.log = Some(value()?.into()),
                "--tools-file" => options.tools_file = Some(value()?.into()),
                "--page" => options.page = Some(number(&word, &value()?)?),
                "--exit-at-start" => options.exit_at_start = Some(number(&word, &value()?)?),
                "--exit-while" => options.exit_while = Some(value()?.into()),
                "--exit-on" => options.exit_on.push(value()?),
                "--hang-on" => options.hang_on.push(value()?),
                "--start-delay" => {
                    options.start_delay = Duration::from_millis(number(&word, &value()?)?);
                }
                "--ignore-eof" => options.ignores_eof = true,
                "--ignore-term" => options.ignores_term = true,
                "--list-changed-on" => match value()?.as_str() {
                    "SIGUSR1" => options.tells_changes = true,
                    other => return Err(format!("`{other}` is no signal to wait for.")),
                },
                "--announce" => options.announces.add(&value()?)?,
                "--list-by-client" => options.lists_by_client = true,
                "--gossip" => options.gossips = true,
                "--roots-at-start" => options.asks_at_start = true,
                "--stderr" => options.stderr.push(value()?),
                _ => return Err(format!("`{word}` is no option of `fake-server`.")),
            }
        }
        Ok(options)
    }

    /// Whether it may say that its tools have changed.
    pub(crate) fn may_announce(&self) -> bool {
        self.tells_changes || self.announces != Announces::default()
    }

    /// Whether each request carries its own envelope, without a handshake.
    pub(crate) fn is_stateless(&self) -> bool {
        self.revision == "2026-07-28"
    }
}

fn known(revision: String) -> Result<String, String> {
    let is_known = REVISIONS.contains(&revision.as_str());
    is_known.then_some(revision).ok_or_else(|| format!("The revisions are {REVISIONS:?}."))
}

fn number<T: std::str::FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{word}` takes a number, not `{value}`."))
}

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

pub(crate) const USAGE: &str = "\
fake-server [OPTIONS]
  --revision REVISION         the one it speaks (2025-11-25)
  --also REVISION             an old one, to whoever begins with `initialize`; then it asks in that one alone
  --name NAME                 how it calls itself (fake)
  --instructions TEXT         how it wants to be used
  --log FILE                  where it appends one JSON object for each thing that happens
  --tools-file FILE           a JSON array of tools, read at each `tools/list`; what is not known of them echoes
  --page N                    lists in pages of N
  --exit-at-start CODE        ends at once
  --exit-while FILE           ends at once with 1 while FILE exists
  --exit-on METHOD            ends with 1 when it is sent METHOD; may be repeated
  --hang-on METHOD            never answers METHOD; may be repeated
  --start-delay MS            waits before it reads
  --ignore-eof, --ignore-term stays
  --list-changed-on SIGUSR1   tells that its tools have changed
  --announce WHEN             tells so though they have not: `start`, `list` (after each) or every MS; may be repeated
  --list-by-client            has the tool `extra` for clients that can be asked to sample
  --gossip                    has the tool `gossip`, which talks about its callers
  --roots-at-start            asks for the roots once it is up and when they change; has the tool `kept`, which names them
  --stderr TEXT               a line to begin with; may be repeated";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_become_options_or_a_sentence() {
        let options = parse("--revision 2026-07-28 --page 3 --hang-on ping --ignore-term");
        let options = options.expect("all of these are options");
        assert!(options.is_stateless() && options.ignores_term && !options.ignores_eof);
        assert_eq!((options.page, options.hang_on), (Some(3), vec!["ping".to_owned()]));
        let often = parse("--announce start --announce 20").expect("both are moments");
        assert!(often.may_announce() && often.announces.at_start && !often.announces.after_lists);
        assert_eq!(often.announces.every, Some(Duration::from_millis(20)));
        assert_eq!(parse("--page x").unwrap_err(), "`--page` takes a number, not `x`.");
        assert_eq!(parse("--log").unwrap_err(), "`--log` lacks its value.");
        assert!(parse("--revision 2023-01-01").is_err());
    }
}
