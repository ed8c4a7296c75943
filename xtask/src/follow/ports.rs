//! The ports that a page names into ones that are free here, and back. Nothing else of a command is changed but what
//! would take minutes.

use crate::free_ports::free_port;

/// What listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Gateway,
    Demo,
}

/// Where they listen here.
pub struct Ports {
    gateway: u16,
    /// The authorization server of the demo is at the next one.
    demo: u16,
}

impl Ports {
    /// Free ports.
    pub fn free() -> Self {
        let (gateway, mut demo) = (free_port(), free_port());
        loop {
            let next = free_port();
            if next == demo + 1 {
                return Self { gateway, demo };
            }
            demo = next;
        }
    }

    /// A command of a page as it is typed here, and the servers that keep running after it.
    pub fn there(&self, command: &str) -> (String, Option<Kind>) {
        let mut typed = match command {
            // A debug build is here already.
            "cargo run --release" => "trunkline".to_owned(),
            // It is what follows the pages.
            "cargo xtask test" => "true".to_owned(),
            _ => command.to_owned(),
        };
        for (theirs, ours) in self.pairs() {
            typed = typed.replace(&theirs, &ours);
        }
        let alone = typed.trim_end_matches('&').trim_end().to_owned();
        let kind = kind(&alone);
        match kind {
            Some(Kind::Gateway) if alone == "trunkline" => typed = "trunkline serve".to_owned(),
            Some(_) => typed = alone,
            None => {}
        }
        match kind {
            Some(Kind::Gateway) => typed.push_str(&format!(" --listen 127.0.0.1:{}", self.gateway)),
            Some(Kind::Demo) if !typed.contains("--http 1") => {
                typed = typed.replace("--http", &format!("--http 127.0.0.1:{}", self.demo));
            }
            _ => {}
        }
        (typed, kind)
    }

    /// What was said here, with the ports of the page.
    pub fn here(&self, said: &str) -> String {
        let said = said.to_owned();
        self.pairs().iter().fold(said, |said, (theirs, ours)| said.replace(ours, theirs))
    }

    fn pairs(&self) -> [(String, String); 3] {
        let pair =
            |theirs: u16, ours: u16| (format!("127.0.0.1:{theirs}"), format!("127.0.0.1:{ours}"));
        [pair(7373, self.gateway), pair(3000, self.demo), pair(3001, self.demo + 1)]
    }
}

fn kind(command: &str) -> Option<Kind> {
    let is_for_a_host = command.contains("--stdio");
    let is_gateway = command == "trunkline" || command.starts_with("trunkline serve");
    if is_gateway && !is_for_a_host {
        return Some(Kind::Gateway);
    }
    command.starts_with("trunkline demo --http").then_some(Kind::Demo)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports { gateway: 50_001, demo: 50_002 };

    #[test]
    fn servers_listen_at_free_ports() {
        let typed = |command: &str| PORTS.there(command);
        let gateway = "trunkline serve --listen 127.0.0.1:50001".to_owned();
        assert_eq!(typed("cargo run --release"), (gateway.clone(), Some(Kind::Gateway)));
        assert_eq!(typed("trunkline serve &"), (gateway, Some(Kind::Gateway)));
        let demo = "trunkline demo --http 127.0.0.1:50002 --auth".to_owned();
        assert_eq!(typed("trunkline demo --http --auth &"), (demo, Some(Kind::Demo)));
        assert_eq!(typed("trunkline serve --stdio").1, None);
        assert_eq!(typed("trunkline ps").1, None);
    }

    #[test]
    fn addresses_are_those_of_the_page_again() {
        let (typed, _) = PORTS.there("trunkline list http://127.0.0.1:3000/mcp");
        assert_eq!(typed, "trunkline list http://127.0.0.1:50002/mcp");
        assert_eq!(PORTS.here("at http://127.0.0.1:50003"), "at http://127.0.0.1:3001");
    }
}
