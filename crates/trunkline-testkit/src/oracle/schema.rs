//! The published JSON Schema of each revision, mended, cut into definitions and compiled once per
//! process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};
use trunkline_wire::revision::Revision;

/// Where the specification's files lie: `$TRUNKLINE_SHARED`, or `shared` beside a checkout. On a
/// build machine the variable must be set, so that a check is never skipped unnoticed.
pub fn shared() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("TRUNKLINE_SHARED") {
        return Ok(path.into());
    }
    if std::env::var_os("CI").is_some() {
        return Err("`TRUNKLINE_SHARED` is not set. Set it to the folder that holds \
                    `protocol/schema`; no message can be checked without it."
            .to_owned());
    }
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if beside.join("protocol/schema").is_dir() {
        return Ok(beside);
    }
    Err(format!(
        "There is no `{}`. Set `TRUNKLINE_SHARED` to the folder that holds `protocol/schema`.",
        beside.display()
    ))
}

/// One revision's definitions.
pub(super) struct Schema {
    revision: Revision,
    draft: Draft,
    /// `definitions` or `$defs`.
    container: &'static str,
    definitions: Value,
    compiled: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Schema {
    /// The schema of `revision`, read on first use. Without it every check fails and says why.
    pub(super) fn of(revision: Revision) -> &'static Self {
        static ALL: LazyLock<Result<Vec<Schema>, String>> =
            LazyLock::new(|| Revision::ALL.into_iter().map(Schema::read).collect());
        match &*ALL {
            Ok(all) => &all[revision as usize],
            Err(why) => panic!("{why}"),
        }
    }

    fn read(revision: Revision) -> Result<Self, String> {
        let folder = shared()?;
        let path = folder.join(format!("protocol/schema/{revision}.json"));
        let text = std::fs::read_to_string(&path)
            .map_err(|err| format!("Cannot read the schema `{}`: {err}", path.display()))?;
        let mut file: Value = serde_json::from_str(&text).expect("a schema is JSON");
        let (container, draft) = match file.get("$defs") {
            Some(_) => ("$defs", Draft::Draft202012),
            None => ("definitions", Draft::Draft7),
        };
        let mut definitions = file[container].take();
        mend(&mut definitions, revision);
        Ok(Self { revision, draft, container, definitions, compiled: Mutex::default() })
    }

    pub(super) fn has(&self, definition: &str) -> bool {
        self.definitions.get(definition).is_some()
    }

    /// The definition inside `union` (say `ClientRequest`) that has this method.
    pub(super) fn variant(&self, union: &str, kind: &str, method: &str) -> Option<String> {
        let union = self.definitions.get(union)?;
        let one = [union.clone()];
        let variants = union.get("anyOf").and_then(Value::as_array).map_or(&one[..], Vec::as_slice);
        let offered = variants.iter().any(|it| self.method_of(it) == Some(method));
        let is_it = |name: &&String| {
            name.ends_with(kind) && self.method_of(&self.definitions[name.as_str()]) == Some(method)
        };
        let named = self.definitions.as_object()?.keys().find(is_it)?;
        offered.then(|| named.clone())
    }

    fn method_of<'a>(&'a self, definition: &'a Value) -> Option<&'a str> {
        let target = match definition.get("$ref").and_then(Value::as_str) {
            Some(path) => &self.definitions[path.rsplit('/').next()?],
            None => definition,
        };
        target["properties"]["method"]["const"].as_str()
    }

    /// The definition of what answers `request`: `CallToolRequest` gives `CallToolResult`. The
    /// requests without such a definition are answered with an empty result.
    pub(super) fn result_of(&self, request: &str) -> String {
        let result = format!("{}Result", request.trim_end_matches("Request"));
        if self.has(&result) { result } else { "EmptyResult".to_owned() }
    }

    pub(super) fn result_envelope(&self) -> &'static str {
        if self.has("JSONRPCResultResponse") { "JSONRPCResultResponse" } else { "JSONRPCResponse" }
    }

    pub(super) fn error_envelope(&self) -> &'static str {
        if self.has("JSONRPCErrorResponse") { "JSONRPCErrorResponse" } else { "JSONRPCError" }
    }

    /// Whether `value` is what `definition` describes.
    pub(super) fn check(&self, definition: &str, value: &Value) -> Result<(), String> {
        let validator = self.compiled(definition)?;
        let faults: Vec<String> = validator
            .iter_errors(value)
            .map(|fault| format!("{} at `{}`", fault, fault.instance_path()))
            .collect();
        if faults.is_empty() {
            return Ok(());
        }
        Err(format!("This is no `{definition}`: {}", faults.join("; ")))
    }

    fn compiled(&self, definition: &str) -> Result<Arc<Validator>, String> {
        if !self.has(definition) {
            return Err(format!("The schema of {} has no `{definition}`.", self.revision));
        }
        let mut compiled = self.compiled.lock().expect("compiling does not panic");
        if let Some(validator) = compiled.get(definition) {
            return Ok(Arc::clone(validator));
        }
        let container = self.container;
        let document = json!({
            "$ref": format!("#/{container}/{definition}"),
            container: self.definitions,
        });
        let validator = jsonschema::options()
            .with_draft(self.draft)
            .should_validate_formats(true)
            .build(&document)
            .map_err(|err| format!("The schema of {} does not compile: {err}", self.revision))?;
        let validator = Arc::new(validator);
        compiled.insert(definition.to_owned(), Arc::clone(&validator));
        Ok(validator)
    }
}

/// Corrects what the generator of the files got wrong; the specification's TypeScript is normative.
fn mend(definitions: &mut Value, revision: Revision) {
    let primitive = json!({ "type": ["string", "number", "boolean"] });
    let mut replaced = 0;
    // Numbers in a form's answer came out as integers.
    if let Some(content) =
        definitions.pointer_mut("/ElicitResult/properties/content/additionalProperties")
    {
        match content.pointer_mut("/anyOf/1") {
            Some(value) => *value = primitive,
            None => *content = primitive,
        }
        replaced += 1;
    }
    // So did numbers in any JSON value, and `null` was lost.
    if let Some(value) = definitions.pointer_mut("/JSONValue/anyOf/2") {
        *value = json!({ "type": ["string", "number", "boolean", "null"] });
        replaced += 1;
    }
    // Up to 2025-06-18 an error must have an id, but JSON-RPC 2.0 wants `null` where the request's
    // own could not be read.
    if let Some(id) = definitions.pointer_mut("/JSONRPCError/properties/id") {
        *id = json!({ "anyOf": [id.take(), { "type": "null" }] });
        replaced += 1;
    }
    let expected = match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 | Revision::V2025_11_25 => 1,
        Revision::V2025_06_18 | Revision::V2026_07_28 => 2,
    };
    assert_eq!(
        replaced, expected,
        "The schema of {revision} has changed; see what `mend` corrects."
    );
}
