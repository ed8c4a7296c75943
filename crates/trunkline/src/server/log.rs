//! Writes warnings and errors to stderr, for a program without a subscriber of its own.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Writes warnings and errors to stderr, unless the program has a subscriber.
pub(super) fn to_stderr() {
    // Fails if the program has a subscriber, which is the better log.
    let _ = tracing::subscriber::set_global_default(Stderr);
}

struct Stderr;

impl Subscriber for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    #[allow(clippy::print_stderr)]
    fn event(&self, event: &Event<'_>) {
        eprintln!("{}", line(event.metadata().level(), |fields| event.record(fields)));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// One event in one line: what happened, then the facts.
fn line(level: &Level, record: impl FnOnce(&mut Fields)) -> String {
    let mut fields = Fields::default();
    record(&mut fields);
    let level = level.as_str().to_lowercase();
    format!("{level}: {}{}", fields.message, fields.others)
}

#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.others, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Keeps what would be written.
    struct Kept(&'static Mutex<Vec<String>>);

    impl Subscriber for Kept {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            Stderr.enabled(metadata)
        }

        fn new_span(&self, attributes: &Attributes<'_>) -> Id {
            Stderr.new_span(attributes)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let line = line(event.metadata().level(), |fields| event.record(fields));
            self.0.lock().unwrap().push(line);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn causes_are_told_and_chatter_is_not() {
        static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
        tracing::subscriber::with_default(Kept(&LINES), || {
            tracing::warn!(causes = "db-7 is down", "a handler failed");
            tracing::info!("nothing of interest");
        });
        assert_eq!(*LINES.lock().unwrap(), ["warn: a handler failed causes=\"db-7 is down\""]);
    }
}
