//! Multiple-choice fields for 2025-06-18, whose forms have none: each choice becomes a yes-or-no
//! field, and the answers become a list again.

use serde_json::{Map, Value};
use trunkline_wire::json::Json;
use trunkline_wire::model::{BooleanSchema, EnumSchema, FormSchema, PrimitiveSchema};

/// A form without lists, and the lists that its fields stand for.
pub(super) struct Spread {
    pub(super) form: FormSchema,
    lists: Vec<List>,
}

struct List {
    name: String,
    /// The field and the choice that it stands for.
    fields: Vec<(String, String)>,
}

impl Spread {
    pub(super) fn of(form: &FormSchema) -> Self {
        let mut spread = Self { form: FormSchema::new(), lists: Vec::new() };
        spread.form.required.clone_from(&form.required);
        let is_taken = |name: &str| form.properties.iter().any(|(it, _)| it == name);
        for (name, field) in &form.properties {
            match field {
                PrimitiveSchema::Enum(choice) if choice.many.is_some() => {
                    spread.form.required.retain(|it| it != name);
                    let list = spread.add(name, choice, is_taken);
                    spread.lists.push(list);
                }
                other => spread.form.properties.push((name.clone(), other.clone())),
            }
        }
        spread
    }

    /// Adds a yes-or-no field for each choice.
    fn add(&mut self, name: &str, choice: &EnumSchema, is_taken: impl Fn(&str) -> bool) -> List {
        let title = choice.title.as_deref().unwrap_or(name);
        let mut fields = Vec::new();
        for option in &choice.options {
            let mut field = format!("{name}.{}", option.value);
            while is_taken(&field) {
                field.push('_');
            }
            let label = option.title.as_deref().unwrap_or(&option.value);
            let mut schema = BooleanSchema::new()
                .title(format!("{title}: {label}"))
                .initial(choice.initial.contains(&option.value));
            schema.description.clone_from(&choice.description);
            self.form.properties.push((field.clone(), schema.into()));
            fields.push((field, option.value.clone()));
        }
        List { name: name.to_owned(), fields }
    }

    /// The answer in the shape of the original form. A value that is not an object passes
    /// unchanged; others refuse it.
    pub(super) fn gather(&self, content: &Json) -> Json {
        let Ok(mut members) = content.to::<Map<String, Value>>() else {
            return content.clone();
        };
        for list in &self.lists {
            let answers: Vec<_> = list
                .fields
                .iter()
                .filter_map(|(field, value)| Some((members.remove(field)?, value)))
                .collect();
            if !answers.is_empty() {
                let chosen = answers.into_iter().filter(|it| it.0 == Value::Bool(true));
                let chosen = chosen.map(|(_, value)| Value::from(value.as_str()));
                members.insert(list.name.clone(), chosen.collect::<Vec<_>>().into());
            }
        }
        Json::of(&members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trunkline_wire::model::{Many, StringSchema};

    use super::*;

    #[test]
    fn a_list_is_spread_and_gathered() {
        let choice = EnumSchema::titled([("a", "Ham"), ("b", "Brie")])
            .title("Toppings")
            .many(Many { min_items: Some(1), max_items: None })
            .initial(["b".to_owned()]);
        let form = FormSchema::new()
            .required("name", StringSchema::new())
            .required("top", choice)
            .optional("top.a", StringSchema::new());
        let spread = Spread::of(&form);
        assert_eq!(
            serde_json::from_str::<Value>(spread.form.to_json().get()).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "top.a_": { "type": "boolean", "title": "Toppings: Ham", "default": false },
                    "top.b": { "type": "boolean", "title": "Toppings: Brie", "default": true },
                    "top.a": { "type": "string" },
                },
                "required": ["name"],
            })
        );
        let gather = |value: Value| spread.gather(&Json::of(&value)).to::<Value>().unwrap();
        assert_eq!(
            gather(json!({ "name": "Ada", "top.a": "x", "top.a_": true, "top.b": false })),
            json!({ "name": "Ada", "top.a": "x", "top": ["a"] })
        );
        assert_eq!(gather(json!({ "top.b": false })), json!({ "top": [] }));
        assert_eq!(gather(json!({ "name": "Ada" })), json!({ "name": "Ada" }));
        assert_eq!(gather(json!(["odd"])), json!(["odd"]));
    }
}
