//! Spellings of one file, and what rules make of each.

use std::sync::Arc;

use super::*;
use crate::caller::Caller;
use crate::catalog::plan::Effect::{self, Allow, Ask, Deny};
use crate::catalog::{Process, load};
use crate::face::Sight;
use crate::merge::{Item, Target};
use crate::{Gateway, Settings};

async fn gateway(rules: &str) -> Gateway {
    let catalog = format!(
        "gateway: {{ rules: [{rules}] }}\nmcpServers: {{ a: {{ url: 'http://127.0.0.1:9/mcp' }} }}"
    );
    let plan = load(&catalog, "/etc/trunkline.yaml".as_ref(), &Process).unwrap().plan;
    let settings = Settings {
        store: Arc::new(trunkline_store::Memory::default()),
        pins: None,
        logins: None,
        limits: trunkline_transport::Limits::default(),
        otel: None,
    };
    Gateway::open(plan, settings).await.unwrap()
}

fn effect(gateway: &Gateway, uri: &str) -> Effect {
    let target = Target { server: Arc::from("a"), name: Arc::from(uri), item: Item::Unlisted };
    Sight::new(&gateway.0.world(), &Caller::named("ann")).effect(&target)
}

/// What a server could open `/etc/hostname` or something below `/etc` for.
const OF_ETC: [&str; 60] = [
    "file:///etc/hostname",
    "FILE:///etc/hostname",
    "File:/etc/hostname",
    "file:etc/hostname",
    "file:////etc/hostname",
    "file://///etc//hostname",
    "file://localhost/etc/hostname",
    "file://LOCALHOST/etc/hostname",
    "file://x/etc/hostname",
    "FILE://h/etc/hostname",
    "file://127.0.0.1/etc/hostname",
    "file://[::1]/etc/hostname",
    "file://user@localhost/etc/hostname",
    "file://localhost:80/etc/hostname",
    "file://user:secret@host:1/etc/hostname",
    "file://etc/hostname",
    "file://%6cocalhost/etc/hostname",
    "file://x%2fetc/hostname",
    "file:///etc/hostname?",
    "file:///etc/hostname?a=b",
    "file:///etc/hostname#",
    "file:///etc/hostname#a?b",
    "file:///etc/./hostname",
    "file:///./etc/hostname",
    "file:///../etc/hostname",
    "file:///tmp/../etc/hostname",
    "file:///tmp/x/../../etc/hostname",
    "file:///etc/x/../hostname",
    "file:///tmp/%2e%2e/etc/hostname",
    "file:///tmp/%2E./etc/hostname",
    "file:///tmp/..%2fetc/hostname",
    "file:///tmp%2F..%2Fetc%2Fhostname",
    "file:///%65tc/hostname",
    "file:///%65%74%63/%68ostname",
    "file:///etc%2fhostname",
    "file:///%2fetc/hostname",
    "file:///%2565tc/hostname",
    "file:///tmp/%252e%252e/etc/hostname",
    "file:///tmp/%252e%252e%252fetc%252fhostname",
    "file:///%25252565tc/hostname",
    "file:///x%3f/../../etc/hostname",
    "file:///x%23/../../etc/hostname",
    "file:///x%253f/../../etc/hostname",
    r"file:///etc\hostname",
    r"file:\\\etc\hostname",
    r"file:\\x\etc\hostname",
    r"file:///tmp\..\etc\hostname",
    "file:///tmp%5c..%5cetc%5chostname",
    "/etc/hostname",
    "//etc/hostname",
    " file:///etc/hostname",
    "file:///etc/hostname ",
    "fi\tle:///etc/hostname",
    "file:///e\ntc/hostname",
    "file:///etc/hostname%00.txt",
    "file:///etc%c0%afhostname",
    "file:///tmp/%c0%ae%c0%ae/etc/hostname",
    "file:///etc/",
    "file:///etc/.",
    "file://x//etc/hostname",
];

#[tokio::test]
async fn whatever_a_server_may_take_for_a_denied_file_is_denied() {
    for pattern in ["a.read:file:///etc/*", "*.read:file:/etc/**", "a.read:FILE://localhost/etc/*"]
    {
        let gateway = gateway(&format!("{{ tools: ['{pattern}'], effect: deny }}")).await;
        for uri in OF_ETC {
            assert_eq!(effect(&gateway, uri), Deny, "{uri:?} by `{pattern}`");
        }
        for uri in ["file:///srv/etc", "file:///etcetera/a", "note://etc/hostname", "a b", ""] {
            assert_eq!(effect(&gateway, uri), Allow, "{uri:?} by `{pattern}`");
        }
    }
}

#[tokio::test]
async fn what_is_allowed_is_allowed_only_if_it_is_nothing_else() {
    let rules = "{ tools: ['a.read:file:///srv/*', 'a.read:file://nas/*'], effect: allow },
        { tools: ['a.read:https://h/a%2fb'], effect: allow },
        { tools: ['a.read:db://users?*'], effect: allow }, { effect: deny }";
    let gateway = gateway(rules).await;
    for uri in [
        "file:///srv/a",
        "FILE:/srv/%61",
        "file://localhost/srv/a%20b?x",
        "file:///srv/./a",
        "file://nas/a",
        "https://h/a%2fb",
        "https://h:443/a%2Fb",
        "db://users?limit=1",
    ] {
        assert_eq!(effect(&gateway, uri), Allow, "{uri:?}");
    }
    for uri in [
        "file://x/srv/a",
        "file://user@localhost/srv/a",
        "file:///srv/../etc/hostname",
        "file:///srv/%2e%2e/etc/hostname",
        "file:///srv/%252e%252e/etc/hostname",
        r"file:///srv/..\etc\hostname",
        "file:///srv/x%3f/../../etc/hostname",
        "file:///srv%00/a",
        "db://users",
        "https://u@h/a%2fb",
        "https://h.x/a%2fb",
    ] {
        assert_eq!(effect(&gateway, uri), Deny, "{uri:?}");
    }
    for uri in OF_ETC {
        assert_eq!(effect(&gateway, uri), Deny, "{uri:?}");
    }
}

#[tokio::test]
async fn the_strictest_of_what_it_may_be_decides() {
    let rules = "{ tools: ['a.read:x:///ask/*'], effect: ask },
        { tools: ['a.read:x:///deny/*', 'a.read:https://h/*'], effect: deny }";
    let gateway = gateway(rules).await;
    for (uri, expected) in [
        ("x:///ask/a", Ask),
        ("x:///ask/../b", Ask),
        ("x:///ask/../deny/a", Deny),
        ("x:///deny/../ask/a", Deny),
        ("x:///b", Allow),
        ("https://H:443/a", Deny),
        ("https://user@h./a", Deny),
        ("https://h.example/a", Allow),
    ] {
        assert_eq!(effect(&gateway, uri), expected, "{uri:?}");
    }
}

#[test]
fn a_plain_uri_is_one_thing() {
    for uri in ["file:///etc/hostname", "note://a", "note://a/b/c", "x:y", "no scheme", "x:%"] {
        assert_eq!(Forms::of(uri).near, [uri], "{uri}");
    }
}

#[test]
fn a_uri_that_means_too_many_things_means_none() {
    let endless = format!("x:%{}41", "25".repeat(ROUNDS + 1));
    let long = format!("x:{}", "a".repeat(LONGEST));
    for uri in ["a:\u{7f}", "a:%00", "a:%C1%81", &endless, &long] {
        assert!(Forms::of(uri).is_unclear, "{uri:.40?}");
    }
    assert!(!Forms::of("a:%FF%20é").is_unclear);
}
