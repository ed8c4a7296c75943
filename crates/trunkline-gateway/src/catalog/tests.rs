//! Whole catalogs, from text to plan.

mod bad;
mod good;
mod odd;
mod once;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde_json::Value;

use super::file::{Data, Node};
use super::{Env, Faults, Loaded, check, file, load};

/// A fake environment with fake files.
#[derive(Default)]
pub(super) struct FakeEnv {
    vars: BTreeMap<&'static str, &'static str>,
    files: BTreeMap<&'static str, &'static str>,
}

impl FakeEnv {
    pub(super) fn usual() -> Self {
        Self {
            vars: [
                ("HOME", "/users/me"),
                ("TOKEN", "hunter2-hunter2-hunter2"),
                ("NUMBER", "7"),
                ("YES", "true"),
                ("LINES", "a\nb"),
                ("STRATEGY", "stateful"),
            ]
            .into(),
            files: [
                ("/etc/trunkline/secret", "hunter2\n"),
                ("/etc/trunkline/variables", "# ours\nFILED=hunter3\nTOKEN=never\n"),
                ("/etc/trunkline/bad-variables", "A=1\nhunter2\n"),
                ("/etc/trunkline/c.pem", "certificate"),
                ("/etc/trunkline/k.pem", "key"),
                ("/etc/trunkline/replicas.key", KEY),
                ("/etc/trunkline/ca.pem", "authority"),
            ]
            .into(),
        }
    }
}

impl Env for FakeEnv {
    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).map(|it| (*it).to_owned())
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let found = self.files.get(path.to_str().unwrap()).map(|it| (*it).to_owned());
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn is_file(&self, path: &Path) -> bool {
        self.files.contains_key(path.to_str().unwrap())
    }
}

fn loaded(text: &str) -> Result<Loaded, Faults> {
    load(text, ORIGIN.as_ref(), &FakeEnv::usual())
}

/// The keys that a check of a text reads.
pub(super) fn asked(text: &str, env: &FakeEnv) -> BTreeSet<String> {
    let document = file::read(text).unwrap_or_else(|it| panic!("{text}: {it:?}"));
    let checked = check::check(&document, "/etc/trunkline".as_ref(), env);
    assert_eq!(checked.faults, [], "{text}");
    checked.asked
}

/// A file as JSON, without expansion.
pub(super) fn as_json(text: &str) -> Value {
    fn json(node: &Node) -> Value {
        match &node.data {
            _ if node.is_null() => Value::Null,
            Data::Scalar { text, is_plain: true } => {
                serde_json::from_str(text).unwrap_or_else(|_| text.clone().into())
            }
            Data::Scalar { text, .. } => text.clone().into(),
            Data::List(list) => list.iter().map(json).collect(),
            Data::Map(pairs) => {
                pairs.iter().map(|(name, it)| (name.text.clone(), json(it))).collect()
            }
        }
    }
    json(&file::read(text).unwrap_or_else(|it| panic!("{text}: {it:?}")).root)
}

const ORIGIN: &str = "/etc/trunkline/trunkline.yaml";

/// Every key that a program and the gateway can have.
pub(super) const EVERYTHING: &str = r#"
mcpServers:
  time:
    name: time
    type: stdio
    command: uvx
    args: [mcp-server-time, --port, 8080]
    env: { TZ: "${TZ:-UTC}", KEY: { file: ./secret }, OTHER: { env: TOKEN }, PORT: 80 }
    inherit: [LANG]
    cwd: ./work
    tags: [Clock, agent, clock]
    strategy: ${STRATEGY}
    sharing: isolated
    questions: [elicitation, roots]
    affinity: meta:user
    idleSeconds: 0.5
    maxConcurrent: ${NUMBER}
    maxInstances: "${NUMBER}"
    maxInstancesTotal: 9
    minReady: 2
    sessionTTLSeconds: 0
    activation: always-on
    drainTimeoutSeconds: 5
    disabled: false
    enabled: ${YES}
    timeouts: { startSeconds: 1, acquireSeconds: 2, callSeconds: 3, hardSeconds: 4 }
    probe: { everySeconds: 0, timeoutSeconds: 6 }
    retry: { baseSeconds: 7, maxSeconds: 8, tries: 9 }
    protocolVersion: ">=2025-06-18"
    exposeTools: [get_*]
    renameTools: { get_time: now }
    idempotentTools: [get_*]
    pin: false
gateway:
  listen: 0.0.0.0:7373
  naming: flat
  plaintext: true
  requireSelector: true
  share: true
  hosts: [mcp.example]
  origins: ["https://app.example"]
  inherit: [HTTPS_PROXY, TZ]
  auth:
    tokens: [{ name: alice, token: "${TOKEN}", tags: [A] }]
    issuers: [https://id.example]
    resource: https://mcp.example/mcp
    scopes: [mcp]
    claims: { name: email, groups: realm_access.roles, tags: mcp_tags }
    groups: [{ name: eng, tags: [Work] }]
  tls: { certificate: c.pem, key: k.pem }
  admin:
    listen: 127.0.0.1:7374
    token: { env: TOKEN }
    mtls: { certificate: c.pem, key: k.pem, clientCertificates: ca.pem }
  rules:
    - { principals: [a*], tags: [x], tools: ["git.push*"], effect: ask }
    - { effect: allow }
  rates: [{ principals: [b], tools: [git.*], perMinute: 600, burst: 50 }, { perMinute: 5 }]
  envFile: variables
  audit: { path: audit.jsonl, onFailure: refuse, syncSeconds: 2 }
  recording: { payloads: always, sample: 0.25, keep: 8MiB, file: traffic.jsonl, redact: apiKey }
  plugins:
    - name: p
      category: rate_limiting
      required: false
      disabled: false
      command: [./plugin, --now]
      env: { A: b }
      timeoutMs: 10
      config: { deep: [1, "2", true, null, "${NUMBER}", "$${x}"] }
  automatic: { tags: [agent], limit: 3 }
  bootstrap: 5
  refreshSeconds: 6
  store: rediss://:${TOKEN}@cache.example/2
  storeRootCertificates: [ca.pem]
  replicas:
    listen: 10.0.0.7:7474
    advertise: https://a.replicas.example:7474
    keys: ["${file:replicas.key}", 0123456789abcdef0123456789abcdef]
    rootCertificates: ca.pem
    whenAway: local
    insecure: true
"#;

/// A key of replicas, in hexadecimal.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eFF\n";

/// The minimal program.
pub(super) const PROGRAM: &str = "mcpServers: { a: { command: b } }";

/// Every key that only a URL can have.
pub(super) const REMOTE: &str = r#"
mcpServers:
  a:
    url: https://a.example/mcp
    headers: { X-Key: "${TOKEN}" }
    rootCertificates: ca.pem
    auth:
      { type: clientCredentials, clientId: me, clientSecret: { file: secret }, issuer: https://id.example, scopes: [s] }
  b:
    transport: streamable_http
    http: { endpoint: "https://b.example/mcp", headers: { X-Key: k } }
"#;
