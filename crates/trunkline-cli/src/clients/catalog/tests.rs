//! Catalogs as people write them, and that an edit keeps the rest of them.

use super::super::entry::ServerTransport;
use super::*;

fn entry(command: &str) -> Entry {
    Entry {
        transport: ServerTransport::Stdio {
            command: command.to_owned(),
            args: vec!["-y".to_owned(), "a/b".to_owned()],
            env: vec![
                ("KEY".to_owned(), "${KEY}".to_owned()),
                ("FLAG".to_owned(), "true".to_owned()),
            ],
            inherit: Vec::new(),
            cwd: None,
        },
        is_disabled: false,
        expose: Vec::new(),
        start_seconds: Some(20),
        call_seconds: None,
        notes: Vec::new(),
    }
}

#[track_caller]
fn check(before: &str, name: &str, expected: &str) {
    let entries = [(name.to_owned(), entry("npx"))];
    let found = merged(before, &entries).unwrap();
    assert_eq!(found, expected);
    let have = have(&found).unwrap();
    let found = have.servers.iter().find(|(it, _)| it == name).unwrap();
    assert!(found.1.as_ref().unwrap().is_same(&entries[0].1), "{found:?}");
}

fn block(name: &str, indent: usize) -> String {
    let text = format!(
        "{name}:\n  command: npx\n  args: [\"-y\", a/b]\n  env:\n    KEY: \"${{KEY}}\"\n    FLAG: \"true\"\n  timeouts:\n    startSeconds: 20\n"
    );
    text.lines().map(|it| format!("{}{it}\n", " ".repeat(indent))).collect()
}

#[test]
fn a_catalog_is_begun() {
    check("", "a", &format!("mcpServers:\n{}", block("a", 2)));
    check("# mine\n", "a", &format!("# mine\nmcpServers:\n{}", block("a", 2)));
    check("mcpServers:\n", "a", &format!("mcpServers:\n{}", block("a", 2)));
    check("mcpServers: {} # none\n", "a", &format!("mcpServers:  # none\n{}", block("a", 2)));
    let gateway = "gateway:\n  listen: 127.0.0.1:1";
    check(gateway, "a", &format!("{gateway}\n\nmcpServers:\n{}", block("a", 2)));
}

#[test]
fn a_server_is_added_after_the_others_and_nothing_else_moves() {
    let before = "# mine\nservers:\n    time: # clock\n        command: uvx\n    # end of servers\n\n# door\ngateway:\n  listen: \"127.0.0.1:1\"\n";
    let expected = before
        .replace("        command: uvx\n", &format!("        command: uvx\n{}", block("a", 4)));
    check(before, "a", &expected);
}

#[test]
fn a_server_takes_the_place_of_another() {
    let before = "mcpServers:\n  a: { command: old }\n  # of b\n  b:\n    command: b\n";
    check(before, "a", &format!("mcpServers:\n{}  # of b\n  b:\n    command: b\n", block("a", 2)));
    let before = "mcpServers:\n  b:\n    command: b\n  a:\n    command: old\n    args: |\n      x\n\ngateway: {}\n";
    let expected = format!("mcpServers:\n  b:\n    command: b\n{}\ngateway: {{}}\n", block("a", 2));
    check(before, "a", &expected);
}

#[test]
fn a_list_stays_a_list() {
    let item = block("a", 2).replacen("  a:\n    command", "  - name: a\n    command", 1);
    let before = "servers:\n  - name: b\n    cmd: [b]\n";
    check(before, "a", &format!("{before}{item}"));
    let before = "servers:\n  - name: a\n    cmd: [old]\n  - name: b\n    cmd: [b]\n";
    check(before, "a", &format!("servers:\n{item}  - name: b\n    cmd: [b]\n"));
}

#[test]
fn json_stays_json() {
    let before = "// mine\n{\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n";
    let found = merged(before, &[("a".to_owned(), entry("npx"))]).unwrap();
    assert!(found.starts_with("// mine\n{\n  \"mcpServers\": {\n    \"b\": {},\n    \"a\": {\n      \"command\": \"npx\","), "{found}");
    assert!(merged("{\"servers\": []}", &[("a".to_owned(), entry("npx"))]).is_ok());
}

#[test]
fn what_would_do_harm_is_not_done() {
    let add = |text: &str| merged(text, &[("a".to_owned(), entry("npx"))]);
    let found = add("mcpServers: { b: { command: b } }\n").unwrap_err();
    assert!(found.message.contains("braces"), "{found}");
    assert_eq!(add("a: 1\nb: [\n").unwrap_err().message.split(':').next(), Some("This is no YAML"));
    assert_eq!(add("a: 1\n---\nb: 2\n").unwrap_err().line, 2);
    assert!(add("mcpServers: 5\n").is_err());
    assert!(add("- a\n").is_err());
}

#[test]
fn what_is_there_is_read_with_its_variables() {
    let text = "mcpServers:\n  a:\n    url: https://a.example/${X}\n    headers: {K: {file: ./k}}\n  b: {}\nservers:\n  - {name: c, cmd: [c, d]}\ngateway: {listen: 0.0.0.0:1}\n";
    let have = have(text).unwrap();
    assert_eq!(have.listen.as_deref(), Some("0.0.0.0:1"));
    let names: Vec<_> = have.servers.iter().map(|(name, it)| (&**name, it.is_some())).collect();
    assert_eq!(names, [("a", true), ("b", false), ("c", true)]);
    let first = have.servers[0].1.as_ref().unwrap();
    assert_eq!(first.values(), [("K".to_owned(), "${file:./k}".to_owned())]);
}

#[test]
fn a_catalog_cut_anywhere_is_changed_well_or_not_at_all() {
    let text = "# é\nmcpServers:\n  a: {command: x} # one\n  'b c':\n    command: \"y\"\n    args:\n      - |\n        # no comment\n        z\n    env: &e {K: v}\n  d: {command: d, env: *e}\n\nservers:\n- name: f\n  cmd: [g]\ngateway:\n  listen: 127.0.0.1:1\n";
    let mut written = 0;
    for end in (0..=text.len()).filter(|it| text.is_char_boundary(*it)) {
        for name in ["a", "new", "f"] {
            let Ok(found) = merged(&text[..end], &[(name.to_owned(), entry("npx"))]) else {
                continue;
            };
            let have = have(&found).unwrap();
            assert!(have.servers.iter().any(|(it, _)| it == name), "{found}");
            written += 1;
        }
    }
    assert!(written > text.len(), "most cuts are catalogs: {written}");
}

#[test]
fn the_file_of_variables_is_named_where_the_gateway_is() {
    let line = "envFile: secrets.env";
    for (text, expected) in [
        ("", format!("gateway:\n  {line}\n")),
        ("mcpServers: {}\n", format!("mcpServers: {{}}\n\ngateway:\n  {line}\n")),
        (
            "# mine\ngateway:\n    naming: flat # x\nmcpServers: {}\n",
            format!("# mine\ngateway:\n    {line}\n    naming: flat # x\nmcpServers: {{}}\n"),
        ),
        ("gateway:", format!("gateway:\n  {line}\n")),
    ] {
        assert_eq!(with_env_file(text, "secrets.env").unwrap(), expected, "{text}");
    }
    for text in
        ["gateway: { naming: flat }\n", "{\"mcpServers\": {}}", "gateway:\n  {naming: flat}\n"]
    {
        let error = with_env_file(text, "secrets.env").unwrap_err();
        assert!(error.message.contains("by hand"), "{text}: {}", error.message);
    }
}

#[test]
fn many_servers_at_once_are_written_as_one_after_the_other() {
    let entries = ["a", "b", "c"].map(|name| (name.to_owned(), entry(name)));
    for before in [
        "",
        "# mine\n",
        "mcpServers:\n",
        "mcpServers: {} # none\n",
        "gateway:\n  listen: 127.0.0.1:1",
        "servers:\n    time:\n        command: uvx\n    # end\n\ngateway:\n  listen: \"127.0.0.1:1\"\n",
        "servers:\r\n  time:\r\n    command: uvx\r\n",
        "mcpServers:\n  - name: time\n    command: uvx\n",
        "mcpServers:\n  b:\n    command: uvx\n",
        "{\"mcpServers\": {}}",
    ] {
        let one = |text: String, entry: &(String, Entry)| {
            merged(&text, std::slice::from_ref(entry)).unwrap()
        };
        let expected = entries.iter().fold(before.to_owned(), one);
        assert_eq!(merged(before, &entries).unwrap(), expected, "{before:?}");
    }
}
