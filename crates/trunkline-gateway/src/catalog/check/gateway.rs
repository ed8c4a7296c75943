//! Turns the `gateway` section into the gateway's plan.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::address::{is_loopback, is_private, is_url, is_user_in, parts};
use super::recording::recording;
use super::replicas;
use super::section::{At, Section};
use super::server::{command, tags, variables};
use crate::catalog::plan::{
    AdminPlan, AuditPlan, Automatic, Category, ClaimsPlan, Effect, GatewayPlan, GroupPlan, Inward,
    Naming, PluginPlan, Rate, Rule, TokenPlan,
};

/// Reads the whole section.
pub(super) fn gateway(section: &Section<'_>) -> GatewayPlan {
    let usual = GatewayPlan::default();
    let (auth, names) = section.section("auth").map(|it| inward(&it)).unwrap_or_default();
    let mut plan = GatewayPlan {
        listen: usual.listen,
        plaintext: section.flag("plaintext").unwrap_or(false),
        naming: match section.choice("naming") {
            Some("flat") => Naming::Flat,
            Some("underscore") => Naming::Underscore,
            _ => Naming::Prefix,
        },
        selector_required: section.flag("requireSelector").unwrap_or(false),
        share: section.flag("share").unwrap_or(false),
        hosts: section.texts("hosts"),
        origins: origins(section),
        auth,
        tls: section.section("tls").and_then(|it| pair(&it)),
        admin: section.section("admin").map(|it| admin(&it)).unwrap_or_default(),
        rules: section.sections("rules").iter().filter_map(rule).collect(),
        rates: section.sections("rates").iter().filter_map(rate).collect(),
        audit: audit(section),
        recording: recording(section),
        plugins: plugins(section),
        automatic: section
            .section("automatic")
            .map(|it| Automatic { tags: tags(&it, "tags"), limit: it.count("limit").unwrap_or(8) }),
        bootstrap: section.count("bootstrap").unwrap_or(usual.bootstrap),
        refresh: section.seconds("refreshSeconds").unwrap_or(usual.refresh),
        store: replicas::store(section),
        store_roots: replicas::store_roots(section),
        replicas: None,
    };
    if let Some(listen) = listen(section, &plan, &names) {
        plan.listen = listen;
    }
    plan.replicas = replicas::replicas(section, &plan.listen);
    plan
}

/// Whether a gateway may listen here: beyond loopback only with authentication, with tokens that cannot be
/// guessed and, unless `plaintext` is set, cannot be read on the way.
///
/// # Errors
///
/// What is wrong, and what to do. `written` is the origin of the address and of the tokens' names.
pub(super) fn may_listen(
    listen: &str,
    plan: &GatewayPlan,
    written: Option<(&At<'_>, &[String])>,
) -> Result<(), (String, &'static str)> {
    let auth = &plan.auth;
    let Some((host, _)) = parts(listen) else {
        return Err(("This is no address to listen at.".to_owned(), "Write `127.0.0.1:7373`."));
    };
    if is_loopback(host) {
        return Ok(());
    }
    let host = written.map_or_else(|| format!("`{host}`"), |(at, _)| at.shown(host));
    if auth.tokens.is_empty() && auth.issuers.is_empty() {
        return Err((
            format!("{host} is reached from other machines, and everybody would be let in."),
            "Add `auth` with `tokens` or `issuers`, or listen at `127.0.0.1`.",
        ));
    }
    if let Some(weak) = auth.tokens.iter().position(|it| it.token.len() < SHORTEST) {
        let name = written.and_then(|(_, names)| names.get(weak).cloned());
        let name = name.unwrap_or_else(|| format!("`{}`", auth.tokens[weak].name));
        return Err((
            format!(
                "{host} is reached from other machines, and the token of {name} has fewer than {SHORTEST} characters: it can be guessed."
            ),
            "Make one with `openssl rand -hex 32`, or listen at `127.0.0.1`.",
        ));
    }
    if plan.tls.is_none() && !plan.plaintext {
        return Err((
            format!("{host} is reached from other machines, and tokens can be read on the way."),
            "Add `tls`, or `plaintext: true` if a proxy in front of it has the certificate, or listen at `127.0.0.1`.",
        ));
    }
    Ok(())
}

/// What is wrong, and what to do.
pub(super) type Wrong = (&'static str, &'static str);

/// Whether users can log in at a page of this gateway: it must know its callers by name, and the URL at which
/// browsers reach it.
///
/// # Errors
///
/// What is missing.
pub(super) fn may_log_in(plan: &GatewayPlan) -> Result<(), Wrong> {
    let auth = &plan.auth;
    if auth.tokens.is_empty() && auth.issuers.is_empty() {
        return Err((
            "`perUser` gives each principal a login of its own, and the gateway knows none: it has no `auth`.",
            "Add `gateway.auth` with `tokens` or `issuers`, or remove `perUser`.",
        ));
    }
    let is_behind = plan.tls.is_none() && plan.plaintext;
    if auth.resource.is_none() && is_behind {
        return Err((
            "`perUser` sends people to a page of the gateway, and nothing says at which URL a browser reaches it.",
            "Add `gateway.auth.resource: https://HOST/mcp`, the URL that clients have of this gateway.",
        ));
    }
    Ok(())
}

fn listen(section: &Section<'_>, plan: &GatewayPlan, names: &[String]) -> Option<String> {
    let at = section.get("listen")?;
    let listen = at.word()?;
    // Faults of `tls` are reported there, and stop the start.
    let has_tls = section.has("tls");
    let judged = GatewayPlan { plaintext: plan.plaintext || has_tls, ..plan.clone() };
    if let Err((message, suggestion)) = may_listen(&listen, &judged, Some((&at, names))) {
        at.fault(message, suggestion);
    }
    Some(listen)
}

fn origins(section: &Section<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for at in section.list("origins") {
        let Some(origin) = at.word() else { continue };
        let is_bare = origin.split_once("://").is_some_and(|(_, it)| !it.contains(['/', '?', '@']));
        if !(is_url(&origin) && is_bare) {
            at.fault(
                format!("{} is no origin.", at.written()),
                "Write a scheme and a host, with a port if it is unusual: `https://app.example`.",
            );
        }
        out.push(origin);
    }
    out
}

/// Who is admitted, and the owners of tokens as messages name them.
fn inward(section: &Section<'_>) -> (Inward, Vec<String>) {
    let mut shown = Vec::new();
    let mut auth = Inward { scopes: section.texts("scopes"), ..Inward::default() };
    let (mut names, mut secrets) = (BTreeSet::new(), BTreeSet::new());
    for it in section.sections("tokens") {
        let tags = tags(&it, "tags");
        let (name, token) = (it.need("name"), it.need("token"));
        let (Some(name), Some(token)) = (name, token) else { continue };
        let (Some(who), Some(secret)) = (name.word(), token.secret()) else { continue };
        if !names.insert(who.clone()) {
            name.fault(format!("There are two tokens of {}.", name.written()), "Rename one.");
        }
        if secret.trim() != secret || secret.contains(|it: char| it.is_control() || it == ' ') {
            token.hidden("This token has a space in it.", "Use printable characters only.");
        } else if secret.is_empty() {
            token.hidden("This token is empty.", "Give it a value.");
        } else if !secrets.insert(secret.clone()) {
            token.hidden("Another principal has the same token.", "Give each one of their own.");
        } else if secret.len() < SHORTEST {
            let message = format!("This token has fewer than {SHORTEST} characters.");
            token.warn(message, "Use one that cannot be guessed.");
        }
        if ["user:", "group:", "client:"].iter().any(|it| who.starts_with(it)) {
            let message = format!("{} looks like a name that comes from a claim.", name.written());
            name.fault(message, "Rename it.");
        }
        shown.push(name.shown(&who));
        auth.tokens.push(TokenPlan { name: who, token: secret, tags });
    }
    for at in section.list("issuers") {
        let Some(issuer) = at.word() else { continue };
        check_identity(&at, &issuer, "an issuer");
        auth.issuers.push(issuer);
    }
    auth.client.id = section.get("clientId").and_then(|it| it.word());
    auth.client.secret = section.get("clientSecret").and_then(|it| it.secret());
    if let Some(at) = section.get("clientSecret").filter(|_| auth.client.id.is_none()) {
        at.hidden("There is a `clientSecret`, and no `clientId`.", "Add `clientId`.");
    }
    if let Some(at) = section.get("clientId").filter(|_| auth.issuers.len() != 1) {
        at.hidden(
            "A client is that of one issuer.",
            "Name one of the `issuers`, or remove `clientId`.",
        );
    }
    auth.client.issuer = auth.issuers.first().cloned().filter(|_| auth.client.id.is_some());
    if let Some(it) = section.section("claims") {
        let claim = |name| it.get(name).and_then(|at| at.word());
        auth.claims =
            ClaimsPlan { name: claim("name"), groups: claim("groups"), tags: claim("tags") };
        if auth.issuers.is_empty()
            && let Some(at) = section.get("claims")
        {
            at.fault(
                "There are `claims`, and no `issuers` of tokens that have any.",
                "Add `issuers: [https://…]`, or take the claims out.",
            );
        }
    }
    for it in section.sections("groups") {
        let (name, tags) = (it.need("name"), tags(&it, "tags"));
        if let Some(name) = name.and_then(|it| it.word()) {
            auth.groups.push(GroupPlan { name, tags });
        }
    }
    if let Some(at) = section.get("groups").filter(|_| auth.claims.groups.is_none()) {
        at.fault(
            "There are `groups`, and no claim that says who is in them.",
            "Add `claims: { groups: groups }`, with the claim that your issuer writes them to.",
        );
    }
    if let Some(at) = section.get("resource") {
        auth.resource = at.word();
        if let Some(resource) = &auth.resource {
            check_identity(&at, resource, "a resource");
        }
    }
    if let Some(at) = section.get("issuers").filter(|_| auth.resource.is_none()) {
        at.fault(
            "There are issuers, and no `resource` that their tokens must be for.",
            "Add `resource: https://HOST/mcp`, the URL that clients have of this gateway.",
        );
    }
    (auth, shown)
}

fn check_identity(at: &At<'_>, url: &str, what: &str) {
    if !is_url(url) || is_user_in(url) || !is_private(url) {
        at.hidden(format!("This is no URL of {what}."), "Write an `https` URL.");
    }
}

fn admin(section: &Section<'_>) -> AdminPlan {
    let token = section.get("token").and_then(|it| it.secret());
    if let Some(at) = section.get("token").filter(|_| token.as_deref() == Some("")) {
        at.hidden("This token is empty.", "Give it a value.");
    }
    let mut plan = AdminPlan { listen: None, token, mtls: None };
    let mut is_tcp = false;
    if let Some(at) = section.get("listen")
        && let Some(listen) = at.word()
    {
        if let Some(path) = listen.strip_prefix("unix:") {
            if path.is_empty() {
                at.fault("There is no path.", "Write `unix:PATH`.");
            }
            plan.listen = Some(format!("unix:{}", at.reader.resolve(path).display()));
        } else {
            is_tcp = true;
            match parts(&listen) {
                None => at.fault(
                    "This is no address to listen at.",
                    "Write `127.0.0.1:7374` or `unix:PATH`.",
                ),
                Some((host, _)) if !is_loopback(host) && !section.has("mtls") => at.warn(
                    format!(
                        "{} is reached from other machines, and the token can be read on the way.",
                        at.shown(host)
                    ),
                    "Add `mtls`, or listen at `127.0.0.1`.",
                ),
                Some(_) => {}
            }
            plan.listen = Some(listen);
        }
    }
    if let Some(mtls) = section.section("mtls") {
        let files = ["certificate", "key", "clientCertificates"];
        let [certificate, key, clients] = files.map(|it| mtls.need(it).and_then(|it| it.file()));
        if let (Some(certificate), Some(key), Some(clients)) = (certificate, key, clients) {
            plan.mtls = Some((certificate, key, clients));
        }
        if !is_tcp {
            mtls.at.fault(
                "`mtls` is for an admin API at an address.",
                "Add `listen: 127.0.0.1:7374`, or remove it.",
            );
        }
    }
    plan
}

/// A path alone, or an object with settings.
fn audit(section: &Section<'_>) -> Option<AuditPlan> {
    let Some(more) = section.either("audit") else {
        return section.get("audit").and_then(|it| it.path()).map(AuditPlan::new);
    };
    let mut plan = AuditPlan::new(more.need("path").and_then(|it| it.path())?);
    plan.refuses = more.choice("onFailure") == Some("refuse");
    plan.sync = more.seconds("syncSeconds").unwrap_or(plan.sync);
    Some(plan)
}

fn pair(section: &Section<'_>) -> Option<(PathBuf, PathBuf)> {
    let [certificate, key] =
        ["certificate", "key"].map(|it| section.need(it).and_then(|it| it.file()));
    Some((certificate?, key?))
}

fn rule(section: &Section<'_>) -> Option<Rule> {
    let effect = section.need("effect").and_then(|_| section.choice("effect"));
    let rule = Rule {
        principals: section.texts("principals"),
        tags: tags(section, "tags"),
        tools: section.texts("tools"),
        effect: match effect? {
            "allow" => Effect::Allow,
            "ask" => Effect::Ask,
            _ => Effect::Deny,
        },
    };
    Some(rule)
}

fn rate(section: &Section<'_>) -> Option<Rate> {
    let (principals, tools) = (section.texts("principals"), section.texts("tools"));
    let burst = section.count("burst");
    let per_minute = section.need("perMinute").and_then(|_| section.count("perMinute"))? as u32;
    let burst = burst.map_or((per_minute / 10).max(1), |it| it as u32);
    Some(Rate { principals, tools, per_minute, burst })
}

fn plugins(section: &Section<'_>) -> Vec<PluginPlan> {
    let (mut out, mut names) = (Vec::new(), BTreeSet::new());
    for it in section.sections("plugins") {
        let at = it.need("name");
        let name = at.as_ref().and_then(At::word).unwrap_or_default();
        if let Some(at) = at.filter(|_| !name.is_empty() && !names.insert(name.clone())) {
            at.fault(format!("There are two plugins {}.", at.written()), "Rename one.");
        }
        let category = it.need("category").and_then(|_| it.choice("category"));
        it.need("command");
        let plan = PluginPlan {
            name,
            category: category.map_or(Category::Observability, category_of),
            required: it.flag("required").unwrap_or(true),
            command: command(&it, "command"),
            env: variables(&it),
            timeout: Duration::from_millis(it.count("timeoutMs").unwrap_or(3000) as u64),
            config: it.get("config").and_then(|it| it.json()).unwrap_or_default(),
        };
        if !it.flag("disabled").unwrap_or(false) {
            out.push(plan);
        }
    }
    out
}

fn category_of(name: &str) -> Category {
    match name {
        "authentication" => Category::Authentication,
        "authorization" => Category::Authorization,
        "rate_limiting" => Category::RateLimiting,
        "validation" => Category::Validation,
        "content" => Category::Content,
        "audit" => Category::Audit,
        _ => Category::Observability,
    }
}

/// Shorter tokens can be guessed: sixteen hexadecimal digits are 64 bits, more than anybody can try over a
/// network.
const SHORTEST: usize = 16;
