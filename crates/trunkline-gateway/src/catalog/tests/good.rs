use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use trunkline_store::RedisAddress;
use trunkline_wire::revision::{Revision, Revisions};

use super::*;
use crate::catalog::built_in;
use crate::catalog::plan::*;

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn texts(of: &[&str]) -> Vec<String> {
    of.iter().map(|it| (*it).to_owned()).collect()
}

fn seconds(of: u64) -> Duration {
    Duration::from_secs(of)
}

#[test]
fn every_key_of_a_program_has_its_effect() {
    let loaded = loaded(EVERYTHING).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.warnings, []);
    let files =
        ["secret", "variables", "replicas.key"].map(|it| PathBuf::from("/etc/trunkline").join(it));
    assert_eq!(loaded.files, files.into());
    let expected = ServerPlan {
        name: "time".to_owned(),
        reach: Reach::Stdio {
            command: "uvx".to_owned(),
            args: texts(&["mcp-server-time", "--port", "8080"]),
            env: pairs(&[
                ("TZ", "UTC"),
                ("KEY", "hunter2"),
                ("OTHER", "hunter2-hunter2-hunter2"),
                ("PORT", "80"),
            ]),
            inherit: texts(&["LANG", "HTTPS_PROXY"]),
            cwd: Some("/etc/trunkline/work".into()),
        },
        tags: texts(&["agent", "clock"]),
        strategy: Strategy::Stateful,
        idle: Duration::from_millis(500),
        max_concurrent: 7,
        max_instances: 7,
        max_total: Some(9),
        max_each: 7,
        sharing: Sharing::Isolated,
        questions: Questions { sampling: false, ..Questions::default() },
        min_ready: 2,
        session_ttl: None,
        affinity: Affinity::Meta("user".to_owned()),
        activation: Activation::AlwaysOn,
        drain: seconds(5),
        timeouts: Timeouts {
            start: seconds(1),
            acquire: seconds(2),
            call: seconds(3),
            hard: seconds(4),
        },
        probe: Probe { every: Duration::ZERO, timeout: seconds(6) },
        retry: Retry { base: seconds(7), max: seconds(8), tries: 9 },
        revisions: Revisions::range(Revision::V2025_06_18, Revision::LATEST),
        expose: Some(texts(&["get_*"])),
        rename: [("get_time".to_owned(), "now".to_owned())].into(),
        idempotent: texts(&["get_*"]),
        pin: Pinning::Off,
    };
    assert!(*loaded.plan.servers["time"] == expected, "{:#?}", loaded.plan.servers["time"]);
}

#[test]
fn every_key_of_the_gateway_has_its_effect() {
    let plan = loaded(EVERYTHING).unwrap().plan.gateway;
    let file = |name: &str| PathBuf::from("/etc/trunkline").join(name);
    let secret = || "hunter2-hunter2-hunter2".to_owned();
    let expected = GatewayPlan {
        listen: "0.0.0.0:7373".to_owned(),
        naming: Naming::Flat,
        plaintext: true,
        selector_required: true,
        share: true,
        hosts: texts(&["mcp.example"]),
        origins: texts(&["https://app.example"]),
        auth: Inward {
            tokens: vec![TokenPlan {
                name: "alice".to_owned(),
                token: secret(),
                tags: texts(&["a"]),
            }],
            issuers: texts(&["https://id.example"]),
            resource: Some("https://mcp.example/mcp".to_owned()),
            scopes: texts(&["mcp"]),
            claims: ClaimsPlan {
                name: Some("email".to_owned()),
                groups: Some("realm_access.roles".to_owned()),
                tags: Some("mcp_tags".to_owned()),
            },
            groups: vec![GroupPlan { name: "eng".to_owned(), tags: texts(&["work"]) }],
            client: LoginClient::default(),
        },
        tls: Some((file("c.pem"), file("k.pem"))),
        admin: AdminPlan {
            listen: Some("127.0.0.1:7374".to_owned()),
            token: Some(secret()),
            mtls: Some((file("c.pem"), file("k.pem"), file("ca.pem"))),
        },
        rules: vec![
            Rule {
                principals: texts(&["a*"]),
                tags: texts(&["x"]),
                tools: texts(&["git.push*"]),
                effect: Effect::Ask,
            },
            Rule { principals: vec![], tags: vec![], tools: vec![], effect: Effect::Allow },
        ],
        rates: vec![
            Rate {
                principals: texts(&["b"]),
                tools: texts(&["git.*"]),
                per_minute: 600,
                burst: 50,
            },
            Rate { principals: vec![], tools: vec![], per_minute: 5, burst: 1 },
        ],
        audit: Some(AuditPlan {
            path: file("audit.jsonl"),
            refuses: true,
            sync: Duration::from_secs(2),
        }),
        recording: Some(RecordingPlan {
            payloads: Payloads::Always,
            sample: 0.25,
            keep: 8 << 20,
            file: Some(file("traffic.jsonl")),
            redact: texts(&["apiKey"]),
        }),
        plugins: vec![PluginPlan {
            name: "p".to_owned(),
            category: Category::RateLimiting,
            required: false,
            command: texts(&["/etc/trunkline/plugin", "--now"]),
            env: pairs(&[("A", "b")]),
            timeout: Duration::from_millis(10),
            config: json!({ "deep": [1, "2", true, null, 7, "${x}"] }),
        }],
        automatic: Some(Automatic { tags: texts(&["agent"]), limit: 3 }),
        bootstrap: 5,
        refresh: seconds(6),
        store: Some(
            RedisAddress::parse("rediss://:hunter2-hunter2-hunter2@cache.example/2").unwrap(),
        ),
        store_roots: vec![file("ca.pem")],
        replicas: Some(ReplicasPlan {
            listen: "10.0.0.7:7474".to_owned(),
            advertise: Some("https://a.replicas.example:7474".to_owned()),
            keys: vec![
                std::array::from_fn(|at| if at == 31 { 0xff } else { at as u8 }),
                *b"0123456789abcdef0123456789abcdef",
            ],
            roots: vec![file("ca.pem")],
            when_away: WhenAway::Local,
            insecure: true,
        }),
    };
    assert!(plan == expected, "{plan:#?}");
}

#[test]
fn missing_keys_have_their_defaults() {
    let plan = loaded(PROGRAM).unwrap().plan;
    assert!(plan.gateway == GatewayPlan::default(), "{plan:?}");
    assert!(*plan.servers["a"] == ServerPlan::stdio("a", "b"), "{plan:?}");
    for (keys, each, most) in [
        ("command: b, strategy: stateful", 32, 32),
        ("command: b, strategy: singleton", 1, 1),
        ("command: b, strategy: persistent", 4, 32),
        ("command: b, sharing: shared", 4, 4),
        ("command: b, maxInstances: 9, maxInstancesTotal: 5", 5, 5),
        ("command: b, maxInstancesTotal: 3", 3, 3),
        ("command: b, minReady: 9", 9, 32),
        ("command: b, maxInstances: 3", 3, 3),
        ("url: 'http://b'", 4, 4),
        ("url: 'http://b', sharing: isolated", 4, 32),
    ] {
        let text = format!("mcpServers: {{ a: {{ {keys} }} }}");
        let plan = Arc::clone(&loaded(&text).unwrap().plan.servers["a"]);
        assert_eq!((plan.max_each, plan.max_instances), (each, most), "{keys}");
    }
    let one = built_in(texts(&["trunkline", "demo"]));
    let expected = loaded("mcpServers: { demo: { command: [trunkline, demo] } }").unwrap().plan;
    assert!(one == expected, "{one:?}");
}

#[test]
fn every_key_of_a_url_has_its_effect() {
    let plan = loaded(REMOTE).unwrap_or_else(|faults| panic!("{faults}")).plan;
    let mut expected = ServerPlan::http("a", "https://a.example/mcp");
    expected.reach = Reach::Http {
        url: "https://a.example/mcp".to_owned(),
        headers: pairs(&[("X-Key", "hunter2-hunter2-hunter2")]),
        roots: vec!["/etc/trunkline/ca.pem".into()],
        auth: Outward::ClientCredentials {
            client_id: "me".to_owned(),
            client_secret: "hunter2".to_owned(),
            issuer: "https://id.example".to_owned(),
            scopes: texts(&["s"]),
        },
    };
    assert!(*plan.servers["a"] == expected, "{:?}", plan.servers["a"]);
    assert_eq!(expected.max_concurrent, 64);
    let mut expected = ServerPlan::http("b", "https://b.example/mcp");
    if let Reach::Http { headers, .. } = &mut expected.reach {
        *headers = pairs(&[("X-Key", "k")]);
    }
    assert!(*plan.servers["b"] == expected, "{:?}", plan.servers["b"]);
}

#[test]
fn each_principal_may_have_a_login_of_its_own() {
    let of = |gateway: &str, server: &str| {
        let tokens = "tokens: [{ name: ann, token: a-long-enough-secret-token }]";
        loaded(&format!(
            "gateway: {{ auth: {{ {tokens}, resource: 'https://gw.example/mcp' }}, {gateway} }}\n\
             mcpServers: {{ a: {{ url: 'https://a.example/mcp', {server} }} }}"
        ))
    };
    let plain = of("", "auth: { type: login, perUser: true }").unwrap();
    assert_eq!(plain.warnings, [], "callers act with their own credentials");
    let plan = &plain.plan.servers["a"];
    assert_eq!(plan.per_user(), Some(&LoginClient::default()));
    assert!(plan.may_be_isolated());
    assert_eq!((plan.max_each, plan.max_instances), (4, 32), "each has instances of its own");
    let client = "auth: { type: login, perUser: true, clientId: me, clientSecret: x, issuer: 'https://id.example', scopes: s }";
    let named = of("", client).unwrap().plan;
    let client = named.servers["a"].per_user().unwrap();
    assert_eq!((client.id.as_deref(), client.secret.as_deref()), (Some("me"), Some("x")));
    assert_ne!(named.servers["a"].fingerprint(), plan.fingerprint());
    for (more, expected) in [
        ("strategy: stateful", "instances of its own"),
        ("strategy: singleton", "instances of its own"),
        ("sharing: shared", "share no instance"),
        ("minReady: 1", "ready for anybody"),
        ("activation: always-on", "without a caller"),
    ] {
        let faults = of("", &format!("auth: {{ type: login, perUser: true }}, {more}"));
        let faults = faults.map(|_| ()).unwrap_err().to_string();
        assert!(faults.contains(expected), "{more}: {faults}");
    }
    let faults = of("", "auth: { type: login, perUser: true, clientId: me, clientSecret: x }");
    assert!(faults.map(|_| ()).unwrap_err().to_string().contains("may be shown to"));
}

/// The names and addresses of the servers in another program's file, which gives no warning.
fn reaches(text: &str) -> Vec<String> {
    let loaded = loaded(text).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.warnings, [], "{text}");
    let reach = |plan: &ServerPlan| match &plan.reach {
        Reach::Stdio { command, args, env, .. } => {
            let env: Vec<_> = env.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("{}: {command} {}{}", plan.name, args.join(" "), env.concat())
        }
        Reach::Http { url, headers, .. } => {
            format!("{}: {url} {}", plan.name, headers.len())
        }
    };
    loaded.plan.servers.values().map(|it| reach(it)).collect()
}

#[test]
fn files_of_other_programs_are_catalogs() {
    let claude_desktop = r#"{
      "globalShortcut": "Ctrl+Space",
      "mcpServers": {
        "filesystem": {
          "command": "npx",
          "args": ["-y", "@modelcontextprotocol/server-filesystem", "/users/me/Desktop"]
        },
        "brave-search": { "command": "npx", "args": [], "env": { "BRAVE_API_KEY": "k" } }
      },
      "preferences": { "quickEntryDictationShortcut": "capslock" }
    }"#;
    assert_eq!(
        reaches(claude_desktop),
        [
            "brave-search: npx  BRAVE_API_KEY=k",
            "filesystem: npx -y @modelcontextprotocol/server-filesystem /users/me/Desktop",
        ]
    );
    let claude_code = r#"{
      "numStartups": 12, "tipsHistory": { "a": 1 },
      "mcpServers": {
        "api": { "type": "http", "url": "${BASE:-https://api.example}/mcp", "headers": { "X": "y" } },
        "old": { "type": "sse", "url": "https://old.example/sse" }
      }
    }"#;
    assert_eq!(
        reaches(claude_code),
        ["api: https://api.example/mcp 1", "old: https://old.example/sse 0"]
    );
    let cursor = r#"{
      "mcpServers": {
        "server-name": {
          "command": "npx", "args": ["-y", "mcp-server"], "env": { "API_KEY": "${env:TOKEN}" }
        },
        "remote": { "url": "http://localhost:3000/mcp", "headers": { "API_KEY": "value" } }
      }
    }"#;
    assert_eq!(
        reaches(cursor),
        [
            "remote: http://localhost:3000/mcp 1",
            "server-name: npx -y mcp-server API_KEY=hunter2-hunter2-hunter2",
        ]
    );
    let vs_code = r#"{
      // 💡 Inputs are asked for once
      "inputs": [
        { "type": "promptString", "id": "key", "description": "API Key", "password": true },
      ],
      "servers": {
        "playwright": {
          "command": "npx", /* the newest */
          "args": ["-y", "@microsoft/mcp-server-playwright"],
          "gallery": true,
          "dev": { "watch": "build/**/*.js" },
        },
        "github": { "type": "http", "url": "https://api.githubcopilot.com/mcp/" },
      },
    }"#;
    assert_eq!(
        reaches(vs_code),
        [
            "github: https://api.githubcopilot.com/mcp/ 0",
            "playwright: npx -y @microsoft/mcp-server-playwright",
        ]
    );
    let zed = r#"// Zed settings
    {
      "theme": "One Dark",
      "context_servers": {
        "mine": { "source": "custom", "command": "node", "args": ["~/a.js"], "env": {} }
      }
    }"#;
    assert_eq!(reaches(zed), ["mine: node ~/a.js"]);
    let windsurf = r#"{ "mcpServers": { "a": { "serverUrl": "https://a.example/mcp" } } }"#;
    assert_eq!(reaches(windsurf), ["a: https://a.example/mcp 0"]);
    let mcpv = r#"
servers:
  - name: weather
    transport: stdio
    cmd: ["npm", "exec", "weather-mcp"]
    env:
      KEY: ${TOKEN}
    tags: ["weather"]
    idleSeconds: 60
    maxConcurrent: 1
    strategy: stateless
    minReady: 0
    activationMode: on-demand
    drainTimeoutSeconds: 30
    protocolVersion: "2025-11-25"
    exposeTools: ["get_weather"]
  - name: remote
    transport: streamable_http
    protocolVersion: "2025-06-18"
    http:
      endpoint: "https://remote.example/mcp"
      headers: { Authorization: "Bearer ${TOKEN}" }
"#;
    assert_eq!(
        reaches(mcpv),
        [
            "remote: https://remote.example/mcp 1",
            "weather: npm exec weather-mcp KEY=hunter2-hunter2-hunter2",
        ]
    );
}

#[test]
fn a_disabled_server_is_left_out_and_its_faults_are_harmless() {
    let text = "mcpServers: { a: { command: '${NO}', disabled: true }, b: { command: c } }";
    let loaded = loaded(text).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.plan.servers.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(loaded.warnings.len(), 1);
    assert_eq!(loaded.warnings[0].message, "The variable `NO` is not set.");
}

#[test]
fn templates_are_shared_by_anchors() {
    let text = "
x-usual: &usual { strategy: persistent, env: { A: b } }
mcpServers:
  a: { <<: *usual, command: run }
  b: { <<: *usual, command: run, strategy: singleton }
";
    let loaded = loaded(text).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.plan.servers["a"].strategy, Strategy::Persistent);
    assert_eq!(loaded.plan.servers["b"].strategy, Strategy::Singleton);
}
