//! The notifications a server sends about a call.

use std::time::Instant;

use trunkline_wire::jsonrpc::{Message, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::{LogLevel, LogMessage, Progress};
use trunkline_wire::revision::Era;

use crate::pending::OpenCall;

/// A progress notification for `call`, if its caller asked for progress and the value has increased.
pub(super) fn progress<T>(
    call: &mut OpenCall<T>,
    progress: Progress,
    now: Instant,
) -> Option<Message> {
    if let Some(clock) = &mut call.clock {
        clock.sign_of_life(now);
    }
    let sink = call.progress.as_mut()?;
    // 2025-11-25 §Progress: the value must increase with each notification.
    if !progress.progress.is_finite() || progress.progress <= sink.reached {
        return None;
    }
    (sink.reached, sink.sent) = (progress.progress, Some(now));
    let params = progress.to_params(sink.token.clone());
    Some(Message::notification(Method::Progress, Params::Object(params)))
}

/// A log notification for `call`, if it passes the caller's level.
pub(super) fn log<T>(
    call: &OpenCall<T>,
    session: Option<LogLevel>,
    log: LogMessage,
) -> Option<Message> {
    let level = match call.revision.era() {
        Era::Stateful => session,
        Era::Stateless => call.log_level,
    };
    (log.level >= level?).then(|| Message::notification(Method::Message, Params::of(&log)))
}
