//! A schema's JSON → rules, with every `$ref` resolved.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Number, Value};
use trunkline_wire::json::Json;
use trunkline_wire::text::percent_decode;

use super::budget::{MOST_PATTERNS, Pattern};
use super::choice::Choices;
use super::number::Bound;
use super::render::{Types, cut};
use super::{Format, Id, Members, Node, Rule, Schema};

pub(super) fn compile(schema: &Json, formats: bool) -> Result<Schema, String> {
    if schema.get().len() > MOST_BYTES {
        return Err(format!("The schema is longer than {MOST_BYTES} bytes."));
    }
    let root = super::strict::read(schema.get()).map_err(|why| format!("In the schema, {why}"))?;
    let mut compiler = Compiler { formats, ..Compiler::new(&root) };
    compiler.find_anchors(&root);
    compiler.id_of(&root, "#".to_owned())?;
    // Schemas are queued here instead of being compiled where they are found: a chain of references
    // needs no stack.
    let mut next = 0;
    while let Some((schema, at)) = compiler.waiting.get(next).cloned() {
        let node = compiler.node(schema, &at)?;
        compiler.nodes.push(node);
        next += 1;
    }
    let Compiler { mut nodes, tracks, says_more, .. } = compiler;
    let has_secrets = nodes.iter().any(|it| it.secret);
    if has_secrets {
        mark_holders(&mut nodes);
    }
    let schema = Schema { nodes, tracks, says_more, has_secrets, takes_slips: false };
    Ok(Schema { takes_slips: schema.open_members().is_some(), ..schema })
}

/// Marks every node that has a secret anywhere in it.
fn mark_holders(nodes: &mut [Node]) {
    let mut above: Vec<Vec<Id>> = vec![Vec::new(); nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        node.rules.iter().flat_map(Rule::parts).for_each(|inner| above[inner].push(id));
    }
    let mut next: Vec<Id> = (0..nodes.len()).filter(|id| nodes[*id].secret).collect();
    while let Some(id) = next.pop() {
        if !std::mem::replace(&mut nodes[id].holds_secret, true) {
            next.append(&mut above[id]);
        }
    }
}

struct Compiler<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// The schemas found so far, in the order of their ids, with their places.
    waiting: Vec<(&'a Value, String)>,
    /// The ids of schemas by address.
    ids: HashMap<*const Value, Id>,
    nodes: Vec<Node>,
    /// Whether the schema declares a draft before 2019-09.
    is_old: bool,
    formats: bool,
    tracks: bool,
    says_more: bool,
    /// The total size of all patterns so far.
    patterns: usize,
}

type Found<T> = Result<T, String>;

impl<'a> Compiler<'a> {
    fn new(root: &'a Value) -> Self {
        let dialect = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        Self {
            root,
            anchors: HashMap::new(),
            waiting: Vec::new(),
            ids: HashMap::new(),
            nodes: Vec::new(),
            is_old: dialect.contains("/draft-0"),
            formats: false,
            tracks: false,
            says_more: false,
            patterns: 0,
        }
    }

    /// The id of a schema, which is compiled in its turn.
    fn id_of(&mut self, schema: &'a Value, at: String) -> Found<Id> {
        let address = std::ptr::from_ref(schema);
        if let Some(id) = self.ids.get(&address) {
            return Ok(*id);
        }
        let id = self.waiting.len();
        if id >= MOST_NODES {
            return Err(format!("The schema has more than {MOST_NODES} parts."));
        }
        self.ids.insert(address, id);
        // A very long place would be copied into every place below it.
        let at = if at.len() > MOST_PLACE { cut(&at) } else { at };
        self.waiting.push((schema, at));
        Ok(id)
    }

    fn node(&mut self, schema: &'a Value, at: &str) -> Found<Node> {
        let members = match schema {
            Value::Bool(true) => return Ok(Node::default()),
            Value::Bool(false) => {
                return Ok(Node { rules: vec![Rule::Never], ..Node::default() });
            }
            Value::Object(members) => members,
            _ => {
                return Err(format!(
                    "The schema at `{at}` is neither an object nor true or false."
                ));
            }
        };
        let secret = members.get("writeOnly") == Some(&Value::Bool(true));
        let mut part = Part { compiler: self, members, at, rules: Vec::new() };
        part.references()?;
        let is_all = part.compiler.is_old && members.contains_key("$ref");
        if !is_all {
            part.values()?;
            part.objects()?;
            part.arrays()?;
            part.combinations()?;
            part.unevaluated()?;
        }
        let rules = part.rules;
        self.says_more |= has_more_than_serde(members);
        Ok(Node { rules, secret, holds_secret: false })
    }

    fn find_anchors(&mut self, value: &'a Value) {
        match value {
            Value::Object(members) => {
                for name in ["$anchor", "$dynamicAnchor"] {
                    if let Some(Value::String(anchor)) = members.get(name) {
                        self.anchors.insert(anchor, value);
                    }
                }
                for (name, inner) in members {
                    // A value that is not a schema may look like anything.
                    if !matches!(name.as_str(), "enum" | "const" | "default" | "examples") {
                        self.find_anchors(inner);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|it| self.find_anchors(it)),
            _ => {}
        }
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let own = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let own = own.trim_end_matches('#');
        let local = match reference.strip_prefix(own) {
            Some(rest) if rest.is_empty() || rest.starts_with('#') => rest,
            _ => reference,
        };
        if local.is_empty() {
            return Some(self.root);
        }
        let fragment = percent_decode(local.strip_prefix('#')?)?;
        match fragment.as_str() {
            "" => Some(self.root),
            pointer if pointer.starts_with('/') => self.root.pointer(pointer),
            anchor => self.anchors.get(anchor).copied(),
        }
    }
}

/// One schema while its keywords are compiled.
struct Part<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    members: &'a Map<String, Value>,
    at: &'c str,
    rules: Vec<Rule>,
}

impl<'a> Part<'_, 'a> {
    fn references(&mut self) -> Found<()> {
        if self.at != "#" && self.members.contains_key("$id") && !self.compiler.is_old {
            return Err(format!("The schema at `{}` has an `$id`; only the whole may.", self.at));
        }
        // In a single document the dynamic scope is that document.
        for name in ["$ref", "$dynamicRef"] {
            let Some(reference) = self.members.get(name) else { continue };
            let text = reference.as_str().unwrap_or_default();
            let target = self.compiler.target(text).ok_or_else(|| {
                format!(
                    "The `{name}` at `{}` leads to `{text}`, which is not in the schema; nothing is \
                     fetched from elsewhere.",
                    self.at
                )
            })?;
            let id = self.compiler.id_of(target, text.to_owned())?;
            self.rules.push(Rule::Ref(id));
        }
        Ok(())
    }

    fn values(&mut self) -> Found<()> {
        if let Some(kind) = self.members.get("type") {
            let names = kind.as_array().map_or(std::slice::from_ref(kind), Vec::as_slice);
            let mut types = Types::default();
            for name in names {
                let one = name.as_str().and_then(Types::named);
                types = types.with(one.ok_or_else(|| self.wrong("type", "a type or several"))?);
            }
            self.rules.push(Rule::Types(types));
        }
        if let Some(values) = self.list("enum")? {
            self.rules.push(Rule::Enum(Choices::new(values.clone())));
        }
        if let Some(value) = self.members.get("const") {
            self.rules.push(Rule::Enum(Choices::new(vec![value.clone()])));
        }
        for (name, bound) in BOUNDS {
            if let Some(number) = self.number(name)? {
                self.rules.push(Rule::Bound(bound, number));
            }
        }
        if let Some(number) = self.number("multipleOf")? {
            if number.as_f64().is_none_or(|it| it <= 0.0) {
                return Err(self.wrong("multipleOf", "more than 0"));
            }
            self.rules.push(Rule::MultipleOf(number));
        }
        self.count("minLength", Rule::MinLength)?;
        self.count("maxLength", Rule::MaxLength)?;
        if let Some(pattern) = self.members.get("pattern") {
            let pattern = pattern.as_str().ok_or_else(|| self.wrong("pattern", "a text"))?;
            let pattern = self.pattern(pattern)?;
            self.rules.push(Rule::Pattern(pattern));
        }
        let format = self.members.get("format").and_then(Value::as_str).and_then(Format::named);
        self.rules.extend(format.filter(|_| self.compiler.formats).map(Rule::Format));
        Ok(())
    }

    fn objects(&mut self) -> Found<()> {
        let required = self.names("required", self.members.get("required"))?;
        let named = self.schemas("properties")?;
        let mut patterns = Vec::new();
        for (pattern, id) in self.schemas("patternProperties")? {
            patterns.push((self.pattern(&pattern)?, id));
        }
        let others = self.schema("additionalProperties")?;
        if !required.is_empty() {
            self.rules.push(Rule::Required(required.clone()));
        }
        if !named.is_empty() || !patterns.is_empty() || others.is_some() {
            let required = required.into_iter().collect();
            let members = Members { named, patterns, others, required };
            self.rules.push(Rule::Members(Box::new(members)));
        }
        let names = self.schema("propertyNames")?;
        self.rules.extend(names.map(Rule::PropertyNames));
        self.count("minProperties", Rule::MinProperties)?;
        self.count("maxProperties", Rule::MaxProperties)?;

        let mut names = BTreeMap::new();
        let mut schemas = self.schemas("dependentSchemas")?;
        for (name, needed) in self.object("dependentRequired")?.into_iter().flatten() {
            names.insert(name.clone(), self.names("dependentRequired", Some(needed))?);
        }
        if self.compiler.is_old {
            for (name, needed) in self.object("dependencies")?.into_iter().flatten() {
                if needed.is_array() {
                    names.insert(name.clone(), self.names("dependencies", Some(needed))?);
                } else {
                    let at = format!("{}/dependencies/{name}", self.at);
                    schemas.insert(name.clone(), self.compiler.id_of(needed, at)?);
                }
            }
        }
        if !names.is_empty() {
            self.rules.push(Rule::DependentRequired(names));
        }
        if !schemas.is_empty() {
            self.rules.push(Rule::DependentSchemas(schemas));
        }
        Ok(())
    }

    fn arrays(&mut self) -> Found<()> {
        let is_tuple =
            self.compiler.is_old && self.members.get("items").is_some_and(Value::is_array);
        let (prefix, rest) = match is_tuple {
            true => (self.schema_list("items")?, self.schema("additionalItems")?),
            false if self.compiler.is_old => (Vec::new(), self.schema("items")?),
            false => (self.schema_list("prefixItems")?, self.schema("items")?),
        };
        if !prefix.is_empty() || rest.is_some() {
            self.rules.push(Rule::Items { prefix, rest });
        }
        if let Some(item) = self.schema("contains")? {
            let least = self.whole("minContains")?.unwrap_or(1);
            let most = self.whole("maxContains")?;
            self.rules.push(Rule::Contains { item, least, most });
        }
        self.count("minItems", Rule::MinItems)?;
        self.count("maxItems", Rule::MaxItems)?;
        if self.members.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.rules.push(Rule::UniqueItems);
        }
        Ok(())
    }

    fn combinations(&mut self) -> Found<()> {
        self.several("allOf", Rule::AllOf)?;
        self.several("anyOf", Rule::AnyOf)?;
        self.several("oneOf", Rule::OneOf)?;
        let not = self.schema("not")?;
        self.rules.extend(not.map(Rule::Not));
        if let Some(condition) = self.schema("if")? {
            let (then, otherwise) = (self.schema("then")?, self.schema("else")?);
            self.rules.push(Rule::If { condition, then, otherwise });
        }
        Ok(())
    }

    fn unevaluated(&mut self) -> Found<()> {
        if self.compiler.is_old {
            return Ok(());
        }
        let items = self.schema("unevaluatedItems")?.map(Rule::UnevaluatedItems);
        let members = self.schema("unevaluatedProperties")?.map(Rule::UnevaluatedProperties);
        self.compiler.tracks |= items.is_some() || members.is_some();
        self.rules.extend(items);
        self.rules.extend(members);
        Ok(())
    }

    fn schema(&mut self, name: &str) -> Found<Option<Id>> {
        let Some(schema) = self.members.get(name) else { return Ok(None) };
        self.compiler.id_of(schema, format!("{}/{name}", self.at)).map(Some)
    }

    fn schema_list(&mut self, name: &str) -> Found<Vec<Id>> {
        let Some(schemas) = self.list(name)? else { return Ok(Vec::new()) };
        let at = self.at;
        let id = |(index, schema)| self.compiler.id_of(schema, format!("{at}/{name}/{index}"));
        schemas.iter().enumerate().map(id).collect()
    }

    fn schemas(&mut self, name: &str) -> Found<BTreeMap<String, Id>> {
        let Some(schemas) = self.object(name)? else { return Ok(BTreeMap::new()) };
        let at = self.at;
        let id = |(inner, schema): (&String, &'a Value)| {
            let id = self.compiler.id_of(schema, format!("{at}/{name}/{inner}"))?;
            Ok((inner.clone(), id))
        };
        schemas.iter().map(id).collect()
    }

    fn object(&self, name: &str) -> Found<Option<&'a Map<String, Value>>> {
        let Some(value) = self.members.get(name) else { return Ok(None) };
        value.as_object().map(Some).ok_or_else(|| self.wrong(name, "an object"))
    }

    fn list(&self, name: &str) -> Found<Option<&'a Vec<Value>>> {
        let Some(value) = self.members.get(name) else { return Ok(None) };
        value.as_array().map(Some).ok_or_else(|| self.wrong(name, "a list"))
    }

    fn names(&self, keyword: &str, names: Option<&Value>) -> Found<Vec<String>> {
        let Some(names) = names else { return Ok(Vec::new()) };
        let texts = names.as_array().and_then(|names| {
            names.iter().map(|it| it.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.ok_or_else(|| self.wrong(keyword, "a list of names"))
    }

    fn number(&self, name: &str) -> Found<Option<Number>> {
        match self.members.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(_) => Err(self.wrong(name, "a number")),
        }
    }

    fn whole(&self, name: &str) -> Found<Option<u64>> {
        let Some(number) = self.number(name)? else { return Ok(None) };
        let float = || number.as_f64().filter(|it| *it >= 0.0 && it.fract() == 0.0);
        let whole = number.as_u64().or_else(|| float().map(|it| it as u64));
        whole.map(Some).ok_or_else(|| self.wrong(name, "a whole number that is not negative"))
    }

    fn several(&mut self, name: &str, rule: fn(Vec<Id>) -> Rule) -> Found<()> {
        let schemas = self.schema_list(name)?;
        self.rules.extend(Some(schemas).filter(|it| !it.is_empty()).map(rule));
        Ok(())
    }

    fn count(&mut self, name: &str, rule: fn(u64) -> Rule) -> Found<()> {
        let count = self.whole(name)?;
        self.rules.extend(count.map(rule));
        Ok(())
    }

    fn pattern(&mut self, text: &str) -> Found<Pattern> {
        let at = self.at;
        let pattern = Pattern::new(text)
            .map_err(|why| format!("The pattern `{}` at `{at}` {why}.", cut(text)))?;
        self.compiler.patterns += pattern.size;
        if self.compiler.patterns > MOST_PATTERNS {
            return Err(format!(
                "The patterns of the schema are too large: written out, they have more than \
                 {MOST_PATTERNS} bytes."
            ));
        }
        Ok(pattern)
    }

    fn wrong(&self, keyword: &str, must: &str) -> String {
        format!("The `{keyword}` of the schema at `{}` must be {must}.", self.at)
    }
}

/// Whether a schema of a Rust type has a constraint that deserializing the type does not check.
/// Unknown keywords are annotations.
fn has_more_than_serde(members: &Map<String, Value>) -> bool {
    let has = |name| members.contains_key(name);
    let fields = members.get("properties").and_then(Value::as_object);
    let has_fields = fields.is_some_and(|it| !it.is_empty());
    let is_integer = members.get("type").is_some_and(|kind| match kind {
        Value::Array(types) => types.iter().all(|it| it == "integer" || it == "null"),
        kind => kind == "integer",
    });
    members.iter().any(|(name, value)| match name.as_str() {
        // A type with both fields and variants has one of them by hand.
        "anyOf" | "oneOf" => has_fields || has("required") || has("items") || has("prefixItems"),
        // A map is deserialized as one; a struct would ignore unknown fields.
        "additionalProperties" => {
            value != &Value::Bool(true) && (has("properties") || !value.is_object())
        }
        "minItems" | "maxItems" => !has("prefixItems"),
        "items" => value == &Value::Bool(false) && !has("prefixItems"),
        "minimum" | "maximum" => !(is_integer && is_natural_bound(value)),
        "exclusiveMinimum"
        | "exclusiveMaximum"
        | "multipleOf"
        | "minLength"
        | "maxLength"
        | "pattern"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "patternProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies"
        | "contains"
        | "uniqueItems"
        | "additionalItems"
        | "not"
        | "if"
        | "unevaluatedItems"
        | "unevaluatedProperties" => true,
        _ => false,
    })
}

/// Whether a bound is that of a Rust type. A hand-written bound of the same value is a float; see
/// [`schema`](crate::schema).
pub(crate) fn is_natural_bound(value: &Value) -> bool {
    const BOUNDS: [i64; 7] = [0, 255, 65_535, -128, 127, -32_768, 32_767];
    value.as_i64().is_some_and(|it| BOUNDS.contains(&it))
}

const BOUNDS: [(&str, Bound); 4] = [
    ("minimum", Bound::Minimum),
    ("maximum", Bound::Maximum),
    ("exclusiveMinimum", Bound::ExclusiveMinimum),
    ("exclusiveMaximum", Bound::ExclusiveMaximum),
];

const MOST_BYTES: usize = 1 << 20;
const MOST_NODES: usize = 10_000;
/// The longest place in messages.
const MOST_PLACE: usize = 1000;
