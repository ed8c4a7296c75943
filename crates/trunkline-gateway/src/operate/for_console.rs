//! What the console needs of a running gateway beside what commands need.

use std::sync::PoisonError;

use http::StatusCode;
use serde_json::{Value, json};
use trunkline_wire::model::Tool;

use super::kept_recordings::KeptRecordings;
use super::{Operation, costs, unapproved};
use crate::admin::{Approving, Complaint};
use crate::merge::Kind;
use crate::policy::pins::{Approval, Held};
use crate::policy::plain;
use crate::search;
use crate::selector::Selector;
use crate::trying::Refused;

impl Operation {
    /// Does something with the recordings that are kept, off the async threads, so that calls are not delayed.
    pub(super) async fn kept<T: Send + 'static>(
        &self,
        with: impl FnOnce(&KeptRecordings) -> Result<T, Complaint> + Send + 'static,
    ) -> Result<T, Complaint> {
        let recordings = self.recordings.read().unwrap_or_else(PoisonError::into_inner).clone();
        let none = "This gateway has no folder for recordings.";
        let none = || Complaint::new(StatusCode::NOT_FOUND, none);
        let recordings = recordings.ok_or_else(none)?;
        let failed = "It failed; `trunkline logs` may say why.";
        let failed = |_| Complaint::new(StatusCode::INTERNAL_SERVER_ERROR, failed);
        tokio::task::spawn_blocking(move || with(&recordings)).await.map_err(failed)?
    }

    /// What is held back of a server under this name and digest.
    pub(super) fn held_one(&self, which: &Approving) -> Result<Held, Complaint> {
        let server = self.server(&which.server)?;
        let pins = self.gateway.0.pins_of(&server.plan());
        let all = pins.map(|it| it.held(&server.name)).unwrap_or_default();
        let is_it = |it: &Held| {
            it.name == which.name
                && it.seen == which.digest
                && which.kind.is_none_or(|kind| kind == it.kind)
        };
        all.into_iter().find(is_it).ok_or_else(|| {
            let message = format!(
                "Nothing of `{}` is held back with this name and digest.",
                plain(&which.server, 64)
            );
            Complaint::new(StatusCode::CONFLICT, message)
                .advice("Look at what is held back now, and decide about that.")
        })
    }

    /// What the tools of all servers cost a model.
    pub(super) fn all_costs(&self) -> Value {
        let shared = &self.gateway.0;
        let active = shared.active_plan();
        let index = shared.view(Selector::All).index(shared);
        let tools = index.iter(Kind::Tools).filter_map(|(name, target)| {
            let tool: &Tool = target.tool()?;
            Some((&*target.server, &**name, tool))
        });
        let servers = index.servers().map(|it| &**it);
        let limit = active.plan.gateway.automatic.as_ref().map_or(8, |it| it.limit);
        let automatic = [search::find_tools(servers, limit), search::call_tool()];
        let mut told = costs::costs(tools, &automatic);
        told["automatic"]["on"] = json!(active.plan.gateway.automatic.is_some());
        told
    }

    /// What is held back, of all servers.
    pub(super) fn all_held(&self) -> Value {
        let shared = &self.gateway.0;
        let mut all = Vec::new();
        for server in shared.active_plan().servers.values() {
            let Some(pins) = shared.pins_of(&server.plan()) else { continue };
            for held in pins.held(&server.name) {
                let shown =
                    |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
                all.push(json!({
                    "server": &*server.name,
                    "kind": held.kind,
                    "name": held.name,
                    "why": held.why,
                    "digest": held.seen,
                    "was": pins.before(&server.name, &held).as_deref().map(shown),
                    "is": held.definition.as_deref().map(shown),
                    "refused": held.refused,
                }));
            }
        }
        json!(all)
    }

    /// Remembers that an operator does not approve a definition.
    pub(super) async fn note_refused(&self, which: &Approving) -> Result<Value, Complaint> {
        let Held { kind, name, seen: digest, .. } = self.held_one(which)?;
        let shared = &self.gateway.0;
        let named = [Approval { kind, name, digest }];
        let refused = match &shared.pins {
            Some(pins) => pins.refuse(&which.server, &named).await.map_err(unapproved)?,
            None => Vec::new(),
        };
        if let Some(audit) = &shared.active_plan().audit {
            let names: Vec<_> = refused.iter().map(|it| plain(&it.name, 256)).collect();
            let about = json!({ "server": which.server, "tools": names });
            audit.note_event("definition_refused", about);
        }
        Ok(json!({ "server": which.server, "refused": refused.first() }))
    }
}

/// Whether a login can be tried at this URL.
pub(super) fn is_server(url: &str) -> Result<(), Complaint> {
    let is_http = url.starts_with("https://") || url.starts_with("http://");
    if !is_http || url.parse::<http::Uri>().is_err() {
        let message = "This is no URL of a server.";
        return Err(Complaint::new(StatusCode::BAD_REQUEST, message)
            .advice("Send one that begins with `https://` or `http://`."));
    }
    Ok(())
}

/// Why a call cannot be tried, for the operator.
pub(super) fn untried(why: Refused) -> Complaint {
    match why {
        Refused::Revision(text) => {
            let message = format!("`{}` is no revision of MCP.", plain(&text, 32));
            Complaint::new(StatusCode::BAD_REQUEST, message)
        }
        Refused::TooMany => {
            let message = "Too many calls are tried at once.";
            Complaint::new(StatusCode::SERVICE_UNAVAILABLE, message).advice("Cancel one of them.")
        }
        Refused::Unknown => {
            Complaint::new(StatusCode::NOT_FOUND, "There is no such call, or it has ended.")
        }
    }
}
