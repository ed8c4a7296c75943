//! The endpoints of the internal listener at which other replicas use the instances that live here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline_transport::http::{Endpoint, Settings};

use crate::gateway::Gateway;
use crate::instance_handler::InstanceHandler;
use crate::placement::PATH;
use crate::selector::Selector;

/// One endpoint a server, built when another replica first asks.
pub(super) struct Instances {
    gateway: Gateway,
    endpoints: Mutex<HashMap<String, Arc<Endpoint<InstanceHandler>>>>,
}

impl Instances {
    pub(super) fn new(gateway: &Gateway) -> Self {
        Self { gateway: gateway.clone(), endpoints: Mutex::default() }
    }

    /// The endpoint at a path, if it is one of instances and the server exists.
    pub(super) fn at(&self, path: &str) -> Option<Arc<Endpoint<InstanceHandler>>> {
        let server = path.strip_prefix(PATH)?;
        let active = self.gateway.0.active_plan();
        let mut endpoints = self.lock();
        endpoints.retain(|name, it| active.servers.contains_key(name) || !it.is_idle());
        active.servers.get(server)?;
        let endpoint = endpoints.entry(server.to_owned()).or_insert_with(|| self.build(server));
        Some(Arc::clone(endpoint))
    }

    pub(super) fn is_busy(&self) -> bool {
        self.lock().values().any(|it| it.is_busy())
    }

    pub(super) fn hang_up(&self) {
        self.lock().values().for_each(|it| it.hang_up());
    }

    pub(super) fn end(&self) {
        self.lock().values().for_each(|it| it.end());
    }

    fn build(&self, server: &str) -> Arc<Endpoint<InstanceHandler>> {
        let shared = &self.gateway.0;
        let mut settings = Settings::new(shared.settings.limits.clone());
        settings.path = format!("{PATH}{server}");
        settings.sse_paths = None;
        settings.sessions = false;
        // The replica that the client is connected to has counted the call for its principal.
        let scoped = self.gateway.handler(Selector::Server(server.to_owned()));
        let core = Arc::new(shared.core_of(&scoped.view));
        let handler = InstanceHandler { server: server.to_owned(), scoped };
        Endpoint::new(core, Arc::new(handler), settings)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Endpoint<InstanceHandler>>>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
