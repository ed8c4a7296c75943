//! The fields of a form: the subset of JSON Schema that elicitation allows.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spelling::{null_is_default, number, ordered};
use crate::json::Json;

/// A form: its fields in order, and which of them are required.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "FormOnWire", into = "FormOnWire")]
#[non_exhaustive]
pub struct FormSchema {
    /// The fields, by name.
    pub properties: Vec<(String, PrimitiveSchema)>,
    /// The names of the required fields.
    pub required: Vec<String>,
}

/// One field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A boolean.
    Boolean(BooleanSchema),
    /// A choice.
    Enum(EnumSchema),
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumOption {
    /// The value that the server gets.
    pub value: String,
    /// The text that the user sees, if different.
    pub title: Option<String>,
}

/// How many may be chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Many {
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
}

impl FormSchema {
    /// A form without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a required field.
    #[must_use]
    pub fn required(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        self.required.push(name.clone());
        self.properties.push((name, schema.into()));
        self
    }

    /// Adds an optional field.
    #[must_use]
    pub fn optional(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        self.properties.push((name.into(), schema.into()));
        self
    }

    /// The schema as JSON.
    pub fn to_json(&self) -> Json {
        Json::of(self)
    }
}

macro_rules! plain_new {
    ($($Type:ident = $kind:literal),*) => { $(
        impl $Type {
            /// Without constraints.
            #[doc = example!(
                concat!("let field = PrimitiveSchema::from(", stringify!($Type), "::new());"),
                concat!("assert_eq!(Json::of(&field).get(), r#\"{\"type\":\"", $kind, "\"}\"#);")
            )]
            pub fn new() -> Self {
                Self::default()
            }
        }
    )* };
}

plain_new! { StringSchema = "string", NumberSchema = "number", BooleanSchema = "boolean" }

// A kind of field: each row is a member and its setter; see `setters!`. In braces: members without one.
macro_rules! kind {
    (
        $(#[$attr:meta])* $Type:ident $({ $($more:tt)* })? = $new:expr;
        $($(#[$doc:meta])* $name:ident($ty:ty): $Stored:ty = $value:expr => $json:literal;)*
    ) => {
        $(#[$attr])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[allow(missing_docs)]
        #[non_exhaustive]
        pub struct $Type {
            $(pub $name: $Stored,)*
            $($($more)*)?
        }

        setters! { $Type = $new => PrimitiveSchema::from(it);
            $($(#[$doc])* $name($ty) = $value => $json;)*
        }
    };
}

kind! {
    /// Text.
    #[derive(Eq)]
    StringSchema = StringSchema::new();
    /// Sets the label of the field.
    title(String): Option<String> = "Your name" => r#"{"type":"string","title":"Your name"}"#;
    /// Sets its description.
    description(String): Option<String> = "As in the passport"
        => r#""description":"As in the passport""#;
    /// Sets the minimum length.
    min_length(u64): Option<u64> = 2_u64 => r#""minLength":2"#;
    /// Sets the maximum length.
    max_length(u64): Option<u64> = 80_u64 => r#""maxLength":80"#;
    /// Asks for `email`, `uri`, `date` or `date-time`.
    format(String): Option<String> = "email" => r#"{"type":"string","format":"email"}"#;
    /// Sets the default (`default` on the wire).
    initial(String): Option<String> = "Paris" => r#""default":"Paris""#;
}

kind! {
    /// A number.
    NumberSchema = NumberSchema::new();
    /// Takes whole numbers only.
    integer(bool): bool = true => r#"{"type":"integer"}"#;
    /// Sets the label of the field.
    title(String): Option<String> = "Nights" => r#"{"type":"number","title":"Nights"}"#;
    /// Explains it.
    description(String): Option<String> = "How long you stay"
        => r#""description":"How long you stay""#;
    /// Sets the least.
    minimum(f64): Option<f64> = 1.0 => r#""minimum":1"#;
    /// Sets the most.
    maximum(f64): Option<f64> = 99.5 => r#""maximum":99.5"#;
    /// Sets the default (`default` on the wire).
    initial(f64): Option<f64> = 3.0 => r#""default":3"#;
}

kind! {
    /// Yes or no.
    #[derive(Eq)]
    BooleanSchema = BooleanSchema::new();
    /// Sets the label of the field.
    title(String): Option<String> = "Breakfast" => r#"{"type":"boolean","title":"Breakfast"}"#;
    /// Explains it.
    description(String): Option<String> = "Costs extra" => r#""description":"Costs extra""#;
    /// Sets the default (`default` on the wire).
    initial(bool): Option<bool> = false => r#""default":false"#;
}

kind! {
    /// A choice.
    #[derive(Eq)]
    EnumSchema {
        /// The options.
        pub options: Vec<EnumOption>,
    } = EnumSchema::new(["red", "green"]);
    /// Sets the label of the field.
    title(String): Option<String> = "Colour"
        => r#"{"type":"string","title":"Colour","enum":["red","green"]}"#;
    /// Explains it.
    description(String): Option<String> = "Of the car" => r#""description":"Of the car""#;
    /// Makes it a multi-select.
    many(Many): Option<Many> = Many { min_items: Some(1), max_items: None }
        => r#"{"type":"array","minItems":1,"items":"#;
    /// Sets the default choice (`default` on the wire): at most one unless it is a multi-select.
    initial(Vec<String>): Vec<String> = ["green".to_owned()] => r#""default":"green""#;
}

impl EnumSchema {
    /// A choice of one among `values`.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let option = |value: String| EnumOption { value, title: None };
        let options = values.into_iter().map(|it| option(it.into())).collect();
        Self { options, ..Self::default() }
    }

    /// A choice of one among values with titles.
    pub fn titled<V: Into<String>, T: Into<String>>(
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        let option =
            |(value, title): (V, T)| EnumOption { value: value.into(), title: Some(title.into()) };
        Self { options: options.into_iter().map(option).collect(), ..Self::default() }
    }

    fn is_titled(&self) -> bool {
        self.options.iter().any(|option| option.title.is_some())
    }
}

variants! { PrimitiveSchema:
    StringSchema => String, NumberSchema => Number, BooleanSchema => Boolean, EnumSchema => Enum
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct FormOnWire {
    #[serde(rename = "type")]
    kind: String,
    #[serde(with = "ordered")]
    properties: Vec<(String, PrimitiveSchema)>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    required: Vec<String>,
}

impl From<FormOnWire> for FormSchema {
    fn from(wire: FormOnWire) -> Self {
        Self { properties: wire.properties, required: wire.required }
    }
}

impl From<FormSchema> for FormOnWire {
    fn from(form: FormSchema) -> Self {
        Self { kind: "object".into(), properties: form.properties, required: form.required }
    }
}

/// Every member that any field may have. `enum` comes in five spellings: `enum`, `enum` with
/// `enumNames`, `oneOf`, `items.enum` and `items.anyOf`.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Flat {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(with = "number::option", skip_serializing_if = "Option::is_none")]
    minimum: Option<f64>,
    #[serde(with = "number::option", skip_serializing_if = "Option::is_none")]
    maximum: Option<f64>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    values: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enum_names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_of: Option<Vec<Titled>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Items>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Json>,
}

#[derive(Serialize, Deserialize)]
struct Titled {
    #[serde(rename = "const")]
    value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Items {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    values: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    any_of: Option<Vec<Titled>>,
}

impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let flat = Flat::deserialize(deserializer)?;
        flat.into_schema().map_err(D::Error::custom)
    }
}

impl Flat {
    fn into_schema(self) -> Result<PrimitiveSchema, serde_json::Error> {
        let Self { title, description, default, .. } = self;
        let schema = match self.kind.as_str() {
            "string" if self.one_of.is_some() || self.values.is_some() => {
                let options = match self.one_of {
                    Some(titled) => from_titled(titled),
                    None => from_values(self.values.unwrap_or_default(), self.enum_names),
                };
                let default = default.map(|it| it.to()).transpose()?;
                let initial = default.into_iter().collect();
                EnumSchema { title, description, options, many: None, initial }.into()
            }
            "string" => StringSchema {
                title,
                description,
                min_length: self.min_length,
                max_length: self.max_length,
                format: self.format,
                initial: default.map(|it| it.to()).transpose()?,
            }
            .into(),
            "number" | "integer" => NumberSchema {
                integer: self.kind == "integer",
                title,
                description,
                minimum: self.minimum,
                maximum: self.maximum,
                initial: default.map(|it| it.to()).transpose()?,
            }
            .into(),
            "boolean" => {
                let initial = default.map(|it| it.to()).transpose()?;
                BooleanSchema { title, description, initial }.into()
            }
            "array" => {
                let items = self.items.unwrap_or_default();
                let options = match items.any_of {
                    Some(titled) => from_titled(titled),
                    None => from_values(items.values.unwrap_or_default(), None),
                };
                let many = Many { min_items: self.min_items, max_items: self.max_items };
                let initial = default.map(|it| it.to()).transpose()?.unwrap_or_default();
                EnumSchema { title, description, options, many: Some(many), initial }.into()
            }
            _ => return Err(serde_json::Error::custom("a form has no fields of this type")),
        };
        Ok(schema)
    }
}

fn from_titled(titled: Vec<Titled>) -> Vec<EnumOption> {
    titled.into_iter().map(|it| EnumOption { value: it.value, title: it.title }).collect()
}

fn from_values(values: Vec<String>, names: Option<Vec<String>>) -> Vec<EnumOption> {
    let mut names = names.unwrap_or_default().into_iter();
    values.into_iter().map(|value| EnumOption { value, title: names.next() }).collect()
}

impl Serialize for PrimitiveSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.flat().serialize(serializer)
    }
}

impl PrimitiveSchema {
    fn flat(&self) -> Flat {
        match self.clone() {
            Self::String(it) => Flat {
                kind: "string".into(),
                title: it.title,
                description: it.description,
                min_length: it.min_length,
                max_length: it.max_length,
                format: it.format,
                default: it.initial.map(|text| Json::string(&text)),
                ..Flat::default()
            },
            Self::Number(it) => Flat {
                kind: if it.integer { "integer" } else { "number" }.into(),
                title: it.title,
                description: it.description,
                minimum: it.minimum,
                maximum: it.maximum,
                default: it.initial.map(|value| Json::of(&Plain(value))),
                ..Flat::default()
            },
            Self::Boolean(it) => Flat {
                kind: "boolean".into(),
                title: it.title,
                description: it.description,
                default: it.initial.map(|value| Json::of(&value)),
                ..Flat::default()
            },
            Self::Enum(it) => it.flat(),
        }
    }
}

impl EnumSchema {
    fn flat(self) -> Flat {
        let is_titled = self.is_titled();
        let values = || self.options.iter().map(|option| option.value.clone()).collect();
        let titled = || self.options.iter().map(Titled::of).collect();
        let common = Flat {
            title: self.title.clone(),
            description: self.description.clone(),
            ..Flat::default()
        };
        match self.many {
            None => Flat {
                kind: "string".into(),
                one_of: is_titled.then(titled),
                values: (!is_titled).then(values),
                default: self.initial.first().map(|text| Json::string(text)),
                ..common
            },
            Some(many) => Flat {
                kind: "array".into(),
                min_items: many.min_items,
                max_items: many.max_items,
                items: Some(Items {
                    kind: (!is_titled).then(|| "string".into()),
                    values: (!is_titled).then(values),
                    any_of: is_titled.then(titled),
                }),
                default: (!self.initial.is_empty()).then(|| Json::of(&self.initial)),
                ..common
            },
        }
    }

    /// The same choice as `enum` with `enumNames`, the only form in 2025-06-18.
    pub(crate) fn to_named(&self) -> Json {
        let name = |option: &EnumOption| option.title.clone().unwrap_or(option.value.clone());
        Json::of(&Flat {
            kind: "string".into(),
            title: self.title.clone(),
            description: self.description.clone(),
            values: Some(self.options.iter().map(|option| option.value.clone()).collect()),
            enum_names: self.is_titled().then(|| self.options.iter().map(name).collect()),
            ..Flat::default()
        })
    }
}

impl Titled {
    fn of(option: &EnumOption) -> Self {
        // The specification requires a title in this spelling.
        let title = option.title.clone().unwrap_or_else(|| option.value.clone());
        Self { value: option.value.clone(), title: Some(title) }
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Plain(#[serde(with = "number")] f64);
