//! Who hears of which change: sessions that subscribed, and listeners of 2026-07-28.

use trunkline_wire::revision::Revision::*;

use crate::transcript::server;

const ALL_LISTS: &str =
    r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#;

fn listen(id: &str, filter: &str) -> String {
    format!(
        r#"> {{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"_meta":$META,"notifications":{filter}}}}}"#
    )
}

fn with_tasks(listen: &str) -> String {
    let declared = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    listen.replace("$META", declared)
}

/// The client gets the acknowledgement first, then the handler is told.
fn acknowledged(id: &str, filter: &str) -> String {
    format!(
        r#"
        < {{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{filter},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}
        heard subscriptions/listen {{"notifications":{filter},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}
        "#
    )
}

fn tagged(id: &str, what: &str) -> String {
    format!(
        r#"< {{"jsonrpc":"2.0","method":"notifications/{what}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

fn updated(id: &str, uri: &str) -> String {
    format!(
        r#"< {{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

#[test]
fn a_session_hears_of_changed_lists_and_of_what_it_subscribed_to() {
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        server().opened(revision).check(
            r#"
            changed tools
            < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
            changed prompts
            < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
            changed resources
            < {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}
            changed file:///a
            > {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}
            < {"jsonrpc":"2.0","id":1,"result":{}}
            heard resources/subscribe {"uri":"file:///a"}
            changed file:///a
            < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}
            # A part of it is part of it; a longer name is another thing.
            changed file:///a/b
            < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a/b"}}
            changed file:///ab
            changed file:///
            # Subscribing twice changes nothing, and unsubscribing once ends it.
            > {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"file:///a"}}
            < {"jsonrpc":"2.0","id":2,"result":{}}
            heard resources/subscribe {"uri":"file:///a"}
            changed file:///a
            < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}
            > {"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}
            < {"jsonrpc":"2.0","id":3,"result":{}}
            heard resources/unsubscribe {"uri":"file:///a"}
            changed file:///a
            > {"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"file:///never"}}
            < {"jsonrpc":"2.0","id":4,"result":{}}
            heard resources/unsubscribe {"uri":"file:///never"}
            "#,
        );
    }
}

#[test]
fn a_session_cannot_subscribe_to_nothing_or_without_end() {
    server().with(|config| config.bounds.subscriptions = 1).opened(V2025_06_18).check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":1}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`uri` must be a string of at most 64 KiB."}}
        > {"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe"}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"`uri` must be a string of at most 64 KiB."}}
        > {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:1"}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        heard resources/subscribe {"uri":"a:1"}
        > {"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:2"}}
        < {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"Too many subscriptions are open.","data":{"reason":"overloaded"}}}
        > {"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"a:1"}}
        < {"jsonrpc":"2.0","id":5,"result":{}}
        heard resources/subscribe {"uri":"a:1"}
        "#,
    );
}

#[test]
fn undeclared_changes_are_not_sent() {
    let script = r#"
        changed tools
        changed prompts
        changed resources
        changed file:///a
        "#;
    let quiet = || {
        server().with(|config| {
            let capabilities = &mut config.capabilities;
            capabilities.tools = Some(Default::default());
            capabilities.prompts = Some(Default::default());
            capabilities.resources = Some(Default::default());
        })
    };
    quiet().opened(V2025_06_18).check(script);
    let listening = format!(
        r#"
        {}
        {}
        {script}
        "#,
        listen(
            "1",
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///a"]}"#
        ),
        acknowledged("1", "{}"),
    );
    quiet().check(&listening);
}

#[test]
fn only_2025_11_25_hears_of_its_own_core_tasks_and_finished_elicitations() {
    let task = r#"{"taskId":"t","status":"working","createdAt":"2025-11-25T00:00:00Z","lastUpdatedAt":"2025-11-25T00:00:00Z","ttlMs":1000,"pollIntervalMs":5}"#;
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18] {
        server().opened(revision).check(&format!("changed task {task}\nchanged elicitation e"));
    }
    let created = r#"{"task":{"taskId":"t","status":"working","createdAt":"2025-11-25T00:00:00Z","lastUpdatedAt":"2025-11-25T00:00:00Z","ttl":1000,"pollInterval":5}}"#;
    server().opened(V2025_11_25).check(&format!(
        r#"
        changed task {task}
        > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"work","task":{{}}}}}}
        call 1 tools/call {{"name":"work","task":{{}}}}
        done 1 {created}
        < {{"jsonrpc":"2.0","id":1,"result":{created}}}
        changed task {task}
        < {{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{"taskId":"t","status":"working","createdAt":"2025-11-25T00:00:00Z","lastUpdatedAt":"2025-11-25T00:00:00Z","ttl":1000,"pollInterval":5}}}}
        changed elicitation e
        < {{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{{"elicitationId":"e"}}}}
        "#
    ));
}

#[test]
fn a_listener_is_acknowledged_first_and_hears_only_what_it_asked_for() {
    let filter = r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}"#;
    server().check(
        &[
            "changed tools",
            &listen("\"s\"", filter),
            &acknowledged("\"s\"", filter),
            "changed tools",
            &tagged("\"s\"", "tools/list_changed"),
            "changed prompts",
            "changed resources",
            "changed file:///a",
            &updated("\"s\"", "file:///a"),
            "changed file:///a/b",
            &updated("\"s\"", "file:///a/b"),
            "changed file:///b",
        ]
        .join("\n"),
    );
}

#[test]
fn every_listener_hears_for_itself_under_its_own_id() {
    server().check(
        &[
            &*listen("1", ALL_LISTS),
            &acknowledged("1", ALL_LISTS),
            &listen("\"1\"", r#"{"toolsListChanged":true,"promptsListChanged":false}"#),
            &acknowledged("\"1\"", r#"{"toolsListChanged":true}"#),
            "changed tools",
            &tagged("1", "tools/list_changed"),
            &tagged("\"1\"", "tools/list_changed"),
            "changed prompts",
            &tagged("1", "prompts/list_changed"),
            "changed resources",
            &tagged("1", "resources/list_changed"),
        ]
        .join("\n"),
    );
}

#[test]
fn a_cancelled_listener_hears_nothing_more_and_its_id_is_free() {
    server().check(
        &[
            &*listen("1", ALL_LISTS),
            &acknowledged("1", ALL_LISTS),
            &listen("1", ALL_LISTS),
            r#"< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"The id 1 belongs to a request that is still open."}}"#,
            r#"> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            r#"heard notifications/cancelled {"requestId":1}"#,
            "changed tools",
            &listen("1", r#"{"promptsListChanged":true}"#),
            &acknowledged("1", r#"{"promptsListChanged":true}"#),
            "changed tools",
            "changed prompts",
            &tagged("1", "prompts/list_changed"),
        ]
        .join("\n"),
    );
}

#[test]
fn subscriptions_take_no_place_from_calls() {
    let mut script = Vec::new();
    for id in 0..64 {
        script.push(listen(&id.to_string(), ALL_LISTS));
        script.push(acknowledged(&id.to_string(), ALL_LISTS));
    }
    script.push(
        r#"
        > {"jsonrpc":"2.0","id":"c","method":"tools/list","params":{"_meta":{$SELF}}}
        call 65 tools/list
        "#
        .to_owned(),
    );
    server().check(&script.join("\n"));
}

#[test]
fn a_subscription_has_no_deadline() {
    server().check(
        &[
            &*listen("1", ALL_LISTS),
            &acknowledged("1", ALL_LISTS),
            "wait 100000s",
            "changed tools",
            &tagged("1", "tools/list_changed"),
        ]
        .join("\n"),
    );
}

#[test]
fn a_server_that_closes_takes_leave_of_every_listener_cancellation_first() {
    let farewell = |id: &str| {
        format!(
            r#"
            < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"The server ends this subscription."}}}}
            < {{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}
            "#
        )
    };
    server().check(
        &[
            &*listen("1", "{}"),
            &acknowledged("1", "{}"),
            &listen("\"b\"", ALL_LISTS),
            &acknowledged("\"b\"", ALL_LISTS),
            "close",
            &farewell("1"),
            &farewell("\"b\""),
            "changed tools",
            "close",
        ]
        .join("\n"),
    );
}

#[test]
fn a_filter_that_cannot_be_read_or_is_too_long_is_refused() {
    server().with(|config| config.bounds.subscriptions = 4).check(
        &[
            &*listen("1", "7"),
            r#"< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"*"}}"#,
            &listen("2", r#"{"resourceSubscriptions":"file:///a"}"#),
            r#"< {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"*"}}"#,
            &listen("3", r#"{"resourceSubscriptions":["a:1","a:2","a:3","a:4"]}"#),
            r#"< {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Too many subscriptions are open.","data":{"reason":"overloaded"}}}"#,
            &listen("4", r#"{"resourceSubscriptions":["a:1","a:2"]}"#),
            &acknowledged("4", r#"{"resourceSubscriptions":["a:1","a:2"]}"#),
            &listen("5", "{}"),
            &acknowledged("5", "{}"),
            &listen("6", "{}"),
            r#"< {"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"Too many subscriptions are open.","data":{"reason":"overloaded"}}}"#,
        ]
        .join("\n"),
    );
}

#[test]
fn a_task_is_reported_to_its_subscribers() {
    let task = r#""taskId":"t","status":"working","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":1000"#;
    server().check(
        &[
            &*with_tasks(&listen("1", r#"{"taskIds":["t"]}"#)),
            &acknowledged("1", r#"{"taskIds":["t"]}"#),
            &with_tasks(&listen("2", r#"{"taskIds":["u"]}"#)),
            &acknowledged("2", r#"{"taskIds":["u"]}"#),
            // A client that does not declare the extension hears nothing of it.
            &listen("3", r#"{"taskIds":["t"]}"#),
            &acknowledged("3", "{}"),
            &format!("changed task {{{task}}}"),
            &format!(
                r#"< {{"jsonrpc":"2.0","method":"notifications/tasks","params":{{{task},"_meta":{{"io.modelcontextprotocol/subscriptionId":1}}}}}}"#
            ),
        ]
        .join("\n"),
    );
}

#[test]
fn a_session_and_listeners_on_one_connection_each_hear_in_their_own_way() {
    server().opened(V2025_11_25).check(
        &[
            &*listen("1", ALL_LISTS),
            &acknowledged("1", ALL_LISTS),
            "changed tools",
            r#"< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            &tagged("1", "tools/list_changed"),
        ]
        .join("\n"),
    );
}
