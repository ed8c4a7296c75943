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
    /// A list of secrets; one secret is a list of one.
    SecretList,
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
    Any, Choice, Count, Flag, Map, Object, Objects, Path, PathOr, Paths, Seconds, Secret,
    SecretList, Secrets, Servers, Text, Texts,
};

#[rustfmt::skip]
pub(super) static ROOT: &[Key] = &[
    also("mcpServers", &["servers", "context_servers"], Servers,
        "The servers: a map of names and servers, or a list of servers with names."),
    key("gateway", Object(GATEWAY), "Settings of the gateway itself."),
];

#[rustfmt::skip]
pub(super) static SERVER: &[Key] = &[
    key("name", Text, "Its name, if the servers are a list: letters, digits, `_` and `-`, at most 64."),
    also("type", &["transport"], Choice(&["stdio", "http", "sse", "streamable-http", "streamable_http", "streamableHttp"]),
        "How it is reached. Optional: `command` and `url` imply it."),
    also("command", &["cmd"], Texts, "The program to run, or a list: the program and its arguments."),
    key("args", Texts, "The arguments of the program."),
    key("env", Secrets,
        "Variables of the program. It gets these, those of `inherit`, and a few that every program needs."),
    key("inherit", Texts, "Variables of the gateway that the program inherits."),
    key("cwd", Path, "The folder that the program runs in."),
    also("url", &["serverUrl", "httpUrl"], Text, "The URL of a remote server, `http` or `https`."),
    key("headers", Secrets, "Headers of every request to a remote server."),
    key("http", Object(HTTP), "`url` and `headers`, as other programs write them."),
    key("auth", Object(OUTWARD), "How the gateway authenticates to a remote server."),
    key("rootCertificates", Paths, "PEM files with certificates to trust, beside the public roots."),
    key("tags", Texts, "Clients that select a tag see the servers that have it, and those without tags."),
    key("strategy", Choice(&["stateless", "stateful", "persistent", "singleton"]),
        "How instances are shared: by all callers and stopped when idle (`stateless`, the default), one for each session (`stateful`), by all callers and never stopped (`persistent`), or only one (`singleton`)."),
    key("sharing", Choice(&["auto", "isolated", "shared"]),
        "Whether principals share instances: unless a server may ask or log without naming the call (`auto`, the default), never (`isolated`), or always (`shared`). In a shared instance, such a question or log message reaches nobody."),
    key("questions", Texts,
        "What it may ask callers: `elicitation`, `sampling`, `roots`. Default all; an empty list for nothing."),
    key("affinity", Text,
        "What binds calls to an instance of a stateful server: `session`, `principal` or `meta:KEY`."),
    key("idleSeconds", Seconds(true), "How long an instance may be idle before it is stopped. Default 300."),
    key("maxConcurrent", Count(1), "Concurrent calls in one instance. Default 16, remote 64."),
    key("maxInstances", Count(1),
        "The most instances. Default 4, stateful 32, singleton 1. Where principals do not share instances, each may have 4, and all together 32."),
    key("maxInstancesTotal", Count(1),
        "The most instances over all replicas of the gateway. By default only `maxInstances` counts, at each replica."),
    key("minReady", Count(0), "Instances kept ready before any call. Default 0."),
    key("sessionTTLSeconds", Seconds(true),
        "How long a session keeps its instance after its last call. Default 300; 0 for ever."),
    also("activation", &["activationMode"], Choice(&["on-demand", "always-on"]), "When it runs. Default on-demand."),
    key("drainTimeoutSeconds", Seconds(true), "How long calls may continue when an instance has to stop. Default 30."),
    key("disabled", Flag, "Whether it is left out."),
    key("enabled", Flag, "The opposite of `disabled`, as other programs write it."),
    key("timeouts", Object(TIMEOUTS), "The deadlines."),
    key("probe", Object(PROBE), "Health probes."),
    key("retry", Object(RETRY), "Exponential backoff after failed starts."),
    key("protocolVersion", Texts,
        "Revisions of MCP to speak with it: one, a list, `>=` and the oldest, `<=` and the newest, or both. Default all."),
    key("exposeTools", Texts, "The allow list of tools, by their own names; `*` stands for any text."),
    key("renameTools", Map, "Renamed tools: own names and shown names."),
    key("idempotentTools", Texts,
        "Idempotent tools, which are retried when an answer was lost; `*` stands for any text."),
    key("pin", Choice(&["true", "false", "first-use", "strict", "off"]),
        "What is held back until an operator approves: what has changed (`true` or `first-use`, the default), also what a known server gets later (`strict`), or nothing (`false` or `off`)."),
];

#[rustfmt::skip]
static HTTP: &[Key] = &[
    key("endpoint", Text, "The URL of a remote server."),
    key("headers", Secrets, "Headers of every request."),
];

#[rustfmt::skip]
static OUTWARD: &[Key] = &[
    must("type", Choice(&["login", "clientCredentials"]),
        "With a login of `trunkline login`, or as a machine (client credentials)."),
    key("perUser", Flag,
        "With `type: login`: each principal of `gateway.auth` logs in with its own account, at a page of the gateway. Default false: all share the login of `trunkline login`."),
    key("clientId", Text, "The client id of the machine; with `perUser`, that of a client registered for the gateway."),
    key("clientSecret", Secret, "Its secret."),
    key("issuer", Text, "The authorization server that issued it; no other gets the secret."),
    key("scopes", Texts, "The scopes to request."),
];

#[rustfmt::skip]
static TIMEOUTS: &[Key] = &[
    key("startSeconds", Seconds(false), "Starting, including the handshake. Default 30."),
    key("acquireSeconds", Seconds(false), "Waiting for an instance. Default 30."),
    key("callSeconds", Seconds(false), "A call without progress. Default 60."),
    key("hardSeconds", Seconds(false), "A call in all. Default 600."),
];

#[rustfmt::skip]
static PROBE: &[Key] = &[
    key("everySeconds", Seconds(true), "The interval, while no call is in flight. Default 30; 0 for never."),
    key("timeoutSeconds", Seconds(false), "How long an answer may take. Default 5."),
];

#[rustfmt::skip]
static RETRY: &[Key] = &[
    key("baseSeconds", Seconds(false), "The first pause; each is twice the one before. Default 1."),
    key("maxSeconds", Seconds(false), "The longest pause. Default 30."),
    key("tries", Count(1), "After so many failures in a row it is suspended. Default 5."),
];

#[rustfmt::skip]
pub(super) static GATEWAY: &[Key] = &[
    key("listen", Text, "Where it listens: `HOST:PORT`. Default `127.0.0.1:7373`."),
    key("naming", Choice(&["prefix", "underscore", "flat"]),
        "How shown names are made: `server.tool` (the default), `server_tool`, or `tool` where only one server has it."),
    key("share", Flag, "Whether hosts with `serve --stdio` share one gateway in the background. Default false."),
    key("requireSelector", Flag, "Whether clients must say which server or tags they want."),
    key("hosts", Texts, "Allowed `Host` headers, beside loopback."),
    key("origins", Texts, "Allowed origins of web pages."),
    key("auth", Object(INWARD), "Who is admitted."),
    key("tls", Object(TLS), "Its certificate."),
    key("plaintext", Flag,
        "Whether other machines may reach it without `tls`. Only safe behind a proxy that terminates TLS: otherwise tokens can be read on the way."),
    key("admin", Object(ADMIN), "The admin API."),
    key("rules", Objects(RULE), "Who may do what: the first matching rule decides; without a match a call is allowed."),
    key("rates", Objects(RATE), "Rate limits."),
    key("inherit", Texts,
        "Variables of the gateway that all programs inherit, unless their own `env` sets them: `HTTPS_PROXY`."),
    key("envFile", Path,
        "A file of `NAME=value` lines for `${NAME}`, used if the environment does not have the variable. Only its owner may be able to read it."),
    key("audit", PathOr(AUDIT), "The audit: where calls are recorded, one line of JSON each."),
    key("recording", PathOr(RECORDING),
        "What is recorded of calls for operators, in memory and in files; `off` for nothing."),
    key("plugins", Objects(PLUGIN), "Programs that inspect calls."),
    key("automatic", Object(AUTOMATIC), "Automatic mode: clients get two tools, to find and to call the others."),
    key("bootstrap", Count(1), "How many servers are listed concurrently at the start. Default 3."),
    key("refreshSeconds", Seconds(true), "The refresh interval of running servers' lists. Default 60; 0 for never."),
    key("store", Secret,
        "The Redis or Valkey that several gateways share to be as one: `redis://HOST:6379`, `rediss://` for TLS, `redis+sentinel://` or `redis+cluster://`. By default a gateway is alone."),
    key("storeRootCertificates", Paths, "PEM files with the authorities to trust at a store with TLS, instead of the system's."),
    key("replicas", Object(REPLICAS), "How gateways with the same `store` find and trust each other."),
];

#[rustfmt::skip]
static REPLICAS: &[Key] = &[
    key("listen", Text, "Where other replicas reach this one: `HOST:PORT`, of no use to clients. Default `127.0.0.1:7474`."),
    key("advertise", Text, "The URL at which other replicas reach it, if that is not the address: `http://${POD_IP}:7474`."),
    key("key", Secret, "The key that all replicas share: 32 bytes, or 64 hexadecimal digits."),
    key("keys", SecretList, "Like `key`, to change it: the first seals, all open."),
    key("rootCertificates", Paths, "PEM files with certificates to trust at other replicas, beside the public roots."),
    key("whenAway", Choice(&["refuse", "local"]),
        "What happens to new sessions while the store is away: the client tries again (`refuse`, the default), or they live in this replica alone (`local`)."),
    key("insecure", Flag, "Whether other machines may reach `listen` without `gateway.tls`. Only safe in a network of its own."),
];

#[rustfmt::skip]
static AUDIT: &[Key] = &[
    must("path", Path, "The file."),
    key("onFailure", Choice(&["continue", "refuse"]),
        "What happens to calls while it cannot be written: they `continue` and are counted as lost (the default), or are refused."),
    key("syncSeconds", Seconds(true), "The interval of `fsync`. Default 1."),
];

#[rustfmt::skip]
static RECORDING: &[Key] = &[
    key("payloads", Choice(&["never", "loopback", "always"]),
        "When messages are kept, without secrets: `never`, if only this machine can reach the gateway (`loopback`, the default), or `always`. Who called what, when and how it ended is known in any case."),
    key("sample", Text, "Of which share of calls messages are kept, from 0 to 1. Default 1."),
    key("keep", Text, "How much memory calls may take before the oldest make way: `64MiB`, the default."),
    key("file", Path, "A file for the messages of calls, as JSON lines; only its owner can read it."),
    key("redact", Texts, "Names of members that are masked, wherever they are."),
];

#[rustfmt::skip]
static INWARD: &[Key] = &[
    key("tokens", Objects(TOKEN), "Bearer tokens."),
    key("issuers", Texts, "Trusted issuers of tokens."),
    key("resource", Text, "The URL of this gateway as its clients know it; the audience of tokens."),
    key("scopes", Texts, "Scopes that every token must have."),
    key("clientId", Text,
        "The gateway's own client at the issuer, to identify users for servers with `perUser`. Without it the gateway registers itself."),
    key("clientSecret", Secret, "The secret of that client, if it has one."),
    key("claims", Object(CLAIMS), "Which claims of the issuers' tokens identify and limit their bearers."),
    key("groups", Objects(GROUP), "What members of groups see. A user in no group sees only servers without tags."),
];

#[rustfmt::skip]
static CLAIMS: &[Key] = &[
    key("name", Text, "The claim with the name for rules, `user:VALUE`: `email`."),
    key("groups", Text, "The claim with the groups, `group:VALUE` for rules: `groups`, `realm_access.roles`."),
    key("tags", Text, "The claim with the tags that a user sees. A user without any sees only servers without tags."),
];

#[rustfmt::skip]
static GROUP: &[Key] = &[
    must("name", Text, "Its name in the claim."),
    must("tags", Texts, "The tags that its members see."),
];

#[rustfmt::skip]
static TOKEN: &[Key] = &[
    must("name", Text, "Its principal."),
    must("token", Secret, "The secret."),
    key("tags", Texts, "The tags that its bearer sees; everything if there are none."),
];

#[rustfmt::skip]
static TLS: &[Key] = &[
    must("certificate", Path, "A PEM file: the certificate and its chain."),
    must("key", Path, "A PEM file: its key."),
];

#[rustfmt::skip]
static ADMIN: &[Key] = &[
    key("listen", Text, "`unix:PATH` or `HOST:PORT`. By default a socket in the state folder."),
    key("token", Secret, "The token that callers must send."),
    key("mtls", Object(MTLS), "TLS with client certificates."),
];

#[rustfmt::skip]
static MTLS: &[Key] = &[
    must("certificate", Path, "A PEM file: the certificate and its chain."),
    must("key", Path, "A PEM file: its key."),
    must("clientCertificates", Path, "A PEM file: the CA of admitted clients."),
];

#[rustfmt::skip]
static RULE: &[Key] = &[
    key("principals", Texts, "The principals; `*` stands for any text. All if there are none."),
    key("tags", Texts, "Servers with one of these tags. All if there are none."),
    key("tools", Texts, "`server.tool`; `*` stands for any text. All if there are none."),
    must("effect", Choice(&["allow", "deny", "ask"]), "The effect. `ask` asks the user first."),
];

#[rustfmt::skip]
static RATE: &[Key] = &[
    key("principals", Texts, "The principals, each with its own limit; `*` stands for any text."),
    key("tools", Texts, "`server.tool`; `*` stands for any text."),
    must("perMinute", Count(1), "Calls per minute."),
    key("burst", Count(1), "Calls at once. By default a tenth of `perMinute`."),
];

#[rustfmt::skip]
static PLUGIN: &[Key] = &[
    must("name", Text, "Its name."),
    must("category", Choice(&[ "observability", "authentication", "authorization", "rate_limiting", "validation", "content", "audit", ]),
        "What it does, which decides when it runs."),
    key("required", Flag, "Whether calls fail without it. Default true."),
    key("disabled", Flag, "Whether it is left out."),
    Key { is_required: true, ..also("command", &["cmd"], Texts, "The program and its arguments.") },
    key("env", Secrets, "Its variables."),
    key("timeoutMs", Count(1), "The time-out of one call, in milliseconds. Default 3000."),
    key("config", Any, "Its configuration, sent at the start."),
];

#[rustfmt::skip]
static AUTOMATIC: &[Key] = &[
    key("tags", Texts, "Clients that select one of these tags; all clients if there are none."),
    key("limit", Count(1), "The most tools in one search result. Default 8."),
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

/// The parts that decide who may do what: a rule or token without its condition would let in more than was meant.
pub(super) static DECIDING: [&str; 2] = ["gateway.auth", "gateway.rules"];

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
