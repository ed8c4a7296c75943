//! Which replica was last seen to own which session, for sessions of others. Bounded: what was not asked for lately
//! is forgotten.

use std::collections::HashMap;

use trunkline_transport::http::replicas::ById;

use super::message::Name;

/// What is known of the owner of another replica's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The record named this replica.
    At(Name),
    /// Not this one, or it is not there: the record must be read.
    Not(Name),
}

/// A cache in two halves: when the younger is full it becomes the older, and the older is dropped.
#[derive(Debug)]
pub(super) struct Owners {
    young: HashMap<Name, Known, ById>,
    old: HashMap<Name, Known, ById>,
    most: usize,
}

impl Owners {
    pub(super) fn new(most: usize) -> Self {
        Self { young: HashMap::default(), old: HashMap::default(), most: most.max(2) }
    }

    pub(super) fn get(&mut self, session: &str) -> Option<&Known> {
        if !self.young.contains_key(session) {
            let (session, known) = self.old.remove_entry(session)?;
            self.insert(session, known);
        }
        self.young.get(session)
    }

    pub(super) fn insert(&mut self, session: Name, known: Known) {
        if self.young.len() >= self.most / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&session);
        self.young.insert(session, known);
    }

    pub(super) fn remove(&mut self, session: &Name) {
        self.young.remove(session);
        self.old.remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_bounded() {
        let mut owners = Owners::new(10);
        let name = |number: usize| Name::from(format!("s{number}"));
        owners.insert(name(0), Known::At("a".into()));
        for number in 1..1_000 {
            owners.insert(name(number), Known::Not("b".into()));
            assert_eq!(owners.get(&name(0)), Some(&Known::At("a".into())));
            assert!(owners.young.len() + owners.old.len() <= 10);
        }
        assert_eq!(owners.get(&name(1)), None);
        owners.remove(&name(0));
        assert_eq!(owners.get(&name(0)), None);
    }
}
