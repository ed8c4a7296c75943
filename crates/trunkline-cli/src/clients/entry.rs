//! One server of a client's file, in the catalog's form.

use serde_json::{Value, json};

use super::edit::{Field, Fields};

/// A server, in the catalog's syntax: texts may contain `${NAME}`, and `$$` for a dollar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// How it is reached.
    pub(crate) transport: ServerTransport,
    /// Whether it is disabled.
    pub(crate) is_disabled: bool,
    /// The only tools that are shown; empty for all.
    pub(crate) expose: Vec<String>,
    /// Seconds that it may take to start.
    pub(crate) start_seconds: Option<u64>,
    /// Seconds that a call may take.
    pub(crate) call_seconds: Option<u64>,
    /// What could not be converted, in sentences.
    pub(crate) notes: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ServerTransport {
    /// A program.
    Stdio {
        /// What to run.
        command: String,
        /// With which arguments.
        args: Vec<String>,
        /// Its variables.
        env: Vec<(String, String)>,
        /// Variables of ours that it gets.
        inherit: Vec<String>,
        /// Where it runs.
        cwd: Option<String>,
    },
    /// A URL.
    Http {
        /// Where.
        url: String,
        /// Whether it speaks the transport of 2024-11-05.
        is_sse: bool,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
}

impl Entry {
    /// Whether it means the same. Notes do not count, nor does the order of variables.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.sorted() == other.sorted()
    }

    /// The same without notes, and with unordered parts sorted.
    pub(super) fn sorted(&self) -> Self {
        let mut it = Self { notes: Vec::new(), ..self.clone() };
        match &mut it.transport {
            ServerTransport::Stdio { env, inherit, .. } => {
                env.sort();
                inherit.sort();
            }
            ServerTransport::Http { headers, .. } => {
                headers.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
                headers.sort();
            }
        }
        it.expose.sort();
        it
    }

    /// Variables or headers, with names and values.
    pub(crate) fn values(&self) -> &[(String, String)] {
        match &self.transport {
            ServerTransport::Stdio { env, .. } => env,
            ServerTransport::Http { headers, .. } => headers,
        }
    }

    /// The keys of the catalog, in the order in which people write them.
    pub(super) fn fields(&self) -> Fields {
        let mut out = Vec::new();
        let mut one = |key: &str, value: Value| out.push((key.to_owned(), Field::One(value)));
        let pairs = |all: &[(String, String)]| {
            Fields(
                all.iter().map(|(key, it)| (key.clone(), Field::One(it.as_str().into()))).collect(),
            )
        };
        match &self.transport {
            ServerTransport::Stdio { command, args, inherit, cwd, .. } => {
                one("command", command.as_str().into());
                if !args.is_empty() {
                    one("args", json!(args));
                }
                if !inherit.is_empty() {
                    one("inherit", json!(inherit));
                }
                if let Some(cwd) = cwd {
                    one("cwd", cwd.as_str().into());
                }
            }
            ServerTransport::Http { url, is_sse, .. } => {
                if *is_sse {
                    one("type", "sse".into());
                }
                one("url", url.as_str().into());
            }
        }
        if !self.values().is_empty() {
            let key = if matches!(self.transport, ServerTransport::Stdio { .. }) {
                "env"
            } else {
                "headers"
            };
            out.push((key.to_owned(), Field::Many(pairs(self.values()))));
        }
        if !self.expose.is_empty() {
            out.push(("exposeTools".to_owned(), Field::One(json!(self.expose))));
        }
        let mut times = Vec::new();
        for (key, value) in
            [("startSeconds", self.start_seconds), ("callSeconds", self.call_seconds)]
        {
            times.extend(value.map(|it| (key.to_owned(), Field::One(it.into()))));
        }
        if !times.is_empty() {
            out.push(("timeouts".to_owned(), Field::Many(Fields(times))));
        }
        if self.is_disabled {
            out.push(("disabled".to_owned(), Field::One(true.into())));
        }
        Fields(out)
    }
}
