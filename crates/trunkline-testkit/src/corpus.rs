//! Messages of our own: a definition and a revision into what it looks like on the wire.
//!
//! `corpus.txt` holds at least one for every definition of every revision. The words and data are
//! ours, so that a clone needs nothing but itself.

use trunkline_wire::revision::{Revision, Revisions};

/// One message and what it is an example of.
#[derive(Clone, Debug)]
pub struct Example {
    /// The revision it is right in.
    pub revision: Revision,
    /// The name of the definition it keeps to.
    pub definition: &'static str,
    /// The message, as JSON.
    pub text: String,
}

/// Every example, once for each revision it is right in.
pub fn all() -> Vec<Example> {
    let mut examples = Vec::new();
    let mut window = None;
    for line in CORPUS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix("== ") {
            let (first, last) = heading.split_once("..").expect("a heading is FIRST..LAST");
            let named = |text| Revision::parse(text).expect("a heading names revisions");
            window = Some(Revisions::range(named(first), named(last)));
            continue;
        }
        let (definition, text) = line.split_once(' ').expect("a line is a name and a message");
        let window = window.expect("a heading comes before the first line");
        examples.extend(window.iter().map(|revision| Example {
            revision,
            definition,
            text: text.replace("$REVISION", revision.as_str()),
        }));
    }
    examples
}

const CORPUS: &str = include_str!("../corpus.txt");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle;
    use crate::rewrite::{UNTYPED, rewrite};
    use serde_json::Value;
    use std::collections::BTreeSet;
    use trunkline_wire::json::Json;

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|why| panic!("{why} in {text}"))
    }

    #[test]
    fn every_definition_of_every_revision_has_an_example() {
        let examples = all();
        for revision in Revision::ALL {
            let of_it = examples.iter().filter(|it| it.revision == revision);
            let shown: BTreeSet<&str> = of_it.map(|it| it.definition).collect();
            let defined: BTreeSet<&str> = oracle::definitions(revision).collect();
            let missing: Vec<_> = defined.difference(&shown).collect();
            let unknown: Vec<_> = shown.difference(&defined).collect();
            assert!(missing.is_empty(), "{revision}: nothing shows {missing:?}");
            assert!(unknown.is_empty(), "{revision}: there is no {unknown:?}");
        }
    }

    #[test]
    fn every_example_is_what_its_definition_describes() {
        let check = |it: &Example| oracle::check(&it.text, it.revision, it.definition).err();
        let wrong: Vec<_> = all().iter().filter_map(check).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn an_example_without_a_required_member_is_refused() {
        let mut refused = 0;
        for it in all() {
            let whole = value(&it.text);
            for (place, name) in oracle::required(it.revision, it.definition, &whole) {
                let mut less = whole.clone();
                let object = less.pointer_mut(&place).and_then(Value::as_object_mut);
                object.expect("the place is an object").remove(&name);
                let verdict = oracle::check(&less.to_string(), it.revision, it.definition);
                assert!(
                    verdict.is_err(),
                    "{} in {} may lack `{place}/{name}`: {less}",
                    it.definition,
                    it.revision
                );
                refused += 1;
            }
        }
        assert!(refused > 2_000, "only {refused} members were taken away");
    }

    #[test]
    fn every_example_comes_out_of_the_codec_as_it_went_in() {
        let mut wrong = Vec::new();
        for it in all() {
            let json = Json::parse(it.text.as_str()).unwrap();
            let name = it.definition;
            match rewrite(it.revision, name, &json) {
                Some(written) => {
                    assert!(!UNTYPED.contains(&name), "`{name}` has a type; strike it out.");
                    if value(written.get()) != value(&it.text) {
                        let revision = it.revision;
                        wrong.push(format!("{name} in {revision}:\n  in  {json}\n  out {written}"));
                    }
                }
                None => assert!(UNTYPED.contains(&name), "Nothing reads `{name}`: {json}"),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_has_no_type_is_still_defined() {
        let defined: BTreeSet<&str> =
            Revision::ALL.into_iter().flat_map(oracle::definitions).collect();
        for name in UNTYPED {
            assert!(defined.contains(name), "No revision has `{name}`; strike it out.");
        }
    }
}
