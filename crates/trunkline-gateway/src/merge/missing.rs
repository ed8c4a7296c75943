//! Tells a client that lists which servers' entries are missing, and why. Pure.

use std::sync::Arc;

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;

/// Servers whose lists are unknown, and why.
#[derive(Debug, Default)]
pub(crate) struct Missing(pub(crate) Vec<(Arc<str>, String)>);

impl Missing {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn sentence(&self) -> String {
        let all = self.0.iter().map(|(name, why)| format!("`{name}`: {why}"));
        let all = all.collect::<Vec<_>>().join(" ");
        format!("The list is not complete; a change is announced once it is. {all}")
    }

    /// Adds the same to the `_meta` of a list.
    pub(crate) fn within(&self, page: Json) -> Json {
        let Ok(mut result) = Object::parse(page.get()) else { return page };
        let meta = result.get("_meta").and_then(|it| Object::parse(it.get()).ok());
        let (mut meta, mut missing) = (meta.unwrap_or_default(), Object::default());
        for (name, why) in &self.0 {
            missing.set(name.to_string(), Json::string(why));
        }
        meta.set(META, missing.to_json());
        result.set("_meta", meta.to_json());
        result.to_json()
    }
}

/// Where a list says what is missing: an object of server names and sentences.
pub(crate) const META: &str = "trunkline/missing";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_what_it_lacks() {
        let missing = Missing(vec![(Arc::from("time"), "It is starting.".to_owned())]);
        let page = Json::parse(r#"{"tools":[],"_meta":{"a":1}}"#).unwrap();
        let told = r#"{"tools":[],"_meta":{"a":1,"trunkline/missing":{"time":"It is starting."}}}"#;
        assert_eq!(missing.within(page).get(), told);
        assert!(missing.sentence().ends_with("`time`: It is starting."));
    }
}
