//! Ids and a text → the lines sent to a server, and whether a line that came back answers them.

use memchr::memmem;
use serde_json::{Value, json};

/// The two ways to talk that are measured: the newest session revision and the stateless one.
#[derive(Clone, Copy, PartialEq)]
pub enum Revision {
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    pub fn name(self) -> &'static str {
        match self {
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn named(name: &str) -> Result<Revision, String> {
        [Revision::V2025_11_25, Revision::V2026_07_28]
            .into_iter()
            .find(|revision| revision.name() == name)
            .ok_or_else(|| format!("`{name}` is not measured; say `2025-11-25` or `2026-07-28`."))
    }
}

/// One `tools/call` whose id is patched in place for each use.
pub struct Calls {
    pub revision: Revision,
    pub tool: String,
    text: String,
    /// The text as JSON, quotes included.
    encoded: Vec<u8>,
    line: Vec<u8>,
    /// Where the ten digits of the id begin in `line`, and those of the progress token, which are the same.
    ids_at: Vec<usize>,
    next_id: u64,
}

impl Calls {
    /// Calls of `echo`, or of `progress`, which are given a token.
    pub fn new(revision: Revision, tool: &str, payload: usize) -> Calls {
        let text: String = "a stitch in time saves nine, said the tailor to his mice; "
            .chars()
            .cycle()
            .take(payload)
            .collect();
        let encoded = json!(text).to_string();
        let mut meta = match revision {
            Revision::V2025_11_25 => json!({}),
            Revision::V2026_07_28 => meta(),
        };
        if tool == PROGRESS {
            meta["progressToken"] = json!(FIRST_ID);
        }
        let meta = match meta.as_object().is_some_and(|meta| meta.is_empty()) {
            true => String::new(),
            false => format!(r#","_meta":{meta}"#),
        };
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":{encoded}}}{meta}}}}}"#
        ) + "\n";
        let line = line.into_bytes();
        let ids_at = memmem::find_iter(&line, &FIRST_ID.to_string()).collect();
        let tool = tool.to_owned();
        Calls { revision, tool, text, encoded: encoded.into(), line, ids_at, next_id: FIRST_ID }
    }

    /// The next call's id and line.
    pub fn next(&mut self) -> (u64, &[u8]) {
        let id = self.next_id;
        self.next_id += 1;
        for at in &self.ids_at {
            patch(&mut self.line[*at..][..ID_DIGITS], id);
        }
        (id, &self.line)
    }

    /// The next call's id alone, for those who keep the line elsewhere.
    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// A call, and where the digits of its id stand in it.
    pub fn template(&self) -> (&[u8], &[usize]) {
        (&self.line[..self.line.len() - 1], &self.ids_at)
    }

    /// Whether `message` is the progress of the call with this id.
    pub fn is_progress(&self, message: &[u8], id: u64) -> bool {
        let mut token = *br#""progressToken":0000000000"#;
        let digits = token.len() - ID_DIGITS;
        patch(&mut token[digits..], id);
        memmem::find(message, br#""method":"notifications/progress""#).is_some()
            && memmem::find(message, &token).is_some()
    }

    /// The id that `line` answers with our text; `None` for a message without an id, which is no answer.
    pub fn answered(&self, line: &[u8]) -> Result<Option<u64>, String> {
        match self.glance(line) {
            Some(id) => Ok(Some(id)),
            None => self.read(line),
        }
    }

    pub fn hello(&self) -> String {
        match self.revision {
            Revision::V2025_11_25 => json!({
                "jsonrpc": "2.0", "id": HANDSHAKE_ID, "method": "initialize",
                "params": {"protocolVersion": self.revision.name(), "capabilities": self.capabilities(), "clientInfo": client_info()},
            }),
            Revision::V2026_07_28 => json!({
                "jsonrpc": "2.0", "id": HANDSHAKE_ID, "method": "server/discover", "params": {"_meta": meta()},
            }),
        }
        .to_string()
    }

    /// A client that is asked something has said that it can be.
    fn capabilities(&self) -> Value {
        if self.tool.ends_with(QUESTION) { json!({"elicitation": {}}) } else { json!({}) }
    }

    pub fn accepts(&self, answer: &Value) -> bool {
        let result = &answer["result"];
        match self.revision {
            Revision::V2025_11_25 => result["protocolVersion"] == self.revision.name(),
            Revision::V2026_07_28 => result["supportedVersions"]
                .as_array()
                .is_some_and(|all| all.contains(&json!(self.revision.name()))),
        }
    }

    /// What the revision wants said after the handshake.
    pub fn ready(&self) -> Option<String> {
        (self.revision == Revision::V2025_11_25)
            .then(|| json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string())
    }

    /// Compares bytes only: the driver must cost less than the fastest server. `None` means look properly.
    fn glance(&self, line: &[u8]) -> Option<u64> {
        let edge = line.len().min(EDGE);
        let id_at = match memmem::find(&line[..edge], ID_KEY) {
            Some(at) => at + ID_KEY.len(),
            None => {
                line.len() - edge + memmem::find(&line[line.len() - edge..], ID_KEY)? + ID_KEY.len()
            }
        };
        let digits = line.get(id_at..id_at + ID_DIGITS)?;
        let text_at = memmem::find(line, TEXT_KEY)? + TEXT_KEY.len();
        if !digits.iter().all(u8::is_ascii_digit) || !line[text_at..].starts_with(&self.encoded) {
            return None;
        }
        Some(digits.iter().fold(0, |id, digit| id * 10 + u64::from(digit - b'0')))
    }

    fn read(&self, line: &[u8]) -> Result<Option<u64>, String> {
        let shown = || String::from_utf8_lossy(&line[..line.len().min(300)]).into_owned();
        let message: Value = serde_json::from_slice(line)
            .map_err(|error| format!("it wrote a line that is no JSON ({error}): {}", shown()))?;
        if message["id"].is_null() {
            return Ok(None);
        }
        if message["result"]["content"][0]["text"] != self.text.as_str() {
            return Err(format!("it did not echo the text; it answered {}", shown()));
        }
        message["id"]
            .as_u64()
            .map(Some)
            .ok_or_else(|| format!("it answered an id that was never sent: {}", shown()))
    }
}

/// Writes the id over its digits.
pub fn patch(digits: &mut [u8], id: u64) {
    let mut rest = id;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": Revision::V2026_07_28.name(),
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn client_info() -> Value {
    json!({"name": "trunkline-bench", "version": env!("CARGO_PKG_VERSION")})
}

/// The tool that speaks before it answers.
pub const PROGRESS: &str = "progress";
/// The tool that never answers, and the one that asks first.
pub const PARK: &str = "park";
pub const QUESTION: &str = "question";
pub const HANDSHAKE_ID: u64 = 1;
/// Ten digits from the first call to the last, so that every call has the same length.
const FIRST_ID: u64 = 1_000_000_000;
pub const ID_DIGITS: usize = 10;
const ID_KEY: &[u8] = br#""id":"#;
const TEXT_KEY: &[u8] = br#""text":"#;
/// An id is looked for this close to either end of a line.
const EDGE: usize = 64;
