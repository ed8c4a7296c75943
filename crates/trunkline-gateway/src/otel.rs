//! Calls → spans for OpenTelemetry, sent to a collector with the numbers of the gateway.
//!
//! A call has a span at our door, and one under it for each time that it is made at an instance. The
//! instance is told of the latter, so that what it records itself comes below.

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

/// Spans of one gateway.
pub(crate) struct Otel {
    ids: Ids,
    sampler: Sampler,
    exporter: Exporter,
}

impl Otel {
    /// Begins to send what is recorded.
    pub(crate) fn start(settings: &OtelSettings, host: Weak<dyn Host>) -> Arc<Self> {
        Arc::new(Self {
            ids: Ids::new(),
            sampler: settings.sampler,
            exporter: Exporter::start(settings, host),
        })
    }

    /// A call came to our door.
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

    /// Sends what is left, for a while.
    pub(crate) async fn close(&self) {
        self.exporter.close().await;
    }
}

/// What the exporter takes from the gateway whose calls it records.
pub(crate) trait Host: Send + Sync + 'static {
    /// The numbers of this moment.
    fn metrics(&self) -> &Metrics;

    /// Notes a sentence for the operator.
    fn say(&self, text: &str);
}

#[cfg(test)]
mod tests;
