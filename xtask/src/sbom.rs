//! What the binary is made of → a bill of materials (CycloneDX 1.6, JSON).

use crate::graph::{Graph, Package, tree};
use crate::{run, web};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Writes the bill, to `target/sbom/trunkline.cdx.json` unless a path is given.
pub fn run(args: &[String]) -> Result<(), String> {
    let path = match args {
        [] => run::target().join("sbom/trunkline.cdx.json"),
        [path] if !path.starts_with('-') => PathBuf::from(path),
        _ => return Err("`sbom` takes a path or nothing.".to_owned()),
    };
    let graph = Graph::read()?;
    let document = document(&graph, &shipped(&graph)?, &run::file(PAGE_LOCK)?);
    if let Some(fault) = faults(&document).first() {
        return Err(fault.clone());
    }
    let cannot = |error| format!("Cannot write `{}`: {error}.", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    std::fs::write(&path, format!("{document:#}\n")).map_err(cannot)?;
    let count = document["components"].as_array().map_or(0, Vec::len);
    println!("{count} components in {}", path.display());
    Ok(())
}

/// The ids of the crates that are linked into the binary on this platform, itself first.
pub fn shipped(graph: &Graph) -> Result<Vec<String>, String> {
    let linked = tree(&["--package", BINARY])?;
    let is_linked = |it: &&Package| linked.contains(&format!("{} v{}", it.name, it.version));
    let binary = graph.packages.iter().find(|it| it.name == BINARY);
    let binary = binary.ok_or_else(|| format!("Cargo knows no `{BINARY}`."))?;
    let others = graph.packages.iter().filter(|it| it.id != binary.id).filter(is_linked);
    Ok(std::iter::once(binary).chain(others).map(|it| it.id.clone()).collect())
}

/// The bill. It says nothing of when and where it was made, so the same lock files give the same bill. `page_lock` has
/// the npm packages, of which some are embedded with the console's page.
pub fn document(graph: &Graph, shipped: &[String], page_lock: &str) -> Value {
    let packages: Vec<&Package> =
        shipped.iter().filter_map(|id| graph.packages.iter().find(|it| it.id == *id)).collect();
    let Some((binary, others)) = packages.split_first() else { return Value::Null };
    let mut main = component(binary, "application");
    main["name"] = json!("trunkline");
    let has_page = packages.iter().any(|it| it.name == CONSOLE);
    let page = if has_page { embedded(page_lock) } else { Vec::new() };
    let mut dependencies: Vec<Value> = Vec::new();
    for package in &packages {
        let mut needs: BTreeSet<String> = packages
            .iter()
            .filter(|other| package.needs.contains(&other.id) && other.id != package.id)
            .map(|other| purl(other))
            .collect();
        if package.name == CONSOLE {
            needs.extend(page.iter().filter_map(|it| it["purl"].as_str().map(str::to_owned)));
        }
        dependencies.push(json!({ "ref": purl(package), "dependsOn": needs }));
    }
    dependencies.extend(page.iter().map(|it| json!({ "ref": it["bom-ref"], "dependsOn": [] })));
    let libraries = others.iter().map(|it| component(it, "library"));
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": main,
            "tools": { "components": [{ "type": "application", "name": "cargo xtask sbom" }] },
        },
        "components": libraries.chain(page.iter().cloned()).collect::<Vec<_>>(),
        "dependencies": dependencies,
    })
}

fn component(package: &Package, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": purl(package),
        "name": package.name,
        "version": package.version,
        "purl": purl(package),
        "scope": "required",
        "licenses": [{ "expression": package.licence.replace(" / ", " OR ").replace('/', " OR ") }],
    });
    if let Some(sum) = package.checksum() {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

fn purl(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

/// The libraries of the console's page, as npm's lock file has them.
fn embedded(lock: &str) -> Vec<Value> {
    let lock: Value = serde_json::from_str(lock).unwrap_or_default();
    let component = |name: &&str| {
        let package = &lock["packages"][format!("node_modules/{name}")];
        let purl = format!("pkg:npm/{name}@{}", package["version"].as_str().unwrap_or_default());
        let sum = package["integrity"].as_str().and_then(|it| it.strip_prefix("sha512-"));
        json!({
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": package["version"],
            "purl": purl,
            "scope": "required",
            "licenses": [{ "expression": package["license"] }],
            "hashes": [{ "alg": "SHA-512", "content": sum.map(hex).unwrap_or_default() }],
        })
    };
    web::PACKAGES.iter().map(component).collect()
}

/// Base64 as hexadecimal digits.
fn hex(base64: &str) -> String {
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = base64.chars().filter_map(|it| digits.find(it));
    let bits: String = bits.map(|it| format!("{it:06b}")).collect();
    let bytes = bits.as_bytes().chunks_exact(8);
    bytes
        .map(|it| it.iter().fold(0_u8, |byte, bit| (byte << 1) | (bit - b'0')))
        .map(|it| format!("{it:02x}"))
        .collect()
}

/// What a reader of CycloneDX 1.6 would complain about, as far as this bill uses it, and what a bill of
/// ours must have besides.
pub fn faults(document: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, value) in [("bomFormat", json!("CycloneDX")), ("specVersion", json!("1.6"))] {
        if document[key] != value {
            wrong.push(format!("The bill's `{key}` is not {value}."));
        }
    }
    let main = &document["metadata"]["component"];
    let components: Vec<&Value> =
        document["components"].as_array().into_iter().flatten().chain([main]).collect();
    let mut refs = BTreeSet::new();
    for component in &components {
        let reference = component["bom-ref"].as_str().unwrap_or_default();
        let is_known = reference.starts_with("pkg:cargo/") || reference.starts_with("pkg:npm/");
        let is_good = is_known && component["purl"] == reference;
        if !is_good || !refs.insert(reference) {
            wrong.push(format!("`{reference}` is there twice, or is no package URL."));
        }
        for key in ["name", "version", "type"] {
            if component[key].as_str().is_none_or(str::is_empty) {
                wrong.push(format!("`{reference}` has no `{key}`."));
            }
        }
        if component["licenses"][0]["expression"].as_str().is_none_or(str::is_empty) {
            wrong.push(format!("`{reference}` has no licence."));
        }
        let sum = component["hashes"][0]["content"].as_str();
        let is_ours = reference.starts_with("pkg:cargo/trunkline");
        let digits = if component["hashes"][0]["alg"] == "SHA-512" { 128 } else { 64 };
        if !is_ours && sum.is_none_or(|it| it.len() != digits) {
            wrong.push(format!("`{reference}` has no checksum."));
        }
    }
    let dependencies: Vec<&Value> =
        document["dependencies"].as_array().into_iter().flatten().collect();
    if dependencies.len() != components.len() {
        wrong.push("The bill does not say of every component what it needs.".to_owned());
    }
    for dependency in dependencies {
        let needs = dependency["dependsOn"].as_array().into_iter().flatten();
        for reference in needs.chain([&dependency["ref"]]).filter_map(Value::as_str) {
            if !refs.contains(reference) {
                wrong.push(format!("`{reference}` is needed, but no component."));
            }
        }
    }
    wrong
}

const BINARY: &str = "trunkline-cli";
const CONSOLE: &str = "trunkline-console";
/// Where the versions of the page's libraries are pinned.
pub const PAGE_LOCK: &str = "peers/package-lock.json";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Source;

    fn graph() -> Graph {
        let package = |name: &str, checksum: Option<String>, needs: &[&str]| Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0+x".to_owned(),
            licence: "MIT/Apache-2.0".to_owned(),
            source: checksum.map(|checksum| Source {
                registry: crate::supply::CRATES_IO.to_owned(),
                checksum: Some(checksum),
            }),
            runs_at_build: false,
            needs: needs.iter().map(|it| (*it).to_owned()).collect(),
        };
        Graph {
            packages: vec![
                package("serde", Some("a".repeat(64)), &[]),
                package("trunkline-cli", None, &["serde", "tool"]),
                package("tool", Some("b".repeat(64)), &[]),
            ],
        }
    }

    #[test]
    fn the_bill_says_what_is_linked_and_from_where() {
        let shipped = ["trunkline-cli".to_owned(), "serde".to_owned()];
        let bill = document(&graph(), &shipped, "{}");
        assert_eq!(faults(&bill), Vec::<String>::new());
        assert_eq!(bill["metadata"]["component"]["name"], "trunkline");
        let serde = &bill["components"][0];
        assert_eq!(serde["purl"], "pkg:cargo/serde@1.0.0%2Bx");
        assert_eq!(serde["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(serde["hashes"][0]["content"], "a".repeat(64));
        assert_eq!(bill["components"].as_array().map(Vec::len), Some(1), "`tool` is not linked");
        assert_eq!(bill["dependencies"][0]["dependsOn"][0], "pkg:cargo/serde@1.0.0%2Bx");
    }

    #[test]
    fn the_libraries_of_the_page_are_on_the_bill() {
        let mut graph = graph();
        graph.packages[1].needs.push(CONSOLE.to_owned());
        let console = Package {
            id: CONSOLE.to_owned(),
            name: CONSOLE.to_owned(),
            version: "1.0.0".to_owned(),
            licence: "MIT".to_owned(),
            source: None,
            runs_at_build: false,
            needs: Vec::new(),
        };
        graph.packages.push(console);
        let shipped = ["trunkline-cli".to_owned(), CONSOLE.to_owned()];
        let lock = run::file(PAGE_LOCK).expect("there is a lock file");
        let bill = document(&graph, &shipped, &lock);
        assert_eq!(faults(&bill), Vec::<String>::new());
        let components = bill["components"].as_array().into_iter().flatten();
        let names: Vec<&str> = components.filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names, [&[CONSOLE], web::PACKAGES].concat());
        assert_ne!(
            faults(&document(&graph, &shipped, "{}")),
            Vec::<String>::new(),
            "nothing is known of them"
        );
    }

    #[test]
    fn checksums_are_written_in_hexadecimal() {
        assert_eq!(hex("AP8Q"), "00ff10");
        assert_eq!(hex("/w=="), "ff");
    }

    #[test]
    fn a_bill_that_is_not_in_order_is_refused() {
        let shipped = ["trunkline-cli".to_owned(), "serde".to_owned()];
        let good = document(&graph(), &shipped, "{}");
        for (pointer, value) in [
            ("/specVersion", json!("1.2")),
            ("/components/0/hashes", json!([])),
            ("/components/0/licenses", json!([])),
            ("/components/0/bom-ref", json!("pkg:cargo/other@1")),
            ("/components/0/version", json!("")),
            ("/dependencies", json!([])),
            ("/dependencies/0/dependsOn/0", json!("pkg:cargo/other@1")),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).expect("it is there") = value;
            assert_ne!(faults(&bad), Vec::<String>::new(), "{pointer}");
        }
    }
}
