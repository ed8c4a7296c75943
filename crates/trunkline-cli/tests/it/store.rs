//! A gateway whose catalog names a store that is not there.

use std::net::TcpListener;

use crate::clients::Home;

/// A catalog of a replica whose store is at a port where nobody listens.
fn catalog(name: &str) -> (Home, u16) {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let home = Home::new(name);
    home.write(
        "project/trunkline.yaml",
        &format!(
            "mcpServers: {{}}\ngateway:\n  listen: 127.0.0.1:0\n  store: redis://:hunter2@127.0.0.1:{nobody}\n  \
             replicas: {{ listen: '127.0.0.1:0', key: 0123456789abcdef0123456789abcdef }}\n"
        ),
    );
    (home, nobody)
}

#[test]
fn a_store_that_does_not_answer_is_told_at_the_start() {
    let (home, port) = catalog("store-away");
    let found = home.run(&["serve"]);
    assert_eq!(found.code, 3, "{}", found.stderr);
    for part in [&*format!("`redis://127.0.0.1:{port}`"), "cannot be used", "`gateway.store`"] {
        assert!(found.stderr.contains(part), "{part} in {}", found.stderr);
    }
    assert!(!found.stderr.contains("hunter2"), "{}", found.stderr);
}

#[test]
fn the_doctor_looks_at_the_store_and_at_the_address_for_replicas() {
    let (home, _) = catalog("store-doctor");
    let found = home.run(&["doctor"]);
    assert_eq!(found.code, 1, "{}{}", found.stdout, found.stderr);
    for part in ["✗ store", "Start it, or correct `gateway.store`.", "– replicas   none runs here"]
    {
        assert!(found.stdout.contains(part), "{part} in {}", found.stdout);
    }
}
