//! The parts of the gateway that subscriptions use.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use trunkline_proto::{Change, PeerNotification};

use super::{GatewayState, Visibility};
use crate::caller::Caller;
use crate::catalog::plan::Effect;
use crate::merge::{Item, Target};
use crate::policy::audit::Audit;
use crate::selector::Selector;
use crate::server::Server;
use crate::subscriptions::{Host, Place, Subscriptions};
use crate::watcher::Watcher;

impl Host for GatewayState {
    fn this(&self) -> Weak<dyn Host> {
        Weak::<Self>::clone(&self.this)
    }

    fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.active_plan().servers.get(name).cloned()
    }

    fn audit(&self) -> Option<Arc<Audit>> {
        self.active_plan().audit.clone()
    }

    fn place(&self, selector: &Selector, caller: &Caller, uri: &str) -> Option<Place> {
        let active = self.active_plan();
        let visibility = Visibility::new(&active, caller);
        let mut found = match selector {
            Selector::Server(name) => vec![unlisted(Arc::from(name.as_str()), Arc::from(uri))],
            _ => {
                let index = self.view(selector.clone()).index(self);
                self.named.places(&index, caller, uri)
            }
        };
        found.retain(|it| visibility.effect(it) != Effect::Deny);
        // A URI that several servers list belongs to none of them.
        let target = found.pop().filter(|_| found.is_empty())?;
        Some(Place { server: target.server, uri: target.name })
    }

    fn is_still(&self, place: &Place, selector: &Selector, caller: &Caller) -> bool {
        let active = self.active_plan();
        let server = active.servers.get(&*place.server);
        let is_new = server.is_some_and(|it| it.lists().is_none() && selector.chooses(&it.plan()));
        let target = unlisted(Arc::clone(&place.server), Arc::clone(&place.uri));
        is_new && Visibility::new(&active, caller).effect(&target) != Effect::Deny
    }

    fn is_complete(&self, selector: &Selector) -> bool {
        GatewayState::is_complete(self, &self.active_plan(), &self.view(selector.clone()))
    }

    fn complete(self: Arc<Self>, selector: Selector) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let view = self.view(selector);
            GatewayState::complete(&self, &self.active_plan(), &view).await;
        })
    }

    fn tell(&self, change: &Change, conversations: &HashSet<u64>) {
        self.listeners.tell(change, |listener| conversations.contains(&listener.conversation));
    }

    fn heard(&self, server: &str, instance: u64, heard: PeerNotification) {
        Watcher::changed(self, server, instance, heard);
    }
}

fn unlisted(server: Arc<str>, name: Arc<str>) -> Target {
    Target { server, name, item: Item::Unlisted }
}
