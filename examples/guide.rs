//! The pages of `docs/` and the README → tests: every Rust snippet is compiled, and run unless it
//! says `no_run`.

#![cfg(doctest)]

macro_rules! pages {
    ($($name:ident $path:literal)*) => {
        $(#[doc = include_str!($path)] mod $name {})*
    };
}

pages! {
    readme "../README.md"
    server "../docs/server.md"
    client "../docs/client.md"
    http "../docs/http.md"
    limits "../docs/limits.md"
    first_server "../docs/guide/first-server.md"
    first_client "../docs/guide/first-client.md"
    asking "../docs/guide/asking.md"
    long_work "../docs/guide/long-work.md"
    authorization "../docs/guide/authorization.md"
    logging_in "../docs/guide/logging-in.md"
    machine_to_machine "../docs/guide/machine-to-machine.md"
    testing "../docs/guide/testing.md"
    composing "../docs/guide/composing.md"
    migrating_from_rmcp "../docs/guide/migrating-from-rmcp.md"
}
