//! Tools and resources as the dialect lists them, and its `query` as a URI.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::json::Json;
use crate::jsonrpc::{ErrorObject, Object};
use crate::model::{Resource, ResourceTemplate, Tool};
use crate::text::{UriTemplate, Value};

/// A tool of `tools/list` in the dialect's form.
pub(super) fn tool(raw: &Json) -> Result<Json, serde_json::Error> {
    let mut tool = Object::parse(raw.get())?;
    let mut shaped = Object::default();
    shaped.set("toolId", required(&mut tool, "name")?);
    shaped.set("description", description(&mut tool));
    shaped.set("inputSchema", required(&mut tool, "inputSchema")?);
    Ok(with_rest(shaped, &tool))
}

/// A resource of `resources/list` in the dialect's form.
pub(super) fn resource(raw: &Json) -> Result<Json, serde_json::Error> {
    let mut resource = Object::parse(raw.get())?;
    let mut shaped = Object::default();
    shaped.set("resourceId", required(&mut resource, "uri")?);
    shaped.set("description", description(&mut resource));
    shaped.set("querySchema", query_schema(&[]));
    Ok(with_rest(shaped, &resource))
}

/// A template of `resources/templates/list` in the dialect's form: its variables are the query.
pub(super) fn template(raw: &Json) -> Result<Json, serde_json::Error> {
    let mut template = Object::parse(raw.get())?;
    let id = required(&mut template, "uriTemplate")?;
    let parsed = UriTemplate::parse(&id.to::<String>()?);
    let variables = parsed.map(|it| variables(&it)).unwrap_or_default();
    let mut shaped = Object::default();
    shaped.set("resourceId", id);
    shaped.set("description", description(&mut template));
    shaped.set("querySchema", query_schema(&variables));
    Ok(with_rest(shaped, &template))
}

/// Reads the answer to `mcp/listTools`. The schema may be called `parameters`.
///
/// ```
/// # use trunkline_wire::{dialect::*, json::Json};
/// let raw = Json::parse(r#"[{"toolId":"add","parameters":{"type":"object"}},{"name":"now"}]"#);
/// let tools = read_tools(&raw.unwrap()).unwrap();
/// assert_eq!((&*tools[0].name, &*tools[1].name), ("add", "now"));
/// assert_eq!(tools[1].input_schema.get(), r#"{"type":"object"}"#);
/// ```
pub fn read_tools(raw: &Json) -> Result<Vec<Tool>, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Listed {
        #[serde(alias = "name")]
        tool_id: String,
        #[serde(default)]
        title: Option<String>,
        #[serde(default)]
        description: Option<String>,
        #[serde(default, alias = "parameters")]
        input_schema: Option<Json>,
        #[serde(default)]
        output_schema: Option<Json>,
    }
    let listed: Vec<Listed> = raw.to()?;
    let tools = listed.into_iter().map(|it| {
        let schema = it.input_schema.filter(Json::is_object);
        let schema = schema.unwrap_or_else(|| Json::of(&serde_json::json!({ "type": "object" })));
        let mut tool = Tool::new(it.tool_id, schema);
        tool.title = it.title;
        tool.description = it.description;
        tool.output_schema = it.output_schema;
        tool
    });
    Ok(tools.collect())
}

/// Reads the answer to `mcp/listResources`; a resource with a query is a template.
///
/// ```
/// # use trunkline_wire::{dialect::*, json::Json};
/// let raw = Json::parse(r#"[{"resourceId":"file:///a"},{"resourceId":"city://{name}"}]"#);
/// let (resources, templates) = read_resources(&raw.unwrap()).unwrap();
/// assert_eq!(resources[0].uri, "file:///a");
/// assert_eq!(templates[0].uri_template, "city://{name}");
/// ```
pub fn read_resources(
    raw: &Json,
) -> Result<(Vec<Resource>, Vec<ResourceTemplate>), serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Listed {
        #[serde(alias = "uri")]
        resource_id: String,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        title: Option<String>,
        #[serde(default)]
        description: Option<String>,
        #[serde(default)]
        mime_type: Option<String>,
    }
    let listed: Vec<Listed> = raw.to()?;
    let (mut resources, mut templates) = (Vec::new(), Vec::new());
    for it in listed {
        let name = it.name.unwrap_or_else(|| it.resource_id.clone());
        if is_template(&it.resource_id).is_some() {
            let mut template = ResourceTemplate::new(it.resource_id, name);
            template.title = it.title;
            template.description = it.description;
            template.mime_type = it.mime_type;
            templates.push(template);
        } else {
            let mut resource = Resource::new(it.resource_id, name);
            resource.title = it.title;
            resource.description = it.description;
            resource.mime_type = it.mime_type;
            resources.push(resource);
        }
    }
    Ok((resources, templates))
}

/// The URI to read: a template's variables come from the query, and a plain resource takes none.
pub(super) fn expand(id: String, query: Object) -> Result<String, ErrorObject> {
    let Some(template) = is_template(&id) else {
        return match query.is_empty() {
            true => Ok(id),
            false => Err(ErrorObject::invalid_params("This resource takes no `query`.")),
        };
    };
    let variables = variables(&template);
    let mut values = BTreeMap::new();
    for (name, raw) in query.iter() {
        if !variables.iter().any(|(variable, _)| variable == name) {
            let message = format!("This resource's `query` has no `{name}`.");
            return Err(ErrorObject::invalid_params(message));
        }
        if raw.is_null() {
            continue;
        }
        let value = value(raw).ok_or_else(|| {
            let message = format!("`{name}` in `query` must be a text, a number or a list.");
            ErrorObject::invalid_params(message)
        })?;
        values.insert(name.to_owned(), value);
    }
    let missing = variables.iter().find(|(name, needed)| *needed && !values.contains_key(name));
    match missing {
        Some((name, _)) => Err(ErrorObject::invalid_params(format!("`query` must hold `{name}`."))),
        None => Ok(template.expand(&values)),
    }
}

fn is_template(id: &str) -> Option<UriTemplate> {
    UriTemplate::parse(id).ok().filter(|template| template.variables().count() > 0)
}

/// The distinct variables, and whether the URI needs each.
fn variables(template: &UriTemplate) -> Vec<(String, bool)> {
    let mut names: Vec<String> = Vec::new();
    for variable in template.variables() {
        if !names.iter().any(|name| **name == *variable.name) {
            names.push(variable.name.to_string());
        }
    }
    // Without a required variable, the URI no longer matches the template.
    let is_needed = |name: &String| {
        let others = names.iter().filter(|other| *other != name);
        let filled = others.map(|other| (other.clone(), Value::Text("x".into()))).collect();
        template.matches(&template.expand(&filled)).is_none()
    };
    names.iter().map(|name| (name.clone(), is_needed(name))).collect()
}

fn value(raw: &Json) -> Option<Value> {
    match raw.get().as_bytes().first()? {
        b'[' => {
            let items: Vec<Json> = raw.to().ok()?;
            items.iter().map(scalar).collect::<Option<_>>().map(Value::List)
        }
        b'{' => {
            let members = Object::parse(raw.get()).ok()?;
            let pair = |(name, value): (&str, &Json)| Some((name.to_owned(), scalar(value)?));
            members.iter().map(pair).collect::<Option<_>>().map(Value::Pairs)
        }
        _ => scalar(raw).map(Value::Text),
    }
}

/// A string, number or boolean as it appears in a URI.
fn scalar(raw: &Json) -> Option<String> {
    match raw.get().as_bytes().first()? {
        b'"' => raw.to().ok(),
        b'[' | b'{' | b'n' => None,
        _ => Some(raw.get().to_owned()),
    }
}

fn query_schema(variables: &[(String, bool)]) -> Json {
    let mut properties = Object::default();
    for (name, _) in variables {
        properties.set(name.clone(), Json::of(&serde_json::json!({ "type": "string" })));
    }
    let needed: Vec<_> = variables.iter().filter(|(_, it)| *it).map(|(name, _)| name).collect();
    let mut schema = Object::default();
    schema.set("type", Json::string("object"));
    schema.set("properties", properties.to_json());
    if !needed.is_empty() {
        schema.set("required", Json::of(&needed));
    }
    schema.set("additionalProperties", Json::of(&false));
    schema.to_json()
}

fn required(object: &mut Object, name: &'static str) -> Result<Json, serde_json::Error> {
    object.take(name).ok_or_else(|| serde::de::Error::missing_field(name))
}

fn description(object: &mut Object) -> Json {
    object.take("description").unwrap_or_else(|| Json::string(""))
}

fn with_rest(mut shaped: Object, rest: &Object) -> Json {
    for (name, value) in rest.iter().filter(|(name, _)| *name != "_meta") {
        shaped.set(name.to_owned(), value.clone());
    }
    shaped.to_json()
}
