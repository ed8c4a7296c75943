//! How a server's conversation begins: `initialize`, what may come before it, and which revision
//! comes out of it.

use trunkline_wire::revision::Revision::{self, *};

use crate::transcript::server;

const FROM_V1: &str = r#"{"name":"cli","version":"1"}"#;

/// What the server offers, as each revision spells it.
fn offer(revision: Revision) -> &'static str {
    match revision {
        V2024_11_05 => {
            r#"{"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}}"#
        }
        V2025_03_26 | V2025_06_18 => {
            r#"{"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}}"#
        }
        V2025_11_25 => {
            r#"{"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#
        }
        V2026_07_28 => {
            r#"{"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#
        }
    }
}

fn initialize(asked: &str, answered: Revision) -> String {
    let offer = offer(answered);
    format!(
        r#"
        > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{asked}","capabilities":{{}},"clientInfo":{FROM_V1}}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{answered}","capabilities":{offer},"serverInfo":{{"name":"srv","version":"1"}}}}}}
        "#
    )
}

#[test]
fn a_revision_the_server_speaks_is_agreed_on() {
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        server().check(&initialize(revision.as_str(), revision));
        server().only(revision).check(&initialize(revision.as_str(), revision));
    }
}

#[test]
fn a_revision_the_server_lacks_is_answered_with_its_newest() {
    server().check(&initialize("2023-01-01", V2025_11_25));
    server().check(&initialize("2099-01-01", V2025_11_25));
    // The newest of all has no `initialize`, so it cannot be agreed on that way.
    server().check(&initialize("2026-07-28", V2025_11_25));
    server().only(V2025_03_26).check(&initialize("2025-11-25", V2025_03_26));
}
