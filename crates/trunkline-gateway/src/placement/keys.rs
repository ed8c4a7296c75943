//! Which instances are one over all replicas, and the names of their claims. Pure.

use std::sync::Arc;

use trunkline_auth::digest::sha256;
use trunkline_transport::http::replicas::ClaimName;

use crate::catalog::plan::{Activation, Affinity, ServerPlan, Strategy};

/// The key under which an instance is one over all replicas; `None` if each replica may have its own. An affinity to
/// sessions needs no claim: a session is at one replica anyway.
pub(crate) fn claimed_key<'a>(plan: &ServerPlan, key: Option<&'a str>) -> Option<&'a str> {
    match plan.strategy {
        Strategy::Singleton => Some(""),
        Strategy::Stateful => key.filter(|it| it.starts_with(['p', 'm'])),
        Strategy::Stateless | Strategy::Persistent => None,
    }
}

/// Whether there may be such a key, whoever calls.
pub(crate) fn may_be_claimed(plan: &ServerPlan) -> bool {
    matches!(plan.strategy, Strategy::Singleton | Strategy::Stateful)
}

/// Whether there is one instance for all.
pub(crate) fn is_shared_by_all(plan: &ServerPlan) -> bool {
    plan.strategy == Strategy::Singleton
}

/// Whether clients of other replicas may use the instances here.
pub(crate) fn has_clients_elsewhere(plan: &ServerPlan) -> bool {
    is_shared_by_all(plan)
        || plan.strategy == Strategy::Stateful && plan.affinity != Affinity::Session
}

/// The plan for a replica that does not run the instance: nothing starts without a call.
pub(super) fn while_elsewhere(plan: &ServerPlan) -> ServerPlan {
    ServerPlan { activation: Activation::OnDemand, min_ready: 0, ..plan.clone() }
}

/// The claim of a key.
pub(super) fn claim_of(server: &str, key: &str) -> ClaimName {
    match key {
        "" => ClaimName::new(&format!("instance/{server}")),
        // Hashed: a key has any length, and may tell who somebody is.
        _ => {
            let digest = sha256(key.as_bytes());
            ClaimName::new(&format!("instance/{server}/{}", &digest["sha256:".len()..]))
        }
    }
}

/// The replica that a claim's record names.
pub(super) fn owner_of(record: &[u8]) -> Option<Arc<str>> {
    #[derive(serde::Deserialize)]
    struct Read {
        owner: Option<String>,
    }
    serde_json::from_slice::<Read>(record).ok()?.owner.map(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(strategy: Strategy, affinity: Affinity) -> ServerPlan {
        ServerPlan { strategy, affinity, ..ServerPlan::stdio("x", "x") }
    }

    #[test]
    fn one_over_all_replicas_are_singletons_and_keys_that_are_no_session() {
        let keyed = plan(Strategy::Stateful, Affinity::Principal);
        for (plan, key, claimed) in [
            (plan(Strategy::Singleton, Affinity::Session), None, Some("")),
            (keyed.clone(), Some("palice"), Some("palice")),
            (keyed.clone(), Some("malice\0\"a\""), Some("malice\0\"a\"")),
            (keyed.clone(), Some("s7"), None),
            (keyed, Some("\0lists"), None),
            (plan(Strategy::Stateless, Affinity::Principal), None, None),
            (plan(Strategy::Persistent, Affinity::Principal), None, None),
        ] {
            assert_eq!(claimed_key(&plan, key), claimed, "{:?} {key:?}", plan.strategy);
            assert!(claimed.is_none() || may_be_claimed(&plan), "{:?}", plan.strategy);
        }
    }

    #[test]
    fn a_claim_says_nothing_of_its_key_but_which_server_it_is_at() {
        assert_eq!(claim_of("db", "").as_str(), "claim/instance/db");
        let alice = claim_of("db", "palice");
        assert!(!alice.as_str().contains("alice") && alice != claim_of("db", "pbob"));
        assert!(alice.as_str().bytes().all(|it| it.is_ascii_graphic()));
    }

    #[test]
    fn the_record_of_a_claim_names_its_holder() {
        let record = br#"{"protocol":1,"owner":"r1","url":"http://a","epoch":3,"session":"x"}"#;
        assert_eq!(owner_of(record).as_deref(), Some("r1"));
        assert_eq!(owner_of(br#"{"protocol":1,"epoch":4}"#), None);
    }

    #[test]
    fn nothing_starts_by_itself_where_the_instance_does_not_live() {
        let mut always = plan(Strategy::Singleton, Affinity::Session);
        (always.activation, always.min_ready) = (Activation::AlwaysOn, 1);
        let elsewhere = while_elsewhere(&always);
        assert_eq!((elsewhere.activation, elsewhere.min_ready), (Activation::OnDemand, 0));
    }
}
