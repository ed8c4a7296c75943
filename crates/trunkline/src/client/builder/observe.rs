//! How a client is observed, and which trace its requests belong to.

use super::ClientBuilder;
use crate::TraceContext;
use crate::observe::Meter;
use trunkline_auth::setters;

/// How the client is observed; see [`observe`](crate::observe).
impl<H> ClientBuilder<H> {
    setters! {
        /// Reports every finished request to `meter`. Without one, the client reads no clock.
        ///
        /// ```
        /// use trunkline::{Client, observe::Metrics};
        ///
        /// let metrics = Metrics::new();
        /// let client = Client::builder("example", "1.0.0").meter(metrics.clone());
        /// ```
        meter(meter: impl Meter) { observe.set_meter(meter) }

        /// Sends a trace context with every request that has none of its own: `trace` is called inside
        /// the span of the request. With `tracing-opentelemetry` it returns the context of the current
        /// span.
        ///
        /// ```
        /// use trunkline::{Client, TraceContext};
        ///
        /// let trace = TraceContext::begin(true);
        /// let client = Client::builder("example", "1.0.0").trace_with(move || Some(trace.child()));
        /// ```
        trace_with(trace: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) {
            observe.set_trace(trace)
        }
    }
}
