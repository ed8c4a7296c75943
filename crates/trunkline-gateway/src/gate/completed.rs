//! `completion/complete` under rules: turns a template and the typed value into the URI that rules are
//! asked about, and drops suggestions that the caller may not read.

use std::collections::BTreeMap;

use serde::Deserialize;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::text::{UriTemplate, Value};

use super::{CallOutcome, Walk};
use crate::catalog::plan::Effect;
use crate::merge::{Item, Target};
use crate::state::Visibility;

/// A completion of a template's variable, where rules apply.
pub(super) struct Completed {
    template: UriTemplate,
    server: std::sync::Arc<str>,
    name: String,
    values: BTreeMap<String, Value>,
}

impl Completed {
    /// `None` if it completes no template, or if rules allow everything.
    pub(super) fn of(walk: &Walk, target: &Target, params: &Object) -> Option<Self> {
        #[derive(Deserialize)]
        struct Argument {
            name: String,
            value: String,
        }
        #[derive(Deserialize)]
        struct Context {
            #[serde(default)]
            arguments: BTreeMap<String, String>,
        }
        if !matches!(target.item, Item::Template(_))
            || Visibility::new(&walk.active, &walk.caller).is_open()
        {
            return None;
        }
        let template = UriTemplate::parse(&target.name).ok()?;
        let argument: Argument = params.get("argument")?.to().ok()?;
        let context = params.get("context").and_then(|it| it.to::<Context>().ok());
        let given = context.map(|it| it.arguments).unwrap_or_default();
        let mut values: BTreeMap<_, _> =
            given.into_iter().map(|(name, it)| (name, Value::Text(it))).collect();
        values.insert(argument.name.clone(), Value::Text(argument.value));
        Some(Self { template, server: target.server.clone(), name: argument.name, values })
    }

    /// The URI that the typed value makes.
    pub(super) fn target(&self) -> Target {
        let name = self.template.expand(&self.values).into();
        Target { server: self.server.clone(), name, item: Item::Unlisted }
    }

    /// Removes suggestions that the caller may not read.
    pub(super) fn filter(&mut self, walk: &Walk, outcome: CallOutcome) -> CallOutcome {
        let CallOutcome::Answer(said, from) = outcome else { return outcome };
        let Ok(mut answer) = said.to::<serde_json::Value>() else {
            return CallOutcome::Answer(said, from);
        };
        let completion = &mut answer["completion"];
        let Some(values) = completion["values"].as_array_mut() else {
            return CallOutcome::Answer(said, from);
        };
        let before = values.len();
        values.retain(|it| {
            let text = it.as_str().unwrap_or_default().to_owned();
            self.values.insert(self.name.clone(), Value::Text(text));
            walk.may(&self.target()) != Effect::Deny
        });
        if values.len() == before {
            return CallOutcome::Answer(said, from);
        }
        // `total` would count suggestions that the caller may not know of.
        if let Some(completion) = completion.as_object_mut() {
            completion.remove("total");
        }
        CallOutcome::Answer(Json::of(&answer), from)
    }
}

/// Moves the completion's members into `arguments`, where rules and plugins look.
pub(super) fn pack(params: &mut Object) {
    let mut arguments = Object::default();
    for member in COMPLETED {
        if let Some(value) = params.take(member) {
            arguments.set(member, value);
        }
    }
    params.set("arguments", arguments.to_json());
}

/// Moves them back to where the server expects them.
pub(super) fn unpack(params: &mut Object) {
    let arguments = params.take("arguments").and_then(|it| Object::parse(it.get()).ok());
    let mut arguments = arguments.unwrap_or_default();
    for member in COMPLETED {
        if let Some(value) = arguments.take(member) {
            params.set(member, value);
        }
    }
}

/// The members of `completion/complete` that are packed.
const COMPLETED: [&str; 2] = ["argument", "context"];
