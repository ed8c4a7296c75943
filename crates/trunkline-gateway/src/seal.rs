//! Sealed strings that clients carry: states of calls, cursors and task ids. Only the gateway can read them,
//! and only their owner can use them.

use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use trunkline_auth::seal::Sealer;

/// A state that travels with a call (`requestState`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sealed {
    /// The name of a parked call.
    #[serde(rename = "p")]
    Parked(String),
    /// The server's own state; the server keeps nothing.
    #[serde(rename = "r")]
    /// Also the instance that wrote it: another process may not be able to read it.
    Relayed(Option<String>, u64),
    /// The caller was asked to log in.
    #[serde(rename = "l")]
    Login,
}

/// A task at a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SealedTask {
    /// The server.
    #[serde(rename = "s")]
    pub(crate) server: String,
    /// The instance that began it.
    #[serde(rename = "i")]
    pub(crate) instance: u64,
    /// The server's id of the task.
    #[serde(rename = "t")]
    pub(crate) task: String,
}

/// Seals and opens strings.
pub(crate) struct Seals(Sealer);

impl Seals {
    pub(crate) fn new(sealer: Sealer) -> Self {
        Self(sealer)
    }

    pub(crate) fn state(&self, state: &Sealed, bound_to: &str) -> String {
        self.seal("state", state, bound_to, crate::question::PATIENCE)
    }

    pub(crate) fn open_state(&self, sealed: &str, bound_to: &str) -> Option<Sealed> {
        self.open("state", sealed, bound_to)
    }

    pub(crate) fn task(&self, task: &SealedTask, owner: &str) -> String {
        self.seal("task", task, owner, TASK)
    }

    pub(crate) fn open_task(&self, sealed: &str, owner: &str) -> Option<SealedTask> {
        self.open("task", sealed, owner)
    }

    pub(crate) fn cursor(&self, cursor: &[u8], owner: &str) -> String {
        self.0.seal(cursor, context("cursor", owner).as_bytes(), SystemTime::now() + CURSOR)
    }

    pub(crate) fn open_cursor(&self, sealed: &str, owner: &str) -> Option<Vec<u8>> {
        self.0.open(sealed, context("cursor", owner).as_bytes(), SystemTime::now()).ok()
    }

    fn seal(&self, kind: &str, what: &impl Serialize, owner: &str, for_: Duration) -> String {
        let plain = serde_json::to_vec(what).expect("our own types can be written");
        self.0.seal(&plain, context(kind, owner).as_bytes(), SystemTime::now() + for_)
    }

    fn open<T: DeserializeOwned>(&self, kind: &str, sealed: &str, owner: &str) -> Option<T> {
        let plain = self.0.open(sealed, context(kind, owner).as_bytes(), SystemTime::now()).ok()?;
        serde_json::from_slice(&plain).ok()
    }
}

/// Domain separation: a string of one kind is invalid as another.
fn context(kind: &str, owner: &str) -> String {
    format!("trunkline gateway\0{kind}\0{owner}")
}

const TASK: Duration = Duration::from_secs(7 * 24 * 3600);
const CURSOR: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_string_is_of_use_to_its_owner_and_for_its_purpose_alone() {
        let seals = Seals::new(Sealer::random());
        let task = SealedTask { server: "time".to_owned(), instance: 7, task: "t-1".to_owned() };
        let sealed = seals.task(&task, "alice");
        assert_eq!(seals.open_task(&sealed, "alice"), Some(task));
        assert_eq!(seals.open_task(&sealed, "bob"), None);
        assert_eq!(seals.open_state(&sealed, "alice"), None);
        assert_eq!(seals.open_cursor(&sealed, "alice"), None);
        let others = Seals::new(Sealer::random());
        assert_eq!(others.open_task(&sealed, "alice"), None);
    }
}
