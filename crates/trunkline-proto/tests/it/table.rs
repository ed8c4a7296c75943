//! Every method of the table, in every revision and both directions: served where the revision has it,
//! refused where it lacks it. The table drives this, so a new row cannot be forgotten.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trunkline_wire::json::Json;
use trunkline_wire::method::{self, Kind, Row, Sender, TABLE};
use trunkline_wire::model::{
    ClientTasks, SKILLS_EXTENSION, ServerCapabilities, SkillsSettings, meta,
};
use trunkline_wire::revision::{Era, Revision};

use crate::samples::sample;
use crate::transcript::{self, ClientScript, ServerScript, fill};

/// A server that offers everything, and every extension.
fn server() -> ServerScript {
    transcript::server().with(|config| declare_skills(&mut config.capabilities))
}

/// A client of such a server.
fn opened(client: ClientScript, revision: Revision) -> ClientScript {
    let mut capabilities = transcript::every_server_capability();
    declare_skills(&mut capabilities);
    client.opened_to(revision, capabilities)
}

fn client() -> ClientScript {
    transcript::client()
}

fn declare_skills(capabilities: &mut ServerCapabilities) {
    let settings = Json::of(&SkillsSettings::new(true));
    capabilities.extensions.insert(SKILLS_EXTENSION.to_owned(), settings);
}

/// Each name once, with its kind.
fn names(kind: Kind) -> BTreeSet<&'static str> {
    TABLE.iter().filter(|row| row.kind == kind).map(|row| row.name).collect()
}

fn each(kind: Kind, mut check: impl FnMut(&'static str, Revision)) {
    for revision in Revision::ALL {
        for name in names(kind) {
            check(name, revision);
        }
    }
}

/// Every request of this side that needs a capability of the other, in every revision that has it.
fn each_gated(sender: Sender, check: impl Fn(&'static str, Revision)) {
    each(Kind::Request, |name, revision| {
        if row(name, sender, revision).is_some_and(|row| row.gate != method::Gate::None) {
            check(name, revision);
        }
    });
}

fn row(name: &str, sender: Sender, revision: Revision) -> Option<&'static Row> {
    method::find(name, sender, revision)
}

/// The sample's parameters as a client of `revision` sends them.
fn params(name: &str, revision: Revision) -> Value {
    let mut params = sample(name, revision).params;
    if revision.era() == Era::Stateless && !name.starts_with("notifications/") {
        params["_meta"] = json!({
            meta::PROTOCOL_VERSION: revision.as_str(),
            meta::CLIENT_CAPABILITIES: { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        });
    }
    params
}

#[test]
fn a_server_serves_each_request_its_revision_has_and_refuses_the_others() {
    each(Kind::Request, |name, revision| {
        let sent =
            json!({ "jsonrpc": "2.0", "id": 7, "method": name, "params": params(name, revision) });
        let result = |result: Value| {
            let reply = json!({ "jsonrpc": "2.0", "id": 7, "result": result });
            format!("< {reply}")
        };
        let expected = match (row(name, Sender::Client, revision), name) {
            (None, _) => format!(
                r#"< {{"jsonrpc":"2.0","id":7,"error":{{"code":-32601,"message":"There is no method `{name}` here."}}}}"#
            ),
            (_, "initialize") => {
                return server().check(&format!("> {sent}\n{}", result(json!("*"))));
            }
            (_, "server/discover") => result(json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "supportedVersions": ["2026-07-28"], "capabilities": "*",
                "_meta": { meta::SERVER_INFO: { "name": "srv", "version": "1" } },
            })),
            (_, "ping" | "logging/setLevel") => result(json!({})),
            (_, "resources/subscribe" | "resources/unsubscribe") => {
                let told = json!({ "uri": params(name, revision)["uri"] });
                format!("{}\nheard {name} {told}", result(json!({})))
            }
            (_, "subscriptions/listen") => {
                let ack = json!({
                    "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": {
                        "notifications": { "toolsListChanged": true },
                        "_meta": { meta::SUBSCRIPTION_ID: 7 },
                    },
                });
                format!("< {ack}\nheard {name} {}", ack["params"])
            }
            (Some(_), _) => {
                let sample = sample(name, revision);
                let answer = sample.result(revision);
                format!(
                    "call 1 {name} {}\ndone 1 {answer}\n{}",
                    sample.params,
                    result(answer.clone())
                )
            }
        };
        server().opened(revision).check(&format!("> {sent}\n{expected}"));
    });
}

#[test]
fn a_server_that_does_not_offer_a_request_refuses_it_in_every_revision() {
    each_gated(Sender::Client, |name, revision| {
        let sent =
            json!({ "jsonrpc": "2.0", "id": 7, "method": name, "params": params(name, revision) });
        server().with(|config| config.capabilities = Default::default()).opened(revision).check(&format!(
            r#"
            > {sent}
            < {{"jsonrpc":"2.0","id":7,"error":{{"code":-32601,"message":"There is no method `{name}` here."}}}}
            "#
        ));
    });
}

#[test]
fn a_server_hears_each_notification_its_revision_has_and_answers_none() {
    each(Kind::Notification, |name, revision| {
        let params = params(name, revision);
        let sent = json!({ "jsonrpc": "2.0", "method": name, "params": params });
        let heard = match (row(name, Sender::Client, revision), name) {
            // Answered by the core itself.
            (
                _,
                "notifications/initialized" | "notifications/cancelled" | "notifications/progress",
            ) => String::new(),
            (Some(_), _) => format!("heard {name} {params}"),
            (None, _) => String::new(),
        };
        server().opened(revision).check(&format!("> {sent}\n{heard}"));
    });
}

#[test]
fn a_server_asks_only_what_the_revision_has() {
    each(Kind::Request, |name, revision| {
        let params = sample(name, revision).params;
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": self::params("tools/call", revision) });
        let outcome = match row(name, Sender::Server, revision) {
            Some(_) => {
                let mut sent = json!({ "jsonrpc": "2.0", "id": 1, "method": name });
                if params != json!({}) {
                    sent["params"] = params.clone();
                }
                let result = sample(name, revision).result(revision);
                let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
                format!("< {sent}\n> {answer}\nsettled 5 {result}")
            }
            None => format!("settled 5 refused -32601 This client cannot answer `{name}`."),
        };
        server()
            .opened_by(
                revision,
                r#"{"roots":{},"sampling":{},"elicitation":{},"tasks":{"list":{},"cancel":{}}}"#,
            )
            .check(&format!(
                "> {call}\ncall 1 tools/call\nask 5 during 1 {name} {params}\n{outcome}"
            ));
    });
}

#[test]
fn a_server_sends_only_notifications_the_revision_has() {
    each(Kind::Notification, |name, revision| {
        let params = sample(name, revision).params;
        let told = match (row(name, Sender::Server, revision), revision.era()) {
            // Without a session they go to the subscribers.
            (_, Era::Stateless) | (None, _) => String::new(),
            (Some(_), Era::Stateful) => {
                let sent = json!({ "jsonrpc": "2.0", "method": name, "params": params });
                format!("< {sent}")
            }
        };
        server().opened(revision).check(&format!("notify {name} {params}\n{told}"));
    });
}

#[test]
fn a_client_sends_each_request_its_revision_has_and_no_other() {
    each(Kind::Request, |name, revision| {
        let params = sample(name, revision).params;
        let script = match (row(name, Sender::Client, revision), name) {
            (Some(_), "initialize") => {
                format!("ask 5 {name} {params}\nsettled 5 refused -32600 The handshake is over.")
            }
            (None, _) => format!(
                "ask 5 {name} {params}\nsettled 5 refused -32600 Revision {revision} has no method `{name}`."
            ),
            (Some(_), _) => {
                let mut params_sent = params.clone();
                if revision.era() == Era::Stateless {
                    let members = fill("{$SELF}");
                    params_sent["_meta"] = serde_json::from_str(&members).expect("JSON");
                }
                let mut sent = json!({ "jsonrpc": "2.0", "id": 2, "method": name });
                if params_sent != json!({}) {
                    sent["params"] = params_sent;
                }
                let result = sample(name, revision).result(revision);
                let answer = json!({ "jsonrpc": "2.0", "id": 2, "result": result });
                format!("ask 5 {name} {params}\n< {sent}\n> {answer}\nsettled 5 {result}")
            }
        };
        opened(client(), revision).check(&script);
    });
}

#[test]
fn a_client_answers_each_request_its_revision_has_and_refuses_the_others() {
    each(Kind::Request, |name, revision| {
        let sample = sample(name, revision);
        let sent = json!({ "jsonrpc": "2.0", "id": "s", "method": name, "params": sample.params });
        let expected = match (row(name, Sender::Server, revision), revision.era()) {
            // A client of 2026-07-28 must not send responses, not even errors.
            (_, Era::Stateless) => String::new(),
            (None, _) => {
                r#"< {"jsonrpc":"2.0","id":"s","error":{"code":-32601,"message":"Method not found"}}"#.to_owned()
            }
            (Some(_), _) if name == "ping" => {
                r#"< {"jsonrpc":"2.0","id":"s","result":{}}"#.to_owned()
            }
            (Some(_), _) => {
                let result = sample.result(revision);
                let reply = json!({ "jsonrpc": "2.0", "id": "s", "result": result });
                format!("call 1 {name} {}\ndone 1 {result}\n< {reply}", sample.params)
            }
        };
        let able = client().with(|config| config.capabilities.tasks = Some(ClientTasks::ALL));
        able.opened(revision).check(&format!("> {sent}\n{expected}"));
    });
}

#[test]
fn a_client_that_did_not_offer_a_request_refuses_it() {
    each_gated(Sender::Server, |name, revision| {
        let sent = json!({ "jsonrpc": "2.0", "id": "s", "method": name, "params": sample(name, revision).params });
        client().with(|config| config.capabilities = Default::default()).opened(revision).check(
            &format!(
                r#"
            > {sent}
            < {{"jsonrpc":"2.0","id":"s","error":{{"code":-32601,"message":"Method not found"}}}}
            "#
            ),
        );
    });
}

#[test]
fn a_client_hears_each_notification_its_revision_has_and_answers_none() {
    each(Kind::Notification, |name, revision| {
        let params = sample(name, revision).params;
        let sent = json!({ "jsonrpc": "2.0", "method": name, "params": params });
        let heard = match (row(name, Sender::Server, revision), name) {
            // No call asked for that progress, and there is nothing to cancel.
            (_, "notifications/cancelled" | "notifications/progress") | (None, _) => String::new(),
            (Some(_), _) => format!("heard {name} {params}"),
        };
        client().opened(revision).check(&format!("> {sent}\n{heard}"));
    });
}

#[test]
fn a_client_sends_only_notifications_the_revision_has() {
    each(Kind::Notification, |name, revision| {
        let params = sample(name, revision).params;
        let told = match row(name, Sender::Client, revision) {
            None => String::new(),
            Some(_) => {
                let mut sent = json!({ "jsonrpc": "2.0", "method": name });
                if params != json!({}) {
                    sent["params"] = params.clone();
                }
                format!("< {sent}")
            }
        };
        client().opened(revision).check(&format!("notify {name} {params}\n{told}"));
    });
}
