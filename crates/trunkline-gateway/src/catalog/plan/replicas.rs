//! How this gateway is one of several.

use std::fmt;
use std::path::PathBuf;

/// How replicas find and trust each other.
#[derive(Clone, PartialEq, Eq)]
pub struct ReplicasPlan {
    /// The address of the internal listener, for other replicas alone.
    pub listen: String,
    /// The URL at which other replicas reach that listener; `None` for its address.
    pub advertise: Option<String>,
    /// The keys that all replicas share: the first seals, all open. At least one.
    pub keys: Vec<[u8; 32]>,
    /// PEM files with certificates to trust at other replicas, beside the public roots.
    pub roots: Vec<PathBuf>,
    /// What happens to new sessions while the store is away.
    pub when_away: WhenAway,
    /// Whether the internal listener may be beyond loopback without TLS.
    pub insecure: bool,
}

/// What happens to new sessions while the store is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenAway {
    /// They are refused; the client tries again.
    #[default]
    Refuse,
    /// They live in this replica alone and end with it.
    Local,
}

impl fmt::Debug for ReplicasPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicasPlan")
            .field("listen", &self.listen)
            .field("advertise", &self.advertise)
            .field("roots", &self.roots)
            .field("when_away", &self.when_away)
            .field("insecure", &self.insecure)
            .finish_non_exhaustive()
    }
}
