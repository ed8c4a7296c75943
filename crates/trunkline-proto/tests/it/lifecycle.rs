//! How a server's conversation begins: `initialize`, what may precede it, and the negotiated revision.

use std::sync::Arc;

use trunkline_proto::server::{Config, Server};
use trunkline_proto::{Conversation, Input, Output};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Incoming};
use trunkline_wire::model::Implementation;
use trunkline_wire::revision::Revision::{self, *};

use crate::transcript::{every_server_capability, fill, server, start};

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
fn a_client_that_says_too_much_about_itself_gets_no_session() {
    let name = "x".repeat(70_000);
    server().check(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{name}","version":"1"}}}}}}
        < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32602,"message":"`initialize` may have at most 65536 bytes."}}}}
        "#
    ));
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
    // The newest revision has no `initialize`, so it cannot be negotiated that way.
    server().check(&initialize("2026-07-28", V2025_11_25));
    server().only(V2025_03_26).check(&initialize("2025-11-25", V2025_03_26));
}

#[test]
fn nothing_but_ping_is_served_before_initialize() {
    server().check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"Send `initialize` first."}}
        > {"jsonrpc":"2.0","id":3,"method":"no/such"}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"There is no method `no/such` here."}}
        # Notifications are never answered, whatever they are.
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","method":"no/such"}
        > {"jsonrpc":"2.0","method":"tools/list"}
        "#,
    );
}

#[test]
fn ping_is_answered_at_any_time_of_a_session() {
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        let ping = |id: &str| {
            format!(
                r#"
                > {{"jsonrpc":"2.0","id":{id},"method":"ping"}}
                < {{"jsonrpc":"2.0","id":{id},"result":{{}}}}
                "#
            )
        };
        let script = [
            ping("\"before\""),
            initialize(revision.as_str(), revision),
            ping("\"between\""),
            r#"> {"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
            "heard notifications/initialized {}".to_owned(),
            // It is confirmed once.
            r#"> {"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
            ping("\"1\""),
            ping("1"),
            ping("-3"),
            ping("123456789012345678901234567890"),
        ];
        server().check(&script.join("\n"));
    }
}

#[test]
fn a_session_is_opened_once() {
    let again = r#"
        > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"cli","version":"1"}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"This session is already open."}}
        "#;
    server().check(&format!("{}{again}", initialize("2025-06-18", V2025_06_18)));
}

#[test]
fn an_initialize_that_cannot_be_read_opens_nothing_and_may_be_repeated() {
    let unreadable = r#"
        > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}
        < {"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"*"}}
        > {"jsonrpc":"2.0","id":0,"method":"initialize"}
        < {"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"*"}}
        "#;
    server().check(&format!("{unreadable}{}", initialize("2025-06-18", V2025_06_18)));
}

#[test]
fn instructions_and_a_session_without_capabilities() {
    server()
        .with(|config| {
            config.capabilities = Default::default();
            config.instructions = Some("Add things.".to_owned());
        })
        .check(
            r#"
            > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"cli","version":"1"}}}
            < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"srv","version":"1"},"instructions":"Add things."}}
            "#,
        );
}

#[test]
fn members_of_a_servers_name_that_the_revision_lacks_are_dropped() {
    let named = || {
        server().with(|config| {
            config.capabilities = Default::default();
            config.info = Implementation::new("srv", "1").title("Server").description("Serves.");
        })
    };
    for (revision, info) in [
        (V2024_11_05, r#"{"name":"srv","version":"1"}"#),
        (V2025_03_26, r#"{"name":"srv","version":"1"}"#),
        (V2025_06_18, r#"{"name":"srv","version":"1","title":"Server"}"#),
        (V2025_11_25, r#"{"name":"srv","version":"1","title":"Server","description":"Serves."}"#),
    ] {
        named().check(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{FROM_V1}}}}}
            < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{revision}","capabilities":{{}},"serverInfo":{info}}}}}
            "#
        ));
    }
}

#[test]
fn a_server_of_the_new_era_alone_names_its_revisions_when_asked_to_initialize() {
    server().only(V2026_07_28).check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"cli","version":"1"}}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"This server does not speak that revision.","data":{"supported":["2026-07-28"],"requested":"2025-06-18"}}}
        > {"jsonrpc":"2.0","id":2,"method":"initialize"}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32022,"message":"This server does not speak that revision.","data":{"supported":["2026-07-28"],"requested":""}}}
        "#,
    );
}

#[test]
fn a_server_of_the_new_era_alone_has_no_ping_and_wants_an_envelope() {
    server().only(V2026_07_28).check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`_meta` must hold `io.modelcontextprotocol/protocolVersion`."}}
        > {"jsonrpc":"2.0","id":2,"method":"ping","params":{"_meta":$META}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"There is no method `ping` here."}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"`_meta` must hold `io.modelcontextprotocol/protocolVersion`."}}
        "#,
    );
}

#[test]
fn a_server_of_the_old_era_alone_does_not_know_discover() {
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        let discover = r#"
            > {"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":$META}}
            < {"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"There is no method `server/discover` here."}}
            "#;
        let script = [discover, &initialize("2026-07-28", revision), discover].concat();
        server().only(revision).check(&script);
    }
}

#[test]
fn calls_are_served_between_initialize_and_initialized_but_changes_are_not_sent() {
    let script = r#"
        changed tools
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add"}}
        call 1 tools/call {"name":"add"}
        # Log messages are allowed before the client has confirmed.
        say 1 log {"level":"warning","data":"early"}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"early"}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        heard notifications/initialized {}
        changed tools
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        "#;
    server().check(&format!("{}{script}", initialize("2025-06-18", V2025_06_18)));
}

#[test]
fn an_answer_is_owed_until_it_leaves_and_not_to_another_message_of_its_id() {
    let mut config = Config::new(Implementation::new("srv", "1"));
    config.capabilities = every_server_capability();
    let (mut core, now, id) = (Server::new(Arc::new(config)), start(), Id::Number(5));
    let call =
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"n","_meta":$META}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#;
    let mut key = None;
    for text in [&fill(call), ping] {
        core.handle(Input::received(Incoming::parse(text.as_bytes())), now);
        while let Some(output) = core.poll() {
            match output {
                Output::Call(call) => key = Some(call.key),
                Output::Send(..) => assert!(core.owes(&id), "it answers the second message"),
                _ => {}
            }
        }
    }
    let call = key.expect("it is a call");
    core.handle(Input::Finished { call, outcome: Ok(Json::empty_object()) }, now);
    let answers = std::iter::from_fn(|| core.poll());
    assert_eq!(answers.filter(|it| matches!(it, Output::Send(..))).count(), 1);
    assert!(!core.owes(&id));
}
