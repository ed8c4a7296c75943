//! Spellings of one file, and what rules decide about each.

use std::sync::Arc;

use super::*;
use crate::Gateway;
use crate::caller::Caller;
use crate::catalog::plan::Effect::{self, Allow, Ask, Deny};
use crate::fixture::{plan, settings};
use crate::merge::{Item, Target};
use crate::state::Visibility;

async fn gateway(rules: &str) -> Gateway {
    let catalog = format!(
        "gateway: {{ rules: [{rules}] }}\nmcpServers: {{ a: {{ url: 'http://127.0.0.1:9/mcp' }} }}"
    );
    Gateway::open(plan(&catalog), settings()).await.unwrap()
}

fn effect(gateway: &Gateway, uri: &str) -> Effect {
    let target = Target { server: Arc::from("a"), name: Arc::from(uri), item: Item::Unlisted };
    Visibility::new(&gateway.0.active_plan(), &Caller::named("ann")).effect(&target)
}

/// Spellings with which a server could open `/etc/hostname` or something below `/etc`.
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
async fn every_spelling_of_a_denied_file_is_denied() {
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
async fn a_uri_is_allowed_only_if_every_near_reading_is() {
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
fn common_uris_are_unambiguous_with_few_readings() {
    for (uri, expected) in [
        ("https://h.example:8443/a/b?q=1&r=a%20b#top", 2),
        ("http://h:80/a", 1),
        ("file:///srv/My%20Documents/r%C3%A9sum%C3%A9.pdf", 2),
        ("file:///srv/ends%20", 3),
        ("file:///C:/Users/a.txt", 1),
        (r"C:\Users\a.txt", 2),
        ("db://users/1?limit=1", 1),
        ("git+ssh://git@h.example/r.git", 1),
        ("x://{a}/b{?c,d*}", 1),
        ("nota://é/ü/日本語", 1),
        ("urn:isbn:0451450523", 1),
        ("mailto:a@b.example", 1),
        ("data:text/plain;base64,SGVsbG8=", 1),
        ("data:text/plain,a%20b%2Fc", 2),
        ("tag:a.example,2026:%25", 2),
        ("/srv/a b", 1),
        ("a name", 1),
    ] {
        let forms = Forms::of(uri);
        assert!(!forms.is_ambiguous, "{uri}");
        assert_eq!(forms.near.len(), expected, "{uri}: {forms:?}");
    }
}

#[test]
fn what_a_reading_is_read_as_is_a_reading_too() {
    for uri in [
        "file://%5Ca",
        r"htTps://Exam\ple.ORG:443/a\..\b",
        r"FILE://%65t\c/../et\//passwd",
        "FILE://loca%2Flhos5tc/../etc/file://h//passwd",
        "%205",
        "%20file:///etc/%20",
        "file://h%3f/../a%23b",
        r"\\h%2f..%5Ca/%2e",
        "https://h%3A443/a",
    ] {
        let forms = Forms::of(uri);
        assert!(!forms.is_ambiguous, "{uri}");
        for near in &forms.near {
            let again = Forms::of(near);
            assert!(!again.is_ambiguous, "{uri}: {near:?} is ambiguous");
            for it in again.near.iter().chain(&again.far) {
                let is_reading = forms.near.contains(it) || forms.far.contains(it);
                assert!(is_reading, "{uri}: {near:?} is also {it:?}");
            }
        }
    }
}

#[test]
fn a_uri_that_means_too_many_things_means_none() {
    let endless = format!("x:%{}41", "25".repeat(ROUNDS + 1));
    let long = format!("x:{}", "a".repeat(LONGEST));
    let many = r"file://h%25255C\b%255C%252541c%5Cd%2523e/a%25255Cb\c%255C?d%25255C#e";
    for uri in ["a:\u{7f}", "a:%00", "a:%250E", "a:%C1%81", "file://../a", "file://%2e/a"] {
        assert!(Forms::of(uri).is_ambiguous, "{uri:?}");
    }
    for uri in [&*endless, &long, many] {
        assert!(Forms::of(uri).is_ambiguous, "{uri:.40?}");
    }
    assert!(!Forms::of("a:%FF%20é").is_ambiguous);
}
