//! Routes what servers send beside their answers: notifications, questions, logs, stderr.

use std::sync::Arc;

use trunkline_proto::PeerNotification;
use trunkline_transport::handler::Answer;
use trunkline_transport::witness::Witness;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::LogMessage;
use trunkline_wire::revision::Era;

use super::GatewayState;
use crate::accounts::Account;
use crate::catalog::plan::ServerPlan;
use crate::logs::Logged;
use crate::server::now;
use crate::tasks;
use crate::watcher::{Found, Watcher};

impl Watcher for GatewayState {
    fn changed(&self, server: &str, instance: u64, heard: PeerNotification) {
        let active = self.active_plan();
        let Some(server) = active.servers.get(server) else { return };
        match heard.method {
            Method::ToolsListChanged
            | Method::PromptsListChanged
            | Method::ResourcesListChanged => {
                self.list_changed_in(server, instance, heard.method);
                if server.list_changes().notified(instance, now()) {
                    self.handle_list_changes(server);
                }
            }
            Method::SubscriptionsAcknowledged => {}
            Method::ResourcesUpdated => {
                if let Some(uri) = heard.params.get("uri").and_then(|it| it.to::<String>().ok()) {
                    self.subscriptions.updated(self, &server.name, instance, &uri);
                }
            }
            _ => tasks::heard(&self.tasks, instance, &heard),
        }
    }

    fn question(&self, instance: u64, task: String, method: Method, params: Object) -> Answer {
        tasks::question(&self.tasks, instance, task, method, params)
    }

    fn unroutable_question(&self, server: &str) {
        if let Some(server) = self.active_plan().servers.get(server) {
            server.has_unroutable_questions();
        }
    }

    fn asks_for_roots(&self, server: &str) {
        if let Some(server) = self.active_plan().servers.get(server) {
            server.keeps_roots();
        }
    }

    fn logged(&self, server: &str, instance: u64, message: &LogMessage) {
        let line = Json::of(message);
        let line = self.active_plan().redactor.redact(line.get()).into_owned();
        self.logs.add(Logged::message(server, instance, line));
    }

    fn stderr_line(&self, server: &str, instance: u64, line: &str) {
        let active = self.active_plan();
        if let Some(server) = active.servers.get(server) {
            server.read_stderr(line);
        }
        let line = active.redactor.redact(line).into_owned();
        self.logs.add(Logged::stderr(server, instance, line));
    }

    fn known_era(&self, server: &str) -> Option<Era> {
        self.active_plan().servers.get(server)?.era()
    }

    fn login(&self, url: &str) -> Option<Found> {
        Some(self.settings.logins.as_ref()?(url))
    }

    fn witness(&self, server: &Arc<str>, instance: u64) -> Option<Arc<dyn Witness>> {
        self.traffic.is_recording().then(|| self.link_of(server, instance))
    }

    fn uses_token(&self, value: &str) {
        self.traffic.learn_secret(value);
    }

    fn account(&self, plan: &ServerPlan, owner: Option<&str>) -> Option<Arc<Account>> {
        match owner {
            Some(owner) => self.accounts.credentials(plan, owner),
            None => self.accounts.lister(plan),
        }
    }
}
