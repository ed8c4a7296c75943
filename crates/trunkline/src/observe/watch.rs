//! One observed operation: its span and its measurement.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;
use tracing::Span;
use trunkline_transport::handler::Answer;
use trunkline_wire::json::Json;
use trunkline_wire::json::glance::Glance;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::CallToolResult;
use trunkline_wire::revision::Revision;

use super::{ErrorType, Meter, Operation, Role, Transport};

/// Observes one operation. Dropped before the end, it records a cancellation.
pub(crate) struct Watch {
    span: Span,
    metered: Option<Metered>,
    /// Set while observed code runs: if it is still set afterwards, that code panicked.
    is_inside: bool,
    is_over: bool,
}

/// The measurement, without the outcome.
pub(super) struct Metered {
    pub(super) meter: Arc<dyn Meter>,
    pub(super) role: Role,
    pub(super) method: Method,
    pub(super) target: Option<String>,
    pub(super) revision: Revision,
    pub(super) transport: Option<Transport>,
    pub(super) begun: Instant,
}

impl Watch {
    pub(super) fn new(span: Span, metered: Option<Metered>) -> Self {
        Self { span, metered, is_inside: false, is_over: false }
    }

    /// Runs a server's handler inside the span.
    pub(crate) fn answer(mut self, answer: impl FnOnce() -> Answer) -> Answer {
        match self.inside(answer) {
            Answer::Now(outcome) => {
                self.over(failure(&outcome));
                Answer::Now(outcome)
            }
            Answer::Later(future) => Answer::later(follow(Some(self), future)),
        }
    }

    /// Polls a future inside the span, if there is one.
    pub(crate) fn poll<F: Future<Output: Observed>>(
        watch: &mut Option<Self>,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let Some(watch) = watch else { return future.poll(cx) };
        let step = watch.inside(|| future.poll(cx));
        if let Poll::Ready(outcome) = &step {
            watch.over(outcome.failure());
        }
        step
    }

    /// Runs code inside the span, if there is one.
    pub(crate) fn scope<T>(watch: &Option<Self>, code: impl FnOnce() -> T) -> T {
        match watch {
            Some(watch) => watch.span.in_scope(code),
            None => code(),
        }
    }

    fn inside<T>(&mut self, code: impl FnOnce() -> T) -> T {
        self.is_inside = true;
        let it = {
            let _entered = self.span.enter();
            code()
        };
        self.is_inside = false;
        it
    }

    fn over(&mut self, error: Option<ErrorType>) {
        self.is_over = true;
        if let Some(error) = error
            && !self.span.is_disabled()
        {
            self.span.record("error.type", error.to_string());
            self.span.record("otel.status_code", "ERROR");
            if let Some(code) = error.code() {
                self.span.record("rpc.response.status_code", code.to_string());
            }
        }
        if let Some(it) = self.metered.take() {
            it.meter.operation(&Operation {
                role: it.role,
                method: it.method.name(),
                target: it.target.as_deref(),
                revision: it.revision,
                transport: it.transport,
                error,
                duration: it.begun.elapsed(),
            });
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_over {
            self.over(Some(if self.is_inside { ErrorType::Panic } else { ErrorType::Cancelled }));
        }
    }
}

/// Runs a future inside the span of `watch`.
pub(crate) async fn follow<F: Future<Output: Observed>>(
    mut watch: Option<Watch>,
    future: F,
) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| Watch::poll(&mut watch, future.as_mut(), cx)).await
}

/// The outcome of an operation.
pub(crate) trait Observed {
    /// The kind of failure, if it failed.
    fn failure(&self) -> Option<ErrorType>;
}

impl Observed for Outcome {
    fn failure(&self) -> Option<ErrorType> {
        failure(self)
    }
}

impl Observed for Result<CallToolResult, ErrorObject> {
    fn failure(&self) -> Option<ErrorType> {
        match self {
            Ok(result) => result.is_error().then_some(ErrorType::Tool),
            Err(error) => Some(ErrorType::Code(error.code)),
        }
    }
}

fn failure(outcome: &Outcome) -> Option<ErrorType> {
    match outcome {
        Ok(result) => is_tool_error(result).then_some(ErrorType::Tool),
        Err(error) => Some(ErrorType::Code(error.code)),
    }
}

/// Whether a result is that of a failed tool. No other result has this member.
pub(super) fn is_tool_error(result: &Json) -> bool {
    Glance::of(result).is_error
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_tool_that_says_so_has_failed() {
        for (result, expected) in [
            (json!({ "content": [], "isError": true }), true),
            (json!({ "content": [], "isError": false }), false),
            (json!({ "content": [{ "type": "text", "text": "\"isError\":true" }] }), false),
            (json!({ "structuredContent": { "isError": true } }), false),
            (json!({}), false),
        ] {
            assert_eq!(is_tool_error(&Json::of(&result)), expected, "{result}");
        }
    }
}
