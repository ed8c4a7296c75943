//! Turns a function's panic or time-out into what its caller reads.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use trunkline_transport::handler::panicked;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::CallToolResult;

use super::job::{Job, Target};

/// Why a function has no result.
pub(super) enum Fault {
    /// It panicked.
    Panic,
    /// It took longer than this.
    Late(Duration),
}

impl Job {
    /// The result of a call whose function failed. The model reads a tool's failure as text;
    /// prompts and resources have no failed result, so their callers get an error.
    pub(super) fn failed(&self, fault: Fault) -> Result<CallToolResult, ErrorObject> {
        let name = self.target.name();
        let error = match fault {
            Fault::Panic => panicked(),
            Fault::Late(limit) => {
                let why = format!("`{name}` took longer than {limit:?} and was stopped.");
                ErrorObject::internal("timeout", &why)
            }
        };
        if !matches!(self.target, Target::Tool(_)) {
            return Err(error);
        }
        Ok(CallToolResult::error(match fault {
            Fault::Panic => format!(
                "`{name}` failed unexpectedly. That is a fault of the server, and it has been \
                 logged; other arguments may work."
            ),
            Fault::Late(_) => format!("{} It may have done a part of its work.", error.message),
        }))
    }

    /// Runs one step of the function. The text of a panic goes to the log only.
    pub(super) fn guarded<T>(&self, step: impl FnOnce() -> T) -> Result<T, Fault> {
        catch_unwind(AssertUnwindSafe(step)).map_err(|panic| {
            let name = self.target.name();
            tracing::error!(name, panic = text_of(&*panic), "a handler panicked");
            Fault::Panic
        })
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("?")
}

/// The working time of a function. The clock stops while a question is in flight.
pub(super) struct Deadline {
    limit: Duration,
    left: Duration,
    /// Since when the clock has been running.
    since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Deadline {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, left: limit, since: None, timer: Box::pin(sleep(limit)) }
    }

    /// Ready when the time of an unfinished function is up.
    pub(super) fn poll(&mut self, is_asking: bool, cx: &mut TaskContext<'_>) -> Poll<Fault> {
        if is_asking {
            let worked = self.since.take().map(|it| it.elapsed()).unwrap_or_default();
            self.left = self.left.saturating_sub(worked);
            return Poll::Pending;
        }
        if self.since.is_none() {
            let now = Instant::now();
            self.since = Some(now);
            self.timer.as_mut().reset(now + self.left);
        }
        self.timer.as_mut().poll(cx).map(|()| Fault::Late(self.limit))
    }
}
