//! What is remembered of a call: for the audit, the metrics and whoever asks what went on.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use trunkline_proto::Call;
use trunkline_wire::glance::ResultType;
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
use crate::upstream::Upstream;

/// A call while it walks.
pub(crate) struct CallRecord {
    /// Names the call everywhere: the trace that its caller is in, or one of our own.
    pub(crate) id: Trace,
    /// Names the call in the audit. No caller can choose it.
    own: Trace,
    pub(crate) server: Option<Arc<str>>,
    /// The tool's, prompt's or resource's own name.
    pub(crate) name: Option<Arc<str>>,
    /// What is called, as soon as that is known.
    kind: Option<&'static str>,
    pub(crate) tool: Option<Arc<Tool>>,
    pub(crate) instance: Option<u64>,
    pub(crate) decision: Decision,
    pub(crate) method: Method,
    pub(crate) caller: Arc<Caller>,
    /// Of the arguments, where there is an audit.
    pub(crate) digest: Option<String>,
    pub(crate) began: Instant,
    /// How long an instance was waited for.
    pub(crate) waited: Option<Duration>,
    failed: Option<outcome::Outcome>,
    /// The place that the call had, until the walk is over.
    pub(crate) kept: Option<Lease<Upstream>>,
    /// The word for a failure of our own.
    reason: Option<&'static str>,
    /// Where traces are recorded.
    pub(crate) span: Option<Box<Open>>,
}

/// What a record begins with beside the call.
pub(crate) struct With {
    /// Whether an audit wants the digest of its arguments.
    pub(crate) audits: bool,
    pub(crate) began: Instant,
    /// The span at our door, where traces are recorded.
    pub(crate) span: Option<Box<Open>>,
}

impl CallRecord {
    /// Begins the record of a call. `own` is the name that we give it.
    pub(crate) fn new(call: &Call, caller: &Arc<Caller>, own: Trace, with: With) -> Self {
        let With { audits, began, span } = with;
        let digest = call.params.get("arguments").filter(|_| audits).map(canonical::digest);
        Self {
            id: span.as_ref().map_or_else(|| trace_id(call, own), |it| it.context().trace()),
            own,
            server: None,
            name: None,
            kind: None,
            tool: None,
            instance: None,
            decision: Decision::Allowed,
            method: call.method.method,
            caller: Arc::clone(caller),
            digest,
            began,
            waited: None,
            failed: None,
            kept: None,
            reason: None,
            span,
        }
    }

    /// It is this.
    pub(crate) fn is(&mut self, target: &Target) {
        self.server = Some(Arc::clone(&target.server));
        self.name = Some(Arc::clone(&target.name));
        self.kind = Some(What::of(target).kind());
        if let Some(span) = &mut self.span {
            span.is(target);
        }
    }

    /// It has an instance.
    pub(crate) fn leased(&mut self, instance: u64) {
        self.instance = Some(instance);
        self.waited.get_or_insert_with(|| self.began.elapsed());
    }

    /// One word for what it came to.
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

    /// Notes a failure of our own.
    pub(crate) fn failed(&mut self, failure: &Failure) {
        self.reason = Some(failure.reason.word());
        self.failed = Some(failure.into());
    }

    /// As the log tells it.
    pub(crate) fn done(&self, outcome: outcome::Outcome, took: Duration) -> Done<'_, Trace> {
        use outcome::Outcome::{TimedOut, Unavailable, Unknown};
        Done {
            server: self.server.as_deref(),
            instance: self.instance,
            principal: self.caller.name.as_deref(),
            trace: self.id,
            method: self.method.name(),
            name: self.name.as_deref(),
            outcome: outcome.word(),
            is_to_blame: matches!(outcome, Unavailable | Unknown | TimedOut),
            reason: self.reason,
            took,
        }
    }

    /// It is over.
    pub(crate) fn end(mut self, outcome: outcome::Outcome, told: &Outcome) {
        if let Some(span) = self.span.take() {
            span.told(outcome, told, self.reason);
        }
    }

    /// Why it was not let through, if it was not.
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

    /// As the audit keeps it.
    pub(crate) fn entry(&self, outcome: outcome::Outcome) -> Entry {
        let name = clip(self.name.as_deref().unwrap_or_default()).to_owned();
        let kind = self.kind.unwrap_or(match self.method {
            Method::PromptsGet => "prompt",
            Method::ResourcesRead => "uri",
            _ => "tool",
        });
        Entry {
            time: SystemTime::now(),
            id: self.own.to_string(),
            trace: self.id.to_string(),
            principal: self.caller.name.clone(),
            client: self.caller.client().map(|it| clip(&it).to_owned()),
            server: self.server.as_deref().map(str::to_owned),
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
            ms: self.began.elapsed().as_millis() as u64,
        }
    }
}

/// As much of a text as the audit keeps.
fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// The trace that the caller is in, or one of our own.
fn trace_id(call: &Call, own: Trace) -> Trace {
    let meta = call.meta.as_ref().filter(|it| it.get().contains(meta::TRACEPARENT));
    let parent = meta
        .and_then(|it| Object::parse(it.get()).ok())
        .and_then(|it| it.get(meta::TRACEPARENT)?.to::<String>().ok());
    parent.and_then(|it| Trace::of(&it)).unwrap_or(own)
}

/// More of a name is not kept for the audit, in bytes.
const LONGEST: usize = 2_048;
