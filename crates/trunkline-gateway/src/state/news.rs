//! Follows what other replicas change: lists, pins and accounts.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::GatewayState;
use crate::fleet::{Fleet, News};
use crate::logs::Logged;
use crate::server::Server;

impl GatewayState {
    /// Follows the news of the other replicas until the gateway is gone.
    pub(crate) fn spawn_hearing(&self) {
        let Some(fleet) = self.settings.fleet.clone() else { return };
        tokio::spawn(hear(fleet, Weak::clone(&self.this)));
    }

    async fn follow_news(&self, news: News) {
        match news {
            News::Pins => self.follow_pins().await,
            News::Lists(fingerprint) => {
                for server in self.active_plan().servers.values() {
                    if server.plan().fingerprint() == fingerprint {
                        self.follow_lists(server).await;
                    }
                }
            }
            News::Account { id, server, is_logged_in } => {
                self.follow_account(&id, &server, is_logged_in).await;
            }
            News::Everything => {
                self.follow_pins().await;
                for server in self.active_plan().servers.values() {
                    self.follow_lists(server).await;
                }
                self.follow_accounts().await;
            }
        }
    }

    /// Takes over the lists that another replica stored.
    pub(super) async fn follow_lists(&self, server: &Arc<Server>) {
        let Some(lists) = self.cache.load(&server.plan().fingerprint()).await else { return };
        if server.lists().is_none_or(|it| it.etag() != lists.etag()) {
            self.take_over(server, lists).await;
        }
    }

    /// Compares everything with what another replica has pinned or approved.
    async fn follow_pins(&self) {
        let Some(pins) = &self.pins else { return };
        if let Some(fault) = pins.reload().await {
            self.logs.add(Logged::gateway("", &fault.to_string()));
            return;
        }
        for server in self.active_plan().servers.values() {
            let plan = server.plan();
            let Some(lists) = server.lists().filter(|_| plan.pin.is_on()) else { continue };
            let released = pins.release(&plan.name);
            let mut touched = self.apply_pins(&plan, &lists).await;
            touched.extend(released);
            touched.sort_unstable();
            touched.dedup();
            self.lists_changed(&plan, &touched);
        }
    }
}

async fn hear(fleet: Fleet, this: Weak<GatewayState>) {
    loop {
        match fleet.listen().await {
            Ok(mut hearing) => {
                // What was told before is not heard any more.
                let mut news = Some(News::Everything);
                loop {
                    let Some(shared) = this.upgrade() else { return };
                    if let Some(news) = news.take() {
                        shared.follow_news(news).await;
                    }
                    drop(shared);
                    match tokio::time::timeout(LOOK, hearing.next()).await {
                        Ok(Some(heard)) => news = Some(heard),
                        Ok(None) => break,
                        // Nothing is new; the gateway may be gone.
                        Err(_) => {}
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "other replicas cannot be heard"),
        }
        tokio::time::sleep(PAUSE).await;
        if this.strong_count() == 0 {
            return;
        }
    }
}

/// How often it is looked whether the gateway is still there.
const LOOK: Duration = Duration::from_secs(10);
/// The pause before the store is asked again.
const PAUSE: Duration = Duration::from_secs(1);
