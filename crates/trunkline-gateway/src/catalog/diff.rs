//! Compares two plans: what has to happen to get from one to the other.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::{GatewayPlan, Plan, ServerPlan};

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Added,
    /// It is gone: its instances drain and stop.
    Removed,
    /// Only what is shown of it changes, or to whom. Nothing restarts.
    Tools,
    /// How it is run changes. Running instances stay.
    Behaviour,
    /// It is another process now: the old instances drain, new ones take over.
    Replaced,
}

/// The difference between two plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The servers that changed.
    pub servers: BTreeMap<String, Change>,
    /// The keys of `gateway` that changed.
    pub gateway: Vec<&'static str>,
    /// Those of them that need a restart.
    pub restart: Vec<&'static str>,
}

impl Diff {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.gateway.is_empty()
    }
}

/// Compares the running plan with the wanted one.
pub fn diff(old: &Plan, new: &Plan) -> Diff {
    let mut servers = BTreeMap::new();
    for (name, plan) in &new.servers {
        let change = match old.servers.get(name) {
            None => Some(Change::Added),
            Some(old) => change(old, plan),
        };
        servers.extend(change.map(|it| (name.clone(), it)));
    }
    for name in old.servers.keys().filter(|it| !new.servers.contains_key(*it)) {
        servers.insert(name.clone(), Change::Removed);
    }
    let (gateway, restart) = gateway(&old.gateway, &new.gateway);
    Diff { servers, gateway, restart }
}

fn change(old: &ServerPlan, new: &ServerPlan) -> Option<Change> {
    if old == new {
        return None;
    }
    // Instances cannot change their strategy: a stateful one is bound to a session.
    if old.reach != new.reach || old.revisions != new.revisions || old.strategy != new.strategy {
        return Some(Change::Replaced);
    }
    let as_shown_before = ServerPlan {
        tags: old.tags.clone(),
        expose: old.expose.clone(),
        rename: old.rename.clone(),
        idempotent: old.idempotent.clone(),
        pin: old.pin,
        ..new.clone()
    };
    Some(if as_shown_before == *old { Change::Tools } else { Change::Behaviour })
}

fn gateway(old: &GatewayPlan, new: &GatewayPlan) -> (Vec<&'static str>, Vec<&'static str>) {
    // Every field is named, so that a new one cannot be forgotten.
    let GatewayPlan {
        listen,
        naming,
        plaintext,
        selector_required,
        share,
        hosts,
        origins,
        auth,
        tls,
        admin,
        rules,
        rates,
        audit,
        recording,
        plugins,
        automatic,
        bootstrap,
        refresh,
        store,
        store_roots,
        replicas,
    } = new;
    let changed = [
        ("listen", *listen != old.listen, true),
        ("naming", *naming != old.naming, false),
        ("plaintext", *plaintext != old.plaintext, false),
        ("requireSelector", *selector_required != old.selector_required, false),
        ("share", *share != old.share, false),
        ("hosts", *hosts != old.hosts, false),
        ("origins", *origins != old.origins, false),
        ("auth", *auth != old.auth, false),
        // A renewed certificate in the same files needs no restart; other files do.
        ("tls", *tls != old.tls, true),
        ("admin", *admin != old.admin, true),
        ("rules", *rules != old.rules, false),
        ("rates", *rates != old.rates, false),
        ("audit", *audit != old.audit, false),
        ("recording", *recording != old.recording, false),
        ("plugins", *plugins != old.plugins, false),
        ("automatic", *automatic != old.automatic, false),
        ("bootstrap", *bootstrap != old.bootstrap, false),
        ("refreshSeconds", *refresh != old.refresh, false),
        ("store", *store != old.store, true),
        ("storeRootCertificates", *store_roots != old.store_roots, true),
        ("replicas", *replicas != old.replicas, true),
    ];
    let of = |it: &dyn Fn(&(&'static str, bool, bool)) -> bool| {
        changed.iter().filter(|row| it(row)).map(|row| row.0).collect()
    };
    (of(&|it| it.1), of(&|it| it.1 && it.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Process, load};

    fn plan(text: &str) -> Plan {
        load(text, "/etc/trunkline.yaml".as_ref(), &Process).unwrap().plan
    }

    #[test]
    fn each_edit_costs_what_it_must() {
        const OLD: &str = "mcpServers: { a: { command: run, tags: [x] } }";
        for (new, expected) in [
            ("{ a: { command: run, tags: [X] } }", None),
            ("{ a: { command: run, tags: [x], maxConcurrent: 16 } }", None),
            ("{ a: { command: run, tags: [y] } }", Some(Change::Tools)),
            ("{ a: { command: run, tags: [x], exposeTools: [b] } }", Some(Change::Tools)),
            ("{ a: { command: run, tags: [x], renameTools: {b: c} } }", Some(Change::Tools)),
            ("{ a: { command: run, tags: [x], pin: false } }", Some(Change::Tools)),
            ("{ a: { command: run, tags: [x], idleSeconds: 1 } }", Some(Change::Behaviour)),
            ("{ a: { command: run, idleSeconds: 1 } }", Some(Change::Behaviour)),
            ("{ a: { command: run, tags: [x], minReady: 1 } }", Some(Change::Behaviour)),
            ("{ a: { command: other, tags: [x] } }", Some(Change::Replaced)),
            ("{ a: { command: run, tags: [x], env: {A: b} } }", Some(Change::Replaced)),
            ("{ a: { command: run, tags: [x], cwd: /b } }", Some(Change::Replaced)),
            ("{ a: { command: run, tags: [x], strategy: stateful } }", Some(Change::Replaced)),
            (
                "{ a: { command: run, tags: [x], protocolVersion: 2025-06-18 } }",
                Some(Change::Replaced),
            ),
            ("{ a: { url: 'https://a.example' } }", Some(Change::Replaced)),
            ("{}", Some(Change::Removed)),
            ("{ a: { command: run, disabled: true } }", Some(Change::Removed)),
        ] {
            let found = diff(&plan(OLD), &plan(&format!("mcpServers: {new}")));
            assert_eq!(found.servers.get("a").copied(), expected, "{new}");
            assert_eq!(found.is_empty(), expected.is_none(), "{new}");
        }
        let found = diff(&plan("mcpServers: {}"), &plan(OLD));
        assert_eq!(found.servers["a"], Change::Added);
    }

    #[test]
    fn processes_are_known_by_what_decides_them() {
        let of =
            |text: &str| plan(&format!("mcpServers: {{ a: {text} }}")).servers["a"].fingerprint();
        let usual = of("{ command: run, args: [b] }");
        assert_eq!(usual.len(), 64);
        assert_eq!(usual, of("{ cmd: [run, b], idleSeconds: 9, tags: [c], strategy: stateful }"));
        for other in [
            "{ command: run }",
            "{ command: run, args: [b, ''] }",
            "{ command: run, args: [b], env: {C: d} }",
            "{ command: run, args: [b], inherit: [C] }",
            "{ command: run, args: [b], cwd: /d }",
            "{ command: run, args: [b], protocolVersion: 2025-06-18 }",
            "{ url: 'https://a.example' }",
        ] {
            assert_ne!(usual, of(other), "{other}");
        }
        let login = of("{ url: 'https://a.example', auth: { type: login } }");
        assert_ne!(login, of("{ url: 'https://a.example' }"));
    }

    #[test]
    fn changes_that_need_a_restart_are_reported() {
        let of = |text: &str| plan(&format!("mcpServers: {{}}\ngateway: {text}"));
        let usual = of("{}");
        for (new, changed, restart) in [
            ("{ listen: '127.0.0.1:7373' }", &[][..], &[][..]),
            ("{ listen: '127.0.0.1:1' }", &["listen"], &["listen"]),
            ("{ admin: { listen: '127.0.0.1:1' } }", &["admin"], &["admin"]),
            (
                "{ store: redis://a, replicas: { key: 0123456789abcdef0123456789abcdef } }",
                &["store", "replicas"],
                &["store", "replicas"],
            ),
            (
                "{ naming: flat, bootstrap: 9, refreshSeconds: 0 }",
                &["naming", "bootstrap", "refreshSeconds"],
                &[],
            ),
            ("{ auth: { tokens: [{ name: a, token: 0123456789abcdef }] } }", &["auth"], &[]),
            ("{ rules: [{ effect: deny }], audit: a.jsonl }", &["rules", "audit"], &[]),
            ("{ recording: off }", &["recording"], &[]),
        ] {
            let found = diff(&usual, &of(new));
            assert_eq!(
                (found.gateway.as_slice(), found.restart.as_slice()),
                (changed, restart),
                "{new}"
            );
        }
        let with = |tls| {
            let gateway = GatewayPlan { tls, ..GatewayPlan::default() };
            Plan { gateway, ..Plan::default() }
        };
        let first = with(Some(("a.pem".into(), "a.key".into())));
        let second = with(Some(("b.pem".into(), "b.key".into())));
        assert_eq!(diff(&Plan::default(), &first).restart, ["tls"]);
        assert_eq!(diff(&first, &second).gateway, ["tls"]);
        assert_eq!(diff(&first, &second).restart, ["tls"]);
    }
}
