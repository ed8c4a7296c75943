//! Sealed strings that clients carry: states of calls, cursors and task ids. Only the gateway can read them,
//! and only their owner can use them.
//!
//! Where a gateway has replicas, a state of a call that one of them holds begins with `@REPLICA:`, so that any
//! of them can hand the request on before it is understood. Who changes that reaches a replica that knows
//! nothing of the call.

use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use trunkline_auth::seal::Sealer;

use crate::fleet::Fleet;

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
    /// The replica that holds it, if there are several.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(crate) replica: Option<String>,
}

/// Seals and opens strings.
pub(crate) struct Seals {
    sealer: Sealer,
    /// This replica, if there are several.
    me: Option<String>,
}

impl Seals {
    /// Strings that this process alone opens.
    pub(crate) fn alone() -> Self {
        Self { sealer: Sealer::random(), me: None }
    }

    /// Strings that all replicas open.
    pub(crate) fn shared(fleet: &Fleet) -> Self {
        Self { sealer: fleet.sealer(), me: Some(fleet.me().to_owned()) }
    }

    /// This replica, if there are several.
    pub(crate) fn me(&self) -> Option<&str> {
        self.me.as_deref()
    }

    pub(crate) fn state(&self, state: &Sealed, bound_to: &str) -> String {
        let sealed = self.seal("state", state, bound_to, crate::question::PATIENCE);
        match (&self.me, state) {
            (Some(me), Sealed::Parked(_) | Sealed::Relayed(Some(_), _)) => {
                format!("@{me}:{sealed}")
            }
            _ => sealed,
        }
    }

    pub(crate) fn open_state(&self, sealed: &str, bound_to: &str) -> Option<Sealed> {
        let sealed = holder_and_state(sealed).map_or(sealed, |(_, state)| state);
        self.open("state", sealed, bound_to)
    }

    /// The other replica that holds the call of a state, if one does.
    pub(crate) fn holder<'a>(&self, sealed: &'a str) -> Option<&'a str> {
        let (holder, _) = holder_and_state(sealed)?;
        self.me.as_deref().is_some_and(|it| it != holder).then_some(holder)
    }

    pub(crate) fn task(&self, task: &SealedTask, owner: &str) -> String {
        self.seal("task", task, owner, TASK)
    }

    pub(crate) fn open_task(&self, sealed: &str, owner: &str) -> Option<SealedTask> {
        self.open("task", sealed, owner)
    }

    pub(crate) fn cursor(&self, cursor: &[u8], owner: &str) -> String {
        self.sealer.seal(cursor, context("cursor", owner).as_bytes(), SystemTime::now() + CURSOR)
    }

    pub(crate) fn open_cursor(&self, sealed: &str, owner: &str) -> Option<Vec<u8>> {
        self.sealer.open(sealed, context("cursor", owner).as_bytes(), SystemTime::now()).ok()
    }

    fn seal(&self, kind: &str, what: &impl Serialize, owner: &str, for_: Duration) -> String {
        let plain = serde_json::to_vec(what).expect("our own types can be written");
        self.sealer.seal(&plain, context(kind, owner).as_bytes(), SystemTime::now() + for_)
    }

    fn open<T: DeserializeOwned>(&self, kind: &str, sealed: &str, owner: &str) -> Option<T> {
        let context = context(kind, owner);
        let plain = self.sealer.open(sealed, context.as_bytes(), SystemTime::now()).ok()?;
        serde_json::from_slice(&plain).ok()
    }
}

/// The replica that a state begins with, and the rest.
fn holder_and_state(sealed: &str) -> Option<(&str, &str)> {
    sealed.strip_prefix('@')?.split_once(':')
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
        let seals = Seals::alone();
        let (server, task) = ("time".to_owned(), "t-1".to_owned());
        let task = SealedTask { server, instance: 7, task, replica: None };
        let sealed = seals.task(&task, "alice");
        assert_eq!(seals.open_task(&sealed, "alice"), Some(task));
        assert_eq!(seals.open_task(&sealed, "bob"), None);
        assert_eq!(seals.open_state(&sealed, "alice"), None);
        assert_eq!(seals.open_cursor(&sealed, "alice"), None);
        let others = Seals::alone();
        assert_eq!(others.open_task(&sealed, "alice"), None);
    }

    #[test]
    fn a_state_names_the_replica_that_holds_its_call() {
        let store = std::sync::Arc::new(trunkline_store::Memory::default());
        let [a, b] =
            ["a", "b"].map(|me| Seals::shared(&Fleet::new(store.clone(), vec![[7; 32]], me)));
        let parked = Sealed::Parked("p".to_owned());
        let sealed = a.state(&parked, "ann");
        assert_eq!((a.holder(&sealed), b.holder(&sealed)), (None, Some("a")));
        assert_eq!(b.open_state(&sealed, "ann"), Some(parked));
        let login = a.state(&Sealed::Login, "ann");
        assert_eq!(b.holder(&login), None, "any replica goes on with it");
        assert_eq!(Seals::alone().holder(&sealed), None);
    }
}
