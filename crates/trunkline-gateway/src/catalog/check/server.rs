//! Turns an entry of `mcpServers` into a server's plan.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_wire::revision::{Revision, Revisions};

use super::address::{is_url, is_user_in};
use super::section::{At, Section};
use crate::catalog::fault::nearest;
use crate::catalog::file::Data;
use crate::catalog::plan::{
    ALL_INSTANCES, Activation, Affinity, LoginClient, Outward, Pinning, Probe, Questions, Reach,
    Retry, ServerPlan, Sharing, Strategy, Timeouts,
};

/// Reads one server. Faults are reported to the reader; the plan is valid only without any.
pub(super) fn server(section: &Section<'_>, name: &str) -> ServerPlan {
    let mut plan = match is_remote(section) {
        true => remote(section, name),
        false => program(section, name),
    };
    plan.tags = tags(section, "tags");
    instances(section, &mut plan);
    per_user(section, &plan);
    times(section, &mut plan);
    if let Some(revisions) = revisions(section) {
        plan.revisions = revisions;
    }
    tools(section, &mut plan);
    plan
}

/// Whether the server is left out.
pub(super) fn is_disabled(section: &Section<'_>) -> bool {
    section.flag("disabled").unwrap_or(false) || !section.flag("enabled").unwrap_or(true)
}

/// Tags in canonical form: lower case, sorted, without duplicates.
pub(super) fn tags(section: &Section<'_>, key: &str) -> Vec<String> {
    let mut tags = BTreeSet::new();
    for at in section.list(key) {
        let Some(tag) = at.word() else { continue };
        if tag.contains(|it: char| it == ',' || it == '/' || it.is_whitespace() || it.is_control())
        {
            at.fault(
                format!("{} is no tag.", at.written()),
                "Use no comma, slash or space: tags stand in URLs, `/mcp/tags/a,b`.",
            );
        }
        tags.insert(tag.to_lowercase());
    }
    tags.into_iter().collect()
}

/// Checks that there is exactly one of `command` and `url`, and that `type` agrees.
fn is_remote(section: &Section<'_>) -> bool {
    let has_program = section.has("command");
    let url = section.get("url").or_else(|| section.section("http")?.get("endpoint"));
    let said = section.choice("type").map(|it| it != "stdio");
    match (has_program, &url, said) {
        (true, Some(url), _) => {
            url.hidden(
                "There are both a command and a URL.",
                "Remove one of them: a server is a program or a URL.",
            );
        }
        (false, None, Some(true)) => {
            section.at.hidden("`url` is missing.", "Add `url: https://…`.");
        }
        (false, None, _) => section.at.hidden(
            "There is neither a command nor a URL.",
            "Add `command: …` for a program, or `url: https://…`.",
        ),
        (true, None, Some(true)) => type_fault(section, "a program", "stdio"),
        (false, Some(_), Some(false)) => type_fault(section, "a URL", "http"),
        _ => {}
    }
    !has_program && (url.is_some() || said == Some(true))
}

fn type_fault(section: &Section<'_>, what: &str, right: &str) {
    if let Some(at) = section.get("type") {
        at.fault(
            format!("The type is {}, and the server is {what}.", at.written()),
            format!("Write `{right}`, or remove it."),
        );
    }
}

fn program(section: &Section<'_>, name: &str) -> ServerPlan {
    for key in ["headers", "auth", "rootCertificates"] {
        if let Some(at) = section.get(key) {
            at.hidden(
                format!("`{key}` is for servers at a URL, and this one is a program."),
                "Remove it, or give a `url` in place of the command.",
            );
        }
    }
    let mut words = command(section, "command");
    words.extend(section.list("args").iter().filter_map(At::text));
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let mut plan = ServerPlan::stdio(name, program);
    if let Reach::Stdio { args, env, inherit, cwd, .. } = &mut plan.reach {
        args.extend(words);
        *env = variables(section);
        *inherit = inherited(section);
        *cwd = section.get("cwd").and_then(|it| it.path());
    }
    plan
}

/// The variables of the gateway that a program inherits.
pub(super) fn inherited(section: &Section<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for at in section.list("inherit") {
        let Some(name) = at.word() else { continue };
        check_variable(&at, &name);
        names.push(name);
    }
    names
}

/// A program and its arguments. The program is found on `PATH`, or relative to the file.
pub(super) fn command(section: &Section<'_>, key: &str) -> Vec<String> {
    let Some(at) = section.get(key) else { return Vec::new() };
    let items = at.items();
    if items.is_empty() && matches!(at.node.data, Data::List(_)) {
        at.fault("The command is empty.", "Write the program, and then its arguments.");
    }
    let mut words = Vec::new();
    for (place, item) in items.iter().enumerate() {
        match place {
            0 => words.extend(item.word().map(|it| found(item, it))),
            _ => words.extend(item.text()),
        }
    }
    if let (Data::Scalar { text, .. }, [word]) = (&at.node.data, words.as_slice())
        && word.contains(' ')
        && !word.contains('/')
    {
        let first = text.split(' ').next().unwrap_or_default();
        at.warn(
            "The program's name has a space in it.",
            format!("If these are arguments, write `command: {first}` and the others in `args`."),
        );
    }
    words
}

fn found(at: &At<'_>, program: String) -> String {
    let is_relative = ["./", "../", "~/"].iter().any(|it| program.starts_with(it));
    match is_relative {
        true => at.reader.resolve(&program).display().to_string(),
        false => program,
    }
}

/// The variables of a program.
pub(super) fn variables(section: &Section<'_>) -> Vec<(String, String)> {
    let all = section.secrets("env").into_iter();
    all.map(|(name, value, at)| {
        check_variable(&at, &name);
        (name, value)
    })
    .collect()
}

fn check_variable(at: &At<'_>, name: &str) {
    if name.is_empty() || name.contains(['=', '\0']) {
        at.hidden("This is no name of a variable.", "Use letters, digits and `_`.");
    }
}

fn remote(section: &Section<'_>, name: &str) -> ServerPlan {
    for key in ["args", "env", "inherit", "cwd"] {
        if let Some(at) = section.get(key) {
            at.hidden(
                format!("`{key}` is for programs, and this server is at a URL."),
                "Remove it, or give a `command` in place of the URL.",
            );
        }
    }
    let http = section.section("http");
    let at = section.get("url").or_else(|| http.as_ref()?.get("endpoint"));
    let url = at.as_ref().and_then(At::word).unwrap_or_default();
    if let Some(at) = at.filter(|_| !url.is_empty()) {
        if !is_url(&url) {
            at.hidden("This is no URL of a server.", "Write `https://HOST/PATH`.");
        } else if is_user_in(&url) {
            at.hidden(
                "This URL has a user or a password in it.",
                "Put it into `headers`: `Authorization: \"Basic ${NAME}\"`.",
            );
        }
    }
    let mut plan = ServerPlan::http(name, url);
    if let Reach::Http { headers, roots, auth, .. } = &mut plan.reach {
        headers.extend(self::headers(section));
        headers.extend(http.iter().flat_map(self::headers));
        roots.extend(section.list("rootCertificates").iter().filter_map(At::file));
        *auth = outward(section);
        let authorization = headers.iter().any(|(it, _)| it.eq_ignore_ascii_case("authorization"));
        if let Some(at) = section.get("auth").filter(|_| authorization) {
            at.hidden(
                "There are both `auth` and an `Authorization` header.",
                "Remove one of them.",
            );
        }
    }
    plan
}

fn headers(section: &Section<'_>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (name, value, at) in section.secrets("headers") {
        let lower = name.to_ascii_lowercase();
        if RESERVED.contains(&lower.as_str()) || lower.starts_with("mcp-") {
            at.hidden(
                format!("The header `{name}` is the protocol's own."),
                "Remove it: it is set as the protocol wants it.",
            );
        } else if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
            at.hidden("This is no name of a header.", "Use letters, digits and `-`.");
        } else if http::HeaderValue::from_str(&value).is_err() {
            at.hidden(
                "This cannot be the value of a header.",
                "Use printable characters on one line.",
            );
        }
        out.push((name, value));
    }
    out
}

fn outward(section: &Section<'_>) -> Outward {
    let Some(auth) = section.section("auth") else { return Outward::Headers };
    let per_user = auth.flag("perUser").unwrap_or(false);
    let kind = auth.need("type").and_then(|_| auth.choice("type"));
    if let Some(at) = auth.get("perUser").filter(|_| per_user && kind == Some("clientCredentials"))
    {
        at.hidden(
            "A machine is the same for each user.",
            "Remove `perUser`, or write `type: login`.",
        );
    }
    match kind {
        Some("clientCredentials") => Outward::ClientCredentials {
            client_id: auth.want("clientId").and_then(|it| it.word()).unwrap_or_default(),
            client_secret: auth.want("clientSecret").and_then(|it| it.secret()).unwrap_or_default(),
            issuer: auth.want("issuer").and_then(|it| it.word()).unwrap_or_default(),
            scopes: auth.texts("scopes"),
        },
        kind => {
            if per_user {
                return Outward::PerUser(login_client(&auth));
            }
            for key in ["clientId", "clientSecret", "issuer", "scopes"] {
                if let Some(at) = auth.get(key).filter(|_| kind.is_some()) {
                    at.hidden(
                        format!("`{key}` is for `clientCredentials`."),
                        "Remove it, or write `type: clientCredentials` or `perUser: true`.",
                    );
                }
            }
            Outward::Login
        }
    }
}

/// The client of logins; `issuer` says who may get its secret.
fn login_client(auth: &Section<'_>) -> LoginClient {
    let word = |key| auth.get(key).and_then(|it| it.word());
    let client = LoginClient {
        id: word("clientId"),
        secret: auth.get("clientSecret").and_then(|it| it.secret()),
        issuer: word("issuer"),
        scopes: auth.texts("scopes"),
    };
    if let Some(at) = auth.get("clientSecret") {
        if client.id.is_none() {
            at.hidden("There is a `clientSecret`, and no `clientId`.", "Add `clientId`.");
        } else if client.issuer.is_none() {
            at.hidden(
                "There is a `clientSecret`, and no `issuer` that it may be shown to.",
                "Add `issuer: https://…`, the authorization server that gave it out.",
            );
        }
    }
    client
}

/// What `perUser` excludes: instances without an owner, or bound to a session.
fn per_user(section: &Section<'_>, plan: &ServerPlan) {
    if plan.per_user().is_none() {
        return;
    }
    let is_apart = matches!(plan.strategy, Strategy::Stateless | Strategy::Persistent);
    if let Some(at) = section.get("strategy").filter(|_| !is_apart) {
        at.fault(
            "With `perUser` each principal has instances of its own.",
            "Choose `stateless` or `persistent`.",
        );
    }
    if let Some(at) = section.get("sharing").filter(|_| plan.sharing == Sharing::Shared) {
        at.fault("With `perUser` principals share no instance.", "Remove `sharing`.");
    }
    if let Some(at) = section.get("minReady").filter(|_| plan.min_ready > 0) {
        at.fault("With `perUser` no instance is ready for anybody.", "Remove `minReady`.");
    }
    if let Some(at) =
        section.get("activation").filter(|it| it.word().as_deref() == Some("always-on"))
    {
        at.fault("With `perUser` no instance runs without a caller.", "Remove `activation`.");
    }
}

/// How many instances there are, and for whom.
fn instances(section: &Section<'_>, plan: &mut ServerPlan) {
    plan.strategy = match section.choice("strategy") {
        Some("stateful") => Strategy::Stateful,
        Some("persistent") => Strategy::Persistent,
        Some("singleton") => Strategy::Singleton,
        _ => Strategy::Stateless,
    };
    plan.max_concurrent = section.count("maxConcurrent").unwrap_or(plan.max_concurrent);
    plan.min_ready = section.count("minReady").unwrap_or(0);
    let most = section.count("maxInstances");
    plan.max_instances = most.unwrap_or_else(|| match plan.strategy {
        Strategy::Singleton => 1,
        other => other.max_instances().max(plan.min_ready),
    });
    plan.max_each = plan.max_instances;
    plan.sharing = match section.choice("sharing") {
        Some("isolated") => Sharing::Isolated,
        Some("shared") => Sharing::Shared,
        _ => Sharing::Auto,
    };
    plan.questions = questions(section);
    let is_one = matches!(plan.strategy, Strategy::Singleton);
    if is_one && plan.sharing == Sharing::Isolated {
        if let Some(at) = section.get("sharing") {
            at.fault(
                "A singleton is one process for everybody.",
                "Remove it, or choose another `strategy`.",
            );
        }
    } else if most.is_none() && plan.may_be_isolated() {
        // Each principal gets the bound that all had together.
        plan.max_instances = plan.max_instances.max(ALL_INSTANCES);
    }
    plan.max_total = section.count("maxInstancesTotal");
    if let Some(total) = plan.max_total {
        // No replica can have more than all of them.
        plan.max_instances = plan.max_instances.min(total);
        plan.max_each = plan.max_each.min(total);
    }
    if plan.strategy == Strategy::Singleton && most.is_some_and(|it| it > 1) {
        if let Some(at) = section.get("maxInstances") {
            at.fault("A singleton has one instance.", "Remove it, or choose another `strategy`.");
        }
    } else if plan.min_ready > plan.max_instances
        && let Some(at) = section.get("minReady")
    {
        let shown = |key: &str, number: usize| match section.get(key) {
            Some(it) if it.is_filled_in() => it.written(),
            _ => number.to_string(),
        };
        let least = shown("minReady", plan.min_ready);
        let most = shown("maxInstances", plan.max_instances);
        at.fault(
            format!("`minReady` is {least}, and there may be {most}."),
            "Make `minReady` at most `maxInstances`.",
        );
    }
    if let Some(at) = section.get("affinity") {
        plan.affinity = affinity(&at);
    }
    for key in ["affinity", "sessionTTLSeconds"] {
        if let Some(at) = section.get(key).filter(|_| plan.strategy != Strategy::Stateful) {
            at.warn(
                format!("`{key}` is for stateful servers only."),
                "Write `strategy: stateful`, or remove it.",
            );
        }
    }
    if section.choice("activation") == Some("always-on") {
        plan.activation = Activation::AlwaysOn;
    }
}

fn questions(section: &Section<'_>) -> Questions {
    if section.get("questions").is_none() {
        return Questions::default();
    }
    let mut questions = Questions { elicitation: false, sampling: false, roots: false };
    for at in section.list("questions") {
        match at.word().as_deref() {
            None => {}
            Some("elicitation") => questions.elicitation = true,
            Some("sampling") => questions.sampling = true,
            Some("roots") => questions.roots = true,
            Some(text) => at.fault(
                format!("{} is none of `elicitation`, `sampling`, `roots`.", at.shown(text)),
                match nearest(text, ["elicitation", "sampling", "roots"]) {
                    Some(near) => format!("Did you mean `{near}`?"),
                    None => "Choose one of them.".to_owned(),
                },
            ),
        }
    }
    questions
}

fn affinity(at: &At<'_>) -> Affinity {
    match at.word().as_deref() {
        None | Some("session") => Affinity::Session,
        Some("principal") => Affinity::Principal,
        Some(text) => match text.strip_prefix("meta:").filter(|it| !it.is_empty()) {
            Some(key) => Affinity::Meta(key.to_owned()),
            None => {
                let near = nearest(text, ["session", "principal"]);
                at.fault(
                    format!("{} is none of `session`, `principal`, `meta:KEY`.", at.written()),
                    near.map_or("Choose one of them.".to_owned(), |it| {
                        format!("Did you mean `{it}`?")
                    }),
                );
                Affinity::Session
            }
        },
    }
}

fn times(section: &Section<'_>, plan: &mut ServerPlan) {
    plan.idle = section.seconds("idleSeconds").unwrap_or(plan.idle);
    plan.drain = section.seconds("drainTimeoutSeconds").unwrap_or(plan.drain);
    if let Some(ttl) = section.seconds("sessionTTLSeconds") {
        plan.session_ttl = Some(ttl).filter(|it| !it.is_zero());
    }
    if let Some(it) = section.section("timeouts") {
        let usual = Timeouts::default();
        plan.timeouts = Timeouts {
            start: it.seconds("startSeconds").unwrap_or(usual.start),
            acquire: it.seconds("acquireSeconds").unwrap_or(usual.acquire),
            call: it.seconds("callSeconds").unwrap_or(usual.call),
            hard: it.seconds("hardSeconds").unwrap_or(usual.hard),
        };
        if plan.timeouts.hard < plan.timeouts.call {
            it.at.warn(
                "A call is over after `hardSeconds`, before `callSeconds` have passed.",
                "Make `hardSeconds` at least `callSeconds`.",
            );
        }
    }
    if let Some(it) = section.section("probe") {
        let usual = Probe::default();
        plan.probe = Probe {
            every: it.seconds("everySeconds").unwrap_or(usual.every),
            timeout: it.seconds("timeoutSeconds").unwrap_or(usual.timeout),
        };
    }
    if let Some(it) = section.section("retry") {
        let usual = Retry::default();
        plan.retry = Retry {
            base: it.seconds("baseSeconds").unwrap_or(usual.base),
            max: it.seconds("maxSeconds").unwrap_or(usual.max),
            tries: it.count("tries").map_or(usual.tries, |it| it as u32),
        };
        if plan.retry.max < plan.retry.base {
            it.at.fault(
                "`maxSeconds` is less than `baseSeconds`.",
                "Make `maxSeconds` at least `baseSeconds`.",
            );
        }
    }
}

fn revisions(section: &Section<'_>) -> Option<Revisions> {
    let items = section.get("protocolVersion")?.items();
    let mut set = Vec::new();
    for at in items {
        let text = at.word()?;
        match between(&text) {
            Ok(found) if found.is_empty() => {
                at.fault(
                    format!("No revision of MCP is within {}.", at.written()),
                    "The revision after `>=` is the oldest, the one after `<=` the newest.",
                );
                return None;
            }
            Ok(found) => set.extend(found.iter()),
            Err(date) => {
                let known = Revision::ALL.map(Revision::as_str);
                let all = known.map(|it| format!("`{it}`")).join(", ");
                at.fault(
                    format!("{} is no revision of MCP: there are {all}.", at.written()),
                    match nearest(&date, known) {
                        Some(near) => format!("Did you mean `{near}`?"),
                        None => "Choose one of them, `>=` and the oldest, or `<=` and the newest."
                            .into(),
                    },
                );
                return None;
            }
        }
    }
    // An empty list means nothing.
    if set.is_empty() { None } else { Some(set.into_iter().collect()) }
}

/// The revisions that match a text: a date, or bounds on one side or both. `Err` is an unknown date.
fn between(text: &str) -> Result<Revisions, String> {
    let mut found = Revisions::ALL;
    for term in text.replace(">= ", ">=").replace("<= ", "<=").split_whitespace() {
        let (bound, date) = match term.get(..2) {
            Some(bound @ (">=" | "<=")) => (bound, &term[2..]),
            _ => ("", term),
        };
        let date = Revision::parse(date).ok_or(date)?;
        found = found.common(match bound {
            ">=" => Revisions::range(date, Revision::LATEST),
            "<=" => Revisions::range(Revision::ALL[0], date),
            _ => Revisions::only(date),
        });
    }
    Ok(found)
}

fn tools(section: &Section<'_>, plan: &mut ServerPlan) {
    if let Some(at) = section.get("exposeTools") {
        let names = section.texts("exposeTools");
        if names.is_empty() {
            at.warn("No tool of this server is shown.", "Name some, or remove it for all.");
        }
        plan.expose = Some(names);
    }
    plan.idempotent = section.texts("idempotentTools");
    plan.pin = match section.choice("pin") {
        Some("false" | "off") => Pinning::Off,
        Some("strict") => Pinning::Strict,
        _ => Pinning::FirstUse,
    };
    let renamed = section.get("renameTools").map(|it| it.members()).unwrap_or_default();
    let mut taken = BTreeMap::new();
    for (own, at) in renamed {
        let Some(name) = at.word() else { continue };
        let is_good = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
        if name.len() > 128 || !name.chars().all(is_good) {
            at.fault(
                format!("{} is no name of a tool.", at.written()),
                "Use letters, digits, `_`, `-` and `.`, at most 128.",
            );
        }
        if let Some(other) = taken.insert(name.clone(), own) {
            at.fault(
                format!("`{other}` has the name {} already.", at.written()),
                "Choose another name.",
            );
        }
        plan.rename.insert(own.to_owned(), name);
    }
}

/// Headers that the protocol sets.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_have_bounds_on_either_side_or_both() {
        let found = |text: &str| {
            let found = between(text).map(|it| it.iter().map(Revision::as_str).collect::<Vec<_>>());
            found.map_err(|it| it.to_string())
        };
        let (old, new) = ("2025-11-25", "2026-07-28");
        assert_eq!(found("2025-11-25"), Ok(vec![old]));
        assert_eq!(found(">= 2025-11-25"), Ok(vec![old, new]));
        assert_eq!(found("<=2025-03-26"), Ok(vec!["2024-11-05", "2025-03-26"]));
        assert_eq!(found(">=2025-11-25 <=2025-11-25"), Ok(vec![old]));
        assert_eq!(found(">=2026-07-28 <=2025-11-25"), Ok(vec![]));
        assert_eq!(found(">=2026"), Err("2026".to_owned()));
    }
}
