//! `traceparent`, `tracestate` and `baggage` of a request's `_meta` ⇄ a [`TraceContext`].
//!
//! The formats are those of W3C Trace Context and W3C Baggage; the names have no prefix in any
//! revision.

use std::fmt;
use std::str::FromStr;

use trunkline_auth::tag::random_name;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::trace::{Traceparent, is_tracestate};

/// The trace that a call belongs to, and its baggage. Empty if the caller sent none.
///
/// A handler takes it as a parameter or reads [`Context::trace`](crate::Context::trace), and
/// propagates it with [`Call::trace`](crate::client::Call::trace):
///
/// ```
/// use trunkline::client::Client;
/// use trunkline::{Server, State, ToolError, TraceContext, tool};
///
/// async fn forecast(trace: TraceContext, inner: State<Client>) -> Result<String, ToolError> {
///     let result = inner.call_tool("weather", ()).trace(&trace.child()).await?;
///     Ok(format!("{} blocks", result.content.len()))
/// }
/// # let _ = tool("forecast", forecast);
/// ```
///
/// A peer's values are validated: ids are lower-case hex and not zero. An invalid or overlong
/// member counts as absent.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TraceContext {
    ids: Option<Traceparent>,
    state: Option<Box<str>>,
    baggage: Option<Box<str>>,
}

impl TraceContext {
    /// A new trace with new ids.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// let trace = TraceContext::begin(true);
    /// assert!(trace.is_sampled() && !trace.is_none());
    /// assert_ne!(trace, TraceContext::begin(true));
    /// ```
    pub fn begin(sampled: bool) -> Self {
        let flags = if sampled { SAMPLED | RANDOM } else { RANDOM };
        let ids = Traceparent { trace: random(), span: random_span(), flags };
        Self { ids: Some(ids), ..Self::default() }
    }

    /// Reads the three members from any carrier, such as that of a propagator.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// # use std::collections::HashMap;
    /// let sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let carrier = HashMap::from([("traceparent", sent)]);
    /// let trace = TraceContext::read(|name| carrier.get(name).copied());
    /// assert_eq!(trace.traceparent().as_deref(), Some(sent));
    /// ```
    pub fn read<'a>(member: impl Fn(&str) -> Option<&'a str>) -> Self {
        let ids = member(TRACEPARENT).and_then(Traceparent::parse);
        // `tracestate` without a valid `traceparent` is ignored.
        let state = member(TRACESTATE).filter(|it| ids.is_some() && is_tracestate(it));
        let baggage = member(BAGGAGE).filter(|it| is_text(it, LONGEST_BAGGAGE));
        Self { ids, state: state.map(Into::into), baggage: baggage.map(Into::into) }
    }

    /// The members to send, as names and values.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// let trace = TraceContext::begin(false).with_baggage("tenant=blue");
    /// let names: Vec<_> = trace.members().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["traceparent", "baggage"]);
    /// ```
    pub fn members(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        [
            (TRACEPARENT, self.traceparent()),
            (TRACESTATE, self.tracestate().map(str::to_owned)),
            (BAGGAGE, self.baggage().map(str::to_owned)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// Whether the caller sent no valid trace context.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// assert!(TraceContext::default().is_none());
    /// ```
    pub fn is_none(&self) -> bool {
        self.ids.is_none() && self.baggage.is_none()
    }

    /// The same trace with a new span id, for a call made on behalf of this one. Without a trace,
    /// it begins one that is not sampled.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// let trace = TraceContext::begin(true);
    /// let child = trace.child();
    /// assert_eq!(child.trace_id(), trace.trace_id());
    /// assert_ne!(child.span_id(), trace.span_id());
    /// ```
    #[must_use]
    pub fn child(&self) -> Self {
        let ids = match self.ids {
            Some(ids) => Traceparent { span: random_span(), ..ids },
            None => Traceparent { trace: random(), span: random_span(), flags: RANDOM },
        };
        Self { ids: Some(ids), ..self.clone() }
    }

    /// The `traceparent` to send.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// assert_eq!(TraceContext::begin(true).traceparent().map(|it| it.len()), Some(55));
    /// ```
    pub fn traceparent(&self) -> Option<String> {
        Some(self.ids?.to_string())
    }

    /// The trace id: 32 hex digits.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// let trace: TraceContext =
    ///     "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse()?;
    /// assert_eq!(trace.trace_id().as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    /// # Ok::<(), trunkline::observe::BadTraceparent>(())
    /// ```
    pub fn trace_id(&self) -> Option<String> {
        self.ids.map(|it| format!("{:032x}", it.trace))
    }

    /// The id of the caller's span: 16 hex digits.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// let trace: TraceContext =
    ///     "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse()?;
    /// assert_eq!(trace.span_id().as_deref(), Some("00f067aa0ba902b7"));
    /// # Ok::<(), trunkline::observe::BadTraceparent>(())
    /// ```
    pub fn span_id(&self) -> Option<String> {
        self.ids.map(|it| format!("{:016x}", it.span))
    }

    /// Whether the sampled flag is set: the caller may have recorded its part.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// assert!(!TraceContext::begin(false).is_sampled());
    /// ```
    pub fn is_sampled(&self) -> bool {
        self.ids.is_some_and(|it| it.is_sampled())
    }

    /// The vendor-specific state of the trace.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// let trace = TraceContext::begin(true).with_tracestate("rojo=1");
    /// assert_eq!(trace.tracestate(), Some("rojo=1"));
    /// ```
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The application's baggage. Written by the caller: never base a decision on it.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// assert_eq!(TraceContext::begin(true).baggage(), None);
    /// ```
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Replaces `tracestate`; removes it if the new one is invalid or too long.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// let trace = TraceContext::begin(true).with_tracestate(&"x".repeat(10_000));
    /// assert_eq!(trace.tracestate(), None);
    /// ```
    #[must_use]
    pub fn with_tracestate(mut self, state: &str) -> Self {
        self.state = Some(state).filter(|it| is_tracestate(it)).map(Into::into);
        self
    }

    /// Replaces `baggage`; removes it if the new one is invalid or too long.
    ///
    /// ```
    /// # use trunkline::TraceContext;
    /// let trace = TraceContext::default().with_baggage("tenant=blue");
    /// assert_eq!(trace.baggage(), Some("tenant=blue"));
    /// ```
    #[must_use]
    pub fn with_baggage(mut self, baggage: &str) -> Self {
        self.baggage = Some(baggage).filter(|it| is_text(it, LONGEST_BAGGAGE)).map(Into::into);
        self
    }

    /// The trace context in the `_meta` of a request.
    pub(crate) fn of_meta(meta: Option<&Json>) -> Self {
        let Some(meta) = meta.and_then(|it| Object::parse(it.get()).ok()) else {
            return Self::default();
        };
        let [parent, state, baggage] = [TRACEPARENT, TRACESTATE, BAGGAGE]
            .map(|name| meta.get(name).and_then(|it| it.to::<String>().ok()));
        Self::read(|name| match name {
            TRACEPARENT => parent.as_deref(),
            TRACESTATE => state.as_deref(),
            _ => baggage.as_deref(),
        })
    }

    /// Adds the members to the `_meta` of a request, and keeps those that are there.
    pub(crate) fn write(&self, meta: &mut Object) {
        for (name, value) in self.members() {
            if meta.get(name).is_none() {
                meta.set(name, Json::string(&value));
            }
        }
    }
}

/// From a `traceparent` only.
impl FromStr for TraceContext {
    type Err = BadTraceparent;

    fn from_str(text: &str) -> Result<Self, BadTraceparent> {
        let ids = Traceparent::parse(text).ok_or(BadTraceparent)?;
        Ok(Self { ids: Some(ids), ..Self::default() })
    }
}

/// Omits the baggage, which may contain personal data.
impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceContext")
            .field("traceparent", &self.traceparent())
            .field("tracestate", &self.state)
            .field("has_baggage", &self.baggage.is_some())
            .finish()
    }
}

/// The text is not a `traceparent`.
///
/// ```
/// # use trunkline::TraceContext;
/// let error = "00-4BF9".parse::<TraceContext>().unwrap_err();
/// assert!(error.to_string().starts_with("A `traceparent` is"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTraceparent;

impl fmt::Display for BadTraceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "A `traceparent` is `00-`, 32 digits, `-`, 16 digits, `-` and 2 digits, in lower-case \
             hex, with neither id zero.",
        )
    }
}

impl std::error::Error for BadTraceparent {}

fn is_text(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len()) && text.bytes().all(|it| (0x20..0x7f).contains(&it))
}

fn random() -> u128 {
    loop {
        match u128::from_str_radix(&random_name(), 16) {
            Ok(it) if it != 0 => return it,
            _ => {}
        }
    }
}

fn random_span() -> u64 {
    loop {
        match random() as u64 {
            0 => {}
            it => return it,
        }
    }
}

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
const BAGGAGE: &str = "baggage";
const SAMPLED: u8 = Traceparent::SAMPLED;
const RANDOM: u8 = Traceparent::RANDOM;
const LONGEST_BAGGAGE: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(parent: &str, state: &str, baggage: &str) -> TraceContext {
        let meta = serde_json::json!({
            "traceparent": parent, "tracestate": state, "baggage": baggage, "progressToken": 1,
        });
        TraceContext::of_meta(Some(&Json::of(&meta)))
    }

    #[test]
    fn what_was_sent_is_read_and_sent_again() {
        let trace = of(GOOD, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "userId=alice");
        assert_eq!(trace.traceparent().as_deref(), Some(GOOD));
        assert!(trace.is_sampled());
        let mut meta = Object::default();
        trace.write(&mut meta);
        assert_eq!(TraceContext::of_meta(Some(&meta.to_json())), trace);
    }

    #[test]
    fn a_traceparent_that_is_wrong_counts_as_none() {
        for bad in [
            "",
            "00",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "zz-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0é",
        ] {
            let trace = of(bad, "rojo=1", "");
            assert!(trace.is_none() && trace.tracestate().is_none(), "{bad}");
            assert!(bad.parse::<TraceContext>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_later_version_is_read_like_this_one() {
        for rest in ["", "-what-comes-then"] {
            let later = format!("01{}{rest}", &GOOD[2..]);
            let trace: TraceContext = later.parse().unwrap();
            assert_eq!(trace.traceparent().as_deref(), Some(GOOD));
        }
    }

    #[test]
    fn flags_that_nobody_knows_are_not_handed_on() {
        let trace: TraceContext = GOOD.replace("-01", "-ff").parse().unwrap();
        assert_eq!(trace.traceparent(), Some(GOOD.replace("-01", "-03")));
    }

    #[test]
    fn what_is_too_long_or_no_text_is_dropped() {
        let many = vec!["a=1"; 33].join(",");
        for bad in ["x".repeat(513), "a=\n".to_owned(), "a=é".to_owned(), many, String::new()] {
            assert_eq!(of(GOOD, &bad, "").tracestate(), None, "{bad}");
        }
        assert_eq!(of(GOOD, "", &format!("a={}", "x".repeat(9000))).baggage(), None);
        assert_eq!(of("", "", "a=1").baggage(), Some("a=1"));
    }

    #[test]
    fn members_that_are_no_strings_are_not_read() {
        let meta = Json::of(&serde_json::json!({ "traceparent": 1, "baggage": ["a=1"] }));
        assert!(TraceContext::of_meta(Some(&meta)).is_none());
        assert!(TraceContext::of_meta(None).is_none());
    }

    #[test]
    fn a_child_stays_in_the_trace() {
        let trace = of(GOOD, "rojo=1", "a=1");
        let child = trace.child();
        assert_eq!(child.trace_id(), trace.trace_id());
        assert_ne!(child.span_id(), trace.span_id());
        assert_eq!((child.tracestate(), child.baggage()), (Some("rojo=1"), Some("a=1")));
        let first = TraceContext::default().child();
        assert!(!first.is_none() && !first.is_sampled());
    }

    #[test]
    fn debug_does_not_show_baggage() {
        let shown = format!("{:?}", of(GOOD, "", "userId=alice"));
        assert!(shown.contains("4bf92f35") && !shown.contains("alice"), "{shown}");
    }
}
