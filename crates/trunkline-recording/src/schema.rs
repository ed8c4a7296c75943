//! A JSON Schema → where its secrets are: `writeOnly`, or `format: password`.

use crate::tree::Tree;

/// The way to a secret inside a value.
pub(crate) type SecretPath = Vec<Segment>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Member(String),
    /// Every item of a list, or every member of an object that its schema does not name.
    Every,
}

/// The ways to all secrets of values of this schema.
pub(crate) fn secrets(schema: &Tree) -> Vec<SecretPath> {
    let mut found = Vec::new();
    look(schema, schema, &mut Vec::new(), &mut found, DEPTH);
    found
}

/// Calls `mask` with each value at the end of one of the ways.
pub(crate) fn visit(tree: &mut Tree, path: &[Segment], mask: &mut dyn FnMut(&mut Tree)) {
    let Some((first, rest)) = path.split_first() else { return mask(tree) };
    match (first, tree) {
        (Segment::Member(name), tree @ Tree::Object(_)) => {
            if let Some(value) = tree.get_mut(name) {
                visit(value, rest, mask);
            }
        }
        (Segment::Every, Tree::List(items)) => {
            items.iter_mut().for_each(|it| visit(it, rest, mask));
        }
        (Segment::Every, Tree::Object(members)) => {
            members.iter_mut().for_each(|(_, it)| visit(it, rest, mask));
        }
        _ => {}
    }
}

fn look(
    schema: &Tree,
    root: &Tree,
    path: &mut SecretPath,
    found: &mut Vec<SecretPath>,
    depth: usize,
) {
    if depth == 0 || found.len() >= MOST {
        return;
    }
    let is_secret = schema.get("writeOnly") == Some(&Tree::Bool(true))
        || schema.get("format").and_then(Tree::as_text) == Some("password");
    if is_secret {
        if !found.contains(path) {
            found.push(path.clone());
        }
        return;
    }
    let mut below = |segment: Segment, schema: &Tree, path: &mut SecretPath| {
        path.push(segment);
        look(schema, root, path, found, depth - 1);
        path.pop();
    };
    for (name, property) in schema.get("properties").map(Tree::members).unwrap_or_default() {
        below(Segment::Member(name.clone()), property, path);
    }
    for keyword in ["items", "additionalProperties", "prefixItems"] {
        match schema.get(keyword) {
            Some(schema @ Tree::Object(_)) => below(Segment::Every, schema, path),
            Some(Tree::List(all)) => all.iter().for_each(|it| below(Segment::Every, it, path)),
            _ => {}
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for schema in schema.get(keyword).map(Tree::items).unwrap_or_default() {
            look(schema, root, path, found, depth - 1);
        }
    }
    for keyword in ["if", "then", "else"] {
        if let Some(schema) = schema.get(keyword) {
            look(schema, root, path, found, depth - 1);
        }
    }
    let reference = schema.get("$ref").and_then(Tree::as_text);
    if let Some(schema) = reference.and_then(|it| resolve(it, root)) {
        look(schema, root, path, found, depth - 1);
    }
}

/// The schema that a reference within this document names.
fn resolve<'t>(reference: &str, root: &'t Tree) -> Option<&'t Tree> {
    let pointer = reference.strip_prefix('#')?;
    pointer
        .split('/')
        .skip(1)
        .try_fold(root, |tree, name| tree.get(&name.replace("~1", "/").replace("~0", "~")))
}

/// How deep a schema is looked through. One that refers to itself has no end.
const DEPTH: usize = 16;
/// How many secrets one schema may have.
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, value: &str, expected: &str) {
        let mut value = Tree::parse(value).unwrap();
        for path in secrets(&Tree::parse(schema).unwrap()) {
            visit(&mut value, &path, &mut |it| *it = Tree::Null);
        }
        assert_eq!(value.to_text(), expected);
    }

    #[test]
    fn marked_members_are_found_wherever_the_schema_has_them() {
        let secret = r#"{"type":"string","format":"password"}"#;
        check(
            &format!(r#"{{"properties":{{"a":{secret},"b":{{}}}}}}"#),
            r#"{"a":"x","b":"y"}"#,
            r#"{"a":null,"b":"y"}"#,
        );
        check(
            &format!(
                r##"{{"properties":{{"list":{{"items":{{"$ref":"#/$defs/S"}}}}}},"$defs":{{"S":{secret}}}}}"##
            ),
            r#"{"list":["x","y"]}"#,
            r#"{"list":[null,null]}"#,
        );
        check(
            r#"{"anyOf":[{"properties":{"a":{"writeOnly":true}}},{"properties":{"b":{"additionalProperties":{"writeOnly":true}}}}]}"#,
            r#"{"a":{"c":1},"b":{"d":2},"e":3}"#,
            r#"{"a":null,"b":{"d":null},"e":3}"#,
        );
        check(
            r##"{"properties":{"next":{"$ref":"#"},"a":{"writeOnly":true}}}"##,
            r#"{"next":{"next":{"a":1}}}"#,
            r#"{"next":{"next":{"a":null}}}"#,
        );
    }
}
