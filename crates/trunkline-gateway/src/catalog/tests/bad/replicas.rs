//! Faults of `store` and `replicas`.

use super::*;

#[test]
fn faults_of_replicas_say_what_they_need() {
    const KEY: &str = "0123456789abcdef0123456789abcdef";
    let good = format!("store: redis://a, replicas: {{ key: {KEY} }}");
    let with = |more: &str| format!("store: redis://a, replicas: {{ key: {KEY}, {more} }}");
    for (gateway, expected) in [
        (
            "store: redis://a".to_owned(),
            "store: Gateways that share a store trust each other by a key, and there is none. | Add `replicas: { key: \"${file:replicas.key}\" }`; make the file with `openssl rand -hex 32`.",
        ),
        (
            good.replace("redis://a", "http://a"),
            "store: The address of a Redis begins with `redis://` or `rediss://`. | Write `redis://HOST:6379`, with `:PASSWORD@` before the host if it needs one.",
        ),
        (
            format!("{good}, storeRootCertificates: ca.pem"),
            "storeRootCertificates: Certificates are for a store with TLS, and there is none. | Write `store: rediss://HOST:6379`, or remove them.",
        ),
        (
            format!("replicas: {{ key: {KEY} }}"),
            "replicas: There are `replicas`, and no `store` that they share. | Add `store: redis://HOST:6379`, or remove them.",
        ),
        (
            "store: redis://a, replicas: {}".to_owned(),
            "replicas: Replicas trust each other by a key, and there is none. | Add `key: \"${file:replicas.key}\"`; make the file with `openssl rand -hex 32`.",
        ),
        (
            "store: redis://a, replicas: { key: \"${file:secret}\" }".to_owned(),
            "replicas.key: A key has 32 bytes, or 64 hexadecimal digits; this has not. | Make one with `openssl rand -hex 32`.",
        ),
        (
            with(&format!("keys: [{KEY}]")),
            "replicas.keys: There are both `key` and `keys`. | Write one of them.",
        ),
        (
            with("listen: 10.0.0.7"),
            "replicas.listen: This is no address to listen at. | Write `10.0.0.7:7474`.",
        ),
        (
            with("listen: 10.0.0.7:7474"),
            "replicas.listen: `10.0.0.7` is reached from other machines, and what replicas tell each other can be read on the way. | Add `gateway.tls`, or `insecure: true` if nobody else is in that network.",
        ),
        (
            with("listen: 0.0.0.0:7474, insecure: true"),
            "replicas.listen: `0.0.0.0` is every address of this machine, and replicas need one that leads here. | Add `advertise: http://HOST:PORT`, the URL at which other replicas reach this one.",
        ),
        (
            with("listen: 127.0.0.1:7373"),
            "replicas.listen: Clients connect at this address; other replicas need one that no client reaches. | Choose another port.",
        ),
        (
            with("advertise: 'http://a:1/mcp'"),
            "replicas.advertise: `http://a:1/mcp` is no URL of a listener. | Write a scheme, a host and a port: `http://10.0.0.7:7474`.",
        ),
    ] {
        let found = faults(&format!("mcpServers: {{}}\ngateway: {{ {gateway} }}"));
        let [found] = &*found else { panic!("{gateway}: {found:?}") };
        assert!(found.ends_with(&format!(" gateway.{expected}")), "{gateway}: {found}");
    }
    for gateway in [
        good.clone(),
        with("listen: 127.0.0.1:0"),
        format!("listen: 127.0.0.1:0, {}", with("listen: 127.0.0.1:0")),
        with("listen: 0.0.0.0:7474, insecure: true, advertise: 'http://10.0.0.7:7474'"),
    ] {
        assert_eq!(warnings(&format!("mcpServers: {{}}\ngateway: {{ {gateway} }}")), [""; 0]);
    }
}
