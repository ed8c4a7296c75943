//! Merges the `instructions` of servers into those that one caller gets: only of servers it can see, and
//! bounded in length.

use std::sync::{Arc, Weak};

use trunkline_proto::server::{Config, Instruct};

use super::{GatewayState, View, Visibility};
use crate::caller::Caller;
use crate::merge::cut;
use crate::selector::Selector;

impl GatewayState {
    /// The configuration of the server side that clients of a view meet.
    pub(crate) fn core_of(&self, view: &Arc<View>) -> Config {
        let mut core = Config::clone(&self.core);
        let (this, view) = (Weak::clone(&self.this), Arc::clone(view));
        // Computed on every request: lists, rules and the catalog change.
        core.instruct = Some(Instruct::new(move |attached| {
            this.upgrade()?.instructions(&view.selector, &Caller::opening(attached))
        }));
        core
    }

    /// The instructions of the servers that the caller chose and may see.
    pub(crate) fn instructions(&self, selector: &Selector, caller: &Caller) -> Option<String> {
        let active = self.active_plan();
        let visibility = Visibility::new(&active, caller);
        let mut all = String::new();
        for server in active.servers.values().filter(|it| selector.chooses(&it.plan())) {
            if !visibility.sees_server(&server.name) {
                continue;
            }
            let said = self.shown_instructions(server).filter(|it| !it.is_empty());
            let Some(said) = said else { continue };
            if matches!(selector, Selector::Server(_)) {
                return Some(cut(said, LONGEST));
            }
            let said = cut(said, LONGEST_OF_MANY);
            if all.len() + said.len() + server.name.len() > LONGEST {
                all.push_str("\n\n(The instructions of further servers were left out.)");
                break;
            }
            let gap = if all.is_empty() { "" } else { "\n\n" };
            all.push_str(&format!("{gap}# {}\n{said}", server.name));
        }
        (!all.is_empty()).then_some(all)
    }
}

/// The bytes of instructions that one client gets, and of one server among several.
const LONGEST: usize = 64 << 10;
const LONGEST_OF_MANY: usize = 16 << 10;
