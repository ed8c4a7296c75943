//! The table of all keys of the catalog: what `check` reads and what `schema` describes.

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Other names, from other programs' files.
    pub(super) aliases: &'static [&'static str],
    pub(super) kind: Kind,
    /// Whether its object is invalid without it.
    pub(super) is_required: bool,
    pub(super) about: &'static str,
}

/// The type of a key's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Text,
    /// A text that is never shown, or `{ file: PATH }` or `{ env: NAME }`.
    Secret,
    /// A file or folder; relative to the catalog.
    Path,
    Flag,
    /// A whole number, and its minimum.
    Count(u64),
    /// A time in seconds, and whether it may be zero.
    Seconds(bool),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts; one text is a list of one.
    Texts,
    /// Like [`Kind::Texts`], of files.
    Paths,
    /// A map of names and secrets.
    Secrets,
    /// A map of names and texts.
    Map,
    /// A path, or an object with one.
    PathOr(&'static [Key]),
    Object(&'static [Key]),
    Objects(&'static [Key]),
    /// A map of servers, or a list of servers with names.
    Servers,
    Any,
}

const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, aliases: &[], kind, is_required: false, about }
}

const fn must(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { is_required: true, ..key(name, kind, about) }
}

const fn also(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    about: &'static str,
) -> Key {
    Key { name, aliases, kind, is_required: false, about }
}

use Kind::{
    Any, Choice, Count, Flag, Map, Object, Objects, Path, PathOr, Paths, Seconds, Secret, Secrets,
    Servers, Text, Texts,
};

pub(super) static ROOT: &[Key] = &[
    also(
        "mcpServers",
        &["servers", "context_servers"],
        Servers,
        "The servers: a map of names and servers, or a list of servers with names.",
    ),
    key("gateway", Object(GATEWAY), "The gateway itself."),
];

pub(super) static SERVER: &[Key] = &[
    key(
        "name",
        Text,
        "Its name, where servers are a list: letters, digits, `_` and `-`, at most 64.",
    ),
    also(
        "type",
        &["transport"],
        Choice(&["stdio", "http", "sse", "streamable-http", "streamable_http", "streamableHttp"]),
        "How it is reached. Need not be given: `command` and `url` say it too.",
    ),
    also(
        "command",
        &["cmd"],
        Texts,
        "The program to run, or a list: the program and its arguments.",
    ),
    key("args", Texts, "The arguments of the program."),
    key(
        "env",
        Secrets,
        "Variables of the program. It gets these, those of `inherit`, and a few that every program needs.",
    ),
    key("inherit", Texts, "Variables of the gateway that the program gets as they are."),
    key("cwd", Path, "The folder that the program runs in."),
    also("url", &["serverUrl", "httpUrl"], Text, "Where a remote server is, `http` or `https`."),
    key("headers", Secrets, "Headers of every request to a remote server."),
    key("http", Object(HTTP), "`url` and `headers`, as other programs write them."),
    key("auth", Object(OUTWARD), "How the gateway says who it is to a remote server."),
    key(
        "rootCertificates",
        Paths,
        "PEM files with certificates to believe, beside the usual ones.",
    ),
    key(
        "tags",
        Texts,
        "Clients that select a tag see the servers that have it, and those without tags.",
    ),
    key(
        "strategy",
        Choice(&["stateless", "stateful", "persistent", "singleton"]),
        "How instances are shared: by anybody and stopped when idle (the default), one for each session, by anybody and never stopped, or only one.",
    ),
    key(
        "sharing",
        Choice(&["auto", "isolated", "shared"]),
        "Whether principals share instances: not where a server may say something without saying whom it is for (the default), never, or always. What is said that way in a shared instance reaches nobody.",
    ),
    key(
        "questions",
        Texts,
        "What it may ask callers: `elicitation`, `sampling`, `roots`. Default all; an empty list for nothing.",
    ),
    key(
        "affinity",
        Text,
        "By what a stateful server knows a session: `session`, `principal` or `meta:KEY`.",
    ),
    key(
        "idleSeconds",
        Seconds(true),
        "How long an instance may be idle before it is stopped. Default 300.",
    ),
    key("maxConcurrent", Count(1), "Calls at a time in one instance. Default 16, remote 64."),
    key(
        "maxInstances",
        Count(1),
        "Instances at a time. Default 4, stateful 32, singleton 1. Where principals do not share instances each has 4, and all have 32.",
    ),
    key("minReady", Count(0), "Instances that are ready whether anybody calls or not. Default 0."),
    key(
        "sessionTTLSeconds",
        Seconds(true),
        "How long a session keeps its instance after its last call. Default 300; 0 for ever.",
    ),
    also(
        "activation",
        &["activationMode"],
        Choice(&["on-demand", "always-on"]),
        "When it runs. Default on-demand.",
    ),
    key(
        "drainTimeoutSeconds",
        Seconds(true),
        "How long calls may go on when an instance should stop. Default 30.",
    ),
    key("disabled", Flag, "Whether it is left out."),
    key("enabled", Flag, "The opposite of `disabled`, as other programs write it."),
    key("timeouts", Object(TIMEOUTS), "What takes too long."),
    key("probe", Object(PROBE), "How its health is looked after."),
    key("retry", Object(RETRY), "What happens when it does not start."),
    key(
        "protocolVersion",
        Texts,
        "Revisions of MCP to speak with it: one, a list, `>=` and the oldest, `<=` and the newest, or both. Default all.",
    ),
    key(
        "exposeTools",
        Texts,
        "The only tools that are shown and can be called, by their own names; `*` stands for anything.",
    ),
    key("renameTools", Map, "Tools under other names: its own name and the name it is shown by."),
    key(
        "idempotentTools",
        Texts,
        "Tools that may be called again when an answer was lost; `*` stands for anything.",
    ),
    key(
        "pin",
        Choice(&["true", "false", "first-use", "strict", "off"]),
        "What is held back until somebody approves: what has changed (`true` or `first-use`, the \
         default), also what a known server gets later (`strict`), or nothing (`false` or `off`).",
    ),
];

static HTTP: &[Key] = &[
    key("endpoint", Text, "Where a remote server is."),
    key("headers", Secrets, "Headers of every request."),
];

static OUTWARD: &[Key] = &[
    must(
        "type",
        Choice(&["login", "clientCredentials"]),
        "By a login of `trunkline login`, or as a machine.",
    ),
    key(
        "perUser",
        Flag,
        "With `type: login`: each principal of `gateway.auth` logs in with its own account, over a page of the gateway. Default false: all share the login of `trunkline login`.",
    ),
    key(
        "clientId",
        Text,
        "Who the machine is; with `perUser`, a client that was registered for the gateway.",
    ),
    key("clientSecret", Secret, "Its secret."),
    key(
        "issuer",
        Text,
        "The authorization server that gave it out; the secret is shown to no other.",
    ),
    key("scopes", Texts, "For which scopes."),
];

static TIMEOUTS: &[Key] = &[
    key("startSeconds", Seconds(false), "Starting and shaking hands. Default 30."),
    key("acquireSeconds", Seconds(false), "Waiting for an instance. Default 30."),
    key("callSeconds", Seconds(false), "A call without a sign of life. Default 60."),
    key("hardSeconds", Seconds(false), "A call altogether. Default 600."),
];

static PROBE: &[Key] = &[
    key(
        "everySeconds",
        Seconds(true),
        "How often, while no call is under way. Default 30; 0 for never.",
    ),
    key("timeoutSeconds", Seconds(false), "How long an answer may take. Default 5."),
];

static RETRY: &[Key] = &[
    key("baseSeconds", Seconds(false), "The first pause; each is twice the one before. Default 1."),
    key("maxSeconds", Seconds(false), "The longest pause. Default 30."),
    key("tries", Count(1), "After so many failures in a row it is suspended. Default 5."),
];

pub(super) static GATEWAY: &[Key] = &[
    key("listen", Text, "Where it listens: `HOST:PORT`. Default `127.0.0.1:7373`."),
    key(
        "naming",
        Choice(&["prefix", "underscore", "flat"]),
        "How names are put together: `server.tool` (the default), `server_tool`, or `tool` where only one server has it.",
    ),
    key(
        "share",
        Flag,
        "Whether hosts with `serve --stdio` share one gateway in the background. Default false.",
    ),
    key("requireSelector", Flag, "Whether clients must say which server or tags they want."),
    key("hosts", Texts, "Hosts by which it may be called, beside loopback."),
    key("origins", Texts, "Origins of pages that may call it."),
    key("auth", Object(INWARD), "Who is let in."),
    key("tls", Object(TLS), "Its certificate."),
    key(
        "plaintext",
        Flag,
        "Whether other machines may reach it without `tls`: only behind a proxy that has the certificate, as tokens can be read on the way.",
    ),
    key("admin", Object(ADMIN), "The admin API."),
    key(
        "rules",
        Objects(RULE),
        "Who may do what: the first that fits decides, and where none fits it is allowed.",
    ),
    key("rates", Objects(RATE), "How often."),
    key(
        "inherit",
        Texts,
        "Variables of the gateway that all programs get as they are, unless their own `env` says otherwise: `HTTPS_PROXY`.",
    ),
    key(
        "envFile",
        Path,
        "A file of lines `NAME=value` that `${NAME}` is filled in from, where the environment does not have it. Only its owner may read it.",
    ),
    key("audit", PathOr(AUDIT), "Where calls are noted, one line of JSON each."),
    key("plugins", Objects(PLUGIN), "Programs that look at calls."),
    key(
        "automatic",
        Object(AUTOMATIC),
        "Clients that get two tools to find and call the others with.",
    ),
    key(
        "bootstrap",
        Count(1),
        "Servers whose lists are fetched at a time at the start. Default 3.",
    ),
    key(
        "refreshSeconds",
        Seconds(true),
        "How often the lists of running servers are fetched anew. Default 60; 0 for never.",
    ),
];

static AUDIT: &[Key] = &[
    must("path", Path, "The file."),
    key(
        "onFailure",
        Choice(&["continue", "refuse"]),
        "What happens to calls while it cannot be written: they `continue` and are counted as lost (the default), or are refused.",
    ),
    key("syncSeconds", Seconds(true), "How often the disk is told to keep it. Default 1."),
];

static INWARD: &[Key] = &[
    key("tokens", Objects(TOKEN), "Bearer tokens."),
    key("issuers", Texts, "Issuers of tokens that are believed."),
    key("resource", Text, "The URL of this gateway as its clients know it; tokens must be for it."),
    key("scopes", Texts, "Scopes that every token must have."),
    key(
        "clientId",
        Text,
        "The client by which the gateway asks people at the issuer who they are, for servers with `perUser`. Without it the gateway registers itself.",
    ),
    key("clientSecret", Secret, "The secret of that client, if it has one."),
    key("claims", Object(CLAIMS), "What claims of the issuers' tokens say of their bearers."),
    key(
        "groups",
        Objects(GROUP),
        "What members of groups see. Whoever is in none of them sees what has no tags.",
    ),
];

static CLAIMS: &[Key] = &[
    key("name", Text, "The claim that rules know them by, as `user:VALUE`: `email`."),
    key(
        "groups",
        Text,
        "The claim with their groups, `group:VALUE` to rules: `groups`, `realm_access.roles`.",
    ),
    key(
        "tags",
        Text,
        "The claim with the tags of what they see. Whoever has none sees what has no tags.",
    ),
];

static GROUP: &[Key] = &[
    must("name", Text, "Its name in the claim."),
    must("tags", Texts, "The tags of what its members see."),
];

static TOKEN: &[Key] = &[
    must("name", Text, "Whose it is."),
    must("token", Secret, "The secret."),
    key("tags", Texts, "What its bearer sees; everything if there are none."),
];

static TLS: &[Key] = &[
    must("certificate", Path, "A PEM file: the certificate, and those it leans on."),
    must("key", Path, "A PEM file: its key."),
];

static ADMIN: &[Key] = &[
    key("listen", Text, "`unix:PATH` or `HOST:PORT`. By default a socket in the state folder."),
    key("token", Secret, "What callers must know."),
    key("mtls", Object(MTLS), "Certificates on both sides."),
];

static MTLS: &[Key] = &[
    must("certificate", Path, "A PEM file: the certificate, and those it leans on."),
    must("key", Path, "A PEM file: its key."),
    must("clientCertificates", Path, "A PEM file: whose clients are let in."),
];

static RULE: &[Key] = &[
    key("principals", Texts, "For whom; `*` stands for anything. All if there are none."),
    key("tags", Texts, "On servers with one of these tags. All if there are none."),
    key("tools", Texts, "`server.tool`; `*` stands for anything. All if there are none."),
    must("effect", Choice(&["allow", "deny", "ask"]), "What then. `ask` asks the user first."),
];

static RATE: &[Key] = &[
    key("principals", Texts, "For whom, each by themselves; `*` stands for anything."),
    key("tools", Texts, "`server.tool`; `*` stands for anything."),
    must("perMinute", Count(1), "Calls a minute."),
    key("burst", Count(1), "Calls at once. By default a tenth of those of a minute."),
];

static PLUGIN: &[Key] = &[
    must("name", Text, "Its name."),
    must(
        "category",
        Choice(&[
            "observability",
            "authentication",
            "authorization",
            "rate_limiting",
            "validation",
            "content",
            "audit",
        ]),
        "What it does, and so when it is asked.",
    ),
    key("required", Flag, "Whether calls fail without it. Default true."),
    key("disabled", Flag, "Whether it is left out."),
    Key { is_required: true, ..also("command", &["cmd"], Texts, "The program and its arguments.") },
    key("env", Secrets, "Its variables."),
    key("timeoutMs", Count(1), "How many milliseconds it may take over one call. Default 3000."),
    key("config", Any, "What it is told at its start."),
];

static AUTOMATIC: &[Key] = &[
    key("tags", Texts, "Clients that select one of these tags; all clients if there are none."),
    key("limit", Count(1), "How many tools one search finds at most. Default 8."),
];

/// Keys of servers in other programs' files that mean nothing here.
pub(super) static FOREIGN_SERVER: &[&str] = &[
    "$schema",
    "alwaysAllow",
    "autoApprove",
    "description",
    "dev",
    "displayName",
    "gallery",
    "icon",
    "iconPath",
    "id",
    "note",
    "source",
    "timeout",
    "title",
    "trust",
    "version",
];

/// Other keys of other programs' files.
pub(super) static FOREIGN_ROOT: &[&str] =
    &["$schema", "inputs", "globalShortcut", "preferences", "sandbox", "version"];

/// Keys that mean something in other programs' files, and what to write here instead.
pub(super) static ELSEWHERE: &[(&str, &str)] = &[
    ("envFile", "Put the variables into `env`, or name the file by `gateway.envFile`."),
    ("disabledTools", "Name the tools to show in `exposeTools`."),
    ("excludeTools", "Name the tools to show in `exposeTools`."),
    ("includeTools", "Name the tools to show in `exposeTools`."),
    ("routeTimeoutSeconds", "Here it is `timeouts.acquireSeconds` of each server."),
    ("pingIntervalSeconds", "Here it is `probe.everySeconds` of each server."),
    ("toolRefreshSeconds", "Here it is `gateway.refreshSeconds`."),
    ("bootstrapConcurrency", "Here it is `gateway.bootstrap`."),
    ("toolNamespaceStrategy", "Here it is `gateway.naming`."),
    ("defaultActivationMode", "Here it is `activation` of each server."),
    ("serverInitRetryBaseSeconds", "Here it is `retry.baseSeconds` of each server."),
    ("serverInitRetryMaxSeconds", "Here it is `retry.maxSeconds` of each server."),
    ("serverInitMaxRetries", "Here it is `retry.tries` of each server."),
    ("subAgent", "Here it is `gateway.automatic`."),
    ("plugins", "Here it is `gateway.plugins`."),
    ("rpc", "Here it is `gateway.admin`."),
    ("observability", "Metrics are at `/metrics` of `gateway.admin`."),
];
