mod deciding;
mod replicas;

use super::*;

/// The faults of a text, each as `line:column path: message | suggestion`.
fn faults(text: &str) -> Vec<String> {
    match loaded(text) {
        Ok(loaded) => panic!("{text} is good: {:?}", loaded.plan),
        Err(faults) => faults.faults.iter().map(told).collect(),
    }
}

fn warnings(text: &str) -> Vec<String> {
    let loaded = loaded(text).unwrap_or_else(|faults| panic!("{faults}"));
    loaded.warnings.iter().map(told).collect()
}

fn told(fault: &crate::catalog::Fault) -> String {
    let suggestion = fault.suggestion.as_deref().unwrap_or_default();
    format!("{}:{} {}: {} | {suggestion}", fault.line, fault.column, fault.path, fault.message)
}

#[test]
fn faults_of_a_server_are_reported_with_position_and_advice() {
    for (entry, expected) in [
        (
            "{}",
            "There is neither a command nor a URL. | Add `command: …` for a program, or `url: https://…`.",
        ),
        ("{ type: http }", "`url` is missing. | Add `url: https://…`."),
        (
            "{ command: b, url: 'https://c.example' }",
            "url: There are both a command and a URL. | Remove one of them: a server is a program or a URL.",
        ),
        (
            "{ command: b, type: http }",
            "type: The type is `http`, and the server is a program. | Write `stdio`, or remove it.",
        ),
        (
            "{ url: 'https://c.example', type: stdio }",
            "type: The type is `stdio`, and the server is a URL. | Write `http`, or remove it.",
        ),
        (
            "{ command: b, cmd: [c] }",
            "cmd: `command` and `cmd` mean the same. | Write one of them.",
        ),
        ("{ cmd: [] }", "cmd: The command is empty. | Write the program, and then its arguments."),
        ("{ command: '' }", "command: This is empty. | Write a text."),
        ("{ command: { a: b } }", "command: This must be a list; it is a map. | Write a list."),
        (
            "{ command: b, maxConcurrent: 0 }",
            "maxConcurrent: This must be a whole number, at least 1; it is `0`. | Write a number that is at least 1, without quotes.",
        ),
        (
            "{ command: b, maxConcurrent: -1 }",
            "maxConcurrent: This must be a whole number, at least 1; it is `-1`. | Write a number that is at least 1, without quotes.",
        ),
        (
            "{ command: b, maxConcurrent: '5' }",
            "maxConcurrent: This must be a whole number, at least 1; it is `5`. | Write a number that is at least 1, without quotes.",
        ),
        (
            "{ command: b, maxConcurrent: '${LINES}' }",
            "maxConcurrent: This must be a whole number, at least 1; it is `${LINES}`. | Write a number that is at least 1, without quotes.",
        ),
        (
            "{ command: b, idleSeconds: -1 }",
            "idleSeconds: This must be a number of seconds, 0 or more; it is `-1`. | Write a number that is 0 or more, without quotes.",
        ),
        (
            "{ command: b, idleSeconds: .nan }",
            "idleSeconds: This must be a number of seconds, 0 or more; it is `.nan`. | Write a number that is 0 or more, without quotes.",
        ),
        (
            "{ command: b, timeouts: { callSeconds: 0 } }",
            "timeouts.callSeconds: This must be a number of seconds, more than 0; it is `0`. | Write a number that is more than 0, without quotes.",
        ),
        (
            "{ command: b, pin: yes }",
            "pin: `yes` is none of `true`, `false`, `first-use`, `strict`, `off`. | Choose one of them.",
        ),
        (
            "{ command: b, strategy: statless }",
            "strategy: `statless` is none of `stateless`, `stateful`, `persistent`, `singleton`. | Did you mean `stateless`?",
        ),
        (
            "{ command: b, strategy: sharded }",
            "strategy: `sharded` is none of `stateless`, `stateful`, `persistent`, `singleton`. | Choose one of them.",
        ),
        (
            "{ command: b, strategy: stateful, affinity: principle }",
            "affinity: `principle` is none of `session`, `principal`, `meta:KEY`. | Did you mean `principal`?",
        ),
        (
            "{ command: b, protocolVersion: 2025-11-26 }",
            "protocolVersion: `2025-11-26` is no revision of MCP: there are `2024-11-05`, `2025-03-26`, `2025-06-18`, `2025-11-25`, `2026-07-28`. | Did you mean `2025-11-25`?",
        ),
        (
            "{ command: b, minReady: 3, maxInstances: 2 }",
            "minReady: `minReady` is 3, and there may be 2. | Make `minReady` at most `maxInstances`.",
        ),
        (
            "{ command: b, strategy: singleton, minReady: 2 }",
            "minReady: `minReady` is 2, and there may be 1. | Make `minReady` at most `maxInstances`.",
        ),
        (
            "{ command: b, strategy: singleton, maxInstances: 2 }",
            "maxInstances: A singleton has one instance. | Remove it, or choose another `strategy`.",
        ),
        (
            "{ command: b, strategy: singleton, sharing: isolated }",
            "sharing: A singleton is one process for everybody. | Remove it, or choose another `strategy`.",
        ),
        (
            "{ command: b, questions: [samplin] }",
            "questions[0]: `samplin` is none of `elicitation`, `sampling`, `roots`. | Did you mean `sampling`?",
        ),
        (
            "{ command: b, retry: { baseSeconds: 9, maxSeconds: 1 } }",
            "retry: `maxSeconds` is less than `baseSeconds`. | Make `maxSeconds` at least `baseSeconds`.",
        ),
        (
            "{ command: b, headers: { A: b } }",
            "headers: `headers` is for servers at a URL, and this one is a program. | Remove it, or give a `url` in place of the command.",
        ),
        (
            "{ command: b, tags: ['a,b'] }",
            "tags[0]: `a,b` is no tag. | Use no comma, slash or space: tags stand in URLs, `/mcp/tags/a,b`.",
        ),
        ("{ command: b, env: [A] }", "env: This must be a map; it is a list. | Write a map."),
        (
            "{ command: b, env: { A: } }",
            "env.A: This must be a text, `{ file: PATH }` or `{ env: NAME }`; it is nothing. | Write a text, `{ file: PATH }` or `{ env: NAME }`.",
        ),
        (
            "{ command: b, env: { A: { flie: x } } }",
            "env.A: This must be a text, `{ file: PATH }` or `{ env: NAME }`; it is a map. | Write a text, `{ file: PATH }` or `{ env: NAME }`.",
        ),
        (
            "{ command: b, env: { A: { file: no } } }",
            "env.A.file: The file `/etc/trunkline/no` cannot be read: no such file. | Check its path, which is relative to this file, and who may read it.",
        ),
        (
            "{ command: b, env: { A: { env: NO } } }",
            "env.A.env: The variable `NO` is not set. | Set it.",
        ),
        (
            "{ command: b, env: { A=B: c } }",
            "env[\"A=B\"]: This is no name of a variable. | Use letters, digits and `_`.",
        ),
        (
            "{ command: b, args: ['${NO}'] }",
            "args[0]: The variable `NO` is not set. | Set it, or write `${NO:-default}`.",
        ),
        (
            "{ command: b, args: ['${file:no}'] }",
            "args[0]: The file `/etc/trunkline/no` cannot be read: no such file. | Check its path, which is relative to this file, and who may read it.",
        ),
        (
            "{ command: b, args: ['${input:key}'] }",
            "args[0]: `${input:key}` is filled in by an editor, which is not here. | Use a variable, `${NAME}`, or a file, `${file:PATH}`.",
        ),
        (
            "{ command: b, renameTools: { x: z, y: z } }",
            "renameTools.y: `x` has the name `z` already. | Choose another name.",
        ),
        (
            "{ command: b, renameTools: { x: 'a b' } }",
            "renameTools.x: `a b` is no name of a tool. | Use letters, digits, `_`, `-` and `.`, at most 128.",
        ),
        ("{ url: c.example/mcp }", "url: This is no URL of a server. | Write `https://HOST/PATH`."),
        (
            "{ url: 'https://me:pw@c.example/mcp' }",
            "url: This URL has a user or a password in it. | Put it into `headers`: `Authorization: \"Basic ${NAME}\"`.",
        ),
        (
            "{ url: 'https://c.example', args: [a] }",
            "args: `args` is for programs, and this server is at a URL. | Remove it, or give a `command` in place of the URL.",
        ),
        (
            "{ url: 'https://c.example', env: { A: b } }",
            "env: `env` is for programs, and this server is at a URL. | Remove it, or give a `command` in place of the URL.",
        ),
        (
            "{ url: 'https://c.example', cwd: a }",
            "cwd: `cwd` is for programs, and this server is at a URL. | Remove it, or give a `command` in place of the URL.",
        ),
        (
            "{ url: 'https://c.example', headers: { Host: a } }",
            "headers.Host: The header `Host` is the protocol's own. | Remove it: it is set as the protocol wants it.",
        ),
        (
            "{ url: 'https://c.example', headers: { mcp-name: a } }",
            "headers.mcp-name: The header `mcp-name` is the protocol's own. | Remove it: it is set as the protocol wants it.",
        ),
        (
            "{ url: 'https://c.example', headers: { 'a(b': a } }",
            "headers[\"a(b\"]: This is no name of a header. | Use letters, digits and `-`.",
        ),
        (
            "{ url: 'https://c.example', headers: { A: '${LINES}' } }",
            "headers.A: This cannot be the value of a header. | Use printable characters on one line.",
        ),
        ("{ url: 'https://c.example', auth: {} }", "auth: `type` is missing. | Add `type: …`."),
        (
            "{ url: 'https://c.example', auth: { type: login, clientId: a } }",
            "auth.clientId: `clientId` is for `clientCredentials`. | Remove it, or write `type: clientCredentials` or `perUser: true`.",
        ),
        (
            "{ url: 'https://c.example', auth: { type: login, perUser: true } }",
            "auth: `perUser` gives each principal a login of its own, and the gateway knows none: it has no `auth`. | Add `gateway.auth` with `tokens` or `issuers`, or remove `perUser`.",
        ),
        (
            "{ url: 'https://c.example', auth: { type: login }, headers: { authorization: a } }",
            "auth: There are both `auth` and an `Authorization` header. | Remove one of them.",
        ),
        (
            "{ url: 'https://c.example', rootCertificates: [no.pem] }",
            "rootCertificates[0]: There is no file `/etc/trunkline/no.pem`. | Check the path, which is relative to this file.",
        ),
    ] {
        let found = faults(&format!("mcpServers:\n  a: {entry}\n"));
        let has_path = expected.split_once(' ').is_some_and(|(it, _)| it.ends_with(':'));
        let dot = if has_path { "." } else { ": " };
        let expected = format!("mcpServers.a{dot}{expected}");
        let (place, found) = found.iter().map(|it| it.split_once(' ').unwrap()).next().unwrap();
        assert!(place.starts_with("2:"), "{entry}: {place}");
        assert_eq!(found, expected, "{entry}");
    }
    for name in [
        "content-type",
        "Accept",
        "MCP-Protocol-Version",
        "Mcp-Session-Id",
        "Last-Event-ID",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
    ] {
        let text = format!(
            "mcpServers: {{ a: {{ url: 'https://c.example', headers: {{ {name}: x }} }} }}"
        );
        assert!(faults(&text)[0].contains("is the protocol's own"), "{name}");
    }
}

#[test]
fn faults_of_the_gateway_are_reported_with_position_and_advice() {
    for (entry, expected) in [
        (
            "listen: 0.0.0.0:80",
            "listen: `0.0.0.0` is reached from other machines, and everybody would be let in. | Add `auth` with `tokens` or `issuers`, or listen at `127.0.0.1`.",
        ),
        (
            "listen: '[::]:80'",
            "listen: `::` is reached from other machines, and everybody would be let in. | Add `auth` with `tokens` or `issuers`, or listen at `127.0.0.1`.",
        ),
        (
            "{ listen: 'mcp.example:80', auth: {} }",
            "listen: `mcp.example` is reached from other machines, and everybody would be let in. | Add `auth` with `tokens` or `issuers`, or listen at `127.0.0.1`.",
        ),
        (
            "{ listen: '0.0.0.0:80', auth: { tokens: [{ name: a, token: x }] } }",
            "listen: `0.0.0.0` is reached from other machines, and the token of `a` has fewer than 16 characters: it can be guessed. | Make one with `openssl rand -hex 32`, or listen at `127.0.0.1`.",
        ),
        (
            "{ listen: '0.0.0.0:80', plaintext: true, auth: { tokens: [{ name: a, token: fifteen-letters }] } }",
            "listen: `0.0.0.0` is reached from other machines, and the token of `a` has fewer than 16 characters: it can be guessed. | Make one with `openssl rand -hex 32`, or listen at `127.0.0.1`.",
        ),
        (
            "{ listen: '0.0.0.0:80', auth: { tokens: [{ name: a, token: sixteen--letters }] } }",
            "listen: `0.0.0.0` is reached from other machines, and tokens can be read on the way. | Add `tls`, or `plaintext: true` if a proxy in front of it has the certificate, or listen at `127.0.0.1`.",
        ),
        ("listen: 7373", "listen: This is no address to listen at. | Write `127.0.0.1:7373`."),
        (
            "naming: prefixed",
            "naming: `prefixed` is none of `prefix`, `underscore`, `flat`. | Did you mean `prefix`?",
        ),
        (
            "origins: ['*']",
            "origins[0]: `*` is no origin. | Write a scheme and a host, with a port if it is unusual: `https://app.example`.",
        ),
        (
            "auth: { tokens: [{ name: a }] }",
            "auth.tokens[0]: `token` is missing. | Add `token: …`.",
        ),
        (
            "auth: { tokens: [{ name: a, token: '' }] }",
            "auth.tokens[0].token: This token is empty. | Give it a value.",
        ),
        (
            "auth: { issuers: ['https://id.example'] }",
            "auth.issuers: There are issuers, and no `resource` that their tokens must be for. | Add `resource: https://HOST/mcp`, the URL that clients have of this gateway.",
        ),
        (
            "auth: { claims: { name: email } }",
            "auth.claims: There are `claims`, and no `issuers` of tokens that have any. | Add `issuers: [https://…]`, or take the claims out.",
        ),
        (
            "auth: { groups: [{ name: eng, tags: [work] }] }",
            "auth.groups: There are `groups`, and no claim that says who is in them. | Add `claims: { groups: groups }`, with the claim that your issuer writes them to.",
        ),
        (
            "auth: { tokens: [{ name: 'user:a', token: 0123456789abcdef }] }",
            "auth.tokens[0].name: `user:a` looks like a name that comes from a claim. | Rename it.",
        ),
        (
            "auth: { resource: 'http://mcp.example' }",
            "auth.resource: This is no URL of a resource. | Write an `https` URL.",
        ),
        ("tls: { certificate: c.pem }", "tls: `key` is missing. | Add `key: …`."),
        (
            "tls: { certificate: c.pem, key: no.pem }",
            "tls.key: There is no file `/etc/trunkline/no.pem`. | Check the path, which is relative to this file.",
        ),
        ("admin: { listen: 'unix:' }", "admin.listen: There is no path. | Write `unix:PATH`."),
        (
            "admin: { listen: here }",
            "admin.listen: This is no address to listen at. | Write `127.0.0.1:7374` or `unix:PATH`.",
        ),
        (
            "admin: { mtls: { certificate: c.pem, key: k.pem, clientCertificates: ca.pem } }",
            "admin.mtls: `mtls` is for an admin API at an address. | Add `listen: 127.0.0.1:7374`, or remove it.",
        ),
        ("rules: [{ tools: [a] }]", "rules[0]: `effect` is missing. | Add `effect: …`."),
        (
            "rules: [{ effect: denny }]",
            "rules[0].effect: `denny` is none of `allow`, `deny`, `ask`. | Did you mean `deny`?",
        ),
        ("rates: [{ burst: 3 }]", "rates[0]: `perMinute` is missing. | Add `perMinute: …`."),
        (
            "rates: [{ perMinute: 0 }]",
            "rates[0].perMinute: This must be a whole number, at least 1; it is `0`. | Write a number that is at least 1, without quotes.",
        ),
        ("recording: none", "recording: `none` is none of `on`, `off`. | Choose one of them."),
        (
            "recording: { payloads: some }",
            "recording.payloads: `some` is none of `never`, `loopback`, `always`. | Choose one of them.",
        ),
        (
            "recording: { sample: 2 }",
            "recording.sample: This must be a share from 0 to 1. | Write `0.1` for every tenth call.",
        ),
        (
            "recording: { keep: 64 cats }",
            "recording.keep: This is no size, or less than 1MiB. | Write `64MiB`.",
        ),
        (
            "plugins: [{ name: a, command: [b] }]",
            "plugins[0]: `category` is missing. | Add `category: …`.",
        ),
        (
            "plugins: [{ name: a, category: audits, command: [b] }]",
            "plugins[0].category: `audits` is none of `observability`, `authentication`, `authorization`, `rate_limiting`, `validation`, `content`, `audit`. | Did you mean `audit`?",
        ),
        (
            "bootstrap: 0",
            "bootstrap: This must be a whole number, at least 1; it is `0`. | Write a number that is at least 1, without quotes.",
        ),
        (
            "refreshSeconds: soon",
            "refreshSeconds: This must be a number of seconds, 0 or more; it is `soon`. | Write a number that is 0 or more, without quotes.",
        ),
    ] {
        let found = faults(&format!("mcpServers: {{}}\ngateway:\n  {entry}\n"));
        let (_, found) = found[0].split_once(' ').unwrap();
        assert_eq!(found, format!("gateway.{expected}"), "{entry}");
    }
}

#[test]
fn all_faults_are_reported_at_once_and_in_order() {
    let text = "\
gateway: { listen: 0.0.0.0:80 }
servers:
  - name: a
    cmd: [b]
    maxConcurrent: 0
  - cmd: [b]
  - name: A
    cmd: [b]
    strategy: sharded
    maxConcurrent: 1
    maxConcurrent: 2
  - name: a
    url: here
  - name: not good/at all
    command: b
  - 5
";
    let expected = [
        "1:20 gateway.listen: `0.0.0.0` is reached from other machines, and everybody would be let in. | Add `auth` with `tokens` or `issuers`, or listen at `127.0.0.1`.",
        "5:20 servers[0].maxConcurrent: This must be a whole number, at least 1; it is `0`. | Write a number that is at least 1, without quotes.",
        "6:5 servers[1]: `name` is missing. | Add `name: …`.",
        "7:11 servers[2].name: `A` and `a` in line 3 are the same but for case. | Rename one of them.",
        "9:15 servers[2].strategy: `sharded` is none of `stateless`, `stateful`, `persistent`, `singleton`. | Choose one of them.",
        "11:5 servers[2].maxConcurrent: This key is there already. | Remove one of the two, or rename it.",
        "12:11 servers[3].name: There is a server `a` in line 3 already. | Rename one of them.",
        "13:10 servers[3].url: This is no URL of a server. | Write `https://HOST/PATH`.",
        "14:11 servers[4].name: `not good/at all` is no name of a server: letters, digits, `_` and `-`, at most 64. | Call it `not-good-at-all`.",
        "16:5 servers[5]: This must be a map; it is a number. | Write a map.",
    ];
    assert_eq!(faults(text), expected);
    assert_eq!(
        faults("mcpServers: { a: { command: b } }\nservers: { a: { command: b } }"),
        ["2:15 servers.a: There is a server `a` in line 1 already. | Rename one of them."]
    );
    assert_eq!(
        faults("gateway: {}"),
        [
            "1:1 : There is neither `mcpServers` nor `servers`. | Add `mcpServers:` with a server, or `mcpServers: {}` for none."
        ]
    );
    assert_eq!(
        faults("mcpServers: 5"),
        [
            "1:13 mcpServers: The servers must be a map or a list; this is a number. | Write `NAME: { command: … }` below it."
        ]
    );
    assert_eq!(faults(""), ["1:1 : The file is empty. | Write `mcpServers: {}` for no servers."]);
}

#[test]
fn unknown_keys_are_warnings() {
    for (text, expected) in [
        (
            "mcpServers: { a: { command: b, idle: 20s } }",
            "1:32 mcpServers.a.idle: `idle` means nothing here. | Did you mean `idleSeconds`?",
        ),
        (
            "mcpServers: { a: { command: b, sessionTimeout: 20 } }",
            "1:32 mcpServers.a.sessionTimeout: `sessionTimeout` means nothing here. | Did you mean `sessionTTLSeconds`?",
        ),
        (
            "mcpServers: { a: { command: b, maxConcurent: 3 } }",
            "1:32 mcpServers.a.maxConcurent: `maxConcurent` means nothing here. | Did you mean `maxConcurrent`?",
        ),
        (
            "mcpServers: { a: { command: b, envFile: c } }",
            "1:32 mcpServers.a.envFile: `envFile` means nothing here. | Put the variables into `env`, or name the file by `gateway.envFile`.",
        ),
        (
            "mcpServers: {}\nsubAgent: {}",
            "2:1 subAgent: `subAgent` means nothing here. | Here it is `gateway.automatic`.",
        ),
        (
            "mcpServers: {}\nwhatever: {}",
            "2:1 whatever: `whatever` means nothing here. | Remove it.",
        ),
        (
            "{ \"mcpServers\": {}, \"gatway\": {} }",
            "1:21 gatway: `gatway` means nothing here. | Did you mean `gateway`?",
        ),
        (
            "mcpServers: { a: { command: npx -y b } }",
            "1:29 mcpServers.a.command: The program's name has a space in it. | If these are arguments, write `command: npx` and the others in `args`.",
        ),
        (
            "mcpServers: { a: { command: b, affinity: session } }",
            "1:42 mcpServers.a.affinity: `affinity` is for stateful servers only. | Write `strategy: stateful`, or remove it.",
        ),
        (
            "mcpServers: { a: { command: b, exposeTools: [] } }",
            "1:45 mcpServers.a.exposeTools: No tool of this server is shown. | Name some, or remove it for all.",
        ),
        (
            "mcpServers: {}\ngateway: { auth: { tokens: [{ name: a, token: short }] } }",
            "2:47 gateway.auth.tokens[0].token: This token has fewer than 16 characters. | Use one that cannot be guessed.",
        ),
    ] {
        assert_eq!(warnings(text), [expected], "{text}");
    }
    // A shared login gets a warning where no rule limits who may use it.
    let shared = "mcpServers: { a: { url: 'https://a.example', auth: { type: login } } }\ngateway:\n  auth: { resource: 'https://g.example/mcp', issuers: ['https://id.example'] }\n";
    let told = "mcpServers.a.auth: All callers share these credentials at this server. | Say by `gateway.rules` who may call it.";
    assert!(matches!(&*warnings(shared), [one] if one.ends_with(told)), "{:?}", warnings(shared));
    let ruled = format!("{shared}  rules: [{{ effect: deny }}]\n");
    assert_eq!(warnings(&ruled), [""; 0]);
    assert_eq!(warnings("mcpServers: {}\nx-mine: 1\n_note: 2\n$schema: 3"), [""; 0]);
}

#[test]
fn no_fault_shows_a_secret() {
    let text = "\
mcpServers:
  a: { url: 'https://u:hunter2@c.example?k=hunter2', headers: { Host: hunter2, A: \"hunter2\\n\" } } # hunter2
  b: { command: c, env: { A: hunter2, B: { file: '${NO}', other: x }, C: '${NO}hunter2' }, strategy: no }
  c: { command: d, args: ['--key=hunter2', '${NO}'], maxConcurrent: 0 }
gateway: { auth: { tokens: [{ name: a, token: hunter2 }, { name: a, token: hunter2 }] }, naming: x }
";
    let faults = loaded(text).unwrap_err();
    assert!(faults.faults.len() >= 9, "{faults}");
    let told = format!("{faults}\n{faults:?}\n{}", serde_json::to_string(&faults).unwrap());
    assert!(!told.contains("hunter2"), "{told}");
    for warning in &faults.warnings {
        assert!(!warning.render("f".as_ref()).contains("hunter2"), "{warning:?}");
    }
    let broken =
        loaded("mcpServers: { a: { command: b, env: { A: hunter2: x, hunter2 }").unwrap_err();
    assert!(!broken.to_string().contains("hunter2"), "{broken}");
}

#[test]
fn no_fault_shows_the_value_of_a_variable() {
    let text = "\
servers:
  - { name: 'a ${TOKEN}', command: c }
  - { name: '${TOKEN}', command: c }
  - { name: '${TOKEN}', command: c }
  - { name: 'HUNTER2-${TOKEN}', command: c }
  - { name: 'hunter2-${TOKEN}', command: c }
  - { name: b, command: c, questions: ['${TOKEN}'], minReady: '${NUMBER}', maxInstances: 3 }
  - { name: c, command: c, args: ['${file:${TOKEN}}'], env: { A: { file: 'x${TOKEN}' } } }
  - { name: d, command: c, env: { A: { env: 'A${SECRET}' } } }
  - { name: e, url: 'https://a.example', rootCertificates: ['${TOKEN}.pem'] }
gateway:
  listen: '${TOKEN}:80'
  admin: { listen: '${TOKEN}.example:80', token: 0123456789abcdef }
  auth: { tokens: [{ name: '${TOKEN}', token: short }] }
";
    let mut env = FakeEnv::usual();
    env.vars.insert("SECRET", "hunter2");
    let faults = load(text, ORIGIN.as_ref(), &env).unwrap_err();
    let all = faults.faults.iter().chain(&faults.warnings);
    let told: Vec<_> = all.map(|it| it.render("f".as_ref()).to_lowercase()).collect();
    for it in &told {
        assert!(!it.replace("hunter2-${token}", "").contains("hunter2"), "{it}");
    }
    for expected in [
        "`a ${token}` is no name of a server",
        "there is a server `${token}` in line 3 already",
        "`hunter2-${token}` and `hunter2-${token}` in line 5 are the same but for case",
        "`${token}` is none of `elicitation`",
        "`minready` is `${number}`, and there may be 3",
        "the file `${token}` cannot be read",
        "the file `x${token}` cannot be read",
        "the variable `a${secret}` is not set",
        "there is no file `${token}.pem`",
        "`${token}:80` is reached from other machines, and the token of `${token}` has fewer",
        "`${token}.example:80` is reached from other machines",
    ] {
        assert!(told.iter().any(|it| it.contains(expected)), "{expected}: {told:#?}");
    }
}

#[test]
fn faults_are_drawn_for_people_and_written_for_programs() {
    let text = "mcpServers:\n  time:\n    command: uvx\n    strategy: statless # mine\n";
    let faults = loaded(text).unwrap_err();
    let expected = "\
/etc/trunkline/trunkline.yaml:4:15: mcpServers.time.strategy: `statless` is none of `stateless`, `stateful`, `persistent`, `singleton`.
  4 |     strategy: statless
    |               ^ Did you mean `stateless`?";
    assert_eq!(faults.to_string(), expected);
    assert_eq!(
        serde_json::to_value(&faults).unwrap(),
        serde_json::json!({
            "file": ORIGIN,
            "faults": [{
                "path": "mcpServers.time.strategy",
                "line": 4,
                "column": 15,
                "message": "`statless` is none of `stateless`, `stateful`, `persistent`, `singleton`.",
                "suggestion": "Did you mean `stateless`?",
            }],
            "warnings": [],
        })
    );
    let text = "mcpServers: { a: { command: b, env: { K: ${TOKEN} } } }";
    let expected = "\
/etc/trunkline/trunkline.yaml:1:43: While parsing a flow mapping, did not find expected ',' or '}'.
  1 | mcpServers: { ·: { ·······: ·, ···: { ·: ${·····} } } }
    |                                           ^ Put quotes around `\"${…}\"` in `[…]` and `{…}`.";
    assert_eq!(loaded(text).unwrap_err().to_string(), expected);
}

#[test]
fn a_lone_carriage_return_ends_a_line_and_shows_no_secret() {
    let text = "mcpServers:\r  a:\r    command: b\r    env: { K: hunter2 }\r    strategy: no\r";
    let told = loaded(text).unwrap_err().to_string();
    assert!(told.contains(":5:15: ") && told.contains("  5 |     strategy: no"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn of_very_many_faults_the_first_are_reported() {
    let many: String = (0..5000).map(|it| format!("  s{it}: {{ nonsense{it}: 1 }}\n")).collect();
    let faults = loaded(&format!("mcpServers:\n{many}")).unwrap_err();
    assert_eq!((faults.faults.len(), faults.warnings.len()), (101, 101));
    assert_eq!(faults.faults[100].message, "There are 4900 more after this one.");
}
