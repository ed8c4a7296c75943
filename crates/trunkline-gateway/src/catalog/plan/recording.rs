//! What is recorded of calls for operators.

use std::fmt;
use std::path::PathBuf;

/// How calls are recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordingPlan {
    /// Whether messages are kept, beside what is always known of a call.
    pub payloads: Payloads,
    /// Of which share of all calls messages are kept, from 0 to 1.
    pub sample: f64,
    /// The bound on bytes in memory.
    pub keep: usize,
    /// A file for the messages, as JSON lines.
    pub file: Option<PathBuf>,
    /// The names of members that are masked.
    pub redact: Vec<String>,
}

impl Default for RecordingPlan {
    fn default() -> Self {
        let (payloads, file, redact) = (Payloads::default(), None, Vec::new());
        Self { payloads, sample: 1.0, keep: 64 << 20, file, redact }
    }
}

/// When messages are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payloads {
    /// Never.
    Never,
    /// If only this machine can reach the gateway.
    #[default]
    Loopback,
    /// Always.
    Always,
}

impl RecordingPlan {
    /// Whether a gateway that listens here keeps messages.
    pub(crate) fn keeps_payloads(&self, listen: &str) -> bool {
        match self.payloads {
            Payloads::Never => false,
            Payloads::Loopback => crate::catalog::is_local(listen),
            Payloads::Always => true,
        }
    }
}

/// What `${file:…}` and `gateway.envFile` filled into a catalog: whatever it is used for, it may be a secret.
#[derive(Clone, Default, PartialEq)]
pub struct FilledIn(pub(crate) Vec<String>);

impl fmt::Debug for FilledIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} hidden>", self.0.len())
    }
}
