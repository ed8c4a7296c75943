//! Lists of tools → the headers that calls of these tools need.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::Deserialize;

use super::param::ParamHeaders;
use crate::json::Json;

/// The annotated tools of one server. Bounded: tools without annotations are not in it, and beyond its
/// bounds the tool that was learnt first is evicted.
#[derive(Clone, Debug, Default)]
pub struct ParamRegistry {
    tools: HashMap<String, Arc<ParamHeaders>>,
    /// The same names in insertion order.
    order: VecDeque<String>,
    weight: usize,
}

impl ParamRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one page of tools: each tool in it replaces the known one, other tools stay. A tool with
    /// invalid annotations is removed.
    pub fn learn(&mut self, list_tools_result: &Json) {
        #[derive(Deserialize)]
        struct Page {
            tools: Vec<Tool>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tool {
            name: String,
            #[serde(default)]
            input_schema: Option<Json>,
        }
        let text = list_tools_result.get();
        let is_plain = !text.contains("x-mcp-header") && !text.contains(r"\u");
        if is_plain && self.tools.is_empty() {
            return;
        }
        // An unreadable result is ignored here; its caller reports it.
        let Ok(page) = list_tools_result.to::<Page>() else { return };
        for tool in page.tools {
            let schema = tool.input_schema.as_ref();
            let params = schema.and_then(|it| ParamHeaders::read(it).ok()).unwrap_or_default();
            self.put(tool.name, params);
        }
    }

    /// The headers of a tool; `None` if it has no annotations.
    pub fn get(&self, tool: &str) -> Option<&Arc<ParamHeaders>> {
        self.tools.get(tool)
    }

    /// The headers of one call; see [`ParamHeaders::headers_for`].
    pub fn headers(&self, tool: &str, arguments: Option<&Json>) -> Vec<(String, String)> {
        self.get(tool).map(|it| it.headers_for(arguments)).unwrap_or_default()
    }

    /// How many tools are known.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether no tools are known.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    fn put(&mut self, name: String, params: ParamHeaders) {
        let weight = name.len() + params.weight();
        if params.is_empty() || weight > MAX_WEIGHT {
            if self.forget(&name) {
                self.order.retain(|it| *it != name);
            }
            return;
        }
        if !self.forget(&name) {
            self.order.push_back(name.clone());
        }
        self.tools.insert(name, Arc::new(params));
        self.weight += weight;
        while self.tools.len() > MAX_TOOLS || self.weight > MAX_WEIGHT {
            let Some(oldest) = self.order.pop_front() else { break };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, name: &str) -> bool {
        let Some(old) = self.tools.remove(name) else { return false };
        self.weight -= name.len() + old.weight();
        true
    }
}

/// How many tools are kept.
const MAX_TOOLS: usize = 10_000;
/// Roughly how many bytes they may take.
const MAX_WEIGHT: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(tools: &[(&str, &str)]) -> Json {
        let tools: Vec<_> = tools
            .iter()
            .map(|(name, annotation)| {
                serde_json::json!({ "name": name, "inputSchema": { "type": "object", "properties": {
                    "a": { "type": "string", "x-mcp-header": annotation },
                } } })
            })
            .collect();
        Json::of(&serde_json::json!({ "tools": tools, "nextCursor": "more" }))
    }

    fn arguments() -> Json {
        Json::parse(r#"{"a":"x"}"#).unwrap()
    }

    #[test]
    fn pages_add_up_and_later_ones_replace() {
        let mut registry = ParamRegistry::new();
        registry.learn(&page(&[("one", "A"), ("two", "A")]));
        registry.learn(&page(&[("three", "A")]));
        assert_eq!(registry.len(), 3);
        registry.learn(&page(&[("one", "B")]));
        let headers = registry.headers("one", Some(&arguments()));
        assert_eq!(headers, [("mcp-param-b".to_owned(), "x".to_owned())]);
        assert_eq!(registry.headers("two", None), []);
        assert_eq!(registry.headers("four", Some(&arguments())), []);
    }

    #[test]
    fn a_tool_whose_annotations_are_gone_or_wrong_is_forgotten() {
        let mut registry = ParamRegistry::new();
        registry.learn(&page(&[("one", "A"), ("two", "A")]));
        registry.learn(&page(&[("one", "not a token")]));
        assert!(registry.get("one").is_none());
        registry.learn(&Json::parse(r#"{"tools":[{"name":"two","inputSchema":{}}]}"#).unwrap());
        assert!(registry.is_empty());
        assert!(registry.order.is_empty());
        assert_eq!(registry.weight, 0);
    }

    #[test]
    fn an_unreadable_list_changes_nothing() {
        let mut registry = ParamRegistry::new();
        registry.learn(&page(&[("one", "A")]));
        for text in ["7", "[]", r#"{"tools":7}"#, r#"{"tools":[{"inputSchema":{}}]}"#, "{}"] {
            registry.learn(&Json::parse(text).unwrap());
        }
        assert_eq!(registry.len(), 1);
    }

    #[test]
    fn past_its_bounds_the_oldest_tool_is_forgotten() {
        let mut registry = ParamRegistry::new();
        let names: Vec<_> = (0..=MAX_TOOLS).map(|at| format!("tool-{at}")).collect();
        let tools: Vec<_> = names.iter().map(|name| (&**name, "A")).collect();
        registry.learn(&page(&tools));
        assert_eq!(registry.len(), MAX_TOOLS);
        assert!(registry.get("tool-0").is_none());
        assert!(registry.get("tool-1").is_some());

        let long = "x".repeat(MAX_WEIGHT / 4);
        let heavy: Vec<_> = (0..6).map(|at| format!("{at}{long}")).collect();
        let heavy: Vec<_> = heavy.iter().map(|name| (&**name, "A")).collect();
        registry.learn(&page(&heavy));
        assert_eq!(registry.len(), 3);
        assert!(registry.weight <= MAX_WEIGHT);
    }
}
