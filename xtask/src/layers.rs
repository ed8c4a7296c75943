//! The modules of the gateway and the table of ARCHITECTURE.md into the imports that lead down a layer.

use crate::cycles::Graph;
use crate::edges;
use std::collections::BTreeMap;

/// The root file of the crate that the table is about.
pub const ROOT: &str = "crates/trunkline-gateway/src/lib.rs";

/// Compares the imports with the table under `### The gateway, layer by layer` and returns one sentence per
/// difference.
///
/// The table's columns are the layer, its modules and what they hold. A module imports modules of its own layer and
/// of the layers above it in the table.
pub fn compare(graph: &Graph, architecture: &str) -> Vec<String> {
    let mut layers = BTreeMap::new();
    let mut wrong = Vec::new();
    for (depth, [layer, modules, _]) in edges::rows(architecture, HEADING).enumerate() {
        for module in edges::names(modules) {
            if !graph.arrows.contains_key(&module.name) {
                wrong.push(format!(
                    "ARCHITECTURE.md's layer `{layer}` has `{}`, which is no module of the gateway.",
                    module.name
                ));
            }
            if let Some((_, other)) = layers.insert(module.name.clone(), (depth, layer)) {
                wrong.push(format!(
                    "ARCHITECTURE.md has `{}` in the layers `{other}` and `{layer}`.",
                    module.name
                ));
            }
        }
    }
    if layers.is_empty() {
        return vec![format!("ARCHITECTURE.md has no table under `{HEADING}`; write one.")];
    }
    for (module, arrows) in &graph.arrows {
        let Some((depth, layer)) = layers.get(module) else {
            wrong.push(format!("`{module}` of the gateway has no layer in ARCHITECTURE.md."));
            continue;
        };
        for (to, place) in arrows {
            if let Some((below, lower)) = layers.get(to).filter(|(below, _)| below > depth) {
                wrong.push(format!(
                    "{place}: `{module}` of layer `{layer}` imports `{to}` of layer `{lower}`, which is {} below it \
                     in ARCHITECTURE.md.",
                    below - depth
                ));
            }
        }
    }
    wrong
}

const HEADING: &str = "### The gateway, layer by layer";

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
### The gateway, layer by layer

Each layer imports only layers above it.

| layer | modules | what it holds |
|---|---|---|
| plan | `catalog`, `caller` | a plan |
| state | `state` | `catalog` in force |
| call | `gate` | the walk |

## Invariants
| not | `gate` | this |
";

    /// What is said of these modules, each with its text, under the table above.
    fn check(modules: &[(&str, &str)]) -> Vec<String> {
        let read = |path: &str| match path {
            "src/lib.rs" => {
                Some(modules.iter().map(|(name, _)| format!("mod {name};\n")).collect())
            }
            _ => {
                let name = path.strip_prefix("src/")?.strip_suffix(".rs")?;
                let found = modules.iter().find(|(module, _)| *module == name);
                found.map(|(_, text)| (*text).to_owned())
            }
        };
        compare(&Graph::of("src/lib.rs", &read), TABLE)
    }

    #[test]
    fn a_layer_imports_itself_and_what_is_above_it() {
        let said = check(&[
            ("catalog", ""),
            ("caller", "use crate::catalog::Plan;"),
            ("state", "use crate::{catalog, caller};"),
            ("gate", "use crate::state::State;\nuse crate::catalog::Plan;"),
        ]);
        assert_eq!(said, Vec::<String>::new());
    }

    #[test]
    fn an_import_that_leads_down_is_named_with_its_place() {
        let said = check(&[
            ("catalog", "//! Plans.\n\nfn f() { crate::gate::walk() }"),
            ("caller", ""),
            ("state", "use crate::gate::Gate;"),
            ("gate", ""),
        ]);
        let expected = [
            "src/catalog.rs:3: `catalog` of layer `plan` imports `gate` of layer `call`, which is 2 below it in \
             ARCHITECTURE.md.",
            "src/state.rs:1: `state` of layer `state` imports `gate` of layer `call`, which is 1 below it in \
             ARCHITECTURE.md.",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_module_without_a_layer_and_a_row_without_a_module_are_named() {
        let said = check(&[("catalog", ""), ("state", ""), ("gate", ""), ("fresh", "")]);
        let expected = [
            "ARCHITECTURE.md's layer `plan` has `caller`, which is no module of the gateway.",
            "`fresh` of the gateway has no layer in ARCHITECTURE.md.",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_module_in_two_layers_and_a_missing_table_are_named() {
        let graph =
            Graph::of("src/lib.rs", &|path| (path == "src/lib.rs").then(|| "mod gate;".to_owned()));
        let twice = TABLE.replace("`state` |", "`gate` |").replace("`catalog`, `caller`", "—");
        let said = compare(&graph, &twice);
        assert_eq!(said, ["ARCHITECTURE.md has `gate` in the layers `state` and `call`."]);
        assert_eq!(
            compare(&graph, "# Architecture"),
            ["ARCHITECTURE.md has no table under `### The gateway, layer by layer`; write one."]
        );
    }
}
