//! The record of one call, for audit, metrics, logs and spans.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use trunkline_proto::Call;
use trunkline_wire::json::glance::ResultType;
use trunkline_wire::jsonrpc::{Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::{Tool, meta};

use crate::caller::Caller;
use crate::failure::Failure;
use crate::merge::Target;
use crate::otel::Open;
use crate::outcome::{self, of_result};
use crate::policy::audit::{Called, Decision, Entry};
use crate::policy::{What, canonical};
use crate::pool::Lease;
use crate::report::Done;
use crate::trace::Trace;
use crate::traffic::{CallTarget, Recording};
use crate::upstream::Upstream;

/// The record of a call in flight.
pub(crate) struct CallRecord {
    /// The id of the call everywhere: the caller's trace id, or one of our own.
    pub(crate) id: Trace,
    /// The id of the call in the audit. No caller can choose it.
    own: Trace,
    /// What the call is about, once resolved.
    about: Option<Arc<Target>>,
    /// What the caller named, where that is no target.
    pub(crate) named: Option<Arc<str>>,
    pub(crate) instance: Option<u64>,
    pub(crate) decision: Decision,
    pub(crate) method: Method,
    /// The digest of the arguments, if there is an audit.
    pub(crate) digest: Option<String>,
    pub(crate) began: Instant,
    /// When the call got its instance, the last one if it got several.
    pub(crate) leased: Option<Instant>,
    failed: Option<outcome::Outcome>,
    /// The lease of the call, kept until the call is over.
    pub(crate) kept: Option<Lease<Upstream>>,
    /// The reason word of a failure of the gateway.
    reason: Option<&'static str>,
    /// The span of the call.
    pub(crate) span: Option<Box<Open>>,
    /// What operators see of the call, if calls are recorded.
    pub(crate) recording: Option<Recording>,
    /// Since when the call waits for an instance, for those who record it.
    pub(crate) waits: Option<Instant>,
    /// Whether those who record it know the instance that it reaches.
    pub(crate) is_sent: bool,
}

/// What a record needs beside the call.
pub(crate) struct With {
    /// Whether an audit wants the digest of the arguments.
    pub(crate) audits: bool,
    pub(crate) began: Instant,
    /// The span of the incoming request, if traces are recorded.
    pub(crate) span: Option<Box<Open>>,
    /// What operators see of the call, if calls are recorded.
    pub(crate) recording: Option<Recording>,
}

impl CallRecord {
    /// Begins the record of a call. `own` is the id that the gateway gives it.
    #[inline]
    pub(crate) fn new(call: &Call, own: Trace, with: With) -> Self {
        let With { audits, began, span, recording } = with;
        let arguments = if audits { call.params.get("arguments") } else { None };
        Self {
            id: span.as_ref().map_or_else(|| trace_id(call, own), |it| it.context().trace()),
            own,
            about: None,
            named: None,
            instance: None,
            decision: Decision::Allowed,
            method: call.method.method,
            digest: arguments.map(canonical::digest),
            began,
            leased: None,
            failed: None,
            kept: None,
            reason: None,
            span,
            recording,
            waits: None,
            is_sent: false,
        }
    }

    /// Sets the target.
    pub(crate) fn is(&mut self, target: &Arc<Target>) {
        if let Some(span) = &mut self.span {
            span.is(target);
        }
        self.about = Some(Arc::clone(target));
    }

    /// The server that the call is for.
    pub(crate) fn server(&self) -> Option<&Arc<str>> {
        self.about.as_ref().map(|it| &it.server)
    }

    /// The target's own name at its server, or what the caller named.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.about.as_ref().map(|it| &it.name).or(self.named.as_ref())
    }

    /// The tool that is called, if it is one.
    pub(crate) fn tool(&self) -> Option<&Arc<Tool>> {
        self.about.as_ref().and_then(|it| it.tool())
    }

    /// What the call is about, for those who record it.
    pub(crate) fn target(&self) -> CallTarget {
        match (&self.about, &self.named) {
            (Some(target), _) => CallTarget::Known(Arc::clone(target)),
            (None, Some(name)) => CallTarget::Named(Arc::clone(name)),
            (None, None) => CallTarget::Nothing,
        }
    }

    /// Ends the recording, with what the caller was told if anything. That of a plain call which has succeeded goes on:
    /// the answer ends it.
    #[inline]
    pub(crate) fn recorded(&self, outcome: outcome::Outcome, told: Option<&Outcome>, at: Instant) {
        let Some(recording) = &self.recording else { return };
        let is_well = outcome == outcome::Outcome::Ok && told.is_some();
        // The answer ends a call under our own id. If its caller gave it another, that is to be said at the end.
        let is_plain = self.is_sent && self.waits.is_none() && self.id == self.own;
        if !(is_well && is_plain && recording.is_ended_by_answer()) {
            self.end_recording(recording, outcome, told, at);
        }
    }

    #[cold]
    fn end_recording(
        &self,
        recording: &Recording,
        outcome: outcome::Outcome,
        told: Option<&Outcome>,
        at: Instant,
    ) {
        if let Some(since) = self.waits {
            recording.waited(since);
        }
        let ended = (outcome, self.reason, self.id);
        recording.end(ended, told, at, || self.target());
    }

    /// The caller comes back to the call as to a task of this id.
    pub(crate) fn is_task(&self, id: &str) {
        if let Some(recording) = &self.recording {
            recording.is_called(id);
        }
    }

    /// Sets the instance, and when the call got it.
    pub(crate) fn leased(&mut self, instance: u64, now: Instant) {
        (self.instance, self.leased) = (Some(instance), Some(now));
    }

    /// The outcome word.
    pub(crate) fn outcome(&self, told: &Outcome) -> outcome::Outcome {
        match told {
            Ok(result) => match of_result(self.method, result) {
                (true, _) => outcome::Outcome::ToolError,
                (_, ResultType::InputRequired) => outcome::Outcome::Asked,
                _ => outcome::Outcome::Ok,
            },
            Err(_) => self.failed.unwrap_or(outcome::Outcome::Error),
        }
    }

    /// Records a failure of the gateway.
    pub(crate) fn failed(&mut self, failure: &Failure) {
        self.reason = Some(failure.reason.word());
        self.failed = Some(failure.into());
    }

    /// The record as a log entry.
    pub(crate) fn done<'a>(
        &'a self,
        caller: &'a Caller,
        outcome: outcome::Outcome,
        took: Duration,
    ) -> Done<'a, Trace> {
        Done {
            server: self.server().map(|it| &**it),
            instance: self.instance,
            principal: caller.name.as_deref(),
            trace: self.id,
            method: self.method.name(),
            name: self.name().map(|it| &**it),
            outcome: outcome.word(),
            reason: self.reason,
            took,
        }
    }

    /// Ends the span of the call.
    pub(crate) fn end(&mut self, outcome: outcome::Outcome, told: &Outcome) {
        if let Some(span) = self.span.take() {
            span.told(outcome, told, self.reason);
        }
    }

    /// The reason policy refused the call, if it did.
    pub(crate) fn rejection(&self) -> Option<&'static str> {
        match self.decision {
            Decision::Allowed | Decision::Approved | Decision::Asked => None,
            Decision::Denied => Some("denied"),
            Decision::Declined => Some("declined"),
            Decision::RateLimited => Some("rate_limited"),
            Decision::HeldBack => Some("held_back"),
            Decision::Rejected => Some("plugin"),
        }
    }

    /// The record as an audit entry.
    pub(crate) fn entry(
        &self,
        caller: &Caller,
        outcome: outcome::Outcome,
        took: Duration,
    ) -> Entry {
        let name = clip(self.name().map_or("", |it| it)).to_owned();
        let kind = self.about.as_ref().map(|it| What::of(it).kind());
        let kind = kind.unwrap_or(match self.method {
            Method::PromptsGet => "prompt",
            Method::ResourcesRead => "uri",
            _ => "tool",
        });
        Entry {
            time: SystemTime::now(),
            id: self.own.to_string(),
            trace: self.id.to_string(),
            principal: caller.name.as_deref().map(str::to_owned),
            client: caller.client().map(|it| clip(&it).to_owned()),
            server: self.server().map(|it| it.to_string()),
            instance: self.instance,
            method: self.method.name(),
            what: match kind {
                "prompt" => Called::Prompt(name),
                "uri" => Called::Uri(name),
                _ => Called::Tool(name),
            },
            arguments: self.digest.clone(),
            decision: self.decision,
            outcome: Cow::Borrowed(outcome.word()),
            ms: took.as_millis() as u64,
            replica: None,
        }
    }
}

/// Shortens a text for the audit.
fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// The caller's trace id, or one of our own.
fn trace_id(call: &Call, own: Trace) -> Trace {
    let meta = call.meta.as_ref().filter(|it| it.get().contains(meta::TRACEPARENT));
    let parent = meta
        .and_then(|it| Object::parse(it.get()).ok())
        .and_then(|it| it.get(meta::TRACEPARENT)?.to::<String>().ok());
    parent.and_then(|it| Trace::of(&it)).unwrap_or(own)
}

/// The bytes of a name that the audit keeps.
const LONGEST: usize = 2_048;
