//! Checks `store` and `replicas`: what makes this gateway one of several.

use std::path::PathBuf;

use trunkline_store::RedisAddress;

use super::address::{is_loopback, is_url, is_user_in, parts};
use super::section::{At, Section};
use crate::catalog::plan::{ReplicasPlan, WhenAway};

/// The store that all replicas share.
pub(super) fn store(section: &Section<'_>) -> Option<RedisAddress> {
    let at = section.get("store")?;
    if !section.has("replicas") {
        at.hidden(
            "Gateways that share a store trust each other by a key, and there is none.",
            "Add `replicas: { key: \"${file:replicas.key}\" }`; make the file with `openssl rand -hex 32`.",
        );
    }
    match RedisAddress::parse(at.secret()?.trim()) {
        Ok(address) => Some(address),
        Err(why) => {
            at.hidden(
                why.to_string(),
                "Write `redis://HOST:6379`, with `:PASSWORD@` before the host if it needs one.",
            );
            None
        }
    }
}

/// The authorities to trust at the store.
pub(super) fn store_roots(section: &Section<'_>) -> Vec<PathBuf> {
    if let Some(at) = section.get("storeRootCertificates") {
        let address = section.get("store").and_then(|it| it.secret());
        let is_tls = address.is_some_and(|it| it.trim().starts_with("rediss"));
        if !is_tls {
            at.hidden(
                "Certificates are for a store with TLS, and there is none.",
                "Write `store: rediss://HOST:6379`, or remove them.",
            );
        }
    }
    section.list("storeRootCertificates").iter().filter_map(At::file).collect()
}

/// How replicas find and trust each other. `public` is the address for clients.
pub(super) fn replicas(section: &Section<'_>, public: &str) -> Option<ReplicasPlan> {
    let (has_store, has_tls) = (section.has("store"), section.has("tls"));
    let section = section.section("replicas")?;
    if !has_store {
        section.at.hidden(
            "There are `replicas`, and no `store` that they share.",
            "Add `store: redis://HOST:6379`, or remove them.",
        );
    }
    let insecure = section.flag("insecure").unwrap_or(false);
    let advertise = advertise(&section);
    let listen = section.get("listen");
    let address = listen.as_ref().map_or_else(|| Some(LISTEN.to_owned()), At::word);
    if let (Some(at), Some(address)) = (&listen, &address) {
        check_listen(at, address, public, advertise.is_some(), insecure || has_tls);
    }
    let keys = keys(&section);
    let when_away = match section.choice("whenAway") {
        Some("local") => WhenAway::Local,
        _ => WhenAway::Refuse,
    };
    let roots = section.list("rootCertificates").iter().filter_map(At::file).collect();
    Some(ReplicasPlan { listen: address?, advertise, keys, roots, when_away, insecure })
}

fn check_listen(at: &At<'_>, address: &str, public: &str, is_advertised: bool, is_safe: bool) {
    let Some((host, port)) = parts(address) else {
        return at.fault("This is no address to listen at.", "Write `10.0.0.7:7474`.");
    };
    // Each listener at port 0 gets a port of its own.
    let is_public = port != 0
        && parts(public).is_some_and(|(other, it)| {
            it == port && (other == host || is_everywhere(other) || is_everywhere(host))
        });
    if is_public {
        at.fault(
            "Clients connect at this address; other replicas need one that no client reaches.",
            "Choose another port.",
        );
    } else if !is_loopback(host) && !is_safe {
        let host = at.shown(host);
        at.fault(
            format!(
                "{host} is reached from other machines, and what replicas tell each other can be read on the way."
            ),
            "Add `gateway.tls`, or `insecure: true` if nobody else is in that network.",
        );
    } else if is_everywhere(host) && !is_advertised {
        let host = at.shown(host);
        at.fault(
            format!(
                "{host} is every address of this machine, and replicas need one that leads here."
            ),
            "Add `advertise: http://HOST:PORT`, the URL at which other replicas reach this one.",
        );
    }
}

fn advertise(section: &Section<'_>) -> Option<String> {
    let at = section.get("advertise")?;
    let url = at.word()?;
    let is_bare = url.split_once("://").is_some_and(|(_, it)| !it.contains(['/', '?', '#']));
    if !is_url(&url) || is_user_in(&url) || !is_bare {
        at.fault(
            format!("{} is no URL of a listener.", at.written()),
            "Write a scheme, a host and a port: `http://10.0.0.7:7474`.",
        );
    }
    Some(url)
}

/// The keys, newest first. Without any there is a fault.
fn keys(section: &Section<'_>) -> Vec<[u8; 32]> {
    let (one, many) = (section.get("key"), section.get("keys"));
    if let (Some(_), Some(many)) = (&one, &many) {
        many.hidden("There are both `key` and `keys`.", "Write one of them.");
    }
    let written = match (&one, &many) {
        (Some(one), _) => vec![one.clone()],
        (None, Some(many)) => many.items(),
        (None, None) => Vec::new(),
    };
    if written.is_empty() {
        section.at.hidden(
            "Replicas trust each other by a key, and there is none.",
            "Add `key: \"${file:replicas.key}\"`; make the file with `openssl rand -hex 32`.",
        );
    }
    written.iter().filter_map(key).collect()
}

/// A key: 32 bytes, as they are or in hexadecimal.
fn key(at: &At<'_>) -> Option<[u8; 32]> {
    let text = at.secret()?;
    let text = text.trim();
    let key = match text.len() {
        64 => hexadecimal(text),
        _ => text.as_bytes().try_into().ok(),
    };
    if key.is_none() {
        at.hidden(
            "A key has 32 bytes, or 64 hexadecimal digits; this has not.",
            "Make one with `openssl rand -hex 32`.",
        );
    }
    key
}

fn hexadecimal(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |it: &u8| char::from(*it).to_digit(16);
        let [high, low] = digits else { return None };
        *byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    }
    Some(bytes)
}

fn is_everywhere(host: &str) -> bool {
    host.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_unspecified())
}

/// Where replicas are reached unless the catalog says so: by others of this machine.
const LISTEN: &str = "127.0.0.1:7474";
