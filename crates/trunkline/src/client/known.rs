//! Lists of tools → what the client remembers of each tool.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline_wire::json::Json;
use trunkline_wire::model::{Tool, ToolAnnotations};

use crate::validate::{self, Schema};

/// What the last lists say about each tool.
#[derive(Default)]
pub(super) struct KnownTools(Mutex<BTreeMap<String, ToolFacts>>);

struct ToolFacts {
    annotations: ToolAnnotations,
    output: Option<Output>,
}

/// A schema, parsed on first use.
enum Output {
    Raw(Json),
    /// `None` if it cannot be parsed: then nothing is checked.
    Read(Option<Arc<Schema>>),
}

impl KnownTools {
    /// Remembers the tools of a list.
    pub(super) fn learn(&self, tools: &[Tool]) {
        let mut known = self.lock();
        for tool in tools {
            if known.len() >= MOST && !known.contains_key(&tool.name) {
                continue;
            }
            let annotations = tool.annotations.clone().unwrap_or_default();
            let output = tool.output_schema.clone().map(Output::Raw);
            known.insert(tool.name.clone(), ToolFacts { annotations, output });
        }
    }

    pub(super) fn annotations(&self, tool: &str) -> Option<ToolAnnotations> {
        self.lock().get(tool).map(|it| it.annotations.clone())
    }

    /// Checks a structured result against the tool's listed `outputSchema`, if that is known. The
    /// error lists all violations.
    pub(super) fn check(&self, tool: &str, result: &Json) -> Result<(), String> {
        let schema = self.output(tool);
        schema.map_or(Ok(()), |schema| validate::result(&schema, result))
    }

    fn output(&self, tool: &str) -> Option<Arc<Schema>> {
        let mut known = self.lock();
        let output = known.get_mut(tool)?.output.as_mut()?;
        if let Output::Raw(raw) = output {
            *output = Output::Read(Schema::compile(raw).ok().map(Arc::new));
        }
        match output {
            Output::Read(schema) => schema.clone(),
            Output::Raw(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ToolFacts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many tools are remembered; the others count as unknown.
const MOST: usize = 10_000;
