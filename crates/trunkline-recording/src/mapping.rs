//! Values that a server made up: as they were recorded → as they are now.

use std::collections::HashMap;

use crate::normal::{Zone, is_volatile};
use crate::tree::Tree;

/// What the server under test calls the things that the recording knows by another name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapping {
    values: HashMap<String, String>,
    /// The names of questions in `inputRequests`.
    questions: HashMap<String, String>,
}

impl Mapping {
    /// Learns from two answers to the same request.
    pub(crate) fn learn(&mut self, recorded: &Tree, live: &Tree) {
        if let (Some(recorded), Some(live)) =
            (recorded.get("inputRequests"), live.get("inputRequests"))
        {
            for ((before, _), (now, _)) in recorded.members().iter().zip(live.members()) {
                self.questions.insert(before.clone(), now.clone());
            }
        }
        self.walk(recorded, live, Zone::Protocol);
    }

    /// Replaces what was recorded by what it is now.
    pub(crate) fn apply(&self, params: &mut Tree) {
        if let Some(Tree::Object(answers)) = params.get_mut("inputResponses") {
            for (name, _) in answers {
                if let Some(now) = self.questions.get(name) {
                    name.clone_from(now);
                }
            }
        }
        self.replace(params, None);
    }

    fn walk(&mut self, recorded: &Tree, live: &Tree, zone: Zone) {
        match (recorded, live) {
            (Tree::List(recorded), Tree::List(live)) => {
                recorded.iter().zip(live).for_each(|(one, other)| self.walk(one, other, zone));
            }
            (Tree::Object(members), Tree::Object(_)) => {
                for (name, value) in members {
                    let Some(now) = live.get(name) else { continue };
                    if let (Tree::Text(before), Tree::Text(now)) = (value, now)
                        && zone == Zone::Protocol
                        && is_volatile(name)
                        && before != now
                    {
                        self.values.insert(before.clone(), now.clone());
                    }
                    self.walk(value, now, zone.inside(name, value));
                }
            }
            _ => {}
        }
    }

    fn replace(&self, tree: &mut Tree, name: Option<&str>) {
        match tree {
            Tree::Text(text) => {
                // A short value is only replaced where the protocol has such a value.
                let is_meant = name.is_some_and(is_volatile) || text.len() >= UNMISTAKABLE;
                if let Some(now) = self.values.get(text).filter(|_| is_meant) {
                    text.clone_from(now);
                }
            }
            Tree::List(items) => items.iter_mut().for_each(|it| self.replace(it, name)),
            Tree::Object(members) => {
                members.iter_mut().for_each(|(name, value)| self.replace(value, Some(name)));
            }
            _ => {}
        }
    }
}

/// From this length on a text is no coincidence.
const UNMISTAKABLE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_tasks_and_questions_are_mapped() {
        let tree = |text: &str| Tree::parse(text).unwrap();
        let mut mapping = Mapping::default();
        mapping.learn(
            &tree(r#"{"requestState":"s1","inputRequests":{"q1":{}},"task":{"taskId":"t1"}}"#),
            &tree(r#"{"requestState":"s2","inputRequests":{"q9":{}},"task":{"taskId":"t2"}}"#),
        );
        let mut params = tree(
            r#"{"requestState":"s1","inputResponses":{"q1":{}},"arguments":{"a":"t1"},"taskId":"t1"}"#,
        );
        mapping.apply(&mut params);
        assert_eq!(
            params.to_text(),
            r#"{"requestState":"s2","inputResponses":{"q9":{}},"arguments":{"a":"t1"},"taskId":"t2"}"#
        );
    }
}
