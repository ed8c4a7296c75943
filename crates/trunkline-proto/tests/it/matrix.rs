//! A client and a server connected in memory: the revision that each pair negotiates.

use std::sync::Arc;
use std::time::Instant;

use trunkline_proto::client::{self, Client, OpenError};
use trunkline_proto::server::{self, Server};
use trunkline_proto::{Ask, Attached, Call, Conversation, Input, Output, Ticket};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Incoming, Object};
use trunkline_wire::model::Implementation;
use trunkline_wire::revision::{Era, Revision, Revisions};

use crate::audit::Audit;
use crate::transcript::{every_server_capability, start, why_failed};
use trunkline_testkit::oracle::Side;

/// Two cores, each fed with the other's output; every text is validated.
struct Pair {
    client: Client,
    server: Server,
    of_client: Audit,
    of_server: Audit,
    now: Instant,
    failed: Option<OpenError>,
    called: Vec<Call>,
    settled: Vec<Json>,
}

impl Pair {
    fn new(ours: Revisions, theirs: Revisions) -> Self {
        let now = start();
        let mut config = client::Config::new(Implementation::new("cli", "1"));
        config.revisions = ours;
        let client = Client::new(Arc::new(config), now);
        let mut config = server::Config::new(Implementation::new("srv", "1"));
        config.revisions = theirs;
        config.capabilities = every_server_capability();
        let server = Server::new(Arc::new(config));
        Self {
            client,
            server,
            of_client: Audit::new(Side::Client, ours),
            of_server: Audit::new(Side::Server, theirs),
            now,
            failed: None,
            called: Vec::new(),
            settled: Vec::new(),
        }
    }

    /// Until neither has more output.
    fn settle(&mut self) {
        loop {
            let (from_client, from_server) = (self.client.poll(), self.server.poll());
            if from_client.is_none() && from_server.is_none() {
                return;
            }
            match from_client {
                Some(Output::Send(sent, _)) => {
                    let text = text(&sent);
                    let in_force = self.client.opened().map(|it| it.revision);
                    self.of_client.sent(&text, in_force, None);
                    self.of_server.received(&text);
                    self.server.handle(Input::received(Incoming::parse(text.as_bytes())), self.now);
                }
                Some(Output::Failed(error)) => self.failed = Some(error),
                Some(Output::Settled { outcome, .. }) => {
                    self.settled.push(outcome.expect("the call succeeds"));
                }
                Some(Output::Opened(_)) | None => {}
                Some(other) => panic!("The client has no business with {other:?}"),
            }
            match from_server {
                Some(Output::Send(sent, _)) => {
                    let text = text(&sent);
                    self.of_server.sent(&text, self.server.session_revision(), None);
                    self.of_client.received(&text);
                    self.client.handle(Input::received(Incoming::parse(text.as_bytes())), self.now);
                }
                Some(Output::Call(call)) => self.called.push(call),
                Some(Output::Heard(heard)) if heard.method == "notifications/initialized" => {}
                None => {}
                Some(other) => panic!("The server has no business with {other:?}"),
            }
        }
    }

    /// The client calls a tool, and the server answers.
    fn call_a_tool(&mut self) -> Revision {
        let mut params = Object::default();
        params.set("name", Json::string("echo"));
        let ask = Ask {
            ticket: Ticket(1),
            during: None,
            method: "tools/call".into(),
            params,
            wants_progress: false,
            timing: None,
            attached: Attached::default(),
            relays: false,
        };
        self.client.handle(Input::Ask(ask), self.now);
        self.settle();
        let call = self.called.pop().expect("the server is called");
        let result = match call.revision.era() {
            Era::Stateful => r#"{"content":[]}"#,
            Era::Stateless => r#"{"resultType":"complete","content":[]}"#,
        };
        let outcome = Ok(Json::parse(result).expect("JSON"));
        self.server.handle(Input::Finished { call: call.key, outcome }, self.now);
        self.settle();
        assert_eq!(self.settled.pop().expect("the call is over").get(), result);
        call.revision
    }
}

fn text(sent: &trunkline_proto::Outgoing) -> String {
    let mut text = Vec::new();
    sent.write(&mut text);
    String::from_utf8(text).expect("UTF-8")
}

/// The result of a pair: the revision, proven by a call, or the client's typed refusal.
fn negotiate(ours: Revisions, theirs: Revisions) -> Result<Revision, OpenError> {
    let mut pair = Pair::new(ours, theirs);
    pair.settle();
    if let Some(error) = pair.failed.take() {
        return Err(error);
    }
    let revision = pair.client.opened().expect("it opened or failed").revision;
    assert_eq!(pair.call_a_tool(), revision, "both sides speak the same revision");
    Ok(revision)
}

/// The expected result.
fn expected(ours: Revisions, theirs: Revisions) -> String {
    if let Some(common) = ours.common(theirs).newest() {
        return common.to_string();
    }
    let newest_old = theirs.of_era(Era::Stateful).newest();
    match (ours.of_era(Era::Stateful).newest(), newest_old) {
        // An old client and an old server: the server answers with what it speaks.
        (Some(_), Some(theirs)) => format!("no common revision: it speaks {theirs}"),
        // An old client and a new server, which names its revisions.
        (Some(_), None) => "no common revision: it speaks 2026-07-28".to_owned(),
        // A new client and an old server, which does not know the probe.
        (None, _) => "no common revision".to_owned(),
    }
}

#[test]
#[allow(clippy::print_stdout)] // The table is what this test is for: run it with `--nocapture`.
fn every_pair_of_revisions_agrees_or_refuses_by_name() {
    let each = || Revision::ALL.into_iter().map(|it| (it.to_string(), Revisions::only(it)));
    let clients: Vec<_> = each().chain([("all".to_owned(), Revisions::ALL)]).collect();
    let servers: Vec<_> = each().chain([("all".to_owned(), Revisions::ALL)]).collect();
    let cell = |outcome: &Result<Revision, OpenError>| match outcome {
        Ok(revision) => revision.to_string(),
        Err(OpenError::NoCommonRevision { .. }) => "NoCommonRev".to_owned(),
        Err(OpenError::Refused(error)) => format!("Refused {}", error.code),
        Err(other) => format!("{other:?}"),
    };
    let mut table = format!("\n{:>18}", "server \\ client");
    for (name, _) in &clients {
        table += &format!(" | {name:^15}");
    }
    for (name, theirs) in &servers {
        table += &format!("\n{name:>18}");
        for (_, ours) in &clients {
            let outcome = negotiate(*ours, *theirs);
            table += &format!(" | {:^15}", cell(&outcome));
            let words = outcome.map_or_else(|error| why_failed(&error), |it| it.to_string());
            assert_eq!(words, expected(*ours, *theirs), "client {ours:?}, server {theirs:?}");
        }
    }
    println!("{table}\n");
}
