//! The facts of each revision's JSON Schema, mended, cut into definitions and compiled once per
//! process. `cargo xtask schemas` makes them from the published files.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};
use trunkline_wire::revision::Revision;

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
    /// The schema of `revision`, read on first use.
    pub(super) fn of(revision: Revision) -> &'static Self {
        static ALL: LazyLock<Vec<Schema>> =
            LazyLock::new(|| Revision::ALL.into_iter().map(Schema::read).collect());
        &ALL[revision as usize]
    }

    fn read(revision: Revision) -> Self {
        let text = FACTS[revision as usize];
        let mut file: Value = serde_json::from_str(text).expect("the facts are JSON");
        let (container, draft) = match file.get("$defs") {
            Some(_) => ("$defs", Draft::Draft202012),
            None => ("definitions", Draft::Draft7),
        };
        let mut definitions = file[container].take();
        mend(&mut definitions, revision);
        Self { revision, draft, container, definitions, compiled: Mutex::default() }
    }

    /// The name of every definition.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.as_object().into_iter().flat_map(|it| it.keys().map(String::as_str))
    }

    /// Collects what is required in `value` at `place`, going down through members and items. A
    /// union says nothing here: without a member the value may be another of its kinds.
    pub(super) fn required(
        &self,
        schema: &Value,
        value: &Value,
        place: &str,
        found: &mut Vec<(String, String)>,
    ) {
        if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
            let name = path.rsplit('/').next().unwrap_or_default();
            return self.required(self.definition(name), value, place, found);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.required(part, value, place, found);
        }
        if let Some(object) = value.as_object() {
            let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let names = names.filter_map(Value::as_str);
            found.extend(names.map(|name| (place.to_owned(), name.to_owned())));
            for (name, it) in object {
                if let Some(schema) = schema["properties"].get(name) {
                    let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                    self.required(schema, it, &place, found);
                }
            }
        }
        for (at, it) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(schema) = schema.get("items") {
                self.required(schema, it, &format!("{place}/{at}"), found);
            }
        }
    }

    /// What a definition says.
    pub(super) fn definition(&self, name: &str) -> &Value {
        &self.definitions[name]
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

/// In the order of [`Revision::ALL`].
const FACTS: [&str; 5] = [
    include_str!("../../schema/2024-11-05.json"),
    include_str!("../../schema/2025-03-26.json"),
    include_str!("../../schema/2025-06-18.json"),
    include_str!("../../schema/2025-11-25.json"),
    include_str!("../../schema/2026-07-28.json"),
];
