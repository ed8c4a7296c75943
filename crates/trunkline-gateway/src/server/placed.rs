//! Instances of which there is one over all replicas: leased here or at the replica where they live.

use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use trunkline_transport::conversation_handle::Request;
use trunkline_transport::http::SharedSessions;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;

use super::{Server, now};
use crate::catalog::plan::Activation;
use crate::client_profile;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::placement::{
    FOR_CALLER, HeldKey, Placed, Places, claimed_key, is_shared_by_all, may_be_claimed, moved,
};
use crate::pool::{Lease, Leasing, Want};
use crate::upstream::{Admission, Guard, Upstream};

/// Whether a call may go on to another replica. One that comes from there may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    May,
    Done,
}

impl Server {
    /// Leases an instance, wherever it lives. The want is computed again whenever more becomes known of the server.
    pub(crate) async fn lease(
        &self,
        hop: Hop,
        want: &impl Fn() -> Want,
    ) -> Result<Lease<Upstream>, Failure> {
        match self.ask(want, now()) {
            Some(asked) => self.leased(asked, want).await,
            None => self.lease_placed(hop, want).await,
        }
    }

    /// Asks for an instance without a future: most calls find one ready. `None` if it may live at another replica.
    pub(crate) fn ask(&self, want: &impl Fn() -> Want, now: Instant) -> Option<Leasing<Upstream>> {
        let may_be_elsewhere = self.placement.is_some() && self.has_one_over_all();
        (!may_be_elsewhere).then(|| self.ask_here(want, now))
    }

    /// Whether there may be one instance of it over all replicas, or one of each key.
    fn has_one_over_all(&self) -> bool {
        may_be_claimed(&self.plan.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn lease_placed(
        &self,
        hop: Hop,
        want: &impl Fn() -> Want,
    ) -> Result<Lease<Upstream>, Failure> {
        let (plan, key) = (self.plan(), want().key);
        let (Some(placement), Some(key)) = (&self.placement, claimed_key(&plan, key.as_deref()))
        else {
            return self.leased(self.ask_here(want, now()), want).await;
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let way = match placement.place(&plan, key).await? {
                Placed::Here(held) => {
                    let lease = self.leased(self.ask_here(want, now()), want).await?;
                    // It may have taken a while.
                    return if held.is_ours() { Ok(lease) } else { Err(moved(&self.name)) };
                }
                Placed::At(_) if hop == Hop::Done => return Err(moved(&self.name)),
                Placed::At(way) => way,
            };
            match way.lease(on_the_way(want())).await {
                Err(_) if tries < TRIES => {
                    placement.forget(key);
                    way.retry();
                }
                leased => return leased,
            }
        }
    }

    /// The replica that was named for this key does not have its instance, or cannot be reached.
    pub(crate) fn forget_place(&self, key: Option<&str>) {
        if let (Some(placement), Some(key)) = (&self.placement, claimed_key(&self.plan(), key)) {
            placement.forget(key);
        }
    }

    /// Claims the one instance before it is started for its lists. If it lives elsewhere, that replica lists it.
    pub(super) async fn claim_to_list(&self) -> Result<Option<Arc<HeldKey>>, Failure> {
        let plan = self.plan();
        let Some(placement) = self.placement.as_ref().filter(|_| is_shared_by_all(&plan)) else {
            return Ok(None);
        };
        match placement.place(&plan, "").await? {
            Placed::Here(held) => Ok(Some(held)),
            Placed::At(_) => Err(moved(&self.name)),
        }
    }

    /// Makes the replica at which the one instance lives store its lists, where all find them. Returns whether it
    /// lives elsewhere.
    pub(crate) async fn list_elsewhere(&self) -> Result<bool, Failure> {
        let plan = self.plan();
        let Some(placement) = self.placement.as_ref().filter(|_| is_shared_by_all(&plan)) else {
            return Ok(false);
        };
        let Placed::At(way) = placement.place(&plan, "").await? else { return Ok(false) };
        let (who, profile) = (super::Who::Nobody, client_profile::ClientProfile::ALL);
        let want = self.want(&plan, None, who, profile, LIST);
        let lease = way.lease(on_the_way(want)).await.inspect_err(|_| placement.forget(""))?;
        let mut params = Object::default();
        if let Some(peer) = &lease.instance().peer {
            let mut meta = Object::default();
            meta.set(FOR_CALLER, Json::string(&placement.seal_caller(peer, None)));
            params.set("_meta", meta.to_json());
        }
        let asked = lease.instance().call(Request::new(Method::ToolsList, params)).await;
        if let Err(error) = asked {
            placement.forget("");
            tracing::debug!(server = &*self.name, %error, "its replica did not list it");
        }
        Ok(true)
    }

    /// Follows where its instances live, until the server is gone.
    pub(super) fn tend_placement(self: &Arc<Self>) {
        if self.placement.is_some() {
            tokio::spawn(tend(Arc::downgrade(self)));
            tokio::spawn(keep_up(Arc::downgrade(self)));
        }
    }

    /// This replica ends. Returns whether none of its instances serves other replicas any more.
    pub(crate) async fn leave(&self, at_once: bool) -> bool {
        match &self.placement {
            Some(placement) => placement.leave(&self.plan(), &self.pool, at_once).await,
            None => true,
        }
    }
}

/// Takes a place for each instance of a server with a bound over all replicas.
pub(super) fn admission(
    server: &Arc<str>,
    fleet: &Fleet,
    sessions: &Arc<SharedSessions>,
) -> Admission {
    let places = Arc::new(Places::new(server, fleet, sessions));
    Box::new(move |plan| {
        let places = Arc::clone(&places);
        Box::pin(async move {
            match plan.max_total {
                None => Ok(None),
                Some(most) => Ok(Some(Box::new(places.take(most).await?) as Guard)),
            }
        })
    })
}

/// Compares claims with instances, again and again. Nothing slow is in between: an instance whose claim has ended
/// stops before anybody can start another.
async fn tend(server: Weak<Server>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(server) = server.upgrade() else { return };
        let Some(placement) = &server.placement else { return };
        placement.tend(&server.plan(), &server.pool).await;
    }
}

/// Does what may wait for the store or for others.
async fn keep_up(server: Weak<Server>) {
    loop {
        tokio::time::sleep(KEEP_UP).await;
        let Some(server) = server.upgrade() else { return };
        let Some(placement) = &server.placement else { return };
        let plan = server.plan();
        placement.forget_the_gone().await;
        if is_shared_by_all(&plan) {
            if plan.activation == Activation::AlwaysOn || plan.min_ready > 0 {
                placement.keep_running(&plan, &server.pool).await;
            }
            placement.look_where_it_lives().await;
        }
    }
}

/// The same want at another replica, which decides what instance serves it.
fn on_the_way(want: Want) -> Want {
    let profile = client_profile::connected(client_profile::ALL, false);
    Want { key: None, owner: None, profile, is_alone: false, ..want }
}

const LIST: crate::pool::Cause = crate::pool::Cause::List;
/// How often claims are compared with instances: well before anybody can take a claim over whose lease is over.
const LOOK: Duration = Duration::from_millis(250);
/// How often the slower things are done.
const KEEP_UP: Duration = Duration::from_secs(2);
/// How often the way to an instance is looked for.
const TRIES: u32 = 3;
