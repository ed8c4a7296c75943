//! Servers for tests: a name and what they list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trunkline_wire::json::Json;
use trunkline_wire::model::{
    Implementation, ListChanged, ResourcesCapability, ServerCapabilities, Tool,
};
use trunkline_wire::revision::{Revision, Revisions};

use super::{Draft, Kind, Lists};
use crate::catalog::plan::{
    Activation, Affinity, Pinning, Probe, Questions, Reach, Retry, ServerPlan, Sharing, Strategy,
    Timeouts,
};

pub(crate) type Given = (Arc<ServerPlan>, Arc<Lists>);

/// A server that lists these, one page each.
pub(crate) fn server(name: &str, revision: Revision, pages: &[(Kind, &str)]) -> Given {
    (Arc::new(plan(name)), Arc::new(lists(revision, pages)))
}

/// A server with tools of these names.
pub(crate) fn tools(name: &str, tools: &[&str]) -> Given {
    let tools: Vec<Tool> = tools.iter().map(|name| Tool::new(*name, object())).collect();
    let page = format!(r#"{{"tools":{}}}"#, Json::of(&tools));
    server(name, Revision::V2025_06_18, &[(Kind::Tools, &page)])
}

pub(crate) fn object() -> Json {
    Json::parse(r#"{"type":"object"}"#).unwrap()
}

pub(crate) fn lists(revision: Revision, pages: &[(Kind, &str)]) -> Lists {
    let mut draft = draft(revision);
    for (kind, page) in pages {
        draft.add(*kind, &Json::parse(*page).unwrap()).unwrap();
    }
    draft.finish()
}

pub(crate) fn draft(revision: Revision) -> Draft {
    let capabilities = ServerCapabilities::new()
        .tools(ListChanged::new(true))
        .prompts(ListChanged::new(true))
        .resources(ResourcesCapability::new());
    Draft::new(revision, Implementation::new("fixture", "1"), capabilities, None)
}

pub(crate) fn plan(name: &str) -> ServerPlan {
    let second = Duration::from_secs(1);
    ServerPlan {
        name: name.to_owned(),
        reach: Reach::Stdio {
            command: "true".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            inherit: Vec::new(),
            cwd: None,
        },
        tags: Vec::new(),
        strategy: Strategy::Stateless,
        idle: second,
        max_concurrent: 1,
        max_instances: 1,
        max_total: None,
        max_each: 1,
        sharing: Sharing::Auto,
        questions: Questions::default(),
        min_ready: 0,
        session_ttl: None,
        affinity: Affinity::Session,
        activation: Activation::OnDemand,
        drain: second,
        timeouts: Timeouts { start: second, acquire: second, call: second, hard: second },
        probe: Probe { every: second, timeout: second },
        retry: Retry { base: second, max: second, tries: 1 },
        revisions: Revisions::ALL,
        expose: None,
        rename: BTreeMap::new(),
        idempotent: Vec::new(),
        pin: Pinning::FirstUse,
    }
}
