//! The `mcp/…` dialect: five methods, each answered by one or more calls of MCP proper.

use std::sync::Arc;
use std::time::Instant;

use trunkline_wire::dialect::{self, Exchange, Request};
use trunkline_wire::jsonrpc::{ErrorObject, Outcome, Params};
use trunkline_wire::method::Sender;
use trunkline_wire::revision::Revision;

use super::shared::{Asking, Facts, Shared};

/// A request of the dialect that is being answered.
#[derive(Debug)]
pub(super) struct Step(Exchange);

impl Shared {
    pub(super) fn on_dialect(&mut self, from: Asking, method: &str, params: Params, now: Instant) {
        if self.calls.has_id(&from.id) {
            let message = format!("The id {} belongs to a request that is still open.", from.id);
            return self.reply(from, Err(ErrorObject::invalid_request(message)));
        }
        match Request::read(method, params) {
            Err(error) => self.reply(from, Err(error)),
            Ok(request) => {
                let config = Arc::clone(&self.config);
                let (exchange, step) = Exchange::begin(request, || {
                    dialect::describe(&config.info, &config.capabilities, Some(REVISION))
                });
                self.step(from, exchange, step, now);
            }
        }
    }

    /// One of the calls behind a request has finished.
    pub(super) fn finish_dialect(
        &mut self,
        from: Asking,
        Step(mut exchange): Step,
        outcome: Outcome,
        now: Instant,
    ) {
        let step = exchange.answered(outcome);
        self.step(from, exchange, step, now);
    }

    fn step(&mut self, from: Asking, mut exchange: Exchange, step: dialect::Step, now: Instant) {
        let mut step = step;
        loop {
            let (method, params) = match step {
                dialect::Step::Reply(outcome) => return self.reply(from, outcome),
                dialect::Step::Call { method, params } => (method, params),
            };
            let row = method
                .row(Sender::Client, REVISION)
                .filter(|row| self.config.capabilities.supports(row.gate));
            let Some(row) = row else {
                step = exchange.answered(Err(ErrorObject::method_not_found(method.name())));
                continue;
            };
            let facts = Facts {
                row,
                params,
                meta: None,
                revision: REVISION,
                // The dialect has no way to ask, so its clients have no capabilities.
                peer: Arc::default(),
                token: None,
                log_level: None,
                dialect: Some(Box::new(Step(exchange))),
            };
            return self.call(from, facts, now);
        }
    }
}

/// The revision that handlers see: the one with the fewest restrictions on results.
const REVISION: Revision = Revision::LATEST;
