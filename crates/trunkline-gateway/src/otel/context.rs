//! The trace context of a call: `traceparent` and `tracestate` in a request's `_meta`.

use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_auth::tag::random_name;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::meta;
use trunkline_wire::trace::{Traceparent, is_tracestate};

use crate::trace::Trace;

/// A span's context, as it is propagated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) flags: u8,
    pub(super) state: Option<Box<str>>,
}

impl Context {
    /// The caller's context. Invalid or overlong values count as absent.
    pub(super) fn of_meta(meta: Option<&Json>) -> Option<Self> {
        let meta = meta.filter(|it| it.get().contains(meta::TRACEPARENT))?;
        let meta = Object::parse(meta.get()).ok()?;
        let text = |name| meta.get(name).and_then(|it| it.to::<String>().ok());
        let mut context = Self::parse(&text(meta::TRACEPARENT)?)?;
        context.state = text(meta::TRACESTATE).filter(|it| is_tracestate(it)).map(Into::into);
        Some(context)
    }

    fn parse(text: &str) -> Option<Self> {
        let Traceparent { trace, span, flags } = Traceparent::parse(text)?;
        Some(Self { trace, span, flags, state: None })
    }

    /// 32 hex digits.
    pub(super) fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    pub(super) fn set_sampled(&mut self, is_sampled: bool) {
        self.flags = self.flags & !SAMPLED | u8::from(is_sampled);
    }

    pub(crate) fn trace(&self) -> Trace {
        Trace::new((self.trace >> 64) as u64, self.trace as u64)
    }

    /// A `_meta` that names this span as the parent.
    pub(crate) fn within(&self, meta: Option<Json>) -> Json {
        let mut object = meta.and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default();
        let Self { trace, span, flags, .. } = *self;
        let parent = Traceparent { trace, span, flags };
        object.set(meta::TRACEPARENT, Json::string(&parent.to_string()));
        // `tracestate` means nothing without a valid `traceparent`.
        if self.state.is_none() {
            object.take(meta::TRACESTATE);
        }
        object.to_json()
    }
}

/// Decides which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sampler {
    /// Whether the caller's decision counts.
    pub(super) heeds_parent: bool,
    /// The share of traces to record if nobody has decided.
    pub(super) ratio: f64,
}

impl Sampler {
    pub(super) fn samples(&self, context: &Context, has_parent: bool) -> bool {
        if has_parent && self.heeds_parent {
            return context.is_sampled();
        }
        // Every sampler that uses these 56 bits decides alike.
        let drawn = (context.trace as u64 & (WHOLE - 1)) as f64;
        drawn >= (1.0 - self.ratio) * WHOLE as f64
    }
}

/// Generates unique ids. They need not be secret, only evenly distributed.
pub(super) struct Ids {
    seeds: [u64; 3],
    count: AtomicU64,
}

impl Ids {
    pub(super) fn new() -> Self {
        let seed = || u128::from_str_radix(&random_name(), 16).unwrap_or(1) as u64;
        Self { seeds: [seed(), seed(), seed()], count: AtomicU64::new(0) }
    }

    /// The beginning of a trace.
    pub(super) fn begin(&self) -> Context {
        let trace = u128::from(self.draw(0)) << 64 | u128::from(self.draw(1));
        Context { trace, span: self.span(), flags: Traceparent::RANDOM, state: None }
    }

    pub(super) fn span(&self) -> u64 {
        self.draw(2)
    }

    /// SplitMix64: every count gives another number. None is zero.
    fn draw(&self, seed: usize) -> u64 {
        loop {
            let count = self.count.fetch_add(1, Ordering::Relaxed);
            let mut it = self.seeds[seed].wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            it ^= it >> 31;
            if it != 0 {
                return it;
            }
        }
    }
}

const SAMPLED: u8 = Traceparent::SAMPLED;
/// The part of a trace id that is certainly random (56 bits).
const WHOLE: u64 = 1 << 56;
