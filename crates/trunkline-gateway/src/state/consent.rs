//! Tickets of approved calls: each is good for one call, at whatever replica it is shown.

use std::sync::PoisonError;
use std::time::SystemTime;

use super::GatewayState;
use crate::failure::Failure;
use crate::policy::ask::{Binding, SharedTickets};

impl GatewayState {
    /// A ticket for a question about this call.
    pub(crate) fn ticket(&self, binding: &Binding) -> String {
        let now = SystemTime::now();
        match &self.settings.fleet {
            Some(fleet) => tickets(fleet).ask(binding, now),
            None => self.approvals.lock().unwrap_or_else(PoisonError::into_inner).ask(binding, now),
        }
    }

    /// Redeems a ticket: whether it is for this call, in time, and was not redeemed before.
    pub(crate) async fn redeem(&self, ticket: &str, binding: &Binding) -> Result<bool, Failure> {
        let now = SystemTime::now();
        let Some(fleet) = &self.settings.fleet else {
            let mut approvals = self.approvals.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(approvals.redeem(ticket, binding, now));
        };
        match tickets(fleet).name(ticket, binding, now) {
            Some(name) => fleet.first_use("ticket", &name, crate::question::PATIENCE).await,
            None => Ok(false),
        }
    }
}

fn tickets(fleet: &crate::fleet::Fleet) -> SharedTickets {
    SharedTickets::new(fleet.sealer(), crate::question::PATIENCE)
}
