use std::collections::BTreeSet;

use super::*;
use crate::catalog::tests::{EVERYTHING, FakeEnv, PROGRAM, REMOTE, as_json, asked};

/// All nested tables of a table, itself included, by path.
fn tables(path: &str, keys: &'static [Key], out: &mut Vec<(String, &'static [Key])>) {
    out.push((path.to_owned(), keys));
    for key in keys {
        match key.kind {
            Kind::Object(inner) | Kind::Objects(inner) | Kind::PathOr(inner) => {
                tables(&format!("{path}.{}", key.name), inner, out);
            }
            Kind::Servers => tables("server", SERVER, out),
            _ => {}
        }
    }
}

fn known() -> Vec<(String, &'static [Key])> {
    let mut out = Vec::new();
    tables("root", ROOT, &mut out);
    out
}

#[test]
fn every_key_of_the_table_is_read_and_no_other() {
    let env = FakeEnv::usual();
    let asked: BTreeSet<String> =
        [EVERYTHING, PROGRAM, REMOTE].iter().flat_map(|it| asked(it, &env)).collect();
    let expected: BTreeSet<String> = known()
        .iter()
        .flat_map(|(_, keys)| keys.iter().map(move |key| format!("{:p}.{}", *keys, key.name)))
        .collect();
    let named = |set: BTreeSet<&String>| -> Vec<String> {
        let all = known();
        let name = |it: &String| {
            let (table, key) = it.split_once('.').unwrap();
            let found = all.iter().find(|(_, keys)| format!("{:p}", *keys) == table);
            format!("{}.{key}", found.map_or(table, |(path, _)| path))
        };
        set.into_iter().map(name).collect()
    };
    assert_eq!(named(expected.difference(&asked).collect()), [""; 0], "never read");
    assert_eq!(named(asked.difference(&expected).collect()), [""; 0], "not in the table");
}

#[test]
fn every_key_of_the_table_is_in_the_schema_and_no_other() {
    fn properties(path: &str, schema: &Value, out: &mut BTreeSet<String>) {
        if let Some(Value::Object(found)) = schema.get("properties") {
            for (name, schema) in found {
                out.insert(format!("{path}.{name}"));
                properties(&format!("{path}.{name}"), schema, out);
                properties(&format!("{path}.{name}"), &schema["items"], out);
                properties(&format!("{path}.{name}"), &schema["anyOf"][1], out);
            }
        }
    }
    let schema = schema();
    let mut found = BTreeSet::new();
    properties("root", &schema, &mut found);
    properties("server", &schema["$defs"]["server"], &mut found);
    let expected: BTreeSet<String> = known()
        .iter()
        .flat_map(|(path, keys)| {
            let names =
                keys.iter().flat_map(|it| [it.name].into_iter().chain(it.aliases.iter().copied()));
            names.map(move |it| format!("{path}.{it}"))
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn every_key_is_described() {
    for (path, keys) in known() {
        for key in keys {
            let about = key.about;
            assert!(about.ends_with('.') && about.len() > 4, "{path}.{}: {about:?}", key.name);
        }
    }
}

#[test]
fn the_schema_takes_good_files_and_refuses_bad_ones() {
    let schema = schema();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for text in [EVERYTHING, PROGRAM, REMOTE, "servers: [{ name: a, cmd: [b] }]"] {
        let errors: Vec<_> =
            validator.iter_errors(&as_json(text)).map(|it| it.to_string()).collect();
        assert_eq!(errors, [""; 0], "{text}");
    }
    for text in [
        "gateway: {}",
        "servers: [{ cmd: [b] }]",
        "mcpServers: { a: { command: b, maxConcurrent: 0 } }",
        "mcpServers: { a: { command: b, maxConcurrent: '5' } }",
        "mcpServers: { a: { command: b, strategy: sharded } }",
        "mcpServers: { a: { command: b, timeouts: { callSeconds: 0 } } }",
        "mcpServers: { a: { command: b, env: { A: { flie: b } } } }",
        "mcpServers: {}\ngateway: { rules: [{}] }",
        "mcpServers: {}\ngateway: { lisen: a }",
        "mcpServers: {}\ngateway: { plugins: [{ name: a, category: audit }] }",
    ] {
        assert!(!validator.is_valid(&as_json(text)), "{text}");
    }
}
