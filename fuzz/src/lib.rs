//! Bytes that a stranger could send → properties that must hold whatever they are.
//!
//! A target is a function from bytes that panics when a property does not hold. Three things run
//! them: `tests/fuzz.rs` gives them the seeds, the inputs that once broke something, and blind
//! mutations of both, in plain `cargo test`; the binary `guided` gives them what libFuzzer makes up
//! with coverage as its guide (`cargo xtask fuzz`).

#![forbid(unsafe_code)]

mod input;
mod mutate;
#[cfg(feature = "servers")]
mod raw;
mod targets;

pub use mutate::Mutator;

#[cfg(feature = "servers")]
use targets::{admin, catalog, http, request, response, uri};
use targets::{challenge, classify, codec, conversation, jose, jsonrpc, seal, sse, template};

/// One thing that strangers can send to.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What the command line and the folders of seeds call it.
    pub name: &'static str,
    /// What it reads.
    pub what: &'static str,
    /// Checks one input; panics if a property does not hold.
    pub check: fn(&[u8]),
    /// Words that inputs are made of.
    pub words: &'static [&'static str],
}

impl Target {
    /// The words as libFuzzer reads them: one line each, odd bytes escaped.
    pub fn dictionary(&self) -> String {
        let escaped = |byte: u8| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        };
        let line = |word: &&str| format!("\"{}\"\n", word.bytes().map(escaped).collect::<String>());
        self.words.iter().map(line).collect()
    }
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "codec",
        what: "lines and `Content-Length` blocks",
        check: codec::check,
        words: codec::WORDS,
    },
    Target {
        name: "jsonrpc",
        what: "JSON-RPC messages",
        check: jsonrpc::check,
        words: jsonrpc::WORDS,
    },
    Target { name: "sse", what: "event streams", check: sse::check, words: sse::WORDS },
    Target {
        name: "conversation",
        what: "what a client says to a server",
        check: conversation::check,
        words: jsonrpc::WORDS,
    },
    Target {
        name: "classify",
        what: "where a POST goes",
        check: classify::check,
        words: classify::WORDS,
    },
    #[cfg(feature = "servers")]
    Target {
        name: "http",
        what: "raw HTTP/1.1 to a server of the SDK",
        check: http::check,
        words: http::WORDS,
    },
    #[cfg(feature = "servers")]
    Target {
        name: "request",
        what: "raw HTTP/1.1 to a connection of ours and to one of hyper's",
        check: request::check,
        words: request::WORDS,
    },
    #[cfg(feature = "servers")]
    Target {
        name: "response",
        what: "raw HTTP/1.1 to a client",
        check: response::check,
        words: response::WORDS,
    },
    Target {
        name: "template",
        what: "URI templates",
        check: template::check,
        words: template::WORDS,
    },
    #[cfg(feature = "servers")]
    Target {
        name: "uri",
        what: "the readings of URIs that rules go by",
        check: uri::check,
        words: uri::WORDS,
    },
    #[cfg(feature = "servers")]
    Target {
        name: "catalog",
        what: "catalogs of the gateway",
        check: catalog::check,
        words: catalog::WORDS,
    },
    Target {
        name: "jose",
        what: "signed tokens and key sets",
        check: jose::check,
        words: jose::WORDS,
    },
    Target {
        name: "challenge",
        what: "`WWW-Authenticate`",
        check: challenge::check,
        words: challenge::WORDS,
    },
    Target {
        name: "seal",
        what: "sealed state that comes back",
        check: seal::check,
        words: seal::WORDS,
    },
    #[cfg(feature = "servers")]
    Target {
        name: "admin",
        what: "raw HTTP/1.1 to the admin API",
        check: admin::check,
        words: admin::WORDS,
    },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|it| it.name == name)
}
