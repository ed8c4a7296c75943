//! Revision 2026-07-28: the `_meta` of every request identifies the client; the server keeps no state.

use std::sync::Arc;
use std::time::Instant;

use trunkline_wire::era::stateless::{self, Extras};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Message, MethodName, Object, Params};
use trunkline_wire::method::{Gate, Kind, Method, Sender};
use trunkline_wire::model::{DiscoverResult, SubscriptionFilter};
use trunkline_wire::revision::{Era, Revision};

use super::StatelessRequest;
use super::shared::{Asking, Facts, Owed, Shared};
use crate::Peer;
use crate::pending::OpenCall;
use crate::subscribe;

impl Shared {
    pub(super) fn on_stateless_request(
        &mut self,
        from: Asking,
        method: &MethodName,
        mut params: Object,
        request: StatelessRequest,
        now: Instant,
    ) {
        let meta = params.take("_meta");
        let StatelessRequest { revision, envelope, token } = request;
        let row = method
            .row(Sender::Client, revision)
            .filter(|row| row.kind == Kind::Request)
            .filter(|row| self.config.capabilities.supports(row.gate));
        let Some(row) = row else {
            return self.reply(from, Err(ErrorObject::method_not_found(method)));
        };
        if row.gate == Gate::TasksExtension && !envelope.peer.client.supports(row.gate) {
            return self.reply(from, Err(crate::task::missing_extension()));
        }
        match row.method {
            Method::ServerDiscover => {
                let result = self.discover();
                self.reply(from, Ok(result));
            }
            Method::SubscriptionsListen => self.listen(from, revision, &params, &envelope.peer),
            _ => {
                let facts = Facts {
                    row,
                    params,
                    meta,
                    revision,
                    peer: Arc::clone(&envelope.peer),
                    token,
                    log_level: envelope.log_level,
                    dialect: None,
                };
                self.call(from, facts, now);
            }
        }
    }

    fn discover(&self) -> Json {
        let supported = self.config.revisions.of_era(Era::Stateless);
        let mut result = DiscoverResult::new(
            supported.iter().map(|it| it.as_str().to_owned()).collect(),
            self.config.capabilities.clone(),
        );
        result.instructions = self.instructions();
        let info = Json::of(&self.config.info);
        let extras = Extras { cache: Some(self.config.cache), server_info: Some(&info) };
        stateless::encode_result(result, &extras)
    }

    fn listen(&mut self, from: Asking, revision: Revision, params: &Object, peer: &Arc<Peer>) {
        if params.not_an_object(&["notifications"]).is_some() {
            let error = ErrorObject::invalid_params("`notifications` must be an object.");
            return self.reply(from, Err(error));
        }
        let filter = params.get("notifications").map_or(Ok(SubscriptionFilter::default()), |it| {
            it.to().map_err(|err| {
                ErrorObject::invalid_params(format!("`notifications` cannot be read: {err}."))
            })
        });
        let filter = match filter {
            Ok(filter) => filter,
            Err(error) => return self.reply(from, Err(error)),
        };
        if filter.resource_subscriptions.iter().any(|it| it.len() > subscribe::MAX_URI) {
            let error = ErrorObject::invalid_params("A URI may have at most 64 KiB.");
            return self.reply(from, Err(error));
        }
        if self.listens.size() + subscribe::size(&filter) > self.config.bounds.subscriptions {
            let error = ErrorObject::internal("overloaded", "Too many subscriptions are open.");
            return self.reply(from, Err(error));
        }
        let mut honoured = subscribe::honoured(filter, &self.config.capabilities);
        if !peer.client.supports(Gate::TasksExtension) {
            honoured.task_ids.clear();
        }
        let key = self.calls.next_key();
        // A subscription has no deadline: either side ends it.
        self.calls.add(OpenCall {
            key,
            id: from.id.clone(),
            revision,
            clock: None,
            progress: None,
            log_level: None,
            with: Owed { via: from.from.via, ..Owed::default() },
        });
        let params = subscribe::acknowledgement(&from.id, &honoured);
        let method = Method::SubscriptionsAcknowledged;
        let acknowledged = Message::notification(method, Params::Object(params.clone()));
        self.send(acknowledged, Some(from.from.via));
        self.listens.add(from.id, honoured);
        self.tell_subscribed(Method::SubscriptionsListen, params, peer);
    }
}
