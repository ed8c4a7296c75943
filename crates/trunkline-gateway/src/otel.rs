//! Exports calls as OpenTelemetry spans, together with the gateway's metrics.
//!
//! A call has one span for the incoming request, and a child span for each try at an instance. The instance
//! gets the child's context, so that its own spans nest below it.

mod context;
mod encode;
mod export;
mod settings;
mod span;

use std::sync::{Arc, Weak};

use trunkline_proto::Call;

use crate::metrics::Metrics;
use context::{Context, Ids, Sampler};
use export::Exporter;
pub use settings::OtelSettings;
pub(crate) use span::Open;

/// The spans of one gateway.
pub(crate) struct Otel {
    ids: Ids,
    sampler: Sampler,
    exporter: Exporter,
}

impl Otel {
    /// Starts the exporter.
    pub(crate) fn start(settings: &OtelSettings, host: Weak<dyn Host>) -> Arc<Self> {
        Arc::new(Self {
            ids: Ids::new(),
            sampler: settings.sampler,
            exporter: Exporter::start(settings, host),
        })
    }

    /// Begins the span of an incoming call.
    pub(crate) fn begin(self: &Arc<Self>, call: &Call) -> Box<Open> {
        let sent = Context::of_meta(call.meta.as_ref());
        let parent = sent.as_ref().map(|it| it.span);
        let mut context = match sent {
            Some(sent) => Context { span: self.ids.span(), ..sent },
            None => self.ids.begin(),
        };
        context.set_sampled(self.sampler.samples(&context, parent.is_some()));
        Open::at_door(self, context, parent, call)
    }

    /// Exports the rest, for a limited time.
    pub(crate) async fn close(&self) {
        self.exporter.close().await;
    }
}

/// What the exporter needs of the gateway.
pub(crate) trait Host: Send + Sync + 'static {
    /// The current metrics.
    fn metrics(&self) -> &Metrics;

    /// Logs a sentence for the operator.
    fn say(&self, text: &str);
}

#[cfg(test)]
mod tests;
