//! Revision 2026-07-28: every request says in `_meta` who speaks and how; nothing is remembered.

use std::sync::Arc;
use std::time::Instant;

use trunkline_wire::era::stateless::{self, Envelope, Extras};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method::{self, Gate, Kind, Sender};
use trunkline_wire::model::{DiscoverResult, LogLevel, SubscriptionFilter, meta};
use trunkline_wire::revision::{Era, Revision};

use super::shared::{Asking, Facts, Owed, Shared};
use crate::Peer;
use crate::pending::OpenCall;
use crate::subscribe;

/// The last envelope and who it described. Clients repeat theirs verbatim, so reading it once is
/// mostly enough, and a text is compared faster than read.
#[derive(Clone, Debug, Default)]
pub struct Memo(Option<(Json, Arc<Known>)>);

/// What one envelope said.
#[derive(Debug)]
pub struct Known {
    pub(crate) revision: String,
    peer: Arc<Peer>,
    log_level: Option<LogLevel>,
    token: Option<Json>,
}

impl Memo {
    /// Reads an envelope, or remembers having read the very same one last time.
    pub(crate) fn know(&mut self, meta: Option<&Json>) -> Result<Arc<Known>, ErrorObject> {
        if let (Some(meta), Some((text, known))) = (meta, &self.0)
            && text == meta
        {
            return Ok(Arc::clone(known));
        }
        let envelope = Envelope::read(meta)?;
        let peer =
            Peer { info: envelope.client_info, client: envelope.capabilities, ..Peer::default() };
        let known = Arc::new(Known {
            revision: envelope.protocol_version,
            peer: Arc::new(peer),
            log_level: envelope.log_level,
            token: envelope.progress_token.map(|it| it.to_json()),
        });
        if let Some(meta) = meta {
            self.0 = Some((meta.clone(), Arc::clone(&known)));
        }
        Ok(known)
    }

    /// Whether a `_meta` has what only the envelope of the new era has, which makes its request a
    /// stateless one: in order or not, it is never taken for a request of a session.
    pub(crate) fn is_claim(&self, meta: &Json) -> bool {
        let names = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES];
        // The quick look spares nearly every request of the other era the closer one.
        self.0.as_ref().is_some_and(|(text, _)| text == meta)
            || names.iter().any(|name| meta.get().contains(name))
                && Object::parse(meta.get())
                    .map_or(true, |it| names.iter().any(|name| it.get(name).is_some()))
    }
}

impl Shared {
    pub(super) fn on_stateless_request(
        &mut self,
        from: Asking,
        method: &str,
        mut params: Object,
        now: Instant,
    ) {
        let meta = params.take("_meta");
        let known = match self.memo.know(meta.as_ref()) {
            Ok(known) => known,
            Err(error) => return self.reply(from, Err(error)),
        };
        let revision = Revision::parse(&known.revision)
            .filter(|it| it.era() == Era::Stateless && self.config.revisions.contains(*it));
        let Some(revision) = revision else {
            let error = super::unsupported_revision(&self.config, Some(known.revision.clone()));
            return self.reply(from, Err(error));
        };
        let row = method::find(method, Sender::Client, revision)
            .filter(|row| row.kind == Kind::Request)
            .filter(|row| self.config.capabilities.supports(row.gate));
        let Some(row) = row else {
            return self.reply(from, Err(ErrorObject::method_not_found(method)));
        };
        if row.gate == Gate::TasksExtension && !known.peer.client.supports(row.gate) {
            return self.reply(from, Err(crate::task::missing_extension()));
        }
        match row.name {
            "server/discover" => {
                let result = self.discover();
                self.reply(from, Ok(result));
            }
            "subscriptions/listen" => self.listen(from, revision, &params, &known.peer),
            _ => {
                let facts = Facts {
                    row,
                    params,
                    meta,
                    revision,
                    peer: Arc::clone(&known.peer),
                    token: known.token.clone(),
                    log_level: known.log_level,
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
        result.instructions = self.config.instructions.clone();
        let info = Json::of(&self.config.info);
        let extras = Extras { cache: Some(self.config.cache), server_info: Some(&info) };
        stateless::encode_result(result, &extras)
    }

    fn listen(&mut self, from: Asking, revision: Revision, params: &Object, peer: &Peer) {
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
        // A subscription has no deadline: it ends when one side says so.
        self.calls.add(OpenCall {
            key,
            id: from.id.clone(),
            revision,
            clock: None,
            progress: None,
            log_level: None,
            with: Owed { via: from.from.via, ..Owed::default() },
        });
        self.send(subscribe::acknowledged(&from.id, &honoured), Some(from.from.via));
        self.listens.add(from.id, honoured);
    }
}
